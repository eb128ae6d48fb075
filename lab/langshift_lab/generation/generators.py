"""``http:URL#MODEL``: a chat model behind OpenAI's ``/v1/chat/completions`` (vLLM, TGI, Ollama, llama.cpp).

What it answers is kept in an SQLite file, so that no prompt is answered twice, also after a command was killed.

"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from http import HTTPStatus
from multiprocessing.pool import ThreadPool
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

import orjson

from langshift.errors import LangshiftError
from langshift.files import ensure_private
from langshift.languages import UNDETERMINED
from langshift.model_server import FIRST, PATIENT, TOO_MUCH, ModelServer, ServerKind, entries, parse_address, parse_json

KEY: Final = "LANGSHIFT_GENERATOR_API_KEY"
CHAT: Final = "/v1/chat/completions"
GENERATION_SERVER: Final = ServerKind(
    "generation server", KEY, CHAT, "http:http://localhost:8000#Qwen/Qwen2.5-7B-Instruct", "every answer"
)
# An answer is a sentence or two.
_TOKENS: Final = 128
# What a model thinks aloud: cut off where it does not come to an end, and without its beginning where the model's
# template puts that into the prompt, as DeepSeek-R1's does.
_THINKING: Final = re.compile(r"(?:\A(?:(?!<think>).)*?|<think>.*?)</think>|<think>.*\Z", re.DOTALL)


class Answer(NamedTuple):
    """What a model answered.

    Attributes:
        text: as the model wrote it, stripped, without reasoning in ``<think>``; empty where it wrote nothing.
        finish: ``stop``, ``length`` (cut off at ``max_tokens``), ``content_filter`` or ``refusal``; empty where the
            server does not say.
    """

    text: str
    finish: str


class Generator:
    """A chat model on a server; may be used from several threads.

    Attributes:
        name: ``http:URL#MODEL``, as files name it.
        parameters: what every prompt is sent with.
    """

    def __init__(self, name: str, max_tokens: int = _TOKENS) -> None:
        """Find the model.

        Args:
            name: ``http:URL`` or ``http:URL#MODEL``.
            max_tokens: how long an answer may be.

        Raises:
            UsageError: the name is no address, or leaves open which of several models is meant.
            LangshiftError: the server cannot be reached, refuses the key, or fails.
        """
        root, model = parse_address(name, GENERATION_SERVER)
        self._server = ModelServer(root, GENERATION_SERVER)
        listed = entries(self._server.get("/v1/models", needed=model is None), "data")
        self._model = self._server.chosen(model, [str(one["id"]) for one in listed if "id" in one])
        self.name = f"http:{root}#{self._model}"
        # The same prompt is to give the same answer.
        self.parameters: Final = {"temperature": 0, "max_tokens": max_tokens, "seed": 0}
        self._retry = FIRST

    def answer(self, prompt: str) -> Answer:
        """Have one prompt answered, as one message of a user.

        Raises:
            LangshiftError: the server fails, the prompt is too long for it, or what it sends is no answer.
        """
        message = {"role": "user", "content": prompt}
        answer = self._server.ask(CHAT, self._retry, {"model": self._model, "messages": [message], **self.parameters})
        if answer.status in TOO_MUCH:
            raise LangshiftError(
                f"{self._server.shown} rejects a prompt of {len(prompt):,} characters ({self._server.why(answer)}): "
                "give it fewer passages, or run the model with a longer context."
            )
        if answer.status == HTTPStatus.NOT_FOUND:
            raise LangshiftError(
                f"{self._server.shown} has no model {self._model!r} at {CHAT} ({self._server.why(answer)}): check the "
                "address and the model."
            )
        if answer.status != HTTPStatus.OK:
            raise self._server.failed(answer)
        self._retry = PATIENT
        read = _read(parse_json(answer.data))
        if read is None:
            raise LangshiftError(
                f"{self._server.shown} answered {self._server.words(answer)!r}, which contains no answer of a model: "
                "check its address."
            )
        return read


def _read(content: Any) -> Answer | None:  # noqa: ANN401 - any JSON value
    """The answer in what a server sent; None where there is none."""
    choices = content.get("choices") if isinstance(content, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return None
    text, finish = message.get("content"), choice.get("finish_reason")
    if not isinstance(text, str | None):
        return None
    finish = "refusal" if message.get("refusal") else finish if isinstance(finish, str) else ""
    return Answer(_THINKING.sub("", text or "").strip(), finish)


_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, generator TEXT, text TEXT, finish TEXT) WITHOUT ROWID"
)


class AnswerCache(AbstractContextManager["AnswerCache"]):
    """Answers on disk, in an SQLite file."""

    def __init__(self, path: Path) -> None:
        """Open the file; it is made where it is missing, for the owner alone.

        Raises:
            LangshiftError: it cannot be opened, or is another program's.
        """
        self._path, self._lock = path, Lock()
        try:
            # SQLite would make it by the umask; its -wal file takes this one's mode.
            ensure_private(path)
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute(_TABLE)
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from error

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def answer_all(
        self,
        generator: Generator,
        prompts: Sequence[str],
        on_answer: Callable[[bool], None] = lambda _: None,
        concurrency: int = 4,
    ) -> list[Answer]:
        """Return the answer to each prompt; every one that is not in the file is asked once, and kept at once.

        Args:
            generator: answers.
            prompts: the same prompt may come again.
            on_answer: called after each prompt with whether its answer was in the file already.
            concurrency: how many prompts are asked at once.

        Raises:
            LangshiftError: the generator fails, or the file cannot be written; the answers so far are kept.
        """
        keys = {prompt: _key(generator, prompt) for prompt in prompts}
        found = {prompt: answer for prompt, key in keys.items() if (answer := self._get(key)) is not None}
        missing = [prompt for prompt in keys if prompt not in found]

        failures: list[LangshiftError] = []

        # After a failure nothing more is asked, and what is under way is still kept: it has been paid for.
        def ask(prompt: str) -> tuple[str, Answer | None]:
            if failures:
                return prompt, None
            try:
                answer = generator.answer(prompt)
                self._put(keys[prompt], generator, answer)
            except LangshiftError as error:
                failures.append(error)
                return prompt, None
            return prompt, answer

        for _ in range(len(prompts) - len(missing)):
            on_answer(True)
        if missing:
            # Unlike an executor's, its threads keep nobody waiting who has interrupted the command.
            with ThreadPool(min(concurrency, len(missing))) as workers:
                for prompt, answer in workers.imap_unordered(ask, missing):
                    if answer is not None:
                        found[prompt] = answer
                        on_answer(False)
        if failures:
            raise failures[0]
        return [found[prompt] for prompt in prompts]

    def _get(self, key: str) -> Answer | None:
        try:
            row = self._file.execute("SELECT text, finish FROM answers WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._failed(error) from error
        return row and Answer(*row)

    def _put(self, key: str, generator: Generator, answer: Answer) -> None:
        with self._lock:
            try:
                self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", (key, generator.name, *answer))
            except sqlite3.Error as error:
                raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error | OSError) -> LangshiftError:
        return LangshiftError(
            f"{self._path}, which keeps the answers, cannot be used ({error}): check the disk, or remove the file."
        )


def _key(generator: Generator, prompt: str) -> str:
    return sha256(orjson.dumps([generator.name, prompt, generator.parameters])).hexdigest()


def answer_prompt(question: str, passages: Sequence[str], language: str) -> str:
    """Return the prompt for an answer of one full sentence in the question's language.

    Args:
        question: the question.
        passages: what the answer is to be taken from, the best first; none asks for what the model knows.
        language: primary tag of the question's language, ``und`` where it is not known.
    """
    tag = "" if language == UNDETERMINED else f" ({language})"
    how = f"Answer the question in one full sentence, in the language of the question{tag}"
    if not passages:
        return f"{how}.\n\nQuestion: {question}"
    given = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1))
    return f"{how}, from the passages only.\n\n{given}\n\nQuestion: {question}"

"""What a replay has heard so far, on disk, so that one that was cut off can go on.

While a replay is under way its folder holds ``unfinished.json``, which says what is replayed,
``result.json`` with ``"complete": false``, and ``per-query.jsonl``, to which each answer is appended
with its ``ranking`` as it comes, in an index of chunks with the places of its ``passages``, and with ``how``
its scores were put together where other documents could not be given theirs without. When all are there the
latter two are replaced by the whole result, and ``unfinished.json`` goes.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.fingerprint import shown_value
from langshift.errors import UsageError
from langshift.evaluate.replay.requests import QueryResult
from langshift.evaluate.runs import PER_QUERY
from langshift.files import ensure_folder, ensure_private, load_json, write_json
from langshift.retrieval.hits import ScoringContext


def to_dict(how: ScoringContext) -> dict[str, Any]:
    """The same as JSON; empty where there is nothing to know."""
    known = msgspec.to_builtins(how, enc_hook=_builtin)
    return {name: value for name, value in known.items() if value}


def from_dict(given: Mapping[str, Any]) -> ScoringContext:
    """Read it again.

    Raises:
        ValueError: it is of another form.
    """
    return msgspec.convert(given, ScoringContext, dec_hook=lambda _, text: np.frombuffer(b64decode(text), np.float32))


def _builtin(value: np.floating[Any] | NDArray[np.float32]) -> float | bytes:
    """A figure of NumPy, or a vector, whose bytes JSON has as base64."""
    return value.tobytes() if isinstance(value, np.ndarray) else float(value)


RESULT, UNFINISHED = "result.json", "unfinished.json"
#: Of a replay without judgements: what was asked, and the beginnings of what was found.
LOGGED_QUERIES, FOUND_DOCUMENTS = "logged-queries.jsonl", "found-documents.jsonl"
WRITTEN_AT_THE_END = ("run.trec", "group-scores.jsonl", LOGGED_QUERIES, FOUND_DOCUMENTS)
#: What a line calls the first fields of an answer.
_COLUMNS = ("query", "ranking", "took_ms", "wall_ms", "waited_ms", "error", "reached")
#: What makes two replays the same, as JSON: only then do their answers belong together.
Identity = Mapping[str, Any]


class ReplayJournal:
    """The journal of a replay in one way; ``with`` closes it.

    Attributes:
        folder: where it is.
        earlier_answers: query id -> answer, for the queries that an earlier call has had answered.
        sent_again: how many queries found no cluster in an earlier call, and are to be sent again.
    """

    def __init__(self, folder: Path, earlier_answers: Mapping[str, QueryResult], sent_again: int) -> None:
        self.folder, self.earlier_answers, self.sent_again = folder, earlier_answers, sent_again
        ensure_private(folder / PER_QUERY)
        self._file: IO[bytes] = (folder / PER_QUERY).open("ab")

    def __enter__(self) -> ReplayJournal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, answer: QueryResult) -> None:
        """Append one answer."""
        self._file.write(orjson.dumps(_row(answer), option=orjson.OPT_APPEND_NEWLINE))

    def flush(self) -> None:
        """Let what was added outlive the process."""
        self._file.flush()

    @staticmethod
    def finish(folder: Path) -> None:
        """Say that a folder holds the whole result."""
        (folder / UNFINISHED).unlink(missing_ok=True)


def unfinished(folder: Path) -> bool:
    """Whether a folder holds a replay that was cut off."""
    return (folder / UNFINISHED).is_file()


def begin(folder: Path, identity: Identity, command: str) -> ReplayJournal:
    """Start a journal; what an earlier replay left in the folder is removed.

    Args:
        folder: made if it is not there, for the owner alone.
        identity: what is replayed.
        command: the command that does.
    """
    ensure_folder(folder)
    for name in (*WRITTEN_AT_THE_END, PER_QUERY, RESULT):
        (folder / name).unlink(missing_ok=True)
    write_json(folder / UNFINISHED, identity, private=True)
    write_json(folder / RESULT, {"complete": False, "command": command}, private=True)
    return ReplayJournal(folder, {}, 0)


def resume(folder: Path, identity: Identity) -> ReplayJournal:
    """Go on with a journal. A last line that was cut off is taken away.

    Raises:
        UsageError: it is the journal of another replay, or a line of it cannot be read.
    """
    path = folder / UNFINISHED
    try:
        begun = load_json(path.read_bytes())
    except orjson.JSONDecodeError:
        begun = None
    if not isinstance(begun, dict):
        raise UsageError(f"{path} cannot be read: name another --output, or remove the file to start again.")
    differing = _differences(begun, orjson.loads(orjson.dumps(identity)))
    if differing:
        raise UsageError(
            f"{folder} contains an unfinished replay that differs from this one ({'; '.join(differing)}): "
            "name another --output, or resume it with the command that started it."
        )
    answers = _read(folder / PER_QUERY)
    earlier_answers = {query: answer for query, answer in answers.items() if answer.reached}
    return ReplayJournal(folder, earlier_answers, len(answers) - len(earlier_answers))


def _differences(begun: Mapping[str, Any], now: Mapping[str, Any], within: str = "") -> list[str]:
    differences = []
    for name in dict.fromkeys((*begun, *now)):
        old, new = begun.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            differences += _differences(old, new, f"{within}{name} ")
        elif old != new:
            differences.append(f"{within}{name} {shown_value(old)}, not {shown_value(new)}")
    return differences


def _read(path: Path) -> dict[str, QueryResult]:
    """Query id -> its last answer."""
    if not path.is_file():
        return {}
    content = path.read_bytes()
    whole_lines = content[: content.rfind(b"\n") + 1]
    if len(whole_lines) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole_lines))
    answers = {}
    for number, line in enumerate(whole_lines.splitlines(), 1):
        try:
            row = load_json(line)
            if "ranking" in row:
                answers[row["query"]] = _answer(row)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
            raise UsageError(
                f"{path}, line {number}, is not a valid answer: remove the line, and its query is sent again."
            ) from None
    return answers


def _row(answer: QueryResult) -> dict[str, Any]:
    row: dict[str, Any] = dict(zip(_COLUMNS, answer, strict=False))
    more = {"how": to_dict(answer.how), "passages": answer.places}
    return row | {name: known for name, known in more.items() if known}


def _answer(row: Mapping[str, Any]) -> QueryResult:
    answer = msgspec.convert([row[name] for name in _COLUMNS], QueryResult)
    places = msgspec.convert(row.get("passages", {}), dict[str, tuple[int, int]])
    return answer._replace(how=from_dict(row.get("how", {})), places=places)

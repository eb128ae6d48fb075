"""``http:URL#MODEL``: a model on a server with OpenAI's ``/v1/embeddings``: vLLM, TEI, Ollama and others.

What is too long for the model is cut off or refused by the server, as it is set up; there is no
standard way to ask for either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np
from numpy.typing import NDArray
from urllib3.util import Retry

from langshift.debias.encoders import have_norm_1
from langshift.debias.encoders.address import EMBEDDINGS, parse_address
from langshift.debias.encoders.served import Served, find
from langshift.debias.encoders.server import CONNECTIONS, FIRST, PATIENT, Answer, Server
from langshift.errors import LangshiftError

Matrix = NDArray[np.float32]
_PROBE = ["The weather is fine.", "a"]
# In one request: gateways take 1 MB by default.
_BYTES = 512 << 10
# How servers refuse texts that are too long, or too many at once.
_TOO_MUCH = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_BEGINNING = 40


class HttpEncoder:
    """A model on a server.

    Attributes:
        id: ``http:``, the server's address, ``#`` and the model's name.
        revision: what the server says of the weights, else the model's name.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1, as most servers make them.
        query_prefix: text put before every query.
        document_prefix: text put before every document.
        longest: None: how much of a text is read is the server's affair.
    """

    longest: int | None = None

    def __init__(self, root: str, server: Server, served: Served) -> None:
        """Encode two texts, to see what the vectors are like.

        Raises:
            LangshiftError: the server gives no vectors.
        """
        self.id = f"http:{root}#{served.model}"
        self.revision = served.revision
        self.query_prefix, self.document_prefix = served.prefixes
        self._server, self._served = server, served
        answer = self._ask(_PROBE, FIRST)
        if answer.status in _TOO_MUCH:
            raise LangshiftError(
                f"{server.shown} makes no embeddings with the model {served.model!r} "
                f"({server.why(answer)}): name another one after the #."
            )
        probe = self._vectors(_PROBE, answer)
        self.dimension = probe.shape[1]
        self.normalised = have_norm_1(probe)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents with the document prefix, shape (len(texts), dimension), float32.

        Raises:
            LangshiftError: the server fails.
        """
        return self._encode([self.document_prefix + text for text in texts])

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries with the query prefix, shape (len(texts), dimension), float32.

        Raises:
            LangshiftError: the server fails.
        """
        return self._encode([self.query_prefix + text for text in texts])

    def _encode(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        # Unlike an executor's, its threads keep nobody waiting for their answers who has interrupted the command.
        with ThreadPool(CONNECTIONS) as workers:
            return np.concatenate(list(workers.imap(self._embed, batches(texts, self._served.most))))

    def _embed(self, texts: Sequence[str]) -> Matrix:
        """The vectors of one request's texts; in halves where the server does not take so much at once."""
        answer = self._ask(texts, PATIENT)
        if answer.status not in _TOO_MUCH:
            vectors = self._vectors(texts, answer)
            if vectors.shape[1] != self.dimension:
                raise LangshiftError(
                    f"{self._server.shown} gives vectors of {vectors.shape[1]} numbers, but gave {self.dimension} "
                    "before: another model took the place of this one; start again."
                )
            return vectors
        if len(texts) > 1:
            half = len(texts) // 2
            return np.concatenate([self._embed(texts[:half]), self._embed(texts[half:])])
        raise LangshiftError(
            f"{self._server.shown} refuses the text of {len(texts[0]):,} characters that begins {_beginning(texts[0])} "
            f"({self._server.why(answer)}): shorten it, or set the server up to cut off what is too long "
            "(--auto-truncate in TEI)."
        )

    def _ask(self, texts: Sequence[str], retry: Retry) -> Answer:
        answer = self._server.post(EMBEDDINGS, {"model": self._served.model, "input": list(texts)}, retry)
        if answer.status == HTTPStatus.NOT_FOUND:
            others = ", ".join(self._served.others)
            raise LangshiftError(
                f"{self._server.shown} has no model {self._served.model!r} at {EMBEDDINGS} "
                f"({self._server.why(answer)}): check the address"
                f"{f', or name one of its models after the #: {others}' if others else ' and the model'}."
            )
        if answer.status != HTTPStatus.OK and answer.status not in _TOO_MUCH:
            raise self._server.failed(answer)
        return answer

    def _vectors(self, texts: Sequence[str], answer: Answer) -> Matrix:
        """The vectors in an answer, in the order of the texts, whatever its own order is."""
        shown = self._server.shown
        data = answer.content.get("data") if isinstance(answer.content, dict) else None
        if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
            told = self._server.words(answer)
            raise LangshiftError(f"{shown} answers {told!r}, which holds no embeddings: check its address.")
        if len(data) != len(texts):
            raise LangshiftError(
                f"{shown} gives {len(data)} vectors for {len(texts)} texts: it is no server of embeddings as OpenAI's."
            )
        found = {one["index"]: one.get("embedding") for one in data if isinstance(one.get("index"), int)}
        if found.keys() != set(range(len(texts))):
            raise LangshiftError(
                f"{shown} does not say which vector is which text's: it is no server of embeddings as OpenAI's."
            )
        vectors = [self._vector(text, found[row]) for row, text in enumerate(texts)]
        if len({len(vector) for vector in vectors}) > 1:
            raise LangshiftError(f"{shown} gives vectors of different length: it is broken.")
        return np.stack(vectors)

    def _vector(self, text: str, value: Any) -> NDArray[np.float32]:  # noqa: ANN401 - any JSON value
        try:
            # None becomes NaN, and what is too large infinite.
            with np.errstate(over="ignore"):
                vector = np.array(value, np.float32)
        except (TypeError, ValueError):
            vector = np.empty(0, np.float32)
        if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
            raise LangshiftError(
                f"{self._server.shown} gives a vector that is not one of numbers for the text that begins "
                f"{_beginning(text)}: run its model with 32-bit floats, or leave the text out."
            )
        return vector


def open_http(name: str) -> HttpEncoder:
    """Open a model on a server.

    Args:
        name: ``http:URL#MODEL``; see ``parse_address``.

    Raises:
        UsageError: the name is none, or leaves open which of several models is meant.
        LangshiftError: the server cannot be reached, refuses the key, has no such model, or fails.
    """
    root, model = parse_address(name)
    server = Server(root)
    return HttpEncoder(root, server, find(server, root, model))


def batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """Texts in groups of at most ``most``, and of no more bytes than a request may have, in order."""
    group: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if group and (len(group) == most or size + length > _BYTES):
            yield group
            group, size = [], 0
        group.append(text)
        size += length
    if group:
        yield group


def _beginning(text: str) -> str:
    return repr(text[:_BEGINNING] + ("…" if len(text) > _BEGINNING else ""))

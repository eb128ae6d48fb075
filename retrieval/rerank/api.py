"""``http:URL#MODEL``: a reranker on a server, by TEI's interface or by Cohere's, which vLLM, Jina and others have, too.

============ =========================================================== ========================================
interface    request                                                     answer
============ =========================================================== ========================================
TEI          ``POST /rerank`` ``query, texts, raw_scores, truncate``     ``[{"index", "score"}, …]``
Cohere       ``POST /v1/rerank`` ``model, query, documents, top_n``      ``{"results": [{"index", "relevance_score"}]}``
============ =========================================================== ========================================

Which of them a server speaks is found out when it is first asked: one whose address ends with ``/rerank`` or that tells
of one model at ``/info`` is TEI, any other is asked by Cohere's. Scores are put to passages by ``index`` alone.
"""

import math
from collections.abc import Sequence
from http import HTTPStatus
from multiprocessing.pool import ThreadPool
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from urllib3 import BaseHTTPResponse

from langshift.debias.encoders.embeddings_api import checked_info, most_texts
from langshift.errors import LangshiftError, UsageError
from langshift.model_server import CONNECTIONS, PATIENT, TOO_MUCH, ModelServer, ServerKind, parse_address, parse_json

KEY: Final = "LANGSHIFT_RERANKER_API_KEY"
COHERE: Final = "/v1/rerank"
TEI: Final = "/rerank"
RERANKING_SERVER: Final = ServerKind(
    "reranking server", KEY, COHERE, "http:http://localhost:8080#BAAI/bge-reranker-v2-m3", "every run"
)

_MOST: Final = 32
_BEGINNING: Final = 40


class HttpReranker:
    """A reranker on a server; may be used from several threads.

    Attributes:
        name: ``http:URL#MODEL``.
    """

    def __init__(self, name: str) -> None:
        """Find out how the server is to be asked.

        Raises:
            UsageError: the name is no address, or lacks the model that the server must be told.
            LangshiftError: the server cannot be reached, or fails.
        """
        root, model = parse_address(name, RERANKING_SERVER)
        written_for_tei = root.endswith(TEI)
        root = root.removesuffix(TEI)
        self.name = f"http:{root}" + (f"#{model}" if model else "")
        self._server, self._model = ModelServer(root, RERANKING_SERVER), model
        info = checked_info(self._server.get("/info"))
        self._tei = written_for_tei or bool(info)
        if not self._tei and not model:
            raise UsageError(f"{self._server.shown} needs the name of a model: write http:{root}#MODEL.")
        self._most = most_texts(info, _MOST)

    def scores(self, words: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """How relevant each passage is, shape (texts,), float64; see ``TextReranker``.

        Raises:
            LangshiftError: the server fails, or does not give one number for each passage.
        """
        parts = [texts[start : start + self._most] for start in range(0, len(texts), self._most)]
        if len(parts) <= 1:
            return np.array([score for part in parts for score in self._scored(words, part)], np.float64)
        with ThreadPool(min(CONNECTIONS, len(parts))) as workers:
            found = workers.starmap(self._scored, [(words, part) for part in parts])
        return np.array([score for part in found for score in part], np.float64)

    def _scored(self, words: str, texts: Sequence[str]) -> list[float]:
        """The scores of one request's texts; in halves where the server does not take so much at once."""
        if self._tei:
            path, content = TEI, {"query": words, "texts": list(texts), "raw_scores": True, "truncate": True}
        else:
            path = COHERE
            content = {"model": self._model, "query": words, "documents": list(texts), "top_n": len(texts)}
        answer = self._server.ask(path, PATIENT, content)
        if answer.status in TOO_MUCH:
            if len(texts) > 1:
                half = len(texts) // 2
                return [*self._scored(words, texts[:half]), *self._scored(words, texts[half:])]
            raise LangshiftError(
                f"{self._server.shown} rejects the passage of {len(texts[0]):,} characters that begins with "
                f"{texts[0][:_BEGINNING]!r} ({self._server.why(answer)}): configure it to truncate long texts."
            )
        if answer.status == HTTPStatus.NOT_FOUND:
            raise LangshiftError(
                f"{self._server.shown} has nothing at {path} for the model {self._model or 'it serves'} "
                f"({self._server.why(answer)}): check the address and the model."
            )
        if answer.status != HTTPStatus.OK:
            raise self._server.failed(answer)
        return self._read(answer, len(texts))

    def _read(self, answer: BaseHTTPResponse, count: int) -> list[float]:
        """The scores in an answer, in the order of the texts."""
        content, shown = parse_json(answer.data), self._server.shown
        entries = content if self._tei or not isinstance(content, dict) else content.get("results")
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise LangshiftError(
                f"{shown} answered {self._server.words(answer)!r}, which contains no scores: check its address."
            )
        found: dict[int, float] = {}
        for one in entries:
            place, score = one.get("index"), one.get("score" if self._tei else "relevance_score")
            if type(place) is not int or not 0 <= place < count:
                raise LangshiftError(f"{shown} gave a score to passage {place!r} of {count}: it cannot be used.")
            if place in found:
                raise LangshiftError(f"{shown} gave passage {place} of {count} two scores: it cannot be used.")
            found[place] = self._number(score, place)
        if len(found) < count:
            missing = next(place for place in range(count) if place not in found)
            raise LangshiftError(f"{shown} gave {len(found)} scores for {count} passages; passage {missing} has none.")
        return [found[place] for place in range(count)]

    def _number(self, score: Any, place: int) -> float:  # noqa: ANN401 - any JSON value
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise LangshiftError(
                f"{self._server.shown} gave passage {place} the score {score!r}, which is not a number: see its log."
            )
        return float(score)

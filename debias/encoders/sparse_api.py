"""``http:URL#MODEL``: a learned sparse model on a server with text-embeddings-inference's ``/embed_sparse``.

================= ============================================ ===========================================
path              request                                      answer
================= ============================================ ===========================================
``/info``                                                      ``{"model_id", "model_sha", …}``
``/embed_sparse`` ``POST {"inputs": ["…"], "truncate": true}`` ``[[{"index": 1012, "value": 0.99}, …], …]``
================= ============================================ ===========================================

Tokens are called by their ``index``, their number in the model's vocabulary. What stands before texts is set up there.
"""

from collections.abc import Sequence
from http import HTTPStatus
from itertools import chain
from multiprocessing.pool import ThreadPool
from typing import Final

from urllib3 import BaseHTTPResponse

from langshift.debias.encoders.embeddings_api import KEY, batches, checked_info, most_texts, require_served
from langshift.debias.encoders.sparse import SparseEncoder, TokenWeights, parse_weights
from langshift.errors import LangshiftError
from langshift.model_server import (
    CONNECTIONS,
    FIRST,
    PATIENT,
    TOO_MUCH,
    ModelServer,
    ServerKind,
    parse_address,
    parse_json,
    require_trusted,
)
from langshift.wording import beginning

EMBED_SPARSE: Final = "/embed_sparse"
SPARSE_SERVER: Final = ServerKind(
    "sparse embedding server", KEY, EMBED_SPARSE, "http:http://localhost:8080#naver/splade-v3", "every index"
)


class HttpSparse(SparseEncoder):
    """A sparse model on a server; may be used from several threads.

    Attributes:
        id: ``http:``, the server's address, ``#`` and the model's name.
        revision: the commit that the server says its model is of, else the model's name.
    """

    def __init__(self, name: str, named_by: str = "") -> None:
        """Find the model, and encode a text.

        Args:
            name: ``http:URL#MODEL``; see ``parse_address``.
            named_by: see ``open_encoder``.

        Raises:
            UsageError: the name is none, or names another model than the server has; or no person named it.
            LangshiftError: the server cannot be reached, refuses the key, has no sparse model, or fails.
        """
        if named_by:
            require_trusted(name, SPARSE_SERVER, named_by)
        root, wanted = parse_address(name, SPARSE_SERVER)
        self._server = server = ModelServer(root, SPARSE_SERVER)
        info = checked_info(server.get("/info", needed=wanted is None))
        model = server.chosen(wanted, [info["model_id"]] if info else [])
        require_served(server, root, model, info)
        self.id, self.revision = f"http:{root}#{model}", str(info.get("model_sha") or model)
        self._most = most_texts(info)
        self._weights(["a"], self._ask(["a"], first=True))

    def encode_documents(self, texts: Sequence[str]) -> list[TokenWeights]:
        """Weights of documents.

        Raises:
            LangshiftError: the server fails.
        """
        # The server refuses an empty text.
        read = [text for text in texts if text]
        with ThreadPool(CONNECTIONS) as workers:
            coded = chain.from_iterable(workers.imap(self._embed, batches(read, self._most)))
            return [next(coded) if text else {} for text in texts]

    encode_queries = encode_documents

    def _embed(self, texts: Sequence[str]) -> list[TokenWeights]:
        """The weights of one request's texts; in halves where the server does not take so much at once."""
        answer = self._ask(texts)
        if answer.status not in TOO_MUCH:
            return self._weights(texts, answer)
        if len(texts) > 1:
            half = len(texts) // 2
            return [*self._embed(texts[:half]), *self._embed(texts[half:])]
        raise LangshiftError(
            f"{self._server.shown} rejects the text of {len(texts[0]):,} characters that begins with "
            f"{beginning(texts[0])!r} ({self._server.why(answer)}): shorten it, or leave it out."
        )

    def _ask(self, texts: Sequence[str], *, first: bool = False) -> BaseHTTPResponse:
        server = self._server
        answer = server.ask(EMBED_SPARSE, FIRST if first else PATIENT, {"inputs": list(texts), "truncate": True})
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FAILED_DEPENDENCY):
            raise LangshiftError(
                f"{server.shown} makes no weights of tokens at {EMBED_SPARSE} ({server.why(answer)}): check the "
                "address, and that it runs a sparse model (--pooling splade in TEI)."
            )
        if answer.status != HTTPStatus.OK and (first or answer.status not in TOO_MUCH):
            raise server.failed(answer)
        return answer

    def _weights(self, texts: Sequence[str], answer: BaseHTTPResponse) -> list[TokenWeights]:
        """The weights in an answer, which are in the order of the texts."""
        content = parse_json(answer.data)
        try:
            coded = [parse_weights({f"{one['index']:d}": one["value"] for one in row}) for row in content]
        except (KeyError, TypeError, ValueError):
            coded = []
        if len(coded) != len(texts):
            raise LangshiftError(
                f"{self._server.shown} answered {self._server.words(answer)!r}, which is not a list of indices and "
                f"values for each of {len(texts)} texts: check its address."
            )
        return coded

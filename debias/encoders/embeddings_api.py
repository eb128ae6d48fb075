"""``http:URL#MODEL``: a model on a server with OpenAI's ``/v1/embeddings``: vLLM, TEI, Ollama and others.

What is too long for the model is cut off or refused by the server, as it is set up; there is no
standard way to ask for either.

A learned sparse model is asked by text-embeddings-inference's ``/embed_sparse``:

================= ============================================ ===========================================
path              request                                      answer
================= ============================================ ===========================================
``/info``                                                      ``{"model_id", "model_sha", …}``
``/embed_sparse`` ``POST {"inputs": ["…"], "truncate": true}`` ``[[{"index": 1012, "value": 0.99}, …], …]``
================= ============================================ ===========================================

Tokens are called by their ``index``, their number in the model's vocabulary. What stands before texts is set up there.
"""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from multiprocessing.pool import ThreadPool
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from urllib3 import BaseHTTPResponse
from urllib3.util import Retry

from langshift import model_server
from langshift.debias.encoders.base import AS_KNOWN, Encoder, Matrix, Reading, have_norm_1
from langshift.debias.encoders.model_files import model_name
from langshift.debias.encoders.prompts import known_prefixes
from langshift.debias.encoders.sparse import SparseEncoder, TokenWeights, parse_weights
from langshift.errors import LangshiftError, UsageError
from langshift.files import batched_by_size
from langshift.model_server import CONNECTIONS, FIRST, PATIENT, TOO_MUCH, ModelServer, ServerKind
from langshift.wording import beginning

KEY = "LANGSHIFT_ENCODER_API_KEY"
EMBEDDINGS = "/v1/embeddings"
EMBEDDING_SERVER = ServerKind(
    "embedding server", KEY, EMBEDDINGS, "http:http://localhost:8080#BAAI/bge-m3", "every index", "encoder"
)
EMBED_SPARSE: Final = "/embed_sparse"
SPARSE_SERVER: Final = ServerKind(
    "sparse embedding server", KEY, EMBED_SPARSE, "http:http://localhost:8080#naver/splade-v3", "every index"
)
_MOST = 64
# Ollama's, which stands where none is given.
_TAG = ":latest"


def checked_info(found: object) -> dict[str, Any]:
    """What TEI says of the one model that it serves; empty where it is something else that was found."""
    return found if isinstance(found, dict) and isinstance(found.get("model_id"), str) else {}


def require_served(server: ModelServer, root: str, model: str, info: Mapping[str, Any]) -> None:
    """Refuse another model than the one that a server says it serves.

    Raises:
        UsageError: naming both.
    """
    if info and _own_name(model) != _own_name(info["model_id"]):
        raise UsageError(f"{server.shown} has the model {info['model_id']}, not {model}: write http:{root}#MODEL.")


def most_texts(info: Mapping[str, Any], usual: int = _MOST) -> int:
    """How many texts a server takes in a request, as far as it says so; no more than is usual."""
    most = info.get("max_client_batch_size")
    return min(most, usual) if isinstance(most, int) and most > 0 else usual


def _own_name(model: str) -> str:
    """Without an organisation or a folder."""
    return model.rstrip("/").rpartition("/")[2].lower()


def _revision(server: ModelServer, model: str, entry: Mapping[str, Any], info: Mapping[str, Any]) -> str:
    """Whatever says most of the weights: TEI's commit, Ollama's digest, what vLLM has loaded; else the name."""
    found = info.get("model_sha") or entry.get("root") or entry.get("digest")
    if not found and entry.get("owned_by") == "library":
        tags = model_server.entries(server.get("/api/tags"), "models")
        found = next((tag.get("digest") for tag in tags if tag.get("name") in (model, model + _TAG)), None)
    return str(found or model)


_PROBE = ["The weather is fine.", "a"]
# In one request: gateways take 1 MB by default.
_BYTES = 512 << 10


class _ServedModel:
    """A model that is asked for what it makes of texts.

    Attributes:
        too_long: what else a person can do about a text that the server does not take.
    """

    too_long: str
    _server: ModelServer

    def _ask(self, texts: Sequence[str], retry: Retry) -> BaseHTTPResponse:
        """The answer to one request, which is a good one, or that these are too many or too long texts."""
        raise NotImplementedError

    def _answers(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[str], BaseHTTPResponse]]:
        """One request's texts with the answer; in halves where the server does not take so much at once."""
        answer = self._ask(texts, PATIENT)
        if answer.status not in TOO_MUCH:
            yield texts, answer
        elif len(texts) > 1:
            half = len(texts) // 2
            yield from self._answers(texts[:half])
            yield from self._answers(texts[half:])
        else:
            raise LangshiftError(
                f"{self._server.shown} rejects the text of {len(texts[0]):,} characters that begins with "
                f"{beginning(texts[0])!r} ({self._server.why(answer)}): shorten it, or {self.too_long}."
            )


class HttpEncoder(_ServedModel, Encoder):
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

    too_long = "configure the server to truncate long texts (--auto-truncate in TEI)"

    def __init__(self, name: str, named_by: str = "", reading: Reading = AS_KNOWN) -> None:
        """Find the model, and encode two texts, to see what the vectors are like.

        Args:
            name: ``http:URL#MODEL``; see ``parse_address``.
            named_by: see ``open_encoder``.
            reading: how texts are to be read; a server leaves nothing but prefixes open.

        Raises:
            UsageError: the name is none, or leaves open which of several models is meant; or no person named it.
            LangshiftError: the server cannot be reached, refuses the key, has no such model, or fails.
        """
        allowed = ("query_prefix", "document_prefix")
        reading.require_only(allowed, name, "how its server pools and truncates is set up there")
        if named_by:
            model_server.require_trusted(name, EMBEDDING_SERVER, named_by)
        root, wanted = model_server.parse_address(name, EMBEDDING_SERVER)
        self._server = ModelServer(root, EMBEDDING_SERVER)
        known = known_prefixes({}, *self._find_model(root, wanted))
        self.id = f"http:{root}#{self._model}"
        self.query_prefix, self.document_prefix = reading.prefixes(known, self.id)
        answer = self._ask(_PROBE, FIRST)
        if answer.status in TOO_MUCH:
            raise LangshiftError(
                f"{self._server.shown} cannot create embeddings with the model {self._model!r} "
                f"({self._server.why(answer)}): name another model after the #."
            )
        probe = self._vectors(_PROBE, answer)
        self.dimension = probe.shape[1]
        self.normalised = have_norm_1(probe)

    def _find_model(self, root: str, wanted: str | None) -> tuple[str, str]:
        """Find a model on the server, or its only one, keep what the server says of it, and return its names."""
        server = self._server
        models = model_server.entries(server.get("/v1/models", needed=wanted is None), "data")
        listed = {entry["id"]: entry for entry in models if isinstance(entry.get("id"), str)}
        # TEI serves one model, and tells of it here.
        info = server.get("/info") if not any("root" in entry for entry in listed.values()) else None
        info = checked_info(info)
        self._names = names = list(listed) or [info["model_id"]] if listed or info else []
        self._model = model = server.chosen(wanted, names)
        require_served(server, root, model, info)
        entry = listed.get(model) or listed.get(model + _TAG, {})
        self.revision = _revision(server, model, entry, info)
        self._most = most_texts(info)
        # What stands behind a name that the server was told to show, then that name.
        return model_name(str(entry.get("root") or info.get("model_id") or model)), model

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
            return np.concatenate(list(workers.imap(self._embed, batches(texts, self._most))))

    def _embed(self, texts: Sequence[str]) -> Matrix:
        """The vectors of one request's texts."""
        return np.concatenate([self._like_before(self._vectors(*answered)) for answered in self._answers(texts)])

    def _like_before(self, vectors: Matrix) -> Matrix:
        if vectors.shape[1] != self.dimension:
            raise LangshiftError(
                f"{self._server.shown} returned vectors with {vectors.shape[1]} dimensions, but with "
                f"{self.dimension} before: its model has been replaced; start again."
            )
        return vectors

    def _ask(self, texts: Sequence[str], retry: Retry) -> BaseHTTPResponse:
        answer = self._server.ask(EMBEDDINGS, retry, {"model": self._model, "input": list(texts)})
        if answer.status == HTTPStatus.NOT_FOUND:
            others = ", ".join(self._names)
            raise LangshiftError(
                f"{self._server.shown} has no model {self._model!r} at {EMBEDDINGS} "
                f"({self._server.why(answer)}): check the address"
                f"{f', or name one of its models after the #: {others}' if others else ' and the model'}."
            )
        if answer.status != HTTPStatus.OK and answer.status not in TOO_MUCH:
            raise self._server.failed(answer)
        return answer

    def _vectors(self, texts: Sequence[str], answer: BaseHTTPResponse) -> Matrix:
        """The vectors in an answer, in the order of the texts, whatever its own order is."""
        shown = self._server.shown
        content = model_server.parse_json(answer.data)
        data = content.get("data") if isinstance(content, dict) else None
        if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
            message = self._server.words(answer)
            raise LangshiftError(f"{shown} answered {message!r}, which contains no embeddings: check its address.")
        if len(data) != len(texts):
            raise LangshiftError(
                f"{shown} returned {len(data)} vectors for {len(texts)} texts: it does not follow OpenAI's API."
            )
        found = {one["index"]: one.get("embedding") for one in data if isinstance(one.get("index"), int)}
        if found.keys() != set(range(len(texts))):
            raise LangshiftError(
                f"{shown} did not report which vector belongs to which text: it does not follow OpenAI's API."
            )
        vectors = [self._vector(text, found[row]) for row, text in enumerate(texts)]
        if len({len(vector) for vector in vectors}) > 1:
            raise LangshiftError(f"{shown} returned vectors of different lengths: see its log.")
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
                f"{self._server.shown} returned a vector with invalid numbers for the text that begins with "
                f"{beginning(text)!r}: run its model with 32-bit floats, or leave the text out."
            )
        return vector


class HttpSparse(_ServedModel, SparseEncoder):
    """A sparse model on a server; may be used from several threads.

    Attributes:
        id: ``http:``, the server's address, ``#`` and the model's name.
        revision: the commit that the server says its model is of, else the model's name.
    """

    too_long = "leave it out"

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
            model_server.require_trusted(name, SPARSE_SERVER, named_by)
        root, wanted = model_server.parse_address(name, SPARSE_SERVER)
        self._server = server = ModelServer(root, SPARSE_SERVER)
        info = checked_info(server.get("/info", needed=wanted is None))
        model = server.chosen(wanted, [info["model_id"]] if info else [])
        require_served(server, root, model, info)
        self.id, self.revision = f"http:{root}#{model}", str(info.get("model_sha") or model)
        self._most = most_texts(info)
        self._weights(["a"], self._ask(["a"], FIRST))

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
        """The weights of one request's texts."""
        return [weights for answered in self._answers(texts) for weights in self._weights(*answered)]

    def _ask(self, texts: Sequence[str], retry: Retry) -> BaseHTTPResponse:
        server = self._server
        answer = server.ask(EMBED_SPARSE, retry, {"inputs": list(texts), "truncate": True})
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FAILED_DEPENDENCY):
            raise LangshiftError(
                f"{server.shown} makes no weights of tokens at {EMBED_SPARSE} ({server.why(answer)}): check the "
                "address, and that it runs a sparse model (--pooling splade in TEI)."
            )
        if answer.status != HTTPStatus.OK and (retry is FIRST or answer.status not in TOO_MUCH):
            raise server.failed(answer)
        return answer

    def _weights(self, texts: Sequence[str], answer: BaseHTTPResponse) -> list[TokenWeights]:
        """The weights in an answer, which are in the order of the texts."""
        content = model_server.parse_json(answer.data)
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


def batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """Texts in groups of at most ``most``, and of no more bytes than a request may have, in order."""
    return batched_by_size(texts, _BYTES, lambda text: len(text.encode()), most)

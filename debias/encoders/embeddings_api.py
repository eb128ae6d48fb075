"""``http:URL#MODEL``: a model on a server with OpenAI's ``/v1/embeddings``: vLLM, TEI, Ollama and others.

What is too long for the model is cut off or refused by the server, as it is set up; there is no
standard way to ask for either.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from urllib3 import BaseHTTPResponse, PoolManager, exceptions
from urllib3.util import Retry, Timeout, parse_url

from langshift.debias.encoders import Encoder, Matrix, have_norm_1
from langshift.debias.encoders.sentence_transformers import full_name, prefixes
from langshift.errors import LangshiftError, UsageError

KEY = "LANGSHIFT_ENCODER_API_KEY"
CONNECTIONS = 4
_SECONDS = 120
_LONGEST_WAIT = 30.0
_SHOWN = 200


class _Retry(Retry):
    """Waits as long as the server asks for, but no longer than a person would without looking what is wrong."""

    def parse_retry_after(self, retry_after: str) -> float:
        """The seconds that the header asks for."""
        try:
            return min(super().parse_retry_after(retry_after), _LONGEST_WAIT)
        except exceptions.InvalidHeader:
            return 0.0


# The first tries follow quickly; a server that starts again has some 15 seconds, one that says when to come more.
PATIENT = _Retry(
    total=8,
    read=3,
    other=0,
    redirect=0,
    allowed_methods=None,
    status_forcelist=(429, 500, 502, 503, 504),
    backoff_factor=0.05,
    backoff_jitter=0.1,
    backoff_max=10,
    raise_on_status=False,
)
# A wrong address must not be tried again and again before it is said to be wrong.
FIRST = PATIENT.new(total=3, connect=0)


class EmbeddingServer:
    """A server at one address; its methods may be called from several threads."""

    def __init__(self, root: str) -> None:
        """Nothing is sent yet.

        Args:
            root: the address, such as ``http://localhost:8080``.

        Raises:
            UsageError: the environment holds a key that cannot be sent.
        """
        self.shown = f"The embedding server at {root}"
        self._root = root
        self._key = os.environ.get(KEY, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(
                f"{KEY} contains characters that are not allowed in a key: set it to the key only, on one line."
            )
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        timeout = Timeout(connect=10, read=_SECONDS)
        self._pool = PoolManager(num_pools=1, maxsize=CONNECTIONS, headers=headers, timeout=timeout)
        # Standard error is for the person who runs langshift, who hears of what did not work in the end.
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)

    def get(self, path: str, *, needed: bool = False) -> Any:  # noqa: ANN401 - any JSON value
        """The JSON value at a path; None where the server has nothing there.

        Args:
            path: the path.
            needed: whether it is an error that the key does not open it; many keys open the embeddings alone.

        Raises:
            LangshiftError: the server cannot be reached, or fails.
        """
        answer = self.ask(path, FIRST, needed=needed)
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise self.failed(answer)
        return parse_json(answer.data) if answer.status == HTTPStatus.OK else None

    def ask(self, path: str, retry: Retry, content: object = None, *, needed: bool = True) -> BaseHTTPResponse:
        """Send a request.

        Args:
            path: the path.
            retry: how often it is sent again.
            content: the JSON value to post; None to get what is there.
            needed: whether it is an error that the key does not open the path.

        Raises:
            LangshiftError: the server cannot be reached, or refuses the key.
        """
        method = "GET" if content is None else "POST"
        try:
            answer = self._pool.request(method, self._root + path, json=content, retries=retry, redirect=False)
        except exceptions.HTTPError as error:
            raise LangshiftError(f"{self.shown} {_trouble(error)}") from error
        if needed and answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            does = f"rejects the key in {KEY}" if self._key else "requires a key"
            remedy = "check that the key is correct and allows this" if self._key else f"set {KEY}"
            raise LangshiftError(f"{self.shown} {does} ({self.why(answer)}): {remedy}.")
        return answer

    def failed(self, answer: BaseHTTPResponse) -> LangshiftError:
        """An answer that is no success, in a sentence."""
        remedy = "check its address"
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            remedy = "it is too busy, or your quota is used up; try again later"
        elif answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            remedy = "see its log"
        return LangshiftError(f"{self.shown} failed ({self.why(answer)}): {remedy}.")

    def why(self, answer: BaseHTTPResponse) -> str:
        """The status of an answer and the server's own words."""
        return f"{answer.status}: {self.words(answer)}"

    def words(self, answer: BaseHTTPResponse) -> str:
        """The server's own words, or the beginning of them, without line breaks and without the key."""
        content = parse_json(answer.data)
        for name in ("error", "message", "detail"):
            if isinstance(content, dict) and content.get(name):
                content = content[name]
        text = content if isinstance(content, str) else answer.data.decode(errors="replace")
        text = " ".join(text.split()).rstrip(".")
        if answer.status != HTTPStatus.OK and (not text or text.startswith("<")):
            # A gateway answers with a page of HTML.
            text = next((one.phrase for one in HTTPStatus if one == answer.status), "no reason given")
        if self._key:
            text = text.replace(self._key, "***")
        return text[:_SHOWN]


def _trouble(error: exceptions.HTTPError) -> str:
    """The end of a sentence about a request that got no answer."""
    cause = error.reason if isinstance(error, exceptions.MaxRetryError) else error
    if isinstance(cause, exceptions.SSLError):
        if "CERTIFICATE_VERIFY_FAILED" not in str(cause):
            return "does not use TLS: check whether its address should begin with http://."
        return (
            "presents a certificate that cannot be verified: check the address, or set SSL_CERT_FILE to the "
            "certificate of its authority."
        )
    if isinstance(cause, exceptions.ReadTimeoutError):
        return f"did not answer within {_SECONDS} seconds: check whether it is overloaded."
    if isinstance(cause, exceptions.NewConnectionError | exceptions.ConnectTimeoutError):
        return "cannot be reached: check that it is running and that this is its address."
    return "interrupted the connection: see its log."


def parse_json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value; None where there is none."""
    # Python's own writes and reads NaN, which is no JSON.
    for loads in (orjson.loads, json.loads):
        with suppress(ValueError):
            return loads(body)
    return None


EMBEDDINGS = "/v1/embeddings"
_PORTS = {"http": 80, "https": 443}
_EXAMPLE = "such as http:http://localhost:8080#BAAI/bge-m3"


def parse_address(name: str) -> tuple[str, str | None]:
    """The address in an encoder's name: ``http:https://host/v1#MODEL``, ``https://host#MODEL`` and the like.

    However it is written, the same model of the same server gives the same address.

    Returns:
        The server's address without ``/v1/embeddings``, such as ``http://localhost:8080``, and the model's name; None
        to take the only one that the server has.

    Raises:
        UsageError: there is no address in it, or it holds what does not belong there.
    """
    written, _, model = name.partition("#")
    if not written.startswith(("http://", "https://")):
        written = written.partition(":")[2]
    if "@" in written or "?" in written:
        # Not shown: this may be a secret.
        raise UsageError(
            "The address of an embedding server is stored with every index and must not contain a password or a query "
            f"string: set {KEY} to the key, and write http:URL#MODEL, {_EXAMPLE}."
        )
    try:
        url = parse_url(written)
    except exceptions.LocationParseError:
        url = None
    if url is None or url.scheme not in _PORTS or not url.host:
        raise UsageError(f"{name!r} is not the address of an embedding server: write http:URL#MODEL, {_EXAMPLE}.")
    port = f":{url.port}" if url.port and url.port != _PORTS[url.scheme] else ""
    path = (url.path or "").rstrip("/")
    path = path.removesuffix("/embeddings") if path.endswith(EMBEDDINGS) else path
    return f"{url.scheme}://{url.host}{port}{path.removesuffix('/v1')}", model or None


_MOST = 64
# Ollama's, which stands where none is given.
_TAG = ":latest"


def _own_name(model: str) -> str:
    """Without an organisation or a folder."""
    return model.rstrip("/").rpartition("/")[2].lower()


def _revision(server: EmbeddingServer, model: str, entry: Mapping[str, Any], info: Mapping[str, Any]) -> str:
    """Whatever says most of the weights: TEI's commit, Ollama's digest, what vLLM has loaded; else the name."""
    found = info.get("model_sha") or entry.get("root") or entry.get("digest")
    if not found and entry.get("owned_by") == "library":
        tags = _entries(server.get("/api/tags"), "models")
        found = next((tag.get("digest") for tag in tags if tag.get("name") in (model, model + _TAG)), None)
    return str(found or model)


def _entries(answer: Any, name: str) -> list[dict[str, Any]]:  # noqa: ANN401 - any JSON value
    """The objects in a list of an answer; none where it is not as it should be."""
    entries = answer.get(name) if isinstance(answer, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


_PROBE = ["The weather is fine.", "a"]
# In one request: gateways take 1 MB by default.
_BYTES = 512 << 10
# How servers refuse texts that are too long, or too many at once.
_TOO_MUCH = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_BEGINNING = 40


class HttpEncoder(Encoder):
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

    def __init__(self, name: str) -> None:
        """Find the model, and encode two texts, to see what the vectors are like.

        Args:
            name: ``http:URL#MODEL``; see ``parse_address``.

        Raises:
            UsageError: the name is none, or leaves open which of several models is meant.
            LangshiftError: the server cannot be reached, refuses the key, has no such model, or fails.
        """
        root, wanted = parse_address(name)
        self._server = EmbeddingServer(root)
        self._find_model(root, wanted)
        self.id = f"http:{root}#{self._model}"
        answer = self._ask(_PROBE, FIRST)
        if answer.status in _TOO_MUCH:
            raise LangshiftError(
                f"{self._server.shown} cannot create embeddings with the model {self._model!r} "
                f"({self._server.why(answer)}): name another model after the #."
            )
        probe = self._vectors(_PROBE, answer)
        self.dimension = probe.shape[1]
        self.normalised = have_norm_1(probe)

    def _find_model(self, root: str, wanted: str | None) -> None:
        """Find a model on the server, or its only one, and keep what the server says of it."""
        server = self._server
        models = _entries(server.get("/v1/models", needed=wanted is None), "data")
        listed = {entry["id"]: entry for entry in models if isinstance(entry.get("id"), str)}
        # TEI serves one model, and tells of it here.
        info = server.get("/info") if not any("root" in entry for entry in listed.values()) else None
        info = info if isinstance(info, dict) and isinstance(info.get("model_id"), str) else {}
        self._names = names = list(listed) or [info["model_id"]] if listed or info else []
        if wanted is None and len(names) != 1:
            available = f"it has {', '.join(names)}" if names else "it does not list its models"
            raise UsageError(f"{server.shown} needs the name of a model; {available}: write http:{root}#MODEL.")
        self._model = model = wanted or names[0]
        if info and _own_name(model) != _own_name(info["model_id"]):
            raise UsageError(f"{server.shown} has the model {info['model_id']}, not {model}: write http:{root}#MODEL.")
        entry = listed.get(model) or listed.get(model + _TAG, {})
        self.revision = _revision(server, model, entry, info)
        # What stands behind a name that the server was told to show.
        own = str(entry.get("root") or info.get("model_id") or model)
        self.query_prefix, self.document_prefix = prefixes(full_name(own.removesuffix(_TAG).replace(":", "-")), {}, "")
        most = info.get("max_client_batch_size")
        # How many texts the server takes in a request.
        self._most = min(most, _MOST) if isinstance(most, int) and most > 0 else _MOST

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
        """The vectors of one request's texts; in halves where the server does not take so much at once."""
        answer = self._ask(texts, PATIENT)
        if answer.status not in _TOO_MUCH:
            vectors = self._vectors(texts, answer)
            if vectors.shape[1] != self.dimension:
                raise LangshiftError(
                    f"{self._server.shown} returned vectors with {vectors.shape[1]} dimensions, but with "
                    f"{self.dimension} before: its model has been replaced; start again."
                )
            return vectors
        if len(texts) > 1:
            half = len(texts) // 2
            return np.concatenate([self._embed(texts[:half]), self._embed(texts[half:])])
        raise LangshiftError(
            f"{self._server.shown} rejects the text of {len(texts[0]):,} characters that begins with "
            f"{_beginning(texts[0])} ({self._server.why(answer)}): shorten it, or configure the server to truncate "
            "long texts (--auto-truncate in TEI)."
        )

    def _ask(self, texts: Sequence[str], retry: Retry) -> BaseHTTPResponse:
        answer = self._server.ask(EMBEDDINGS, retry, {"model": self._model, "input": list(texts)})
        if answer.status == HTTPStatus.NOT_FOUND:
            others = ", ".join(self._names)
            raise LangshiftError(
                f"{self._server.shown} has no model {self._model!r} at {EMBEDDINGS} "
                f"({self._server.why(answer)}): check the address"
                f"{f', or name one of its models after the #: {others}' if others else ' and the model'}."
            )
        if answer.status != HTTPStatus.OK and answer.status not in _TOO_MUCH:
            raise self._server.failed(answer)
        return answer

    def _vectors(self, texts: Sequence[str], answer: BaseHTTPResponse) -> Matrix:
        """The vectors in an answer, in the order of the texts, whatever its own order is."""
        shown = self._server.shown
        content = parse_json(answer.data)
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
                f"{_beginning(text)}: run its model with 32-bit floats, or leave the text out."
            )
        return vector


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

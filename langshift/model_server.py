"""A model behind an HTTP interface, be it for embeddings, reranking or text: its address, its key, and asking it."""

import json
import logging
import os
import re
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any, NamedTuple

import orjson
from urllib3 import BaseHTTPResponse, PoolManager, exceptions
from urllib3.util import Retry, Timeout, Url, parse_url

from langshift.errors import LangshiftError, UsageError
from langshift.reporting import note
from langshift.settings import on_this_machine
from langshift.wording import escaped


class ServerKind(NamedTuple):
    """What a server is for.

    Attributes:
        name: such as ``embedding server``.
        key: the environment variable with the key.
        path: where it is asked, such as ``/v1/embeddings``; an address may be written with it.
        example: how a model on such a server is named.
        stored_with: what its address is stored with.
        option: by which a person names a model on such a server for a search; empty where only an index does.
    """

    name: str
    key: str
    path: str
    example: str
    stored_with: str
    option: str = ""


CONNECTIONS = 4
#: How servers refuse texts that are too long, or too many at once.
TOO_MUCH = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
# What an answer may take from its first byte on, however slowly it comes: the vectors of a request are 3 MB at most.
_SECONDS = 120
_MOST_BYTES = 16 << 20
_LONGEST_WAIT = 30.0
# Seconds of which nobody need be told.
_QUIET = 5.0
_SHOWN = 200


class _Retry(Retry):
    """Waits as long as the server asks for, but no longer than a person would without looking what is wrong."""

    def parse_retry_after(self, retry_after: str) -> float:
        """The seconds that the header asks for."""
        try:
            return min(super().parse_retry_after(retry_after), _LONGEST_WAIT)
        except exceptions.InvalidHeader:
            return 0.0

    def sleep_for_retry(self, response: BaseHTTPResponse) -> bool:
        """Wait as long as the server asks for, and tell a person of it where that is long."""
        seconds = self.get_retry_after(response) or 0.0
        if seconds > _QUIET:
            until = datetime.now().astimezone() + timedelta(seconds=seconds)
            note(f"Waiting for the model's server, which answered {response.status}, until {until:%H:%M:%S}.")
        return super().sleep_for_retry(response)


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


class _LimitError(Exception):
    """An answer has too many bytes, or takes too long: not urllib3's, which would ask again."""


class _LimitedStream(RawIOBase):
    """What a socket receives, up to so many bytes and seconds in all."""

    def __init__(self, sock: socket) -> None:
        self._socket, self._inner = sock, sock.makefile("rb", 0)
        self._until, self._left = time.monotonic() + _SECONDS, _MOST_BYTES

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - whatever takes bytes
        """As ``RawIOBase`` has it."""
        try:
            # Of each read alone: a server that sends a byte a second would never be too slow.
            self._socket.settimeout(max(self._until - time.monotonic(), 0.001))
            count = self._inner.readinto(buffer) or 0
            self._socket.settimeout(_SECONDS)
        except TimeoutError:
            raise _LimitError(f"did not answer within {_SECONDS} seconds: check whether it is overloaded.") from None
        self._left -= count
        if self._left < 0:
            raise _LimitError(f"sent more than {_MOST_BYTES >> 20} MiB in one answer: check its address.")
        return count

    def close(self) -> None:
        """As ``RawIOBase`` has it."""
        self._inner.close()
        super().close()


class _LimitedReader(BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        """As ``BufferedReader`` has it, with no room for what an answer only promises."""
        return super().read(size if size is None else min(size, _MOST_BYTES + 1))


class _LimitedResponse(HTTPResponse):
    """An answer whose head, body and trailers count, be they read or thrown away."""

    def __init__(self, sock: socket, *given: Any, **named: Any) -> None:  # noqa: ANN401 - the library's
        super().__init__(sock, *given, **named)
        self.fp.close()
        self.fp = _LimitedReader(_LimitedStream(sock))


class ModelServer:
    """A server at one address; its methods may be called from several threads."""

    def __init__(self, root: str, kind: ServerKind) -> None:
        """Nothing is sent yet.

        Args:
            root: the address, such as ``http://localhost:8080``.
            kind: what it is for.

        Raises:
            UsageError: the environment holds a key that cannot be sent.
        """
        self.shown = f"The {kind.name} at {root}"
        self._kind = kind
        self._root = root
        self._key = os.environ.get(kind.key, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(
                f"{kind.key} contains characters that are not allowed in a key: set it to the key only, on one line."
            )
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        timeout = Timeout(connect=10, read=_SECONDS)
        self._pool = PoolManager(num_pools=1, maxsize=CONNECTIONS, headers=headers, timeout=timeout)
        pool = self._pool.connection_from_url(root)
        pool.ConnectionCls = type("Limited", (pool.ConnectionCls,), {"response_class": _LimitedResponse})
        # Standard error is for the person who runs langshift, who hears of what did not work in the end.
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)

    def get(self, path: str, *, needed: bool = False) -> Any:  # noqa: ANN401 - any JSON value
        """The JSON value at a path; None where the server has nothing there.

        Args:
            path: the path.
            needed: whether it is an error that the key does not open it; many keys open one path alone.

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
            # What is packed is not asked for, and could be a thousand times as long.
            answer = self._pool.request(
                method, self._root + path, json=content, retries=retry, redirect=False, decode_content=False
            )
        except _LimitError as error:
            raise LangshiftError(f"{self.shown} {error}") from None
        except exceptions.HTTPError as error:
            raise LangshiftError(f"{self.shown} {_trouble(error)}") from error
        if needed and answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            does = f"rejects the key in {self._kind.key}" if self._key else "requires a key"
            remedy = "check that the key is correct and allows this" if self._key else f"set {self._kind.key}"
            raise LangshiftError(f"{self.shown} {does} ({self.why(answer)}): {remedy}.")
        return answer

    def chosen(self, wanted: str | None, names: Sequence[str]) -> str:
        """The model to ask for: the one that is wanted, else the only one of those that the server lists.

        Raises:
            UsageError: it lists several, or none.
        """
        if wanted is not None:
            return wanted
        if len(names) == 1:
            return names[0]
        available = f"it has {', '.join(names)}" if names else "it does not list its models"
        raise UsageError(f"{self.shown} needs the name of a model; {available}: write http:{self._root}#MODEL.")

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
    if isinstance(cause, exceptions.NewConnectionError | exceptions.ConnectTimeoutError):
        return "cannot be reached: check that it is running and that this is its address."
    return "interrupted the connection: see its log."


def parse_json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value; None where there is none."""
    # Python's own writes and reads NaN, which is no JSON.
    for loads in (orjson.loads, json.loads):
        with suppress(ValueError, RecursionError):
            return loads(body)
    return None


def entries(answer: Any, name: str) -> list[dict[str, Any]]:  # noqa: ANN401 - any JSON value
    """The objects in a list of an answer; none where it is not as it should be."""
    found = answer.get(name) if isinstance(answer, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


_PORTS = {"http": 80, "https": 443}


def parse_address(name: str, kind: ServerKind) -> tuple[str, str | None]:
    """The address in a model's name: ``http:https://host/v1#MODEL``, ``https://host#MODEL`` and the like.

    However it is written, the same model of the same server gives the same address.

    Args:
        name: as it was given.
        kind: what the server is for.

    Returns:
        The server's address without the path, such as ``http://localhost:8080``, and the model's name; None
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
            f"The address of {_a(kind.name)} is stored with {kind.stored_with} and must not contain a password or a "
            f"query string: set {kind.key} to the key, and write http:URL#MODEL, such as {kind.example}."
        )
    try:
        url = parse_url(written)
    except exceptions.LocationParseError:
        url = None
    if url is None or url.scheme not in _PORTS or not url.host:
        raise UsageError(
            f"{name!r} is not the address of {_a(kind.name)}: write http:URL#MODEL, such as {kind.example}."
        )
    port = f":{url.port}" if url.port and url.port != _PORTS[url.scheme] else ""
    path = (url.path or "").rstrip("/")
    path = path.removesuffix(kind.path.removeprefix("/v1")) if path.endswith(kind.path) else path
    return f"{url.scheme}://{url.host}{port}{path.removesuffix('/v1')}", model or None


TRUSTED_HOSTS = "LANGSHIFT_TRUSTED_HOSTS"
_HOST = re.compile(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]")


def trusted_origins() -> frozenset[str]:
    """The servers of LANGSHIFT_TRUSTED_HOSTS: scheme, host and port of each, such as ``https://example.com:443``.

    An entry without a port stands for the usual one of its scheme. One without a scheme stands for ``https``, as what
    is sent over ``http`` can be read on the way; of this machine it stands for both.

    Raises:
        UsageError: an entry is no host.
    """
    entries = (entry.strip() for entry in os.environ.get(TRUSTED_HOSTS, "").split(","))
    return frozenset(origin for entry in entries if entry for origin in _origins(entry))


def _origins(entry: str) -> list[str]:
    with_scheme = "://" in entry
    try:
        url = parse_url(entry if with_scheme else f"https://{entry}")
    except exceptions.LocationParseError:
        url = Url()
    only_host = (url.auth, url.query, url.fragment) == (None, None, None) and url.path in (None, "/") and url.port != 0
    if url.scheme not in _PORTS or not only_host or not _HOST.fullmatch(url.host or ""):
        # What stands before an @ may be a secret.
        shown = "an address with an @" if "@" in entry else repr(entry)
        raise UsageError(
            f"{TRUSTED_HOSTS} contains {shown}, which is not a host: write hosts separated by commas, such as "
            "models.example.com, models.example.com:8443, http://10.0.0.5:8080 or localhost:8080."
        )
    schemes = _PORTS if not with_scheme and on_this_machine(url.host or "") else (url.scheme,)
    return [_origin(url._replace(scheme=scheme)) for scheme in schemes]


def _origin(url: Url) -> str:
    return f"{url.scheme}://{url.host}:{url.port or _PORTS[url.scheme or '']}"


def require_trusted(name: str, kind: ServerKind, named_by: str) -> None:
    """Refuse a server that no person has named, before anything is sent to it.

    Args:
        name: the model's, with the server's address; see ``parse_address``.
        kind: what the server is for.
        named_by: what names it, as a sentence begins with it: ``The index news``.

    Raises:
        UsageError: LANGSHIFT_TRUSTED_HOSTS does not name it, or holds what is no host; or the name holds no address.
    """
    url = parse_url(parse_address(name, kind)[0])
    if _origin(url) in trusted_origins():
        return
    entry = escaped(f"{url.scheme}://{url.netloc}")
    given = f"give --{kind.option} {shlex.quote(escaped(name))} ({kind.option}= in Python), or " if kind.option else ""
    raise UsageError(
        f"{named_by} names {_a(kind.name)} at {entry}, but you have not, so nothing was sent there: if you trust it, "
        f"{given}add {entry} to {TRUSTED_HOSTS}."
    )


def _a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"

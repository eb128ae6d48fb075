"""Asking a server over HTTP: connections, tries, the key; and in one sentence why it did not work."""

from __future__ import annotations

import json
import logging
import os
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from urllib3 import PoolManager
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InvalidHeader,
    MaxRetryError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.util import Retry, Timeout

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
        except InvalidHeader:
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


class Answer(NamedTuple):
    """What a server answers.

    Attributes:
        status: the HTTP status.
        content: the JSON value; None where it is no JSON.
        body: as it was sent.
    """

    status: int
    content: Any
    body: bytes


class Server:
    """A server at one address; its methods may be called from several threads."""

    def __init__(self, root: str) -> None:
        """Nothing is sent yet.

        Args:
            root: the address, such as ``http://localhost:8080``.

        Raises:
            UsageError: the environment holds a key that cannot be sent.
        """
        self.shown = f"The server of embeddings at {root}"
        self._root = root
        self._key = os.environ.get(KEY, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(f"{KEY} holds characters that no key has: set it to the key alone, in one line.")
        authorization = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._pool = PoolManager(
            num_pools=1,
            maxsize=CONNECTIONS,
            headers={"Accept": "application/json", **authorization},
            timeout=Timeout(connect=10, read=_SECONDS),
        )
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
        answer = self._ask("GET", path, None, FIRST)
        if needed:
            self._require_allowed(answer)
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise self.failed(answer)
        return answer.content if answer.status == HTTPStatus.OK else None

    def post(self, path: str, content: Any, retry: Retry = PATIENT) -> Answer:  # noqa: ANN401 - any JSON value
        """Send a JSON value.

        Raises:
            LangshiftError: it cannot be reached, or refuses the key.
        """
        answer = self._ask("POST", path, orjson.dumps(content), retry)
        self._require_allowed(answer)
        return answer

    def _ask(self, method: str, path: str, body: bytes | None, retry: Retry) -> Answer:
        headers = dict(self._pool.headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._pool.request(
                method, self._root + path, body=body, headers=headers, retries=retry, redirect=False
            )
        except HTTPError as error:
            raise LangshiftError(f"{self.shown} {self._trouble(error)}") from error
        return Answer(response.status, _json(response.data), response.data)

    def _require_allowed(self, answer: Answer) -> None:
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            does = f"refuses the key in {KEY}" if self._key else "asks for a key"
            remedy = "check that the key is right and may be used for this" if self._key else f"set {KEY}"
            raise LangshiftError(f"{self.shown} {does} ({self.why(answer)}): {remedy}.")

    def failed(self, answer: Answer) -> LangshiftError:
        """An answer that is no success, in a sentence."""
        remedy = "check its address"
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            remedy = "it is too busy, or what you may ask of it is used up; try again later"
        elif answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            remedy = "its log says why"
        return LangshiftError(f"{self.shown} fails ({self.why(answer)}): {remedy}.")

    def _trouble(self, error: HTTPError) -> str:
        """The end of a sentence about a request that got no answer."""
        cause = error.reason if isinstance(error, MaxRetryError) else error
        if isinstance(cause, SSLError):
            if "CERTIFICATE_VERIFY_FAILED" not in str(cause):
                return "does not answer with TLS: check whether its address should begin with http://."
            return (
                "shows a certificate that cannot be verified: check the address, or name the file of its authority "
                "in SSL_CERT_FILE."
            )
        if isinstance(cause, ReadTimeoutError):
            return f"did not answer within {_SECONDS} seconds: see whether it is overloaded."
        if isinstance(cause, NewConnectionError | ConnectTimeoutError):
            return "cannot be reached: check that it runs and that this is its address."
        return "breaks off the connection: its log says why."

    def why(self, answer: Answer) -> str:
        """The status of an answer and the server's own words."""
        return f"{answer.status}: {self.words(answer)}"

    def words(self, answer: Answer) -> str:
        """The server's own words, or the beginning of them, without line breaks and without the key."""
        told = answer.content
        for name in ("error", "message", "detail"):
            if isinstance(told, dict) and told.get(name):
                told = told[name]
        text = told if isinstance(told, str) else answer.body.decode(errors="replace")
        text = " ".join(text.split()).rstrip(".")
        if answer.status != HTTPStatus.OK and (not text or text.startswith("<")):
            # A gateway answers with a page of HTML.
            text = next((one.phrase for one in HTTPStatus if one == answer.status), "no reason given")
        if self._key:
            text = text.replace(self._key, "***")
        return text[:_SHOWN]


def _json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value; None where there is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        # Python's own writes and reads NaN, which is no JSON.
        return json.loads(body)
    except ValueError:
        return None

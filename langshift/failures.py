"""What the client library says of a failed request, as one sentence for a person."""

from __future__ import annotations

import os
from collections.abc import Mapping
from http import HTTPStatus

from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    ConnectionTimeout,
    OpenSearchException,
    SSLError,
    TransportError,
)
from opensearchpy.exceptions import ConnectionError as UnreachableError
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from langshift.errors import ClusterError, UnavailableError
from langshift.hidden import hide
from langshift.permissions import lacking
from langshift.signing import of_credentials, refusal, unusable

# A 403 that is no matter of permissions: the index, or the whole cluster, takes no writes.
_BLOCKED = "cluster_block_exception"
_CLOSED = "index_closed_exception"
# Too much at once, a gateway whose cluster is away, a cluster that is still starting.
_FOR_NOW = (429, 502, 503, 504)


def failure(error: OpenSearchException, url: str | None = None, *, anonymous: bool = False) -> ClusterError:
    """What the client library says of a failed request, as one sentence for a person.

    Args:
        error: the client library's exception.
        url: address of the cluster, without credentials.
        anonymous: no user name was sent.
    """
    place = _place(url)
    if isinstance(error, AuthenticationException | AuthorizationException) and error.error != _BLOCKED:
        return ClusterError(f"{place} {_not_let_in(error, anonymous=anonymous)}")
    if isinstance(error, SSLError):
        return ClusterError(f"{place} {_tls_trouble(str(error.info))}")
    if isinstance(error, ConnectionTimeout) or _no_connection_in_time(error):
        return UnavailableError(
            f"{place} did not answer in time: check the address and the cluster's load, "
            "or raise OPENSEARCH_TIMEOUT (seconds)."
        )
    if isinstance(error, UnreachableError) and of_credentials(error.info):
        return ClusterError(unusable(error.info))
    if isinstance(error, UnreachableError):
        if not os.environ.get("OPENSEARCH_URL"):
            return UnavailableError(
                "The embedded OpenSearch cannot be reached any more: `langshift status` says why, "
                "`langshift up` starts it again."
            )
        return UnavailableError(
            f"{place} cannot be reached: check that it runs and that OPENSEARCH_URL is its address "
            "(http or https, host, port)."
        )
    if isinstance(error, TransportError):
        kind = UnavailableError if error.status_code in _FOR_NOW else ClusterError
        return kind(f"{place} answered {error.status_code}: {reason(error)}.")
    return ClusterError(f"{place} gave an answer that cannot be read: {' '.join(str(error).split())[:200]}.")


def not_permitted(words: str, url: str | None = None) -> ClusterError | None:
    """The error for a part of a request, such as one document of many, that this user may not ask for.

    Args:
        words: the reason of the part's error.
        url: address of the cluster, without credentials.

    Returns:
        None where the reason is another.
    """
    missing = lacking(words)
    return ClusterError(f"{_place(url)} {missing}") if missing else None


def lacks_permission(error: AuthorizationException) -> bool:
    """Whether the security plugin refuses a request for a permission that the user lacks; nothing else does."""
    return lacking(_words(error)) is not None


def _place(url: str | None) -> str:
    return f"The cluster at {url}" if url else "The cluster"


def _not_let_in(error: AuthenticationException | AuthorizationException, *, anonymous: bool) -> str:
    """The end of a sentence about a request that is not allowed, or whose sender is not known."""
    if end := refusal(error):
        return end
    if isinstance(error, AuthorizationException):
        missing = lacking(_words(error))
        return str(missing) if missing else f"does not let this user do that: {reason(error)}."
    if os.environ.get("OPENSEARCH_AWS_REGION"):
        return f"refuses the signed request: {reason(error)}."
    what = "asks for a user name and password" if anonymous else "refuses the user name or password"
    return f"{what}: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD."


def _no_connection_in_time(error: OpenSearchException) -> bool:
    """Whether the host was silent; urllib3 makes a refused connection a kind of this."""
    cause = error.info if isinstance(error, UnreachableError) else None
    return isinstance(cause, ConnectTimeoutError) and not isinstance(cause, NewConnectionError)


def _tls_trouble(detail: str) -> str:
    """The end of a sentence about a TLS connection that failed for ``detail``, OpenSSL's words."""
    off = "switch verification off with OPENSEARCH_SSL_VERIFY=false."
    if "CERTIFICATE_VERIFY_FAILED" not in detail:
        return "does not answer with TLS: check whether OPENSEARCH_URL should begin with http://."
    if "mismatch" in detail:
        return f"shows a certificate made out to another name: use that name in OPENSEARCH_URL, or {off}"
    if "expired" in detail:
        return f"shows a certificate that has expired: renew it on the cluster, or {off}"
    return f"shows a certificate that cannot be verified: name its authority with OPENSEARCH_CA_FILE, or {off}"


def reason(error: TransportError) -> str:
    """The server's own words for why a request failed."""
    if isinstance(error.info, dict) and (told := closed(error.info.get("error"))):
        return told
    text = _words(error).rstrip(".;")
    if not text.startswith("<"):
        return text[:300]
    # A gateway answers with a page of HTML.
    return next((s.phrase for s in HTTPStatus if s == error.status_code), "a page of HTML")


def closed(cause: object) -> str | None:
    """What the server refuses because an index is closed; its word alone, "closed", does not say which; else None."""
    if not isinstance(cause, Mapping) or cause.get("type") != _CLOSED or "index" not in cause:
        return None
    return f"{cause['index']} is closed; open it with `POST /{cause['index']}/_open`"


def _words(error: TransportError) -> str:
    """All of the server's words, on one line and without a password that they repeat."""
    info = error.info
    cause = info.get("error", info) if isinstance(info, dict) else info
    if isinstance(cause, dict):
        roots = cause.get("root_cause") or [cause]
        said = cause.get("message") or cause.get("Message")  # of a gateway of AWS
        cause = cause.get("reason") or roots[0].get("reason") or cause.get("type") or said
        nested = roots[0].get("reason")
        if nested and nested != cause:
            cause = f"{cause}: {nested}"
    return hide(" ".join(str(cause or error.error).split()))

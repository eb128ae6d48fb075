"""What a failed request means: send again, send less at once, or give up."""

from __future__ import annotations

from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    ConnectionTimeout,
    OpenSearchException,
    RequestError,
    SerializationError,
    SSLError,
    TransportError,
)
from opensearchpy.exceptions import ConnectionError as UnreachableError
from urllib3.exceptions import NewConnectionError

from langshift.errors import ClusterError
from langshift.failures import failure, reason
from langshift.signing import of_credentials

TOO_LARGE, FAILED = 413, 500


class Unreadable(ClusterError):
    """A part of an index does not answer."""


class Again(Exception):
    """Something of a chunk is to be sent again; the message says why.

    Attributes:
        lost: whether the request may have reached the server, and its answer did not come back.
        overloaded: whether the cluster had too much to do.
        failed: whether the server met an error of its own, perhaps over what one of the documents holds.
    """

    def __init__(self, why: str, *, lost: bool = False, overloaded: bool = False, failed: bool = False) -> None:
        super().__init__(why)
        self.lost, self.overloaded, self.failed = lost, overloaded, failed


class Refused(Exception):
    """The whole request is refused, for what one of its documents holds or for its size; the message says why.

    Attributes:
        too_large: whether for its size.
    """

    def __init__(self, why: str, *, too_large: bool) -> None:
        super().__init__(why)
        self.too_large = too_large


def meaning(error: OpenSearchException, url: str) -> Exception:
    """What a failed request means.

    Args:
        error: the client library's exception.
        url: the cluster's address, for messages.

    Returns:
        ``Again``, ``Refused``, or the ``ClusterError`` to give up with.
    """
    if isinstance(error, AuthenticationException | AuthorizationException):
        return failure(error, url)
    if isinstance(error, UnreachableError):
        # A node that ends breaks its TLS connections off; a certificate and credentials do not mend themselves.
        untrusted = isinstance(error, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error.info)
        if untrusted or of_credentials(error.info):
            return failure(error, url)
        # A refused connection is one that the request never went through.
        reached = isinstance(error, ConnectionTimeout) or not isinstance(error.info, NewConnectionError)
        timeout = isinstance(error, ConnectionTimeout)
        why = "no answer in time" if timeout else "the connection broke off" if reached else "no connection"
        return Again(why, lost=reached, overloaded=timeout)
    if isinstance(error, SerializationError) or not isinstance(error, TransportError):
        return Again("an answer that breaks off", lost=True)
    if isinstance(error, RequestError) or error.status_code == TOO_LARGE:
        return Refused(reason(error), too_large=error.status_code == TOO_LARGE)
    status = error.status_code
    if status in (408, 425, 429) or (isinstance(status, int) and status >= 500):
        # A gateway's 502 or 504 does not tell whether the cluster has written.
        overloaded = status in (408, 429, 503, 504)
        return Again(f"{status}: {reason(error)}", lost=status != 429, overloaded=overloaded, failed=status == FAILED)
    return failure(error, url)

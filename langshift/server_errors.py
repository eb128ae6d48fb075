"""What the server's and the client library's errors mean: a sentence, a missing permission, something that passes."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from opensearchpy import exceptions
from opensearchpy.client.utils import _make_path
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from langshift.credentials import is_credentials_error, redact, refusal, unusable
from langshift.errors import ClusterError, UnavailableError
from langshift.response_checks import Redirected, WrongAnswer
from langshift.wording import join_words, printable

# Characters of a refusal; it names permissions, roles and attributes of a user.
_LONGEST = 10_000
# A permission may hold brackets itself, as `indices:data/write/bulk[s]` does.
_REFUSAL = re.compile(
    r"no permissions for \[(?P<permissions>[^\]\s].*?)\](?=$| and )"
    r"(?: and User \[name=(?P<user>.*?), (?:backend_)?roles=)?"
)
# Pattern of permissions -> the narrowest of the plugin's default action groups that has them; the first that fits.
# None where that would let somebody who only reads delete indices too.
_GROUPS: dict[str, str | None] = {
    "cluster:monitor/*": "cluster_monitor",
    "cluster:admin/ingest/pipeline/*": "cluster_manage_pipelines",
    # What a request over several indices needs on the cluster; its parts are named with brackets.
    "indices:data/write/bulk": "cluster_composite_ops",
    "indices:data/write/reindex": "cluster_composite_ops",
    "indices:data/read/mget": "cluster_composite_ops_ro",
    "indices:data/read/msearch": "cluster_composite_ops_ro",
    "indices:data/read/scroll": "cluster_composite_ops_ro",
    "indices:monitor/*": "indices_monitor",
    "indices:admin/create": "create_index",
    "indices:admin/mapping/put": "create_index",
    "indices:admin/aliases*": "manage_aliases",
    # Templates are the cluster's, not an index's.
    "indices:admin/template/*": "cluster_manage_index_templates",
    "indices:admin/index_template/*": "cluster_manage_index_templates",
    "indices:admin/get": None,
    "indices:admin/mappings/get": None,
    "indices:admin/*": "manage",
    "indices:data/read/search": "search",
    "indices:data/read/*": "read",
    "indices:data/write/*": "write",
}


class MissingPermissions(NamedTuple):
    """What a user may not do.

    Attributes:
        permissions: the permissions that are missing, as the cluster names them; at least one.
        user: the user's name; None where the cluster does not say it.
    """

    permissions: tuple[str, ...]
    user: str | None

    def __str__(self) -> str:
        """The end of a sentence that begins with the cluster."""
        who = f"the user {self.user}" if self.user else "this user"
        s, them = ("s", "them") if len(self.permissions) > 1 else ("", "it")
        groups = [_group(permission) for permission in self.permissions]
        if len(set(groups)) == 1:
            named = join_words(self.permissions) + (f" (in the action group {groups[0]})" if groups[0] else "")
        else:
            pairs = zip(self.permissions, groups, strict=True)
            named = join_words([f"{one} (in the action group {group})" if group else one for one, group in pairs])
        return (
            f"denies the request: {who} does not have the permission{s} {named}; "
            f"ask the cluster's administrator for {them}."
        )


def missing_permissions(words: str) -> MissingPermissions | None:
    """What the security plugin's words say of missing permissions; None where they say nothing of them.

    Args:
        words: the reason of an error, of a whole request or of one item of it.
    """
    found = _REFUSAL.search(" ".join(words.split()).rstrip(".")[:_LONGEST])
    return MissingPermissions(tuple(found["permissions"].split(", ")), found["user"]) if found else None


def _group(permission: str) -> str | None:
    return next((group for pattern, group in _GROUPS.items() if fnmatchcase(permission, pattern)), None)


_NOT_LET_IN = (exceptions.AuthenticationException, exceptions.AuthorizationException)
# A 403 that is no matter of permissions: the index, or the whole cluster, takes no writes.
_BLOCKED = "cluster_block_exception"
#: The settings that let an index be read only, of which a block of writes alone leaves its alias to be moved.
INDEX_BLOCKS: Final = ("read_only", "read_only_allow_delete", "write")
# What the server calls the blocks of the whole cluster.
_CLUSTER_BLOCKS = {
    "[FORBIDDEN/6/cluster ": "cluster.blocks.read_only",
    "[FORBIDDEN/13/cluster ": "cluster.blocks.read_only_allow_delete",
}
# What the security plugin says, with 500, of requests about an index whose documents it restricts that way.
_LOOKS_UP = "Unsupported request type for filter level DLS"
# Too much at once, a gateway whose cluster is away, a cluster that is still starting.
_FOR_NOW = (429, 502, 503, 504)


def failure(error: exceptions.OpenSearchException, url: str | None = None, *, anonymous: bool = False) -> ClusterError:
    """What the client library says of a failed request, as one sentence for a person.

    Args:
        error: the client library's exception.
        url: address of the cluster, without credentials.
        anonymous: no user name was sent.
    """
    place = _place(url)
    if isinstance(error, _NOT_LET_IN) and error.error != _BLOCKED:
        return ClusterError(f"{place} {_not_let_in(error, anonymous=anonymous)}")
    if isinstance(error, exceptions.SSLError):
        return ClusterError(f"{place} {_tls_trouble(str(error.info))}")
    if isinstance(error, exceptions.ConnectionTimeout) or _no_connection_in_time(error):
        return UnavailableError(
            f"{place} did not answer in time: check the address and the cluster's load, "
            "or raise OPENSEARCH_TIMEOUT (seconds)."
        )
    if isinstance(error, exceptions.ConnectionError) and is_credentials_error(error.info):
        return ClusterError(unusable(error.info))
    if isinstance(error, exceptions.ConnectionError):
        if not os.environ.get("OPENSEARCH_URL"):
            return UnavailableError(
                "The embedded OpenSearch can no longer be reached: `langshift doctor` shows why, "
                "`langshift up` restarts it."
            )
        return UnavailableError(
            f"{place} cannot be reached: check that it is running and that OPENSEARCH_URL is its address "
            "(http or https, host, port)."
        )
    if isinstance(error, exceptions.TransportError) and _LOOKS_UP in reason(error):
        return ClusterError(
            f"{place} restricts this user's documents by terms that it looks up in another index, and then answers "
            "nothing but searches: use a role whose restriction names its terms."
        )
    if isinstance(error, exceptions.TransportError):
        kind = UnavailableError if error.status_code in _FOR_NOW else ClusterError
        return kind(f"{place} answered {error.status_code}: {unblockable(reason(error))}.")
    if isinstance(error, WrongAnswer | Redirected):
        return ClusterError(f"{error}.")
    return ClusterError(f"{place} gave an unreadable answer: {' '.join(str(error).split())[:200]}.")


@contextmanager
def client_errors_as_langshift_errors(url: str | None = None, *, anonymous: bool = False) -> Iterator[None]:
    """Make what the client library raises an error of langshift's; for the arguments see ``failure``."""
    try:
        yield
    except exceptions.OpenSearchException as error:
        raise failure(error, url, anonymous=anonymous) from error


def unblocking(index: str, names: Sequence[str]) -> str:
    """How to let an index be written to that has these blocks, as the end of a sentence without its full stop."""
    body = json.dumps(dict.fromkeys(names))
    disk = "free space on its nodes, then " if any("allow_delete" in name for name in names) else ""
    return f"{disk}remove {'it' if len(names) == 1 else 'them'} with `PUT /{index}/_settings` and {body}"


def unblockable(words: str) -> str:
    """What the server says, with how to let a whole cluster be written to, where that is what it is about."""
    name = next((name for block, name in _CLUSTER_BLOCKS.items() if block in words), None)
    if name is None:
        return words
    body = json.dumps({kind: {name: None} for kind in ("persistent", "transient")})
    return f"{words}: the cluster has the setting {name}; remove it with `PUT /_cluster/settings` and {body}"


def not_permitted(words: str, url: str | None = None) -> ClusterError | None:
    """The error for a part of a request, such as one document of many, that this user may not ask for.

    Args:
        words: the reason of the part's error.
        url: address of the cluster, without credentials.

    Returns:
        None where the reason is another.
    """
    missing = missing_permissions(words)
    return ClusterError(f"{_place(url)} {missing}") if missing else None


def lacks_permission(error: exceptions.AuthorizationException) -> bool:
    """Whether the security plugin refuses a request for a permission that the user lacks; nothing else does."""
    return missing_permissions(_words(error)) is not None


def _place(url: str | None) -> str:
    return f"The cluster at {url}" if url else "The cluster"


def _not_let_in(error: exceptions.TransportError, *, anonymous: bool) -> str:
    """The end of a sentence about a request that is not allowed, or whose sender is not known."""
    if end := refusal(error):
        return end
    if isinstance(error, exceptions.AuthorizationException):
        missing = missing_permissions(_words(error))
        return str(missing) if missing else f"denies the request: {reason(error)}."
    if os.environ.get("OPENSEARCH_AWS_REGION"):
        return f"rejects the signed request: {reason(error)}."
    what = "requires a user name and password" if anonymous else "rejects the user name or password"
    return f"{what}: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD."


def _no_connection_in_time(error: exceptions.OpenSearchException) -> bool:
    """Whether the host was silent; urllib3 makes a refused connection a kind of this."""
    cause = error.info if isinstance(error, exceptions.ConnectionError) else None
    return isinstance(cause, ConnectTimeoutError) and not isinstance(cause, NewConnectionError)


def _tls_trouble(detail: str) -> str:
    """The end of a sentence about a TLS connection that failed for ``detail``, OpenSSL's words."""
    off = "disable verification with OPENSEARCH_SSL_VERIFY=false."
    if "CERTIFICATE_VERIFY_FAILED" not in detail:
        return "does not use TLS: check whether OPENSEARCH_URL should begin with http://."
    if "mismatch" in detail:
        return f"presents a certificate issued for another name: use that name in OPENSEARCH_URL, or {off}"
    if "expired" in detail:
        return f"presents a certificate that has expired: renew it on the cluster, or {off}"
    return f"presents a certificate that cannot be verified: set OPENSEARCH_CA_FILE to the CA that signed it, or {off}"


def reason(error: exceptions.TransportError) -> str:
    """The server's own words for why a request failed."""
    if isinstance(error.info, dict) and (explanation := closed(error.info.get("error"))):
        return explanation
    text = printable(_words(error)).rstrip(".; ")
    if text and not text.startswith("<"):
        return text[:300]
    # A gateway answers with a page of HTML, and who is told too much at once with nothing.
    return next((s.phrase for s in HTTPStatus if s == error.status_code), "a page of HTML" if text else "no reason")


def closed(cause: object) -> str | None:
    """What the server refuses because an index is closed; its word alone, "closed", does not say which; else None."""
    if not isinstance(cause, Mapping) or cause.get("type") != "index_closed_exception" or "index" not in cause:
        return None
    return f"{cause['index']} is closed; open it with `POST /{cause['index']}/_open`"


def _words(error: exceptions.TransportError) -> str:
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
    return redact(" ".join(str(cause or error.error).split()))


TOO_LARGE, FAILED = 413, 500


class Unreadable(ClusterError):
    """A part of an index does not answer."""


class Retryable(Exception):
    """Something of a chunk is to be sent again; the message says why.

    Attributes:
        lost: whether the request may have reached the server, and its answer did not come back.
        overloaded: whether the cluster had too much to do.
        failed: whether the server met an error of its own, perhaps over what one of the documents holds.
    """

    def __init__(self, why: str, *, lost: bool = False, overloaded: bool = False, failed: bool = False) -> None:
        super().__init__(why)
        self.lost, self.overloaded, self.failed = lost, overloaded, failed


class Rejected(Exception):
    """The whole request is refused, for what one of its documents holds or for its size; the message says why.

    Attributes:
        too_large: whether for its size.
    """

    def __init__(self, why: str, *, too_large: bool) -> None:
        super().__init__(why)
        self.too_large = too_large


def classify(error: exceptions.OpenSearchException, url: str) -> Exception:
    """What a failed request means.

    Args:
        error: the client library's exception.
        url: the cluster's address, for messages.

    Returns:
        ``Again``, ``Refused``, or the ``ClusterError`` to give up with.
    """
    status: Any = getattr(error, "status_code", None)
    told = info.get("error") if isinstance(info := getattr(error, "info", None), dict) else None
    if isinstance(error, exceptions.TransportError) and passes(status, told):
        # A gateway's 502 or 504 does not tell whether the cluster has written.
        lost, overloaded = status == 408 or status >= FAILED, status in (408, 429, 503, 504)
        why = f"{status}: {unblockable(reason(error))}"
        return Retryable(why, lost=lost, overloaded=overloaded, failed=status == FAILED)
    if isinstance(error, (*_NOT_LET_IN, Redirected)):
        return failure(error, url)
    if isinstance(error, exceptions.ConnectionError):
        # A node that ends breaks its TLS connections off; a certificate and credentials do not mend themselves.
        untrusted = isinstance(error, exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error.info)
        if untrusted or is_credentials_error(error.info):
            return failure(error, url)
        # A refused connection is one that the request never went through.
        reached = isinstance(error, exceptions.ConnectionTimeout) or not isinstance(error.info, NewConnectionError)
        timeout = isinstance(error, exceptions.ConnectionTimeout)
        why = "no answer in time" if timeout else "the connection was interrupted" if reached else "no connection"
        return Retryable(why, lost=reached, overloaded=timeout)
    if isinstance(error, WrongAnswer):
        return Retryable(f"{error.request} was answered with {error.shown}", lost=True)
    if isinstance(error, exceptions.SerializationError) or not isinstance(error, exceptions.TransportError):
        return Retryable("an incomplete answer", lost=True)
    if isinstance(error, exceptions.RequestError) or status == TOO_LARGE:
        return Rejected(reason(error), too_large=status == TOO_LARGE)
    return failure(error, url)


#: What a server calls the error, in an answer as in a part of one.
INDEX_NOT_FOUND: Final = "index_not_found_exception"
#: The node that was asked may learn of an index a little later than the cluster manager that says it is there.
PAUSE, TRIES = 0.2, 10
#: What a user meets who may not ask, or a client that cannot: then the first answer holds.
NO_ANSWER: Final = (
    exceptions.AuthorizationException,
    exceptions.NotFoundError,
    exceptions.RequestError,
    exceptions.SerializationError,
)


def passes(status: object, error: object) -> bool:
    """Whether a request, or a part of one, was refused for what passes: trouble, a block, a full disk, no memory left.

    Args:
        status: its HTTP status.
        error: what the server says of it, as JSON.
    """
    # A breaker of k-NN, for want of memory for graphs, answers 400, as to a bad document, which may hold these words.
    if is_block(error) or any("circuit_break" in str(cause.get("type")) for cause in causes(error)):
        return True
    trouble = isinstance(status, int) and (status in (408, 425, 429) or status >= FAILED)
    return trouble and not any(_LOOKS_UP in str(cause.get("reason")) for cause in causes(error))


def causes(error: object) -> list[Mapping[str, Any]]:
    """An error of the server's and what caused it, the innermost last."""
    found = []
    while isinstance(error, Mapping):
        found.append(error)
        error = error.get("caused_by")
    return found


def is_block(error: object) -> bool:
    """Whether the server says that an index, or the whole cluster, takes no writes at this moment."""
    return isinstance(error, Mapping) and error.get("type") == _BLOCKED


def is_gone(perform_request: Callable[..., Any], index: str) -> bool:
    """Whether an index is gone that a server did not know in a part of its answer; where nobody may ask, it is.

    Args:
        perform_request: a transport's.
        index: its name.

    Raises:
        OpenSearchException: the cluster does not know its indices at this moment, or cannot be reached.
    """
    try:
        return leaves_out(perform_request(*index_exists_request(index)), index)
    except NO_ANSWER:
        return True


def missing_index_name(error: exceptions.NotFoundError) -> str | None:
    """The index that a 404 is about; None where it is about something else."""
    cause = error.info.get("error") if isinstance(error.info, Mapping) else None
    if not isinstance(cause, Mapping) or cause.get("type") != INDEX_NOT_FOUND or not cause.get("index"):
        return None
    return str(cause["index"])


def index_exists_request(index: str) -> tuple[str, str, dict[str, str]]:
    """The request, as method, path and parameters, whose answer leaves out an index that is gone."""
    # Of an index that is there, a few bytes are enough.
    few = {"filter_path": "*.settings.index.uuid,*.aliases"}
    return "GET", _make_path(index), {"ignore_unavailable": "true", "allow_no_indices": "true", **few}


def leaves_out(answer: object, index: str) -> bool:
    """Whether the answer to ``question`` has no index or alias of that name.

    Of a data stream it has the indices behind it, under names of their own: requests for an index do not find one.
    """
    if not isinstance(answer, Mapping):
        return True
    return index not in answer and all(index not in one.get("aliases", {}) for one in answer.values())


def not_known_yet(index: str) -> exceptions.TransportError:
    """What is raised instead of a 404 for an index that is there."""
    reason = f"index {index} exists, but the node that answered does not know it yet"
    kind = "index_not_known_yet"
    return exceptions.TransportError(503, kind, {"error": {"type": kind, "reason": reason}})

"""Whether an index that a server does not know is really gone.

A node that has just started, and a cluster manager that was elected before it had read the cluster's state from its
disk ("state not recovered / initialized"), know no index at all and answer 404 for each that is asked for by its name.
A request that leaves out what is missing is treated otherwise: OpenSearch looks for that block first, waits until it is
gone, and answers 503 where that takes too long. So an index that such an answer leaves out is one that is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from opensearchpy import OpenSearch, Transport
from opensearchpy.client.utils import _make_path
from opensearchpy.exceptions import (
    AuthorizationException,
    NotFoundError,
    RequestError,
    SerializationError,
    TransportError,
)

#: What a server calls the error, in an answer as in a part of one.
INDEX_NOT_FOUND: Final = "index_not_found_exception"
#: The node that was asked may learn of an index a little later than the cluster manager that says it is there.
PAUSE, TRIES = 0.2, 10
#: What a user meets who may not ask, or a client that cannot: then the first answer holds.
NO_ANSWER: Final = (AuthorizationException, NotFoundError, RequestError, SerializationError)


class SureTransport(Transport):
    """Lets a 404 for an index through only where the index is gone; where it is not, the request is sent again.

    A request that was answered like this has done nothing. HEAD requests have no words that tell why they are answered
    with 404, so nobody may ask for an index by one.
    """

    def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: Any = None,  # noqa: ANN401 - the library's
        timeout: float | None = None,
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - the library's
        """Send a request; all else is as the library has it.

        Raises:
            NotFoundError: also where an index is gone.
            TransportError: with 503, where an index is there, and the node that answers does not know it.
        """
        for _ in range(TRIES):
            try:
                # The library takes out of the parameters what is meant for itself.
                return super().perform_request(method, url, params and dict(params), body, timeout, ignore, headers)
            except NotFoundError as error:
                index = named(error)
                if index is None or _is_left_out(super().perform_request, index):
                    raise
                unknown = not_known_yet(index)
            time.sleep(PAUSE)
        raise unknown


def is_gone(client: OpenSearch, index: str) -> bool:
    """Whether an index is gone that a server did not know in a part of its answer; where nobody may ask, it is.

    Raises:
        OpenSearchException: the cluster does not know its indices at this moment, or cannot be reached.
    """
    return _is_left_out(client.transport.perform_request, index)


def _is_left_out(perform_request: Callable[..., Any], index: str) -> bool:
    try:
        return leaves_out(perform_request(*question(index)), index)
    except NO_ANSWER:
        return True


def named(error: NotFoundError) -> str | None:
    """The index that a 404 is about; None where it is about something else."""
    cause = error.info.get("error") if isinstance(error.info, Mapping) else None
    if not isinstance(cause, Mapping) or cause.get("type") != INDEX_NOT_FOUND or not cause.get("index"):
        return None
    return str(cause["index"])


def question(index: str) -> tuple[str, str, dict[str, str]]:
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


def not_known_yet(index: str) -> TransportError:
    """What is raised instead of a 404 for an index that is there."""
    reason = f"there is an index {index}, but the node that answers does not know it yet"
    return TransportError(503, "index_not_known_yet", {"error": {"type": "index_not_known_yet", "reason": reason}})

"""The one door through which every request goes: its answer is looked at, and trouble is waited out where asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from opensearchpy import Transport, exceptions

from langshift import server_errors
from langshift.response_checks import Request, WrongAnswer, require_answer, require_not_found, shown
from langshift.retry import RetryBudget, retry_until_available, waiting_seconds
from langshift.settings import in_address

if TYPE_CHECKING:
    from opensearchpy import AsyncTransport

#: Whose answers a client reads into a form of its own, and no others.
_READ_RAW = ("/_search", "/_mget")


def host_address(host: Mapping[str, Any]) -> str:
    """The address of one of a transport's hosts, without credentials."""
    scheme = "https" if host.get("use_ssl") or host.get("scheme") == "https" else "http"
    prefix = f"/{host['url_prefix'].strip('/')}" if host.get("url_prefix") else ""
    return f"{scheme}://{in_address(host['host'])}:{host.get('port', 9200)}{prefix}"


@contextmanager
def _validated(transport: Transport, request: Request) -> Iterator[Callable[[object], None]]:
    """Around a request; what it gives is called with the answer.

    Raises:
        WrongAnswer: it is none of OpenSearch's.
    """
    url = host_address(transport.hosts[0])
    try:
        yield partial(require_answer, request, url=url)
    except exceptions.SerializationError as error:
        if not getattr(transport.serializer, "reads_all", False) and not request.path.endswith(_READ_RAW):
            raise
        raise WrongAnswer(url, request.shown(), shown(error.args[0])) from error
    except exceptions.NotFoundError as error:
        require_not_found(request, error, url)
        raise


def _request(method: str, url: str, params: Any, rest: tuple[Any, ...], named: Mapping[str, Any]) -> Request:  # noqa: ANN401
    return Request(method, url, params or {}, rest[0] if rest else named.get("body"))


# A node that has just started, and a cluster manager that was elected before it had read the cluster's state from its
# disk ("state not recovered / initialized"), know no index at all and answer 404 for each that is asked for by its
# name. A request that leaves out what is missing is treated otherwise: OpenSearch looks for that block first, waits
# until it is gone, and answers 503 where that takes too long. So an index that such an answer leaves out is one that
# is gone.
class CheckedTransport(Transport):
    """Takes nothing for an answer that OpenSearch would not say, and waits as long as ``waiting`` says.

    A 404 for an index comes through only where the index is gone; where it is not, the request is sent again. A
    request that was answered like this has done nothing. HEAD requests have no words that tell why they are answered
    with 404, so nobody may ask for an index by one.
    """

    def perform_request(self, method: str, url: str, params: Any = None, *rest: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
        """Send a request; all else is as the library has it.

        Raises:
            WrongAnswer: what came back is no answer of OpenSearch's.
            exceptions.NotFoundError: also where an index is gone.
            exceptions.TransportError: with 503, where an index is there, and the node that answers does not know it.
        """
        ask = partial(self._known, method, url, params, *rest, **named)
        seconds = waiting_seconds()
        return ask() if seconds is None else retry_until_available(ask, RetryBudget(seconds))

    def _known(self, *request: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
        for _ in range(server_errors.TRIES):
            try:
                return self._answered(*request, **named)
            except exceptions.NotFoundError as error:
                index = server_errors.missing_index_name(error)
                if index is None or server_errors.is_gone(self._answered, index):
                    raise
                unknown = server_errors.not_known_yet(index)
            time.sleep(server_errors.PAUSE)
        raise unknown

    def _answered(self, method: str, url: str, params: Any = None, *rest: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
        with _validated(self, _request(method, url, params, rest, named)) as require:
            # The library takes out of the parameters what is meant for itself.
            answer = super().perform_request(method, url, params and dict(params), *rest, **named)
            require(answer)
        return answer


def async_transport() -> type[AsyncTransport]:
    """The same for asynchronous clients, which wait for nothing; needs the extra ``async``."""
    from opensearchpy import AsyncTransport

    class AsyncCheckedTransport(AsyncTransport):
        """Takes nothing for an answer that OpenSearch would not say, as the other transport does."""

        async def perform_request(self, *request: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
            for _ in range(server_errors.TRIES):
                try:
                    return await self._answered(*request, **named)
                except exceptions.NotFoundError as error:
                    index = server_errors.missing_index_name(error)
                    if index is None or await self._is_gone(index):
                        raise
                    unknown = server_errors.not_known_yet(index)
                await asyncio.sleep(server_errors.PAUSE)
            raise unknown

        async def _is_gone(self, index: str) -> bool:
            try:
                answer = await self._answered(*server_errors.index_exists_request(index))
                return server_errors.leaves_out(answer, index)
            except server_errors.NO_ANSWER:
                return True

        async def _answered(self, method: str, url: str, params: Any = None, *rest: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
            with _validated(self, _request(method, url, params, rest, named)) as require:
                answer = await super().perform_request(method, url, params and dict(params), *rest, **named)
                require(answer)
            return answer

    return AsyncCheckedTransport

"""An HTTP proxy before the real OpenSearch, which passes requests on or lets them meet faults (see ``faults``)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import urllib3
from http_exchange import JSON, Cut, Exchange, Reply, read_request, send

from langshift.settings import Settings

# As many requests as may be at the real server at once.
_AT_ONCE = 64
# Headers between two neighbours, which are not passed on; without the last one the real server's answers come plain.
_NOT_PASSED = {"connection", "keep-alive", "content-length", "transfer-encoding", "host", "expect", "accept-encoding"}

# Headers of an answer that the proxy writes itself.
_NOT_SAID = {"connection", "keep-alive", "content-length", "transfer-encoding", "content-encoding", "content-type"}

#: What becomes of a request.
Fault = Callable[[Exchange], Awaitable[Reply]]


async def passed(exchange: Exchange) -> Reply:
    """No fault."""
    return await exchange.forward()


@dataclass
class Bulk:
    """A bulk request that came by.

    Attributes:
        ids: the ``_id`` of each operation.
        size: bytes of the body.
        at: when it came, by ``time.monotonic``.
        under_way: bulk requests under way then, itself included.
        status: HTTP status that was answered; None while it is under way, and where the connection was cut.
    """

    ids: list[str]
    size: int
    at: float
    under_way: int
    status: int | None = None


class FaultProxy:
    """Passes requests on to ``target``, but for those that a fault was set for.

    Attributes:
        url: its address.
        bulks: every bulk request, in the order in which they came.
    """

    url: str

    def __init__(self, target: str) -> None:
        settings = Settings.from_env()
        self.bulks: list[Bulk] = []
        self._target = target
        self._real = urllib3.PoolManager(
            maxsize=_AT_ONCE,
            cert_reqs="CERT_REQUIRED" if settings.ssl_verify else "CERT_NONE",
            ca_certs=str(settings.ca_file) if settings.ca_file else None,
            timeout=120,
            retries=False,
        )
        self._threads = ThreadPoolExecutor(_AT_ONCE)
        self._rules: list[tuple[str, Iterator[Fault]]] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._under_way = 0
        self._mistakes: list[Exception] = []

    def inject(self, path: str, faults: Iterable[Fault]) -> None:
        """Let the next requests whose path contains ``path`` meet one fault each; ``itertools.repeat`` for all."""
        self._rules.append((path, iter(faults)))

    def clear(self) -> None:
        """Pass everything from now on."""
        self._rules.clear()

    async def serve(self, ready: Future[Callable[[], object]]) -> None:
        """Serve until the function that ``ready`` is given has been called."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set_result(lambda: loop.call_soon_threadsafe(stop.set))
        await stop.wait()
        server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections)
        await server.wait_closed()
        self._threads.shutdown()
        self._real.clear()
        if self._mistakes:
            raise self._mistakes[0]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            while await self._one(reader, writer):
                pass
            writer.close()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError, Cut):
            writer.transport.abort()
        except Exception as mistake:  # in a fault: it fails the test at the end
            self._mistakes.append(mistake)
            writer.transport.abort()
        finally:
            self._connections.discard(connection)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether another may follow on this connection."""
        exchange = await read_request(reader, writer, self._forward)
        reply = await (self._bulk(exchange) if exchange.bulk else self._fault(exchange)(exchange))
        await send(writer, reply, with_body=exchange.method != "HEAD")
        return reply.cut is None and not exchange.last

    async def _bulk(self, exchange: Exchange) -> Reply:
        self._under_way += 1
        ids = [operation.id for operation in exchange.operations]
        bulk = Bulk(ids, len(exchange.body), time.monotonic(), self._under_way)
        self.bulks.append(bulk)
        try:
            reply = await self._fault(exchange)(exchange)
        finally:
            self._under_way -= 1
        if reply.cut is None:
            bulk.status = reply.status
        return reply

    def _fault(self, exchange: Exchange) -> Fault:
        matching = (faults for path, faults in list(self._rules) if path in exchange.path)
        return next((fault for faults in matching if (fault := next(faults, None))), passed)

    async def _forward(self, exchange: Exchange, body: bytes) -> Reply:
        headers = {name: value for name, value in exchange.headers.items() if name not in _NOT_PASSED}

        def request() -> Reply:
            answer = self._real.request(exchange.method, self._target + exchange.path, body=body, headers=headers)
            said = {name.lower(): value for name, value in answer.headers.items()}
            said = {name: value for name, value in said.items() if name not in _NOT_SAID}
            of_head = exchange.method == "HEAD" and "content-length" in answer.headers
            length = {"content-length": answer.headers["content-length"]} if of_head else {}
            return Reply(answer.status, answer.data, answer.headers.get("content-type", JSON), headers=said | length)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, request)
        except urllib3.exceptions.HTTPError as error:
            # The real server is gone, and so is this connection.
            raise Cut from error


@contextmanager
def fault_proxy(target: str) -> Iterator[FaultProxy]:
    """Run a proxy before ``target`` in a thread of its own; what goes wrong in a fault is raised at the end."""
    proxy, ready = FaultProxy(target), Future[Callable[[], object]]()
    mistakes: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(proxy.serve(ready))
        except BaseException as mistake:
            mistakes.append(mistake)

    thread = threading.Thread(target=run, name="fault proxy")
    thread.start()
    stop = ready.result(timeout=10)
    try:
        yield proxy
    finally:
        stop()
        thread.join()
    if mistakes:
        raise mistakes[0]

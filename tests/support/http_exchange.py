"""HTTP/1.1 as a proxy's server side needs it: a request that comes in, the answer that goes out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bulk_body import Operation, operations

JSON = "application/json; charset=UTF-8"


class Cut(Exception):
    """The connection is to be cut without an answer."""


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        status: HTTP status.
        body: its body.
        kind: its content type.
        cut: after so many bytes of the body the connection is cut; None for never.
        headers: what else it says, and the length of what a HEAD request asks about.
    """

    status: int
    body: bytes
    kind: str = JSON
    cut: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Exchange:
    """A request on its way.

    Attributes:
        method: such as ``POST``.
        path: path and query.
        headers: their names in small letters.
        body: the body.
        send_on: sends it to the real server with the body that is given, and gives the answer.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    send_on: Callable[[Exchange, bytes], Awaitable[Reply]] = field(repr=False)

    @property
    def bulk(self) -> bool:
        """Whether it is a bulk request."""
        return self.path.split("?")[0].endswith("/_bulk")

    @property
    def last(self) -> bool:
        """Whether the client wants no other request on this connection."""
        return self.headers.get("connection", "").lower() == "close"

    @cached_property
    def operations(self) -> list[Operation]:
        """What a bulk request asks for."""
        return operations(self.path, self.body)

    async def forward(self, body: bytes | None = None) -> Reply:
        """The real server's answer to it, or to it with another body."""
        return await self.send_on(self, self.body if body is None else body)


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, send_on: Callable[[Exchange, bytes], Awaitable[Reply]]
) -> Exchange:
    """The next request of a connection.

    Raises:
        asyncio.IncompleteReadError: the client has closed the connection.
    """
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    fields = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    if headers.pop("expect", "").lower() == "100-continue":
        # Who is not given leave waits for a second.
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return Exchange(method, path, headers, await _body(reader, headers), send_on)


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailing headers
    return b"".join(parts)


async def send(writer: asyncio.StreamWriter, reply: Reply, *, with_body: bool) -> None:
    """Send an answer; with ``cut`` its length promises more than comes."""
    body = reply.body if with_body else b""
    headers = {**reply.headers, "content-type": reply.kind}
    if with_body or "content-length" not in headers:
        headers["content-length"] = str(len(body))
    lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode("latin-1") + body[: reply.cut])
    await writer.drain()

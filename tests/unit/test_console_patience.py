"""Connections to the console on which no request comes."""

import asyncio
import socket

import pytest
import uvicorn

from langshift.web import app


async def answer(_scope, receive, send):
    """An application that reads what it is sent, and takes a moment."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def what_comes(sent, later=b""):
    """What a server that waits for 0.2 seconds says to these bytes before it closes the connection.

    ``later`` is sent after half a second.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            answer, http=app.IdleTimeoutProtocol, log_config=None, log_level="critical", lifespan="off", loop="asyncio"
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(sent)
        if later:
            await asyncio.sleep(0.5)
            writer.write(later)
        said = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        server.should_exit = True
        await serving
    return said


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: "], ids=["silent", "half a head"])
def test_a_connection_without_a_request_is_closed(monkeypatch, sent):
    monkeypatch.setattr(app, "_LONGEST", 0.2)
    assert asyncio.run(what_comes(sent)) == b""


@pytest.mark.parametrize("after", [b"", b"GET / HTTP/1.1\r\n"], ids=["silent", "half a head"])
def test_a_request_that_takes_longer_is_answered_and_what_comes_after_it_is_waited_for_anew(monkeypatch, after):
    monkeypatch.setattr(app, "_LONGEST", 0.2)
    said = asyncio.run(what_comes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + after))
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert said.endswith(b"\r\n\r\nok")


POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab"


def test_half_a_body_is_waited_for_no_longer_than_so_long(monkeypatch):
    monkeypatch.setattr(app, "_LONGEST", 0.2)
    monkeypatch.setattr(app, "_LONGEST_BODY", 0.2)
    assert asyncio.run(what_comes(POST)) == b""


def test_a_body_that_comes_in_time_is_answered_however_long_that_takes(monkeypatch):
    monkeypatch.setattr(app, "_LONGEST", 0.2)
    monkeypatch.setattr(app, "_LONGEST_BODY", 0.6)
    assert asyncio.run(what_comes(POST, b"cd")).startswith(b"HTTP/1.1 200 OK")

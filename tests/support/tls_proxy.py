"""A reverse proxy before the real server: TLS, Basic authentication, and answers changed on the way."""

from __future__ import annotations

import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import trustme
import urllib3
from opensearchpy import OpenSearch

from langshift.client import make_client
from langshift.settings import Settings

Rewrite = Callable[[str, int, bytes], tuple[int, bytes]]
# Method, path with query, headers and body of a request to the status and body that refuse it; None lets it pass.
Refuse = Callable[[str, str, Message, bytes], "tuple[int, bytes] | None"]


class Authority(NamedTuple):
    """A certificate authority, its certificate in a file, and a server's side of TLS signed by it."""

    ca: trustme.CA
    file: Path
    server: ssl.SSLContext

    @classmethod
    def made(cls, folder: Path) -> Authority:
        """A new one, for the host ``localhost``."""
        ca, file = trustme.CA(), folder / "ca.pem"
        ca.cert_pem.write_to_path(file)
        return cls(ca, file, server_side(ca.issue_cert("localhost")))


def client_of(address: str) -> OpenSearch:
    """A client of a proxy, which tries nothing twice."""
    return make_client(Settings.from_env(), address, retries=0)


def server_side(certificate: trustme.LeafCert) -> ssl.SSLContext:
    """What a server needs to show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


class Proxy(ThreadingHTTPServer):
    """Passes every request on to ``target``.

    Attributes:
        target: address of the real server.
        real: the connections to it, with the credentials and certificates of the settings.
        demanded: the Authorization header that a request must carry; None for any.
        rewrite: path, status and body of an answer to the status and body that are sent; None for as it is.
        refuse: what is asked before a request is passed on; None for nothing.
        seen: path and whether it carried an Authorization header, of every request.
    """

    daemon_threads = False
    target: str
    real: urllib3.PoolManager
    demanded: str | None
    rewrite: Rewrite | None
    seen: list[tuple[str, bool]]
    refuse: Refuse | None


class _Handler(BaseHTTPRequestHandler):
    server: Proxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = self.headers.get("Authorization")
        self.server.seen.append((self.path, given is not None))
        if self.server.demanded is not None and given != self.server.demanded:
            # What OpenSearch's security plugin answers.
            self._answer(401, "text/plain; charset=UTF-8", b"Unauthorized")
            return
        refused = self.server.refuse and self.server.refuse(self.command, self.path, self.headers, body)
        if refused:
            self._answer(refused[0], "application/json", refused[1])
            return
        self._answer(*self._forward(body))

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def _forward(self, body: bytes) -> tuple[int, str, bytes]:
        kind = {"content-type": self.headers.get("Content-Type", "application/json")}
        answer = self.server.real.request(
            self.command, self.server.target + self.path, body=body, headers={**self.server.real.headers, **kind}
        )
        status, content = answer.status, answer.data
        if self.server.rewrite is not None:
            status, content = self.server.rewrite(self.path, status, content)
        return status, answer.headers.get("Content-Type", "application/json"), content

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@contextmanager
def proxy(
    target: str,
    *,
    tls: ssl.SSLContext | None = None,
    credentials: tuple[str, str] | None = None,
    rewrite: Rewrite | None = None,
    refuse: Refuse | None = None,
) -> Iterator[tuple[str, Proxy]]:
    """Run a proxy on a free port of 127.0.0.1; yields its address (host ``localhost``) and itself."""
    server = Proxy(("127.0.0.1", 0), _Handler)
    server.target, server.real = target, _connections(Settings.from_env())
    server.refuse = refuse
    server.rewrite, server.seen, server.demanded = rewrite, [], None
    if credentials is not None:
        server.demanded = _basic(*credentials)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://localhost:{server.server_address[1]}", server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.real.clear()


def _connections(settings: Settings) -> urllib3.PoolManager:
    headers = {"authorization": _basic(settings.username, settings.password)} if settings.username else {}
    return urllib3.PoolManager(
        headers=headers,
        cert_reqs="CERT_REQUIRED" if settings.ssl_verify else "CERT_NONE",
        ca_certs=str(settings.ca_file) if settings.ca_file else None,
        timeout=settings.timeout,
        retries=False,
    )


def _basic(username: str, password: str | None) -> str:
    pair = f"{username}:{password or ''}"
    return f"Basic {b64encode(pair.encode()).decode()}"

"""What servers of models on this machine have in common, for tests: real HTTP, and faults when told to."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ModelHttpServer(ThreadingHTTPServer):
    """A server on a port of its own; ``faults`` are taken one a request, from the first, by ``take_fault``."""

    daemon_threads = True

    def __init__(self, handler, port=0):
        super().__init__(("127.0.0.1", port), handler)
        self.faults, self.always, self.pause = [], None, 0.0
        self.keys, self.lock = [], threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def take_fault(self):
        """What happens to this request; None where it is answered as usual. To be called under the lock."""
        return self.faults.pop(0) if self.faults else self.always

    def handle_error(self, request, client_address):
        """Say nothing of connections that a test cuts."""


@contextmanager
def serving(server):
    """The server, while it runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class ModelHttpHandler(BaseHTTPRequestHandler):
    """Reads and sends JSON."""

    protocol_version = "HTTP/1.1"
    # Two writes an answer would wait for each other.
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def read(self):
        """The JSON that was posted."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def send(self, status, content, kind="application/json", **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def send_or(self, fault, usual):
        """Send the usual answer, or what a fault makes of it."""
        if fault is None:
            self.send(200, usual)
        else:
            fault(self, usual)


def reply(status, content, **headers):
    """A fault: this answer."""
    return lambda handler, _: handler.send(status, content, **headers)


def changed(change):
    """A fault: the usual answer, changed in place."""

    def fault(handler, usual):
        change(usual)
        handler.send(200, usual)

    return fault


def cut(handler, _):
    """A fault: the connection breaks in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True

"""A real HTTP server on this machine that answers prompts as OpenAI's chat API does, and that fails when told to."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "org/tiny-chat"


class ChatServer(ThreadingHTTPServer):
    """The server; what it does is set on it, also while it runs.

    ``answer`` makes the answer of a prompt: a text, or a choice. ``faults`` are taken one a request, from the first:
    a function of the handler and the usual answer, or None to answer as usual.
    """

    daemon_threads = True

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.models = answer, [MODEL]
        self.faults, self.pause = [], 0.0
        self.bodies, self.keys, self.lock = [], [], threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def name(self):
        return f"http:{self.url}#{MODEL}"

    @property
    def prompts(self):
        """What was asked, in order."""
        return [body["messages"][0]["content"] for body in self.bodies]

    def handle_error(self, request, client_address):
        """Say nothing of connections that a test cuts."""


@contextmanager
def chat_server(answer):
    server = ChatServer(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def send(self, status, content, kind="application/json", **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/v1/models" and self.server.models is not None:
            self.send(200, {"object": "list", "data": [{"id": one} for one in self.server.models]})
        else:
            self.send(404, {"detail": "Not Found"})

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.send(404, {"detail": "Not Found"})
            return
        with server.lock:
            server.bodies.append(body)
            server.keys.append(self.headers.get("Authorization"))
            fault = server.faults.pop(0) if server.faults else None
        time.sleep(server.pause)
        made = server.answer(body["messages"][0]["content"])
        choice = made if isinstance(made, dict) else message(made)
        usual = {"object": "chat.completion", "model": body["model"], "choices": [choice]}
        if fault is None:
            self.send(200, usual)
        else:
            fault(self, usual)


def message(text, finish="stop", **more):
    """A choice with this text."""
    return {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **more}}


def reply(status, content, **headers):
    """A fault: this answer."""
    return lambda handler, _: handler.send(status, content, **headers)


def cut(handler, _):
    """A fault: the connection breaks in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True

"""A real HTTP server on this machine that reranks by TEI's interface or by Cohere's, and that fails when told to."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "org/tiny-reranker"


def usual_score(query, text):
    """How many different words query and passage share, less a little for every further word of the passage."""
    words = set(text.lower().split())
    return len(words & set(query.lower().split())) - len(words) / 1000


class RerankingServer(ThreadingHTTPServer):
    """The server; what it does is set on it, also while it runs.

    ``faults`` are taken one a request, from the first: a function of the handler and the usual entries.
    """

    daemon_threads = True

    def __init__(self, tei):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tei, self.score = tei, usual_score
        self.faults, self.most, self.longest, self.pause = [], None, None, 0.0
        self.asked, self.keys, self.lock = [], [], threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def name(self):
        return f"http:{self.url}" + ("" if self.tei else f"#{MODEL}")

    def handle_error(self, request, client_address):
        """Say nothing of connections that a test cuts."""


@contextmanager
def reranking_server(*, tei=False):
    server = RerankingServer(tei)
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
        if self.server.tei and self.path == "/info":
            self.send(200, {"model_id": MODEL, "max_client_batch_size": 32})
        else:
            self.send(404, {"detail": "Not Found"})

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = body.get("texts" if server.tei else "documents")
        if self.path != ("/rerank" if server.tei else "/v1/rerank") or texts is None:
            self.send(404, {"detail": "Not Found"})
            return
        with server.lock:
            server.asked.append(body)
            server.keys.append(self.headers.get("Authorization"))
            fault = server.faults.pop(0) if server.faults else None
        time.sleep(server.pause)
        key = "score" if server.tei else "relevance_score"
        entries = [{"index": place, key: server.score(body["query"], text)} for place, text in enumerate(texts)]
        # Best first, as servers give them.
        entries.sort(key=lambda one: -one[key])
        if server.most and len(texts) > server.most:
            self.send(413, {"error": f"batch size {len(texts)} > maximum allowed batch size {server.most}"})
        elif server.longest and max(map(len, texts)) > server.longest:
            self.send(422, {"error": "too many tokens"})
        elif fault is None:
            self.send(200, entries if server.tei else {"results": entries})
        else:
            fault(self, entries)


def reply(status, content, **headers):
    """A fault: this answer."""
    return lambda handler, _: handler.send(status, content, **headers)


def changed(change):
    """A fault: the usual entries, changed in place."""

    def fault(handler, entries):
        change(entries)
        handler.send(200, entries if handler.server.tei else {"results": entries})

    return fault


def cut(handler, _):
    """A fault: the connection breaks in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"results": [')
    handler.close_connection = True

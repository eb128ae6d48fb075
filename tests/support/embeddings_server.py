"""A real HTTP server on this machine that answers as OpenAI's API does, and that fails when told to."""

import hashlib
import time

import numpy as np
from model_http import ModelHttpHandler, ModelHttpServer, serving

DIMENSION = 12
# Of a family that is known to have no prefixes.
MODEL = "org/gte-small"


def vector(text, *, normalised=True, dimension=DIMENSION):
    """What the server makes of a text, float32."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    made = np.random.default_rng(seed).standard_normal(dimension) * 3
    return (made / np.linalg.norm(made) if normalised else made).astype(np.float32)


class EmbeddingsServer(ModelHttpServer):
    """The server; what it does is set on it, also while it runs.

    ``faults`` are taken one a request for embeddings, from the first: a function of the handler and the
    usual answer that sends something (``reply``, ``cut``, ...), or None to answer as usual.
    """

    def __init__(self, port=0, tls=None):
        super().__init__(_Handler, port)
        self.tls = tls
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.models = [{"id": MODEL, "object": "model", "created": 1, "owned_by": "me"}]
        self.pages = {}
        self.normalised, self.dimension = True, DIMENSION
        self.key = None
        self.most = self.longest = None
        self.asked, self.paths = [], []
        self.at_once = self.most_at_once = 0

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.server_port}"

    @property
    def name(self):
        return f"http:{self.url}#{MODEL}"


def embeddings_server(port=0, tls=None):
    return serving(EmbeddingsServer(port, tls))


class _Handler(ModelHttpHandler):
    def do_GET(self):
        server = self.server
        server.paths.append(self.path)
        if self.refused():
            return
        pages = {"/v1/models": {"object": "list", "data": server.models}, **server.pages}
        page = pages.get(self.path)
        if callable(page):
            page(self)
        elif page is None:
            self.send(404, {"detail": "Not Found"})
        else:
            self.send(200, page)

    def refused(self):
        self.server.keys.append(self.headers.get("Authorization"))
        if self.server.key is None or self.headers.get("Authorization") == f"Bearer {self.server.key}":
            return False
        given = self.headers.get("Authorization", "none").removeprefix("Bearer ")
        self.send(401, {"error": {"message": f"Incorrect API key provided: {given}."}})
        return True

    def do_POST(self):
        server = self.server
        body = self.read()
        with server.lock:
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
            server.asked.append(body["input"])
            fault = server.take_fault()
        try:
            time.sleep(server.pause)
            self.answer(body, fault)
        finally:
            with server.lock:
                server.at_once -= 1

    def answer(self, body, fault):
        server, texts = self.server, body["input"]
        if self.refused():
            return
        if self.path != "/v1/embeddings":
            self.send(404, {"detail": "Not Found"})
        elif server.models and body["model"] not in {entry["id"].removesuffix(":latest") for entry in server.models}:
            self.send(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
        elif server.most and len(texts) > server.most:
            self.send(422, {"error": f"batch size {len(texts)} > maximum allowed batch size {server.most}"})
        elif server.longest and max(map(len, texts)) > server.longest:
            self.send(413, {"error": f"inputs must have less than {server.longest} tokens"})
        else:
            made = [vector(text, normalised=server.normalised, dimension=server.dimension) for text in texts]
            data = [
                {"object": "embedding", "index": row, "embedding": one.tolist()}
                for row, one in reversed(list(enumerate(made)))
            ]
            usual = {"object": "list", "model": body["model"], "data": data}
            self.send_or(fault, usual)

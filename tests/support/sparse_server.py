"""A real HTTP server on this machine that weights tokens as text-embeddings-inference's ``/embed_sparse`` does."""

import zlib

from model_http import ModelHttpHandler, ModelHttpServer, serving

MODEL = "org/tiny-splade"


def usual_weights(text):
    """Index -> weight of each word: 1 and a half for every time that it is there."""
    words = text.lower().split()
    return {zlib.crc32(word.encode()) % 30_000: 1 + words.count(word) / 2 for word in words}


class SparseServer(ModelHttpServer):
    """The server; what it does is set on it, also while it runs.

    ``faults`` are taken one a request, from the first: a function of the handler and the usual answer.
    """

    def __init__(self):
        super().__init__(_Handler)
        self.info = {"model_id": MODEL, "model_sha": "8fc2", "max_client_batch_size": 32}
        self.most, self.key, self.asked = None, None, []

    @property
    def name(self):
        return f"http:{self.url}#{MODEL}"


def sparse_server():
    return serving(SparseServer())


class _Handler(ModelHttpHandler):
    def do_GET(self):
        if self.path == "/info" and self.server.info:
            self.send(200, self.server.info)
        else:
            self.send(404, {"error": "Not Found"})

    def do_POST(self):
        server = self.server
        body = self.read()
        with server.lock:
            server.asked.append(body)
            server.keys.append(self.headers.get("Authorization"))
            fault = server.take_fault()
        texts = body["inputs"]
        if server.key is not None and server.keys[-1] != f"Bearer {server.key}":
            self.send(401, {"error": "Unauthorized"})
        elif self.path != "/embed_sparse":
            self.send(404, {"error": "Not Found"})
        elif not all(texts):
            self.send(413, {"error": "`inputs` cannot be empty", "error_type": "Validation"})
        elif server.most and len(texts) > server.most:
            self.send(422, {"error": f"batch size {len(texts)} > maximum allowed batch size {server.most}"})
        else:
            rows = [[{"index": at, "value": value} for at, value in usual_weights(text).items()] for text in texts]
            self.send_or(fault, rows)

"""A real HTTP server on this machine that reranks by TEI's interface or by Cohere's, and that fails when told to."""

import time

from model_http import ModelHttpHandler, ModelHttpServer, changed, serving

MODEL = "org/tiny-reranker"


def usual_score(query, text):
    """How many different words query and passage share, less a little for every further word of the passage."""
    words = set(text.lower().split())
    return len(words & set(query.lower().split())) - len(words) / 1000


class RerankingServer(ModelHttpServer):
    """The server; what it does is set on it, also while it runs.

    ``faults`` are taken one a request, from the first: a function of the handler and the usual answer.
    """

    def __init__(self, tei):
        super().__init__(_Handler)
        self.tei, self.score = tei, usual_score
        self.most, self.longest, self.asked = None, None, []

    @property
    def name(self):
        return f"http:{self.url}" + ("" if self.tei else f"#{MODEL}")


def reranking_server(*, tei=False):
    return serving(RerankingServer(tei))


class _Handler(ModelHttpHandler):
    def do_GET(self):
        if self.server.tei and self.path == "/info":
            self.send(200, {"model_id": MODEL, "max_client_batch_size": 32})
        else:
            self.send(404, {"detail": "Not Found"})

    def do_POST(self):
        server = self.server
        body = self.read()
        texts = body.get("texts" if server.tei else "documents")
        if self.path != ("/rerank" if server.tei else "/v1/rerank") or texts is None:
            self.send(404, {"detail": "Not Found"})
            return
        with server.lock:
            server.asked.append(body)
            server.keys.append(self.headers.get("Authorization"))
            fault = server.take_fault()
        time.sleep(server.pause)
        key = "score" if server.tei else "relevance_score"
        entries = [{"index": place, key: server.score(body["query"], text)} for place, text in enumerate(texts)]
        # Best first, as servers give them.
        entries.sort(key=lambda one: -one[key])
        if server.most and len(texts) > server.most:
            self.send(413, {"error": f"batch size {len(texts)} > maximum allowed batch size {server.most}"})
        elif server.longest and max(map(len, texts)) > server.longest:
            self.send(422, {"error": "too many tokens"})
        else:
            self.send_or(fault, entries if server.tei else {"results": entries})


def changed_entries(change):
    """A fault: the usual entries, best first, changed in place."""
    return changed(lambda usual: change(usual["results"] if isinstance(usual, dict) else usual))

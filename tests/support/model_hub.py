"""A small real HTTP server that answers as Hugging Face does for a few models; every path asked for is kept.

Of the model ``no/answer`` it says nothing at all, as where the network is cut.
"""

import hashlib
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def model_hub(models):
    """Serve folders as the models of their names; gives the address and the list of paths asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.models, server.asked = models, []
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", server.asked
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        name = next((name for name in self.server.models if name in path), None)
        folder = self.server.models.get(name)
        if "no/answer" in path:
            self.close_connection = True
        elif name is None:
            self.answer(b"", 404, "RepoNotFound")
        elif path == f"/api/models/{name}/revision/main":
            self.answer(json.dumps({"id": name, "sha": COMMIT, "siblings": []}).encode())
        elif path == f"/api/models/{name}/tree/{COMMIT}":
            self.answer(json.dumps([_entry(folder, file) for file in folder.rglob("*") if file.is_file()]).encode())
        elif (file := folder / path.removeprefix(f"/{name}/resolve/{COMMIT}/")).is_file():
            self.answer(file.read_bytes())
        else:
            self.answer(b"", 404, "EntryNotFound")

    do_HEAD = do_GET

    def answer(self, content, status=200, error=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{_hash(content)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if error:
            self.send_header("X-Error-Code", error)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


def _entry(folder, file):
    content = file.read_bytes()
    path = file.relative_to(folder).as_posix()
    return {"type": "file", "oid": _hash(content), "size": len(content), "path": path}


def _hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

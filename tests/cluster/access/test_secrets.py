"""A password is nowhere to be found after a command: not in its output, files, processes, nor in the index."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import command_line
import pytest
from console_process import serving
from embeddings_server import embeddings_server
from model_http import reply
from opensearchpy import OpenSearch
from small_dataset import write_small_dataset
from tls_proxy import Refuse, Rewrite, proxy

USER, SECRET = "anna", "Mk7xQ9vR:quite/@%ß 'un\"ique"
MARK = "Mk7xQ9vR"
REPEATED = "Authorization: Basic *** (***) ***"
#: The password in every form that it is sent or written in.
FORMS = {
    MARK,
    SECRET,
    quote(SECRET),
    quote(SECRET, safe=""),
    json.dumps(SECRET)[1:-1],
    b64encode(f"{USER}:{SECRET}".encode()).decode(),
    b64encode(SECRET.encode()).decode(),
}


def found_in(content: bytes) -> list[str]:
    """The forms of the password that some bytes hold."""
    return [form for form in FORMS if form.encode() in content]


class Watch(threading.Thread):
    """Reads the arguments of every process of this machine, as ``ps`` would, until it is told to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()
        self.met: list[bytes] = []

    def run(self) -> None:
        while not self.over.wait(0.05):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    arguments = file.read_bytes()
                except OSError:  # it has ended
                    continue
                if found_in(arguments):
                    self.met.append(arguments)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_small_dataset(folder)
    lines = [{"_id": "1", "text": "Das Meer steigt.", "n": 1}, {"_id": "2", "text": "Das Meer fällt.", "n": "kein"}]
    (folder / "bad.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture
def langshift(tmp_path, authority) -> Iterator[Callable[..., int]]:
    """Run a command with these variables only, and look for the password everywhere; gives the code."""
    # Beside other tests, an encoder with a thread for each processor would be slow.
    usual = {name: os.environ[name] for name in ("PATH", "OMP_NUM_THREADS") if name in os.environ}
    usual |= {"HOME": tmp_path, "LANGSHIFT_HOME": tmp_path / "home"}
    usual |= {"OPENSEARCH_CA_FILE": authority.file, "LANGSHIFT_DEBUG": "1"}
    watch = Watch()
    watch.start()

    def run(*arguments: object, **env: str) -> int:
        done = run.by(*arguments, only={}, cwd=tmp_path, **usual | env)
        assert not found_in((done.stdout + done.stderr).encode()), done
        run.said = done.stderr
        return done.returncode

    run.by = command_line.langshift
    try:
        yield run
    finally:
        watch.over.set()
        watch.join()
    assert not watch.met
    for file in tmp_path.rglob("*"):
        assert not found_in(str(file).encode())
        assert not file.is_file() or not found_in(file.read_bytes()), file


def in_variables(url: str) -> dict[str, str]:
    return {"OPENSEARCH_URL": url, "OPENSEARCH_USERNAME": USER, "OPENSEARCH_PASSWORD": SECRET}


def in_address(url: str) -> dict[str, str]:
    return {"OPENSEARCH_URL": url.replace("://", f"://{USER}:{quote(SECRET, safe='')}@")}


def test_what_works(langshift, client, cluster_url, authority, data, index_name, tmp_path):
    with proxy(cluster_url, tls=authority.server, credentials=(USER, SECRET)) as (url, _):
        # The longest of them by the program, whose processes the watch then sees.
        langshift.by = command_line.program
        load = ("ingest", data / "corpus.jsonl", "--index", index_name, "--encoder", "use-m", "--json")
        assert langshift(*load, **in_variables(url)) == 0
        langshift.by = command_line.langshift
        # The address is what commands write and tell most.
        env = in_address(url)
        assert langshift("ingest", data / "bad.jsonl", "--index", f"{index_name}-bad", **env) == 3
        assert langshift("dead-letters", "list", "--json", **env) == 0
        assert langshift("ingest", "--dead-letters", "--index", f"{index_name}-bad", **env) == 3
        assert langshift("search", index_name, "Ebbe und Flut", "--json", **env) == 0
        replay = ("evaluate", "replay", data, "--index", index_name, "--json")
        assert langshift(*replay, "--output", tmp_path / "out", **env) == 0
        assert langshift("evaluate", "compare", tmp_path / "out", "--report", tmp_path / "out", **env) == 0
        assert langshift("doctor", **env) == 0
        assert langshift("pipeline", "install", index_name, "--json", **env) == 0
        assert langshift("pipeline", "verify", index_name, "--json", **env) == 0
        assert langshift("retune", index_name, "--alpha", "0.5", "--json", **env) == 0
        assert langshift("rollback", index_name, "--json", **env) == 0
        assert langshift("pipeline", "remove", index_name, **env) == 0
        assert langshift("index", "list", "--json", **env) == 0
        assert langshift("index", "describe", index_name, **env) == 0
        assert langshift("index", "drop", index_name, "--version", "2", "--yes", **env) == 0
        old = made_by_others(client, f"{index_name}-old")
        assert langshift("index", "audit", *old, "--json", **env) == 0
        assert langshift("adopt", *old, "--name", f"{index_name}-adopted", "--json", **env) == 0
    kept: list[Any] = [client.indices.get(index=f"{index_name}*")]
    kept.append(client.search(index=f"{index_name}*", body={"size": 100}))
    kept.append(client.ingest.get_pipeline(params={"ignore": 404}))
    kept.append(client.cluster.state(metric="metadata")["metadata"].get("stored_scripts"))
    assert (tmp_path / "home").is_dir()
    assert not found_in(json.dumps(kept, ensure_ascii=False).encode())


def made_by_others(client: OpenSearch, index: str) -> tuple[str, ...]:
    """An index with vectors, without langshift in its making; as the arguments that adopt it."""
    hnsw = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    vector = {"type": "knn_vector", "dimension": 512, "method": hnsw}
    properties = {"vec": vector, "body": {"type": "text"}}
    settings = {"index.knn": True}
    client.indices.create(index=index, body={"settings": settings, "mappings": {"properties": properties}})
    for number, text in enumerate(("Das Meer steigt und fällt zweimal am Tag.", "The tide rises twice a day.")):
        unit = [float(place == number) for place in range(512)]
        client.index(index=index, id=str(number), body={"body": text, "vec": unit}, params={"refresh": "true"})
    return index, "--vector-field", "vec", "--text-field", "body"


def with_authorization(status: int) -> Refuse:
    """Answers that repeat the header, and the password in it, in all ways that a server may think of."""

    def refuse(_method: str, path: str, headers: Any, _body: bytes) -> tuple[int, bytes] | None:
        if status == 500 and not path.endswith(("_bulk", "_search", "_cluster/health")) and "_bulk?" not in path:
            return None
        said = f"cannot serve Authorization: {headers['Authorization']} ({SECRET}) {quote(SECRET, safe='')}"
        error = {"type": "security_exception", "reason": said}
        return status, json.dumps({"error": {"root_cause": [error], **error}, "status": status}).encode()

    return refuse


def malformed(path: str, status: int, body: bytes) -> tuple[int, bytes]:
    """An answer that is no JSON, and repeats the header."""
    pair = b64encode(f"{USER}:{SECRET}".encode()).decode()
    return (status, body) if path == "/" else (200, f'{{"authorization": "Basic {pair}", "password": {SECRET}'.encode())


@contextmanager
def unreachable(*_: object) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield f"https://localhost:{port}"


def refusing(*, refuse: Refuse | None = None, rewrite: Rewrite | None = None) -> Callable[..., Any]:
    @contextmanager
    def open_(cluster_url: str, tls: ssl.SSLContext) -> Iterator[str]:
        with proxy(cluster_url, tls=tls, credentials=(USER, SECRET), refuse=refuse, rewrite=rewrite) as (url, _):
            yield url

    return open_


@contextmanager
def other_password(cluster_url: str, tls: ssl.SSLContext) -> Iterator[str]:
    with proxy(cluster_url, tls=tls, credentials=(USER, "another")) as (url, _):
        yield url


@contextmanager
def no_tls(cluster_url: str, _: ssl.SSLContext) -> Iterator[str]:
    with proxy(cluster_url) as (url, _):
        yield url.replace("http:", "https:")


@pytest.mark.parametrize(
    ("given", "trouble", "says"),
    [
        pytest.param(in_variables, unreachable, "cannot be reached", id="unreachable"),
        pytest.param(in_address, no_tls, "does not use TLS", id="no-tls"),
        pytest.param(in_variables, other_password, "rejects the user name or password", id="401"),
        pytest.param(
            in_address,
            refusing(refuse=with_authorization(401)),
            "rejects the user name or password",
            id="401-repeating",
        ),
        pytest.param(in_address, refusing(refuse=with_authorization(403)), REPEATED, id="403"),
        pytest.param(in_variables, refusing(refuse=with_authorization(500)), REPEATED, id="500"),
        pytest.param(in_address, refusing(rewrite=malformed), "Basic ***", id="malformed"),
    ],
)
def test_what_fails(langshift, cluster_url, authority, data, index_name, given, trouble, says):
    with trouble(cluster_url, authority.server) as url:
        env = given(url)
        load = ("ingest", data / "corpus.jsonl", "--index", index_name, "--patience", "0.2")
        assert langshift(*load, **env) == 1
        assert says in langshift.said
        assert langshift("search", index_name, "words", "--mode", "lexical", **env) == 1
        langshift("doctor", "--json", **env)


def test_what_fails_of_an_index_that_is_there(langshift, client, cluster_url, authority, index_name):
    say = with_authorization(403)
    parts = ("_reindex", "_ingest/pipeline", "_bulk", "_stats", "_settings?", "_count")
    old, name = made_by_others(client, f"{index_name}-old"), f"{index_name}-adopted"
    with proxy(cluster_url, tls=authority.server, credentials=(USER, SECRET)) as (url, server):
        env = in_address(url)
        assert langshift("adopt", *old, "--name", name, **env) == 0
        server.refuse = lambda *request: say(*request) if any(part in request[1] for part in parts) else None
        for command in (
            ("retune", name, "--alpha", "0.5"),
            ("rollback", name),
            ("pipeline", "install", name),
            ("pipeline", "verify", name, "--json"),
            ("index", "list"),
            ("index", "describe", name, "--json"),
            ("adopt", *old, "--name", name, "--if-exists", "new-version"),
        ):
            assert langshift(*command, **env) in (1, 2), command
            assert "Traceback" not in langshift.said


@pytest.mark.parametrize("status", [429, 500])
def test_what_fails_in_the_middle(langshift, cluster_url, authority, data, index_name, tmp_path, status):
    """A load is in its journal and log by then, a replay in its files, a document in the dead letters."""
    with proxy(cluster_url, tls=authority.server, credentials=(USER, SECRET)) as (url, server):
        env = in_variables(url)
        assert langshift("ingest", data / "corpus.jsonl", "--index", index_name, **env) == 0
        say = with_authorization(status)
        server.refuse = lambda *request: say(*request) if "_search" in request[1] and b"knn" in request[3] else None
        replay = ("evaluate", "replay", data, "--index", index_name, "--output", tmp_path / "out")
        assert langshift(*replay, "--json", **env) == 1
        assert REPEATED in (tmp_path / "out" / "per-query.jsonl").read_text()
        server.refuse = lambda *request: say(*request) if "_bulk" in request[1] else None
        append = ("ingest", data / "bad.jsonl", "--index", index_name, "--if-exists", "append", "--patience", "0.2")
        assert langshift(*append, **env) == 1
        server.refuse = None
        server.rewrite = refused_items
        assert langshift(*append, **env) in (1, 3)
    (log,) = (tmp_path / "home").rglob("load.log")
    assert REPEATED in log.read_text()


def refused_items(path: str, status: int, body: bytes) -> tuple[int, bytes]:
    """Every document is refused, with the header in the reason."""
    if "_bulk" not in path:
        return status, body
    document = json.loads(body)
    pair = b64encode(f"{USER}:{SECRET}".encode()).decode()
    for item in document["items"]:
        (of,) = item.values()
        of |= {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": f"Basic {pair}, {SECRET}"}}
    return status, json.dumps(document | {"errors": True}).encode()


def test_the_console(langshift, cluster_url, authority, data, index_name, tmp_path):
    paths = ("/search", f"/search?q=Ebbe&left={index_name}&right={index_name}", "/indices", f"/indices/{index_name}",
             "/evaluations")  # fmt: skip
    with proxy(cluster_url, tls=authority.server, credentials=(USER, SECRET)) as (url, server):
        env = in_address(url)
        assert langshift("ingest", data / "corpus.jsonl", "--index", index_name, **env) == 0
        env |= {"OPENSEARCH_CA_FILE": str(authority.file), "LANGSHIFT_DEBUG": "1"}
        with serving(home=tmp_path / "home", **env) as console, console.client() as browser:
            for trouble in ({}, *({"refuse": with_authorization(status)} for status in (403, 500)),
                            {"rewrite": malformed}, {"refuse": with_authorization(401)}):  # fmt: skip
                server.refuse, server.rewrite = trouble.get("refuse"), trouble.get("rewrite")
                for path in paths:
                    answer = browser.get(path)
                    assert trouble or answer.status_code == 200, (path, answer.text)
                    assert not found_in(unescape(answer.text).encode() + str(answer.headers).encode()), path
            code, said = console.stop()
    assert code == 0
    assert not found_in(said.encode())
    assert "Traceback" not in said


@pytest.mark.parametrize("status", [None, 400, 401, 500])
def test_the_key_of_an_embeddings_server(langshift, cluster_url, data, index_name, status):
    key = f"{MARK}-key"
    with embeddings_server() as server:
        server.key = key if status != 401 else "another"
        if status in (400, 500):
            server.always = reply(status, {"error": {"message": f"cannot serve Bearer {key}, {key}"}})
        env = {"LANGSHIFT_ENCODER_API_KEY": key, "OPENSEARCH_URL": cluster_url}
        load = ("ingest", data / "corpus.jsonl", "--index", index_name, "--encoder", server.name)
        load += ("--alpha", "0")
        assert langshift(*load, **env) == (1 if status else 0)

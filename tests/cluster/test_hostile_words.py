"""Real commands over hostile documents, queries, folders and letters: nothing of them commands a terminal."""

import json

import pytest
from command_line import langshift
from embeddings_server import embeddings_server
from given_data import write_lines
from hostile import HOSTILE, require_harmless, terminal

from langshift.plugin.inventory import drop_all

TEXTS = [text for text in HOSTILE.values() if "\udc9b" not in text]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server():
    with embeddings_server() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset whose folder, ids and texts are hostile."""
    made = tmp_path_factory.mktemp("data") / "a\x1b[2Jb [red] \x9b"
    made.mkdir()
    lines = [
        {"_id": f"{n}{text}", "title": text, "text": f"sun {text}", "language": "en"} for n, text in enumerate(TEXTS)
    ]
    write_lines(made / "corpus.jsonl", [*lines, {"_id": "bad\x1b[2J", "text": 5, "n\x1b[45m": 1}])
    write_lines(made / "queries.jsonl", [{"_id": text, "text": text, "language": "en"} for text in TEXTS])
    qrels = "".join(f"{json.dumps(text)[1:-1]}\t0\t1\n" for text in TEXTS)
    (made / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def name(client, cluster_url, folder, home, server):
    name = "hostile-words"
    drop_all(client, name)
    load = ("ingest", folder / "corpus.jsonl", "--index", name, "--encoder", server.name, "--alpha", "0")
    done = langshift(*load, url=cluster_url, LANGSHIFT_HOME=home)
    assert done.returncode in (0, 3), done
    for shown in (done.stdout, done.stderr):
        require_harmless(shown)
    yield name
    drop_all(client, name)


@pytest.mark.parametrize("styled", [True, False], ids=["terminal", "pipe"])
def test_no_command_lets_what_data_holds_reach_a_terminal(client, name, folder, home, server, cluster_url, styled):
    meta = client.indices.get_mapping(index=name)[f"{name}-v0001"]["mappings"]["_meta"]
    hostile = {**meta, "langshift": {**meta["langshift"], "encoder": "a\x1b[2J [/] \x9b"}}
    wrong = {**meta, "langshift": {**meta["langshift"], "method": "a\x1b[2J\x9b\r"}}
    for number, of in ((7, hostile), (8, wrong)):
        client.indices.delete(index=f"{name}-v000{number}", ignore_unavailable=True)
        client.indices.create(index=f"{name}-v000{number}", body={"mappings": {"_meta": of}})
    commands = [
        *(("search", name, text, "--size", "20") for text in TEXTS),
        ("search", name, TEXTS[0], "--explain", "--show-request"),
        ("search", name, TEXTS[3], "--json", "--show-request"),
        ("search", name, "words", "--filter", f"language={TEXTS[1]}"),
        ("index", "list"),
        ("index", "list", "--json"),
        ("index", "describe", name),
        ("index", "describe", f"{name}-v0007"),
        ("index", "describe", f"{name}-v0008"),
        ("dead-letters", "list"),
        ("dead-letters", "list", "--json"),
        ("dataset", "check", folder),
        ("dataset", "check", folder, "--json"),
        ("doctor",),
        ("ingest", folder / "queries.jsonl", "--index", name, "--encoder", "given"),
        ("ingest", folder / "corpus.jsonl", "--index", name, "--encoder", server.name, "--alpha", "0"),
    ]
    for command in commands:
        with terminal(styled=styled) as written:
            done = langshift(*command, url=cluster_url, LANGSHIFT_HOME=home)
        assert "unexpected" not in written.getvalue() + done.stderr, (command, written.getvalue(), done)
        require_harmless(written.getvalue(), styled=styled)
        for shown in (done.stdout, done.stderr):
            require_harmless(shown)

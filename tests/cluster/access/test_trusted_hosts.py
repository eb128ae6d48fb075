"""What an index names as its encoder is told no query, text or key, unless a person has named it or trusts it."""

import json
import uuid
from types import SimpleNamespace

import click
import pytest
from chat_server import chat_server
from command_line import langshift, refusal
from console_process import serving
from data_folder import write_dataset
from embeddings_server import MODEL, EmbeddingsServer
from given_data import write_lines
from model_http import serving as answering
from reencoded_index import vectors_of
from shifted_index import saved
from small_old_index import ADOPTED, old_index

import langshift as package
from langshift.cli import root
from langshift.errors import UsageError
from langshift.plugin import metadata

KEYS = {f"LANGSHIFT_{kind}_API_KEY": f"{kind}-secret" for kind in ("ENCODER", "RERANKER", "GENERATOR")}
CARRIED = f"Bearer {KEYS['LANGSHIFT_ENCODER_API_KEY']}"
TAGS, GROUPS = ("en", "de", "th"), 14


class Sink(EmbeddingsServer):
    """A server that notes each connection, whatever is sent on it."""

    connections = 0

    def get_request(self):
        self.connections += 1
        return super().get_request()


@pytest.fixture(scope="module")
def sink():
    with answering(Sink()) as server:
        yield server


@pytest.fixture(scope="module")
def generator():
    with chat_server(lambda _: "7") as server:
        yield server


def write_corpus(folder):
    """A dataset with answers and groups."""
    documents = {
        f"{n}-{tag}": (tag, f"{n}", f"Passage {n} in {tag} on {n * 7}.") for n in range(GROUPS) for tag in TAGS
    }
    queries = {f"q{n}-{tag}": (tag, f"{n}", None, f"Passage {n} in {tag}?") for n in range(GROUPS) for tag in TAGS}
    qrels = {name: {f"{group}-{tag}": 1 for tag in TAGS} for name, (_, group, *_) in queries.items()}
    data = write_dataset(folder / "data", documents, queries, qrels)
    write_lines(data / "answers.jsonl", [{"query": name, "answers": ["7"]} for name in queries])
    return data


@pytest.fixture(scope="module")
def made(client, cluster_url, sink, generator, tmp_path_factory):
    """Indices that name the sink, and files that do: what the commands of ``ASKING`` and ``OTHERS`` are given."""
    folder, stem = tmp_path_factory.mktemp("trusted"), f"langshift-test-{uuid.uuid4().hex[:8]}"
    data, vectors = write_corpus(folder), saved(folder, vectors_of(sink))
    names = {name: f"{stem}-{name}" for name in ("index", "other", "back", "dropped", "old")}
    line = {"_id": "new", "text": "A new one.", "language": "de"}
    files = {
        "one": write_lines(folder / "one.jsonl", [line]),
        "bad": write_lines(folder / "bad.jsonl", [line, {"_id": "bad", "text": 7}]),
        "queries": write_lines(folder / "queries.jsonl", [{"text": "A query.", "language": "de"}] * 3),
        "pairs": write_lines(folder / "pairs.jsonl", [{tag: f"Item {n} {tag}" for tag in TAGS} for n in range(120)]),
    }

    def done(*arguments, code=0, **variables):
        ended = langshift(*arguments, url=cluster_url, **variables)
        assert ended.returncode == code, ended
        return ended

    load = "--encoder", sink.name, "--vectors", vectors, "--alpha", 1
    for name in ("index", "other", "back", "dropped"):
        done("ingest", data / "corpus.jsonl", "--index", names[name], *load)
    done("reencode", names["back"], "--encoder", "use-m", "--alpha", 0)
    client.index(index=names["back"], id="new", body={"text": {"de": "A new one."}, "language": "de"}, refresh=True)
    # A load that took the encoder from the index, while that was trusted.
    append = "ingest", files["bad"], "--index", names["index"], "--if-exists", "append"
    done(*append, code=3, LANGSHIFT_TRUSTED_HOSTS=sink.url)
    with old_index(client, names["old"], {"body": {"type": "text"}}, {"a": {"body": "A text."}}):
        client.indices.put_mapping(index=names["old"], body={"_meta": {"langshift": {"encoder": sink.name}}})
        yield SimpleNamespace(folder=folder, data=data, vectors=vectors, generator=generator.name, **names, **files)
    for index in client.indices.get(index=f"{stem}*", params={"expand_wildcards": "all"}):
        client.indices.delete(index=index)


#: Commands that encode something with the encoder of an index, or of a file.
ASKING = {
    "search": lambda it: [it.index, "Passage"],
    "search (by words)": lambda it: [it.index, "Passage", "--mode", "lexical"],
    "search (reranked)": lambda it: [it.index, "Passage", "--rerank", "features"],
    "search (a version)": lambda it: [f"{it.index}-v0001", "Passage"],
    "anchors calibrate": lambda it: [it.index, "--sample", 30],
    "evaluate replay": lambda it: [it.data, "--index", it.index],
    "evaluate replay (settings)": lambda it: [it.data, "--index", it.index, "--setting", "dense", "--mode", "lexical"],
    "evaluate rag": lambda it: [it.data, "--index", it.index, "--context", "retrieved:5"],
    "rerank fit": lambda it: [it.data, "--index", it.index, "--output", it.folder / "own.json"],
    "rerank label": lambda it: [it.data, "--index", it.index, "--generator", it.generator,
                                "--output", it.folder / "labels"],
    "dataset make": lambda it: [it.index, it.folder / "made", "--generator", it.generator, "--rerank", it.generator],
    "vectors check": lambda it: [it.vectors, "--pairs", it.pairs],
    "vectors tune": lambda it: [it.vectors, "--pairs", it.pairs, "--sample", 100],
    "ingest (dead letters)": lambda it: ["--dead-letters", "--index", it.index],
    "rollback": lambda it: [it.back],
    "retune (with a gate)": lambda it: [it.index, "--alpha", 0.5, "--gate", it.data],
    "ingest (append)": lambda it: [it.one, "--index", it.index, "--if-exists", "append"],
    "ingest (new version)": lambda it: [it.one, "--index", it.index, "--if-exists", "new-version"],
    "ingest (replace)": lambda it: [it.one, "--index", it.index, "--if-exists", "replace"],
    "ingest (resume)": lambda it: [it.one, "--index", it.index, "--resume", "--if-exists", "append"],
}  # fmt: skip
#: Commands that are given an index or a file that names the sink, and need no encoder, or name their own.
OTHERS = {
    "index list": lambda _: [],
    "index describe": lambda it: [it.other],
    "pipeline install": lambda it: [it.other],
    "pipeline verify": lambda it: [it.other],
    "pipeline remove": lambda it: [it.other],
    "retune": lambda it: [it.other, "--alpha", 0.25],
    "rollback": lambda it: [it.other],
    "reencode": lambda it: [it.other, "--encoder", "use-m", "--alpha", 0],
    "index audit": lambda it: [it.old, "--text-field", "body", *ADOPTED],
    "adopt": lambda it: [it.old, "--name", f"{it.other}-adopted", "--text-field", "body", *ADOPTED],
    "dead-letters list": lambda it: ["--index", it.other],
    "index drop": lambda it: [it.dropped, "--yes"],
    "doctor": lambda _: [],
}
#: Arguments by which commands are given an index, and files of others that name an encoder.
GIVEN = {"name", "names", "index", "old"}


def words(command):
    """The command's own words, without what tells it from others of its kind."""
    return command.partition(" (")[0].split()


def leaves(group, path=()):
    """Every command, by its words."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def test_every_command_that_is_given_an_index_is_tried():
    given = {path for path, command in leaves(root) if GIVEN & {one.name for one in command.params}}
    assert given <= {" ".join(words(command)) for command in (*ASKING, *OTHERS)}


def arguments(command, it, commands):
    return [*words(command), *commands[command](it)]


@pytest.mark.parametrize("command", ASKING)
def test_a_command_refuses_before_anything_is_sent_and_asks_who_is_trusted(made, sink, cluster_url, command):
    before = sink.connections
    done = langshift(*arguments(command, made, ASKING), url=cluster_url, **KEYS)
    assert sink.connections == before
    assert done.returncode == 2, done
    said = done.stderr.splitlines()[-1]
    file = command in ("vectors check", "vectors tune")
    name = f"The file {made.vectors}" if file else f"The index {made.back}-v0001" if command == "rollback" else None
    for part in (
        name or f"The index {made.index}",
        f" names an embedding server at {sink.url}, but you have not, so nothing was sent there: if you trust it, give "
        f"--encoder '{sink.name}' (encoder= in Python), or add {sink.url} to LANGSHIFT_TRUSTED_HOSTS.",
    ):
        assert part in said, (part, said)
    # A calibration sends thousands of searches, by what the first of these commands searches with.
    if command != "anchors calibrate":
        sink.keys.clear()
        trusted = f"models.example.com, localhost, 127.0.0.1:{sink.server_port}"
        done = langshift(*arguments(command, made, ASKING), url=cluster_url, **KEYS, LANGSHIFT_TRUSTED_HOSTS=trusted)
        assert "nothing was sent" not in done.stderr
        assert set(sink.keys) == {CARRIED}, done


@pytest.mark.parametrize("way", ["upper case", "with a path", "https:", "a foreign address"])
def test_whatever_the_address_in_an_index_looks_like(client, made, sink, cluster_url, way):
    planted = {
        "upper case": f"http:HTTP://LOCALHOST:{sink.server_port}#{MODEL}",
        "with a path": f"{sink.url}/v1/embeddings#{MODEL}",
        "https:": f"https://127.0.0.1:{sink.server_port}#{MODEL}",
        "a foreign address": f"http:http://trusted.example%00@127.0.0.1:{sink.server_port}#{MODEL}",
    }[way]
    version = f"{made.index}-v0001"
    usual = metadata.read_metadata(client, version)[metadata.FINGERPRINT]
    metadata.change(client, version, {metadata.FINGERPRINT: {**usual, "encoder": planted}})
    before = sink.connections
    try:
        trusted = "trusted.example,localhost,127.0.0.1:1,https://localhost:1"
        refused = langshift("search", made.index, "x", url=cluster_url, **KEYS, LANGSHIFT_TRUSTED_HOSTS=trusted)
    finally:
        metadata.change(client, version, {metadata.FINGERPRINT: usual})
    assert refused.returncode == 2
    assert "embedding server" in refusal(refused)
    assert sink.connections == before


def test_the_python_api_refuses_too_and_takes_its_argument(made, sink, cluster_env, monkeypatch):
    monkeypatch.setenv("OPENSEARCH_URL", cluster_env)
    before = sink.connections
    with pytest.raises(UsageError, match=r"but you have not, so nothing was sent there: .* \(encoder= in Python\)"):
        package.search(made.index, "Passage")
    with pytest.raises(UsageError, match="nothing was sent there"):
        package.open_index(made.index)
    assert sink.connections == before
    assert package.search(made.index, "Passage", encoder=sink.name).hits


def test_the_console_shows_the_sentence_and_asks_no_one(made, sink, cluster_url, tmp_path):
    searched = f"q=Passage&left={made.index}&right={made.index}-v0001"
    paths = [
        *(f"/search?{searched}&left.mode={mode}" for mode in ("dense", "lexical", "hybrid", "anchored", "auto")),
        f"/search?{searched}&left.rerank=1&right.alpha=0.3", f"/search/hit?{searched}&side=left&id=0-en",
        f"/search/passages?{searched}&side=left&id=0-en", f"/search/vectors?{searched}", "/indices",
        f"/indices/{made.index}", "/evaluations",
    ]  # fmt: skip
    with serving("--results", tmp_path, home=tmp_path, url=cluster_url, **KEYS) as console:
        before = sink.connections
        with console.client() as browser:
            answers = {path: browser.get(path) for path in paths}
    assert sink.connections == before
    assert "nothing was sent there" in answers[paths[0]].text
    assert f"add {sink.url} to LANGSHIFT_TRUSTED_HOSTS" in answers[paths[0]].text


def test_a_console_that_trusts_the_server_asks_it_and_sends_the_key(made, sink, cluster_url, tmp_path):
    sink.keys.clear()
    trusted = {"LANGSHIFT_TRUSTED_HOSTS": sink.url}
    with serving(home=tmp_path, url=cluster_url, **KEYS, **trusted) as console, console.client() as browser:
        page = browser.get(f"/search?q=Passage&left={made.index}&right={made.index}")
        assert (page.status_code, 'role="alert"' in page.text) == (200, False)
    assert set(sink.keys) == {CARRIED}


def test_doctor_shows_the_setting_and_what_cannot_be_read_is_refused(made, cluster_url):
    def shown(value):
        done = langshift("doctor", "--json", url=cluster_url, LANGSHIFT_TRUSTED_HOSTS=value)
        findings = json.loads(done.stdout)["findings"]
        (found,) = [one for one in findings if one["name"] == "LANGSHIFT_TRUSTED_HOSTS"]
        return found["status"], found["value"], found["remedy"]

    assert shown("") == ("ok", "not set: a server that only an index names is not asked", "")
    assert shown("models.example.com,http://10.0.0.5:8080") == (
        "ok", "http://10.0.0.5:8080, https://models.example.com:443", ""
    )  # fmt: skip
    wrong = (
        "LANGSHIFT_TRUSTED_HOSTS contains '*', which is not a host: write hosts separated by commas, such as "
        "models.example.com, models.example.com:8443, http://10.0.0.5:8080 or localhost:8080."
    )
    assert shown("*") == ("missing", "not usable", wrong)
    for command in (["search", made.index, "x"], ["serve", "--port", 0]):
        assert refusal(langshift(*command, url=cluster_url, LANGSHIFT_TRUSTED_HOSTS="*")) == wrong


@pytest.mark.parametrize("command", OTHERS)
def test_other_commands_ask_no_one(made, sink, cluster_url, command):
    before = sink.connections
    done = langshift(*arguments(command, made, OTHERS), url=cluster_url, **KEYS)
    assert sink.connections == before
    assert not any(word in done.stderr for word in ("Traceback", "Usage:", "nothing was sent")), done

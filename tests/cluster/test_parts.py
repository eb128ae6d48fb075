"""A load whose journal is in parts, here or in S3, becomes what a plain one becomes."""

import itertools
import json
import random
import re

import orjson
import pytest
from command_line import langshift
from faults import cut_before
from http_exchange import Reply
from parted import GIVEN, counted, letters_of, require_became, told, vectored
from several_files import made_lines, require_same, written

from langshift.errors import LangshiftError
from langshift.ingest.open_corpus import Files
from langshift.ingest.parts import run
from langshift.plugin.inventory import drop_all


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch):
    """Parts of seven lines, and buckets of forty."""
    monkeypatch.setattr(run, "LINES", 7)
    monkeypatch.setattr(run, "_LINES_OF_A_BUCKET", 40)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [(), ("--chunk", "sentences:1")])
def test_it_becomes_what_a_plain_load_becomes(became, tmp_path, seed, options):
    files, _ = written(tmp_path / "in", made_lines(seed))
    # In another order, too, in which others are the later ones.
    files = files[::-1] if seed else files
    plain, expected, others, likewise = became(*files, options=options)
    said, documents, letters, made = became(*files, state=tmp_path / "state", options=options)
    require_same(documents, expected)
    assert made == likewise
    assert told(letters) == told(others)
    assert counted(said) == counted(plain)
    assert said["state"] == str(tmp_path / "state")
    # Of a complete load only the dead letters are left.
    assert {one.name for one in (tmp_path / "state").iterdir() if not one.is_dir() or any(one.iterdir())} == {
        "load.json",
        "making.json",
        "dead",
    }


def test_what_is_added_to_an_index_becomes_what_a_plain_load_makes_of_it(became, tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    for path, seed in ((first, 1), (second, 2)):
        path.write_bytes(b"\n".join(map(orjson.dumps, made_lines(seed))))
    found = []
    for state in (None, tmp_path / "state"):
        name = became(first)[0]["name"]
        _, documents, letters, _ = became(second, state=state, options=("--if-exists", "append"), name=name)
        found.append((documents, [one for one in letters if one.corpus == str(second)]))
    (expected, others), (documents, letters) = found
    require_same(documents, expected)
    every, fewer = told(others), told(letters)
    assert fewer
    # Nobody knows any more whether a document was there that a later line deletes or writes.
    assert {one[3] for one in every if one not in fewer} <= {"missing_document"}
    assert [one for one in every if one in fewer] == fewer


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_parts_and_buckets_is_no_matter(became, monkeypatch, tmp_path, seed):
    chance = random.Random(seed)
    _, together = written(tmp_path / "in", made_lines(seed))
    _, expected, others, _ = became(together)
    usual = Files.read

    def shuffled(source, skip):
        rows = list(usual(source, skip))
        *blocks, last = [rows[start : start + 7] for start in range(0, len(rows), 7)]
        chance.shuffle(blocks)
        yield from itertools.chain(*blocks, last)

    monkeypatch.setattr(Files, "read", shuffled)
    journal = run.StateJournal
    late = journal.late_buckets
    monkeypatch.setattr(journal, "late_buckets", lambda self: chance.sample(found := late(self), len(found)))
    _, documents, letters, _ = became(together, state=tmp_path / "state")
    require_same(documents, expected)
    assert told(letters) == told(others)


def test_corpus_and_state_in_s3(became, store, monkeypatch, tmp_path):
    files, _ = written(tmp_path / "in", made_lines(0))
    for file in files:
        store.put(f"in/{file.name}", file.read_bytes())
    plain, expected, others, likewise = became(*files)
    monkeypatch.setattr(run, "LINES", 25)
    # Every ninth request breaks off.
    store.proxy.inject("", itertools.cycle([*[None] * 8, cut_before]))
    said, documents, letters, made = became(store.uri("in/*.jsonl*"), state=store.uri("state"))
    require_same(documents, expected)
    assert made == likewise
    names = {store.uri(f"in/{file.name}"): str(file) for file in files}
    assert told(letters, names.__getitem__) == told(others)
    assert counted(said) == counted(plain)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, vectored(made_lines(5)))))
    return path


@pytest.fixture
def plain(became, corpus):
    """What a plain load of the corpus becomes."""
    return became(corpus, options=GIVEN)


def test_what_the_cluster_has_lost_is_written_again(client, became, plain, corpus, monkeypatch, tmp_path):
    usual, lost = run.PartedRun._write, []

    def losing(self, target):
        usual(self, target)
        if not lost:
            client.indices.refresh(index=target.index)
            lost.extend(hit["_id"] for hit in client.search(index=target.index, size=5)["hits"]["hits"])
            for id in lost:
                version = client.get(index=target.index, id=id)["_version"]
                client.delete(index=target.index, id=id, params={"version": version, "version_type": "external_gte"})

    monkeypatch.setattr(run.PartedRun, "_write", losing)
    said, *found = became(corpus, state=tmp_path / "state", options=GIVEN)
    assert (len(lost), said["repaired"]) == (5, 5)
    require_became(said, found, plain)


def broken_off(*_):
    raise LangshiftError("Out.")


@pytest.fixture
def refused(cluster_url, index_name, corpus, monkeypatch):
    monkeypatch.setattr(run, "LINES", 25)

    def last_line(state, *options, given=corpus, name=index_name, stdin=None):
        load = ("ingest", given, "--index", name, *GIVEN, "--state", state, *options)
        done = langshift(*load, url=cluster_url, stdin=stdin)
        assert (done.returncode in (1, 2), done.stdout) == (True, ""), done.stderr
        return done.stderr.splitlines()[-1].removeprefix("Error: ")

    return last_line


def test_what_is_no_state_of_this_load_is_refused(
    client, cluster_url, refused, corpus, tmp_path, index_name, monkeypatch
):
    state = tmp_path / "state"
    assert refused(corpus.parent) == (
        f"{corpus.parent} holds no state of a load, but other files: give a folder of its own."
    )
    assert refused(state, given="-", stdin=corpus.read_bytes()) == (
        "Standard input cannot be resumed: give a file, or leave --state out."
    )
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file").startswith(f"The state {tmp_path / 'file'} cannot be written (")
    assert not client.indices.exists(index=index_name)
    with monkeypatch.context() as patch:
        patch.setattr(run.PartedRun, "write_late", broken_off)
        assert refused(state).startswith("Out. ")
    lines = f"A load of {corpus} into {index_name} with the state {state} is under way, or was interrupted after "
    lines = re.escape(lines) + r"\d+ lines: "
    assert re.fullmatch(f"{lines}continue it with --resume, or remove {state} to abandon it\\.", refused(state))
    assert refused(state, "--resume", name="another") == (
        f"{state} is the state of a load into {index_name}: give each load a folder of its own."
    )
    before = corpus.read_bytes()
    corpus.write_bytes(before + b'\n{"_id": "more", "text": "More"}')
    assert refused(state, "--resume") == (
        f"The load of {corpus} into {index_name} cannot be resumed, because the content of {corpus} changed: run it as "
        f"it was begun, or remove {state} to abandon it."
    )
    corpus.write_bytes(before)
    part = sorted((state / "parts").iterdir())[0]
    content = part.read_bytes()
    part.write_bytes(content[:-9])
    again = f"remove {part}, and its lines are loaded again."
    assert refused(state, "--resume") == f"{part} is damaged: {again}"
    part.write_bytes(content)
    late = state / "late" / part.name
    late.rename(tmp_path / "late")
    assert refused(state, "--resume") == f"{late} is missing: {again}"
    load = ("ingest", corpus, "--index", index_name, *GIVEN, "--state", state, "--resume")
    part.unlink()
    done = langshift(*load, url=cluster_url)
    assert done.returncode == 3, done.stderr
    assert re.fullmatch(
        f"{state} is the state of the load of {corpus} into {index_name}, which is complete: give another folder with "
        "--state, or remove this one once its dead letters are not needed any more.",
        refused(state, "--if-exists", "new-version"),
    )
    drop_all(client, index_name)


@pytest.mark.parametrize("where", ["here", "s3"])
def test_its_dead_letters_are_listed_and_sent_again(client, cluster_url, became, store, corpus, tmp_path, where):
    state = str(tmp_path / "state") if where == "here" else store.uri("state")
    said, _, letters, _ = became(corpus, state=state, options=GIVEN)
    listed = langshift("dead-letters", "list", "--state", state, "--json")
    groups = json.loads(listed.stdout)
    assert (groups["total"], groups["files"]) == (len(letters), [f"{state}/dead"])
    shown = langshift("dead-letters", "list", "--state", state).stdout
    name = said["name"]
    assert f"langshift ingest --dead-letters --index {name} --state {state}" in " ".join(shown.split())
    # Mended on the server: what was refused for its field goes through, what has no text never will.
    client.indices.put_mapping(index=name, body={"properties": {"mood": {"type": "keyword"}}})
    wrong = langshift("ingest", "--dead-letters", "--index", "another", "--state", state, url=cluster_url)
    assert wrong.returncode == 2
    assert f"{state} is the state of a load into {name}, not into another." in wrong.stderr
    again = langshift("ingest", "--dead-letters", "--index", name, "--state", state, "--json", url=cluster_url)
    assert again.returncode == 3, again.stderr
    figures = json.loads(again.stdout)
    assert figures["replayed"] == len(letters)
    assert figures["left"] == len(letters_of(state)) < len(letters)
    assert figures["superseded"] == len(letters) - figures["left"]
    nothing = langshift("dead-letters", "list", "--state", tmp_path / "nowhere")
    assert nothing.returncode == 2
    assert f"{tmp_path / 'nowhere'} holds no state of a load: " in nothing.stderr


def test_of_a_load_that_makes_no_index_the_dead_letters_stay(refused, corpus, tmp_path, index_name):
    corpus.write_bytes(b'{"_op": "update", "_id": "a", "year": 1}')
    state = tmp_path / "state"
    assert refused(state, "--encoder", "use-m") == (
        f"No index {index_name} was created, because it would hold no document: 1 of 1 line was refused (langshift "
        f"dead-letters list --state {state} shows why)."
    )
    assert [one.type for one in letters_of(state)] == ["missing_document"]


def test_a_state_that_may_not_be_written_is_refused_before_anything_is(client, refused, store, index_name):
    async def denied(exchange):
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        return Reply(403, body, "text/xml") if exchange.method == "PUT" else await exchange.forward()

    store.proxy.inject("", itertools.repeat(denied))
    state = store.uri("state")
    said = refused(state)
    assert said.startswith(f"{state}/load.json: access denied (")
    keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE,"
    assert said.endswith(f"): set {keys} to credentials that may read, list and write it.")
    assert not client.indices.exists(index=index_name)

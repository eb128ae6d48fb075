"""Loads of documents in chunks: every chunk of every document is there, and none of what a document was before.

LANGSHIFT_KILLS=100 gives 20,000 documents.
"""

import json
import random
import signal
import time
from dataclasses import replace

import pytest
from command_line import langshift
from embeddings_server import embeddings_server
from opensearchpy import helpers
from resumed_load import ResumedLoad
from toy_encoder import ToyEncoder

from langshift.commands.load_display import LoadDisplay
from langshift.debias.detector import open_detector
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.chunking import Chunking
from langshift.ingest.config import build_pipeline
from langshift.ingest.dead_letter_replay import replay
from langshift.ingest.load import load
from langshift.ingest.progress import last_line
from langshift.ingest.resume import LoadOptions
from langshift.plugin.metadata import USUAL
from langshift.plugin.versions import Target, live
from langshift.settings import Settings

from .test_faults_kills import KILLS

DOCUMENTS = 300 if KILLS < 100 else 20_000
KILLS_A_LOAD = 3
LONGEST = 3600  # seconds
CHUNKED = LoadOptions(fields=USUAL.chunked("paragraphs"))
APPEND = CHUNKED._replace(if_exists="append")


@pytest.fixture(scope="module")
def opened():
    return build_pipeline(ToyEncoder(), open_detector(), None, 0.0)


@pytest.fixture
def making(opened):
    return replace(opened, encoder=ToyEncoder())


def document(name, *paragraphs, **fields):
    return {"_id": name, "text": "\n\n".join(paragraphs), "language": "en", **fields}


def chunks_in(client, index):
    """What the index holds: document -> its chunks in order, each with its place and its text."""
    client.indices.refresh(index=index)
    found = {}
    for hit in helpers.scan(client, index=index, size=2000, query={"_source": {"excludes": ["embedding"]}}):
        place, name = hit["_source"]["chunk"], hit["_source"]["parent"]
        assert hit["_id"] == f"{name}#{place['ordinal']:04d}"
        (text,) = hit["_source"]["text"].values()
        found.setdefault(name, []).append((place["ordinal"], place["count"], text))
    return {name: sorted(some) for name, some in found.items()}


def texts_in(client, index):
    """Document -> the texts of its chunks, after checking that none is missing and none too many."""
    found = chunks_in(client, index)
    for name, some in found.items():
        assert [(ordinal, count) for ordinal, count, _ in some] == [(n, len(some)) for n in range(len(some))], name
    return {name: [text for _, _, text in some] for name, some in found.items()}


def test_documents_and_chunks_are_counted_and_checked(client, index_name, corpus, making):
    lines = [document("a", "One.", "Two.", "Three."), document("b", "Four."), document("c")]
    summary = load(client, corpus(*lines, "broken"), index_name, making, options=CHUNKED)
    assert texts_in(client, index_name) == {"a": ["One.", "Two.", "Three."], "b": ["Four."]}
    assert (summary.lines, summary.documents, summary.present, summary.chunks, summary.dead) == (4, 2, 2, 4, 2)
    assert (summary.languages, summary.cut, summary.to_dict()["chunks"]) == ({"en": 4}, 0, 4)
    assert last_line(summary) == (
        f"All 4 lines of {summary.corpus} are accounted for: 2 documents in 4 chunks on the server, checked, "
        f"2 dead letters (langshift dead-letters list --index {index_name} shows why)."
    )


def test_a_document_that_comes_again_with_fewer_chunks_leaves_none_behind(client, index_name, corpus, making):
    first = [document("a", "1", "2", "3"), document("b", "1", "2"), document("a", "4", "5"), document("c", "6")]
    summary = load(client, corpus(*first), index_name, making, options=CHUNKED)
    assert texts_in(client, index_name) == {"a": ["4", "5"], "b": ["1", "2"], "c": ["6"]}
    assert (summary.lines, summary.documents, summary.present, summary.chunks) == (4, 4, 3, 5)
    again = [document("b", "7"), document("c", "8", "9"), {"_op": "delete", "_id": "a"}, {"_op": "delete", "_id": "z"}]
    summary = load(client, corpus(*again), index_name, making, options=APPEND)
    assert texts_in(client, index_name) == {"b": ["7"], "c": ["8", "9"]}
    counts = (summary.documents, summary.replaced, summary.deleted, summary.not_found, summary.present, summary.chunks)
    assert counts == (2, 2, 1, 1, 2, 3)


def test_an_update_changes_each_chunk_and_a_new_text_cuts_the_document_anew(client, index_name, corpus, making):
    first = [document(name, "1", "2", "3", title="Old", price=1, size={"width": 1}) for name in "abcd"]
    load(client, corpus(*first), index_name, making, options=CHUNKED)
    making.encoder.seen.clear()
    lines = [
        {"_op": "update", "_id": "a", "price": 2, "size": {"height": 3}},
        {"_op": "update", "_id": "b", "title": "New"},
        {"_op": "update", "_id": "c", "text": "4\n\n5", "price": 3},
        {"_op": "update", "_id": "d", "text": "6\n\n7\n\n8\n\n9"},
        {"_op": "update", "_id": "d", "price": None},
        {"_op": "update", "_id": "z", "price": 3},
    ]
    summary = load(client, corpus(*lines), index_name, making, options=APPEND)
    assert sorted(making.encoder.seen) == sorted(
        [*(f"New {n}" for n in "123"), *(f"Old {n}" for n in "45"), *(f"Old {n}" for n in "6789")]
    )
    assert texts_in(client, index_name) == {
        "a": ["1", "2", "3"],
        "b": ["1", "2", "3"],
        "c": ["4", "5"],
        "d": ["6", "7", "8", "9"],
    }
    shown = {}
    for hit in helpers.scan(client, index=index_name):
        source = hit["_source"]
        shown.setdefault(source["parent"], set()).add(
            (source["title"]["en"], source.get("price"), json.dumps(source["size"]))
        )
    assert shown == {
        "a": {("Old", 2, '{"height": 3}')},
        "b": {("New", 1, '{"width": 1}')},
        "c": {("Old", 3, '{"width": 1}')},
        "d": {("Old", None, '{"width": 1}')},
    }
    counts = (summary.lines, summary.updated, summary.encoded_again, summary.dead, summary.documents, summary.present)
    assert counts == (6, 5, 3, 1, 0, 4)
    assert summary.chunks == 12


def test_what_the_cluster_has_lost_of_a_document_is_written_again(client, index_name, corpus, making, capsys):
    lost = []

    def lose(stage, documents, _seconds):
        if stage == "write" and documents and not lost:
            lost.append(index_name)
            index = f"{index_name}-v0001"
            version = {"version": client.get(index=index, id="a#0001")["_version"], "version_type": "external_gte"}
            client.delete(index=index, id="a#0001", params=version)

    lines = corpus(document("a", "1", "2", "3"), document("b", "4"))
    summary = load(client, lines, index_name, making, lose, CHUNKED)
    assert texts_in(client, index_name) == {"a": ["1", "2", "3"], "b": ["4"]}
    assert (summary.lines, summary.documents, summary.repaired, summary.languages) == (2, 2, 1, {"en": 4})
    assert capsys.readouterr().err == (
        "The final check found that the cluster has lost 1 document (_id 'a') that it had confirmed: writing them "
        "again.\n"
    )


def test_of_a_document_with_a_chunk_that_is_refused_nothing_stays_until_its_letter_goes_through(
    client, index_name, corpus, making
):
    load(client, corpus(document("a", "1", "2", "3"), document("b", "1")), index_name, making, options=CHUNKED)
    place = LoadWorkspace.of(Settings.from_env().home, client, index_name)
    mapping = {"properties": {"text": {"properties": {"eo": {"type": "integer"}}}}}
    client.indices.put_mapping(index=index_name, body=mapping)
    lines = corpus({**document("a", "4", "five", "6"), "language": "eo"}, document("b", "7", "8"))
    summary = load(client, lines, index_name, making, options=APPEND)
    assert (summary.dead, summary.present, summary.chunks) == (1, 1, 2)
    assert texts_in(client, index_name) == {"b": ["7", "8"]}
    letters = DeadLetters(place.dead_letters)
    (letter,) = letters
    letters.revise(lambda one: one._replace(document=one.document.replace(b"five", b"5")))
    target = open_target(client, index_name)
    chunking = replace(making, chunking=Chunking.parse("paragraphs"))
    with LoadDisplay(1) as progress:
        assert replay(client, letters, target, chunking, progress).indexed == 1
    assert (letter.id, texts_in(client, index_name)["a"]) == ("a", ["4", "5", "6"])


def open_target(client, name):
    there = live(client, name)
    return Target(name, there.index, "", created=False, live=there.index, if_exists="append", fields=there.fields)


class ChunkLoads:
    """A corpus of documents of 1 to 40 chunks that is loaded, changed in part, and compared with the index."""

    def __init__(self, server, index, folder, url):
        self.server, self.index, self.folder, self.url = server, index, folder, url
        self.expected, self.chance = {}, random.Random(6)
        self.kills = 0

    def load(self, name, lines, *options):
        """Load lines, killed now and then; the finished process's summary."""
        corpus = self.folder / f"{name}.jsonl"
        corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
        run = ResumedLoad(self.server, corpus, len(lines), self.index, self.folder / "home", self.url)
        run.command += options
        for number in range(KILLS_A_LOAD):
            process = run.start()
            # Rather early: most is left to the last run.
            enough = self.chance.randrange(len(lines)) * 2
            run.wait_for(process, lambda enough=enough, run=run: sum(map(len, run.server.asked)) > enough)
            time.sleep(self.chance.uniform(0, 0.3) * (number + 1))
            self.kills += run.end(process, signal.SIGKILL)[0] == -signal.SIGKILL
        process = run.start()
        out, err = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, err
        return json.loads(out)


def paragraphs(name, count):
    return [f"Paragraph {n} of {name}." for n in range(count)]


def test_sigkill_leaves_no_chunk_behind_and_loses_none(client, index_name, cluster_env, tmp_path):
    counts = {f"d{n}": n * 7919 % 40 + 1 for n in range(DOCUMENTS)}
    few = DOCUMENTS // 20
    with embeddings_server() as server:
        loads = ChunkLoads(server, index_name, tmp_path, cluster_env)
        begun = time.monotonic()
        lines = [document(name, *paragraphs(name, count)) for name, count in counts.items()]
        first = loads.load("all", lines, "--chunk", "paragraphs")
        expected = {name: paragraphs(name, count) for name, count in counts.items()}
        assert texts_in(client, index_name) == expected
        assert (first["present"], first["chunks"]) == (DOCUMENTS, sum(counts.values()))
        seconds = time.monotonic() - begun
        names = loads.chance.sample([name for name, count in counts.items() if count > 1], 2 * few)
        shorter, gone = names[:few], names[few:]
        lines = [{"_op": "delete", "_id": name} for name in gone]
        for place, name in enumerate(shorter):
            # Some as a whole, some by an update.
            left = paragraphs(f"{name} anew", loads.chance.randrange(1, counts[name]))
            expected[name] = left
            whole = document(name, *left)
            lines.append(whole if place % 2 else {"_op": "update", "_id": name, "text": whole["text"]})
        loads.chance.shuffle(lines)
        second = loads.load("changes", lines, "--if-exists", "append")
    expected = {name: some for name, some in expected.items() if name not in gone}
    assert texts_in(client, index_name) == expected
    assert second["lines"] == 2 * few
    assert (second["present"], second["chunks"]) == (few, sum(len(expected[name]) for name in shorter))
    held = client.count(index=index_name)["count"]
    assert held == sum(map(len, expected.values()))
    print(
        f"{DOCUMENTS:,} documents in {sum(counts.values()):,} chunks in {seconds:.0f} s, then {few:,} made shorter and "
        f"{few:,} deleted, under {loads.kills} kills: {len(expected):,} documents in {held:,} chunks, none missing, "
        "none left behind."
    )


@pytest.mark.usefixtures("client", "cluster_env")
def test_last_line_and_table_name_documents_and_chunks(index_name, corpus):
    done = langshift(
        "ingest", corpus(document("a", "One is here.", "Two is here.")), "--index", index_name,
        "--encoder", "use-m", "--chunk", "paragraphs",
    )  # fmt: skip
    assert done.returncode == 0, done
    assert "Indexed 1 document in 2 chunks into" in done.stdout
    assert done.stdout.splitlines()[0].split() == ["language", "chunks"]

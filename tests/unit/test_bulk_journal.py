"""The journal of a load: what it keeps, what is to be on the server by it, and what is refused."""

import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import UsageError
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import Acknowledged, Entry, LineRanges, Sampled

IDS = st.sampled_from(["a", "b", "c", "Ä", "\0", "z\0z"])
ROWS = st.builds(
    Acknowledged,
    st.integers(1, 20),
    IDS,
    st.sampled_from(["index", "index", "delete", "update", "superseded", "dead"]),
    st.just(0),
)
STEPS = st.lists(st.one_of(st.lists(ROWS, max_size=8), st.frozensets(st.integers(1, 20), max_size=4)), max_size=10)
RANGES = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12)), max_size=40)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loads" / "news" / "journal.sqlite"


@pytest.fixture
def journal(path):
    with Journal(path) as opened:
        yield opened


def rows(first, last, state="index"):
    return [Acknowledged(line, f"d{line}", state) for line in range(first, last + 1)]


@settings(max_examples=60)
@given(steps=STEPS)
def test_what_is_to_be_there_is_what_a_dictionary_of_lines_says(steps):
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.sqlite") as journal:
        model = {}
        for step in steps:
            if isinstance(step, frozenset):
                journal.forget(step)
                model = {line: row for line, row in model.items() if line not in step}
            else:
                sampled = [Sampled(row.line, row.id, row.id.encode()) for row in step if row.state == "index"]
                journal.acknowledge(step, sampled)
                model |= {row.line: row for row in step}
        expected = {}
        for row in sorted(model.values()):
            if row.state in ("index", "delete", "update"):
                expected[row.id] = row
        # What was updated last need only be there.
        left = [row for row in expected.values() if row.state != "delete"]
        there = sorted((row.id, row.line if row.state == "index" else 0) for row in left)
        handled = journal.handled()
        assert {line for line in range(25) if line in handled} == set(model)
        assert journal.handled_lines() == len(model)
        assert journal.documents() == (len(there), len(there))
        assert list(journal.entries()) == [Entry(id, line, id) for id, line in there]
        assert journal.sample() == [
            (Entry(id, line, id), id.encode()) for line, id in sorted(map(_turned, there)) if line
        ]


def _turned(pair):
    return pair[::-1]


def test_a_document_is_made_of_its_last_whole_line_and_the_updates_since(journal):
    states = ["index", "update", "index", "update", "superseded", "update"]
    journal.acknowledge([Acknowledged(line, "a", state) for line, state in enumerate(states, 1)])
    journal.acknowledge([Acknowledged(7, "b", "index"), Acknowledged(8, "c", "update"), Acknowledged(9, "d", "index")])
    assert journal.written_by(["a", "b", "c"]) == [3, 4, 6, 7]


def test_entries_come_also_while_lines_are_forgotten(journal, monkeypatch):
    monkeypatch.setattr("langshift.ingest.bulk.journal._FETCHED", 3)
    journal.acknowledge(rows(1, 7))
    entries = journal.entries()
    seen = [next(entries)]
    journal.forget([1, 2, 5, 6])
    seen += entries
    assert seen == [(f"d{line}", line, f"d{line}") for line in range(1, 8)]
    assert journal.handled().ranges() == [(3, 4), (7, 7)]


def test_a_document_in_chunks_is_as_many_entries_as_its_latest_line_wrote(journal):
    lines = [("a", "index", 3), ("b", "index", 2), ("c", "index", 1), ("a", "update", 2), ("b", "delete", 2)]
    lines += [("d", "index", 4), ("d", "dead", 0), ("e", "index", 2), ("e", "dead", 1), ("c", "superseded", 1)]
    journal.acknowledge([Acknowledged(line, *one) for line, one in enumerate(lines, 1)])
    there = [("a#0000", 0, "a"), ("a#0001", 0, "a"), ("c#0000", 3, "c"), *((f"d#000{n}", 6, "d") for n in range(4))]
    assert list(journal.entries()) == there
    assert journal.documents() == (3, 7)


def test_of_a_document_in_chunks_the_chunk_is_sampled_whose_vector_was_kept(journal):
    journal.acknowledge(
        [Acknowledged(1, "a", "index", 3), Acknowledged(2, "b", "index", 1)], [Sampled(1, "a#0001", b"v")]
    )
    assert journal.sample() == [(Entry("a#0001", 1, "a"), b"v")]


def test_what_was_begun_is_there_after_it_was_closed(path):
    identity = {"corpus": "corpus.jsonl", "index": "news-v0001"}
    with Journal(path) as journal:
        assert (journal.begun, journal.identity, journal.fact("base")) == (False, {}, None)
        journal.begin(identity, {"base": 1 << 60, "index": None})
        journal.set_fact("created", True)
        journal.acknowledge([*rows(1, 3), *rows(7, 9, "delete")])
    with Journal(path) as journal:
        assert (journal.begun, journal.identity) == (True, identity)
        assert [journal.fact(name) for name in ("base", "index", "created")] == [1 << 60, None, True]
        assert journal.handled().ranges() == [(1, 3), (7, 9)]
        journal.begin({**identity, "index": "news-v0002"}, {})
        assert journal.identity["index"] == "news-v0002"
        assert (len(journal.handled()), journal.documents(), journal.fact("base")) == (0, (0, 0), None)


def test_tallies_are_added_up_over_all_runs(path):
    with Journal(path) as journal:
        journal.acknowledge(rows(1, 2), tallies={"created": 2, "Ä": 1})
    with Journal(path) as journal:
        journal.acknowledge(rows(3, 3), tallies={"created": 1, "updated": 5})
        journal.forget([1, 2, 3])
        assert journal.tallies() == {"created": 3, "Ä": 1, "updated": 5}
        journal.begin({"corpus": "other.jsonl"}, {})
        assert journal.tallies() == {}


def test_of_a_finished_load_its_identity_and_summary_stay(path):
    identity, summary = {"corpus": "corpus.jsonl"}, {"present": 5_000, "tallies": {"created": 5_000}}
    with Journal(path) as journal:
        journal.begin(identity, {"base": 7})
        assert (journal.begun, journal.finished) == (True, None)
        journal.acknowledge(rows(1, 5_000), [Sampled(1, "d1", b"v")], {"created": 5_000})
        journal.finish(summary)
        assert journal.finished == (identity, summary)
    assert path.stat().st_size < 50_000
    with Journal(path) as journal:
        assert (journal.begun, journal.finished, journal.fact("base")) == (False, (identity, summary), None)
        assert (len(journal.handled()), journal.sample(), journal.tallies()) == (0, [], {})
        journal.begin(identity, {})
        assert (journal.begun, journal.finished) == (True, None)


def test_the_sample_is_the_same_two_hundred_lines_however_the_load_went(tmp_path):
    def sampled(name, stops, starts):
        for first in starts:
            with Journal(tmp_path / name / "journal.sqlite") as journal:
                for begin in range(first, first + stops, 500):
                    new = rows(begin, begin + 499)
                    journal.acknowledge(new, [Sampled(r.line, r.id, b"") for r in new if journal.wants(r.line)])
        with Journal(tmp_path / name / "journal.sqlite") as journal:
            assert sum(map(journal.wants, range(1, 20_001))) == 200
            return [each.line for each, _ in journal.sample()]

    at_once = sampled("at-once", 20_000, [1])
    assert len(at_once) == 200
    assert 60 < sum(line <= 10_000 for line in at_once) < 140
    assert sampled("in-parts", 5_000, [1, 5_001, 10_001, 15_001]) == at_once
    assert sampled("in-disorder", 5_000, [15_001, 5_001, 1, 10_001]) == at_once


def test_a_small_load_is_sampled_whole(journal):
    journal.acknowledge(
        rows(1, 150), [Sampled(line, f"d{line}", b"v") for line in range(1, 151) if journal.wants(line)]
    )
    assert len(journal.sample()) == 150


def test_threads_share_a_journal(journal):
    def work(first):
        for begin in range(first, first + 1_000, 100):
            journal.acknowledge(rows(begin, begin + 99))
            journal.handled_lines()

    threads = [threading.Thread(target=work, args=(1 + 1_000 * each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert journal.handled().ranges() == [(1, 4_000)]
    assert journal.documents() == (4_000, 4_000)


IDENTITY = {
    "corpus": "corpus.jsonl",
    "content": "c" * 64,
    "index": "news",
    "fingerprint": Fingerprint("use-m", "1", "", "", 512, True, "en", 1.0, "v1", "lid.176", "0.1.0").to_dict(),
    "least_confidence": 0.5,
}
CANNOT = "The load of corpus.jsonl into news cannot be resumed, because {} changed: run it as it was begun, "
REMEDY = "or remove {} to abandon it."


def changed(**parts):
    return {**IDENTITY, "fingerprint": {**IDENTITY["fingerprint"], **parts}}


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({**IDENTITY, "content": "d" * 64}, "the content of corpus.jsonl"),
        (
            {**changed(encoder="st:x", revision="2"), "content": "d" * 64},
            "the content of corpus.jsonl, the encoder (use-m, not st:x) and the revision (1, not 2)",
        ),
        (changed(alpha=0.5, query_prefix="q: "), "the query prefix ('', not q: ) and the alpha (1.0, not 0.5)"),
        (changed(vectors=None), "the vectors (v1, not none)"),
        ({**IDENTITY, "least_confidence": 0.25}, "the minimum confidence (0.5, not 0.25)"),
        (
            {**IDENTITY, "corpus": "other.jsonl", "content": None},
            "the corpus (corpus.jsonl, not other.jsonl) and the content of other.jsonl",
        ),
        ({**IDENTITY, "given_vectors": True}, "the given vectors (none, not True)"),
        ({**IDENTITY, "languages": ["en", "fr"]}, "the languages (none, not en and fr)"),
    ],
)
def test_what_changed_since_the_load_began_is_told(journal, path, now, told):
    journal.begin(IDENTITY, {})
    with pytest.raises(UsageError) as caught:
        journal.require_same(now)
    assert str(caught.value) == CANNOT.format(told) + REMEDY.format(path)


def test_the_same_load_goes_on_also_with_another_langshift(journal):
    journal.begin(IDENTITY, {})
    journal.require_same(changed(langshift="9.9"))


@given(steps=RANGES)
def test_lines_hold_what_a_set_would_hold(steps):
    lines, model = LineRanges(), set()
    for first, length in steps:
        lines.add(first, first + length)
        model.update(range(first, first + length + 1))
        assert len(lines) == len(model)
    assert {line for line in range(60) if line in lines} == model
    ranges = lines.ranges()
    assert [line for first, last in ranges for line in range(first, last + 1)] == sorted(model)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(ranges))


def test_lines_that_come_in_disorder_end_as_one_range():
    lines = LineRanges()
    for first in (*range(1, 10_001, 20), *range(11, 10_001, 20)):
        lines.add(first, first + 9)
    assert lines.ranges() == [(1, 10_000)]
    assert len(lines) == 10_000


def test_a_range_that_runs_backwards_is_refused():
    lines = LineRanges()
    with pytest.raises(ValueError, match=r"^3 to 2 is not a valid range\.$"):
        lines.add(3, 2)
    assert lines.ranges() == []

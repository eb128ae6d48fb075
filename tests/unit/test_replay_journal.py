"""The journal: what is kept, what is sent again, and what is refused."""

import json

import numpy as np
import pytest

from langshift.errors import UsageError
from langshift.evaluate.replay.journal import ReplayJournal, begin, resume, unfinished
from langshift.evaluate.replay.requests import QueryResult
from langshift.retrieval.hits import ScoringContext

IDENTITY = {"queries": "abc", "index": "news-v0001", "load": {"loop": "closed", "rate": None}}
GOOD = QueryResult("q1", (("d1", 0.5), ("d2", 0.1 + 0.2)), 3.0, 4.123456789, waited=1.5, places={"d1": (7, 20)})
REFUSED = QueryResult("q2", error="The cluster answered 400: no.")
LOST = QueryResult("q3", error="The cluster cannot be reached.", reached=False)


def journal(folder, *answers):
    with begin(folder, IDENTITY, "langshift evaluate replay") as opened:
        for answer in answers:
            opened.add(answer)


def test_answers_are_kept_as_they_were_and_those_without_a_cluster_sent_again(tmp_path):
    journal(tmp_path, GOOD, REFUSED, LOST)
    assert unfinished(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text()) == {
        "complete": False,
        "command": "langshift evaluate replay",
    }
    with resume(tmp_path, IDENTITY) as opened:
        assert opened.earlier_answers == {"q1": GOOD, "q2": REFUSED}
        assert opened.sent_again == 1
        opened.add(LOST._replace(error=None, reached=True))
    with resume(tmp_path, IDENTITY) as again:
        assert set(again.earlier_answers) == {"q1", "q2", "q3"}
        assert again.sent_again == 0


def test_the_vector_that_a_query_was_moved_to_is_kept(tmp_path):
    moved = np.float32([0.6, 0.8])
    journal(tmp_path, GOOD._replace(how=ScoringContext(bonus=0.25, moved=moved)))
    with resume(tmp_path, IDENTITY) as opened:
        how = opened.earlier_answers["q1"].how
    assert how.bonus == 0.25
    assert (how.moved == moved).all()


@pytest.mark.parametrize("cut", [b'{"query":"q9","rank', b'{"query":"q9"', b"{", b'{"query":"q9"}'])
def test_a_last_line_that_was_cut_off_is_taken_away(tmp_path, cut):
    journal(tmp_path, GOOD)
    path = tmp_path / "per-query.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + cut)
    with resume(tmp_path, IDENTITY) as opened:
        assert set(opened.earlier_answers) == {"q1"}
        assert path.read_bytes() == before
        opened.add(REFUSED)
    with resume(tmp_path, IDENTITY) as again:
        assert set(again.earlier_answers) == {"q1", "q2"}


def test_another_line_that_cannot_be_read_is_named(tmp_path):
    journal(tmp_path, GOOD, REFUSED)
    path = tmp_path / "per-query.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first[:20] + b"\n" + second)
    with pytest.raises(UsageError) as caught:
        resume(tmp_path, IDENTITY)
    assert str(caught.value) == (
        f"{path}, line 1, is not a valid answer: remove the line, and its query is sent again."
    )


def test_another_replay_is_refused_with_what_differs(tmp_path):
    journal(tmp_path, GOOD)
    other = {"queries": "abc", "index": "news-v0002", "load": {"loop": "open", "rate": 5.0}}
    with pytest.raises(UsageError) as caught:
        resume(tmp_path, other)
    assert str(caught.value) == (
        f"{tmp_path} contains an unfinished replay that differs from this one (index news-v0001, not news-v0002; "
        "load loop closed, not open; load rate none, not 5.0): name another --output, "
        "or resume it with the command that started it."
    )
    assert len((tmp_path / "per-query.jsonl").read_bytes().splitlines()) == 1


def test_what_says_what_is_replayed_must_be_readable(tmp_path):
    journal(tmp_path, GOOD)
    (tmp_path / "unfinished.json").write_text("{")
    with pytest.raises(UsageError) as caught:
        resume(tmp_path, IDENTITY)
    assert str(caught.value) == (
        f"{tmp_path / 'unfinished.json'} cannot be read: name another --output, or remove the file to start again."
    )


def test_a_new_replay_removes_what_an_earlier_one_left_and_nothing_else(tmp_path):
    for name in ("run.trec", "group-scores.jsonl", "per-query.jsonl", "result.json", "mine.txt"):
        (tmp_path / name).write_text("old")
    journal(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("mine.txt", "per-query.jsonl", "result.json", "unfinished.json"),
    ]
    assert (tmp_path / "per-query.jsonl").read_bytes() == b""
    ReplayJournal.finish(tmp_path)
    assert not unfinished(tmp_path)

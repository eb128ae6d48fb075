"""A query of several steps: what is sent, what is counted, and what ends it; no server is asked."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from opensearchpy.exceptions import TransportError

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery
from langshift.evaluate.replay import journal, requests
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.evaluate.replay.requests import PreparedQuery, send_query
from langshift.retrieval.calibration.stored import requested
from langshift.retrieval.hits import Anchor, RankedHits, ScoredDoc, ScoringContext
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import USUAL as SETTING
from langshift.retrieval.request import SearchSettings

USUAL = ScoringContext()


class Client:
    """Says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def _say(self, kind, body):
        self.asked.append((kind, body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def search(self, *, index, body):
        assert index == "news-v0001"
        return self._say("search", body)

    def msearch(self, *, index, body):
        assert index == "news-v0001"
        return self._say("msearch", body)


def response(*names):
    hits = [{"_id": name, "_score": 1.0} for name in names]
    return {"took": 3, "timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": hits}}


def two_steps(known=USUAL):
    """Asks for one thing, and then for two made from the answer."""
    (first,) = yield ({"query": "words"},)
    (name,) = (hit["_id"] for hit in first["hits"]["hits"])
    one, other = yield ({"near": name}, {"far": name})
    names = [hit["_id"] for part in (one, other) for hit in part["hits"]["hits"]]
    return RankedHits(tuple(ScoredDoc(name, 2.0 - rank, "en") for rank, name in enumerate(names)), known)


def request(begin=two_steps, scored=()):
    return PreparedQuery(0, "news-v0001", "q1", b"made before", begin, None, scored)


def test_the_first_step_is_sent_as_it_was_made_and_the_next_comes_from_the_answer():
    client = Client(response("a"), {"responses": [response("b", "c"), response("d")]})
    answer = send_query(client, request())
    (first, made), (second, lines) = client.asked
    assert (first, made) == ("search", b"made before")
    assert second == "msearch"
    assert [json.loads(line) for line in lines.splitlines()] == [{}, {"near": "a"}, {}, {"far": "a"}]
    assert answer.hits == (("b", 2.0), ("c", 1.0), ("d", 0.0))
    assert (answer.took, answer.error, answer.reached) == (6.0, None, True)
    assert answer.wall > 0


@pytest.mark.parametrize(
    ("second", "error", "reached"),
    [
        ({"responses": [response("b"), {"error": {"reason": "too much"}, "status": 429}]}, "429: too much", True),
        (TransportError(503, "busy", {}), "503: busy", True),
    ],
)
def test_a_second_step_that_fails_fails_the_query(second, error, reached):
    answer = send_query(Client(response("a"), second), request())
    assert answer.error == f"The cluster answered {error}."
    assert (answer.hits, answer.took, answer.wall, answer.reached) == ((), None, None, reached)


@pytest.mark.parametrize("second", [{"responses": 3}, {"took": 1}, "<html>", {"responses": [response("b"), {}]}])
def test_a_second_answer_that_cannot_be_read(second):
    answer = send_query(Client(response("a"), second), request())
    assert answer.error.startswith("The cluster gave an unreadable answer: ")
    assert answer.reached


def test_of_scores_that_only_the_run_knows_those_that_will_be_asked_for_are_kept():
    known = ScoringContext(bonus=0.5, run_scores={"a": 0.1, "b": 0.2, "c": 0.3})
    client = Client(response("a"), {"responses": [response("b"), response()]})
    answer = send_query(client, request(lambda: two_steps(known), scored=["c", "x", "a"]))
    assert answer.how == ScoringContext(bonus=0.5, run_scores={"c": 0.3, "a": 0.1})


@pytest.mark.parametrize(
    ("known", "written"),
    [
        (ScoringContext(), {}),
        (ScoringContext(bonus=0.1 + 0.2, depth=100), {"bonus": 0.1 + 0.2, "depth": 100}),
        (
            ScoringContext(
                ranges={"dense": (0.1, 0.9)}, anchors=(Anchor("d1", 0.5, 1.5, {"gap": 2.0}),), run_scores={"d2": 0.3}
            ),
            {
                "ranges": {"dense": [0.1, 0.9]},
                "anchors": [{"id": "d1", "trust": 0.5, "weight": 1.5, "evidence": {"gap": 2.0}}],
                "run_scores": {"d2": 0.3},
            },
        ),
    ],
)
def test_how_scores_were_put_together_is_written_compactly_and_read_again(known, written):
    assert json.loads(json.dumps(journal.to_dict(known))) == written
    assert journal.from_dict(json.loads(json.dumps(written))) == known


def test_a_query_is_asked_in_the_language_that_the_index_names_its_documents_by():
    queries = tuple(DatasetQuery(tag, "Moon", tag, None) for tag in ("nn", "arz", "zh"))
    index = SimpleNamespace(index=SimpleNamespace(index="news-v0001"))
    index.plan, index.resolve = lambda *_, **__: iter([({},)]), requested
    (way,) = ReplayPlan.of(
        [index], Dataset(Path("here"), {}, queries, {}), ReplayOptions([SearchSettings("lexical")])
    ).targets
    assert [question.language for question in way.questions] == ["no", "ar", "zh"]


def of_few_words(question, *_, **__):
    """The first step of a search that takes no more than two words."""
    if len(question.words.split()) > 2:
        raise UsageError("The query has too many words.")
    yield ({"words": question.words},)


def test_a_query_that_cannot_be_asked_fails_alone():
    searcher = SimpleNamespace(plan=of_few_words)
    asked, refused = requests.prepare(searcher, SETTING, [SearchQuery("why tides"), SearchQuery("one two three")], {})
    assert json.loads(asked.first) == {"words": "why tides"}
    answer = send_query(Client(), request(refused.begin))
    assert (answer.error, answer.hits) == ("The query has too many words.", ())
    assert (answer.reached, answer.sent, answer.wall) == (True, False, None)
    with pytest.raises(UsageError, match=r"^The query has too many words\.$"):
        requests.prepare(searcher, SETTING, [SearchQuery("one two three")] * 2, {})


def test_one_hit_more_is_asked_for_where_the_query_is_a_document():
    sizes = []

    def plan(*_, size, **__):
        sizes.append(size)
        return iter([({},)])

    index = SimpleNamespace(index=SimpleNamespace(index="news-v0001"), plan=plan, resolve=requested)
    queries = tuple(DatasetQuery(name, "The same words.", "en", None) for name in ("a", "b", "c"))
    dataset = Dataset(Path("here"), {}, queries, {}, own_documents=frozenset({"b"}))
    ReplayPlan.of([index], dataset, ReplayOptions([SearchSettings("lexical")]))
    assert sizes == [100, 101]


def test_more_requests_than_the_memory_may_hold_are_refused(monkeypatch):
    monkeypatch.setattr(requests, "MOST_BYTES", 10**9)
    known = {b"x": b"x", b"of another way": b"y"}
    searcher = SimpleNamespace(plan=lambda question, *_, **__: iter([({"words": question.words},)]))
    questions = [SearchQuery(words) for words in ("one", "two", "one")]
    assert len(requests.prepare(searcher, SETTING, questions, known)) == 3
    assert len(known) == 4
    monkeypatch.setattr(requests, "MOST_BYTES", 60)
    with pytest.raises(UsageError) as caught:
        requests.prepare(searcher, SETTING, [*questions, SearchQuery("three")], known)
    assert str(caught.value) == (
        "The requests for the first 3 of 4 queries fill 0 GB of memory: split the queries and replay the parts in "
        "turn, or replay fewer settings at a time."
    )

"""Rerankers on servers, by both interfaces: the right scores, or one sentence that names the server."""

import numpy as np
import pytest
from model_http import cut, reply
from reranking_server import MODEL, changed_entries, reranking_server, usual_score

from langshift.errors import LangshiftError, UsageError
from langshift.model_server import PATIENT
from langshift.retrieval.rerank.api import KEY, HttpReranker
from langshift.retrieval.rerank.rerankers import open_reranker

WORDS = "red fox runs"
TEXTS = ["a red hen", "the red fox runs away", "nothing of it", "fox", "a fox runs"]
EXPECTED = [usual_score(WORDS, text) for text in TEXTS]


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture(params=[True, False], ids=["TEI", "Cohere"])
def server(request):
    with reranking_server(tei=request.param) as server:
        yield server


@pytest.fixture
def reranker(server):
    return open_reranker(server.name)


def sentence(reranker, texts=TEXTS):
    with pytest.raises(LangshiftError) as caught:
        reranker.scores(WORDS, texts)
    return str(caught.value)


def test_scores_come_in_the_order_of_the_passages(reranker, server):
    scores = reranker.scores(WORDS, TEXTS)
    assert (scores.shape, scores.dtype) == ((5,), np.float64)
    assert scores.tolist() == EXPECTED
    assert reranker.name == server.name
    (asked,) = server.asked
    if server.tei:
        assert asked == {"query": WORDS, "texts": TEXTS, "raw_scores": True, "truncate": True}
    else:
        assert asked == {"model": MODEL, "query": WORDS, "documents": TEXTS, "top_n": 5}
    assert reranker.scores(WORDS, []).shape == (0,)


def test_many_passages_go_in_several_requests(reranker, server):
    texts = [f"fox {number}" for number in range(100)]
    assert reranker.scores(WORDS, texts).tolist() == [usual_score(WORDS, text) for text in texts]
    assert len(server.asked) == 4


def test_what_is_too_much_at_once_goes_in_halves(reranker, server):
    server.most = 2
    assert reranker.scores(WORDS, TEXTS).tolist() == EXPECTED


def test_a_passage_that_the_server_does_not_take_is_named(reranker, server):
    server.longest = 12
    assert sentence(reranker) == (
        f"The reranking server at {server.url} rejects the passage of 21 characters that begins with "
        "'the red fox runs away' (422: too many tokens): configure it to truncate long texts."
    )


def test_a_busy_server_is_asked_again(reranker, server):
    server.faults = [reply(429, {"error": "busy"}, Retry_After=0), reply(503, {}), cut]
    assert reranker.scores(WORDS, TEXTS).tolist() == EXPECTED


FAULTS = {
    "missing": (lambda entries: entries.pop(), "gave 4 scores for 5 passages; passage 2 has none."),
    "double": (lambda entries: entries[1].update(index=entries[0]["index"]), "gave passage 1 of 5 two scores"),
    "out of range": (lambda entries: entries[0].update(index=5), "gave a score to passage 5 of 5"),
    "below 0": (lambda entries: entries[0].update(index=-1), "gave a score to passage -1 of 5"),
    "no index": (lambda entries: entries[0].pop("index"), "gave a score to passage None of 5"),
    "a bool": (lambda entries: entries[0].update(index=True), "gave a score to passage True of 5"),
    "one too many": (lambda entries: entries.append({**entries[0], "index": 7}), "gave a score to passage 7 of 5"),
}


@pytest.mark.parametrize(("change", "said"), FAULTS.values(), ids=FAULTS)
def test_scores_that_belong_to_no_passage(reranker, server, change, said):
    server.faults = [changed_entries(change)]
    assert sentence(reranker).startswith(f"The reranking server at {server.url} {said}")


@pytest.mark.parametrize("value", [None, "high", float("nan"), float("inf"), True, [1.0]])
def test_a_score_that_is_no_number(reranker, server, value):
    key = "score" if server.tei else "relevance_score"
    server.faults = [changed_entries(lambda entries: entries[0].update({key: value}))]
    said = sentence(reranker)
    assert said.startswith(f"The reranking server at {server.url} gave passage 1 the score ")
    assert said.endswith(", which is not a number: see its log.")


@pytest.mark.parametrize("content", [b"<html>Welcome</html>", {"data": []}, b'{"results": ', [1, 2]])
def test_an_answer_without_scores(reranker, server, content):
    server.faults = [reply(200, content)]
    said = sentence(reranker)
    assert said.startswith(f"The reranking server at {server.url} answered ")
    assert said.endswith("which contains no scores: check its address.")


def test_a_server_that_fails(server, monkeypatch):
    reranker = open_reranker(server.name)
    monkeypatch.setattr("langshift.retrieval.rerank.api.PATIENT", PATIENT.new(total=1))
    server.faults = [reply(500, {"error": "out of memory"})] * 2
    assert sentence(reranker) == (f"The reranking server at {server.url} failed (500: out of memory): see its log.")


def test_a_server_that_is_not_there():
    with reranking_server() as server:
        gone = server.name, server.url
    with pytest.raises(LangshiftError) as caught:
        open_reranker(gone[0])
    assert str(caught.value) == (
        f"The reranking server at {gone[1]} cannot be reached: check that it is running and that this is its address."
    )


def test_a_slow_server(server, monkeypatch):
    monkeypatch.setattr("langshift.model_server._SECONDS", 0.1)
    reranker = open_reranker(server.name)
    monkeypatch.setattr("langshift.retrieval.rerank.api.PATIENT", PATIENT.new(total=1))
    server.pause = 0.4
    assert sentence(reranker) == (
        f"The reranking server at {server.url} did not answer within 0.1 seconds: check whether it is overloaded."
    )


def test_the_key(server, monkeypatch):
    monkeypatch.setenv(KEY, "secret")
    open_reranker(server.name).scores(WORDS, TEXTS)
    assert server.keys == ["Bearer secret"]
    server.faults = [reply(401, {"error": {"message": "Incorrect API key provided: secret."}})]
    assert sentence(open_reranker(server.name)) == (
        f"The reranking server at {server.url} rejects the key in {KEY} (401: Incorrect API key provided: ***): check "
        "that the key is correct and allows this."
    )


def test_names():
    with reranking_server() as server:
        with pytest.raises(UsageError, match=r"needs the name of a model: write http:http://127\.0\.0\.1:\d+#MODEL\.$"):
            HttpReranker(f"http:{server.url}")
        for written in (f"http:{server.url}/v1/rerank#{MODEL}", f"{server.url}/v1#{MODEL}"):
            assert open_reranker(written).scores(WORDS, TEXTS).tolist() == EXPECTED
    with reranking_server(tei=True) as server:
        assert open_reranker(f"{server.url}/rerank").scores(WORDS, TEXTS).tolist() == EXPECTED
    for wrong in ("cohere", "st:", "http:", "", "features2"):
        with pytest.raises(UsageError, match=r"^Unknown reranker '.*'; choose features, "):
            open_reranker(wrong)
    with pytest.raises(UsageError, match="must not contain a password"):
        open_reranker("http:http://me:word@localhost:1#m")

"""Exchanges: what is sent, and which answers are whole."""

import json

import pytest

from langshift.errors import ClusterError
from langshift.retrieval.plans import (
    Exchange,
    ShardBody,
    advance,
    check_response,
    execute,
    execute_many,
    is_single,
    msearch_body,
    recorded,
    split_msearch,
)

WHOLE = {
    "took": 3,
    "timed_out": False,
    "_shards": {"total": 2, "successful": 2, "failed": 0},
    "hits": {"hits": [{"_id": "a", "_score": 1.0}]},
}


def refusal(response):
    with pytest.raises(ClusterError) as refused:
        check_response(response)
    return str(refused.value)


def test_a_whole_answer_is_taken_as_it_is():
    assert check_response(WHOLE) is WHOLE


def test_an_answer_of_some_shards_is_none():
    told = "The search failed in part: 1 of 2 shards answered in time."
    assert refusal(WHOLE | {"_shards": {"total": 2, "successful": 1, "failed": 1}}) == told
    late = WHOLE | {"timed_out": True}
    assert refusal(late) == "The search failed in part: 2 of 2 shards answered in time."


def test_what_the_server_says_of_one_search_of_many_is_told():
    cause = {"type": "query_shard_exception", "reason": "failed to create query"}
    error = {"type": "search_phase_execution_exception", "reason": "all shards failed", "root_cause": [cause]}
    told = "The cluster answered 400: all shards failed: failed to create query."
    assert refusal({"error": error, "status": 400}) == told
    assert (
        refusal({"error": {"type": "x", "reason": "too busy."}, "status": 429}) == "The cluster answered 429: too busy."
    )
    closed = {"type": "index_closed_exception", "reason": "closed", "index": "e-v0001"}
    told = "The cluster answered 400: e-v0001 is closed; open it with `POST /e-v0001/_open`."
    assert refusal({"error": {**closed, "root_cause": [closed]}, "status": 400}) == told
    assert refusal({"error": "odd", "status": 500}) == "The cluster answered 500: odd."
    shut = {"type": "index_closed_exception", "reason": "closed", "index": "e-v0001"}
    told = "The cluster answered 400: e-v0001 is closed; open it with `POST /e-v0001/_open`."
    assert refusal({"error": shut, "status": 400}) == told


def test_a_missing_permission_is_told_as_everywhere():
    words = "no permissions for [indices:data/read/search] and User [name=eve, backend_roles=[], requestedTenant=null]"
    assert refusal({"error": {"type": "security_exception", "reason": words}, "status": 403}) == (
        "The cluster denies the request: the user eve does not have the permission indices:data/read/search "
        "(in the action group search); ask the cluster's administrator for it."
    )


@pytest.mark.parametrize("response", [{}, [], "odd", WHOLE | {"hits": {"hits": [{"_id": "a", "_score": None}]}}])
def test_an_answer_that_is_none_is_told(response):
    assert refusal(response) == f"The cluster gave an unreadable answer: {str(response)[:200]}."


def test_an_msearch_without_parts_is_told():
    assert split_msearch({"responses": [WHOLE]}, 1) == [WHOLE]
    for odd in ({"took": 1}, {"responses": []}):
        with pytest.raises(ClusterError) as refused:
            split_msearch(odd, 1)
        assert str(refused.value) == f"The cluster gave an unreadable answer: {odd}."


def test_a_body_for_one_shard_says_so_in_its_header():
    body = {"size": 1}
    sent = [json.loads(line) for line in msearch_body([body, ShardBody(body, 2)]).splitlines()]
    assert sent == [{}, body, {"preference": "_shards:2"}, body]
    assert [is_single([body]), is_single([body, body]), is_single([ShardBody(body, 0)])] == [True, False, False]


def test_the_slowest_search_of_a_step_is_the_time_it_took():
    def two_steps():
        yield {}, {}
        (last,) = yield ({},)
        return last

    exchange = Exchange()
    plan = recorded(two_steps(), "news", exchange)
    assert next(plan) == ({}, {})
    assert plan.send([{"took": 5}, {"took": 9}]) == ({},)
    with pytest.raises(StopIteration) as end:
        plan.send([{"took": 1}])
    assert (end.value.value, exchange.took) == ({"took": 1}, 10.0)
    assert [one.path for one in exchange.requests] == ["/news/_msearch", "/news/_search"]


def counting():
    """An exchange that reads more of an answer than what makes it whole."""
    (response,) = yield ({"size": 0},)
    return response["aggregations"]["languages"]["buckets"][0]["key"]


def test_an_answer_without_what_was_asked_for_is_told_by_whoever_carries_it_out():
    class Client:
        def search(self, **_):
            return WHOLE

        def msearch(self, **_):
            return {"responses": [WHOLE]}

    told = f"The cluster gave an unreadable answer: {str(WHOLE)[:200]}."
    with pytest.raises(ClusterError) as refused:
        execute(Client(), "news", counting())
    assert str(refused.value) == told
    (outcome,) = execute_many(Client(), "news", [counting()])
    assert isinstance(outcome, ClusterError)
    assert str(outcome) == told
    for odd in ({"languages": {"buckets": []}}, {"languages": 3}, []):
        begun = counting()
        next(begun)
        with pytest.raises(ClusterError, match=r"^The cluster gave an unreadable answer: "):
            advance(begun, [WHOLE | {"aggregations": odd}])

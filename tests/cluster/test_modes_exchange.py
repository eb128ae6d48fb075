"""Exchanges with a real cluster: one, an asynchronous one, many side by side, and what fails."""

import asyncio
import uuid

import pytest
from search_request import index_filter
from searched_index import Corpus, asked, found

from langshift.errors import ClusterError, UsageError
from langshift.retrieval.plans import execute, execute_async, execute_many
from langshift.retrieval.question import SearchRequest
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.search import search

SETTINGS = [
    SearchSettings("dense"),
    SearchSettings("lexical"),
    SearchSettings("hybrid", prefer_language=0.1),
    SearchSettings("balanced"),
    SearchSettings("anchored"),
    SearchSettings("dense", one_per_group=True),
]


@pytest.fixture(scope="module")
def target(client):
    name = f"langshift-test-exchange-{uuid.uuid4().hex[:8]}"
    yield Corpus(120).write(client, name, 2)
    client.indices.delete(index=name)


class Asynchronous:
    """The real client, awaited."""

    def __init__(self, client):
        self._client = client

    async def search(self, **asked):
        return await asyncio.to_thread(self._client.search, **asked)

    async def msearch(self, **asked):
        return await asyncio.to_thread(self._client.msearch, **asked)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_an_asynchronous_client_finds_the_same(client, target, setting):
    exchange = search(SearchRequest(asked(), setting, target))
    run = asyncio.run(execute_async(Asynchronous(client), target.index.index, exchange))
    assert run == found(client, target, asked(), setting, size=10)
    assert len(run.hits) == 10


def test_many_side_by_side_find_what_each_finds_alone(client, target):
    questions = [(asked(seed), setting) for seed in range(50) for setting in SETTINGS]
    exchanges = (search(SearchRequest(question, setting, target, size=5)) for question, setting in questions)
    runs = list(execute_many(client, target.index.index, exchanges))
    assert len(runs) == len(questions) == 300
    for (question, setting), run in list(zip(questions, runs, strict=True))[::7]:
        assert run == found(client, target, question, setting, size=5)


def test_one_that_fails_does_not_fail_the_others(client, target):
    good, long = asked(), asked(words="tide " * 501)
    cases = [(good, {}), (long, {}), (good, {"year": ["soon"]}), (good._replace(vector=None), {}), (good, {})]
    requests = [
        SearchRequest(question, SETTINGS[2], target, size=5, filters=index_filter(filters))
        for question, filters in cases
    ]
    exchanges = map(search, requests)
    first, words, year, vector, last = execute_many(client, target.index.index, exchanges)
    assert first == last
    assert len(first.hits) == 5
    assert isinstance(words, UsageError)
    assert str(words) == "The query has too many words for a lexical search: the limit is 500."
    assert isinstance(year, ClusterError)
    assert str(year).startswith("The cluster answered 400: all shards failed: failed to create query: ")
    assert "soon" in str(year)
    assert str(vector) == "The query has no vector, but this search mode needs one: encode the query."
    with pytest.raises(ClusterError) as refused:
        execute(client, target.index.index, search(requests[2]))
    assert str(refused.value) == str(year)


def test_an_index_that_is_not_there_is_told_of_each(client, target):
    settings = (SearchSettings("dense"), SearchSettings("lexical"))
    exchanges = [search(SearchRequest(asked(), setting, target, size=5)) for setting in settings]
    told = [str(outcome) for outcome in execute_many(client, "langshift-test-nothing", exchanges)]
    assert told == ["The cluster answered 404: no such index [langshift-test-nothing]."] * 2

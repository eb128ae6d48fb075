"""The modules that a document, a query and a replay go through are those that docs/architecture.md lists, and few."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest
from command_line import langshift
from core_path import core_path, stays
from source_budget import ARCHITECTURE, modules_of

from langshift.retrieval.request import SearchArguments
from langshift.retrieval.searcher import Searcher
from langshift.settings import Settings
from langshift.web.api.options import ApiOptions
from langshift.web.app import make_app
from langshift.web.context import AppContext
from langshift.web.security import access

DOCUMENT = {"_id": "1", "text": "Der Mond scheint hell in der Nacht.", "language": "de"}
QUESTION = "Wann scheint der Mond?"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"id": "1", "text": DOCUMENT["text"]}))
    return path


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "one"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json.dumps(DOCUMENT))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": QUESTION, "language": "de"}))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    return folder


def way(*arguments, url):
    with core_path() as modules:
        done = langshift(*arguments, url=url)
    assert done.returncode == 0, done.stderr
    return sorted(modules)


def visited(call):
    """The stays of what is done, once all that is read only once is read."""
    call()
    with stays() as modules:
        call()
    return modules


def returns(modules):
    return len(modules) - len(set(modules))


def test_a_document_a_query_and_a_replay_go_through_the_modules_that_the_page_lists(
    corpus, dataset, index_name, client, cluster_url, tmp_path
):
    document = way("ingest", corpus, "--index", index_name, url=cluster_url)
    opened = Searcher(client, index_name)
    query = visited(lambda: opened.search(QUESTION, SearchArguments("anchored")))
    assert (len(query) <= 25, returns(query) <= 8) == (True, True), query
    for mode in ("auto", "dense", "hybrid", "lexical", "balanced"):
        modules = visited(lambda mode=mode: opened.search(QUESTION, SearchArguments(mode)))
        assert (len(modules) <= 25, returns(modules) <= 8) == (True, True), (mode, modules)
    found = {
        "document": document,
        "query": sorted(set(query)),
        "replay": way(
            "evaluate", "replay", dataset, "--index", index_name, "--output", tmp_path / "out", url=cluster_url
        ),
    }
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert {name: sorted(modules_of(name, text)) for name in found} == found


def test_a_search_of_a_program_goes_down_once_and_comes_back_once(corpus, index_name, cluster_url, tmp_path):
    way("ingest", corpus, "--index", index_name, url=cluster_url)
    console = AppContext(replace(Settings.from_env(), url=cluster_url, home=tmp_path), tmp_path)
    service = make_app(console, access("127.0.0.1", 80, bound="127.0.0.1"), ApiOptions())

    async def ask():
        transport = httpx.ASGITransport(app=service)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:80") as asking:
            return await asking.post("/api/search", json={"index": index_name, "query": QUESTION})

    modules = visited(lambda: asyncio.run(ask()).raise_for_status())
    console.close()
    text = ARCHITECTURE.read_text(encoding="utf-8")
    listed = {*modules_of("search of a program", text), *modules_of("query", text)}
    # Of the modes the page tells of anchored.
    of_modes = "retrieval/modes/"
    assert {one for one in modules if not one.startswith(of_modes)} <= listed
    assert {one for one in modules if one.startswith("web/")} == {one for one in listed if one.startswith("web/")}
    assert len(modules) <= 30, modules

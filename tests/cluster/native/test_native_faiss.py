"""The query ``langshift`` of the plugin finds with Faiss what langshift's own searches find with it."""

from dataclasses import replace

import pytest
from native_faiss import KEPT, KINDS, agreement, written
from native_plugin import has_plugin
from searched_index import asked

from langshift.plugin.cluster_check import check_cluster
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchSettings
from langshift.retrieval.steps import execute
from langshift.settings import Settings

TIMES = 25


@pytest.fixture(autouse=True)
def _plugin(faiss):
    assert has_plugin(faiss)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", KEPT)
def test_it_finds_what_langshift_finds(faiss, kept, kind):
    shards = 3 if kind == "own" else 1
    index = written(faiss, kept, kind, shards)
    compared = agreement(faiss, index, kept, kind)
    compared.compare(TIMES)
    assert compared.counts["all"] + compared.counts["nearer"] == TIMES
    assert len(compared.apart) <= (1 if kept == "faiss-on-disk" else 0), compared.apart
    faiss.indices.delete(index=index)


@pytest.mark.parametrize("kept", KEPT)
def test_langshift_searches_whole_vectors_by_it(faiss, kept):
    index, setting, question = written(faiss, kept, "documents", 1), SearchSettings("dense", preference=0.1), asked()
    searcher = Searcher(faiss, index)
    assert searcher._native == (kept in ("faiss", "no engine"))
    answers = []
    for native in (True, False):
        searcher._native = native
        answers.append(execute(faiss, index, searcher.plan(question, setting)))
    assert [hit.id for hit in answers[0].hits] == [hit.id for hit in answers[1].hits]
    faiss.indices.delete(index=index)


def test_doctor_tells_that_faiss_runs(faiss, faiss_server):
    faiss.indices.delete(index=written(faiss, "faiss", "documents", 1))
    found = {one.name: one for one in check_cluster(replace(Settings.from_env(), url=faiss_server.url))}
    assert found["opensearch-knn"].value == "on every node; engines lucene and faiss"

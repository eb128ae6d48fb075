"""The query ``langshift`` of the plugin finds with Faiss what langshift's own searches find with it."""

from dataclasses import replace

import numpy as np
import pytest
from native_faiss import KEPT, KINDS, agreement, written
from native_plugin import has_plugin
from opensearchpy import helpers
from searched import a_name
from searched_index import asked

from langshift.plugin.cluster_check import check_cluster
from langshift.plugin.index_body import sets_ef_search
from langshift.plugin.metadata import FieldNames
from langshift.retrieval import dsl
from langshift.retrieval.plans import execute
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher
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
    index, setting, question = (
        written(faiss, kept, "documents", 1),
        SearchSettings("dense", prefer_language=0.1),
        asked(),
    )
    searcher = Searcher(faiss, index)
    assert searcher.index.fields.ef_search == (kept != "faiss-on-disk")
    assert searcher._native == (kept in ("faiss", "no engine"))
    answers = []
    for native in (True, False):
        searcher._native = native
        answers.append(execute(faiss, index, searcher.plan(question, setting)))
    assert [hit.id for hit in answers[0].hits] == [hit.id for hit in answers[1].hits]
    faiss.indices.delete(index=index)


def test_far_down_it_finds_what_is_near(faiss):
    """Where many are asked for, Faiss by its own measure leaves some out."""
    numbers = np.random.default_rng(3)
    vectors, question = numbers.standard_normal((12_000, 16)), numbers.standard_normal(16)
    field = {"type": "knn_vector", "dimension": 16, **KEPT["faiss"]}
    body = {"settings": {"index.knn": True}, "mappings": {"properties": {"embedding": field}}}
    name = a_name()
    faiss.indices.create(index=name, body=body)
    lines = [{"_index": name, "_id": str(place), "embedding": one.tolist()} for place, one in enumerate(vectors)]
    helpers.bulk(faiss, lines, refresh=True)
    faiss.indices.forcemerge(index=name, params={"max_num_segments": "1"})
    nearest = np.argsort(-vectors @ question / np.linalg.norm(vectors, axis=1))[:2000]
    fields = FieldNames(ef_search=sets_ef_search(faiss.indices.get_mapping(index=name)[name]["mappings"], "embedding"))
    shares = []
    for asked_by in (FieldNames(), fields):
        query = dsl.knn(question.astype(np.float32), 2000, (), asked_by)
        hits = faiss.search(index=name, body={"size": 2000, "query": query, "_source": False})["hits"]["hits"]
        shares.append(len({hit["_id"] for hit in hits} & set(map(str, nearest))) / 2000)
    assert shares[0] < 0.95
    assert shares[1] > 0.99
    faiss.indices.delete(index=name)


def test_doctor_tells_that_faiss_runs(faiss, faiss_server):
    faiss.indices.delete(index=written(faiss, "faiss", "documents", 1))
    found = {one.name: one for one in check_cluster(replace(Settings.from_env(), url=faiss_server.url))}
    assert found["opensearch-knn"].value == "on every node; engines lucene and faiss"

"""An index whose documents lost what all queries have in common: queries are searched with as they are."""

import json

import numpy as np
import pytest
from command_line import langshift
from searched import ADVICE, TEXTS, a_name, documents, drop, with_gamma

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin import stored_shift
from langshift.retrieval.plans import execute
from langshift.retrieval.request import RECOMMENDED, USUAL, SearchSettings
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.shortlist import rank, rank_at, similarity_breakdown

ALPHA, GAMMA = ADVICE.alpha, ADVICE.gamma
GERMAN = "Warum steigt und fällt das Meer?"
ENCODERS = {}


@pytest.fixture(scope="module")
def names(client, tmp_path_factory):
    """Names of an index with a gamma, and of a plain one."""
    folder, made = tmp_path_factory.mktemp("gamma"), (a_name(), a_name())
    with_gamma().save(folder / "v.safetensors")
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(line) + "\n" for line in documents()), encoding="utf-8")
    for name, alpha in zip(made, (None, 0.0), strict=True):
        load(
            client,
            str(corpus),
            name,
            build_pipeline(open_encoder("use-m"), open_detector(), folder / "v.safetensors", alpha),
        )
    yield made
    for name in made:
        drop(client, name)


@pytest.fixture(scope="module")
def searchers(client, names):
    return [Searcher(client, name, opened=ENCODERS) for name in names]


def test_a_plain_request_with_the_encoders_vector_finds_what_a_search_finds(client, names, searchers):
    for words in (GERMAN, "Why does the sea rise twice a day?", "ทำไมน้ำทะเลขึ้น"):
        vector = open_encoder("use-m").encode_queries([words])[0].tolist()
        body = {"size": 6, "query": {"knn": {"embedding": {"vector": vector, "k": 6}}}, "_source": False}
        plain = [hit["_id"] for hit in client.search(index=names[0], body=body)["hits"]["hits"]]
        for setting in (SearchSettings("dense"), RECOMMENDED):
            assert [hit.id for hit in searchers[0].search(words, setting).hits] == plain


def test_what_mixes_queries_with_documents_knows_the_directions(client, names, searchers):
    kept = stored_shift.read(client, f"{names[0]}-v0001").step.directions
    for mode, rerank in (("anchored", None), ("dense", "features")):
        context = searchers[0].target(SearchSettings(mode, rerank=rerank))
        assert np.array_equal(context.shift.step.directions, kept)
        assert searchers[1].target(SearchSettings(mode, rerank=rerank)).shift is None
        assert searchers[0].search(GERMAN, SearchSettings(mode, rerank=rerank)).hits
    assert searchers[0].target(SearchSettings("dense")).shift is None


def test_the_effect_is_told_against_what_the_encoder_made(searchers):
    searcher, plain = searchers
    before = {hit.id: hit.shift for hit in plain.search(GERMAN, explain=True).hits}
    for hit in searcher.search(GERMAN, explain=True).hits:
        scales = (None, 0.0) if hit.language == "en" else (hit.language, ALPHA)
        assert (hit.shift.language, hit.shift.alpha, hit.shift.gamma) == (*scales, GAMMA)
        assert hit.shift.similarity_before == pytest.approx(before[hit.id].similarity_after, abs=2e-6)
        assert hit.shift.rank_before == before[hit.id].rank_after


def test_the_command_says_what_was_taken_out(names, cluster_env):
    done = langshift("search", names[0], GERMAN, "--explain", url=cluster_env, COLUMNS="140")
    assert (done.returncode, done.stderr) == (0, "")
    assert "de 0.5, gamma 0.95" in done.stdout
    assert "gamma: how much of what all queries have in common was taken out of it." in " ".join(done.stdout.split())


def test_a_shortlist_is_what_an_index_of_other_scales_finds(client, searchers):
    searcher, plain = searchers
    for words in ("Why does the sea rise twice a day?", GERMAN):
        shortlist = execute(client, searcher.index.index, searcher.shortlist(words))
        vectors = execute(client, searcher.index.index, searcher.vectors(shortlist))
        before = {hit.id: hit.score for hit in plain.search(words, USUAL).hits}
        found = rank_at(shortlist, vectors, USUAL, 0.0, 0.0).hits
        assert {hit.id: hit.score for hit in found} == pytest.approx(before, abs=1e-6)
        assert [hit.id for hit in found] == list(before)
        own = rank_at(shortlist, vectors, USUAL, ALPHA, GAMMA).hits
        indexed = rank(shortlist, USUAL).hits
        assert {hit.id: hit.score for hit in own} == pytest.approx({hit.id: hit.score for hit in indexed}, abs=1e-6)
        for name in TEXTS:
            told = similarity_breakdown(vectors, name, 0.0, 0.0)
            assert (1 + told.value) / 2 == pytest.approx(before[name], abs=1e-6)
        # And the other way round: the plain index looked at as if it were the other.
        shortlist = execute(client, plain.index.index, plain.shortlist(words))
        vectors = execute(client, plain.index.index, plain.vectors(shortlist))
        there = rank_at(shortlist, vectors, USUAL, ALPHA, GAMMA).hits
        assert {hit.id: hit.score for hit in there} == pytest.approx({hit.id: hit.score for hit in indexed}, abs=1e-6)

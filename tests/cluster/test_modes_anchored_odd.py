"""Anchored search of what is odd: indices with fields of their own, small and empty ones, and those that change."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from plain_index import PLAIN
from searched_index import found, scored

from langshift.errors import UsageError
from langshift.plugin.metadata import USUAL, FieldNames, value_at
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.modes.anchoring import AnchorEvidence, Candidates, QueryVector, anchor_probabilities, weights
from langshift.retrieval.plans import check_response, msearch_body, split_msearch
from langshift.retrieval.question import AnchorModel, SearchContext, SearchQuery, SearchRequest
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.search import search

ANCHORED = SearchSettings("anchored")
OWN = FieldNames(vector="parts.vec", language="tongue", texts=("body", "head.line"))
TRUST = AnchorModel(0.2, 1.0)
# Candidates of less are left out.
LEAST_WEIGHT = 0.001


def vector(*numbers):
    return np.float32(numbers)


def write(client, name, documents, shards=1, fields=USUAL):
    """Make an index of documents, id -> source, whose vectors have three numbers; give what is searched."""
    keyword, text = {"type": "keyword"}, {"type": "text"}
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    stored = {"type": "knn_vector", "dimension": 3, "method": method}
    if fields.texts:
        properties = {"parts": {"properties": {"vec": stored}}, "body": text, "head": {"properties": {"line": text}}}
    else:
        properties = {"embedding": stored}
    settings = {"knn": True, "number_of_shards": shards, "number_of_replicas": 0}
    mappings = {"properties": {**properties, fields.language: keyword, "group": keyword}}
    client.indices.create(index=name, body={"settings": {"index": settings}, "mappings": mappings})
    for one, source in documents.items():
        client.index(index=name, id=one, body=source)
    client.indices.refresh(index=name)
    counts = Counter(source[fields.language] for source in documents.values() if fields.language in source)
    mapped = client.indices.get_mapping(index=name)[name]["mappings"]["properties"].get("text", {})
    texts = frozenset(mapped.get("properties", {}))
    live = IndexInfo(name, name, PLAIN, fields, tuple(counts), len(documents), shards, counts, texts)
    return SearchContext(live, trust=TRUST)


def expected(query, gathered, vectors, *, documents, words):
    """Id -> (1 + cos(q', z) + bonus) / 2 where no words match in other languages; id -> weight.

    Args:
        query: the query's vector.
        gathered: id -> (own, BM25) of each candidate.
        vectors: id -> vector.
        documents: how many there are in the query's language.
        words: how many the query has.
    """
    units = {name: np.float64(one) / np.linalg.norm(np.float64(one)) for name, one in vectors.items()}
    query = np.float64(query) / np.linalg.norm(np.float64(query))
    known = [AnchorEvidence(*said, float(query @ units[name])) for name, said in gathered.items()]
    candidates = Candidates([], known, np.zeros((0, 1)), QueryVector(query, 1.0), words, 0.0, documents)
    probable = anchor_probabilities(candidates, TRUST.spread)
    every = dict(zip(gathered, weights(probable, TRUST.strength).tolist(), strict=True))
    weighted = {name: weight for name, weight in every.items() if weight >= LEAST_WEIGHT}
    moved = query + sum(weight * units[name] for name, weight in weighted.items())
    own = sum(every[name] for name, (mine, _) in gathered.items() if mine)
    cosines = {name: float(moved @ one) / np.linalg.norm(moved) for name, one in units.items()}
    return cosines, 0.7 * TRUST.spread * own, weighted


@pytest.mark.parametrize("shards", [1, 3])
def test_an_index_with_fields_of_its_own(client, index_name, shards):
    vectors = {"a": [1.0, 0.1, 0.0], "b": [0.2, 1.0, 0.0], "c": [0.0, 0.3, 1.0]}
    documents = {
        "a": {"tongue": "de", "body": "zwei worte", "head": {"line": "worte"}, "parts": {"vec": vectors["a"]}},
        "b": {"tongue": "en", "body": "three more", "head": {"line": "words"}, "parts": {"vec": vectors["b"]}},
        "c": {"body": "numbers", "parts": {"vec": vectors["c"]}},
        "bare": {"tongue": "de", "body": "zwei"},
    }
    target = write(client, index_name, documents, shards, OWN)
    match = {"multi_match": {"query": "zwei Worte zwei", "type": "most_fields", "fields": list(OWN.texts)}}
    hits = client.search(index=index_name, body={"query": match})["hits"]["hits"]
    words = {hit["_id"]: hit["_score"] for hit in hits}
    assert set(words) == {"a", "bare"}
    query = vector(0.1, 0.2, 1.0)
    gathered = {"c": (False, 0.0), "b": (False, 0.0), "a": (True, words["a"])}
    # Fields that all languages share: their words are as rare as they are among all documents.
    cosines, bonus, weighted = expected(query, gathered, vectors, documents=4 / shards, words=2)
    run = found(client, target, SearchQuery("zwei Worte zwei", "de", query), ANCHORED, source=["body"])
    wanted = {name: (1 + cosine + bonus * (name == "a")) / 2 for name, cosine in cosines.items()}
    assert {hit.id: hit.score for hit in run.hits} == pytest.approx(wanted, abs=1e-5)
    assert {anchor.id: anchor.weight for anchor in run.how.anchors} == pytest.approx(weighted, abs=1e-5)
    assert {hit.id: (hit.language, value_at(hit.source, "body")) for hit in run.hits} == {
        "a": ("de", "zwei worte"), "b": ("en", "three more"), "c": ("und", "numbers")
    }  # fmt: skip
    question = SearchQuery("zwei Worte zwei", "de", query)
    given = scored(client, target, question, ANCHORED, run.how, list(documents))
    assert given == {"bare": None, **{name: pytest.approx(score, abs=1e-5) for name, score in wanted.items()}}


@pytest.mark.parametrize("shards", [1, 3])
def test_an_empty_index_and_one_with_empty_shards(client, index_name, shards):
    empty = write(client, f"{index_name}-empty", {}, shards)
    question = SearchQuery("Mond", "de", vector(1, 0, 0))
    for setting in (ANCHORED, ANCHORED.but(prefer_language=0.1), ANCHORED.but(one_per_group=True)):
        run = found(client, empty, question, setting)
        assert (run.hits, run.how.anchors, run.how.bonus) == ((), (), 0)
        assert scored(client, empty, question, setting, run.how, ["x"]) == {"x": None}
    one = {"language": "de", "text": {"de": "Der Mond"}, "embedding": [0.5, 0.5, 0.0]}
    target = write(client, f"{index_name}-one", {"one": one}, shards)
    run = found(client, target, question, ANCHORED)
    assert [(anchor.id, anchor.trust, anchor.weight) for anchor in run.how.anchors] == [("one", 1.0, 1.0)]
    half = np.cos(np.pi / 8)
    assert [hit.score for hit in run.hits] == pytest.approx([(1 + half + 0.7 * 0.2) / 2], abs=1e-5)


def test_a_query_that_words_cannot_be_searched_for(client, index_name):
    target = write(client, index_name, {"a": {"language": "de", "text": {"de": "x"}, "embedding": [1, 0, 0]}})
    with pytest.raises(UsageError) as refused:
        found(client, target, SearchQuery("wort " * 501, "de", vector(1, 0, 0)), ANCHORED)
    assert str(refused.value) == "The query has too many words for a lexical search: the limit is 500."
    with pytest.raises(UsageError) as refused:
        found(client, target, SearchQuery("wort", "de"), ANCHORED)
    assert str(refused.value) == "The query has no vector, but this search mode needs one: encode the query."


def test_a_query_of_zeros_is_refused_as_by_a_dense_search(client, index_name):
    target = write(client, index_name, {"a": {"language": "de", "text": {"de": "x"}, "embedding": [1, 0, 0]}})
    for mode in ("dense", "anchored"):
        with pytest.raises(UsageError) as refused:
            found(client, target, SearchQuery("x", "de", vector(0, 0, 0)), SearchSettings(mode))
        assert str(refused.value) == (
            "The vector of the query 'x' is all zeros, so no document is near it: use other words, or mode lexical."
        )


def test_the_one_document_may_lie_opposite_the_query(client, index_name):
    target = write(client, index_name, {"a": {"language": "de", "text": {"de": "x"}, "embedding": [-1, -2, -3]}})
    (hit,) = found(client, target, SearchQuery("y", "en", vector(1, 2, 3)), ANCHORED).hits
    assert hit.score == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("text", [None, "title"])
def test_a_language_without_a_field_of_texts(client, index_name, text):
    documents = {
        "a": {"language": "de", "embedding": [1, 0, 0], **({text: {"de": "zwei worte"}} if text else {})},
        "b": {"language": "en", "text": {"en": "two words"}, "embedding": [0, 1, 0]},
    }
    target = write(client, index_name, documents)
    assert target.index.texts == {"en"}
    vectors = {name: source["embedding"] for name, source in documents.items()}
    # BM25 counts a word as often as it is asked for.
    words = 3 * np.log(4 / 3) / (1 + 1.2) if text else 0.0
    run = found(client, target, SearchQuery("worte zwei worte", "de", vector(1, 1, 1)), ANCHORED)
    gathered = {"a": (True, words), "b": (False, 0.0)}
    cosines, bonus, _ = expected(vector(1, 1, 1), gathered, vectors, documents=1, words=2)
    assert {hit.id: hit.score for hit in run.hits} == pytest.approx(
        {"a": (1 + cosines["a"] + bonus) / 2, "b": (1 + cosines["b"]) / 2}, abs=1e-5
    )


def test_documents_of_no_known_language_are_found_by_words_though_there_is_no_other_language(client, index_name):
    documents = {f"de{n}": {"language": "de", "text": {"de": "mond"}, "embedding": [1, n, 0]} for n in range(5)}
    documents["none"] = {"text": {"und": "comet 4711"}, "embedding": [0, 0, 1]}
    documents["und"] = {"language": "und", "text": {"und": "other"}, "embedding": [0, 1, -1]}
    target = write(client, index_name, documents)
    live = replace(target.index, languages=("de",), counts={"de": 5})
    target = replace(target, trust=AnchorModel(5.0, 1.0))
    run = found(client, replace(target, index=live), SearchQuery("4711", "de", vector(1, 2, 0)), ANCHORED)
    anchor = next(anchor for anchor in run.how.anchors if anchor.id == "none")
    assert anchor.evidence["own_language"] == 0
    assert anchor.evidence["words"] > 0
    assert run.how.given.keys() == {"none"}
    mine = replace(live, documents=5)
    assert (
        found(client, replace(target, index=mine), SearchQuery("4711", "de", vector(1, 2, 0)), ANCHORED).how.given == {}
    )


def test_an_anchor_that_is_gone_meanwhile_has_moved_the_query_all_the_same(client, index_name):
    documents = {
        name: {"language": tag, "text": {tag: text}, "embedding": numbers}
        for name, tag, text, numbers in (
            ("a", "de", "mond", [1, 0, 0]), ("b", "de", "meer", [0, 1, 0.5]), ("c", "th", "x", [0.5, 0.5, 1])
        )
    }  # fmt: skip
    target = write(client, index_name, documents)
    question = SearchQuery("mond", "de", vector(0.9, 0.2, 0.1))
    whole = found(client, target, question, ANCHORED)

    exchange = search(SearchRequest(question, ANCHORED, target))
    asked = next(exchange)
    first = split_msearch(client.msearch(index=index_name, body=msearch_body(asked)), len(asked))
    second = exchange.send([check_response(one) for one in first])
    client.delete(index=index_name, id="a", params={"refresh": "true"})
    with pytest.raises(StopIteration) as end:
        exchange.send([check_response(client.search(index=index_name, body=second[0]))])
    run = end.value.value
    assert run.how == whole.how
    assert {hit.id for hit in run.hits} == {"b", "c"}
    assert {hit.id: hit.score for hit in whole.hits if hit.id != "a"} == pytest.approx(
        {hit.id: hit.score for hit in run.hits}, abs=1e-6
    )
    # Whoever scores more documents goes on with the query as it was moved.
    client.update(index=index_name, id="b", body={"script": "ctx._source.remove('embedding')"})
    client.indices.refresh(index=index_name)
    given = scored(client, target, question, ANCHORED, run.how, ["a", "b", "c"])
    scores = {hit.id: hit.score for hit in whole.hits}
    assert given == {"a": None, "b": None, "c": pytest.approx(scores["c"], abs=1e-6)}

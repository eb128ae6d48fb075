"""Request bodies."""

import numpy as np
import pytest
from search_request import request_for

from langshift.errors import UsageError
from langshift.plugin.metadata import FieldNames
from langshift.retrieval.dsl import documents_body, exact, filter_clauses, leg_query, of_documents, vector_of
from langshift.retrieval.modes import balanced, dense
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import SearchSettings

ONES = np.ones(2, np.float32)
CHUNKS = FieldNames(parent="of", parent_keyword="of.raw")


def next_bodies(mode, request):
    return next(mode.plan(request))


def dense_body(request):
    (body,) = next_bodies(dense, request)
    return body


def test_dense_looks_at_more_candidates_than_it_returns():
    assert dense_body(request_for(np.array([1, 2], np.float32), size=3)) == {
        "size": 3,
        "query": {"knn": {"embedding": {"vector": [1.0, 2.0], "k": 100}}},
        "_source": {"excludes": ["embedding"]},
    }
    assert dense_body(request_for(ONES, size=250))["query"]["knn"]["embedding"]["k"] == 250


def test_dense_filters_inside_the_graph_search():
    body = dense_body(request_for(ONES, size=3, filters={"language": ["th", "de"], "year": ["1990"]}))
    assert body["query"]["knn"]["embedding"]["filter"] == {
        "bool": {"filter": [{"terms": {"language": ["th", "de"]}}, {"terms": {"year": ["1990"]}}]}
    }


def lexical_body(request):
    return documents_body(request, leg_query("lexical", request), request.size)


def lexical(words, language, others=(), **more):
    return lexical_body(request_for(None, words, language, others, SearchSettings("lexical"), **more))


def test_lexical_searches_the_querys_language_first_and_the_indexs_others():
    body = lexical("tides", "de", ["en", "de"], size=2, filters={"language": ["de"]})
    (match,) = body["query"]["bool"]["must"]
    assert match["multi_match"]["fields"] == [
        "title.de", "text.de", "title.und", "text.und", "title.en", "text.en"
    ]  # fmt: skip
    assert body["query"]["bool"]["filter"] == [{"terms": {"language": ["de"]}}]


@pytest.mark.parametrize("words", ["tide " * 40, "น้ำขึ้นน้ำลง" * 5, "https://a.example/" + "tide-" * 40])
def test_lexical_stays_within_the_servers_limit_on_clauses(words):
    others = [f"l{i}" for i in range(50)]
    fields = lexical(words, "th", others, size=1)["query"]["bool"]["must"][0]["multi_match"]["fields"]
    assert fields[:2] == ["title.th", "text.th"]
    assert 2 <= len(fields) < 104


def test_lexical_searches_each_analyzed_language_by_its_analyzer_and_the_others_plainly():
    own = FieldNames(language="lang", texts=("head", "body"), analyzed=("en", "de", "th"))
    (match,) = lexical("tides", "de", ["en", "it"], fields=own)["query"]["bool"]["must"]
    german, english, rest = match["bool"]["should"]
    assert match["bool"]["minimum_should_match"] == 1
    for part, tag in ((german, "de"), (english, "en")):
        assert part["bool"]["filter"] == [{"term": {"lang": tag}}]
        (found,) = part["bool"]["must"]
        assert found["multi_match"]["fields"] == [f"head.{tag}", f"body.{tag}"]
    assert rest["bool"]["must_not"] == [{"terms": {"lang": ["de", "en"]}}]
    assert rest["bool"]["must"][0]["multi_match"]["fields"] == ["head", "body"]


@pytest.mark.parametrize(("tokens", "languages"), [(100, 3), (200, 1), (249, 1), (250, 0)])
def test_analyzed_languages_stay_within_the_servers_limit_on_clauses(tokens, languages):
    own = FieldNames(texts=("head", "body"), analyzed=("en", "de", "th"))
    (match,) = lexical("tide " * tokens, "th", ["en", "de"], fields=own)["query"]["bool"]["must"]
    if languages:
        *analyzed, _ = match["bool"]["should"]
        assert [part["bool"]["filter"][0]["term"]["language"] for part in analyzed] == ["th", "en", "de"][:languages]
    else:
        assert match["multi_match"]["fields"] == ["head", "body"]


def test_lexical_refuses_a_query_beyond_any_limit():
    with pytest.raises(UsageError, match=r"^The query has too many words for a lexical search: the limit is 500\.$"):
        lexical("tide " * 501, "en", size=1)


def test_an_accent_that_is_a_character_of_its_own_parts_no_word():
    # A letter with two accents is none of one character.
    (one,) = lexical("q\u0301\u0307" * 2000, "fr", size=1)["query"]["bool"]["must"]
    assert (
        one["multi_match"]["fields"]
        == lexical("q" * 2000, "fr", size=1)["query"]["bool"]["must"][0]["multi_match"]["fields"]
    )


def test_canonically_equal_queries_are_one():
    assert lexical("Zu\u0308rich", "de", size=1) == lexical("Z\u00fcrich", "de", size=1)
    assert lexical("Do\u00adnau \ufb01ndet", "de", size=1) == lexical("Donau findet", "de", size=1)


def test_an_index_with_fields_of_its_own_is_searched_in_these_whatever_the_language():
    own = FieldNames(vector="my.vector", texts=("body", "head"))
    body = dense_body(request_for(ONES, size=3, fields=own))
    assert set(body["query"]["knn"]) == {"my.vector"}
    assert body["_source"] == {"excludes": ["my.vector"]}
    body = lexical("tides", "th", ["en", "de"], size=2, fields=own)
    assert body["query"]["bool"]["must"][0]["multi_match"]["fields"] == ["body", "head"]
    assert body["_source"] == {"excludes": ["my.vector"]}
    long = lexical("tide " * 501, "th", size=1, fields=own)
    assert long["query"]["bool"]["must"][0]["multi_match"]["fields"] == ["body"]
    with pytest.raises(UsageError, match=r"^The query has too many words for a lexical search: the limit is 1000\.$"):
        lexical("tide " * 1001, "th", size=1, fields=own)


def test_texts_that_are_split_by_language_are_searched_in_each_with_their_weights():
    own = FieldNames(texts=("head.line", "body"), by_language=True, weights={"head.line": 3.0, "body": 0.5})
    body = lexical("tides", "th", ["en"], size=2, fields=own)
    assert body["query"]["bool"]["must"][0]["multi_match"]["fields"] == [
        *("head.line.th^3", "body.th^0.5", "head.line.und^3", "body.und^0.5", "head.line.en^3", "body.en^0.5"),
    ]


def test_hits_bring_all_but_the_vector_or_what_is_named_or_only_tell_their_language():
    own = FieldNames(vector="my.vector", language="lang")
    brought = {source: dense_body(request_for(ONES, size=3, fields=own, source=source)) for source in (True, False)}
    brought["some"] = dense_body(request_for(ONES, size=3, fields=own, source=["year"]))
    told = {key: {k: v for k, v in body.items() if k not in ("size", "query")} for key, body in brought.items()}
    assert told == {
        True: {"_source": {"excludes": ["my.vector"]}},
        False: {"_source": False, "docvalue_fields": ["lang"]},
        "some": {"_source": ["year"], "docvalue_fields": ["lang"]},
    }


def test_an_exact_search_leaves_out_documents_without_a_vector():
    among = {"bool": {"filter": [{"terms": {"_id": ["a", "b"]}}]}}
    assert exact(np.array([1, 2], np.float32), of_documents(["a", "b"]), 2) == {
        "size": 2,
        "query": {
            "script_score": {
                "query": {"bool": {"filter": [among, {"exists": {"field": "embedding"}}]}},
                "script": {
                    "source": "(1.0 + cosineSimilarity(params.vector, doc[params.field])) / 2.0",
                    "params": {"vector": [1.0, 2.0], "field": "embedding"},
                },
            }
        },
        "_source": False,
        "docvalue_fields": ["language"],
    }


def test_balanced_looks_at_the_50_nearest_and_at_the_50_nearest_of_the_favoured():
    def request(setting=None, **more):
        return request_for(ONES, language="de", setting=setting, filters={"year": ["1990"]}, **more)

    favouring = SearchSettings("balanced", spread=0.1)
    assert next_bodies(balanced, request()) == (dense_body(request(size=50)),)
    nearest, favoured = next_bodies(balanced, request(favouring, source=False))
    assert nearest == dense_body(request(size=50, source=False))
    same = {"term": {"language": "de"}}
    clauses = [*filter_clauses({"year": ["1990"]}), {"bool": {"must_not": [same]}}]
    knn = {"vector": [1.0, 1.0], "k": 100, "filter": {"bool": {"filter": clauses}}}
    assert favoured == nearest | {"query": {"knn": {"embedding": knn}}}
    with_preference = dense_body(request(favouring, size=50, source=False))
    assert favoured["query"] in with_preference["query"]["bool"]["must"][0]["dis_max"]["queries"]


def test_of_an_index_of_chunks_each_search_brings_a_document_once():
    plain = request_for(ONES, size=3, source=False, fields=CHUNKS)
    body = dense_body(plain)
    assert (body["collapse"], body["docvalue_fields"]) == ({"field": "of.raw"}, ["language", "of.raw"])
    assert lexical_body(plain)["collapse"] == {"field": "of.raw"}
    assert next_bodies(balanced, plain)[0]["collapse"] == {"field": "of.raw"}
    own = dense_body(request_for(ONES, size=3, source=["year"], fields=FieldNames(parent="parent", chunking="auto")))
    places = ["chunk.ordinal", "chunk.start", "chunk.end", "chunk.count", "chunk.field"]
    assert own["docvalue_fields"] == ["language", "parent", *places]
    favouring = request_for(
        ONES, language="de", setting=SearchSettings("dense", prefer_language=0.1), size=3, fields=CHUNKS
    )
    among_all, favoured = next_bodies(dense, favouring)
    assert among_all["query"]["bool"]["should"] == favoured["query"]["bool"]["should"]
    assert favoured["query"]["bool"]["must"][0]["knn"]["embedding"]["filter"] == {
        "bool": {"filter": [{"term": {"language": "de"}}]}
    }


def test_a_vector_of_zeros_is_refused_by_its_words():
    with pytest.raises(UsageError) as refused:
        vector_of(SearchQuery("of the " * 50, "en", np.zeros(3, np.float32)))
    assert str(refused.value) == (
        f"The vector of the query {('of the ' * 50)[:100]!r} is all zeros, so no document is near it: use other "
        "words, or mode lexical."
    )

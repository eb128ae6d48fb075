"""The language preference, and the best of each language."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_request import preferring, request_for

from langshift.plugin.metadata import FieldNames
from langshift.retrieval.hits import ScoredDoc, with_bonus
from langshift.retrieval.modes import dense
from langshift.retrieval.modes.balanced import best_of_each_language
from langshift.retrieval.modes.legs import bonus
from langshift.retrieval.request import SearchSettings


def dense_preferring(vector, language, preference, **more):
    (body,) = next(
        dense.plan(
            request_for(vector, language=language, setting=SearchSettings("dense", **preferring(preference)), **more)
        )
    )
    return body


def test_a_preference_is_one_request_over_the_union_of_all_and_the_favoured():
    body = dense_preferring(np.array([1, 2], np.float32), "de", 0.1, size=3, filters={"year": ["1990"]})
    year, german = {"terms": {"year": ["1990"]}}, {"term": {"language": "de"}}
    knn = {"vector": [1.0, 2.0], "k": 100}
    assert body == {
        "size": 3,
        "query": {
            "bool": {
                "must": [
                    {
                        "dis_max": {
                            "queries": [
                                {"knn": {"embedding": knn | {"filter": {"bool": {"filter": [year]}}}}},
                                {"knn": {"embedding": knn | {"filter": {"bool": {"filter": [year, german]}}}}},
                            ]
                        }
                    }
                ],
                "should": [{"constant_score": {"filter": german, "boost": 0.05}}],
            }
        },
        "_source": {"excludes": ["embedding"]},
    }


def test_spread_favours_every_other_language():
    body = dense_preferring(np.ones(2, np.float32), "de", -0.1, size=3, fields=FieldNames(language="lang"))
    others = {"bool": {"must_not": [{"term": {"lang": "de"}}]}}
    assert body["query"]["bool"]["should"] == [{"constant_score": {"filter": others, "boost": 0.05}}]
    _, favoured = body["query"]["bool"]["must"][0]["dis_max"]["queries"]
    assert favoured["knn"]["embedding"]["filter"] == {"bool": {"filter": [others]}}


def favoured(tags, language, preference):
    """Which of documents in languages are given a bonus."""
    request = request_for(language=language, setting=SearchSettings("dense", **preferring(preference)))
    return [one.score == 1 for one in with_bonus([ScoredDoc(tag, 0.0, tag) for tag in tags], 1.0, request)]


def test_who_is_favoured():
    told = {
        (language, beta): favoured(["de", "en", "und"], language, beta)
        for language in ("de", "und")
        for beta in (0.1, 0.0, -0.1)
    }
    assert told == {
        ("de", 0.1): [True, False, False],
        ("de", 0.0): [False, False, False],
        ("de", -0.1): [False, True, True],
        **{("und", beta): [False, False, False] for beta in (0.1, 0.0, -0.1)},
    }
    assert request_for(setting=SearchSettings("dense", prefer_language=0.1)).preference == 0


def test_the_bonus_is_told_in_units_of_cosine():
    assert bonus(0.1, [9.0, 5.0], [0.9, 0.8]) == pytest.approx(0.1 * 4 / 0.2)
    assert bonus(-0.1, [9.0, 5.0], [0.9, 0.8]) == bonus(0.1, [9.0, 5.0], [0.9, 0.8])
    cosines = [0.9, 0.7, 0.2]
    assert bonus(0.1, [(1 + cosine) / 2 for cosine in cosines], [(1 + cosine) / 2 for cosine in cosines]) == (
        pytest.approx(0.1 / 2)
    )
    assert bonus(0.1, list(range(200, 0, -1)), [1.0, 0.5]) == pytest.approx(0.1 * 99)
    assert bonus(0.1, [], [0.9, 0.8]) == bonus(0.1, [1.0], []) == bonus(0.1, [2.0, 1.0], [0.9, 0.9]) == 0


def matches(clause, language):
    if "term" in clause:
        return clause["term"] == {"language": language}
    return not any(matches(one, language) for one in clause["bool"]["must_not"])


def scores(body, documents):
    """The scores that a server answers to a body whose graph search is exact, best first.

    Args:
        body: the request.
        documents: cosine with the query and language of each.
    """
    (must,), (should,) = body["query"]["bool"]["must"], body["query"]["bool"]["should"]
    retrieved = set()
    for query in must["dis_max"]["queries"]:
        knn = query["knn"]["embedding"]
        clauses = knn.get("filter", {}).get("bool", {}).get("filter", [])
        within = [one for one in documents if all(matches(clause, one[1]) for clause in clauses)]
        retrieved.update(sorted(within, reverse=True)[: knn["k"]])
    added = should["constant_score"]
    found = [(1 + cosine) / 2 + added["boost"] * matches(added["filter"], tag) for cosine, tag in retrieved]
    return sorted(found, reverse=True)[: body["size"]]


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 400),
    st.integers(1, 150),
    st.sampled_from([0.02, 0.1, 1.0, -0.02, -0.1, -1.0]),
)
def test_the_best_of_all_with_the_bonus_are_among_those_retrieved(seed, count, size, preference):
    random = np.random.default_rng(seed)
    tags = random.choice(["de", "en"], count, p=[0.1, 0.9] if preference > 0 else [0.9, 0.1])
    documents = list(zip(random.uniform(-1, 1, count).tolist(), tags.tolist(), strict=True))
    given = favoured([tag for _, tag in documents], "de", preference)
    every = [(1 + c + abs(preference) * bonus) / 2 for (c, _), bonus in zip(documents, given, strict=True)]
    body = dense_preferring(np.ones(2, np.float32), "de", preference, size=size)
    assert scores(body, documents) == pytest.approx(sorted(every, reverse=True)[:size], abs=1e-12)


def test_the_best_of_each_language_stay_in_order():
    hits = [ScoredDoc(str(n), 1 - n / 10, tag) for n, tag in enumerate(["en", "en", "de", "en", "th", "de", "de"])]
    assert [hit.id for hit in best_of_each_language(hits, 2)] == ["0", "1", "2", "4", "5"]

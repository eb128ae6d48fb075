"""The language preference, and the best of each language."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.plugin.fields import Fields
from langshift.plugin.search.by_vector import best_of_each_language
from langshift.plugin.search.found import Candidate
from langshift.plugin.search.preferring import bonus, dense_preferring, is_favoured, preference_of
from langshift.plugin.search.wanted import Question, Setting


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
    body = dense_preferring(np.ones(2, np.float32), "de", -0.1, size=3, fields=Fields(language="lang"))
    others = {"bool": {"must_not": [{"term": {"lang": "de"}}]}}
    assert body["query"]["bool"]["should"] == [{"constant_score": {"filter": others, "boost": 0.05}}]
    _, favoured = body["query"]["bool"]["must"][0]["dis_max"]["queries"]
    assert favoured["knn"]["embedding"]["filter"] == {"bool": {"filter": [others]}}


def test_who_is_favoured():
    german, unknown = Question("Meer", "de"), Question("Meer")
    told = {
        (question.language, beta): [is_favoured(tag, question, Setting(preference=beta)) for tag in ("de", "en", "und")]
        for question in (german, unknown)
        for beta in (0.1, 0.0, -0.1)
    }
    assert told == {
        ("de", 0.1): [True, False, False],
        ("de", 0.0): [False, False, False],
        ("de", -0.1): [False, True, True],
        **{("und", beta): [False, False, False] for beta in (0.1, 0.0, -0.1)},
    }
    assert preference_of(unknown, Setting(preference=0.1)) == 0


def test_the_bonus_is_told_in_units_of_cosine():
    assert bonus(0.1, [9.0, 5.0], [0.9, 0.8]) == pytest.approx(0.1 * 4 / 0.2)
    assert bonus(-0.1, [9.0, 5.0], [0.9, 0.8]) == bonus(0.1, [9.0, 5.0], [0.9, 0.8])
    cosines = [0.9, 0.7, 0.2]
    assert bonus(0.1, [(1 + cosine) / 2 for cosine in cosines], [(1 + cosine) / 2 for cosine in cosines]) == (
        pytest.approx(0.1 / 2)
    )
    assert bonus(0.1, list(range(200, 0, -1)), [1.0, 0.5]) == pytest.approx(0.1 * 99)
    assert bonus(0.1, [], [0.9, 0.8]) == bonus(0.1, [1.0], []) == bonus(0.1, [2.0, 1.0], [0.9, 0.9]) == 0


@given(
    st.lists(st.tuples(st.integers(-1000, 1000), st.booleans()), unique_by=lambda one: one[0], max_size=40),
    st.integers(1, 10),
    st.integers(0, 3000),
)
def test_the_best_with_a_bonus_are_among_the_best_of_all_and_of_the_favoured(documents, size, given_more):
    ranked = sorted(documents, key=lambda one: -one[0])
    union = {*ranked[:size], *[one for one in ranked if one[1]][:size]}

    def score(one):
        return one[0] + given_more * one[1]

    best = sorted(map(score, documents), reverse=True)[:size]
    assert sorted(map(score, union), reverse=True)[:size] == best


def test_the_best_of_each_language_stay_in_order():
    hits = [Candidate(str(n), 1 - n / 10, tag) for n, tag in enumerate(["en", "en", "de", "en", "th", "de", "de"])]
    assert [hit.id for hit in best_of_each_language(hits, 2)] == ["0", "1", "2", "4", "5"]

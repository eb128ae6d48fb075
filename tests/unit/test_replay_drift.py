"""Overlap and drift of languages between two indices, worked out by hand."""

import warnings

import pytest

from langshift.evaluate.load.answer import Answer
from langshift.evaluate.load.drift import between, jaccard, mean_shares, rank_biased_overlap, shares


def answers(**rankings):
    return [Answer(query, tuple((name, 1.0) for name in names.split()), 1.0, 1.0) for query, names in rankings.items()]


def extrapolated(one, other, p=0.9):
    """RBO_ext of two rankings of one length, Equation 30 of Webber, Moffat and Zobel (2010)."""
    depth = len(one)
    agreement = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, depth + 1)]
    return agreement[-1] * p**depth + (1 - p) / p * sum(p ** (d + 1) * a for d, a in enumerate(agreement))


@pytest.mark.parametrize(
    ("one", "other"), [("abcde", "abcde"), ("abcde", "edcba"), ("abcde", "abxyz"), ("abcd", "wxyz"), ("a", "a")]
)
def test_rank_biased_overlap_is_the_papers(one, other):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rank_biased_overlap(one, other) == pytest.approx(extrapolated(one, other), abs=1e-12)


def test_rankings_that_are_empty():
    assert rank_biased_overlap([], []) == 1
    assert rank_biased_overlap(["a"], []) == 0
    assert jaccard([], []) == 1
    assert jaccard(["a"], []) == 0


def test_only_the_first_twenty_count():
    one = [f"d{n}" for n in range(30)]
    assert jaccard(one, one[:20]) == 1
    assert jaccard(one, one[10:]) == pytest.approx(10 / 30)
    assert shares(one, {f"d{n}": "en" if n < 15 else "de" for n in range(30)}) == {"en": 0.75, "de": 0.25}
    assert mean_shares([{"en": 1.0}, {"de": 0.5, "en": 0.5}]) == {"en": 0.75, "de": 0.25}


def test_drift_by_query_language():
    documents = {"a": "en", "b": "de", "c": "en", "d": None}
    before = answers(q1="a c", q2="a b", q3="b a", q4="a")
    after = [*answers(q1="a b", q2="a b", q3="d a"), Answer("q4", error="no")]
    found = between(
        ("plain", "shifted"), before, after, queries={"q1": "en", "q2": "en", "q3": "de"}, documents=documents
    )
    assert (found.before, found.after, found.left_out) == ("plain", "shifted", 1)
    english = found.by_language["en"]
    assert english.queries == 2
    assert english.jaccard == pytest.approx((1 / 3 + 1) / 2)
    assert english.rbo == pytest.approx((extrapolated("ac", "ab") + 1) / 2)
    assert english.before == {"en": 0.75, "de": 0.25}
    assert english.after == {"de": 0.5, "en": 0.5}
    assert found.by_language["de"].after == {"en": 0.5, "und": 0.5}
    # Over all: overlap by query, shares by query language.
    assert found.whole.jaccard == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert found.whole.before == {"en": 0.625, "de": 0.375}
    document = found.to_dict()
    assert document["Share@20"]["before"] == {"en": 0.625, "de": 0.375}
    assert set(document) == {
        "before",
        "after",
        "left_out",
        "queries",
        "RBO(p=0.9)",
        "Jaccard@20",
        "Share@20",
        "by_language",
    }


def test_nothing_was_answered_by_both():
    found = between(("a", "b"), [Answer("q", error="no")], answers(q="a"), queries={"q": "en"}, documents={})
    assert (found.whole.queries, found.whole.rbo, found.whole.jaccard, found.left_out) == (0, None, None, 1)

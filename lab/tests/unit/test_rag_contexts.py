"""What a generator answers from, the oracle's languages, and figures of conditions, worked out by hand."""

from pathlib import Path

import pytest

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetDocument, DatasetQuery
from langshift_lab.generation.rag import (
    Context,
    compare_conditions,
    correlation,
    gold_passages,
    oracle_languages,
    parse_context,
    split_by_language,
    summary,
    summary_by_language,
)

LANGUAGES = {"d1": "en", "d2": "de", "d3": "en", "d4": None}
DATASET = Dataset(
    Path("dataset"),
    {name: DatasetDocument(language, "g2" if name == "d3" else "g1") for name, language in LANGUAGES.items()},
    (
        DatasetQuery("q1", "Wann?", "de", "q"),
        DatasetQuery("q2", "¿Cuándo?", "es", "q"),
        DatasetQuery("q3", "?", None, None),
    ),
    {"q1": {"d2": 1}, "q2": {"d2": 1, "d3": 0}, "q3": {"d2": 1}},
)


@pytest.mark.parametrize("text", ["gold-en", "gold-own", "none", "retrieved:5", "language-wise:50"])
def test_contexts_are_read_and_named_alike(text):
    assert str(parse_context(text)) == text


def test_how_deep_a_search_goes():
    assert [parse_context(one).search_depth for one in ("none", "gold-en", "retrieved:5", "language-wise:5")] == [
        0,
        0,
        5,
        50,
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("", "gold", "gold-fr", "gold-en:5", "none:", "retrieved", "retrieved:", "retrieved:0", "retrieved:51"),
        *("retrieved:-1", "retrieved:five", "retrieved:٥", "language-wise:1.5"),
    ],
)
def test_what_is_no_context_is_one_sentence(text):
    with pytest.raises(UsageError) as raised:
        parse_context(text)
    assert str(raised.value) == (
        f"--context {text}: there is no such context; give gold-en, gold-own, retrieved:K, language-wise:K or none, "
        "where K is a number of documents from 1 to 50."
    )


@pytest.mark.parametrize(
    ("kind", "query", "passages"),
    [
        ("gold-en", 0, ["d1"]),  # the translation of the relevant d2; d3 is of another group
        ("gold-own", 0, ["d2"]),
        ("gold-en", 1, ["d1"]),
        ("gold-own", 1, []),  # none in Spanish
        ("gold-own", 2, []),  # a question of unknown language is not one with d4
    ],
)
def test_gold_passages(kind, query, passages):
    assert gold_passages(Context(kind), DATASET.queries[query], DATASET, LANGUAGES) == passages


def test_the_best_of_each_language_among_the_fifty_best():
    languages = {"a": "de", "b": "en", "c": "de", "d": "de", "last": "fr"}
    split = split_by_language(["a", "b", "c", "unknown", "d"], languages, 2)
    assert split == {"de": ["a", "c"], "en": ["b"], "und": ["unknown"]}
    many = [f"x{number}" for number in range(50)]
    assert list(split_by_language([*many, "last"], {**dict.fromkeys(many, "en"), "last": "fr"}, 5)) == ["en"]


def test_oracle_languages_are_split_over_ties_and_averaged_by_query_language():
    recalls = {
        "q1": {"en": 0.5, "de": 0.5, "fr": 0.25},  # en and de .5 each
        "q2": {"en": 1.0, "de": 0.0},  # en 1
        "q3": {"fr": 0.75, "en": 0.5},  # another query language: fr 1
        "q4": {},
    }
    languages = {"q1": "de", "q2": "de", "q3": None, "q4": "es"}
    assert oracle_languages(recalls, languages) == {"de": {"de": 0.25, "en": 0.75}, "und": {"fr": 1.0}}


def test_correlation_of_scores_and_recall():
    # Means 1, 2, 3 and recalls 0, 1, .5: covariance .5, variances 2 and .5, so .5 / sqrt(2 * .5) = .5;
    # t = .5 / sqrt(.75) with one degree of freedom: p = 1 - 2/pi * atan(t) = 2/3.
    scores = {"q1": [0.5, 1.5], "q2": [2.0], "q3": [3.0], "q4": [9.0], "q5": []}
    found = correlation(scores, {"q1": 0.0, "q2": 1.0, "q3": 0.5, "q5": 1.0})
    assert found == (pytest.approx(0.5), pytest.approx(2 / 3), 3)


@pytest.mark.parametrize(
    ("scores", "recalls"), [((1, 2), (0, 1)), ((1, 1, 1), (0, 1, 0)), ((1, 2, 3), (1, 1, 1)), ((), ())]
)
def test_an_undefined_correlation_is_none(scores, recalls):
    named = {f"q{number}": [score] for number, score in enumerate(scores)}
    assert correlation(named, dict(zip(named, recalls, strict=True))) == (None, None, len(scores))


MEASURES = ("3-gram recall", "containment", "exact match", "F1", "language coherence")


def figures(*values):
    return dict(zip(MEASURES, values, strict=True))


ANSWERS = {
    "q1": figures(1.0, 1.0, 0.0, 0.5, 1.0),
    "q2": figures(0.5, 0.0, 0.0, 0.0, None),
    "q3": figures(0.0, 0.0, 0.0, 0.25, 0.0),
    "q4": figures(0.5, 1.0, 1.0, 1.0, 1.0),
}


def test_undecided_answers_are_neither_coherent_nor_not():
    assert summary(ANSWERS) == {
        "queries": 4, "3-gram recall": 0.5, "containment": 0.5, "exact match": 0.25, "F1": 0.4375,
        "language coherence": pytest.approx(2 / 3), "undecided": 0.25,
    }  # fmt: skip
    by_language = summary_by_language(ANSWERS, {"q1": "en", "q2": "de", "q3": "en", "q4": None})
    assert list(by_language) == ["de", "en", "und"]
    assert (by_language["de"]["language coherence"], by_language["de"]["undecided"]) == (None, 1)
    assert (by_language["en"]["language coherence"], by_language["en"]["3-gram recall"]) == (0.5, 0.5)
    assert summary({}) == {"queries": 0}


def test_conditions_are_paired_by_query_and_tested_by_article():
    better = {
        "q1": figures(1.0, 1.0, 0.0, 0.5, None),
        "q2": figures(1.0, 1.0, 0.0, 0.5, 1.0),
        "q3": figures(0.5, 1.0, 0.0, 0.5, 1.0),
        "q9": figures(0.0, 0.0, 0.0, 0.0, 0.0),  # answered in one condition only
    }
    tests = compare_conditions({"none": ANSWERS, "gold-en": better}, {"q1": "a", "q2": "b", "q3": "b", "q9": "c"})
    recall, contained = tests["none", "gold-en", "3-gram recall"], tests["none", "gold-en", "containment"]
    # Differences 0, .5, .5 in the articles a, b, b: sums 0 and 1, and either sign of b's is as extreme.
    assert (recall.difference, recall.queries, recall.clusters) == (pytest.approx(1 / 3), 3, 2)
    assert (recall.randomisation, contained.difference, recall.corrected) == (1.0, pytest.approx(2 / 3), 1.0)
    # q1 is undecided in one, q2 in the other.
    assert (
        tests["none", "gold-en", "language coherence"].queries,
        tests["none", "gold-en", "language coherence"].difference,
    ) == (1, 1.0)


def test_p_values_of_conditions_are_corrected_after_holm_over_the_table():
    names = [f"q{number}" for number in range(8)]
    one = dict.fromkeys(names, figures(0.0, 0.0, 0.0, 0.0, None))
    other = dict.fromkeys(names, figures(1.0, 0.0, 0.0, 1.0, None))
    tests = compare_conditions({"none": one, "gold-en": other}, dict(zip(names, names, strict=True)))
    # Of 256 ways to flip eight signs two are as extreme: p = 2/256, and 1 without a difference.
    p = {measure: (test.randomisation, test.corrected) for (_, _, measure), test in tests.items()}
    assert p == {
        "3-gram recall": (2 / 256, 4 * 2 / 256), "F1": (2 / 256, 4 * 2 / 256),
        "containment": (1, 1), "exact match": (1, 1),
    }  # fmt: skip


def test_conditions_without_a_common_query_have_no_test():
    assert (
        compare_conditions({"none": {"q1": ANSWERS["q1"]}, "gold-en": {"q2": ANSWERS["q2"]}}, {"q1": "a", "q2": "a"})
        == {}
    )
    assert compare_conditions({"none": ANSWERS}, {}) == {}

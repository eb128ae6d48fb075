"""Measures: by hand, and against formulas of their own on random runs."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from ir_measures import nDCG, read_trec_run

from langshift.errors import UsageError
from langshift.evaluate.measures import FAMILIES, default_measures, parse_measure, score, split_measures
from langshift.evaluate.measures.base import Material, Scores
from langshift.evaluate.runs import format_run

LANGUAGES = {"a-en": "en", "a-de": "de", "a-th": "th", "b-en": "en", "b-de": "de", "x": None}


def scored(qrels, run, queries, names=("nDCG@2", "R@2", "TLR@2", "SLR@2")):
    return score(names, Material(qrels, run, queries, LANGUAGES))


def test_by_hand():
    qrels = {
        "q1": {"a-en": 1, "a-de": 1, "a-th": 1},
        "q2": {"b-en": 1, "b-de": 1},
        "q3": {"b-en": 1},
    }
    run = {
        "q1": {"a-de": 0.9, "b-en": 0.8, "a-en": 0.7},  # the top two hold one of three, German
        "q2": {"b-de": 0.9, "b-en": 0.8},  # all
    }  # q3: no answer
    found = scored(qrels, run, {"q1": "en", "q2": "de", "q3": "en", "q4": "en"})
    assert found["R@2"] == Scores({"q1": pytest.approx(1 / 3), "q2": 1.0, "q3": 0.0}, left_out=1)
    # q1: of German and Thai, one; q2: of English, all; q3 has no relevant document in another language.
    assert found["TLR@2"] == Scores({"q1": 0.5, "q2": 1.0}, left_out=2)
    # q1: English is at rank three; q2: German, found; q3: not answered.
    assert found["SLR@2"] == Scores({"q1": 0.0, "q2": 1.0, "q3": 0.0}, left_out=1)
    ideal = 1 + 1 / math.log2(3)
    assert found["nDCG@2"] == Scores({"q1": pytest.approx(1 / ideal), "q2": 1.0, "q3": 0.0}, left_out=1)
    assert found["TLR@2"].mean == 0.75
    assert found["TLR@2"].queries == 2
    assert found["R@2"].mean == pytest.approx(4 / 9)


def test_own_is_whether_an_answer_in_the_querys_language_is_among_the_first():
    qrels = {
        "first": {"a-en": 2, "b-en": 1, "a-de": 3},
        "behind": {"a-en": 1, "b-en": 1, "a-de": 1},
        "far": {"b-en": 1, "a-de": 1},
        "unanswered": {"a-de": 1},
        "elsewhere": {"a-de": 1, "x": 1, "a-en": 0},
        "unknown": {"a-en": 1},
    }
    run = {
        "first": {"a-en": 0.9, "b-en": 0.8, "a-de": 0.7},
        "behind": {"a-de": 0.9, "b-de": 0.8, "b-en": 0.7, "a-en": 0.6},
        "far": {"a-de": 0.9, "a-th": 0.8, "a-en": 0.7, "b-en": 0.6},
        "elsewhere": {"a-en": 0.9, "a-de": 0.8},
        "unknown": {"a-en": 0.9},
    }
    queries = {**dict.fromkeys(qrels, "en"), "unanswered": "de", "unknown": None, "unjudged": "en"}
    found = scored(qrels, run, queries, ["own@1", "own@3"])
    counted = {"first": 1.0, "behind": 0.0, "far": 0.0, "unanswered": 0.0}
    assert found["own@1"] == Scores(counted, left_out=3)
    assert found["own@3"] == Scores({**counted, "behind": 1.0}, left_out=3)
    assert (found["own@1"].mean, found["own@3"].mean) == (0.25, 0.5)


def test_unknown_languages_stay_out_of_the_measures_by_language():
    found = scored({"q1": {"x": 1, "a-de": 1}, "q2": {"a-de": 1}}, {"q1": {"x": 1.0}}, {"q1": "en", "q2": None})
    assert found["R@2"] == Scores({"q1": 0.5, "q2": 0.0}, left_out=0)
    assert found["TLR@2"] == Scores({"q1": 0.0}, left_out=1)
    assert found["SLR@2"] == Scores({}, left_out=2)
    assert found["SLR@2"].mean is None


def test_grades_at_or_below_zero_are_not_relevant():
    found = scored({"q1": {"a-en": 0, "a-de": 3}, "q2": {"a-en": 0}}, {"q1": {"a-en": 1.0}}, {"q1": "en", "q2": "en"})
    assert found["R@2"] == Scores({"q1": 0.0}, left_out=1)
    assert found["SLR@2"] == Scores({}, left_out=2)
    assert found["TLR@2"] == Scores({"q1": 0.0}, left_out=1)


def test_answers_to_queries_that_were_not_asked_count_nowhere():
    found = scored({"q1": {"a-en": 1}}, {"q1": {"a-en": 1.0}, "q9": {"a-en": 1.0}}, {"q1": "en"})
    assert found["R@2"] == Scores({"q1": 1.0}, left_out=0)


def test_ties_break_as_trec_eval_breaks_them():
    # Equal scores: the greater id comes first, whatever the order of the answer.
    found = scored({"q1": {"a-th": 1}}, {"q1": {"a-de": 0.5, "a-en": 0.5, "a-th": 0.5}}, {"q1": "en"}, ["R@1"])
    assert found["R@1"].mean == 1.0
    # Scores that differ beyond 32 bits are equal, too.
    found = scored({"q1": {"a-th": 1}}, {"q1": {"a-de": 0.5 + 1e-12, "a-th": 0.5}}, {"q1": "en"}, ["R@1"])
    assert found["R@1"].mean == 1.0


def test_some_of_the_queries():
    scores = Scores({"q1": 1.0, "q2": 0.0, "q3": 0.5}, left_out=1)
    assert scores.over(["q1", "q3", "q4"]) == Scores({"q1": 1.0, "q3": 0.5}, left_out=1)


def random_case(seed: int):
    """Qrels with grades 0 to 3, runs with ties and holes, and languages for it all."""
    draw = random.Random(seed)
    tags = ["en", "de", "th", "zh", None]
    documents = {f"d{number:02d}": draw.choice(tags) for number in range(60)}
    queries = {f"q{number}": draw.choice(tags) for number in range(30)}
    qrels = {
        query: {name: draw.choice([0, 1, 1, 2, 3]) for name in draw.sample(sorted(documents), draw.randint(1, 25))}
        for query in queries
        if draw.random() < 0.9
    }
    run = {
        query: {name: draw.randint(0, 12) / 8 for name in draw.sample(sorted(documents), draw.randint(0, 40))}
        for query in queries
        if draw.random() < 0.9
    }
    return documents, queries, qrels, run


def top(run, query: str, k: int) -> list[str]:
    hits = run.get(query, {})
    return sorted(hits, key=lambda name: (np.float32(hits[name]), name), reverse=True)[:k]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [1, 5, 20])
def test_against_independent_formulas(seed, k):
    documents, queries, qrels, run = random_case(seed)
    names = [f"{family}@{k}" for family in ("nDCG", "R", "TLR", "SLR", "own")]
    found = score(names, Material(qrels, run, queries, documents))
    expected: dict[str, dict[str, float]] = {name: {} for name in names}
    for query, language in queries.items():
        grades = qrels.get(query, {})
        ranked = top(run, query, k)
        relevant = {name for name, grade in grades.items() if grade > 0}
        known = {name for name in relevant if documents[name] is not None} if language else set()
        same = {name for name in known if documents[name] == language}
        for family, part in (("R", relevant), ("TLR", known - same), ("SLR", same)):
            if part:
                expected[f"{family}@{k}"][query] = len(part & set(ranked)) / len(part)
        if same:
            expected[f"own@{k}"][query] = float(bool(same & set(ranked)))
        if relevant:
            gain = sum(grades.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(ranked))
            best = sorted(grades.values(), reverse=True)[:k]
            ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))
            expected[f"nDCG@{k}"][query] = gain / ideal
    for name in names:
        assert found[name].per_query == pytest.approx(expected[name], abs=1e-12)
        assert found[name].left_out == len(queries) - len(expected[name])
        assert found[name].queries + found[name].left_out == len(queries)


@pytest.mark.parametrize("seed", range(5))
def test_a_written_run_scores_the_same(seed, tmp_path):
    documents, queries, qrels, _ = random_case(seed)
    draw = random.Random(seed)
    run = {query: {name: float(np.float32(draw.random())) for name in sorted(documents)} for query in queries}
    rankings = {q: sorted(hits.items(), key=lambda hit: -hit[1]) for q, hits in run.items()}
    path = tmp_path / "run.trec"
    path.write_text(format_run(rankings, "my index"))
    names = ["nDCG@20", "TLR@5"]
    read: dict[str, dict[str, float]] = {}
    for line in read_trec_run(str(path)):
        read.setdefault(line.query_id, {})[line.doc_id] = line.score
    assert read == run
    ours = score(names, Material(qrels, run, queries, documents))["nDCG@20"]
    assert score(names, Material(qrels, read, queries, documents))["nDCG@20"] == ours
    relevant = {q: judged for q, judged in qrels.items() if any(grade > 0 for grade in judged.values())}
    assert (nDCG @ 20).calc_aggregate(relevant, read_trec_run(str(path))) == pytest.approx(ours.mean, abs=1e-12)


def test_a_run_in_six_columns():
    assert format_run({"q1": [("b", 0.75), ("a", 0.1 + 0.2)], "q2": []}, "my index") == (
        "q1 Q0 b 1 0.75 my_index\nq1 Q0 a 2 0.30000000000000004 my_index\n"
    )


def test_names_are_read_with_their_case():
    assert parse_measure(" TLR@5 ").name == "TLR@5"
    assert parse_measure("nDCG@100").family is FAMILIES["nDCG"]


KNOWN = (
    "nDCG@k, R@k, P@k, AP, RR, Judged@k, TLR@k, SLR@k, own@k, TR@k, LPR, Lang_nDCG@k, Top1, PEER, PSI@k, "
    "EvidenceHit@k, MostShown@k, Share@k, Entropy@k, JS@k, KL@k"
)


@pytest.mark.parametrize(
    "name", ["ndcg@20", "tlr@20", "R@", "R@-1", "R@0", "R@20@20", "R@2²", "", "R(2)@20", "R(a=b)@2"]
)
def test_unknown_names(name):
    with pytest.raises(UsageError) as caught:
        parse_measure(name)
    assert str(caught.value) == (
        f"{name!r} is not a known measure: use {KNOWN}, where k is a rank such as 20, "
        "or any other measure of ir_measures, such as Success@k."
    )


WRONG = {
    "R": "'R' is not a valid form of R: write R@k, where k is a rank such as 20.",
    "TLR": "'TLR' is not a valid form of TLR: write TLR@k, where k is a rank such as 20.",
    "TLR@0.5": "'TLR@0.5' is not a valid form of TLR: write TLR@k, where k is a rank such as 20.",
    "LPR@20": "'LPR@20' is not a valid form of LPR: write LPR.",
    "TLR(rel=2)@20": "'TLR(rel=2)@20' sets 'rel', which is not an option of TLR: it has no options.",
    "Lang_nDCG(grade=2)@20": (
        "'Lang_nDCG(grade=2)@20' sets 'grade', which is not an option of Lang_nDCG: its options are same and other."
    ),
    "Lang_nDCG(same=2.5)@20": "'Lang_nDCG(same=2.5)@20' sets same to 2.5: give a whole number from 0 to 20.",
    "JS(root=1)@20": "'JS(root=1)@20' sets root to 1: give True or False.",
    "KL(smoothing=0)@20": "'KL(smoothing=0)@20' sets smoothing to 0: give a number between 0 and 1.",
    "Entropy(base=1)@20": "'Entropy(base=1)@20' sets base to 1: give a number above 1, such as 2 for bits.",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_name_that_is_written_wrongly_is_told_how(name):
    with pytest.raises(UsageError) as caught:
        parse_measure(name)
    assert str(caught.value) == WRONG[name]


def test_white_space_in_a_name_is_nothing():
    assert parse_measure("Lang_nDCG( same = 3, other=1 ) @20").name == "Lang_nDCG(same=3,other=1)@20"


def test_a_list_is_parted_by_blanks_and_commas_outside_of_brackets():
    assert split_measures(" nDCG@20,TLR@20  Lang_nDCG(same=3, other=1)@20 nDCG(gains={1: 3, 2: 7})@5,LPR LPR ") == [
        "nDCG@20",
        "TLR@20",
        "Lang_nDCG(same=3, other=1)@20",
        "nDCG(gains={1: 3, 2: 7})@5",
        "LPR",
    ]
    assert split_measures(" , ") == []
    # What is no name stays in one piece for the error to show.
    assert split_measures("nDCG@20) (TLR") == ["nDCG@20)", "(TLR"]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_measure_says_which_way_is_good_and_where_it_comes_from(family):
    assert family.direction in ("high", "low", "report")
    assert family.source
    assert family.written.startswith(family.name)
    if family.source.split()[0] not in ("trec_eval,", "ir_measures,"):
        definition = " ".join(family.compute.__doc__.split())
        assert f"Direction: {family.direction}" in definition
        assert "Source: " in definition
        assert family.source.split()[0] in definition.partition("Source: ")[2]


ACROSS = ["TLR@20", "LPR", "TR@20", "Lang_nDCG@20", "Top1", "PEER", "JS@20", "KL@20"]


@pytest.mark.parametrize("name", ACROSS)
def test_data_judged_per_language_has_no_measures_across_languages(name):
    material = Material({"q": {"a-en": 1}}, {}, {"q": "en"}, LANGUAGES, judged="per-language")
    with pytest.raises(UsageError) as caught:
        score(["nDCG@20", name], material)
    assert str(caught.value) == (
        f"{name} cannot be computed from this dataset: its documents are judged only for queries in their own language "
        '("judged": "per-language" in dataset.json), so a document in another language counts as '
        "wrong. Use measures that do not compare languages, such as nDCG@10, R@100 and SLR@20."
    )


def test_data_judged_per_language_has_the_others():
    material = Material({"q": {"a-en": 1}}, {"q": {"a-en": 1.0}}, {"q": "en"}, LANGUAGES, judged="per-language")
    own = ("SLR@20", "own@1", "own@3", "MostShown@20")
    assert default_measures("per-language") == ("nDCG@20", "R@20", *own)
    assert default_measures("pooled") == ("nDCG@20", "R@20", "TLR@20", *own)
    found = score([*default_measures("per-language"), "Share@5", "Entropy@5"], material)
    assert {name: scores.mean for name, scores in found.items()} == {
        "nDCG@20": 1.0,
        "R@20": 1.0,
        **dict.fromkeys(own, 1.0),
        "Share@5": 1.0,
        "Entropy@5": 0.0,
    }

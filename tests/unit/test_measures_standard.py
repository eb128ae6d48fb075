"""Standard measures are pytrec_eval's, to 1e-9, whatever ties, holes and grades there are."""

from __future__ import annotations

import math

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from langshift.errors import UsageError
from langshift.evaluate.measures import OWN, parse_measure, score
from langshift.evaluate.measures.base import Material, Scores

DOCUMENTS = [f"d{number:02d}" for number in range(25)]
QUERIES = [f"q{number}" for number in range(6)]
# pytrec_eval's own names for ours.
NAMES = {
    "nDCG@5": "ndcg_cut_5",
    "nDCG@20": "ndcg_cut_20",
    "nDCG": "ndcg",
    "R@5": "recall_5",
    "R@20": "recall_20",
    "P@1": "P_1",
    "P@10": "P_10",
    "AP": "map",
    "AP@10": "map_cut_10",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "Success@5": "success_5",
}

# Eighths: many ties, and all of them exact as 32-bit floats.
answers = st.dictionaries(
    st.sampled_from(QUERIES), st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-4, 12).map(lambda n: n / 8))
)
judgements = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-1, 0, 1, 1, 2, 3]), min_size=1),
)


def material(qrels, run):
    return Material(qrels, run, dict.fromkeys(QUERIES, "en"), dict.fromkeys(DOCUMENTS, "en"))


def reference(qrels, run, name, gain=lambda grade: grade):
    """Straight from pytrec_eval: unanswered queries are 0, those without relevant document left out."""
    kept = {
        query: {document: gain(grade) for document, grade in judged.items()}
        for query, judged in qrels.items()
        if any(grade > 0 for grade in judged.values())
    }
    given = {query: hits for query, hits in run.items() if query in kept and hits}
    found = pytrec_eval.RelevanceEvaluator(kept, {name}).evaluate(given) if kept else {}
    return {query: found[query][name] if query in found else 0.0 for query in kept}


@settings(max_examples=150)
@given(qrels=judgements, run=answers)
def test_equal_to_pytrec_eval(qrels, run):
    found = score(list(NAMES), material(qrels, run))
    for name, theirs in NAMES.items():
        expected = reference(qrels, run, theirs)
        assert found[name].per_query == pytest.approx(expected, abs=1e-9)
        assert found[name].left_out == len(QUERIES) - len(expected)
        if expected:
            assert found[name].mean == pytest.approx(sum(expected.values()) / len(expected), abs=1e-9)


@settings(max_examples=60)
@given(qrels=judgements, run=answers)
def test_exponential_gain_is_a_map_of_grades(qrels, run):
    name = "nDCG(gains={1:1,2:3,3:7})@10"
    found = score([name], material(qrels, run))[name]
    gains = {grade: max(2**grade - 1, 0) for grade in range(4)} | {-1: -1}
    assert found.per_query == pytest.approx(reference(qrels, run, "ndcg_cut_10", gains.get), abs=1e-9)


def test_exponential_gain_by_hand():
    # Grade 1 before grade 2: (2^1 - 1) / log2(2) + (2^2 - 1) / log2(3), of the other way round.
    found = score(
        ["nDCG(gains={1:1,2:3})@20"], material({"q0": {"d00": 1, "d01": 2}}, {"q0": {"d00": 2.0, "d01": 1.0}})
    )
    expected = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert found["nDCG(gains={1:1,2:3})@20"].per_query["q0"] == pytest.approx(expected, abs=1e-12)


def test_the_least_grade_that_is_relevant_can_be_raised():
    # q0 has one document of grade 2, found; q1 has none, so that it has no relevant document.
    given = material({"q0": {"d00": 2, "d01": 1}, "q1": {"d00": 1}}, {"q0": {"d00": 1.0}, "q1": {"d00": 1.0}})
    assert score(["R(rel=2)@5"], given)["R(rel=2)@5"] == Scores({"q0": 1.0}, left_out=5)
    assert score(["R@5"], given)["R@5"] == Scores({"q0": 0.5, "q1": 1.0}, left_out=4)


def test_ties_break_in_every_measure_as_trec_eval_breaks_them():
    # d02 comes first, being the greater id; ir_measures alone would put d01 first in Judged and RR@k.
    given = material({"q0": {"d01": 1}}, {"q0": {"d01": 0.5, "d02": 0.5}})
    found = score(["Judged@1", "RR@5", "RR", "P@1"], given)
    assert {name: scores.mean for name, scores in found.items()} == {"Judged@1": 0, "RR@5": 0.5, "RR": 0.5, "P@1": 0}


def test_judged_is_the_share_of_what_was_found():
    # Two of three were judged, one of them as not relevant; the cut is beyond the answer.
    given = material({"q0": {"d01": 1, "d02": 0}}, {"q0": {"d01": 3.0, "d02": 2.0, "d03": 1.0}})
    assert score(["Judged@10"], given)["Judged@10"].mean == pytest.approx(2 / 3)


def test_scores_beyond_32_bits_are_ties_too():
    given = material({"q0": {"d01": 1}}, {"q0": {"d01": 1e300, "d02": 1e301}})
    assert score(["RR"], given)["RR"].mean == 0.5


UNCOMPUTABLE = {
    "ERR@20": (
        "'ERR@20' is a measure of ir_measures that no installed package can compute: use another, such as nDCG@20."
    ),
    "RBP(rel=1)": (
        "'RBP(rel=1)' is a measure of ir_measures that no installed package can compute: "
        "run pip install 'ir-measures[cwl_eval]'."
    ),
    "nDCG(dcg='exp-log2')@20": (
        "\"nDCG(dcg='exp-log2')@20\" would call a Perl script: map grades to gains instead, "
        "for example nDCG(gains={2:3,3:7})@20 for 2^grade - 1."
    ),
    "nDCG(gains={1:.5})@20": "'nDCG(gains={1:.5})@20' sets gains to {1: 0.5}, which nDCG does not accept.",
    "P(rel='a')@5": "\"P(rel='a')@5\" sets rel to 'a', which P does not accept.",
    "P(depth=3)@5": "'P(depth=3)@5' sets 'depth', which is not an option of P: its options are judged_only, rel.",
    "Success": "'Success' is not a valid form of Success: write Success@k, where k is a rank such as 20.",
    "IPrec": "'IPrec' is not a valid form of IPrec: it needs recall.",
    "Bpref@5": "'Bpref@5' is not a valid form of Bpref: it takes no cutoff.",
}


@pytest.mark.parametrize("name", UNCOMPUTABLE)
def test_what_cannot_be_computed_is_refused(name):
    with pytest.raises(UsageError) as caught:
        parse_measure(name)
    assert str(caught.value) == UNCOMPUTABLE[name]


@pytest.mark.parametrize("name", ["IPrec@0.1", "SetP", "Compat(p=0.9)", "infAP", "MRR@10", "NumRet"])
def test_anything_else_that_ir_measures_can_compute_goes_by_its_name(name):
    measure = parse_measure(name)
    assert measure.family.direction == ("report" if name == "NumRet" else "high")
    found = score([name], material({"q0": {"d01": 1}}, {"q0": {"d01": 3.0}}))[name]
    assert found.mean == pytest.approx(1.0)


def test_no_measure_of_our_own_hides_one_of_ir_measures():
    import ir_measures

    theirs = {alias.lower() for name, base in ir_measures.measures.registry.items() for alias in (name, base.NAME)}
    assert not {family.name.lower() for family in OWN} & theirs

"""PSI: bins and buckets as in PosIR, and the index by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material, Scores
from langshift.evaluate.measures.fairness import bucket, position_bin

SECOND = 1 / math.log2(3)  # nDCG where the one relevant document is at rank two


def psi(cases, name="PSI@10") -> Scores:
    """Score queries given as position, length and the rank at which the document is found (0: not found)."""
    qrels, run, evidence, lengths = {}, {}, {}, {}
    for number, (position, length, rank) in enumerate(cases):
        query, document = f"q{number}", f"d{number}"
        qrels[query], evidence[query] = {document: 1}, {document: position}
        lengths[document] = length
        hits = [f"n{place}" for place in range(12)]
        if rank:
            hits[rank - 1] = document
        run[query] = {hit: 1.0 - place / 16 for place, hit in enumerate(hits)}
    queries = dict.fromkeys(qrels, "en")
    return score([name], Material(qrels, run, queries, {}, evidence=evidence, lengths=lengths))[name]


@pytest.mark.parametrize(
    ("position", "number"),
    [(0.0, 0), (0.0499, 0), (0.05, 1), (0.5, 10), (0.949, 18), (0.95, 19), (0.999, 19), (1.0, 19)],
)
def test_twenty_bins_of_equal_width(position, number):
    assert position_bin(position) == number


@pytest.mark.parametrize(
    ("length", "name"),
    [
        (0, "Q1"),
        (1, "Q1"),
        (512, "Q1"),
        (513, "Q2"),
        (1024, "Q2"),
        (1025, "Q3"),
        (1536, "Q3"),
        (1537, "Q4"),
        (2048, "Q4"),
    ],
)
def test_four_buckets_of_512_tokens(length, name):
    assert bucket(length) == name


def test_a_document_beyond_the_buckets_has_none():
    assert bucket(2049) is None


def test_by_hand():
    found = psi(
        [
            (0.00, 100, 1),  # Q1, first bin: (1 + SECOND) / 2
            (0.04, 512, 2),
            (0.50, 300, 2),  # Q1, bin 10: SECOND
            (0.97, 300, 1),  # Q1, last bin: 1
            (0.10, 600, 1),  # Q2, bin 2: 1
            (1.00, 600, 0),  # Q2, last bin: 0
            (0.20, 1200, 1),  # Q3 has one bin only
        ]
    )
    first, second = 1 - SECOND / 1, 1 - 0 / 1
    assert found.mean == pytest.approx((first + second) / 2)
    assert (found.queries, found.left_out) == (7, 0)
    assert found.note == "54 of 60 position bins contain no queries and are left out."
    assert found.table is not None
    assert found.table.heads == ["Q1", "Q2", "Q3"]
    assert found.table.cells["PSI"] == {
        "Q1": (pytest.approx(first), 4),
        "Q2": (pytest.approx(second), 2),
        "Q3": (None, 1),
    }
    assert found.table.cells["0.00-0.05"] == {"Q1": (pytest.approx((1 + SECOND) / 2), 2)}
    assert found.table.cells["0.95-1.00"] == {"Q1": (1.0, 1), "Q2": (0.0, 1)}
    assert found.table.cells["0.05-0.10"] == {}
    part = found.over(["q0", "q1", "q2"])
    assert part.mean == pytest.approx(1 - SECOND / ((1 + SECOND) / 2))


def test_nothing_found_anywhere_has_no_index():
    found = psi([(0.1, 100, 0), (0.9, 100, 0)])
    assert (found.mean, found.queries) == (None, 2)


def test_the_cutoff_is_that_of_ndcg():
    cases = [(0.1, 100, 1), (0.9, 100, 2)]
    assert psi(cases, "PSI@1").mean == 1.0
    assert psi(cases, "PSI@2").mean == pytest.approx(1 - SECOND)


def test_a_query_goes_by_its_best_document_with_evidence():
    material = Material(
        {"q1": {"a": 1, "b": 2, "c": 3}, "q2": {"a": 1}},
        {"q1": {"c": 1.0}, "q2": {"a": 1.0}},
        {"q1": "en", "q2": "en"},
        {},
        evidence={"q1": {"a": 0.1, "b": 0.5}, "q2": {"a": 0.9}},
        lengths={"a": 10, "b": 10, "c": 10},
    )
    table = score(["PSI@10"], material)["PSI@10"].table
    assert table is not None
    assert [row for row, cells in table.cells.items() if cells] == ["PSI", "0.50-0.55", "0.90-0.95"]


def test_what_is_left_out():
    queries = dict.fromkeys(["q1", "q2", "q3", "q4"], "en")
    material = Material(
        {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}, "q4": {"a": 0}},
        {},
        queries,
        {},
        evidence={"q1": {"a": 0.5}, "q2": {"b": 0.5}, "q4": {"a": 0.5}},
        lengths={"a": 10, "b": 5000},
    )
    found = score(["PSI@10"], material)["PSI@10"]
    # q2's document is too long, q3's has no evidence, q4 has no relevant document.
    assert (found.queries, found.left_out) == (1, 3)


def test_without_evidence_it_is_undefined_and_says_so():
    found = score(["PSI@10"], Material({"q": {"a": 1}}, {"q": {"a": 1.0}}, {"q": "en"}, {}))["PSI@10"]
    assert found == Scores(
        {}, 1, "undefined without the evidence's positions and the documents' lengths (evidence.tsv)."
    )


@settings(max_examples=100)
@given(
    cases=st.lists(
        st.tuples(st.floats(0, 1, allow_nan=False), st.integers(1, 2200), st.integers(0, 12)), min_size=1, max_size=40
    )
)
def test_against_an_independent_formula(cases):
    found = psi(cases)
    edges = [step / 20 for step in range(1, 20)]
    indices = []
    for low in range(0, 2048, 512):
        bins: dict[int, list[float]] = {}
        for position, length, rank in cases:
            if low < length <= low + 512:
                gain = 1 / math.log2(rank + 1) if 1 <= rank <= 10 else 0.0
                bins.setdefault(sum(position >= edge for edge in edges), []).append(gain)
        means = [sum(gains) / len(gains) for gains in bins.values()]
        if len(means) > 1 and max(means) > 0:
            indices.append(1 - min(means) / max(means))
    assert found.mean == (pytest.approx(sum(indices) / len(indices), abs=1e-9) if indices else None)
    assert found.queries == sum(length <= 2048 for _, length, _ in cases)

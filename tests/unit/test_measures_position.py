"""PSI: bins, buckets and versions as in PosIR, the index by hand, and its floor; EvidenceHit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langshift.errors import UsageError
from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material, Scores
from langshift.evaluate.measures.positions import bucket, position_bin

SECOND = 1 / math.log2(3)  # nDCG where the one relevant document is at rank two


def psi(cases, name="PSI@10", languages=("en",)) -> Scores:
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
    queries = {query: languages[number % len(languages)] for number, query in enumerate(qrels)}
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
    # Of all lengths the last bin has the lowest mean: (1 + 0) / 2.
    assert found.mean == pytest.approx(1 - 0.5)
    assert (found.queries, found.left_out) == (7, 0)
    assert found.table is not None
    assert found.table.heads == ["Q1", "Q2", "Q3", "all"]
    cells = found.table.cells
    assert cells["PSI"] == {
        "Q1": (pytest.approx(1 - SECOND), 4),
        "Q2": (1.0, 2),
        "Q3": (None, 1),
        "all": (pytest.approx(0.5), 7),
    }
    # Whichever way two figures, 1 and 0, are dealt out to two bins.
    assert (cells["floor"]["Q2"], cells["floor 95 %"]["Q2"]) == ((1.0, 2), (1.0, 2))
    assert cells["floor"]["Q3"] == cells["floor 95 %"]["Q3"] == (None, 1)
    assert cells["nDCG"]["Q2"] == (0.5, 2)
    assert cells["nDCG"]["all"] == (pytest.approx((4 + 2 * SECOND) / 7), 7)
    assert cells["fifth 1"] == {
        "Q1": (pytest.approx((1 + SECOND) / 2), 2),
        "Q2": (1.0, 1),
        "all": (pytest.approx((2 + SECOND) / 3), 3),
    }
    assert cells["fifth 2"] == {"Q3": (1.0, 1), "all": (1.0, 1)}
    assert cells["fifth 4"] == {}
    assert cells["0.00-0.05"] == {name: (pytest.approx((1 + SECOND) / 2), 2) for name in ("Q1", "all")}
    assert cells["0.95-1.00"] == {"Q1": (1.0, 1), "Q2": (0.0, 1), "all": (0.5, 2)}
    assert cells["0.05-0.10"] == {}
    floor, floor_95 = cells["floor"]["all"].mean, cells["floor 95 %"]["all"].mean
    assert found.note == (
        f"without any bias it would be {floor:.3f} on average, and up to {floor_95:.3f} by chance. "
        "54 of 60 position bins contain no queries and are left out."
    )
    part = found.over(["q0", "q1", "q2"])
    assert part.mean == pytest.approx(1 - SECOND / ((1 + SECOND) / 2))


def test_it_is_the_mean_over_query_languages():
    # By turns German and Swahili: German has 1 and SECOND, Swahili 1 and 0.
    found = psi([(0.1, 100, 1), (0.1, 600, 1), (0.9, 100, 2), (0.9, 600, 0)], languages=("de", "sw"))
    assert found.mean == pytest.approx((1 - SECOND + 1) / 2)
    assert found.table is not None
    assert found.table.heads == ["Q1", "Q2", "all", "de", "sw"]
    assert found.table.cells["PSI"] == {
        "Q1": (pytest.approx(1 - SECOND), 2),
        "Q2": (1.0, 2),
        "all": (pytest.approx((2 - SECOND) / 2), 4),
        "de": (pytest.approx(1 - SECOND), 2),
        "sw": (1.0, 2),
    }
    assert found.table.cells["fifth 5"]["all"] == (pytest.approx(SECOND / 2), 2)
    assert found.over(["q0", "q2"]).mean == pytest.approx(1 - SECOND)


@pytest.mark.parametrize(
    ("queries", "share", "floor", "floor_95"),
    [(1190, 0.95, 0.105, 0.141), (1190, 0.88, 0.166, 0.226), (1190, 0.73, 0.256, 0.327), (400, 0.88, 0.270, None)],
)
def test_without_any_bias_it_is_about_its_floor(queries, share, floor, floor_95):
    """Documents found first, or not at all, wherever in them the evidence is."""
    random = np.random.default_rng(3)
    # Exactly so many are found.
    found = random.permutation(np.arange(queries) < share * queries)
    cells = psi([(random.random(), 900, int(hit)) for hit in found]).cells
    assert cells["floor"]["all"].mean == pytest.approx(floor, rel=0.1)
    if floor_95:
        assert cells["floor 95 %"]["all"].mean == pytest.approx(floor_95, rel=0.12)
    assert cells["PSI"]["all"].mean == pytest.approx(floor, rel=0.5)


def test_a_bias_stands_out_from_the_floor():
    random = np.random.default_rng(4)
    positions = random.random(1190)
    found = psi([(position, 900, int(random.random() < 1 - 0.4 * position)) for position in positions])
    cells = found.cells
    assert cells["PSI"]["all"].mean > cells["floor 95 %"]["all"].mean > cells["floor"]["all"].mean
    assert psi([(position, 900, 1) for position in positions]).cells["floor 95 %"]["all"].mean == 0


def test_positions_are_permuted_inside_each_bucket():
    # All of the short documents are found and stand in one half, and none of the long ones: that is no bias of theirs.
    cases = [(0.1 + 0.3 * (number % 2), 100, 1) for number in range(40)]
    cases += [(0.6 + 0.3 * (number % 2), 2000, 0) for number in range(40)]
    cells = psi(cases).cells
    assert cells["PSI"]["all"].mean == cells["floor"]["all"].mean == 1
    assert (cells["PSI"]["Q1"].mean, cells["floor"]["Q1"].mean, cells["PSI"]["Q4"].mean) == (0, 0, None)


def test_a_question_in_several_languages_is_moved_alike_in_all():
    random = np.random.default_rng(5)
    cases = [(random.random(), 900, int(random.random() < 0.8)) for _ in range(300)]
    alone = psi(cases).cells
    both = psi([case for case in cases for _ in range(2)], languages=("de", "en")).cells
    for name in ("PSI", "floor", "floor 95 %"):
        assert both[name]["all"].mean == pytest.approx(alone[name]["all"].mean, abs=1e-12)


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
    cells = score(["PSI@10"], material)["PSI@10"].cells
    assert [row for row in list(cells)[-20:] if cells[row]] == ["0.50-0.55", "0.90-0.95"]


POOLED = Material(
    {"q-de": {"a-de": 1, "a-en": 1, "a-zh": 1}, "q-en": {"a-de": 1, "a-en": 1}, "q-th": {"a-en": 1, "a-zh": 1}},
    {
        "q-de": {"a-zh": 5.0, "x": 4.0, "a-de": 3.0, "a-en": 2.0},
        "q-en": {"x": 5.0, "y": 4.0, "a-de": 3.0, "a-en": 2.0},
        "q-th": {"a-zh": 2.0, "a-en": 1.0},
    },
    {"q-de": "de", "q-en": "en", "q-th": "th"},
    {"a-de": "de", "a-en": "en", "a-zh": "zh", "x": "en", "y": "de"},
    evidence={
        "q-de": {"a-de": 0.1, "a-en": 0.2, "a-zh": 0.3},
        "q-en": {"a-de": 0.4, "a-en": 0.5},
        "q-th": {"a-en": 0.6, "a-zh": 0.7},
    },
    lengths={"a-de": 10, "a-en": 10, "a-zh": 10},
)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        # All count: the three at ranks 1, 3 and 4, the two at 3 and 4, and the two at 1 and 2.
        (
            "PSI@10",
            {
                "0.10-0.15": (1 + 1 / 2 + 1 / math.log2(5)) / (1 + SECOND + 1 / 2),
                "0.50-0.55": (1 / 2 + 1 / math.log2(5)) / (1 + SECOND),
                "0.60-0.65": 1,
            },
        ),
        # The own alone, at rank 2 behind what is no translation, and at 3; there is no Thai one.
        ("PSI(documents='own')@10", {"0.10-0.15": SECOND, "0.50-0.55": 1 / 2}),
        # The English one, for questions in other languages.
        ("PSI(documents='en')@10", {"0.20-0.25": SECOND, "0.60-0.65": 1}),
    ],
)
def test_which_version_of_a_document_counts(name, shown):
    found = score([name], POOLED)[name]
    bins = {row: cells["all"].mean for row, cells in list(found.cells.items())[-20:] if cells}
    assert bins == {row: pytest.approx(figure) for row, figure in shown.items()}
    assert (found.queries, found.left_out) == (len(shown), 3 - len(shown))


def test_a_version_that_is_none_is_refused():
    with pytest.raises(UsageError) as caught:
        score(["PSI(documents=2)@10"], POOLED)
    assert str(caught.value) == (
        "'PSI(documents=2)@10' sets documents to 2: give 'all', 'own', or a language such as 'en'."
    )


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
    bins: dict[str, dict[int, list[float]]] = {}
    for position, length, rank in cases:
        if length <= 2048:
            gain = 1 / math.log2(rank + 1) if 1 <= rank <= 10 else 0.0
            for name in ("all", f"Q{-(-length // 512)}"):
                bins.setdefault(name, {}).setdefault(sum(position >= edge for edge in edges), []).append(gain)
    if bins:
        for name, gains in bins.items():
            means = [sum(of) / len(of) for of in gains.values()]
            expected = 1 - min(means) / max(means) if len(means) > 1 and max(means) > 0 else None
            assert found.cells["PSI"][name].mean == (None if expected is None else pytest.approx(expected, abs=1e-9))
        assert found.mean == found.cells["PSI"]["all"].mean
    assert found.queries == sum(length <= 2048 for _, length, _ in cases)


SPANS = {"q1": {"a": (100, 120)}, "q2": {"b": (0, 10), "b-de": (4, 20)}, "q3": {"c": (5, 6)}, "q4": {"a": (1, 3)}}


def evidence_hit(passages, name="EvidenceHit@2", spans=SPANS) -> Scores:
    qrels = {"q1": {"a": 1}, "q2": {"b": 1, "b-de": 1}, "q3": {"c": 1}, "q4": {"a": 0, "b": 1}, "q5": {"a": 1}}
    run = {"q1": {"x": 3.0, "a": 2.0}, "q2": {"b": 3.0, "x": 2.0, "b-de": 1.0}, "q4": {"a": 1.0}, "q5": {"a": 1.0}}
    material = Material(qrels, run, dict.fromkeys(qrels, "en"), {}, spans=spans, passages=passages)
    return score([name], material)[name]


@pytest.mark.parametrize(
    ("passage", "shown"),
    [
        ((100, 120), 1.0),
        ((0, 110), 1.0),  # half of it
        ((0, 109), 0.0),
        ((110, 900), 1.0),
        ((111, 900), 0.0),
        ((105, 115), 1.0),
        ((300, 400), 0.0),
    ],
)
def test_a_passage_shows_evidence_where_it_has_half_of_it(passage, shown):
    found = evidence_hit({"q1": {"a": passage}})
    # q2's hits show nothing and q3 has no answer; q4's relevant document and q5's have no evidence with characters.
    assert found.per_query == {"q1": shown, "q2": 0.0, "q3": 0.0}
    assert (found.mean, found.left_out) == (shown / 3, 2)


def test_any_version_may_show_it_among_the_first_k():
    passages = {"q2": {"b": (50, 90), "x": (0, 90), "b-de": (0, 90)}}
    assert evidence_hit(passages).per_query["q2"] == 0
    assert evidence_hit(passages, "EvidenceHit@3").per_query["q2"] == 1
    assert evidence_hit({"q1": {"a": (90, 130)}}, "EvidenceHit@1").per_query["q1"] == 0


def test_evidence_hit_is_undefined_without_passages_or_characters():
    assert (
        evidence_hit({})
        == evidence_hit({"q1": {}})
        == Scores({}, 5, "undefined, because the hits show no passages: it is of indices of chunks.")
    )
    assert evidence_hit({"q1": {"a": (0, 9)}}, spans={}) == Scores(
        {}, 5, "undefined without the characters of the evidence (start and end in evidence.tsv)."
    )

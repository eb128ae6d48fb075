"""LAURA's measures of an order, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from langshift_lab.rerank.labels import Labels
from langshift_lab.rerank.laura import (
    LabelComparison,
    LauraRow,
    laura_row,
    relevant_languages,
    stage_one,
    top_positive,
)
from langshift_lab.rerank.pools import TrainingPool, judged_positive

LANGUAGES = {f"d{number}": tag for number, tag in enumerate(("en", "en", "de", "de", "en", "de", "en", "de"))}
RELEVANT = {"d0": 1, "d1": 1, "d2": 1, "d3": 1}
DATASET = SimpleNamespace(qrels={"q": RELEVANT}, relevant=lambda query: [*DATASET.qrels.get(query, {})])
POOL = TrainingPool(
    "q", "words", 0, "de", [*LANGUAGES], SimpleNamespace(languages=[*LANGUAGES.values()], cosines=np.arange(8.0, 0, -1))
)


def scores(order):
    return lambda _: np.array([-float(order.index(name)) for name in POOL.documents])


def test_the_figures_of_an_order():
    """Relevant at ranks 1, 2 (English), 4 and 6 (German); of the first five three are English."""
    order = ["d0", "d1", "d5", "d2", "d4", "d3", "d6", "d7"]
    oracle = {"de": {"de": 0.5, "en": 0.5}}
    row = laura_row("own", [POOL], scores(order), DATASET, LANGUAGES, oracle, [1.5])
    assert row.figures["P@5"] == pytest.approx(3 / 5)
    assert row.figures["P@10"] == pytest.approx(4 / 10)
    ideal = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3, 4))
    assert row.figures["nDCG@5"] == pytest.approx(sum(1 / math.log2(rank + 1) for rank in (1, 2, 4)) / ideal)
    assert row.figures["nDCG@10"] == pytest.approx(sum(1 / math.log2(rank + 1) for rank in (1, 2, 4, 6)) / ideal)
    # Ranks 1, 2 and 4, 6: H = 12 / (4 · 5) · (3² / 2 + 7² / 2) - 3 · 5 = 2.4, and P(χ² > 2.4) with one degree.
    assert row.figures["PEER"] == pytest.approx(math.erfc(math.sqrt(2.4 / 2)))
    assert row.languages == {"de": {"de": pytest.approx(0.4), "en": pytest.approx(0.6)}}
    middle = {"de": 0.45, "en": 0.55}
    divergence = sum(
        0.5 * one * math.log(one / middle[tag]) + 0.5 * 0.5 * math.log(0.5 / middle[tag])
        for tag, one in (("de", 0.4), ("en", 0.6))
    )
    assert row.figures["JS"] == pytest.approx(math.sqrt(divergence))
    assert row.figures["KL"] == pytest.approx(0.4 * math.log(0.4 / 0.5) + 0.6 * math.log(0.6 / 0.5), abs=1e-5)
    assert row.figures["entropy"] == pytest.approx(-0.4 * math.log(0.4) - 0.6 * math.log(0.6))
    assert row.to_dict()["loss"] == [1.5]
    assert row.warnings == []


def test_what_is_positive():
    assert judged_positive(DATASET)(POOL).tolist() == [True] * 4 + [False] * 4
    assert judged_positive(DATASET, same_language=True)(POOL).tolist() == [False, False, True, True] + [False] * 4
    order = ["d7", "d6", "d5", "d4", "d3", "d2", "d1", "d0"]
    assert top_positive(scores(order))(POOL).tolist() == [False] * 3 + [True] * 5


def test_the_first_stage_alone_takes_all_that_was_picked_of_the_best_languages():
    labels = [Labels("q", "de", [*LANGUAGES], {"de": 1.0, "en": 0.5}, {"d2": 1.0, "d3": 0.2, "d5": 0.0}, ["d2"])]
    assert stage_one(labels)(POOL).tolist() == [name in ("d2", "d3", "d5") for name in LANGUAGES]
    assert not stage_one(labels)(POOL._replace(query="other")).any()


def test_what_a_measure_leaves_out_is_said_once():
    rows = [LauraRow(name, {}, {}, warnings=["PEER: over 1 of 2 queries."]) for name in ("search", "untrained")]
    assert LabelComparison(rows, {}, 2, 4).to_dict()["warnings"] == ["PEER: over 1 of 2 queries."]


def test_languages_of_relevant_documents_stand_for_the_oracle():
    unknown = POOL._replace(query="other", language="th")
    assert relevant_languages([POOL, unknown], DATASET, LANGUAGES) == {"de": {"de": 0.5, "en": 0.5}}


def test_languages_of_orders_and_of_the_oracle_are_one_table():
    row = LauraRow("search", {}, {"de": {"de": 0.4, "en": 0.6}})
    found = LabelComparison([row], {"de": {"en": 1.0}}, 1, 4)
    assert found.language_table().splitlines() == [
        "order,question_language,document_language,share",
        "search,de,de,0.4",
        "search,de,en,0.6",
        "oracle,de,en,1.0",
    ]

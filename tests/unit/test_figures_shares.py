"""Shares of languages by rank and by query language, worked by hand."""

from __future__ import annotations

import numpy as np

from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material
from langshift.evaluate.report.sections import by_language, by_rank

QUERIES = {"q1": "en", "q2": "en", "q3": "de", "q4": None, "q5": "en", "q6": "fr"}
DOCUMENTS = {"d1": "en", "d2": "en", "d3": "de", "d4": "th", "d5": None}
RUN = {
    "q1": {"d1": 3.0, "d3": 2.0, "d4": 1.0},
    "q2": {"d1": 0.5, "d2": 0.9},
    "q3": {"d5": 1.0, "stranger": 2.0, "d3": 3.0, "d1": 0.1},
    "q4": {"d4": 1.0},
    "q5": {},
    "nobody's": {"d4": 9.0},
}


def test_by_rank_each_rank_is_divided_by_the_queries_that_reach_it():
    found = by_rank(RUN, QUERIES, DOCUMENTS, "en", depth=4)
    assert found.rows == ["de", "en", "th", "und"]
    assert found.columns == ["1", "2", "3", "4"]
    assert found.queries == 2
    nan = np.nan
    # Both first documents are English; the second is German once, English once; the third is one, Thai.
    wanted = [[0, 0.5, 0, nan], [1, 0.5, 0, nan], [0, 0, 1, nan], [0, 0, 0, nan]]
    np.testing.assert_array_equal(found.values, wanted)


def test_by_rank_counts_queries_and_documents_of_unknown_language_as_und():
    found = by_rank(RUN, QUERIES, DOCUMENTS, "de", depth=3)
    np.testing.assert_array_equal(found.values, [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 1]])
    found = by_rank(RUN, QUERIES, DOCUMENTS, "und", depth=1)
    assert (found.queries, found.values[:, 0].tolist()) == (1, [0, 0, 1, 0])


def test_by_rank_of_a_language_that_nobody_asks_in_has_no_figures():
    found = by_rank(RUN, QUERIES, DOCUMENTS, "zh")
    assert (found.queries, found.values.shape) == (0, (4, 20))
    assert np.isnan(found.values).all()


def test_by_rank_breaks_ties_as_the_measures_do():
    found = by_rank({"q1": {"d1": 1.0, "d4": 1.0}}, QUERIES, DOCUMENTS, "en", depth=2)
    np.testing.assert_array_equal(found.values, [[0, 0], [0, 1], [1, 0], [0, 0]])


def test_by_language_is_the_mean_over_queries():
    found = by_language(RUN, QUERIES, DOCUMENTS, depth=3)
    assert (found.rows, found.columns, found.queries) == (["de", "en", "fr", "und"], ["de", "en", "th", "und"], 4)
    third, nan = 1 / 3, np.nan
    wanted = [[third, 0, 0, 2 * third], [third / 2, (third + 1) / 2, third / 2, 0], [nan] * 4, [0, 0, 1, 0]]
    np.testing.assert_allclose(found.values, wanted, rtol=0, atol=1e-15)


def test_by_language_is_the_table_of_the_measure_share():
    table = score(["Share@3"], Material({}, RUN, QUERIES, DOCUMENTS))["Share@3"].table
    found = by_language(RUN, QUERIES, DOCUMENTS, depth=3)
    for row, cells in table.cells.items():
        for column, cell in cells.items():
            assert found.values[found.rows.index(row), found.columns.index(column)] == cell.mean

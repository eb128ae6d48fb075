"""Two legs put together."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_request import request_for

from langshift.retrieval.modes.hybrid import hybrid_body, min_max, normalised, rrf
from langshift.retrieval.request import SearchSettings

SHARES = {"dense": 0.7, "lexical": 0.3}


def test_hybrid_carries_its_pipeline_and_a_depth_of_its_own():
    setting = SearchSettings("hybrid", lexical_weight=0.25)
    request = request_for(np.array([1, 2], np.float32), "tides", "de", (), setting, size=3, filters={"year": ["1990"]})
    body = hybrid_body(request)
    vectors, words = body["query"]["hybrid"]["queries"]
    kept = {"bool": {"filter": [{"terms": {"year": ["1990"]}}]}}
    assert vectors == {"knn": {"embedding": {"vector": [1.0, 2.0], "k": 100, "filter": kept}}}
    assert words["bool"]["filter"] == kept["bool"]["filter"]
    assert (body["size"], body["query"]["hybrid"]["pagination_depth"]) == (3, 100)
    assert body["search_pipeline"] == {
        "phase_results_processors": [
            {
                "normalization-processor": {
                    "normalization": {"technique": "min_max"},
                    "combination": {"technique": "arithmetic_mean", "parameters": {"weights": [0.75, 0.25]}},
                }
            }
        ]
    }
    ranked = hybrid_body(replace(request, setting=setting.but(fusion="rrf")))
    assert ranked["search_pipeline"] == {
        "phase_results_processors": [
            {
                "score-ranker-processor": {
                    "combination": {
                        "technique": "rrf",
                        "rank_constant": 60,
                        "parameters": {"weights": [0.75, 0.25]},
                    }
                }
            }
        ]
    }


@pytest.mark.parametrize(
    ("score", "lowest", "highest", "expected"),
    [
        (4, 2, 4, 1.0),
        (3, 2, 4, 0.5),
        (2, 2, 4, 0.001),
        (2 - 1e-7, 2, 4, 0.001),  # by a script, and not by the graph
        (1, 2, 4, 0.0),
        (2, 2, 2, 1.0),
        (1, 2, 2, 0.0),
        (5, 2, 4, 1.5),
    ],
)
def test_a_legs_scores_are_normalised_as_neural_search_does(score, lowest, highest, expected):
    assert normalised(score, lowest, highest) == pytest.approx(expected)


def test_a_leg_that_found_nothing_adds_nothing():
    assert min_max({"dense": 3.0, "lexical": 9.0}, {"dense": (1.0, 3.0)}, SHARES) == pytest.approx(0.7)
    assert min_max({"lexical": 9.0}, {"dense": (1.0, 3.0), "lexical": (9.0, 9.0)}, SHARES) == pytest.approx(0.3)
    assert min_max({}, {}, SHARES) == 0
    assert rrf({}, SHARES) == 0
    assert rrf({"dense": 1, "lexical": 4}, SHARES) == pytest.approx(0.7 / 61 + 0.3 / 64)


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=30))
def test_the_order_of_a_leg_stays(scores):
    lowest, highest = min(scores), max(scores)
    ranked = [normalised(score, lowest, highest) for score in sorted(scores, reverse=True) if score > lowest + 0.002]
    assert ranked == sorted(ranked, reverse=True)
    assert all(0 <= normalised(score, lowest, highest) <= 1 for score in scores)

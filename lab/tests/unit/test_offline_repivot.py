"""Language vectors moved to another pivot: what stays, what turns and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from encoded_data import vectors

from langshift.errors import UsageError
from langshift_lab.offline.ranking import repivoted

TAGS = ("en", "de", "th")


def about(pivot, of, **parts):
    return vectors({tag: of[tag] - of[pivot] for tag in TAGS if tag != pivot}, pivot, **parts)


def test_another_pivot_is_what_a_fit_towards_it_gives():
    draw = np.random.default_rng(1)
    means, asked, directions = ({tag: draw.normal(size=4) for tag in TAGS} for _ in range(3))
    parts = {"means": means, "directions": {tag: [row] for tag, row in directions.items()}}
    english = about(
        "en",
        means,
        query_vectors={tag: asked[tag] - asked["en"] for tag in ("de", "th")},
        common={"documents": means["en"], "queries": asked["en"]},
        maps={tag: np.eye(4) for tag in ("de", "th")},
        alpha=0.5,
        alphas={"de": 0.25},
        evidence={"de": {"verdict": "use"}},
        tuning={"alpha": 0.5},
        **parts,
    ).with_rank(2)
    of_queries = {tag: asked[tag] - asked["de"] for tag in ("en", "th")}
    german = about(
        "de", means, query_vectors=of_queries, common={"documents": means["de"], "queries": asked["de"]}, **parts
    ).with_rank(2)
    moved = repivoted(english, "de")
    assert (moved.pivot, moved.pairs) == ("de", {"en": 9, "th": 9})
    for part in ("vectors", "query_vectors", "common", "means", "directions"):
        here, there = getattr(moved, part), getattr(german, part)
        assert here.keys() == there.keys()
        for tag, tensor in there.items():
            assert here[tag] == pytest.approx(tensor, abs=1e-6)
            assert here[tag].dtype == np.float32
    assert moved.key("de") is None
    # Maps lead to English, and what was measured was measured with English.
    left_out = ("maps", "evidence", "tuning")
    assert [getattr(moved, part) for part in left_out] == [{}, {}, {}]
    assert moved.recommendation is None
    # What queries have in common does not depend on the pivot.
    assert moved.query_directions == pytest.approx(german.query_directions, abs=1e-6)
    assert repivoted(english, "en") is english


def test_query_vectors_without_the_new_pivot_cannot_be_turned():
    english = vectors({"de": [1, 0], "th": [0, 1]}, query_vectors={"th": [0, 2]})
    assert repivoted(english, "de").query_vectors == {}
    assert repivoted(english, "de").step is None
    assert repivoted(english, "th").query_vectors["en"].tolist() == [0, -2]


def test_a_pivot_that_is_not_there():
    with pytest.raises(UsageError) as caught:
        repivoted(vectors({"de": [1, 0], "th": [0, 1]}), "fr")
    assert str(caught.value) == "The language vectors do not include the pivot 'fr': they have de, en, th."

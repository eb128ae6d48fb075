"""Stamps in NumPy: what was subtracted, taken back and subtracted again; and the queries that stamps are counted by."""

import numpy as np
import pytest

from langshift.ingest.shift.taken_back import difference, moved_by, shifted, taken_back
from langshift.plugin.fields import USUAL, Fields
from langshift.plugin.shift.index_shift import IndexShift
from langshift.plugin.shift.stamps import agreeing

VECTORS = {"de": np.float32([1, 2]), "th": np.float32([4, -8])}
SHIFT = IndexShift("0123", "en", VECTORS, 0.5, {"th": 0.25})


@pytest.mark.parametrize(
    ("stamp", "moved"),
    [
        ({"alpha": 0.0}, [0, 0]),
        ({"alpha": 0.0, "language": "de"}, [0, 0]),
        ({"alpha": 0.5, "language": "de"}, [0.5, 1]),
        ({"alpha": 0.25, "language": "th", "tag": "th-TH"}, [1, -2]),
        # Whatever the scale is now, it is the stamp's that counts.
        ({"alpha": 1.0, "language": "th"}, [4, -8]),
        ({"alpha": 0.5, "language": "de", "languages": {"de": 0.5, "th": 0.25}}, [0.75, -0.5]),
        ({"alpha": 0.5, "language": "de", "languages": {"de": 0.5, "th": 0.25}, "alphas": {"th": 0.25}}, [0.5, 0]),
        # Written as null by a client that took the stamp's parts away.
        ({"alpha": 0.5, "language": "de", "languages": None, "alphas": None}, [0.5, 1]),
        ({"alpha": None, "language": None}, [0, 0]),
    ],
)
def test_what_a_stamp_says_was_subtracted(stamp, moved):
    raw = np.float32([3, 5])
    assert (np.zeros(2) + moved_by(stamp, SHIFT) == moved).all()
    assert (shifted(raw, stamp, SHIFT) == raw - np.float32(moved)).all()
    assert (taken_back(raw - np.float32(moved), stamp, SHIFT) == raw).all()
    assert shifted(raw, stamp, SHIFT).dtype == taken_back(raw, stamp, SHIFT).dtype == np.float32


@pytest.mark.parametrize("norm", [1, 50])
def test_there_and_back_is_exact_to_float32(norm):
    random = np.random.default_rng(3)
    known = IndexShift("0123", "en", {"de": random.standard_normal(512).astype(np.float32)}, 0.75)
    stamp = {"alpha": 0.75, "language": "de"}
    for _ in range(100):
        vector = random.standard_normal(512)
        raw = (norm * vector / np.linalg.norm(vector)).astype(np.float32)
        again = taken_back(shifted(raw, stamp, known), stamp, known)
        assert difference(again, raw, raw) <= 1e-6


def test_a_difference_is_relative_to_the_norm_of_the_vector():
    raw = np.float32([3, 4])
    assert difference(np.float32([1, 2]), np.float32([1, 3]), raw) == pytest.approx(0.2)
    assert difference(raw, raw, raw) == 0
    assert difference(np.float32([0, 1]), np.float32([0, 0]), np.float32([0, 0])) == 1


def test_agreeing_documents_have_the_scale_of_their_language():
    query = agreeing(SHIFT, USUAL)["bool"]["filter"]
    assert query[:2] == [{"exists": {"field": "embedding"}}, {"term": {"shift.vectors": "0123"}}]
    _, german, thai = query[2]["bool"]["should"]
    assert german["bool"]["filter"] == [{"terms": {"shift.language": ["de"]}}, {"term": {"shift.alpha": 0.5}}]
    assert thai["bool"]["filter"] == [{"terms": {"shift.language": ["th"]}}, {"term": {"shift.alpha": 0.25}}]
    own = agreeing(IndexShift(), Fields(vector="v", stamp="ls"))["bool"]["filter"]
    assert own[:2] == [{"exists": {"field": "v"}}, {"bool": {"must_not": [{"exists": {"field": "ls.vectors"}}]}}]

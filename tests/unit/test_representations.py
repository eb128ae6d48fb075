"""How far what an index keeps beside vectors is from what a text makes."""

import math

import pytest
from planted_sparse import Planted

from langshift.debias.encoders.token_vectors import pack, unpack
from langshift.ingest.representations import open_representation
from langshift.plugin.representations import SparseWeights, TokenVectors

TEXT, OTHER = "Tides rise because the Moon pulls at water", "Bread rises because yeast makes bubbles"


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    return Planted(monkeypatch)


@pytest.mark.parametrize("kind", [SparseWeights, TokenVectors])
def test_the_same_text_is_near_and_another_far(kind):
    made = open_representation(kind, "st:one")
    (one, other, none) = made.of([TEXT, OTHER, ""])
    assert made.difference(one, one) == pytest.approx(0, abs=1e-6)
    assert made.difference(other, one) > 0.1
    assert made.difference(none, none) == 0
    assert made.difference(none, one) == made.difference(one, none) == math.inf


def test_the_order_of_tokens_and_one_that_is_merged_make_next_to_no_difference():
    made = open_representation(TokenVectors, "st:one")
    (one,) = made.of([TEXT * 4])
    rows = unpack(one)
    assert made.difference(pack(rows[::-1]), one) == pytest.approx(0, abs=1e-3)
    assert made.difference(pack(rows[1:]), one) < made.difference(pack(rows[len(rows) // 2 :]), one)
    assert made.difference("junk", one) == math.inf

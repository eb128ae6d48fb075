"""How vectors of tokens are pooled, which is by torch, packed and compared."""

import base64

import numpy as np
import pytest

from langshift.debias.encoders.token_vectors import max_sim, pack, pool, unpack

pytestmark = pytest.mark.xdist_group("torch")


def random_rows(count, dimension, seed=0):
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# The first token is never pooled.
@pytest.mark.parametrize(
    ("tokens", "rows", "dimension"), [(1, 1, 1), (2, 2, 16), (3, 2, 128), (64, 32, 128), (501, 251, 96)]
)
def test_packed_vectors_are_near_what_was_packed(tokens, rows, dimension):
    document = random_rows(tokens, dimension)
    pooled, kept = pool(document), pack(document)
    back = unpack(kept)
    assert (back.shape, back.dtype) == ((rows, dimension), np.float32)
    assert len(base64.b64decode(kept)) == 2 + back.size
    bound = np.sqrt(dimension) / 127 * np.abs(pooled).max(axis=1)
    assert (np.linalg.norm(back - pooled, axis=1) <= bound + 1e-6).all()
    assert np.abs(np.linalg.norm(back, axis=1) - 1).max() < 1e-6
    query = random_rows(8, dimension, seed=1)
    assert abs(max_sim(query, back) - max_sim(query, pooled)) <= 8 * bound.max()


def test_what_is_packed_may_be_empty_or_zero():
    assert unpack(pack(np.empty((0, 5), np.float32))).shape == (0, 5)
    assert not unpack(pack(np.zeros((1, 5), np.float32))).any()

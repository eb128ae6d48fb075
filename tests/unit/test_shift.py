"""The arithmetic of the shift."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from langshift.debias.debiaser import mean_difference, shift

SEEDS = st.integers(0, 2**32 - 1)
NORMS = st.floats(1, 50)
ALPHAS = st.floats(0, 1)


def rows(seed, norm, count=8):
    vectors = np.random.default_rng(seed).standard_normal((count, 32))
    return (norm * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@given(SEEDS, NORMS, ALPHAS)
def test_shifting_there_and_back_returns_the_vector(seed, norm, alpha):
    z, (v,) = rows(seed, norm), rows(seed + 1, norm / 4, 1)
    back = shift(shift(z, v, alpha), v, -alpha)
    assert np.abs(back - z).max() <= 1e-5 * norm


@given(SEEDS, NORMS)
def test_alpha_0_changes_nothing_bit_for_bit(seed, norm):
    z, (v,) = rows(seed, norm), rows(seed + 1, norm / 4, 1)
    assert shift(z, v, 0.0).tobytes() == z.tobytes()


def test_worked_out_by_hand():
    z = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    assert shift(z, np.array([0.5, -1.0], np.float32), 0.5).tolist() == [[0.75, 2.5], [2.75, 4.5]]


def test_the_input_is_left_as_it_was():
    z, (v,) = rows(1, 1.0), rows(2, 1.0, 1)
    before = z.copy()
    for moved in (shift(z, v), shift(z, v, 0.0)):
        assert np.array_equal(z, before)
        assert not np.shares_memory(moved, z)


def test_mean_difference():
    vector = mean_difference(np.array([3.0, -6.0]), 3)
    assert vector.tolist() == [1.0, -2.0]
    assert vector.dtype == np.float32

"""The arithmetic of the shift."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from langshift.ingest.methods.shift import mean_difference, shift

SEEDS = st.integers(0, 2**32 - 1)


def rows(seed, norm):
    generator = np.random.default_rng(seed)
    vectors = generator.standard_normal((8, 32))
    return (norm * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@given(SEEDS, st.floats(1, 50), st.floats(0, 1))
def test_shifting_there_and_back_returns_the_vector(seed, norm, alpha):
    z, v = rows(seed, norm), rows(seed + 1, norm / 4)
    alphas = np.full(8, alpha)
    back = shift(shift(z, v, alphas), -v, alphas)
    assert np.abs(back - z).max() <= 1e-5 * norm


@given(SEEDS, hnp.arrays(np.bool_, 8))
def test_rows_with_alpha_0_come_back_bit_for_bit(seed, moved):
    z, v = rows(seed, 3.0), rows(seed + 1, 1.0)
    shifted = shift(z, v, moved.astype(np.float64))
    assert np.array_equal(shifted[~moved], z[~moved])
    assert np.array_equal(shifted[moved], (z[moved].astype(np.float64) - v[moved]).astype(np.float32))
    assert shifted.dtype == np.float32


def test_worked_out_by_hand():
    z = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    v = np.array([[0.5, -1.0], [1.0, 1.0]], np.float32)
    assert shift(z, v, np.array([0.5, 1.0])).tolist() == [[0.75, 2.5], [2.0, 3.0]]


def test_the_input_is_left_as_it_was():
    z, v = rows(1, 1.0), rows(2, 1.0)
    before = z.copy()
    shift(z, v, np.ones(8))
    assert np.array_equal(z, before)


def test_mean_difference():
    vector = mean_difference(np.array([3.0, -6.0]), 3)
    assert vector.tolist() == [1.0, -2.0]
    assert vector.dtype == np.float32

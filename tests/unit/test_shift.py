"""The arithmetic of the shift."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from langshift.debias.debiaser import mean_difference, shift, soft_shift

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
    assert soft_shift(z, np.zeros((8, 1)), v[np.newaxis]).tobytes() == z.tobytes()


@given(SEEDS, NORMS, ALPHAS, st.integers(0, 4))
def test_a_hard_posterior_makes_a_soft_shift_a_shift_bit_for_bit(seed, norm, alpha, language):
    z, v = rows(seed, norm), rows(seed + 1, norm / 4, 5)
    weights = np.zeros((8, 5))
    weights[:, language] = alpha
    assert soft_shift(z, weights, v).tobytes() == shift(z, v[language], alpha).tobytes()


@given(SEEDS, NORMS, hnp.arrays(np.float64, (8, 5), elements=st.floats(0, 0.2)))
def test_a_soft_shift_subtracts_what_is_expected(seed, norm, weights):
    z, v = rows(seed, norm), rows(seed + 1, norm / 4, 5)
    weights[3] = 0
    moved = soft_shift(z, weights, v)
    expected = [z[row] - sum(p * v[tag].astype(np.float64) for tag, p in enumerate(weights[row])) for row in range(8)]
    assert np.abs(moved - expected).max() <= 1e-6 * norm
    assert moved[3].tobytes() == z[3].tobytes()
    assert moved.dtype == np.float32


def test_worked_out_by_hand():
    z = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    assert shift(z, np.array([0.5, -1.0], np.float32), 0.5).tolist() == [[0.75, 2.5], [2.75, 4.5]]
    v = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    assert soft_shift(z, np.array([[0.75, 0.25], [0.0, 0.5]]), v).tolist() == [[0.25, 1.5], [3.0, 3.0]]


def test_the_input_is_left_as_it_was():
    z, (v,) = rows(1, 1.0), rows(2, 1.0, 1)
    before = z.copy()
    for moved in (shift(z, v), shift(z, v, 0.0), soft_shift(z, np.ones((8, 1)), v[np.newaxis])):
        assert np.array_equal(z, before)
        assert not np.shares_memory(moved, z)


def test_mean_difference():
    vector = mean_difference(np.array([3.0, -6.0]), 3)
    assert vector.tolist() == [1.0, -2.0]
    assert vector.dtype == np.float32

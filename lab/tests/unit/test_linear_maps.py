"""The arithmetic of centering, LIR and affine maps, and fitting the last two, against one-shot references."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.debias.debiaser import shift
from langshift_lab.methods.linear_maps import (
    STRENGTHS,
    Moments,
    PairMoments,
    Ridge,
    SecondMoment,
    map_affine,
    remove_directions,
)

DIMENSION = 12
SEEDS = st.integers(0, 2**32 - 1)
NORMS = st.floats(1, 50)
ALPHAS = st.floats(0, 1)
COUNTS = st.integers(30, 200)


def made_pairs(seed, norm=1.0, count=100, noise=0.3):
    """Embeddings of a language and of the pivot: other means, and axes that are turned and stretched."""
    random = np.random.default_rng(seed)
    shared = random.standard_normal((count, DIMENSION)) * np.linspace(1, 0.2, DIMENSION)
    mix = np.eye(DIMENSION) + 0.3 * random.standard_normal((DIMENSION, DIMENSION))
    x = shared @ mix + noise * random.standard_normal((count, DIMENSION)) + random.standard_normal(DIMENSION)
    y = shared + random.standard_normal(DIMENSION)
    scale = norm / np.sqrt(np.square(x).sum(axis=1).mean())
    return (scale * x).astype(np.float32), (scale * y).astype(np.float32)


def added(accumulator, *arrays, size=7):
    for start in range(0, len(arrays[0]), size):
        accumulator.add(*(rows[start : start + size] for rows in arrays))
    return accumulator


def fitted(*arrays, size=7):
    """The map of pairs, its strength and its gain."""
    sums = added(PairMoments(DIMENSION), *arrays, size=size)
    return SimpleNamespace(map_=sums.fit(), **dict(zip(("strength", "gain"), sums.choose_strength(), strict=True)))


def moments(x, y):
    made = Moments.nothing(DIMENSION)
    made.add(x, y)
    return made


def ridge_in_one_shot(x, y, penalty):
    """W by ordinary least squares on the stacked system, the identity's rows below the pairs."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    root = np.sqrt(penalty) * np.eye(DIMENSION)
    stacked = np.vstack([x - x.mean(axis=0), root]), np.vstack([y - y.mean(axis=0), root])
    return np.linalg.lstsq(*stacked, rcond=None)[0]


def directions_in_one_shot(x, rank):
    return np.linalg.svd(x.astype(np.float64), full_matrices=False)[2][:rank]


# LIR


@given(SEEDS, NORMS, st.integers(1, 3), ALPHAS)
def test_what_lir_leaves_is_orthogonal_to_the_directions(seed, norm, rank, alpha):
    x, _ = made_pairs(seed, norm)
    directions = directions_in_one_shot(x, rank).astype(np.float32)
    left = remove_directions(x, directions)
    assert np.abs(left @ directions.T).max() <= 1e-5 * norm
    assert np.abs(left + (x @ directions.T) @ directions - x).max() <= 1e-5 * norm
    assert np.abs(remove_directions(x, directions, alpha) - (x + alpha * (left - x))).max() <= 1e-5 * norm


@given(SEEDS, NORMS, COUNTS, st.integers(1, 50))
def test_streamed_directions_are_the_singular_vectors_of_the_stack(seed, norm, count, size):
    x, _ = made_pairs(seed, norm, count)
    found = added(SecondMoment(DIMENSION), x, size=size).directions(3)
    singular = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    assert np.abs(found @ found.T - np.eye(3)).max() <= 1e-6
    # Singular vectors are as well determined as the values are apart.
    for rank in (1, 2, 3):
        apart = 1 - (singular[rank] / singular[rank - 1]) ** 2
        one_shot = directions_in_one_shot(x, rank)
        here = found[:rank].T @ found[:rank]
        assert np.abs(here - one_shot.T @ one_shot).max() <= 1e-6 + 1e-12 / apart


@given(SEEDS)
def test_the_order_of_embeddings_does_not_matter_to_lir(seed):
    x, _ = made_pairs(seed)
    other = np.random.default_rng(seed).permutation(x)
    here, there = (added(SecondMoment(DIMENSION), rows).directions() for rows in (x, other))
    assert np.abs(here - there).max() <= 1e-6


def test_the_sign_of_a_direction_is_fixed():
    x, _ = made_pairs(1)
    for rows in (x, -x):
        found = added(SecondMoment(DIMENSION), rows).directions(2)
        assert (found.shape, found.dtype) == ((2, DIMENSION), np.float32)
        assert (np.take_along_axis(found, np.abs(found).argmax(axis=1, keepdims=True), axis=1) > 0).all()


# Affine


@given(SEEDS, NORMS, ALPHAS)
def test_with_the_identity_for_a_map_affine_is_the_shift(seed, norm, alpha):
    x, y = made_pairs(seed, norm)
    mean, pivot_mean = x.mean(axis=0), y.mean(axis=0)
    mapped = map_affine(x, mean, np.eye(DIMENSION, dtype=np.float32), pivot_mean, alpha)
    assert np.abs(mapped - shift(x, mean - pivot_mean, alpha)).max() <= 1e-6 * norm


@pytest.mark.parametrize("method", ["lir", "affine"])
def test_alpha_0_changes_nothing_bit_for_bit(method):
    x, y = made_pairs(1, 50)
    moved = {
        "lir": lambda: remove_directions(x, y[:1], 0.0),
        "affine": lambda: map_affine(x, y[0], y[:DIMENSION], y[1], 0.0),
    }[method]()
    assert moved.tobytes() == x.tobytes()
    assert not np.shares_memory(moved, x)


@given(SEEDS, NORMS, COUNTS, st.integers(1, 50))
def test_a_streamed_map_is_the_ridge_solution_of_the_stacked_system(seed, norm, count, size):
    x, y = made_pairs(seed, norm, count)
    fit = fitted(x, y, size=size)
    assert fit.strength in STRENGTHS
    square = np.square(x.astype(np.float64)).sum(axis=1).mean()
    expected = np.eye(DIMENSION)
    if np.isfinite(fit.strength):
        expected = ridge_in_one_shot(x, y, fit.strength * square)
    assert np.abs(fit.map_ - expected).max() <= 1e-6
    assert fit.map_.dtype == np.float32


@given(SEEDS, NORMS, st.floats(0.01, 1000))
def test_the_order_of_pairs_does_not_matter_to_a_map(seed, norm, strength):
    x, y = made_pairs(seed, norm)
    order = np.random.default_rng(seed).permutation(len(x))
    here, there = moments(x, y), moments(x[order], y[order])
    maps = [Ridge(pairs).map_(strength * pairs.square) for pairs in (here, there)]
    assert np.abs(maps[0] - maps[1]).max() <= 1e-9


@given(SEEDS, NORMS)
def test_a_map_does_not_depend_on_the_scale_of_the_embeddings(seed, norm):
    x, y = made_pairs(seed, count=300)
    fit = fitted(x, y)
    scaled = fitted(np.float32(norm) * x, np.float32(norm) * y)
    assert scaled.strength == fit.strength
    assert np.abs(scaled.map_ - fit.map_).max() <= 1e-5
    assert scaled.gain == pytest.approx(fit.gain, abs=1e-6)


@given(SEEDS, NORMS, st.integers(2, 60))
def test_margins_are_those_of_the_mapped_pairs(seed, norm, count):
    x, y = made_pairs(seed, norm, 100 + count)
    penalties = norm**2 * np.array([0.1, 10.0, 1000.0, np.inf])
    ridge = Ridge(moments(x[count:], y[count:]))
    margins = ridge.margins(moments(x[:count], y[:count]), penalties)
    pivot = y[:count].astype(np.float64)
    for penalty, margin in zip(penalties, margins, strict=True):
        mapped = (x[:count] - ridge.mean) @ ridge.map_(penalty) + ridge.pivot_mean
        mean = mapped.mean(axis=0)
        mapped = mean + (mapped - mean) * min(1.0, np.sqrt(pivot.var(axis=0).sum() / mapped.var(axis=0).sum()))
        above = np.vdot(mapped - mean, pivot - pivot.mean(axis=0)) / count
        norms = np.square(mapped).sum(axis=1).mean() * np.square(pivot).sum(axis=1).mean()
        assert margin == pytest.approx(above / np.sqrt(norms), abs=1e-6)


def test_a_map_brings_translations_nearer_where_a_shift_cannot():
    x, y = made_pairs(3, 20, 4000)
    fit = fitted(x[:3000], y[:3000], size=256)
    new, pivot = x[3000:], y[3000:].astype(np.float64)
    mean, pivot_mean = x[:3000].mean(axis=0), y[:3000].mean(axis=0)
    mapped = map_affine(new, mean, fit.map_, pivot_mean)
    shifted = shift(new, mean - pivot_mean)
    assert np.square(mapped - pivot).mean() < 0.5 * np.square(shifted - pivot).mean()
    assert fit.gain > 0.01


@pytest.mark.parametrize(
    ("x", "y"),
    [
        pytest.param(*made_pairs(1, count=2), id="two pairs"),
        pytest.param(*made_pairs(1, count=9), id="a fold of one pair"),
        pytest.param(made_pairs(1, count=500)[0], made_pairs(2, count=500)[1], id="no translations"),
        pytest.param(np.zeros((40, DIMENSION), np.float32), made_pairs(1, count=40)[1], id="nothing"),
        pytest.param(*[np.repeat(rows[:1], 40, axis=0) for rows in made_pairs(1)], id="one text over and over"),
    ],
)
def test_where_nothing_can_be_learnt_the_map_is_the_identity(x, y):
    fit = fitted(x, y)
    assert np.array_equal(fit.map_, np.eye(DIMENSION))
    assert (fit.strength, fit.gain) == (np.inf, 0.0)


def test_neighbours_are_held_out_together():
    """Texts said over and over in a row teach nothing about others, and are not taken for many."""
    x, y = (np.repeat(rows, 64, axis=0) for rows in made_pairs(5, count=14, noise=2.0))
    order = np.random.default_rng(0).permutation(len(x))
    in_a_row, mixed = (fitted(one, other) for one, other in ((x, y), (x[order], y[order])))
    assert in_a_row.strength >= mixed.strength
    assert in_a_row.gain < mixed.gain

"""The language map's computing: what is asked, how near it is, and where documents lie."""

import numpy as np
import pytest

from langshift.debias.similarity import with_norm_1
from langshift.web.language_map.measure import fit_axes, most_frequent, placed


def test_the_languages_with_the_most_documents_are_shown_the_first_by_tag_of_equals():
    assert most_frequent({"th": 2, "en": 9, "de": 2, "fr": 1}, 3) == ("en", "de", "th")
    assert most_frequent({}) == ()


def test_rows_are_brought_to_length_1_and_zeros_stay_zeros():
    assert with_norm_1(np.array([[3, 4], [0, 0]], np.float32)).tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_the_axes_are_the_directions_in_which_vectors_differ_most():
    vectors = np.array([[2.0, 0, 5], [-2.0, 0, 5], [0, 1, 5], [0, -1, 5]])
    axes = fit_axes(vectors)
    assert axes.centre.tolist() == [0, 0, 5]
    assert axes.directions == pytest.approx(np.array([[1, 0, 0], [0, 1, 0]]))
    assert axes.share == pytest.approx((0.8, 0.2))
    assert placed(vectors, axes) == pytest.approx(vectors[:, :2])
    assert placed(vectors + np.array([1, 0, 9]), axes) == pytest.approx(vectors[:, :2] + np.array([1, 0]))


def test_the_same_vectors_the_other_way_round_have_the_same_axes():
    vectors = np.random.default_rng(1).standard_normal((9, 5))
    assert fit_axes(vectors[::-1]).directions == pytest.approx(fit_axes(vectors).directions)


@pytest.mark.parametrize("vectors", [np.ones((1, 3)), np.ones((4, 3)), np.zeros((2, 3))])
def test_vectors_that_do_not_differ_lie_in_one_point(vectors):
    axes = fit_axes(vectors)
    assert axes.share == (0, 0)
    assert not placed(vectors, axes).any()


def test_vectors_on_a_line_have_one_direction():
    axes = fit_axes(np.array([[1.0, 1], [2, 2], [3, 3]]))
    assert axes.share == pytest.approx((1, 0))
    assert not axes.directions[1].any()

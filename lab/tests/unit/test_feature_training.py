"""How the reranker ``features`` learns: LAURA's loss by hand, and weights that stay in their bounds."""

import math

import numpy as np
import pytest

from langshift_lab.rerank.feature_training import fit_weights


def test_the_loss_is_equation_1():
    """One list of four with two positives; what was fitted makes the loss as small as a search over a grid can."""
    matrix = np.array([[0.2], [1.0], [0.4], [0.9]])
    positive = np.array([False, True, True, False])

    def loss(weight):
        scores = matrix[:, 0] * weight
        negatives = np.exp(scores[~positive]).sum()
        return np.mean([-s + math.log(math.exp(s) + negatives) for s in scores[positive]])

    (weight,), found = fit_weights([(matrix, positive)], penalty=0.0)
    assert found == pytest.approx(loss(weight))
    assert found == pytest.approx(min(loss(one) for one in np.linspace(0, 10, 20_001)), abs=1e-6)


def test_no_weight_falls_below_0_unless_it_may():
    matrix, positive = np.array([[0.0], [1.0], [2.0]]), np.array([True, False, False])
    assert fit_weights([(matrix, positive)])[0].tolist() == [0.0]
    assert fit_weights([(matrix, positive)], least=None)[0][0] < -1

"""Training the reranker ``features``: LAURA's loss on what a search knows of its candidates.

It is judged by two models, each of which was trained on half of the articles (or groups) and judged on the other half.
The model that is written was trained on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset
from langshift.retrieval.calibration.calibrate import RERANK_STRENGTHS
from langshift.retrieval.rerank.features import FEATURES, FeatureModel, features
from langshift.settings import VERSION
from langshift_lab.rerank.pools import (
    Array,
    Labeller,
    Mask,
    RerankSlice,
    Scorer,
    TrainingPool,
    judged_positive,
    labelled_lists,
    measure_changes,
)

#: More questions change the weights by less than the share of them that is drawn.
QUESTIONS: Final = 1_000


def fit_weights(
    lists: Sequence[tuple[Array, Mask]], *, penalty: float = 1e-3, least: float | None = 0.0
) -> tuple[Array, float]:
    """Fit a linear reranker by LAURA's loss, with every positive of a list against all its negatives.

    Eq. 1 for each positive ``d⁺`` of a list, averaged over its positives, and then over the lists::

        L = -s(d⁺) + ln(exp s(d⁺) + Σ exp s(d⁻)) + penalty · |w|²

    It is convex, so the same lists always give the same weights. The penalty is on the weights of features scaled to a
    standard deviation of 1.

    Args:
        lists: features, shape (candidates, features), and which candidates are positive: some, and not all.
        penalty: how much large weights cost.
        least: what no weight may be below; None for no bound.

    Returns:
        The weights, shape (features,), and the loss without the penalty.
    """
    from scipy.optimize import minimize

    together = np.concatenate([matrix for matrix, _ in lists])
    positive = np.concatenate([which for _, which in lists]).astype(np.float64)
    lengths = [len(which) for _, which in lists]
    starts, of = np.cumsum([0, *lengths[:-1]]), np.repeat(np.arange(len(lists)), lengths)
    scale = together.std(axis=0) + 1e-9
    scaled = together / scale
    share = positive / np.add.reduceat(positive, starts)[of]

    def loss(w: Array) -> tuple[float, Array]:
        scores = scaled @ w
        top = np.maximum.reduceat(scores, starts)[of]
        odds = np.exp(scores - top)
        negative = odds * (1 - positive)
        both = odds + np.add.reduceat(negative, starts)[of]
        value = float((share * (np.log(both) - scores + top)).sum()) / len(lists)
        slope = share * (odds / both - 1) + negative * np.add.reduceat(share / both, starts)[of]
        return value + penalty * float(w @ w), scaled.T @ slope / len(lists) + 2 * penalty * w

    width = together.shape[1]
    found: Any = minimize(loss, np.zeros(width), jac=True, method="L-BFGS-B", bounds=[(least, None)] * width)
    return found.x / scale, loss(found.x)[0] - penalty * float(found.x @ found.x)


def train_features(pools: Sequence[TrainingPool], dataset: Dataset, positive: Labeller | None = None) -> FeatureModel:
    """Train on candidates with translations taken out.

    Args:
        pools: the candidates.
        dataset: whose translations are taken out.
        positive: labels; the dataset's judgements if None.

    Raises:
        UsageError: no pool has positive and other candidates.
    """
    lists = labelled_lists(pools, dataset, positive or judged_positive(dataset))
    if not lists:
        raise UsageError(
            f"No question of {dataset.folder.name} has relevant and other documents among its candidates: give another "
            "index."
        )
    weights, loss = fit_weights([(features(pool.numbers), which) for pool, which in lists])
    named = {name: round(weight, 4) for name, weight in zip(FEATURES, weights.tolist(), strict=True)}
    return FeatureModel(
        weights=named, trained_on=dataset.folder.name, loss=round(loss, 4), queries=len(lists), langshift=VERSION
    )


def feature_scorer(model: FeatureModel) -> Scorer:
    """The scores of a model at full strength."""
    weights = model.vector()
    return lambda pool: features(pool.numbers) @ weights


def judge_features(
    index: str, pools: Sequence[TrainingPool], dataset: Dataset, models: Sequence[FeatureModel]
) -> list[RerankSlice]:
    """Compare the order of models with that of the search, at every strength that calibration chooses from.

    Args:
        index: name of what was searched.
        pools: of both halves.
        dataset: judgements.
        models: that by which the first half is judged, and that of the second.
    """

    def scores(pool: TrainingPool) -> dict[float, Array]:
        matrix = features(pool.numbers)
        return {strength: matrix @ models[pool.part].vector(strength) for strength in RERANK_STRENGTHS}

    return measure_changes(index, pools, dataset, lambda pool: pool.numbers.near, scores)

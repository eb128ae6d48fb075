"""LAURA's tables: rerankers that differ in their labels alone, on the same candidates (LAURA, Tables 3, 4 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np
from scipy.stats import entropy

from langshift.evaluate.datasets.dataset import Dataset, gather
from langshift.evaluate.figures.heatmap import heatmap
from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material
from langshift.evaluate.measures.fairness import (
    Distribution,
    aligned,
    mean,
    shannon_distance,
    shares_of,
    smoothed_divergence,
)
from langshift.evaluate.rerank.pools import Labeller, Mask, Scorer, TrainingPool, first
from langshift.languages import UNDETERMINED

#: How many of the first documents an answer would be generated from: LAURA's distributions are of these.
TOP: Final = 5
MEASURES: Final = ("P@5", "P@10", "nDCG@5", "nDCG@10", "PEER")
#: The figures of a row, as ``laura.json`` has them.
FIGURES: Final = (*MEASURES, "JS", "KL", "entropy")


@dataclass(frozen=True)
class LauraRow:
    """One order of the candidates.

    Attributes:
        name: whose order it is.
        measures: measure -> mean over questions; None where it is undefined.
        languages: language of questions -> that of documents -> share of the first five, the mean over questions.
        js: Jensen-Shannon distance of ``languages`` to the oracle's, the mean over languages of questions.
        kl: Kullback-Leibler divergence from ``languages`` to the oracle's, likewise.
        entropy: of ``languages``, in nats, likewise.
        loss: the loss of each epoch (of ``features`` the one at the end); empty for what was not trained.
    """

    name: str
    measures: Mapping[str, float | None]
    languages: Mapping[str, Distribution]
    js: float
    kl: float
    entropy: float
    loss: Sequence[float] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON, the figures by the names of ``FIGURES``."""
        figures = {**self.measures, "JS": self.js, "KL": self.kl, "entropy": self.entropy}
        return {"name": self.name, **figures, "languages": self.languages, "loss": list(self.loss)}


def top_positive(scorer: Scorer) -> Labeller:
    """The labels of self-training: a reranker's own first five are positive (LAURA, section 3.5)."""

    def positive(pool: TrainingPool) -> Mask:
        found = np.zeros(len(pool.documents), dtype=bool)
        found[np.argsort(-scorer(pool), kind="stable")[:TOP]] = True
        return found

    return positive


def relevant_languages(
    pools: Sequence[TrainingPool], dataset: Dataset, languages: Mapping[str, str | None]
) -> dict[str, Distribution]:
    """What stands for the oracle without labels: the languages of relevant documents, evenly, as in ``JS@k``."""
    found = gather(
        (pool.language, shares_of(sorted({tag for name in dataset.relevant(pool.query) if (tag := languages[name])})))
        for pool in pools
    )
    return {
        language: mean(some) for language, shares in sorted(found.items()) if (some := [one for one in shares if one])
    }


def laura_row(
    name: str,
    pools: Sequence[TrainingPool],
    scorer: Scorer,
    dataset: Dataset,
    languages: Mapping[str, str | None],
    oracle: Mapping[str, Distribution],
    loss: Sequence[float] = (),
) -> LauraRow:
    """Order the candidates of questions, and measure the order.

    Args:
        name: whose order it is.
        pools: candidates, as a search looks at them.
        scorer: gives the order.
        dataset: judgements.
        languages: document id -> primary tag, None where it is not known.
        oracle: language of questions -> of documents -> share.
        loss: of the training.
    """
    ranked = [first(pool, scorer(pool), len(pool.documents)) for pool in pools]
    queries = {pool.query: pool.language for pool in pools}
    run = {
        pool.query: {document: float(-rank) for rank, document in enumerate(found)}
        for pool, found in zip(pools, ranked, strict=True)
    }
    scored = score(MEASURES, Material(qrels=dataset.qrels, run=run, queries=queries, documents=languages))
    found = gather(
        (pool.language, shares_of(languages.get(one) or UNDETERMINED for one in order[:TOP]))
        for pool, order in zip(pools, ranked, strict=True)
    )
    shares = {language: mean(found[language]) for language in sorted(found)}
    pairs = [
        aligned(shares[language], oracle[language], languages.values()) for language in shares if language in oracle
    ]
    return LauraRow(
        name,
        {measure: one.mean for measure, one in scored.items()},
        shares,
        fmean(map(shannon_distance, pairs)),
        fmean(map(smoothed_divergence, pairs)),
        fmean(float(entropy(one)) for one, _ in pairs),
        loss,
    )


def language_heatmap(name: str, shares: Mapping[str, Distribution]) -> str:
    """The paper's Figure 3: languages of documents by those of questions; SVG."""
    columns = sorted(shares)
    rows = sorted({tag for one in shares.values() for tag in one})
    values = [[shares[column].get(row, 0.0) for column in columns] for row in rows]
    return heatmap(
        rows,
        columns,
        values,
        title=f"{name}: languages of the first {TOP} documents",
        description=f"The share of each language of documents, by the language of the question: {name}.",
        row_title="document language",
        column_title="question language",
        scale_title="share",
    )

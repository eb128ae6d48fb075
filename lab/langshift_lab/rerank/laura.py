"""LAURA's tables: rerankers that differ in what they learnt, on the same candidates (LAURA, Tables 3, 4, 6 and 9)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.stats import entropy

from langshift.evaluate.datasets.dataset import Dataset, gather
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material
from langshift.evaluate.measures.distributions import (
    Distribution,
    aligned,
    mean,
    shannon_distance,
    shares_of,
    smoothed_divergence,
)
from langshift.languages import UNDETERMINED
from langshift_lab.rerank.cross_encoder_training import held_out
from langshift_lab.rerank.labels import Labels, oracle_distribution
from langshift_lab.rerank.pools import Labeller, Mask, Scorer, TrainingPool, first, judged_positive

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
        figures: those of ``FIGURES``: measure -> mean over questions, None where it is undefined; and means over
            languages of questions: Jensen-Shannon distance and Kullback-Leibler divergence of ``languages`` to the
            oracle's, and its entropy in nats.
        languages: language of questions -> that of documents -> share of the first five, the mean over questions.
        loss: the loss of each epoch (of ``features`` the one at the end); empty for what was not trained.
        warnings: what a reader must know of figures.
    """

    name: str
    figures: Mapping[str, float | None]
    languages: Mapping[str, Distribution]
    loss: Sequence[float] = ()
    warnings: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON, the figures by the names of ``FIGURES``."""
        return {"name": self.name, **self.figures, "languages": self.languages, "loss": list(self.loss)}


def top_positive(scorer: Scorer) -> Labeller:
    """The labels of self-training: a reranker's own first five are positive (LAURA, section 3.5)."""

    def positive(pool: TrainingPool) -> Mask:
        found = np.zeros(len(pool.documents), dtype=bool)
        found[np.argsort(-scorer(pool), kind="stable")[:TOP]] = True
        return found

    return positive


def stage_one(labels: Sequence[Labels]) -> Labeller:
    """The labels of LAURA's first stage alone: all that was picked of the best languages is positive (appendix G)."""
    picked = {one.query: one.utilities for one in labels}
    return lambda pool: np.array([name in picked.get(pool.query, ()) for name in pool.documents], dtype=bool)


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
    figures = {measure: one.mean for measure, one in scored.items()}
    figures["JS"] = fmean(map(shannon_distance, pairs))
    figures["KL"] = fmean(map(smoothed_divergence, pairs))
    figures["entropy"] = fmean(float(entropy(one)) for one, _ in pairs)
    warnings = [f"{measure}: {one.note}" for measure, one in scored.items() if one.note]
    return LauraRow(name, figures, shares, loss, warnings)


#: Candidates to learn from, and the labels to learn -> what scores by them, and the loss of its training.
Train = Callable[[Sequence[TrainingPool], Labeller], tuple[Scorer, Sequence[float]]]


class LabelComparison(NamedTuple):
    """Rerankers that learnt other labels on the same candidates.

    Attributes:
        rows: an order each.
        oracle: language of questions -> of documents -> share, of what answers best.
        measured: on how many questions, about articles or groups that none of them learnt from.
        learnt: how many questions they learnt from.
    """

    rows: Sequence[LauraRow]
    oracle: Mapping[str, Distribution]
    measured: int
    learnt: int

    @property
    def warnings(self) -> list[str]:
        """What a reader must know of figures, each once."""
        return list(dict.fromkeys(sentence for row in self.rows for sentence in row.warnings))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        rows = [row.to_dict() for row in self.rows]
        counts = {"questions": self.measured, "trained_on": self.learnt}
        return {**counts, "rows": rows, "oracle": self.oracle, "warnings": self.warnings}

    def language_table(self) -> str:
        """CSV of the languages of the first five documents, by that of the question (LAURA, Figure 3)."""
        orders = {row.name: row.languages for row in self.rows} | {"oracle": self.oracle}
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["order", "question_language", "document_language", "share"])
        for name, languages in orders.items():
            for question, shares in languages.items():
                writer.writerows([name, question, tag, round(share, 4)] for tag, share in sorted(shares.items()))
        return text.getvalue()


def compare_labels(
    pools: Sequence[TrainingPool],
    dataset: Dataset,
    untrained: Scorer,
    train: Train,
    labels: Sequence[Labels] | None = None,
    trained: Mapping[str, tuple[Scorer, Sequence[float]]] | None = None,
) -> LabelComparison:
    """Train rerankers on most articles, each with other labels, and measure them on the others.

    Args:
        pools: candidates of one index, parted into ``PARTS``.
        dataset: whose judgements are what ``labels`` say is positive, where there are any.
        untrained: the scores of the model to begin with.
        train: trains it.
        labels: of ``langshift rerank label``; None leaves the dataset's judgements.
        trained: name -> what was trained on something else, and the loss of its training.
    """
    languages = DatasetLanguages.of(dataset).documents
    apart, learnt = [pool.only(None) for pool in held_out(pools)], [pool for pool in pools if pool.part]
    measured = {pool.query for pool in apart}
    oracle = (
        relevant_languages(apart, dataset, languages)
        if labels is None
        else oracle_distribution([one for one in labels if one.query in measured])
    )
    orders: dict[str, tuple[Scorer, Sequence[float]]]
    orders = {"search": (lambda pool: pool.numbers.cosines, ()), "untrained": (untrained, ())}
    for name, positive in {
        "self-training": top_positive(untrained),
        "same-language labels": judged_positive(dataset, same_language=True),
        **({} if labels is None else {"stage 1 only": stage_one(labels)}),
        "judgements" if labels is None else "utilities (LAURA)": judged_positive(dataset),
    }.items():
        orders[name] = train(learnt, positive)
    orders |= trained or {}
    rows = [laura_row(name, apart, scorer, dataset, languages, oracle, loss) for name, (scorer, loss) in orders.items()]
    return LabelComparison(rows, oracle, len(apart), len(learnt))

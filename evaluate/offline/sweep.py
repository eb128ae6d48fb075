"""Sweeps of alpha, beta and gamma from one encoding: the best on one half of the data, reported on the other."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

from langshift.debias.debiaser import Debiaser
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.offline.encoding import EncodedDataset
from langshift.evaluate.offline.ranking import TOP_K, debias_vectors, rank, score_ranked
from langshift.ingest.config import EmbeddingPipeline
from langshift.languages import UNDETERMINED

Step = Callable[[str], None]


class QueryHalves(NamedTuple):
    """A dataset's queries in two halves that share no article or group.

    Attributes:
        by: what is kept together: ``article``, ``group`` or ``query``.
        development: the queries on which settings are chosen.
        test: the queries on which they are reported.
        units: how many articles, groups or queries each half holds, development first.
    """

    by: str
    development: Sequence[str]
    test: Sequence[str]
    units: tuple[int, int]


def halves(clusters: Mapping[str, str], by: str) -> QueryHalves:
    """Part queries by a hash of the cluster that each belongs to.

    The clusters, sorted by the hash of their names, go to the two halves in turn: as many to one as to the
    other, whatever the order of the file.

    Args:
        clusters: query id -> article, group, or the query itself.
        by: which of these it is.

    Raises:
        UsageError: there is one cluster only.
    """
    ordered = sorted(set(clusters.values()), key=lambda name: hashlib.sha256(name.encode()).digest())
    if len(ordered) < 2:
        raise UsageError(
            f"All queries belong to one {by}, so they cannot be split into two halves: "
            f"use a dataset with at least two, or leave the {by} out of queries.jsonl."
        )
    chosen = set(ordered[::2])
    development = [query for query, name in clusters.items() if name in chosen]
    test = [query for query, name in clusters.items() if name not in chosen]
    return QueryHalves(by, development, test, (len(chosen), len(ordered) - len(chosen)))


@dataclass(frozen=True)
class SweepPoint:
    """One setting and what it gives.

    Attributes:
        alpha: scale of the shift.
        alphas: scales of single languages that differ from it.
        beta: language preference.
        scores: measure -> figures over all queries.
        gamma: how much of what all queries have in common is taken out of documents.
    """

    alpha: float
    alphas: Mapping[str, float]
    beta: float
    scores: Mapping[str, Scores] = field(repr=False)
    gamma: float = 0.0

    def mean(self, measure: str, queries: Sequence[str]) -> float | None:
        """A measure over some of the queries."""
        return self.scores[measure].over(queries).mean


class SweepResult(NamedTuple):
    """All that a sweep found.

    Attributes:
        halves: how the queries were parted.
        select: the measure by which settings were chosen.
        alphas: one point for each alpha, all languages alike.
        best: the best of them on the development half.
        languages: language vector -> one point for each alpha of that language, the others at the best.
        own: each language at its own best alpha.
        betas: beta -> one point for each of a few alphas.
        grid: a point for every alpha with every gamma; empty without gammas.
    """

    halves: QueryHalves
    select: str
    alphas: Sequence[SweepPoint]
    best: SweepPoint
    languages: Mapping[str, Sequence[SweepPoint]]
    own: SweepPoint
    betas: Mapping[float, Sequence[SweepPoint]]
    grid: Sequence[SweepPoint]


class Sweeper:
    """Searches one encoded dataset at one setting after the other."""

    def __init__(
        self, encoded: EncodedDataset, vectors: LanguageVectors, names: Sequence[str], on_point: Step = lambda _: None
    ) -> None:
        """Keep what all settings share.

        Args:
            encoded: the dataset's vectors.
            vectors: the language vectors.
            names: measures.
            on_point: called with a word on the setting after each.
        """
        self._encoded, self._vectors, self._names, self._on_point = encoded, vectors, names, on_point
        self._depth = depth(names)

    def point(
        self,
        alpha: float,
        alphas: Mapping[str, float] | None = None,
        beta: float = 0.0,
        *,
        gamma: float = 0.0,
    ) -> SweepPoint:
        """Search exactly at one setting, and score.

        Args:
            alpha: scale of the shift.
            alphas: scales of single languages that differ from it.
            beta: what a document in the query's language gets on top of its cosine.
            gamma: how much of what all queries have in common is taken out of documents.

        Raises:
            UsageError: a gamma that is none, or for which the language vectors have no directions.
        """
        own = dict(alphas or {})
        placed = debias_vectors(self._encoded, Debiaser(self._vectors, alpha=alpha, alphas=own, gamma=gamma))
        ranked = rank(self._encoded, placed, beta=beta, depth=self._depth)
        scores = score_ranked(self._names, self._encoded, ranked)
        self._on_point(f"alpha {alpha:g}")
        return SweepPoint(alpha, own, beta, scores, gamma)

    def shiftable(self) -> list[str]:
        """The language vectors that documents of this dataset take, sorted."""
        tags = set(self._encoded.languages.tags.values()) - {UNDETERMINED}
        return sorted({key for tag in tags if (key := self._vectors.key(tag))})


def sweep(
    sweeper: Sweeper,
    parts: QueryHalves,
    select: str,
    alphas: Sequence[float],
    betas: Sequence[float],
    gammas: Sequence[float] = (),
) -> SweepResult:
    """Try every alpha for all languages, then for each language alone, then every beta, then every gamma.

    Args:
        sweeper: searches.
        parts: the halves of the queries.
        select: the measure that is to be high.
        alphas: what to try, ascending.
        betas: language preferences to try, each at the smallest, the best and the largest alpha.
        gammas: to try, each at every alpha.

    Raises:
        UsageError: the measure has no figure on the development half, or a gamma that cannot be used.
    """
    points = [sweeper.point(alpha) for alpha in alphas]
    best = _best(points, select, parts.development, points[0].alpha)
    known = {point.alpha: point for point in points}
    languages: dict[str, list[SweepPoint]] = {}
    own: dict[str, float] = {}
    for key in sweeper.shiftable():
        tried = [best if alpha == best.alpha else sweeper.point(best.alpha, {key: alpha}) for alpha in alphas]
        languages[key] = tried
        own |= _best(tried, select, parts.development, best.alpha, key).alphas
    combined = sweeper.point(best.alpha, own) if own else best
    few = sorted({alphas[0], best.alpha, alphas[-1]})
    preferred = {beta: [sweeper.point(alpha, beta=beta) if beta else known[alpha] for alpha in few] for beta in betas}
    grid = [sweeper.point(alpha, gamma=gamma) if gamma else known[alpha] for alpha, gamma in product(alphas, gammas)]
    return SweepResult(parts, select, points, best, languages, combined, preferred, grid)


def _best(
    points: Sequence[SweepPoint], select: str, queries: Sequence[str], usual: float, key: str | None = None
) -> SweepPoint:
    """The point with the highest figure; among equals the one nearest to the usual alpha, then the smaller."""

    def order(point: SweepPoint) -> tuple[float, float, float]:
        figure = point.mean(select, queries)
        if figure is None:
            raise UsageError(f"{select} has no value on the development half, so no alpha can be chosen by it.")
        own = point.alphas.get(key, point.alpha) if key else point.alpha
        return (-figure, abs(own - usual), own)

    return min(points, key=order)


def depth(names: Sequence[str]) -> int:
    """How many documents of a ranking the measures look at."""
    cutoffs = [parse_measure(name).cutoff for name in names]
    deepest = [cutoff if isinstance(cutoff, int) else TOP_K for cutoff in cutoffs]
    return max([*deepest, 1])


def document(
    found: SweepResult, encoded: EncodedDataset, pipeline: EmbeddingPipeline, names: Sequence[str]
) -> dict[str, Any]:
    """All that was found, and what it was found with."""
    halves = found.halves
    own = replace(pipeline.debias, alpha=found.best.alpha, alphas=found.own.alphas)
    return {
        "dataset": identity(encoded.dataset),
        "fingerprint": replace(pipeline, debias=own).fingerprint().to_dict(),
        "halves": {
            "by": halves.by,
            "development": {"units": halves.units[0], "queries": len(halves.development)},
            "test": {"units": halves.units[1], "queries": len(halves.test)},
        },
        "select": found.select,
        "alpha": [_point(point, found, names) for point in found.alphas],
        "best": _point(found.best, found, names),
        "languages": {
            key: {
                "alpha": [
                    {"alpha": point.alphas.get(key, point.alpha), **_point(point, found, names, short=True)}
                    for point in points
                ],
                "best": found.own.alphas.get(key, found.best.alpha),
            }
            for key, points in found.languages.items()
        },
        "own_alphas": _point(found.own, found, names),
        "beta": [_point(point, found, names) for points in found.betas.values() for point in points],
        "grid": [{"gamma": point.gamma, **_point(point, found, names)} for point in found.grid],
        "warnings": [*encoded.dataset.own_documents_remarks, *encoded.languages.warnings],
    }


def _point(point: SweepPoint, found: SweepResult, names: Sequence[str], *, short: bool = False) -> dict[str, Any]:
    """A setting and its means on both halves and over all queries; ``short`` leaves the setting out."""
    setting = {} if short else {"alpha": point.alpha, "alphas": dict(point.alphas), "beta": point.beta}
    return {
        **setting,
        "development": {name: point.mean(name, found.halves.development) for name in names},
        "test": {name: point.mean(name, found.halves.test) for name in names},
        "all": {name: point.scores[name].mean for name in names},
    }

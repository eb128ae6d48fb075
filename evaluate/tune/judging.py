"""What a setting gives: exact search of the task, scored by the measures, each question by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debias import Debias
from langshift.debias.vectors import LanguageVectors
from langshift.evaluate.offline.encoding import Encoded
from langshift.evaluate.offline.ranking import place, rank
from langshift.evaluate.scoring import scored
from langshift.evaluate.tune.task import FOLDS, Task, held_out_vectors

Floats = NDArray[np.float64]
TARGET, COST = "TLR@20", "SLR@20"
MEASURES = (TARGET, COST, "nDCG@20", "R@20")
_DEPTH = 20


@dataclass(frozen=True)
class Setting:
    """How documents, and perhaps queries, are shifted.

    Attributes:
        alpha: scale of the shift.
        own: language vector and its own alpha, sorted, for those that differ from ``alpha``.
        shift_queries: whether queries of other languages than the pivot are shifted too.
    """

    alpha: float = 0.0
    own: tuple[tuple[str, float], ...] = ()
    shift_queries: bool = False

    def with_own(self, alphas: Mapping[str, float]) -> Setting:
        """The same with alphas of single languages in the place of those that it has."""
        return replace(self, own=tuple(sorted((key, alpha) for key, alpha in alphas.items() if alpha != self.alpha)))


@dataclass(frozen=True)
class Point:
    """What a setting gives.

    Attributes:
        setting: the setting.
        figures: measure -> each query's figure, shape (queries,), in the task's order.
    """

    setting: Setting
    figures: Mapping[str, Floats] = field(repr=False)


class Judge:
    """Searches a task at one setting after the other, and remembers."""

    def __init__(
        self, task: Task, vectors: LanguageVectors, *, same_text: bool, on_point: Callable[[], None] = lambda: None
    ) -> None:
        """Keep what all settings share.

        Args:
            task: encoded questions and items.
            vectors: the language vectors to judge.
            same_text: whether they were fitted on the task's own text: each fold is then judged with what they
                would be without it.
            on_point: called after each search.
        """
        self.task, self.vectors = task, vectors
        self._on_point, self._known = on_point, dict[Setting, Point]()
        folds = task.folds
        every = [folds == fold for fold in range(FOLDS)] if same_text else [np.ones(len(folds), bool)]
        self._parts = [
            (kept, held_out_vectors(vectors, task, fold) if same_text else vectors, task.asking(kept))
            for fold, kept in enumerate(every)
        ]

    def at(self, setting: Setting) -> Point:
        """Search at a setting, and score; from memory where that was done before."""
        if setting not in self._known:
            figures = {name: np.empty(len(self.task.items)) for name in MEASURES}
            for kept, vectors, asking in self._parts:
                for name, found in _scores(setting, vectors, asking).items():
                    figures[name][kept] = found
            self._known[setting] = Point(setting, figures)
            self._on_point()
        return self._known[setting]

    def curve(self, alphas: Sequence[float], *, shift_queries: bool = False) -> list[Point]:
        """One point for each alpha, all languages alike; alpha 0 leaves queries as they are, too."""
        return [self.at(Setting(alpha, shift_queries=shift_queries and alpha > 0)) for alpha in alphas]


def _scores(setting: Setting, vectors: LanguageVectors, asking: Encoded) -> dict[str, list[float]]:
    """Measure -> the figure of each query asked, in their order."""
    debias = Debias(vectors, "shift", setting.alpha, dict(setting.own), setting.shift_queries)
    found = rank(asking, place(asking, debias), depth=_DEPTH)
    run = {query: dict(hits) for query, hits in found.rankings.items()}
    scores = scored(MEASURES, asking.dataset, asking.languages, run)
    queries = [query.id for query in asking.dataset.queries]
    return {name: [of.per_query[query] for query in queries] for name, of in scores.items()}

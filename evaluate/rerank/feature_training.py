"""Training the reranker ``features``: candidates of a live index, with answers taken out, and LAURA's loss.

Where every passage is there in all languages, a model learns that a translation of what is relevant is relevant, and
that a passage in the reader's own language is the one most likely to be no answer: it avoids that language. So it is
trained on candidates of which translations were taken out, as if the index held one, two or four of each passage, in
whatever languages.

It is judged with all translations, with two and with one, by two models, each of which was trained on half of the
articles (or groups) and judged on the other half. The model that is written was trained on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery, clusters, gather
from langshift.evaluate.datasets.texts import query_languages
from langshift.evaluate.replay.requests import encode
from langshift.languages import UNDETERMINED, text_language
from langshift.retrieval.calibration.calibrate import RERANK_STRENGTHS, TOLERATED, score_rankings
from langshift.retrieval.calibration.questions import execute_all
from langshift.retrieval.calibration.stored import USUAL_RERANK
from langshift.retrieval.rerank.features import FEATURES, CandidateNumbers, FeatureModel, features
from langshift.retrieval.rerank.stage import search_numbers
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchQuery, SearchRequest, SearchSettings
from langshift.retrieval.steps import SearchPlan
from langshift.settings import VERSION

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: How many translations of each passage are left, in training and where the model is judged; None for all.
TRAINED_WITH: Final = (1, 2, 4)
JUDGED_WITH: Final = (None, 2, 1)
# What a search looks at, of what is left; so many times as much is asked for before anything is taken out.
_USUAL: Final = SearchSettings()
_DEEPER: Final = 8
# More questions change the weights by less than the share of them that is drawn.
_MOST_QUESTIONS: Final = 1_000
_SEED: Final = 25
_CUT: Final = 20


class TrainingPool(NamedTuple):
    """The candidates of one question, in one index.

    Attributes:
        query: the question's id.
        half: which half its article or group belongs to, 0 or 1.
        language: of the question.
        documents: ids of the candidates.
        numbers: what the search knows of them.
    """

    query: str
    half: int
    language: str
    documents: Sequence[str]
    numbers: CandidateNumbers

    def only(self, left: frozenset[str] | None) -> TrainingPool:
        """The candidates that a search would look at if the index held these documents alone; None for all."""
        seen, chosen = dict[str, int](), list[int]()
        for place in np.argsort(-self.numbers.cosines, kind="stable").tolist():
            if left is None or self.documents[place] in left:
                tag = self.numbers.languages[place]
                seen[tag] = seen.get(tag, 0) + 1
                if len(chosen) < _USUAL.rerank_depth or seen[tag] <= _USUAL.rerank_per_language:
                    chosen.append(place)
        documents = [self.documents[place] for place in chosen]
        return self._replace(documents=documents, numbers=self.numbers.only(np.array(chosen, dtype=np.intp)))


def drawn_queries(dataset: Dataset) -> Sequence[DatasetQuery]:
    """The questions to train on and judge by: 1,000 at most, the same each time.

    Raises:
        UsageError: they are all about one article or group.
    """
    if len(set(clusters(dataset).of.values())) < 2:
        raise UsageError(f"The questions of {dataset.folder} are all about one article: training needs two or more.")
    chance = np.random.default_rng(_SEED)
    places = sorted(chance.permutation(len(dataset.queries))[:_MOST_QUESTIONS].tolist())
    return [dataset.queries[place] for place in places]


def collect_pools(
    searcher: Searcher, dataset: Dataset, queries: Sequence[DatasetQuery], on_query: Callable[[], None] = lambda: None
) -> list[TrainingPool]:
    """Search for questions, and gather what is known of their candidates: far more than a search would look at.

    Args:
        searcher: over an index of the dataset's documents.
        dataset: whose articles or groups are parted in two halves.
        queries: the questions.
        on_query: called after each.

    Raises:
        LangshiftError: a search failed.
    """
    tags, names = query_languages(queries), clusters(dataset).of
    halves = {name: number % 2 for number, name in enumerate(sorted(set(names.values())))}
    moved = searcher.move(encode(searcher, queries), [tags[one.id] for one in queries])
    deep = SearchSettings(
        rerank="features",
        rerank_depth=_USUAL.rerank_depth * _DEEPER,
        rerank_per_language=_USUAL.rerank_per_language * _DEEPER,
    )
    target, spread = searcher.target(SearchSettings()), searcher.trust.spread

    def plan(query: DatasetQuery, vector: NDArray[np.float32]) -> SearchPlan[TrainingPool | None]:
        language = text_language(tags[query.id] or UNDETERMINED)
        request = SearchRequest(SearchQuery(query.text, language, vector), deep, target, source=False)
        documents, numbers = yield from search_numbers(request, spread)
        half = halves[names[query.id]]
        return None if numbers is None else TrainingPool(query.id, half, language, documents, numbers)

    plans = (plan(query, vector) for query, vector in zip(queries, moved, strict=True))
    return [pool for pool in execute_all(searcher, plans, on_query) if pool is not None]


def translations_left(dataset: Dataset, count: int | None) -> frozenset[str] | None:
    """The documents of an index that holds so many translations of each passage, drawn for each; None for all."""
    if count is None:
        return None
    chance = np.random.default_rng([_SEED, count])
    groups = gather((document.group or name, name) for name, document in dataset.documents.items())
    return frozenset(name for names in groups.values() for name in chance.permutation(names)[:count].tolist())


def training_lists(
    pools: Sequence[TrainingPool], dataset: Dataset, left: Sequence[int | None] = TRAINED_WITH
) -> list[tuple[Array, Mask]]:
    """The features of candidates, and which are relevant: of every pool one list for each number of translations.

    Lists without a relevant document, and those without any other, teach nothing and are left out.
    """
    found = []
    for kept in (translations_left(dataset, count) for count in left):
        for pool in (whole.only(kept) for whole in pools):
            judged = dataset.qrels.get(pool.query, {})
            which = np.array([judged.get(name, 0) > 0 for name in pool.documents], dtype=bool)
            if which.any() and not which.all():
                found.append((features(pool.numbers), which))
    return found


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


def train(lists: Sequence[tuple[Array, Mask]], trained_on: str) -> FeatureModel:
    """The model of some lists, as it is written.

    Raises:
        UsageError: there are no lists.
    """
    if not lists:
        raise UsageError(
            f"No question of {trained_on} has relevant and other documents among its candidates: give another index."
        )
    weights, loss = fit_weights(lists)
    named = {name: round(weight, 4) for name, weight in zip(FEATURES, weights.tolist(), strict=True)}
    return FeatureModel(
        weights=named, trained_on=trained_on, loss=round(loss, 4), queries=len(lists), langshift=VERSION
    )


@dataclass(frozen=True)
class RerankSlice:
    """What a reranker changes in a part of the questions.

    Attributes:
        index: what was searched.
        translations: how many of each passage were left; None for all.
        answer: ``own`` where one is in the question's language, ``other`` where all are in others.
        strength: how far the reranker went.
        questions: how many.
        before: mean nDCG@20 in the order of the mode.
        ndcg: mean change of it.
        tlr: mean change of the share of answers in other languages among the first 20; None where there are none.
        error: standard error of the two changes, the larger of them.
    """

    index: str
    translations: int | None
    answer: str
    strength: float
    questions: int
    before: float
    ndcg: float
    tlr: float | None
    error: float

    @property
    def lost(self) -> bool:
        """Whether more is lost than calibration allows, in either measure, and by more than one standard error."""
        return min(self.ndcg, self.tlr or 0.0) + self.error < -TOLERATED

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"lost": self.lost}


def judge(
    index: str, pools: Sequence[TrainingPool], dataset: Dataset, models: Sequence[FeatureModel]
) -> list[RerankSlice]:
    """Compare the order of a model with that of the mode: for every number of translations, and at every strength.

    Args:
        index: name of what was searched.
        pools: of both halves.
        dataset: judgements.
        models: that by which the first half is judged, and that of the second.
    """
    found = []
    for count in JUDGED_WITH:
        left = translations_left(dataset, count)
        known = [(pool, _answers(pool, dataset, left)) for pool in pools]
        known = [(pool.only(left), one) for pool, one in known if one]
        some, answers = [pool for pool, _ in known], [one for _, one in known]
        matrices = [features(pool.numbers) for pool in some]
        before = score_rankings(answers, _rankings(some, [matrix[:, 0] for matrix in matrices]))
        own = np.array([not all(one.values()) for one in answers], dtype=bool)
        for strength in RERANK_STRENGTHS:
            weights = [model.vector(strength) for model in models]
            scores = [matrix @ weights[pool.half] for pool, matrix in zip(some, matrices, strict=True)]
            changes = score_rankings(answers, _rankings(some, scores)) - before
            for answer, which in (("own", own), ("other", ~own)):
                if which.any():
                    figures = float(before[which, 0].mean()), *_mean_changes(changes[which])
                    found.append(RerankSlice(index, count, answer, strength, int(which.sum()), *figures))
    return found


def _mean_changes(changes: Array) -> tuple[float, float | None, float]:
    """The mean changes of nDCG@20 and TLR@20, and the larger of their standard errors."""
    known = [column[~np.isnan(column)] for column in changes.T]
    errors = [float(column.std() / np.sqrt(len(column))) for column in known if len(column)]
    means = [float(column.mean()) if len(column) else None for column in known]
    return means[0] or 0.0, means[1], max(errors)


def _answers(pool: TrainingPool, dataset: Dataset, left: frozenset[str] | None) -> dict[str, bool]:
    """Relevant document of the index -> whether it is in another language than the question."""
    relevant = (name for name in dataset.relevant(pool.query) if left is None or name in left)
    return {name: dataset.documents[name].language != pool.language for name in relevant}


def _rankings(pools: Sequence[TrainingPool], scores: Sequence[Array]) -> list[list[str]]:
    """The first 20 of each pool by its scores."""
    orders = (np.argsort(-scored, kind="stable")[:_CUT].tolist() for scored in scores)
    return [[pool.documents[place] for place in order] for pool, order in zip(pools, orders, strict=True)]


def refused(slices: Sequence[RerankSlice]) -> list[RerankSlice]:
    """The parts of the questions that lose at the strength that an index has which was never calibrated."""
    return [one for one in slices if one.strength == USUAL_RERANK and one.lost]

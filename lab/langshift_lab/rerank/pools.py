"""What rerankers are trained on and judged by: candidates of a live index, with answers taken out.

Where every passage is there in all languages, a model learns that a translation of what is relevant is relevant, and
that a passage in the reader's own language is the one most likely to be no answer: it avoids that language. So it is
trained on candidates of which translations were taken out, as if the index held one, two or four of each passage, in
whatever languages.

It is judged with all translations, with two and with one, on questions about articles (or groups) that it was not
trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery, clusters, gather
from langshift.evaluate.datasets.texts import query_tags
from langshift.evaluate.replay.requests import encode
from langshift.languages import UNDETERMINED, text_language
from langshift.retrieval.calibration.calibrate import RERANK_TOLERATED
from langshift.retrieval.calibration.changes import DEEPEST, score_rankings
from langshift.retrieval.calibration.questions import execute_all
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import SearchQuery, SearchRequest
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.rerank.features import CandidateNumbers
from langshift.retrieval.rerank.stage import search_numbers
from langshift.retrieval.searcher import Searcher

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: How many translations of each passage are left, in training and where the model is judged; None for all.
TRAINED_WITH: Final = (1, 2, 4)
JUDGED_WITH: Final = (None, 2, 1)
# What a search looks at, of what is left; so many times as much is asked for before anything is taken out.
_USUAL: Final = SearchSettings("dense")
_DEEPER: Final = 8
_SEED: Final = 25


class TrainingPool(NamedTuple):
    """The candidates of one question, in one index.

    Attributes:
        query: the question's id.
        words: its text.
        part: which part of the articles or groups its own belongs to, from 0.
        language: of the question.
        documents: ids of the candidates.
        numbers: what the search knows of them.
    """

    query: str
    words: str
    part: int
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


def drawn_queries(dataset: Dataset, most: int) -> Sequence[DatasetQuery]:
    """So many of the questions at most, the same each time.

    Raises:
        UsageError: they are all about one article or group.
    """
    if len(set(clusters(dataset).of.values())) < 2:
        raise UsageError(f"The questions of {dataset.folder} are all about one article: training needs two or more.")
    chance = np.random.default_rng(_SEED)
    places = sorted(chance.permutation(len(dataset.queries))[:most].tolist())
    return [dataset.queries[place] for place in places]


def collect_pools(
    searcher: Searcher,
    dataset: Dataset,
    queries: Sequence[DatasetQuery],
    on_query: Callable[[], None] = lambda: None,
    *,
    parts: int = 2,
    vectors: bool = True,
) -> list[TrainingPool]:
    """Search for questions, and gather what is known of their candidates: far more than a search would look at.

    Args:
        searcher: over an index of the dataset's documents.
        dataset: whose articles or groups are parted.
        queries: the questions.
        on_query: called after each.
        parts: into how many parts the articles or groups are dealt out.
        vectors: keep the candidates' vectors, which take most of the memory and of which ``features`` are made.

    Returns:
        One for each question that finds anything besides the document that it is itself; not for one that cannot be
        asked, such as one of too many words.

    Raises:
        LangshiftError: a search failed.
    """
    tags, names = query_tags(queries), clusters(dataset).of
    part = {name: number % parts for number, name in enumerate(sorted(set(names.values())))}
    encoded = encode(searcher, queries)
    deep = SearchSettings(
        "dense",
        rerank="features",
        rerank_depth=_USUAL.rerank_depth * _DEEPER,
        rerank_per_language=_USUAL.rerank_per_language * _DEEPER,
    )
    target = replace(searcher.target(SearchSettings("dense")), shift=searcher.shift)
    spread = searcher.trust.spread

    def plan(query: DatasetQuery, vector: NDArray[np.float32]) -> SearchPlan[TrainingPool | None]:
        language = text_language(tags[query.id] or UNDETERMINED)
        request = SearchRequest(SearchQuery(query.text, language, vector), deep, target, source=False)
        try:
            documents, numbers = yield from search_numbers(request, spread)
        except UsageError:
            return None
        others = dict(dataset.without_own(query.id, zip(documents, range(len(documents)), strict=True)))
        if numbers is None or not others:
            return None
        documents, numbers = list(others), numbers.only(np.array([*others.values()], dtype=np.intp))
        kept = numbers if vectors else numbers._replace(vectors=np.empty((len(documents), 0)))
        return TrainingPool(query.id, request.question.words, part[names[query.id]], language, documents, kept)

    plans = (plan(query, vector) for query, vector in zip(queries, encoded, strict=True))
    return [pool for pool in execute_all(searcher, plans, on_query) if pool is not None]


def translations_left(dataset: Dataset, count: int | None) -> frozenset[str] | None:
    """The documents of an index that holds so many translations of each passage, drawn for each; None for all."""
    if count is None:
        return None
    chance = np.random.default_rng([_SEED, count])
    groups = gather((document.group or name, name) for name, document in dataset.documents.items())
    return frozenset(name for names in groups.values() for name in chance.permutation(names)[:count].tolist())


#: Candidates -> which of them are positive, shape (candidates,).
Labeller = Callable[[TrainingPool], Mask]
#: Candidates -> the score of each by a reranker, shape (candidates,).
Scorer = Callable[[TrainingPool], Array]


def judged_positive(dataset: Dataset, *, same_language: bool = False) -> Labeller:
    """The labels of a dataset's judgements: of relevant documents, or of those in the question's language alone."""

    def positive(pool: TrainingPool) -> Mask:
        relevant = set(dataset.relevant(pool.query))
        known = zip(pool.documents, pool.numbers.languages, strict=True)
        return np.array(
            [name in relevant and (not same_language or tag == pool.language) for name, tag in known], dtype=bool
        )

    return positive


def labelled_lists(
    pools: Sequence[TrainingPool], dataset: Dataset, positive: Labeller, left: Sequence[int | None] = TRAINED_WITH
) -> list[tuple[TrainingPool, Mask]]:
    """Candidates, and which are positive: of every pool one list for each number of translations.

    Lists without a positive document, and those without any other, teach nothing and are left out.
    """
    found = []
    for kept in (translations_left(dataset, count) for count in left):
        for pool in (whole.only(kept) for whole in pools):
            which = positive(pool)
            if which.any() and not which.all():
                found.append((pool, which))
    return found


@dataclass(frozen=True)
class RerankSlice:
    """What a reranker changes in a part of the questions.

    Attributes:
        index: what was searched.
        translations: how many of each passage were left; None for all.
        answer: ``own`` where one is in the question's language, ``other`` where all are in others.
        strength: how far the reranker went.
        questions: how many.
        before: mean nDCG@20 in the order that it is compared with.
        ndcg: mean change of it.
        tlr: mean change of TLR, as calibration takes it; None where no answer is in another language.
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
        return min(self.ndcg, self.tlr or 0.0) + self.error < -RERANK_TOLERATED

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"lost": self.lost}


def measure_changes(
    index: str,
    pools: Sequence[TrainingPool],
    dataset: Dataset,
    before: Scorer,
    after: Callable[[TrainingPool], Mapping[float, Array]],
) -> list[RerankSlice]:
    """Compare the order of a reranker with another: for every number of translations, and at every strength.

    Args:
        index: name of what was searched.
        pools: none of which the reranker that scores it was trained on.
        dataset: judgements.
        before: gives the order to compare with.
        after: candidates -> strength -> the score of each by the reranker.
    """
    found = []
    for count in JUDGED_WITH:
        left = translations_left(dataset, count)
        known = [(pool, _answers(pool, dataset, left)) for pool in pools]
        known = [(pool.only(left), one) for pool, one in known if one]
        some, answers = [pool for pool, _ in known], [one for _, one in known]
        base = score_rankings(answers, [first(pool, before(pool)) for pool in some])
        own = np.array([not all(one.values()) for one in answers], dtype=bool)
        scores = [after(pool) for pool in some]
        for strength in scores[0] if scores else ():
            ranked = [first(pool, scored[strength]) for pool, scored in zip(some, scores, strict=True)]
            changes = score_rankings(answers, ranked) - base
            for answer, which in (("own", own), ("other", ~own)):
                if which.any():
                    figures = float(base[which, 0].mean()), *_mean_changes(changes[which])
                    found.append(RerankSlice(index, count, answer, strength, int(which.sum()), *figures))
    return found


def _mean_changes(changes: Array) -> tuple[float, float | None, float]:
    """The mean changes of nDCG@20 and TLR, and the larger of their standard errors."""
    known = [column[~np.isnan(column)] for column in changes.T]
    errors = [float(column.std() / np.sqrt(len(column))) for column in known if len(column)]
    means = [float(column.mean()) if len(column) else None for column in known]
    return means[0] or 0.0, means[1], max(errors)


def _answers(pool: TrainingPool, dataset: Dataset, left: frozenset[str] | None) -> dict[str, bool]:
    """Relevant document of the index -> whether it is in another language than the question."""
    relevant = (name for name in dataset.relevant(pool.query) if left is None or name in left)
    return {name: dataset.documents[name].language != pool.language for name in relevant}


def first(pool: TrainingPool, scores: Array, cut: int = DEEPEST) -> list[str]:
    """The first of the candidates by their scores; those of the same score stay in their order."""
    return [pool.documents[place] for place in np.argsort(-scores, kind="stable")[:cut].tolist()]


def refused(slices: Sequence[RerankSlice], strength: float) -> list[RerankSlice]:
    """The parts of the questions that lose at a strength."""
    return [one for one in slices if one.strength == strength and one.lost]

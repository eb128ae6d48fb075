"""Calibrating an index: how far words may lead a search of it, and in which mode it is searched best.

Questions are made of the index's own documents, in their words and in others, and asked in each mode of the index as it
is and with their documents hidden; no judgements by people are needed. What a mode changes against dense search is told
apart by whether the answer is there in the question's language, and by how much of the question it repeats. The
strength of anchored search and the share of words in hybrid search are the highest at which nothing is lost, in any of
these, that matters.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from langshift.errors import ClusterError
from langshift.languages import text_language
from langshift.plugin import metadata
from langshift.plugin.versions import FEWEST_CALIBRATED, IndexInfo
from langshift.retrieval import dsl, modes, settings
from langshift.retrieval.anchored import collect_candidates, rarest
from langshift.retrieval.calibration.questions import (
    OVERLAPS,
    VAGUENESS,
    CalibrationPassage,
    CalibrationQuestion,
    draw_passages,
    execute_all,
    make_questions,
    masked,
)
from langshift.retrieval.calibration.stored import USUAL_RERANK, CalibratedMode, measured_spread
from langshift.retrieval.rerank.features import FEATURES, features, read_model
from langshift.retrieval.rerank.stage import search_numbers
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import AnchorModel
from langshift.retrieval.steps import SearchPlan

T = TypeVar("T")

_DEPTH: Final = 20
_SPREAD_DOCUMENTS: Final = 300

# A mean loss of nDCG@20 or TLR@20 that is no loss: a twentieth of what the modes differ by where words tell something.
TOLERATED: Final = 0.0025
# Where answers that are there are found by less than this better at full strength, words do not tell enough in the
# index for a search that is led by them.
WORTH_WHILE: Final = 0.045
# Where anything is lost at full strength, no more than this: it gives most of what can be gained, and a figure between
# it and 1 would be another one with every sample.
_CAUTIOUS: Final = 0.12
# Standard errors to either side of a figure within which it lies with 90 % confidence.
_SURE: Final = 1.645
# Below that the query is not moved far enough for any hit to change.
_LEAST_STRENGTH: Final = 0.02
WEIGHTS: Final = (0.3, 0.1, 0.03)
# How far ``features`` may go: the first of these at which nothing is lost, which must be sure of more than is usual.
RERANK_STRENGTHS: Final = (1.0, 0.3, 0.1, 0.03)
# One passage in so many is asked for in hybrid search, which needs no fine figure.
_HYBRID_SHARE: Final = 3


def require_languages(index: IndexInfo) -> None:
    """Refuse an index in which there is nothing to lead to.

    Raises:
        ClusterError: it has one language only, or none.
    """
    if len(index.languages) < 2:
        alone = ", ".join(index.languages)
        what = f"documents in one language only ({alone})" if alone else "no documents in a known language"
        raise ClusterError(f"{index.name} has {what}: anchored search needs two languages or more.")


class CalibrationCost(NamedTuple):
    """What a calibration takes, about: more searches where its first strength loses too much, fewer where none does.

    Attributes:
        documents: that questions are made of.
        encoded: texts that are encoded.
        searches: requests for hits in one mode.
    """

    documents: int
    encoded: int
    searches: int


class SliceChange(NamedTuple):
    """What a mode changes in a part of the questions.

    Attributes:
        answer: ``own`` where the answer is there in the question's language, ``other`` where it is in others only.
        overlap: how much of the question's words the document holds.
        questions: how many.
        dense: nDCG@20 of dense search.
        ndcg: mean change of nDCG@20.
        tlr: mean change of TLR@20; None where no answer is in another language.
        error: standard error of the two changes, the larger of them, over documents: what is made of one document
            shares its luck.
    """

    answer: str
    overlap: str
    questions: int
    dense: float
    ndcg: float
    tlr: float | None
    error: float = 0.0

    def loses(self, most: float, confidence: float) -> bool:
        """Whether more than ``most`` is lost in either measure, with so many standard errors added to the changes."""
        changes = [change for change in (self.ndcg, self.tlr) if change is not None]
        return min(changes) + confidence * self.error < -most


@dataclass(frozen=True)
class Calibration:
    """A calibration, and what it was measured by.

    Attributes:
        trust: what ``anchored`` needs to know of the index.
        mode: the mode that finds most without losing anything.
        lexical_weight: the highest share of words at which ``hybrid`` loses nothing; None where there is none.
        cost: what it took.
        changes: what anchored search changes with its strength, against dense search.
        full_strength: the same at strength 1.
        hybrid: what hybrid search changes with its weight; with the lowest one tried where there is no safe one.
        rerank: mode -> how far the reranker ``features`` may go in it, 0 to 1.
        reranked: mode -> what the reranker changes at that strength, against the mode without it; at the lowest that
            was tried where none is safe.
        overlap: mean share of a query's words that the best document of its language holds, in the query log; None
            without one.
    """

    trust: AnchorModel
    mode: CalibratedMode
    lexical_weight: float | None
    cost: CalibrationCost
    changes: Sequence[SliceChange]
    full_strength: Sequence[SliceChange]
    hybrid: Sequence[SliceChange]
    rerank: Mapping[str, float]
    reranked: Mapping[str, Sequence[SliceChange]]
    overlap: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it, and as it is kept."""
        return {
            **self.trust.to_dict(),
            "mode": self.mode,
            "lexical_weight": self.lexical_weight,
            "overlap": self.overlap,
            "rerank": dict(self.rerank),
            "documents": self.cost.documents,
            "questions": sum(one.questions for one in self.changes),
            "gain": round(gain(self.changes), 4),
            "loss": round(loss(self.changes), 4),
            **{name: [one._asdict() for one in getattr(self, name)] for name in ("changes", "full_strength", "hybrid")},
            "reranked": {mode: [one._asdict() for one in changes] for mode, changes in self.reranked.items()},
        }


def gain(changes: Sequence[SliceChange]) -> float:
    """The mean change of nDCG@20 over the parts where the answer is there in the question's language."""
    return float(np.mean([one.ndcg for one in changes if one.answer == "own"]))


def loss(changes: Sequence[SliceChange]) -> float:
    """The largest mean loss in any part, in either measure; 0 where there is none."""
    return max(0.0, *(-change for one in changes for change in (one.ndcg, one.tlr) if change is not None))


class LoggedWords(NamedTuple):
    """What somebody asked.

    Attributes:
        words: the query.
        language: its tag.
        id: its ``_id``; a document of that id is the query itself, and says nothing of others. None where it has none.
    """

    words: str
    language: str
    id: str | None = None


class CalibrationRun:
    """The questions of a calibration, and what is found for them.

    Attributes:
        passages: that questions are made of.
        cost: what the calibration takes.
    """

    def __init__(self, searcher: Searcher, sample: int, seed: int = 0) -> None:
        """Draw the documents.

        Args:
            searcher: over the index.
            sample: how many documents to ask for at most.
            seed: chooses documents and words.

        Raises:
            ClusterError: the index has too few documents to ask by.
        """
        self._searcher, self._seed = searcher, seed
        index = searcher.index
        self._window = metadata.window(metadata.read_settings(searcher.client, index.index))
        self.passages: Sequence[CalibrationPassage] = draw_passages(searcher, sample, self._window, seed)
        count = len(self.passages)
        if count < FEWEST_CALIBRATED:
            raise ClusterError(
                f"Calibration needs {FEWEST_CALIBRATED} documents with a vector and a sentence, in languages with five "
                f"documents or more; {index.name} has {count}. Anchored search continues with default values."
            )
        asked = 2 * len(VAGUENESS) * len(OVERLAPS) * count
        hybrid = math.ceil(count / _HYBRID_SHARE) * asked // count * len(WEIGHTS)
        # Of these passages one in so many is asked for, too, where something is reranked: in dense and one other mode.
        self.cost = CalibrationCost(count, len(VAGUENESS) * count, 3 * asked + hybrid + 2 * hybrid // len(WEIGHTS))

    def measure(
        self,
        log: Sequence[LoggedWords] = (),
        on_stage: Callable[[str, int], None] = lambda *_: None,
        on_search: Callable[[int], None] = lambda _: None,
    ) -> Calibration:
        """Ask, and find the strength, the weight and the mode; nothing is written.

        Args:
            log: what people asked; its overlap with the documents then weighs the questions.
            on_stage: called with what begins, and how many searches it takes.
            on_search: called with the number of searches done.

        Raises:
            UsageError: the encoder makes no vectors of queries.
        """
        index = self._searcher.index
        on_stage("Encoding", 0)
        questions = make_questions(self._searcher, self.passages, self._seed)
        spread = measured_spread(self._searcher.client, index, min(_SPREAD_DOCUMENTS, self._window))
        trust = AnchorModel(spread, 1.0, calibrated=True)
        coverage = None if not log else self._coverage(log)
        shares = None if coverage is None else self._shares(questions, coverage)

        def figures(part: Sequence[CalibrationQuestion], setting: settings.SearchSettings, at: float = 1.0) -> _Figures:
            on_stage(f"Mode {setting.mode}", len(part))
            return self._found(part, setting, replace(trust, strength=at), on_search)

        dense = figures(questions, settings.USUAL)
        full = _changes(questions, dense, figures(questions, settings.SearchSettings("anchored")), shares)
        strength, changes = _strength(full), full
        while strength and strength < 1:
            found = figures(questions, settings.SearchSettings("anchored"), strength)
            changes = _changes(questions, dense, found, shares)
            if not any(one.loses(TOLERATED, _SURE) for one in changes):
                break
            strength = round(strength / 2, 2) if strength >= 2 * _LEAST_STRENGTH else 0.0
        if not strength:
            changes = [one._replace(ndcg=0.0, tlr=one.tlr and 0.0, error=0.0) for one in full]
        weight, hybrid = None, list[SliceChange]()
        some = [at for at, one in enumerate(questions) if one.document % _HYBRID_SHARE == 0]
        asked = [questions[at] for at in some]
        for tried in WEIGHTS:
            setting = settings.SearchSettings("hybrid", lexical_weight=tried)
            hybrid = _changes(asked, dense[some], figures(asked, setting), shares)
            if loss(hybrid) <= TOLERATED:
                weight = tried
                break
        mode: CalibratedMode = "anchored" if strength else "dense"
        if weight is not None and gain(hybrid) >= max(WORTH_WHILE, gain(changes)):
            mode = "hybrid"
        trust = replace(trust, strength=strength)
        rerank, reranked = dict[str, float](), dict[str, Sequence[SliceChange]]()
        lost = {"anchored": changes, "hybrid": hybrid}
        for name, setting in _reranked_settings(mode, strength, weight).items():
            on_stage(f"Reranking {name}", len(asked))
            rerank[name], reranked[name] = self._reranked(asked, setting, trust, shares, lost.get(name, ()), on_search)
        return Calibration(trust, mode, weight, self.cost, changes, full, hybrid, rerank, reranked, coverage)

    def _reranked(
        self,
        questions: Sequence[CalibrationQuestion],
        setting: settings.SearchSettings,
        trust: AnchorModel,
        shares: Mapping[str, float] | None,
        mode_changes: Sequence[SliceChange],
        on_search: Callable[[int], None],
    ) -> tuple[float, list[SliceChange]]:
        """How far ``features`` may go in a mode, and what it changes then; all strengths are tried on one search."""
        model = read_model()
        target = replace(self._target(setting, trust), directions=self._searcher.directions)
        reranked = replace(setting, rerank="features")
        plans = [
            search_numbers(settings.SearchRequest(one.query, reranked, target, _DEPTH, source=False), trust.spread)
            for one in questions
        ]
        found = [
            (names, np.zeros((0, len(FEATURES))) if numbers is None else features(numbers))
            for names, numbers in self._execute(questions, plans, on_search)
        ]
        answers = [one.answers for one in questions]
        before = score_rankings(answers, [names[:_DEPTH] for names, _ in found])

        def changed(strength: float) -> list[SliceChange]:
            weights = model.vector(strength)
            orders = [np.argsort(-(matrix @ weights), kind="stable") for _, matrix in found]
            ranked = [[names[at] for at in order[:_DEPTH]] for (names, _), order in zip(found, orders, strict=True)]
            return _changes(questions, before, score_rankings(answers, ranked), shares)

        return rerank_strength(changed, questions, mode_changes)

    def _found(
        self,
        questions: Sequence[CalibrationQuestion],
        setting: settings.SearchSettings,
        trust: AnchorModel,
        on_search: Callable[[int], None],
    ) -> "_Figures":
        """nDCG@20 and TLR@20 of each question, shape (questions, 2); NaN where the latter is undefined."""
        target = self._target(setting, trust)
        plans = [
            modes.search(settings.SearchRequest(one.query, setting, target, _DEPTH, source=False)) for one in questions
        ]
        ranked = [[hit.document for hit in one.hits] for one in self._execute(questions, plans, on_search)]
        return score_rankings([one.answers for one in questions], ranked)

    def _target(self, setting: settings.SearchSettings, trust: AnchorModel) -> settings.SearchContext:
        # The cluster's own hybrid query cannot stand inside another, which hides documents.
        return self._searcher.target(setting, trust=trust, legs=setting.mode == "hybrid")

    def _execute(
        self, questions: Sequence[CalibrationQuestion], plans: Sequence[SearchPlan[T]], on_search: Callable[[int], None]
    ) -> list[T]:
        """What the plan for each question returns, with what the question hides left out."""
        without = [masked(plan, one.hides) if one.hides else plan for one, plan in zip(questions, plans, strict=True)]
        return execute_all(self._searcher, without, lambda: on_search(1))

    def _coverage(self, log: Sequence[LoggedWords]) -> float:
        """The mean share of a logged query's words that the best document in its language holds."""
        vectors = self._searcher.encode([one.words for one in log])
        asked = [
            settings.SearchQuery(one.words, text_language(one.language), vector)
            for one, vector in zip(log, vectors, strict=True)
        ]
        return float(np.mean(self._held(asked, [one.id for one in log])))

    def _shares(self, questions: Sequence[CalibrationQuestion], coverage: float) -> Mapping[str, float]:
        """Overlap -> its weight, so that together they hold as much of the questions' words as those of the log do."""
        held = [
            float(np.mean(self._held([one.query for one in questions if one.overlap == overlap and not one.hides])))
            for overlap in OVERLAPS
        ]
        return overlap_shares(held, coverage)

    def _held(self, queries: Sequence[settings.SearchQuery], ids: Sequence[str | None] = ()) -> list[float]:
        """Of each query, the share of its words that the best document in its language holds, 0 to 1.

        A document that has the query's id, where it has one, is left out.
        """
        # What the index keeps of a calibration has no part in what is gathered.
        setting, target = settings.SearchSettings("anchored"), settings.SearchContext(self._searcher.index)
        plans = [
            plan if own is None else masked(plan, dsl.of_documents([own], target.index.fields))
            for one, own in zip_longest(queries, ids)
            for plan in (collect_candidates(settings.SearchRequest(one, setting, target)),)
        ]
        return [
            min(1.0, most / rarest(gathered.documents) / gathered.words)
            for gathered in execute_all(self._searcher, plans)
            for most in [max((one.words for one in gathered.candidates if one.own), default=0.0)]
        ]


def rerank_strength(
    changed: Callable[[float], list[SliceChange]],
    questions: Sequence[CalibrationQuestion],
    lost: Sequence[SliceChange] = (),
) -> tuple[float, list[SliceChange]]:
    """How far ``features`` may go in a mode, and what it changes then.

    Beyond ``USUAL_RERANK`` it must be sure that nothing is lost, and most hidden answers must have known translations:
    what stands in for these is what is near, and finding more of that shows nothing.

    Args:
        changed: strength -> what changes in the parts of the questions.
        questions: that were asked.
        lost: what the mode itself changes against dense search; what it loses is no longer there to be lost.
    """
    allowed = {(one.answer, one.overlap): max(0.0, TOLERATED - loss([one])) for one in lost}
    known = [not one.stand_ins for one in questions if one.hides]
    most = 1.0 if sum(known) > len(known) / 2 else USUAL_RERANK
    changes = list[SliceChange]()
    for strength in (one for one in RERANK_STRENGTHS if one <= most):
        changes = changed(strength)
        confidence = -_SURE if strength > USUAL_RERANK else 0.0
        if not any(one.loses(allowed.get((one.answer, one.overlap), TOLERATED), confidence) for one in changes):
            return strength, changes
    return 0.0, changes


def _reranked_settings(
    mode: CalibratedMode, strength: float, weight: float | None
) -> dict[CalibratedMode, settings.SearchSettings]:
    """Where reranking is measured: in what ``auto`` may stand for, and in dense, which speaks for the other modes."""
    found: dict[CalibratedMode, settings.SearchSettings] = {"dense": settings.USUAL}
    if strength:
        found["anchored"] = settings.SearchSettings("anchored")
    if weight is not None and mode == "hybrid":
        found["hybrid"] = settings.SearchSettings("hybrid", lexical_weight=weight)
    return found


_Figures = NDArray[np.float64]


def overlap_shares(held: Sequence[float], coverage: float) -> dict[str, float]:
    """Overlap -> weight: of the two overlaps whose questions are held next more and next less than those of a log.

    Args:
        held: mean share of the words held, by overlap, in the order of ``OVERLAPS``.
        coverage: that of the log.
    """
    rising, places = held[::-1], range(len(held))
    place = float(np.interp(coverage, np.maximum.accumulate(rising), places))
    return {overlap: max(0.0, 1 - abs(at - place)) for at, overlap in zip(places, OVERLAPS[::-1], strict=True)}


def score_rankings(answers: Sequence[Mapping[str, bool]], ranked: Sequence[Sequence[str]]) -> _Figures:
    """nDCG@20 and TLR@20 of rankings, shape (questions, 2); NaN where the latter is undefined.

    Args:
        answers: of each question, document -> whether it is in another language than the question.
        ranked: of each question, documents, best first.
    """
    import ir_measures
    from ir_measures import R, nDCG

    run = [
        ir_measures.ScoredDoc(str(number), name, -float(rank))
        for number, names in enumerate(ranked)
        for rank, name in enumerate(names)
    ]
    figures = np.zeros((len(answers), 2))
    for column, measure in enumerate((nDCG @ _DEPTH, R @ _DEPTH)):
        judged = [
            ir_measures.Qrel(str(number), name, 1)
            for number, known in enumerate(answers)
            for name, other in known.items()
            if other or not column
        ]
        if column:
            figures[:, column] = np.nan
            figures[sorted({int(qrel.query_id) for qrel in judged}), column] = 0.0
        for found in ir_measures.iter_calc([measure], judged, run) if judged else ():
            figures[int(found.query_id), column] = found.value
    return figures


def _changes(
    questions: Sequence[CalibrationQuestion],
    before: _Figures,
    after: _Figures,
    shares: Mapping[str, float] | None,
) -> list[SliceChange]:
    """The parts of the questions and what changes in them.

    Where the answer is hidden, words are led astray alike at any overlap, so those are one part. With the weights of a
    log, so are those where it is there.
    """
    overlaps = np.array([one.overlap for one in questions])
    hidden = np.array([bool(one.hides) for one in questions])
    documents = np.array([one.document for one in questions])
    parts: list[tuple[str, str, NDArray[np.bool_]]]
    parts = [("own", overlap, ~hidden & (overlaps == overlap)) for overlap in OVERLAPS]
    if shares is not None:
        parts = [("own", "as in the log", ~hidden)]
    parts.append(("other", "any" if shares is None else "as in the log", hidden))
    weights = np.array([1.0 if shares is None else shares[overlap] for overlap in overlaps])
    found = []
    for answer, overlap, which in parts:
        changed, weight, of = (after - before)[which], weights[which], documents[which]
        dense = _mean(before[which, 0], weight, of)
        ndcg, tlr = (_mean(changed[:, column], weight, of) for column in (0, 1))
        if dense is not None and ndcg is not None:
            error = max(mean.error for mean in (ndcg, tlr) if mean is not None)
            count = int((weight > 0).sum())
            found.append(SliceChange(answer, overlap, count, dense.mean, ndcg.mean, tlr and tlr.mean, error))
    return found


class _Mean(NamedTuple):
    """A weighted mean, and its standard error."""

    mean: float
    error: float


def _mean(values: _Figures, weights: _Figures, documents: NDArray[np.int64]) -> _Mean | None:
    """The weighted mean of values, those of one document sharing their luck; None where there are none."""
    known = ~np.isnan(values) & (weights > 0)
    if not known.any():
        return None
    values, weights, documents = values[known], weights[known], documents[known]
    mean = float(np.average(values, weights=weights))
    sums = np.bincount(documents, weights=weights * (values - mean))
    return _Mean(mean, float(np.sqrt((sums**2).sum()) / weights.sum()))


def _strength(full: Sequence[SliceChange]) -> float:
    """The strength at which about ``TOLERATED`` is lost, from what is lost at 1: losses grow about as it does.

    It is 1 only where it is sure that no more is lost at 1, and 0 where words do not tell enough for it to be worth
    while.
    """
    if gain(full) < WORTH_WHILE:
        return 0.0
    if not any(one.loses(TOLERATED, -_SURE) for one in full):
        return 1.0
    strength = min(_CAUTIOUS, round(TOLERATED / max(loss(full), TOLERATED), 2))
    return strength if strength >= _LEAST_STRENGTH else 0.0

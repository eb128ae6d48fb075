"""Calibrating an index: how far words may lead a search of it, and in which mode it is searched best.

Questions are made of the index's own documents, in their words and in others, clear and vague, and asked in each mode;
no judgements by people are needed. What a mode changes against dense search is told apart by whether the answer is
there in the question's language, by how vague the question is, and by how much of it the document repeats. Nobody knows
how hard people's questions are, unless a log says it: clear ones, of which dense search answers most, lose most. So the
strength of anchored search and the share of words in hybrid search are the highest at which it is sure, in each of
these parts, that no more than next to nothing is lost. Where all is translated, every question has an answer in its
language, and those parts alone count.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from langshift.debias.similarity import with_norm_1
from langshift.errors import ClusterError
from langshift.languages import text_language
from langshift.plugin import metadata
from langshift.plugin.versions import FEWEST_CALIBRATED, IndexInfo
from langshift.retrieval import dsl
from langshift.retrieval.calibration.changes import (
    DEEPEST,
    Changes,
    Measured,
    Prediction,
    SliceChange,
    gain,
    loss,
    part_changes,
    predictions,
    readers_lose,
    score_rankings,
)
from langshift.retrieval.calibration.pool import QuestionPool
from langshift.retrieval.calibration.questions import (
    OVERLAPS,
    VAGUENESS,
    CalibrationPassage,
    CalibrationQuestion,
    Questions,
    draw_passages,
    execute_all,
    make_questions,
    masked,
)
from langshift.retrieval.calibration.stored import USUAL_RERANK, CalibratedMode, NoAnswer, measured_spread
from langshift.retrieval.modes import anchored, anchoring
from langshift.retrieval.plans import SearchPlan, T
from langshift.retrieval.question import AnchorModel, SearchContext, SearchQuery, SearchRequest
from langshift.retrieval.request import USUAL, SearchSettings
from langshift.retrieval.rerank.features import FEATURES, features, read_model
from langshift.retrieval.search import search
from langshift.retrieval.searcher import Searcher

#: Documents that are asked for where nobody says how many: sixteen of each of eight languages.
SAMPLE: Final = 128
_SPREAD_DOCUMENTS: Final = 300

# A mean loss of nDCG@20 or TLR that is too much: verdicts call more than .005 a loss, and people's questions lose up
# to a little more than these, at strengths that were tried.
TOLERATED: Final = 0.004
# Of a reranker, which somebody asks for, the mean is enough where it goes a little of its way: half of that.
RERANK_TOLERATED: Final = 0.0025
# Where answers that are there are found by less than this better at full strength, words do not tell enough in the
# index for a search that is led by them.
WORTH_WHILE: Final = 0.02
# What is in the question's words is all that hybrid search has to go by: it must gain more.
_HYBRID_WORTH_WHILE: Final = 0.045
# Where anything is lost at full strength, no more than this: it gives most of what can be gained, and a figure between
# it and 1 would be another one with every sample.
_CAUTIOUS: Final = 0.12
# Where as much of an index is there in every language, who asks in one finds the answer in it: what questions without
# one would lose, of which no sample of a usual size is sure, is nobody's loss.
ALL_TRANSLATED: Final = 0.95
# Where fewer of the queries than these find an answer in their language, the others, which have nothing to gain, are
# most of what is asked, and small losses of theirs add up to more than is gained: less is tolerated, in proportion.
_ENOUGH_OWN: Final = 0.2
# Standard errors to either side of a figure within which it lies with 90 % confidence.
_SURE: Final = 1.645
# Below that the query is not moved far enough for any hit to change.
_LEAST_STRENGTH: Final = 0.02
WEIGHTS: Final = (0.3, 0.1, 0.03)
# Tokens of a learned encoder tell more than words do.
_TOKEN_WEIGHTS: Final = (0.5, 0.3, 0.1)
# How far ``features`` may go: the first of these at which nothing is lost, which must be sure of more than is usual.
RERANK_STRENGTHS: Final = (1.0, 0.3, 0.1, 0.03)
# One passage in so many is asked for in hybrid search, which needs no fine figure.
_HYBRID_SHARE: Final = 3
# Documents that lead a query far, for each that is asked for; more in an index of many translations.
_USUAL_ANCHORS: Final = 3
# Of the questions with an answer, so many percent are said to have none.
_MISTAKEN: Final = 5


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
    """What a calibration takes.

    Attributes:
        documents: that questions are made of.
        encoded: texts that are encoded.
        searches: about how many, whatever is tried on what they find.
    """

    documents: int
    encoded: int
    searches: int


@dataclass(frozen=True)
class Calibration:
    """A calibration, and what it was measured by.

    Attributes:
        trust: what ``anchored`` needs to know of the index.
        mode: the mode that finds most without losing anything.
        lexical_weight: the highest share of words at which ``hybrid`` loses nothing; None where there is none.
        sparse_weight: the highest share of tokens' weights at which it loses nothing beside that of words; likewise,
            and None where the index has no such weights.
        cost: what it took.
        changes: what anchored search changes with its strength, against dense search.
        full_strength: the same at strength 1.
        hybrid: what hybrid search changes with its weight; with the lowest one tried where there is no safe one.
        tokens: the same of hybrid search by tokens, too; empty where the index has no weights of any.
        rerank: mode -> how far the reranker ``features`` may go in it, 0 to 1.
        reranked: mode -> what the reranker changes at that strength, against the mode without it; at the lowest that
            was tried where none is safe.
        no_answer: how the nearest document tells that nothing answers a query.
        predicted: what ``auto`` changes against dense search, where the answer is in the question's language, where
            it is not, and for questions in each language.
        overlap: mean share of a query's words that the best document of its language holds, in the query log; None
            without one.
        translated: in how many of its languages a document is there by its known translations, on average, 0 to 1.
    """

    trust: AnchorModel
    mode: CalibratedMode
    lexical_weight: float | None
    sparse_weight: float | None
    cost: CalibrationCost
    changes: Changes
    full_strength: Changes
    hybrid: Changes
    tokens: Changes
    rerank: Mapping[str, float]
    reranked: Mapping[str, Changes]
    no_answer: NoAnswer
    predicted: Sequence[Prediction] = ()
    overlap: float | None = None
    translated: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it, and as it is kept."""
        found = ("mode", "lexical_weight", "sparse_weight", "overlap")
        measured = ("changes", "full_strength", "hybrid", "tokens", "predicted")
        return {
            **self.trust.to_dict(),
            **{name: getattr(self, name) for name in found},
            "translated": round(self.translated, 4),
            "rerank": dict(self.rerank),
            "no_answer": asdict(self.no_answer),
            "documents": self.cost.documents,
            "questions": sum(one.questions for one in self.changes),
            "gain": round(gain(self.changes), 4),
            "loss": round(loss(self.changes), 4),
            **{name: [one._asdict() for one in getattr(self, name)] for name in measured},
            "reranked": {mode: [one._asdict() for one in changes] for mode, changes in self.reranked.items()},
        }


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


class _Fusion(NamedTuple):
    """What was found out of hybrid search.

    Attributes:
        words: the highest share of words at which nothing is lost; None where there is none.
        tokens: the same of tokens' weights beside that; None, too, where words alone find as much.
        questions: that were asked.
        found: what was found for them.
        by_words: what words alone change.
        by_tokens: what tokens change beside them.
    """

    words: float | None
    tokens: float | None
    questions: Questions
    found: Measured
    by_words: Changes
    by_tokens: Changes = ()

    @property
    def safe(self) -> bool:
        """Whether there is any share at which nothing is lost."""
        return self.words is not None or self.tokens is not None

    @property
    def changes(self) -> Changes:
        """What changes at these shares."""
        return self.by_words if self.tokens is None else self.by_tokens


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
        # In its own language each is asked for by all shares of words, without known translations in another by one.
        groups = [one.group for one in self.passages if one.group is not None]
        alone = len(groups) == len(set(groups))
        texts = len(VAGUENESS) * count * (len(OVERLAPS) + alone)
        # By each text the best in its language and in others; of some also the legs of hybrid search, and what each
        # candidate of a reranker has for the words. By each document what is near, its copies, translations and such.
        searches = texts * (2 + (2 + bool(index.sparse)) / _HYBRID_SHARE)
        searches += count * (2 + len(VAGUENESS) + _USUAL_ANCHORS)
        self.cost = CalibrationCost(count, len(VAGUENESS) * count, round(searches))

    def measure(
        self,
        log: Sequence[LoggedWords] = (),
        on_stage: Callable[[str, int], None] = lambda *_: None,
        on_search: Callable[[int], None] = lambda _: None,
    ) -> Calibration:
        """Ask, and find the strength, the weight and the mode; nothing is written.

        Args:
            log: what people asked; then those questions alone count that are about as vague and repeat as many words.
            on_stage: called with what begins, and about how many searches it takes.
            on_search: called with the number of searches done.

        Raises:
            UsageError: the encoder makes no vectors of queries.
            LangshiftError: a search failed.
        """
        index = self._searcher.index
        on_stage("Encoding", 0)
        questions = make_questions(self._searcher, self.passages, self._seed)
        on_stage("Searching", self.cost.searches)
        spread = measured_spread(
            self._searcher.client, index, self._searcher.shift, min(_SPREAD_DOCUMENTS, self._window)
        )
        trust = AnchorModel(spread, 1.0, calibrated=True, counterpart=_counterpart(self.passages, questions))
        self._pool = QuestionPool(self._searcher, questions, trust, self._window, lambda: on_search(1))
        on_stage("Comparing", 0)
        coverage = None
        if log:
            coverage, questions = self._like(log, questions)
        translated = float(np.mean([one.translated for one in questions]))
        dense = self._figures(questions, USUAL, trust)

        def led(strength: float) -> tuple[Measured, list[SliceChange]]:
            found = self._figures(questions, SearchSettings("anchored"), replace(trust, strength=strength))
            return found, part_changes(questions, dense, found)

        found, full = led(1.0)
        strength, changes = _strength(full, translated), full
        while strength and strength < 1:
            found, changes = led(strength)
            if not _may_lose(changes, translated):
                break
            strength = round(strength / 2, 2) if strength >= 2 * _LEAST_STRENGTH else 0.0
        if not strength:
            found, changes = dense, part_changes(questions, dense, dense)
        some = [at for at, one in enumerate(questions) if one.document % _HYBRID_SHARE == 0]
        fused = self._fused([questions[at] for at in some], dense[some], translated, trust)
        asked, hybrid = fused.questions, fused.changes
        mode: CalibratedMode = "anchored" if strength else "dense"
        predicted = predictions(questions, dense, found)
        if fused.safe and gain(hybrid) >= max(_HYBRID_WORTH_WHILE, gain(changes)):
            mode, predicted = "hybrid", predictions(asked, dense[some], fused.found)
        trust = replace(trust, strength=strength)
        rerank, reranked = dict[str, float](), dict[str, Changes]()
        lost = {"anchored": found[some], "hybrid": fused.found}
        for name, setting in _reranked_settings(mode, strength, fused).items():
            before = part_changes(asked, dense[some], lost.get(name, dense[some]), by_vagueness=False)
            rerank[name], reranked[name] = self._reranked(asked, setting, trust, before)
        return Calibration(
            trust,
            mode,
            lexical_weight=fused.words,
            sparse_weight=fused.tokens,
            cost=self.cost,
            changes=changes,
            full_strength=full,
            hybrid=fused.by_words,
            tokens=fused.by_tokens,
            rerank=rerank,
            reranked=reranked,
            no_answer=self._no_answer(questions),
            predicted=predicted,
            overlap=coverage,
            translated=translated,
        )

    def _figures(self, questions: Questions, setting: SearchSettings, trust: AnchorModel) -> Measured:
        """The figures of each question in a setting, see ``score_rankings``."""
        ranked = [one.names for one in self._pool.found(questions, setting, trust)]
        return score_rankings([one.answers for one in questions], ranked)

    def _no_answer(self, questions: Questions) -> NoAnswer:
        """How well the nearest document tells whether the answers are there, by questions with and without them."""
        # Words have no part in it: of the questions that differ by them alone, one is asked.
        asked = [one for one in questions if not one.elsewhere and one.overlap == OVERLAPS[0]]
        below = round(float(np.percentile([self._pool.nearest(one) for one in asked], _MISTAKEN)), 4)
        caught = np.mean([self._pool.nearest(one, without=one.answers) < below for one in asked])
        return NoAnswer(below, round(float(caught), 4))

    def _fused(self, questions: Questions, dense: Measured, translated: float, trust: AnchorModel) -> _Fusion:
        """The highest shares of words, and of tokens beside them, at which hybrid search loses nothing."""

        def highest(
            part: Questions, tries: Sequence[SearchSettings]
        ) -> tuple[SearchSettings | None, Measured, list[SliceChange]]:
            for tried in tries:
                there = self._figures(part, tried, trust)
                changed = part_changes(part, dense, there)
                if not _may_lose(changed, translated):
                    return tried, there, changed
            return None, there, changed

        tries = [SearchSettings("hybrid", lexical_weight=one) for one in WEIGHTS]
        setting, found, by_words = highest(questions, tries)
        words = None if setting is None else setting.lexical_weight
        alone = _Fusion(words, None, questions, found, by_words)
        if self._searcher.index.sparse is None:
            return alone
        weighed, beside = self._with_weights(questions), SearchSettings("hybrid", lexical_weight=words or 0.0)
        setting, found, by_tokens = highest(weighed, [beside.but(sparse_weight=one) for one in _TOKEN_WEIGHTS])
        # Tokens that find no more than words alone are not asked for.
        if setting is None or (words is not None and gain(by_tokens) <= gain(by_words)):
            return alone._replace(by_tokens=by_tokens)
        return _Fusion(words, setting.sparse_weight, weighed, found, by_words, by_tokens)

    def _with_weights(self, questions: Questions) -> list[CalibrationQuestion]:
        """The same questions with the weights of their words' tokens."""
        texts = list(dict.fromkeys(one.query.words for one in questions))
        known = dict(zip(texts, self._searcher.encode_weights(texts), strict=True))
        return [one._replace(query=one.query._replace(weights=known[one.query.words])) for one in questions]

    def _reranked(
        self, questions: Questions, setting: SearchSettings, trust: AnchorModel, mode_changes: Changes
    ) -> tuple[float, list[SliceChange]]:
        """How far ``features`` may go in a mode, and what it changes then."""
        model = read_model()
        found = [
            (names, np.zeros((0, len(FEATURES))) if numbers is None else features(numbers))
            for names, numbers in self._pool.numbers(questions, setting.but(rerank="features"), trust)
        ]
        answers = [one.answers for one in questions]
        before = score_rankings(answers, [names[:DEEPEST] for names, _ in found])

        def changed(strength: float) -> list[SliceChange]:
            weights = model.vector(strength)
            orders = [np.argsort(-(matrix @ weights), kind="stable") for _, matrix in found]
            ranked = [[names[at] for at in order[:DEEPEST]] for (names, _), order in zip(found, orders, strict=True)]
            return part_changes(questions, before, score_rankings(answers, ranked), by_vagueness=False)

        return rerank_strength(changed, questions, mode_changes)

    def _like(self, log: Sequence[LoggedWords], questions: Questions) -> tuple[float, list[CalibrationQuestion]]:
        """The mean share of a logged query's words that the best document holds, and the questions that are like them.

        Whether an answer is in the searcher's language no log says. Where it is, as many words are held as in the mean
        of the log, or more.
        """
        vectors, ids = self._searcher.encode([one.words for one in log]), [one.id for one in log]
        asked = [
            SearchQuery(one.words, text_language(one.language), vector)
            for one, vector in zip(log, vectors, strict=True)
        ]
        own = [one for one in questions if not one.elsewhere]
        held = [float(np.mean([self._pool.held(one) for one in own if one.overlap == part])) for part in OVERLAPS]
        clear = []
        for vagueness in VAGUENESS:
            alike = [one for one in own if (one.overlap, one.vagueness) == (OVERLAPS[0], vagueness)]
            clear.append(self._clearness([one.query for one in alike], [self._pool.nearest(one) for one in alike]))
        coverage = self._held(asked, ids)
        overlaps = OVERLAPS[: max(levels_around(held, coverage)) + 1]
        levels = {VAGUENESS[at] for at in levels_around(clear, self._clearness(asked, self._best(asked, ids)))}
        return coverage, [
            one for one in questions if one.vagueness in levels and (one.elsewhere or one.overlap in overlaps)
        ]

    def _clearness(self, queries: Sequence[SearchQuery], best: Sequence[float]) -> float:
        """By how many standard deviations the best document's cosine is beyond those of the passages, on average."""
        rows = np.array([one.vector for one in self.passages])
        cosines = with_norm_1(np.array([dsl.vector_of(one) for one in queries])) @ rows.T
        return float(np.mean((np.array(best) - cosines.mean(axis=1)) / cosines.std(axis=1)))

    def _best(self, queries: Sequence[SearchQuery], ids: Sequence[str | None]) -> list[float]:
        """The cosine of the nearest document to each query, without that of the query's id."""
        target = SearchContext(self._searcher.index)
        plans = [search(SearchRequest(one, USUAL, target, 1, source=False)) for one in queries]
        return [2 * (found.hits[0].score or 0.0) - 1 for found in self._without(ids, plans)]

    def _without(self, ids: Sequence[str | None], plans: Sequence[SearchPlan[T]]) -> list[T]:
        """What plans return, each without the document that is the query itself, where there is one."""
        gone = [[] if own is None else dsl.of_documents([own], self._searcher.index.fields) for own in ids]
        return execute_all(self._searcher, map(masked, plans, gone))

    def _held(self, queries: Sequence[SearchQuery], ids: Sequence[str | None]) -> float:
        """The mean share of a query's words that the best document in its language holds, 0 to 1.

        A document that has the query's id, where it has one, is left out.
        """
        # What the index keeps of a calibration has no part in what is gathered.
        setting, target = SearchSettings("anchored"), SearchContext(self._searcher.index)
        plans = [anchored.collect_candidates(SearchRequest(one, setting, target)) for one in queries]
        shares = []
        for gathered in self._without(ids, plans):
            most = max((one.words for one in gathered.candidates if one.own), default=0.0)
            shares.append(min(1.0, most / anchoring.rarest(gathered.documents) / gathered.words))
        return float(np.mean(shares))


def _counterpart(passages: Sequence[CalibrationPassage], questions: Questions) -> float:
    """How likely a document is there in another language that is asked in, by its known translations, 0 to 1."""
    asked_in = Counter(one.language for one in passages)
    there = {one.document: one.translated for one in questions}
    shares = []
    for number, translated in there.items():
        # Its own language is among those that it is there in, where it names any translations.
        own = asked_in[passages[number].language] / len(passages)
        shares.append(max(0.0, translated - own) / (1 - own) if own < 1 else 0.0)
    return round(float(np.mean(shares)), 4)


def rerank_strength(
    changed: Callable[[float], list[SliceChange]], questions: Questions, lost: Changes = ()
) -> tuple[float, list[SliceChange]]:
    """How far ``features`` may go in a mode, and what it changes then.

    Beyond ``USUAL_RERANK`` it must be sure that nothing is lost, and most documents must have known translations: the
    vector of a question that is asked in another language is nearer to its answer than a searcher's would be.

    Args:
        changed: strength -> what changes in the parts of the questions.
        questions: that were asked.
        lost: what the mode itself changes against dense search; what it loses is no longer there to be lost.
    """
    allowed = {(one.answer, one.overlap): max(0.0, RERANK_TOLERATED - loss([one])) for one in lost}
    known = [bool(one.hides) for one in questions if one.elsewhere]
    most = 1.0 if sum(known) > len(known) / 2 else USUAL_RERANK
    changes = list[SliceChange]()
    for strength in (one for one in RERANK_STRENGTHS if one <= most):
        changes = changed(strength)
        confidence = -_SURE if strength > USUAL_RERANK else 0.0
        lose = any(one.loses(allowed.get((one.answer, one.overlap), RERANK_TOLERATED), confidence) for one in changes)
        if not lose and not readers_lose(changes, RERANK_TOLERATED):
            return strength, changes
    return 0.0, changes


def _reranked_settings(mode: CalibratedMode, strength: float, fused: _Fusion) -> dict[CalibratedMode, SearchSettings]:
    """Where reranking is measured: in what ``auto`` may stand for, and in dense, which speaks for the other modes."""
    found: dict[CalibratedMode, SearchSettings] = {"dense": USUAL}
    if strength:
        found["anchored"] = SearchSettings("anchored")
    if mode == "hybrid":
        words, tokens = fused.words or 0.0, fused.tokens or 0.0
        found["hybrid"] = SearchSettings("hybrid", lexical_weight=words, sparse_weight=tokens)
    return found


def levels_around(levels: Sequence[float], figure: float) -> list[int]:
    """The places of the levels that a figure lies between; of one alone where it lies beyond all of them, or on it.

    Args:
        levels: falling.
        figure: what is looked for.
    """
    places = range(len(levels))
    place = float(np.interp(figure, np.maximum.accumulate(levels[::-1]), places))
    return [at for at in places if abs(places[-1] - at - place) < 1]


def counted(changes: Changes, translated: float) -> list[SliceChange]:
    """The parts in which nothing may be lost: all, or where all is translated, those with an answer in the language.

    Args:
        changes: in the parts of the questions.
        translated: in how many of its languages a document is there, on average, 0 to 1.
    """
    return [one for one in changes if one.answer == "own" or translated < ALL_TRANSLATED]


def tolerated(translated: float) -> float:
    """The mean loss that is too much: ``TOLERATED``, or where few questions have anything to gain, less in proportion.

    Args:
        translated: in how many of its languages a document is there, on average, which is how many queries have an
            answer in their language, 0 to 1; 0 where no translations are known.
    """
    return TOLERATED * min(1.0, (translated or 1.0) / _ENOUGH_OWN)


def _may_lose(changes: Changes, translated: float) -> bool:
    """Whether it is not sure that no part that counts loses more than is tolerated, or whether readers lose."""
    return readers_lose(changes, TOLERATED) or any(
        one.loses(tolerated(translated), -_SURE) for one in counted(changes, translated)
    )


def _strength(full: Changes, translated: float = 0.0) -> float:
    """The strength to try first, at which about as much is lost as is tolerated if losses grow as it does.

    It is 1 only where it is sure that no more is lost at 1, and 0 where words do not tell enough for it to be worth
    while.

    Args:
        full: what changes at strength 1.
        translated: as ``tolerated`` takes it.
    """
    if gain(full) < WORTH_WHILE:
        return 0.0
    if not _may_lose(full, translated):
        return 1.0
    strength = min(_CAUTIOUS, round(tolerated(translated) / max(loss(counted(full, translated)), TOLERATED), 2))
    return strength if strength >= _LEAST_STRENGTH else 0.0

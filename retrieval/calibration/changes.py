"""What a mode changes in the parts of a calibration's questions, how sure that is, and what it predicts."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.plugin.versions import FEWEST_CALIBRATED
from langshift.retrieval.calibration.questions import OVERLAPS, VAGUENESS, Questions

# Recall is the mean over depths around 20: at 20 alone it turns on the few documents that just pass that rank, and no
# sample of a usual size is sure of it.
_RECALL_DEPTHS: Final = range(15, 26)
#: So many hits of a ranking are measured.
DEEPEST: Final = _RECALL_DEPTHS[-1]
# So many hits most readers look at.
_FIRST: Final = 3
#: Standard errors to either side of a figure within which it lies with 95 % confidence.
INTERVAL: Final = 1.96
#: nDCG@20, TLR and own@3 of questions, shape (questions, 3); NaN where the latter two are undefined.
Measured = NDArray[np.float64]


class SliceChange(NamedTuple):
    """What a mode changes in a part of the questions.

    Attributes:
        answer: ``own`` where the answer is there in the question's language, ``other`` where it is in others only.
        overlap: how much of the question's words the document holds; ``any`` for all together.
        vagueness: how much of a cut-out the questions' vectors are made of; None for any of it.
        questions: how many.
        dense: nDCG@20 of dense search.
        ndcg: mean change of nDCG@20.
        tlr: mean change of TLR, recall of answers in other languages, itself the mean of TLR@15 to TLR@25; None where
            no answer is in another language.
        error: standard error of the change of nDCG@20, over translation groups, or documents without one: what is made
            of one shares its luck.
        tlr_error: the same of TLR.
        own: mean change of own@3, the share of questions that have an answer in their own language among the first
            three hits; None where no answer is in it.
    """

    answer: str
    overlap: str
    vagueness: float | None
    questions: int
    dense: float
    ndcg: float
    tlr: float | None
    error: float = 0.0
    tlr_error: float = 0.0
    own: float | None = None

    def loses(self, most: float, confidence: float) -> bool:
        """Whether more than ``most`` is lost in either measure, with so many standard errors added to the changes."""
        recall = 0.0 if self.tlr is None else self.tlr + confidence * self.tlr_error
        return min(self.ndcg + confidence * self.error, recall) < -most


#: What a mode changes, in all parts of the questions.
Changes = Sequence[SliceChange]


class Prediction(NamedTuple):
    """Between what figures nDCG@20 changes by the mode that ``auto`` stands for, as far as made-up questions tell.

    Attributes:
        answer: as in ``SliceChange``; None for both.
        language: of the questions; None for all.
        questions: how many were asked.
        lowest: the lower end of the lowest of the 95 % intervals of the parts, over translation groups.
        highest: the upper end of the highest.
    """

    answer: str | None
    language: str | None
    questions: int
    lowest: float
    highest: float

    @classmethod
    def of(cls, answer: str | None, language: str | None, parts: Changes) -> "Prediction":
        """That of some parts; questions of any mixture of them change by something between."""
        ends = [one.ndcg + side * one.error for one in parts for side in (-INTERVAL, INTERVAL)]
        return cls(answer, language, sum(one.questions for one in parts), min(ends), max(ends))


def gain(changes: Changes) -> float:
    """The mean change of nDCG@20 over the parts where the answer is there in the question's language."""
    return float(np.mean([one.ndcg for one in changes if one.answer == "own"]))


def loss(changes: Changes) -> float:
    """The largest mean loss in any part, in either measure; 0 where there is none."""
    return max(0.0, *(-change for one in changes for change in (one.ndcg, one.tlr) if change is not None))


def readers_lose(changes: Changes, most: float) -> bool:
    """Whether readers find an answer in their own language among the first three less often, by more than ``most``."""
    owns = [one.own for one in changes if one.own is not None]
    return bool(owns) and float(np.mean(owns)) < -most


def score_rankings(answers: Sequence[Mapping[str, bool]], ranked: Sequence[Sequence[str]]) -> Measured:
    """nDCG@20 of rankings, the mean of TLR@15 to TLR@25, and own@3, see ``Measured``.

    Args:
        answers: of each question, document -> whether it is in another language than the question.
        ranked: of each question, documents, best first, ``DEEPEST`` of them.
    """
    import ir_measures
    from ir_measures import R, nDCG

    run = [
        ir_measures.ScoredDoc(str(number), name, -float(rank))
        for number, names in enumerate(ranked)
        for rank, name in enumerate(names)
    ]
    figures = np.zeros((len(answers), 3))
    for column, measures in enumerate(([nDCG @ 20], [R @ depth for depth in _RECALL_DEPTHS])):
        judged = [
            ir_measures.Qrel(str(number), name, 1)
            for number, known in enumerate(answers)
            for name, other in known.items()
            if other or not column
        ]
        if column:
            figures[:, column] = np.nan
            figures[sorted({int(qrel.query_id) for qrel in judged}), column] = 0.0
        for found in ir_measures.iter_calc(measures, judged, run) if judged else ():
            figures[int(found.query_id), column] += found.value / len(measures)
    for number, (known, names) in enumerate(zip(answers, ranked, strict=True)):
        own = {name for name, other in known.items() if not other}
        figures[number, 2] = bool(own.intersection(names[:_FIRST])) if own else np.nan
    return figures


def part_changes(
    questions: Questions, before: Measured, after: Measured, *, by_vagueness: bool = True
) -> list[SliceChange]:
    """The parts of the questions and what changes in them.

    Where the answer is in the question's language, that goes by how much of the question it repeats. Where it is in
    others only, words are led astray at any overlap, and clear questions, whose answers dense search finds, lose more
    than vague ones.

    Args:
        questions: that were asked.
        before: the figures of each, as ``score_rankings`` gives them.
        after: the same of another mode.
        by_vagueness: whether the latter are told apart by how vague they are.
    """
    overlaps = np.array([one.overlap for one in questions])
    vague = np.array([one.vagueness for one in questions])
    elsewhere = np.array([one.elsewhere for one in questions])
    clusters = np.array([one.cluster for one in questions])
    parts: list[tuple[str, str, float | None, NDArray[np.bool_]]]
    parts = [("own", overlap, None, ~elsewhere & (overlaps == overlap)) for overlap in OVERLAPS]
    if by_vagueness:
        parts += [("other", "any", level, elsewhere & (vague == level)) for level in VAGUENESS]
    else:
        parts.append(("other", "any", None, elsewhere))
    found = []
    for answer, overlap, level, which in parts:
        changed, of = (after - before)[which], clusters[which]
        (ndcg, error), (tlr, tlr_error), (own, _) = (_mean(changed[:, column], of) for column in range(3))
        if ndcg is not None:
            dense = float(before[which, 0].mean())
            found.append(SliceChange(answer, overlap, level, len(of), dense, ndcg, tlr, error, tlr_error, own))
    return found


def predictions(questions: Questions, before: Measured, after: Measured) -> list[Prediction]:
    """What is predicted where an answer is in the question's language, where none is, and for each language."""
    changes = part_changes(questions, before, after)
    found = [
        Prediction.of(answer, None, parts)
        for answer in ("own", "other")
        if (parts := [one for one in changes if one.answer == answer])
    ]
    languages = np.array([one.query.language for one in questions])
    for language in sorted(set(languages.tolist())):
        asked = np.flatnonzero(languages == language)
        part = [questions[int(at)] for at in asked]
        if len({one.cluster for one in part}) >= FEWEST_CALIBRATED:
            found.append(Prediction.of(None, language, part_changes(part, before[asked], after[asked])))
    return found


def _mean(values: Measured, clusters: NDArray[np.int64]) -> tuple[float | None, float]:
    """The mean of values, None where there are none, and its standard error; those of one cluster share their luck."""
    known = ~np.isnan(values)
    if not known.any():
        return None, 0.0
    mean = float(values[known].mean())
    sums = np.bincount(clusters[known], weights=values[known] - mean)
    return mean, float(np.sqrt((sums**2).sum()) / known.sum())

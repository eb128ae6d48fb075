"""What gives back the answers in the searcher's own language that a later side loses: measured, and the best of it.

A remedy is another search of the later side's index: in the mode that a calibration finds best, or with a language
preference. What a preference gives is reckoned from the run itself: the first hundred documents of each question, those
in its language with ``B`` more. Other searches are runs of their own.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from langshift.evaluate.measures.base import Run
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.calibration.stored import resolve_auto
from langshift.retrieval.settings import RECOMMENDED, USUAL, SearchSettings

#: Language preferences that are tried, in units of cosine.
PREFERENCES: Final = (0.005, 0.01, 0.02, 0.04)
#: A remedy that gives back less than this share is none.
LEAST_SHARE: Final = 0.1
# What a dense search gives a document is ``(1 + cosine) / 2``.
_PER_COSINE: Final = 0.5

_Figures = Mapping[str, Mapping[str, float]]


class Remedy(NamedTuple):
    """One of the searches that are tried.

    Attributes:
        words: what to do, as the rest of a sentence: ``search with --prefer-language 0.01``.
        figures: measure -> question -> figure.
    """

    words: str
    figures: _Figures


class MeasuredRemedy(NamedTuple):
    """The best remedy.

    Attributes:
        words: as in ``Remedy``.
        share: of what is lost, how much it gives back, 0 to 1.
        ranking: mean nDCG@20 with it, over all questions that have one.
    """

    words: str
    share: float
    ranking: float


def preferred_runs(
    run: Run, setting: Mapping[str, Any], documents: Mapping[str, str | None], queries: Mapping[str, str | None]
) -> dict[str, Run]:
    """What each language preference makes of a run; empty where its scores are no cosines.

    Args:
        run: question -> document -> score.
        setting: that the run was searched in, as ``result.json`` has it under ``resolved``.
        documents: document -> language.
        queries: question -> language.

    Returns:
        What to do -> the run in that order.
    """
    if not setting or SearchSettings(**setting) != USUAL:
        return {}
    return {
        f"search with --prefer-language {beta:g}": {
            query: {
                name: score + (beta * _PER_COSINE if documents.get(name) == language else 0.0)
                for name, score in found.items()
            }
            for query, found in run.items()
            for language in [queries.get(query) or ""]
        }
        for beta in PREFERENCES
    }


def untried_search(index: IndexInfo, setting: SearchSettings) -> tuple[str, SearchSettings] | None:
    """What to do with an index beside a preference, and the setting that shows what this gives; None for nothing.

    Args:
        index: that was searched.
        setting: in which it was searched.
    """
    auto = resolve_auto(index)
    if setting not in (USUAL, RECOMMENDED):
        return None
    if auto.origin == "calibration":
        known = setting == RECOMMENDED or auto.setting == USUAL
        return None if known else ("search by default, in mode auto", RECOMMENDED)
    if not index.calibratable:
        return None
    # At a strength by which nothing was lost on any text that was tried.
    return f"run `langshift anchors calibrate {index.name}` for mode anchored", SearchSettings("anchored")


def best_remedy(
    lost: tuple[str, Sequence[str]],
    guarded: Sequence[str],
    before: _Figures,
    after: _Figures,
    remedies: Sequence[Remedy],
    most_loss: float,
) -> MeasuredRemedy | None:
    """The remedy that gives back most of what is lost, at no other cost; None where none gives back a tenth.

    Args:
        lost: the measure that is lower on the later side, and its questions.
        guarded: of what a remedy may lose no more than ``most_loss`` against the later side, the ranking first.
        before: measure -> question -> figure of the earlier side.
        after: the same of the later one.
        remedies: what was tried; of equal ones the first is best.
        most_loss: how much is no loss.
    """
    measure, questions = lost
    found = list[MeasuredRemedy]()
    for one in remedies:
        both = [query for query in questions if query in one.figures[measure]]
        old, new, with_it = (fmean(side[measure][query] for query in both) for side in (before, after, one.figures))
        costs = [
            fmean(after[name][query] - figure for query, figure in one.figures[name].items() if query in after[name])
            for name in guarded
            if one.figures[name]
        ]
        share = (with_it - new) / (old - new)
        if max(costs) <= most_loss and share >= LEAST_SHARE:
            found.append(MeasuredRemedy(one.words, min(1.0, share), fmean(one.figures[guarded[0]].values())))
    return max(found, key=lambda one: one.share, default=None)

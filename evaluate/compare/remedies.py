"""What gives back the answers in the searcher's own language that a later side loses: measured, and the best of it.

A remedy is another search of the later side's index: in the mode that a calibration finds best, or with a language
preference. What a preference gives is reckoned from the run itself: the first hundred documents of each question, those
in its language with ``B`` more. Other searches are runs of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from statistics import fmean
from typing import Any, Final, NamedTuple

from langshift.evaluate.measures.base import Run
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.calibration.stored import resolve_auto
from langshift.retrieval.request import RECOMMENDED, USUAL, SearchSettings

#: Language preferences that are tried, in units of cosine.
PREFERENCES: Final = (0.005, 0.01, 0.02, 0.04)
#: A remedy that gives back less than this share is none.
LEAST_SHARE: Final = 0.1
#: What has to be searched anew is tried on so many questions.
MOST_TRIED: Final = 300
#: One that has a price is to give back this share for it, if any does.
HALF: Final = 0.5
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
    """What a remedy gives and costs.

    Attributes:
        words: as in ``Remedy``.
        share: of what is lost, how much it gives back, 0 to 1.
        means: measure -> its mean on the later side and with the remedy, over the questions that have both figures:
            the ranking first.
    """

    words: str
    share: float
    means: Mapping[str, tuple[float, float]]

    @property
    def cost(self) -> float:
        """What is lost in the measure that loses most."""
        return max(before - after for before, after in self.means.values())


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


def sample_of(questions: Iterable[str], most: int = MOST_TRIED) -> frozenset[str]:
    """So many of the questions, or all where there are no more: the same ones whatever their order."""
    return frozenset(sorted(questions, key=lambda name: blake2b(name.encode(errors="replace")).digest())[:most])


def measured_remedies(
    lost: tuple[str, Sequence[str]],
    guarded: Sequence[str],
    before: _Figures,
    after: _Figures,
    remedies: Sequence[Remedy],
) -> list[MeasuredRemedy]:
    """What each remedy gives back and costs; those are left out that give back less than a tenth of what is lost.

    Args:
        lost: the measure that is lower on the later side, and its questions.
        guarded: the measures in which a remedy may cost something against the later side, the ranking first.
        before: measure -> question -> figure of the earlier side.
        after: the same of the later one.
        remedies: what was tried.
    """
    measure, questions = lost
    found = list[MeasuredRemedy]()
    for one in remedies:
        both = [query for query in questions if query in one.figures[measure]]
        if not both:
            continue
        old, new, with_it = (fmean(side[measure][query] for query in both) for side in (before, after, one.figures))
        means = {
            name: (fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs))
            for name in guarded
            if (pairs := [(after[name][query], to) for query, to in one.figures[name].items() if query in after[name]])
        }
        # Of a sample, nothing may be lost.
        share = (with_it - new) / (old - new) if old > new else 0.0
        if share >= LEAST_SHARE:
            found.append(MeasuredRemedy(one.words, min(1.0, share), means))
    return found


def cheapest_remedy(found: Sequence[MeasuredRemedy]) -> MeasuredRemedy | None:
    """Where each has a price: the one that costs least of those that give back half, else the one that gives most."""
    half = [one for one in found if one.share >= HALF]
    return min(half, key=lambda one: one.cost) if half else max(found, key=lambda one: one.share, default=None)

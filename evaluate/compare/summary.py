"""What a shift changed in two replays of the same questions, in plain words."""

from collections.abc import Mapping
from typing import NamedTuple

from langshift.evaluate.compare.comparison import changed
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20, most_shown
from langshift.evaluate.replay.replay import ReplayResult
from langshift.wording import format_change, format_score, join_words

_DIGITS = 3


class ReplayPair(NamedTuple):
    """Two replays of the same queries.

    Attributes:
        dataset: what was replayed.
        before: the index without the shift.
        after: the index with it.
    """

    dataset: Dataset
    before: ReplayResult
    after: ReplayResult

    def change(self, measure: str) -> dict[str, float]:
        """Query id -> change of a measure, for the queries that it counts."""
        return changed(self.before.scores[measure], self.after.scores[measure])


def describe_changes(compared: ReplayPair) -> list[str]:
    """What the shift changed, in sentences made from the figures alone."""
    lines = [_overall(compared), _pivot(compared)]
    lines += [_by_language(compared, name) for name in compared.before.scores if name not in ("R@20", MOST_SHOWN_20)]
    lines += [_by_question(compared), _most_shown(compared), _grain(compared)]
    return [line for line in lines if line]


def side_by_side(before: Scores, after: Scores) -> str:
    """``.612 → .641  +.029``, for a table."""
    old, new = before.mean, after.mean
    if old is None or new is None:
        return "-"
    return f"{short_figure(old)} → {short_figure(new)} {short_signed(shown_change(old, new)):>6}"


def shown_change(old: float, new: float) -> float:
    """The change between two figures as they are shown, so that a reader can check it."""
    return round(round(new, _DIGITS) - round(old, _DIGITS), _DIGITS)


def short_figure(value: float) -> str:
    """A figure between 0 and 1 as ``.612``."""
    return format_score(value, _DIGITS)


def short_signed(change: float) -> str:
    """A change as ``+.029`` or ``-.004``; ``0`` where it does not show."""
    return format_change(change, _DIGITS)


def _overall(compared: ReplayPair) -> str:
    moves = _movements(compared.before.scores, compared.after.scores)
    return f"Over all {len(compared.before.answers):,} questions, {moves}."


def _pivot(compared: ReplayPair) -> str:
    pivot = compared.after.fingerprint.pivot
    before, after = (replay.by_language().get(pivot or "") for replay in (compared.before, compared.after))
    if before is None or after is None:
        return ""
    moves = _movements(before, after)
    return f"For questions in {pivot}, the pivot language that documents are shifted towards, {moves}."


def _movements(before: Mapping[str, Scores], after: Mapping[str, Scores]) -> str:
    moves = {name: _movement(old.mean, after[name].mean) for name, old in before.items() if name != MOST_SHOWN_20}
    return join_words([f"{name} {move}" for name, move in moves.items()])


def _movement(old: float | None, new: float | None) -> str:
    """``rises from .612 to .641``, or what it does instead."""
    if old is None or new is None:
        return "is not available"
    if not shown_change(old, new):
        return f"stays at {short_figure(new)}"
    return f"{'rises' if new > old else 'falls'} from {short_figure(old)} to {short_figure(new)}"


def _by_language(compared: ReplayPair, measure: str) -> str:
    """How the mean as shown changes for each query language that has one, largest gain and largest loss first."""
    before, after = compared.before.by_language(), compared.after.by_language()
    means = {language: (part[measure].mean, after[language][measure].mean) for language, part in before.items()}
    changes = [
        (shown_change(old, new), tag) for tag, (old, new) in means.items() if old is not None and new is not None
    ]
    changes.sort(key=lambda change: (-change[0], change[1]))
    parts = {
        "rises for questions in": [f"{tag} ({short_signed(change)})" for change, tag in changes if change > 0],
        "falls for questions in": [
            f"{tag} ({short_signed(change)})" for change, tag in reversed(changes) if change < 0
        ],
        "unchanged for questions in": [tag for change, tag in changes if not change],
    }
    said = [f"{words} {join_words(languages)}" for words, languages in parts.items() if languages]
    return f"{measure} by question language: {'; '.join(said)}." if said else ""


def _by_question(compared: ReplayPair) -> str:
    changes = compared.change("nDCG@20").values()
    better = sum(change > 0 for change in changes)
    worse = sum(change < 0 for change in changes)
    return (
        f"Question by question, nDCG@20 is better for {better:,}, worse for {worse:,} "
        f"and the same for {len(changes) - better - worse:,}."
    )


def _most_shown(compared: ReplayPair) -> str:
    before, after = (most_shown(side.scores[MOST_SHOWN_20]) for side in (compared.before, compared.after))
    if before is None or after is None:
        return ""
    return f"The language that is shown most: before, {before.sentence}; after, {after.sentence}."


def _grain(compared: ReplayPair) -> str:
    fewest = min(measures["nDCG@20"].queries for measures in compared.before.by_language().values())
    if not fewest:
        return ""
    return (
        f"With {fewest} questions per language, a single question can change a language's figure by "
        f"{short_figure(1 / fewest)}: small changes mean little."
    )

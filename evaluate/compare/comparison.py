"""Two replays of one dataset side by side, and in words: what rises, what falls, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from langshift import shown
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.replay.replayed import Replay
from langshift.shown import listed

_DIGITS = 3
_DEPTH = 20


@dataclass(frozen=True)
class Comparison:
    """Two replays of the same queries.

    Attributes:
        dataset: what was replayed.
        before: the index without the shift.
        after: the index with it.
    """

    dataset: Dataset
    before: Replay
    after: Replay

    def change(self, measure: str) -> dict[str, float]:
        """Query id -> change of a measure, for the queries that it counts."""
        before, after = self.before.scores[measure].per_query, self.after.scores[measure].per_query
        return {query: after[query] - before[query] for query in before}

    def changes_by_language(self, measure: str) -> dict[str, float]:
        """Query language -> change of the mean as shown, largest gain first; those without a mean are left out."""
        before, after = self.before.by_language(), self.after.by_language()
        changes = {}
        for language in before:
            old, new = before[language][measure].mean, after[language][measure].mean
            if old is not None and new is not None:
                changes[language] = shown_change(old, new)
        return dict(sorted(changes.items(), key=lambda item: (-item[1], item[0])))

    def own_language_share(self, replay: Replay) -> float:
        """Mean share, among a query's first 20 hits, of documents in the query's language."""
        documents = self.dataset.documents
        shares = []
        for answer in replay.answers:
            top = [documents[name].language for name, _ in answer.hits[:_DEPTH] if name in documents]
            if top:
                shares.append(sum(language == replay.languages[answer.query] for language in top) / len(top))
        return fmean(shares) if shares else 0.0


def in_words(compared: Comparison) -> list[str]:
    """What the shift changed, in sentences made from the figures alone."""
    lines = [_overall(compared), _pivot(compared)]
    lines += [_by_language(compared, name) for name in compared.before.scores if name != "R@20"]
    lines += [_by_question(compared), _shares(compared), _grain(compared)]
    return [line for line in lines if line]


def movement(before: Scores, after: Scores) -> str:
    """``rises from .612 to .641``, or what it does instead."""
    old, new = before.mean, after.mean
    if old is None or new is None:
        return "cannot be told"
    if not shown_change(old, new):
        return f"stays at {figure(new)}"
    return f"{'rises' if new > old else 'falls'} from {figure(old)} to {figure(new)}"


def side_by_side(before: Scores, after: Scores) -> str:
    """``.612 → .641  +.029``, for a table."""
    old, new = before.mean, after.mean
    if old is None or new is None:
        return "-"
    return f"{figure(old)} → {figure(new)} {signed(shown_change(old, new)):>6}"


def shown_change(old: float, new: float) -> float:
    """The change between two figures as they are shown, so that a reader can check it."""
    return round(round(new, _DIGITS) - round(old, _DIGITS), _DIGITS)


def figure(value: float) -> str:
    """A figure between 0 and 1 as ``.612``."""
    return shown.figure(value, _DIGITS)


def signed(change: float) -> str:
    """A change as ``+.029`` or ``-.004``; ``=`` where it does not show."""
    return shown.signed(change, _DIGITS)


def _overall(compared: Comparison) -> str:
    parts = [
        f"{name} {movement(before, compared.after.scores[name])}" for name, before in compared.before.scores.items()
    ]
    return f"Over all {len(compared.before.answers):,} questions, {listed(parts)}."


def _pivot(compared: Comparison) -> str:
    pivot = compared.after.fingerprint.pivot
    before, after = (replay.by_language().get(pivot or "") for replay in (compared.before, compared.after))
    if before is None or after is None:
        return ""
    parts = [f"{name} {movement(before[name], after[name])}" for name in before]
    return f"For questions in {pivot}, the pivot language that passages are shifted towards, {listed(parts)}."


def _by_language(compared: Comparison, measure: str) -> str:
    changes = compared.changes_by_language(measure)
    gains = {language: change for language, change in changes.items() if change > 0}
    losses = {language: change for language, change in reversed(changes.items()) if change < 0}
    same = [language for language, change in changes.items() if not change]
    parts = []
    if gains:
        parts.append(f"rises for questions in {_named(gains)}")
    if losses:
        parts.append(f"falls for questions in {_named(losses)}")
    if same:
        parts.append(f"stays for {listed(same)}")
    return f"{measure} by the question's language: {'; '.join(parts)}." if parts else ""


def _by_question(compared: Comparison) -> str:
    changes = compared.change("nDCG@20").values()
    better = sum(change > 0 for change in changes)
    worse = sum(change < 0 for change in changes)
    return (
        f"Question by question, nDCG@20 is better for {better:,}, worse for {worse:,} "
        f"and the same for {len(changes) - better - worse:,}."
    )


def _shares(compared: Comparison) -> str:
    before, after = (compared.own_language_share(replay) for replay in (compared.before, compared.after))
    languages = {document.language for document in compared.dataset.documents.values()}
    return (
        f"Among the first {_DEPTH} hits, those in the question's own language take {figure(before)} before "
        f"and {figure(after)} after; an even mix of the {len(languages)} languages would be "
        f"{figure(1 / len(languages))}."
    )


def _grain(compared: Comparison) -> str:
    fewest = min(measures["nDCG@20"].queries for measures in compared.before.by_language().values())
    if not fewest:
        return ""
    return (
        f"With {fewest} questions a language, one question alone can move a language's figure by "
        f"{figure(1 / fewest)}: small changes say little."
    )


def _named(changes: Mapping[str, float]) -> str:
    return listed([f"{language} ({signed(change)})" for language, change in changes.items()])

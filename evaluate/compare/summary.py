"""What a comparison says in plain words: what changed, who gains, who loses, and what to use."""

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import NamedTuple

from langshift.evaluate.compare.comparison import ALL, SAME, Column, Comparison, Pair, changed, sign
from langshift.evaluate.compare.significance import LEVEL
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.replay.overlap import DEPTH, shares
from langshift.evaluate.replay.replay import ReplayResult
from langshift.languages import UNDETERMINED
from langshift.output import format_change, format_score, join_words


class LanguageRecommendation(NamedTuple):
    """What the figures say for the queries of one language.

    Attributes:
        language: the query language.
        best: the run with the best mean.
        even: runs that the test does not tell from it.
        worse: runs that are significantly worse -> what the best has more.
    """

    language: str
    best: str
    even: Sequence[str]
    worse: Mapping[str, float]


def advice(compared: Comparison) -> list[str]:
    """Sentences: what to use for which query language, at what cost, and where nothing can be said.

    Empty where there is nothing to judge by, or one run only.
    """
    primary = compared.primary
    if primary is None or len(compared.candidates) < 2:
        return []
    choices = [choice for language in compared.by_language if (choice := choose(compared, primary, language))]
    sentences = []
    for best in dict.fromkeys(choice.best for choice in choices if choice.worse):
        sentences += [_recommended(compared, primary, best, [c for c in choices if c.best == best and c.worse])]
    undecided = [choice for choice in choices if not choice.worse]
    if undecided:
        sentences.append(_undecided(compared, primary, undecided))
    sentences += _elsewhere(compared, primary, choices)
    return sentences


def choose(compared: Comparison, column: Column, language: str) -> LanguageRecommendation | None:
    """The best run for queries of a language; None where a run has no figure for them."""
    part = compared.by_language[language]
    means = {letter: mean for letter in compared.letters if (mean := part.mean(letter, column)) is not None}
    if len(means) < len(compared.letters):
        return None
    # Of equal runs the first given is the one that stands.
    best = max(means, key=lambda letter: sign(column) * means[letter])
    tests = {letter: part.against(column, best, letter) for letter in means if letter != best}
    worse = {letter: test.difference for letter, test in tests.items() if test is not None and test.significant}
    return LanguageRecommendation(language, best, [letter for letter in tests if letter not in worse], worse)


def _recommended(compared: Comparison, column: Column, best: str, choices: Sequence[LanguageRecommendation]) -> str:
    parts = []
    for choice in choices:
        against = [f"{format_change(change)} against {run}" for run, change in choice.worse.items()]
        even = f", not significantly different from {join_words(list(choice.even))}" if choice.even else ""
        parts.append(f"{_name(choice.language)} ({', '.join(against)}{even})")
    return (
        f"For queries in {join_words(parts)}, use {compared.candidate(best).label}: "
        f"{column.measure} is significantly better there."
    )


def _undecided(compared: Comparison, column: Column, choices: Sequence[LanguageRecommendation]) -> str:
    letters = compared.letters
    shown = []
    for choice in choices:
        detail = f"highest with {choice.best}" if sign(column) > 0 else f"lowest with {choice.best}"
        if len(letters) == 2:
            test = compared.by_language[choice.language].tested(column, (letters[0], letters[1]))
            detail = f"{letters[1]} {format_change(test and test.difference, same='unchanged')}"
        shown.append(f"{_name(choice.language)} ({detail})")
    return (
        f"For queries in {join_words(shown)}, {column.measure} does not differ significantly between "
        f"{join_words(letters)}: chance alone produces differences as large (corrected p at least {LEVEL:.2f})."
    )


def _elsewhere(compared: Comparison, primary: Column, choices: Sequence[LanguageRecommendation]) -> list[str]:
    """Every other measure and part in which a run that may be used is behind another.

    Significant losses of any such run are told; those that chance may have given, for a recommended one only.
    """
    sentences = []
    for column in compared.columns:
        if column == primary or not sign(column):
            continue
        losses: dict[tuple[str, str, bool], list[str]] = {}
        for choice in choices:
            for used, other in product([choice.best, *choice.even], compared.letters):
                loss = compared.by_language[choice.language].against(column, used, other)
                if loss is None or sign(column) * loss.difference >= 0 or not format_change(loss.difference, same=""):
                    continue
                if loss.significant or (used == choice.best and other in choice.worse):
                    shown = f"{_name(choice.language)} ({format_change(loss.difference)})"
                    losses.setdefault((used, other, loss.significant), []).append(shown)
        sentences += [_behind(column, *key, languages) for key, languages in losses.items()]
    return sentences


def _behind(column: Column, used: str, other: str, significant: bool, languages: list[str]) -> str:
    where = f"{column.measure}{_part(column)}"
    if significant:
        return (
            f"But {where} is significantly worse with {used} than with {other} for queries in {join_words(languages)}."
        )
    return (
        f"{where} is also worse with {used} than with {other} for queries in {join_words(languages)}, "
        "though this may be due to chance."
    )


def _part(column: Column) -> str:
    """Says which documents count, where the measure's name does not."""
    if column.section == ALL or parse_measure(column.measure).family.name in ("SLR", "TLR"):
        return ""
    return f" over {column.section} documents"


def _name(language: str) -> str:
    return "an unknown language" if language == UNDETERMINED else language


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

    def own_language_share(self, replay: ReplayResult) -> float:
        """Mean share, among a query's first 20 hits, of documents in the query's language."""
        documents = {name: document.language for name, document in self.dataset.documents.items()}
        found = [
            shares([name for name, _ in answer.hits], documents).get(replay.languages[answer.query] or UNDETERMINED, 0)
            for answer in replay.answers
            if answer.hits
        ]
        return fmean(found) if found else 0.0


def describe_changes(compared: ReplayPair) -> list[str]:
    """What the shift changed, in sentences made from the figures alone."""
    lines = [_overall(compared), _pivot(compared)]
    lines += [_by_language(compared, name) for name in compared.before.scores if name != "R@20"]
    lines += [_by_question(compared), _shares(compared), _grain(compared)]
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
    return join_words([f"{name} {_movement(old.mean, after[name].mean)}" for name, old in before.items()])


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


def _shares(compared: ReplayPair) -> str:
    before, after = (compared.own_language_share(replay) for replay in (compared.before, compared.after))
    languages = {document.language for document in compared.dataset.documents.values()}
    return (
        f"Of the first {DEPTH} hits, the share in the question's own language is {short_figure(before)} before "
        f"and {short_figure(after)} after; an even mix of the {len(languages)} languages would be "
        f"{short_figure(1 / len(languages))}."
    )


def _grain(compared: ReplayPair) -> str:
    fewest = min(measures["nDCG@20"].queries for measures in compared.before.by_language().values())
    if not fewest:
        return ""
    return (
        f"With {fewest} questions per language, a single question can change a language's figure by "
        f"{short_figure(1 / fewest)}: small changes mean little."
    )


def summary(compared: Comparison) -> list[str]:
    """A paragraph for each later run against the first, or one for a single run."""
    column = compared.primary or next(iter(compared.columns), None)
    if column is None:
        return []
    first, *later = compared.candidates
    count = f"{len(compared.dataset.queries):,} queries"
    if not later:
        return [f"{first.label} over {count}: {column.measure} {format_score(compared.mean(first.letter, column))}."]
    said = []
    for run in later:
        old, new, change = _moved(compared, column, (first.letter, run.letter))
        moved = f"Over {count}, {column.measure} is {old} with {first.label} and {new} with {run.label} {change}."
        said.append(" ".join([moved, *_who(compared, column, run.letter), *_own(compared, run.letter)]))
    return said


def _moved(compared: Comparison, column: Column, pair: Pair) -> tuple[str, str, str]:
    """Both figures, and ``(+.0290, significant)`` or ``(unchanged, not significant)``."""
    before, after = (format_score(compared.mean(run, column)) for run in pair)
    tested = compared.whole.tested(column, pair)
    judged = "not tested" if tested is None else "significant" if tested.significant else "not significant"
    return before, after, f"({format_change(compared.whole.change(column, pair), same='unchanged')}, {judged})"


def _who(compared: Comparison, column: Column, letter: str) -> list[str]:
    """Which query languages gain and which lose, as far as the tests tell."""
    better = sign(column)
    if not better or len(compared.by_language) < 2:
        return []
    pair = compared.letters[0], letter
    significant = {
        language: test.difference * better
        for language, part in compared.by_language.items()
        if (test := part.tested(column, pair)) is not None and test.significant
    }
    if not significant:
        return ["No query language changes by more than chance could explain."]
    gaining = _those([language for language, gain in significant.items() if gain > 0], "gain")
    losing = _those([language for language, gain in significant.items() if gain <= 0], "lose")
    gaining = gaining or "no query language gains significantly"
    return [f"{gaining[0].upper()}{gaining[1:]}; {losing or 'none loses significantly'}."]


def _those(languages: Sequence[str], verb: str) -> str:
    """``the query languages de and en gain``; empty without any."""
    if len(languages) == 1:
        return f"the query language {languages[0]} {verb}s"
    return f"the query languages {join_words(languages)} {verb}" if languages else ""


def _own(compared: Comparison, letter: str) -> list[str]:
    """What becomes of answers in the searcher's own language: what a shift may cost."""
    column = next((found for found in compared.columns if found.section == SAME and sign(found)), None)
    column = next((found for found in compared.columns if found.measure.startswith("SLR@")), column)
    if column is None:
        return []
    pair = compared.letters[0], letter
    if compared.whole.change(column, pair) is None:
        return []
    before, after, change = _moved(compared, column, pair)
    return [f"Answers in the searcher's own language: {column.measure} {before} → {after} {change}."]

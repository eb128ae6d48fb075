"""Which index to use for whom, in sentences made from the figures and tests alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langshift.evaluate.compare.comparing import Comparison, Pair, sign
from langshift.evaluate.compare.sections import SAME, Column
from langshift.evaluate.compare.significance import LEVEL, Tested
from langshift.evaluate.measures import parse_measure
from langshift.languages import UNDETERMINED
from langshift.shown import listed, signed


@dataclass(frozen=True)
class Choice:
    """What the figures say for the queries of one language.

    Attributes:
        language: the query language.
        best: the run with the best mean.
        even: runs that the test does not tell from it.
        worse: runs that are significantly worse.
    """

    language: str
    best: str
    even: Sequence[str]
    worse: Sequence[str]


def advice(compared: Comparison) -> list[str]:
    """Sentences: what to use for which query language, at what cost, and where nothing can be said.

    Empty where there is nothing to judge by, or one run only.
    """
    primary = compared.primary
    if primary is None or len(compared.candidates) < 2:
        return []
    choices = [choice for language in compared.asked if (choice := choose(compared, primary, language))]
    told = []
    for best in dict.fromkeys(choice.best for choice in choices if choice.worse):
        told += [_recommended(compared, primary, best, [c for c in choices if c.best == best and c.worse])]
    undecided = [choice for choice in choices if not choice.worse]
    if undecided:
        told.append(_undecided(compared, primary, undecided))
    told += _elsewhere(compared, primary, choices)
    return told


def choose(compared: Comparison, column: Column, language: str) -> Choice | None:
    """The best run for queries of a language; None where a run has no figure for them."""
    means = {run.letter: compared.mean(run.letter, column, language) for run in compared.candidates}
    known = {letter: mean for letter, mean in means.items() if mean is not None}
    if len(known) < len(means):
        return None
    # Of equal runs the first given is the one that stands.
    best = max(known, key=lambda letter: sign(column) * known[letter])
    worse = [letter for letter in known if letter != best and _significant(compared, column, language, best, letter)]
    even = [letter for letter in known if letter not in (best, *worse)]
    return Choice(language, best, even, worse)


def _significant(compared: Comparison, column: Column, language: str, one: str, other: str) -> bool:
    found = compared.tested(column, _pair(one, other), language)
    return found is not None and found.significant


def _pair(one: str, other: str) -> Pair:
    """The two in the order given on the command line, which is that of their letters."""
    return (one, other) if one < other else (other, one)


def _recommended(compared: Comparison, column: Column, best: str, choices: Sequence[Choice]) -> str:
    parts = []
    for choice in choices:
        against = [f"{_change(compared, column, choice.language, best, run)} against {run}" for run in choice.worse]
        even = f", no different from {listed(list(choice.even))}" if choice.even else ""
        parts.append(f"{_name(choice.language)} ({', '.join(against)}{even})")
    return (
        f"For queries in {listed(parts)}, use {compared.candidate(best).label}: "
        f"{column.measure} is significantly better there."
    )


def _undecided(compared: Comparison, column: Column, choices: Sequence[Choice]) -> str:
    letters = [candidate.letter for candidate in compared.candidates]
    shown = []
    for choice in choices:
        told = f"highest with {choice.best}" if sign(column) > 0 else f"lowest with {choice.best}"
        if len(letters) == 2:
            told = f"{letters[1]} {_change(compared, column, choice.language, letters[1], letters[0])}"
        shown.append(f"{_name(choice.language)} ({told})")
    return (
        f"For queries in {listed(shown)}, {column.measure} does not tell {listed(letters)} apart: "
        f"chance alone gives differences as large (corrected p at least {LEVEL:.2f})."
    )


def _elsewhere(compared: Comparison, primary: Column, choices: Sequence[Choice]) -> list[str]:
    """Every other measure and part in which a run that may be used is behind another.

    Significant losses of any such run are told; those that chance may have given, for a recommended one only.
    """
    told = []
    for column in compared.columns:
        if column == primary or not sign(column):
            continue
        losses: dict[tuple[str, str, bool], list[str]] = {}
        for choice in choices:
            for used, other, loss in _losses(compared, column, choice):
                if loss.significant or (used == choice.best and other in choice.worse):
                    shown = f"{_name(choice.language)} ({signed(loss.difference)})"
                    losses.setdefault((used, other, loss.significant), []).append(shown)
        told += [_behind(column, *key, languages) for key, languages in losses.items()]
    return told


def _losses(compared: Comparison, column: Column, choice: Choice) -> Iterator[tuple[str, str, Tested]]:
    """Yield a run that may be used, one that it is behind, and by how much, where that shows."""
    for used in [choice.best, *choice.even]:
        for other in (run.letter for run in compared.candidates if run.letter != used):
            found = _difference(compared, column, choice.language, used, other)
            if found is not None and sign(column) * found.difference < 0 and signed(found.difference) != "=":
                yield used, other, found


def _behind(column: Column, used: str, other: str, significant: bool, languages: list[str]) -> str:
    where = f"{column.measure}{_part(column)}"
    if significant:
        return f"But {where} is significantly worse with {used} than with {other} for queries in {listed(languages)}."
    return (
        f"{where} is worse, too, with {used} than with {other} for queries in {listed(languages)}, "
        "though chance may have given that much."
    )


def _difference(compared: Comparison, column: Column, language: str, used: str, other: str) -> Tested | None:
    """The test of ``used`` against ``other``, its difference being that of ``used`` less that of ``other``."""
    found = compared.tested(column, _pair(used, other), language)
    if found is None or used > other:
        return found
    return found._replace(difference=-found.difference)


def _change(compared: Comparison, column: Column, language: str, used: str, other: str) -> str:
    found = _difference(compared, column, language, used, other)
    return signed(None if found is None else found.difference)


def _part(column: Column) -> str:
    """Says which documents count, where the measure's name does not."""
    if column.section == "all" or parse_measure(column.measure).family.name in ("SLR", "TLR"):
        return ""
    return f" over {'same-language' if column.section == SAME else 'cross-language'} documents"


def _name(language: str) -> str:
    return "an unknown language" if language == UNDETERMINED else language

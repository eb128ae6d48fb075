"""What the report says first: in plain words, what changed, who gains and who loses."""

from __future__ import annotations

from collections.abc import Sequence

from langshift.evaluate.compare.comparing import Comparison, sign
from langshift.evaluate.compare.sections import SAME, Column
from langshift.evaluate.compare.significance import Tested
from langshift.shown import figure, listed, signed


def summary(compared: Comparison) -> list[str]:
    """A paragraph for each later run against the first, or one for a single run."""
    column = compared.primary or next(iter(compared.columns), None)
    if column is None:
        return []
    first, *later = compared.candidates
    count = f"{len(compared.dataset.queries):,} queries"
    if not later:
        return [f"{first.label} over {count}: {column.measure} {figure(compared.mean(first.letter, column))}."]
    return [
        " ".join(
            [
                _overall(compared, column, run.letter, count),
                *_who(compared, column, run.letter),
                *_own(compared, run.letter),
            ]
        )
        for run in later
    ]


def _overall(compared: Comparison, column: Column, letter: str, count: str) -> str:
    first = compared.candidates[0]
    before, after = compared.mean(first.letter, column), compared.mean(letter, column)
    change = None if before is None or after is None else after - before
    tested = compared.tested(column, (first.letter, letter))
    return (
        f"Over {count}, {column.measure} goes from {figure(before)} with {first.label} to {figure(after)} with "
        f"{compared.candidate(letter).label} ({signed(change)}, {_judged(tested)})."
    )


def _who(compared: Comparison, column: Column, letter: str) -> list[str]:
    """Which query languages gain and which lose, as far as the tests tell."""
    better = sign(column)
    if not better or len(compared.asked) < 2:
        return []
    found: dict[str, list[str]] = {"gains": [], "loses": []}
    for language in compared.asked:
        tested = compared.tested(column, (compared.candidates[0].letter, letter), language)
        if tested is not None and tested.significant:
            found["gains" if tested.difference * better > 0 else "loses"].append(language)
    gaining, losing = found["gains"], found["loses"]
    if not gaining and not losing:
        return ["For no query language is the change more than chance could have done."]
    parts = [
        f"{_those(gaining)} {'gain' if len(gaining) > 1 else 'gains'}"
        if gaining
        else "no query language gains significantly"
    ]
    parts.append(f"{_those(losing)} {'lose' if len(losing) > 1 else 'loses'}" if losing else "none loses significantly")
    return [f"{parts[0][0].upper()}{parts[0][1:]}; {parts[1]}."]


def _those(languages: Sequence[str]) -> str:
    return f"the query language{'s' if len(languages) > 1 else ''} {listed(list(languages))}"


def _own(compared: Comparison, letter: str) -> list[str]:
    """What becomes of answers in the searcher's own language: what a shift may cost."""
    column = next((found for found in compared.columns if found.section == SAME and sign(found)), None)
    column = next((found for found in compared.columns if found.measure.startswith("SLR@")), column)
    if column is None:
        return []
    first = compared.candidates[0].letter
    before, after = compared.mean(first, column), compared.mean(letter, column)
    if before is None or after is None:
        return []
    tested = compared.tested(column, (first, letter))
    return [
        f"Answers in the searcher's own language: {column.measure} {figure(before)} → {figure(after)} "
        f"({signed(after - before)}, {_judged(tested)})."
    ]


def _judged(tested: Tested | None) -> str:
    if tested is None:
        return "not tested"
    return "significant" if tested.significant else "not significant"

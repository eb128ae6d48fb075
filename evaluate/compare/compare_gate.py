"""Conditions under which a comparison fails, such as ``SLR@20 < -0.01``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.measures import parse_measure
from langshift.shown import figure, signed

ANY = "any"
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FORM = re.compile(
    r"\s*(?:(?P<kind>change|value)\s+)?(?P<measure>[^\s<>()]+(?:\([^()]*\)[^\s<>()]*)?)"
    r"(?:\s+in\s+(?P<language>[A-Za-z]+))?\s*(?P<operator><=|>=|<|>)\s*(?P<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
)
_HOW = (
    "write 'SLR@20 < -0.01' for the change from the first run (or the baseline) to the last, 'value nDCG@20 < 0.7' for "
    "the last run's figure itself, and 'SLR@20 in de < -0.01' or 'in any' for the queries of one language or of any"
)
Figures = Callable[[str, str | None], float | None]
"""A run's figure of a measure, over the queries of a language, or over all where that is None."""


@dataclass(frozen=True)
class Condition:
    """When to fail.

    Attributes:
        text: as it was written.
        change: whether the change counts, and not the figure itself.
        measure: the measure's name.
        language: a query language, ``any`` for each of them, None for all queries together.
        operator: ``<``, ``<=``, ``>`` or ``>=``.
        limit: what is compared with.
    """

    text: str
    change: bool
    measure: str
    language: str | None
    operator: str
    limit: float


@dataclass(frozen=True)
class Verdict:
    """What became of a condition.

    Attributes:
        condition: the condition.
        failed: whether it holds, and the comparison fails by it.
        says: the figures, in a sentence.
    """

    condition: Condition
    failed: bool
    says: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it."""
        return {"condition": self.condition.text, "failed": self.failed, "says": self.says}


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        UsageError: it is none, or its measure is unknown.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--fail-if {text!r} cannot be read: {_HOW}.")
    return Condition(
        text=" ".join(text.split()),
        change=match["kind"] != "value",
        measure=parse_measure(match["measure"]).name,
        language=match["language"],
        operator=match["operator"],
        limit=float(match["limit"]),
    )


def judge(condition: Condition, languages: Sequence[str], after: Figures, before: Figures | None) -> Verdict:
    """Say whether a comparison fails by a condition; a figure that is missing fails, too.

    Args:
        condition: the condition.
        languages: the query languages that there are.
        after: the last run's figures.
        before: those of the first run or the baseline; None where there is neither.

    Raises:
        UsageError: it names a language in which nothing is asked, or a change with nothing to change from.
    """
    if condition.language not in (None, ANY, *languages):
        raise UsageError(
            f"--fail-if {condition.text!r}: there are no queries in {condition.language!r}; "
            f"there are some in {', '.join(languages)}."
        )
    if condition.change and before is None:
        raise UsageError(
            f"--fail-if {condition.text!r} is about a change, but there is one run only: give two, or --baseline FILE, "
            f"or write 'value {condition.measure} {condition.operator} {condition.limit:g}' for the figure itself."
        )
    places = list(languages) if condition.language == ANY else [condition.language]
    checked = [_check(condition, language, after, before) for language in places]
    held = [says for failed, says in checked if failed]
    if held:
        return Verdict(condition, True, "; ".join(held) + f": fails by '{condition.text}'.")
    return Verdict(condition, False, "; ".join(says for _, says in checked) + ".")


def _check(condition: Condition, language: str | None, after: Figures, before: Figures | None) -> tuple[bool, str]:
    where = f"{condition.measure}{f' for queries in {language}' if language else ''}"
    new = after(condition.measure, language)
    old = before(condition.measure, language) if condition.change and before is not None else None
    if new is None or (condition.change and old is None):
        return True, f"{where} has no figure {'before' if new is not None else 'in the last run'}"
    if old is None:
        return _OPERATORS[condition.operator](new, condition.limit), f"{where} is {figure(new)}"
    change = new - old
    says = f"{where} changes by {signed(change)} from {figure(old)} to {figure(new)}"
    return _OPERATORS[condition.operator](change, condition.limit), says

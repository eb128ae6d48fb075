"""Figures of an audit in words."""

from __future__ import annotations

from langshift.evaluate.audit.judged import Gap
from langshift.evaluate.audit.offsets import Fit, Interval

#: Where less of what a shift takes is there, the means lie further apart after it.
HALF = 0.5
# Smaller cosines are shown as 0.
_SEEN = 0.0005


def short(figure: float, digits: int = 2) -> str:
    """``.86``, ``-.12``, ``1.00``."""
    rounded = f"{figure:.{digits}f}"
    if not float(rounded):
        rounded = rounded.lstrip("-")
    return rounded.replace("0.", ".", 1) if abs(figure) < 1 else rounded


def gap_in_words(gap: Gap, reference: str) -> str:
    """As ``lie .120 (.100 to .140) further from queries in en than those in en; the shift takes .090 of that away``."""
    before, after = gap.before, gap.after
    sign, then = _sign(before), _sign(after)
    if not sign:
        lie = f"lie about as near to queries in {reference} as those in {reference}"
        if not then:
            return f"{lie}, before and after the shift"
        return f"{lie}; after the shift they lie {fine(abs(after.value))} {_further(then)} them"
    lie = f"lie {_with_bounds(before, sign)} {_further(sign)} queries in {reference} than those in {reference}"
    change = _sign(gap.change)
    if not change:
        return f"{lie}; the shift changes nothing of that which the sample would show"
    if change != sign:
        return f"{lie}; the shift makes that {fine(abs(gap.change.value))} more"
    if then == -sign:
        return (
            f"{lie}; the shift takes more than that away: then they lie {fine(abs(after.value))} {_further(then)} them"
        )
    return f"{lie}; the shift takes {_with_bounds(gap.change, sign)} of that away"


def _sign(found: Interval) -> int:
    """1 or -1 where all of the interval lies there, far enough to be seen, else 0."""
    return 1 if found.low >= _SEEN else -1 if found.high <= -_SEEN else 0


def _further(sign: int) -> str:
    return "further from" if sign > 0 else "nearer to"


def _with_bounds(found: Interval, sign: int) -> str:
    low, high = sorted((sign * found.low, sign * found.high))
    return f"{fine(sign * found.value)} ({fine(low)} to {fine(high)})"


def fine(cosine: float) -> str:
    """A cosine to three digits: ``.024``."""
    return short(cosine, 3)


def misfit_in_words(language: str, reference: str, fit: Fit) -> str:
    """That too little of what a shift takes from documents of a language is there, or perhaps."""
    there = f"{short(fit.there.value)} ({short(fit.there.low)} to {short(fit.there.high)})"
    if fit.there.high < HALF:
        return (
            f"The vector of {language} does not fit: of what the shift takes away {there} is there, less than half, so "
            f"documents in {language} and {reference} lie further apart on average after it."
        )
    return (
        f"Whether the vector of {language} fits is not sure: of what the shift takes away {there} is there, and it "
        "takes more than half to be of use."
    )

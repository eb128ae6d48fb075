"""What a person asks for, as a setting; what does not belong together is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from langshift.errors import UsageError
from langshift.retrieval.wanted import FUSIONS, MODES, USUAL, Fusion, Mode, Setting

# Two cosines differ by no more than this.
MOST_PREFERENCE = 2.0

Spelling = Callable[..., str]
"""How an argument is written where it was given, alone or with a value."""


def in_python(name: str, value: object = None) -> str:
    """``fusion``, ``mode='hybrid'``."""
    return name if value is None else f"{name}={value!r}"


def in_command(name: str, value: object = None) -> str:
    """``--fusion``, ``--mode hybrid``."""
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"


def setting_of(
    mode: Mode = USUAL.mode,
    prefer_language: float | None = None,
    spread: float | None = None,
    fusion: Fusion | None = None,
    lexical_weight: float | None = None,
    one_per_group: bool = False,
    spelt: Spelling = in_python,
) -> Setting:
    """A setting; None is what is usual.

    Args:
        mode: one of ``MODES``.
        prefer_language: beta, in units of cosine, 0 to 2: what a document in the searcher's language is given more.
        spread: beta of the opposite: what a document in another language is given more.
        fusion: how ``hybrid`` puts its legs together.
        lexical_weight: the share of the words in ``hybrid``, 0 to 1.
        one_per_group: whether of a translation group one document is shown.
        spelt: how the sentences of a refusal name an argument.

    Raises:
        UsageError: there is no such mode or fusion, a number is none or out of range, or two things exclude each other.
    """
    _require_one_of("search mode", mode, MODES)
    beta = _number(prefer_language, "prefer_language", MOST_PREFERENCE, spelt)
    away = _number(spread, "spread", MOST_PREFERENCE, spelt)
    weight = _number(lexical_weight, "lexical_weight", 1.0, spelt)
    if beta is not None and away is not None:
        raise UsageError(f"{spelt('prefer_language')} and {spelt('spread')} exclude each other: give one of them.")
    for name, value in (("fusion", fusion), ("lexical_weight", weight)):
        if value is not None and mode != "hybrid":
            raise UsageError(f"{spelt(name)} needs {spelt('mode', 'hybrid')}.")
    if fusion is not None:
        _require_one_of("fusion", fusion, FUSIONS)
    return Setting(
        mode=mode,
        preference=(beta or 0.0) - (away or 0.0),
        fusion=fusion or USUAL.fusion,
        lexical_weight=USUAL.lexical_weight if weight is None else weight,
        one_per_group=one_per_group,
    )


def _require_one_of(kind: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UsageError(f"There is no {kind} {given!r}; there are: {', '.join(known)}.")


def _number(given: Any, name: str, most: float, spelt: Spelling) -> float | None:  # noqa: ANN401 - what a user gave
    if given is None:
        return None
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= most:
        raise UsageError(f"{spelt(name)} is {given!r}, but it must be a number from 0 to {most:g}.")
    return number

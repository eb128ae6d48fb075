"""A measure: what it is, which way is good, where it comes from, and how its name is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from langshift.errors import UsageError
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Scores

Direction = Literal["high", "low", "report"]
"""Which way is good; ``report`` where that depends on what the searcher wants."""


@dataclass(frozen=True)
class Option:
    """A setting that a measure's name may give, as in ``Lang_nDCG(same=2)@20``.

    Attributes:
        default: its value where the name does not give it.
        says: which values fit, in words.
        fits: whether a value does.
    """

    default: Any
    says: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Family:
    """A measure less its cutoff and options.

    Attributes:
        name: the name before the ``@``.
        says: what it is, in a line.
        direction: which way is good.
        source: where it is defined.
        compute: gives the figures; its docstring is the definition.
        written: how the name is written, with ``k`` for a rank.
        options: what the name may set.
        across: whether it compares languages by judgement, which data that is judged per language cannot.
    """

    name: str
    says: str
    direction: Direction
    source: str
    compute: Callable[[Measure, Ranked], Scores]
    written: str
    options: Mapping[str, Option] = field(default_factory=dict)
    across: bool = False

    def check(self, measure: Measure) -> None:
        """Refuse a cutoff or options that the family does not take.

        Raises:
            UsageError: the name is written wrongly.
        """
        if self.written.endswith("@k") is not isinstance(measure.cutoff, int):
            raise UsageError(f"{measure.name!r} is not how {self.name} is written: write {self.written_out}.")
        for key, value in measure.options.items():
            if key not in self.options:
                takes = f"its options are {' and '.join(self.options)}" if self.options else "it has none"
                raise UsageError(f"{measure.name!r} sets {key!r}, which is no option of {self.name}: {takes}.")
            if not self.options[key].fits(value):
                raise UsageError(f"{measure.name!r} sets {key} to {value!r}: give {self.options[key].says}.")

    @property
    def written_out(self) -> str:
        """How the name is written, with what ``k`` is."""
        return f"{self.written}, with k a rank such as 20" if self.written.endswith("@k") else self.written


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff and options, such as ``TLR@20``.

    Attributes:
        family: what it is.
        cutoff: what follows the ``@``; a rank, but for the few of ir_measures that take a share; None
            where nothing does.
        options: what stands in brackets.
        name: the name as it was written, without white space.
    """

    family: Family
    cutoff: int | float | None
    options: Mapping[str, Any]
    name: str

    @property
    def depth(self) -> int:
        """The cutoff as a rank."""
        if not isinstance(self.cutoff, int):
            raise TypeError(f"{self.name} has no rank for a cutoff")
        return self.cutoff

    def option(self, key: str) -> Any:  # noqa: ANN401 - whatever type the option has
        """The value of an option, its default where the name does not give it."""
        return self.options.get(key, self.family.options[key].default)

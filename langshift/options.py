"""Options that commands of several rooms share."""

from __future__ import annotations

import math
from typing import Any

import click

JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")


class FiniteRange(click.FloatRange):
    """A number in a range; neither ``nan`` nor ``inf`` is one, which click alone lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        """The number, refused where it is outside of the range, infinite or not a number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Share(FiniteRange):
    """A number from 0 to 1."""

    def __init__(self) -> None:
        super().__init__(0, 1)


def parse_list(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    given: str | None,
    example: str = "ar,de,en",
) -> list[str] | None:
    """``"ar, de,en"`` as ``["ar", "de", "en"]``; None where the option was not given."""
    if given is None:
        return None
    items = list(dict.fromkeys(item.strip() for item in given.split(",") if item.strip()))
    if not items:
        raise click.BadParameter(f"names nothing: give some, parted by commas, such as {example}.")
    return items

"""Options that commands of several rooms share."""

from __future__ import annotations

import click

JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")


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

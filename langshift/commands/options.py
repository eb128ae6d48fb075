"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from langshift.output import note
from langshift.parameters import Decorator, FiniteRange, option_group

if TYPE_CHECKING:
    from langshift.retrieval.searcher import SearchOptions

PATH = click.Path(path_type=Path)
_PATHS = ("FILE", "FOLDER", "PATH")


def option(spec: str, help_: str, type_: Any = None, *, dest: str = "", **more: Any) -> Decorator:  # noqa: ANN401 - click's
    """Return an option as ``click.option`` makes it; a default is shown in its help.

    Args:
        spec: such as ``--index NAME``; what stands for the value in the help is left out where the type says it. What
            is a FILE, FOLDER or PATH there is a path.
        help_: what the help says of it.
        type_: what its value is; None for text.
        dest: the name of the command's argument; empty takes it from ``spec``.
        more: for ``click.option``.
    """
    name, _, metavar = spec.partition(" ")
    names = (name, dest) if dest else (name,)
    type_ = PATH if metavar in _PATHS else type_
    return click.option(*names, metavar=metavar or None, help=help_, type=type_, show_default="default" in more, **more)


def flag(name: str, help_: str, *, dest: str = "") -> Decorator:
    """Return an option without a value."""
    return option(name, help_, dest=dest, is_flag=True)


JSON = flag("--json", "Print one JSON document instead of tables.", dest="as_json")
ENCODER = option("--encoder NAME", "The encoder: use-m, st:NAME_OR_PATH, http:URL or given.", default="use-m")
REMOTE_CODE = flag("--trust-remote-code", "Run code that comes with a model (st: alone); only if you trust it.")
PATIENCE = option(
    "--patience SECONDS", "How long to wait for a cluster that takes nothing.", FiniteRange(min=0), default=300
)

_INDEX_ENCODER = option(
    "--encoder NAME", "Where the index's encoder is now, if its model or server has moved. [default: the index's own]"
)
_SHIFT_QUERIES = option(
    "--shift-queries",
    "Whether queries are shifted as the documents are, those in the pivot language excepted; auto does what "
    "the index's language vectors recommend from measurement.",
    click.Choice(["auto", "always", "never"]),
    default="auto",
)


def _make_search_options(**values: Any) -> SearchOptions:  # noqa: ANN401 - what click has checked
    # Half of the commands search nothing: they start without NumPy.
    from langshift.retrieval.searcher import SearchOptions

    return SearchOptions(**values)


#: The options of a command that needs the encoder of an index; it is given them as ``search``.
index_encoder_options = option_group("search", _make_search_options, _INDEX_ENCODER, REMOTE_CODE)
#: The options of a command that searches an index by vectors; it is given them as ``search``.
search_options = option_group("search", _make_search_options, _SHIFT_QUERIES, _INDEX_ENCODER, REMOTE_CODE)


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


def warn(warnings: Iterable[str]) -> None:
    """Tell the person of each, on standard error."""
    for warning in warnings:
        note(f"Warning: {warning}")

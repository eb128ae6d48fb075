"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from langshift.parameters import FiniteRange, Share

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KINDS = "use-m, st:NAME_OR_PATH, http:URL or given"

REMOTE_CODE = click.option(
    "--trust-remote-code", is_flag=True, help="Run code that comes with a model (st: alone); only if you trust it."
)
SHIFT_QUERIES = click.option(
    "--shift-queries",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Whether queries are shifted as the documents are, those in the pivot language excepted; auto does what "
    "the index's language vectors recommend from measurement.",
)
LANGUAGE_VECTORS = click.option(
    "--vectors", type=click.Path(path_type=Path), metavar="FILE", help="Language vectors. [default: shipped]"
)
ALPHA = click.option(
    "--alpha",
    type=Share(),
    metavar="A",
    help="Scale of the shift, 0 (none) to 1, in all languages. [default: what the vectors recommend, else 1]",
)
LID_MODEL = click.option(
    "--lid-model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A fastText model that detects languages. [default: the bundled lid.176.ftz]",
)
LEAST_CONFIDENCE = click.option(
    "--min-confidence",
    type=Share(),
    default=0.5,
    show_default=True,
    metavar="P",
    help="A detection below this makes a document `und`, which is not shifted.",
)
PATIENCE = click.option(
    "--patience",
    type=FiniteRange(min=0),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a cluster that takes nothing.",
)


def encoder_options(command: _Command) -> _Command:
    """The options of a command that makes vectors."""
    encoder = click.option(
        "--encoder", default="use-m", show_default=True, metavar="NAME", help=f"The encoder: {_KINDS}."
    )
    return encoder(REMOTE_CODE(command))


def index_encoder_options(command: _Command) -> _Command:
    """The options of a command that searches an index, whose encoder is known."""
    encoder = click.option(
        "--encoder",
        metavar="NAME",
        help="Where the index's encoder is now, if its model or server has moved. [default: the index's own]",
    )
    return encoder(REMOTE_CODE(command))


def pairs_encoder_options(command: _Command) -> _Command:
    """The options of a command that encodes parallel text for language vectors that are there."""
    encoder = click.option(
        "--encoder", metavar="NAME", help="What encodes --pairs. [default: the encoder that FILE names]"
    )
    return encoder(REMOTE_CODE(command))


def passage_options(command: _Command) -> _Command:
    """The options that join rows of parallel text to passages."""
    join = click.option(
        "--join-lines",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        metavar="N",
        help="Join N consecutive rows to one passage: best as long as the texts of the index.",
    )
    documents = click.option(
        "--documents",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A document id for each row: joined passages never cross documents.",
    )
    return join(documents(command))


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

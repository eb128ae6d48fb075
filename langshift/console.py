"""What a person sees: tables on standard output, progress and notes on standard error."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

_USUAL_WIDTH = 80


def emit_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Write one JSON document, and nothing else, to standard output."""
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    # Whatever the terminal's encoding is, JSON is UTF-8.
    click.echo(text.encode() + b"\n", nl=False)


def note(message: str) -> None:
    """Tell the person something on standard error, as it is: no markup is read from it."""
    err.print(Text(message), soft_wrap=True)


def table(
    title: str | None,
    columns: list[str],
    rows: list[list[str]],
    *,
    right: set[str] | None = None,
    whole: set[str] | None = None,
) -> None:
    """Print a table; columns in ``right`` are aligned to the right, those in ``whole`` are the last to be broken."""
    view = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in columns:
        # On less than that, the others would be left with nothing.
        kept = name in (whole or set()) and out.width >= _USUAL_WIDTH
        view.add_column(
            Text(name),
            justify="right" if name in (right or set()) else "left",
            overflow="ellipsis" if kept else "fold",
            no_wrap=kept,
        )
    for row in rows:
        view.add_row(*(Text(printable(cell)) for cell in row))
    out.print(view)


def printable(text: str) -> str:
    """Without line breaks, and without what a terminal would take for a command."""
    return "".join(character if character.isprintable() else " " for character in text)


def escaped(text: str) -> str:
    """With escapes such as ``\\x1b`` for what a terminal would not show, or would take for a command."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def counted(number: int, noun: str) -> str:
    """``1 document``, ``1,200 documents``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def program() -> str:
    """How the person can call langshift again from here: by name where that finds it, else by path."""
    called = Path(sys.argv[0])
    found = shutil.which("langshift")
    if called.name != "langshift" or (found and Path(found).samefile(called)):
        return "langshift"
    return shlex.quote(os.path.relpath(called))


def progress() -> Progress:
    """A progress display on standard error; silent where that is not a terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )

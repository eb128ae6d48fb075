"""What a person sees in the terminal: tables, notes and figures."""

import json
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import click
import orjson
from rich import progress as bars
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from langshift.progress_display import ProgressDisplay
from langshift.reporting import Reporter
from langshift.wording import UNSAFE, escape, escaped, printable

_UNSAFE_IN_LINES = re.compile(rf"(?![\t\n]){UNSAFE.pattern}")


class Terminal(Console):
    """A console on which data can neither command the terminal nor style itself; only our own styles do."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render as rich does, with escapes for what a terminal would take for a command."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else _UNSAFE_IN_LINES.sub(escape, text), style, control)


out = Terminal()
err = Terminal(stderr=True)


def emit_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Write one JSON document, and nothing else, to standard output."""
    try:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        # The name of a file need not be UTF-8: this writes halves of characters, as Python reads it, with escapes.
        text = json.dumps(document, indent=2)
    write_json(text)


def emit(document: Any, text: str, *, as_json: bool) -> None:  # noqa: ANN401 - any JSON value
    """Print JSON to standard output, or else each line of a text."""
    if as_json:
        emit_json(document)
        return
    for one in text.split("\n"):
        line(one)


def write_json(text: str) -> None:
    """Write what holds JSON to standard output as it is, but for escapes of what a terminal would take for a command.

    Args:
        text: where such characters stand in strings of JSON alone, which read the same with the escapes.
    """
    shown = _UNSAFE_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    # Whatever the terminal's encoding is, JSON is UTF-8.
    click.echo(f"{shown}\n".encode(), nl=False)


def note(message: str) -> None:
    """Tell the person something on standard error, on one line and as it is: no markup is read from it."""
    err.print(Text(escaped(message)), soft_wrap=True)


class TerminalReporter(Reporter):
    """Shows on standard error what the rooms below the commands tell."""

    def note(self, sentence: str) -> None:
        """As ``note`` does."""
        note(sentence)

    def wait(self, sentence: str) -> AbstractContextManager[object]:
        """A spinner beside the sentence; the sentence alone where nobody looks on."""
        return err.status(sentence) if err.is_terminal else super().wait(sentence)

    @contextmanager
    def download(self, name: str, size: int) -> Iterator[Callable[[int], None]]:
        """A bar with the bytes and their speed, or lines; see ``progress``."""
        columns = (bars.BarColumn(), bars.DownloadColumn(), bars.TransferSpeedColumn())
        with progress(*columns, unit="bytes") as shown:
            task = shown.add_task(name, total=size)
            yield lambda count: shown.advance(task, count)


def warn(warnings: Iterable[str]) -> None:
    """Tell the person of each, on standard error."""
    for warning in warnings:
        note(f"Warning: {warning}")


_GAP = 2
_BAR = "█"
_NARROWEST = 12


def table(
    title: str | None,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    right: Container[str] = (),
    prose: Container[str] = (),
) -> None:
    """Print a table as wide as the terminal, in which no figure, name or bar is broken.

    Where it is too narrow, prose is broken into lines, bars are drawn to a smaller scale, names and heads are
    shortened, then the last columns are left out; a line says so. Where there is no terminal, the table is whole.

    Args:
        title: stands above; None for none.
        columns: the heads.
        rows: as many texts as there are columns; with a style of their own, as ``printable`` makes them.
        right: columns of figures, aligned to the right; never shortened unless they are prose, too.
        prose: columns of sentences and lists, which may be broken between words.
    """
    made = [
        _Column(printable(head), [_cell(row[place]) for row in rows], head in right, head in prose)
        for place, head in enumerate(columns)
    ]
    widths = _fitting(made)
    shown = list(zip(made, widths, strict=False))
    view = Table(box=None, pad_edge=False, header_style="bold")
    for column, width in shown:
        justify: JustifyMethod = "right" if column.right else "left"
        overflow: OverflowMethod = "fold" if column.prose else "ellipsis"
        view.add_column(Text(column.head), justify=justify, width=width, no_wrap=not column.prose, overflow=overflow)
    for row in zip(*(column.drawn(width) for column, width in shown), strict=True):
        view.add_row(*row)
    if title is not None:
        out.print(Text(_below_gap(title), style="table.title"), soft_wrap=True)
    needed = sum(widths) + _GAP * len(widths)
    for segments in out.render_lines(view, out.options.update_width(max(needed, out.width))):
        # rich fills every line up with spaces.
        text = Text.assemble(*((part, style or "") for part, style, _ in segments))
        text.rstrip()
        out.print(text, soft_wrap=True)
    named = [column.head or f"column {number}" for number, column in enumerate(made, 1)]
    hidden = [f"shortened: {name}" for name, (column, width) in zip(named, shown, strict=False) if column.cut(width)]
    hidden += [f"left out: {name}" for name in named[len(shown) :]]
    if hidden:
        line(f"({', '.join(hidden)}; a wider terminal, COLUMNS=200 or --json shows all)")


def room() -> int:
    """How many cells wide tables may be: as COLUMNS says, else as the terminal is; without one there is no limit."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    return out.width if out.file.isatty() else sys.maxsize


def _cell(given: str | Text) -> Text:
    return given if isinstance(given, Text) else Text(printable(given))


class _Column(NamedTuple):
    """A column of a table, and what becomes of it in so many cells of a terminal."""

    head: str
    cells: Sequence[Text]
    right: bool
    prose: bool

    @property
    def bars(self) -> bool:
        return any(self.cells) and all(set(cell.plain) <= {_BAR} for cell in self.cells)

    @property
    def longest(self) -> int:
        return max((cell.cell_len for cell in self.cells), default=0)

    @property
    def natural(self) -> int:
        return max(cell_len(self.head), self.longest)

    @property
    def least(self) -> int:
        """Below this it would not be understood."""
        shortest = min(self.natural, _NARROWEST)
        return max(shortest, self.longest) if self.right and not self.prose else shortest

    def cut(self, width: int) -> bool:
        """Whether there is less to read than without the limit."""
        return width < (cell_len(self.head) if self.bars else self.natural) and not self.prose

    def drawn(self, width: int) -> Sequence[Text]:
        """The cells, with bars to a scale that has room."""
        if not self.bars or self.longest <= width:
            return self.cells
        return [cell and Text(_BAR * max(1, round(len(cell) * width / self.longest))) for cell in self.cells]


def _fitting(columns: Sequence[_Column]) -> list[int]:
    """The widths of the columns that there is room for: each gets its least, and what is left is parted evenly."""
    widths = [column.least for column in columns]
    while len(widths) > 1 and sum(widths) + _GAP * (len(widths) - 1) > room():
        widths.pop()
    natural = [column.natural for column in columns]
    left = max(room() - sum(widths) - _GAP * (len(widths) - 1), 0)
    growing = sorted((place for place, width in enumerate(widths) if width < natural[place]), key=natural.__getitem__)
    for number, place in enumerate(growing):
        more = min(natural[place] - widths[place], left // (len(growing) - number))
        widths[place] += more
        left -= more
    return widths


def progress(*columns: bars.ProgressColumn, unit: str = "") -> ProgressDisplay:
    """A progress display on standard error; where that is not a terminal, a line every ten seconds.

    Args:
        columns: what follows the description; a bar, the count, the time and the task's ``rate`` where none are given.
        unit: what lines call what is counted; empty where the description says it.
    """
    rate = _DataColumn("{task.fields[rate]}")
    usual = (bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeElapsedColumn(), rate)
    shown = (bars.SpinnerColumn(), _DataColumn("{task.description}"), *(columns or usual))
    return ProgressDisplay(*shown, console=err, unit=unit)


class _DataColumn(bars.TextColumn):
    """Shows data as it is, on one line."""

    def render(self, task: bars.Task) -> Text:
        """Escaped before its width is measured."""
        return Text(escaped(self.text_format.format(task=task)), style=self.style, justify=self.justify)


def heading(text: str) -> None:
    """Print a line above a table; line breaks before it are a gap."""
    out.print(Text(_below_gap(text), style="bold"), soft_wrap=True)


def line(text: str) -> None:
    """Print a line as it is: no markup is read from it; line breaks before it are a gap."""
    out.print(Text(_below_gap(text)), soft_wrap=True)


def _below_gap(text: str) -> str:
    shown = text.lstrip("\n")
    return text[: len(text) - len(shown)] + escaped(shown)

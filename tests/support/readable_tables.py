"""Whether a table can be read on a usual terminal: nothing is broken, and what is hidden is said and can be had."""

import re
from importlib import import_module

import pytest
from rich.cells import cell_len

from langshift import output
from langshift.cli import COMMANDS
from langshift.wording import printable

COLUMNS = 80
# A name that is shortened keeps this much of its beginning, at least.
BEGINNING = 10
#: What a cell with a figure holds: ``1,200``, ``.412 → .416  +.004``, ``-.1235 to 0``, ``97.1%``, ``<.0001``, ``-``.
FIGURE = re.compile(r"(?:[-–+\d.,%→<*()\s]|\bto\b)*")


def printed(table, *given, width, **how):
    """The lines of a table on so many columns; where nobody says how many, None."""
    with pytest.MonkeyPatch.context() as patch, output.out.capture() as captured:
        patch.setenv("COLUMNS", str(width or ""))
        table(*given, **how)
    return captured.get().splitlines()


def require_readable(table, title, columns, rows, *, right=(), prose=()):
    """Fail where a figure, a bar or the beginning of a name is cut or wrapped, or where something is hidden unsaid."""
    rows = [list(map(str, row)) for row in rows]
    lines = printed(table, title, columns, rows, right=right, prose=prose, width=COLUMNS)
    said = lines.pop() if lines[-1].endswith(" shows all)") else ""
    text = "\n".join(lines)
    assert max(map(cell_len, lines)) <= COLUMNS, text
    assert lines == [line.rstrip() for line in lines]
    assert title is None or text.startswith(title)
    # The title, the heads, and a line for each row.
    count = (0 if title is None else len(title.split("\n"))) + 1 + len(rows)
    assert prose or len(lines) == count, text
    figures_shown = []
    for number, (head, *cells) in enumerate(zip(columns, *rows, strict=True), 1):
        named = head or f"column {number}"
        filled = [cell.strip() for cell in cells if cell.strip()]
        figures = all(map(FIGURE.fullmatch, filled)) and any(set("%.,→+") & set(cell) for cell in filled)
        bars = [cell for cell in filled if set(cell) == {"█"}]
        assert not figures or head in right, f"{head} holds figures: {cells}"
        left_out = re.search(rf"left out: {re.escape(named)}[,;]", said)
        figures_shown += [not left_out] if head in right else []
        if left_out:
            assert not bars
            continue
        if bars:
            shown = re.findall("█+", text)
            assert len(shown) == len(bars)
            assert "█…" not in text
            assert [len(one) for one in shown] == pytest.approx(
                [len(one) * len(max(shown)) / len(max(bars)) for one in bars], abs=1
            )
        elif head not in prose:
            for cell in filled:
                whole = re.search(rf"(?<!\S){re.escape(cell)}(?!\S)", text)
                # Of a wide letter there is no half: a space is in its place.
                cut = head not in right and any(
                    re.search(rf"(?<!\S){re.escape(cell[:end])} ?…", text)
                    for end in range(len(cell))
                    if cell_len(cell[:end]) >= BEGINNING
                )
                assert whole or (cut and f"shortened: {named}" in said), f"{cell} in {text}\n{said}"
        if head not in prose and not re.search(rf"(?<!\S){re.escape(head)}(?!\S)", text):
            assert f"shortened: {named}" in said
    assert any(figures_shown) or not figures_shown, text
    whole = printed(table, title, columns, rows, right=right, prose=prose, width=None)
    assert len(whole) == count
    for cells, line in zip([columns, *rows], whole[-1 - len(rows) :], strict=True):
        assert all(printable(cell).strip() in line for cell in cells)


def look_at_tables(monkeypatch):
    """Look at each table that a command prints from now on, as narrow as a usual terminal and whole.

    Returns:
        A list to which the heads of each table are added.
    """
    seen, real = [], output.table

    def checked(title, columns, rows, **how):
        seen.append(list(columns))
        require_readable(real, title, columns, rows, **how)
        real(title, columns, rows, **how)

    for name, _ in COMMANDS.values():
        module = import_module(f"langshift.commands.{name}")
        if vars(module).get("table") is real:
            monkeypatch.setattr(module, "table", checked)
    return seen

"""Tables in the terminal: however narrow it is, no figure and no bar is broken, and what is hidden is said."""

import io
import re
import sys

import pytest
from check_names import ROOMS
from documents import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from langshift import output

FIGURES = st.one_of(st.integers(0, 99_999).map("{:,}".format), st.floats(-1, 1).map("{:+.4f}".format), st.just("-"))
BARS = st.integers(1, 24).map("█".__mul__)
NAMES = st.text("abcdefghijklmnop-ภาษา言語", min_size=1, max_size=60)
PROSE = st.lists(NAMES, min_size=1, max_size=12).map(" ".join)
KINDS = {"figures": FIGURES, "bar": BARS, "name": NAMES, "prose": PROSE}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=12))
    columns = [f"{kind} {number}" for number, kind in enumerate(kinds)]
    rows = draw(st.lists(st.tuples(*(KINDS[kind] for kind in kinds)), min_size=1, max_size=2))
    return columns, rows, kinds


def printed(width, columns, rows, kinds):
    """What a table prints on so many columns."""
    found = io.StringIO()
    of_kind = {kind: {name for name, one in zip(columns, kinds, strict=True) if one == kind} for kind in KINDS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "out", Console(file=found, highlight=False))
        patch.setenv("COLUMNS", str(width))
        output.table(None, columns, rows, right=of_kind["figures"], prose=of_kind["prose"])
    lines = found.getvalue().splitlines()
    assert lines == [line.rstrip() for line in lines]
    return lines


@settings(max_examples=60)
@given(tables())
def test_at_80_columns_no_figure_and_no_bar_is_broken(made):
    columns, rows, kinds = made
    lines = printed(80, *made)
    assert all(cell_len(line) <= 80 for line in lines if not line.startswith("("))
    left_out = set(re.findall(r"left out: (\w+ \d+)", lines[-1]))
    text = "\n".join(lines)
    for name, kind, *cells in zip(columns, kinds, *rows, strict=True):
        if name not in left_out:
            assert f"{name}" in lines[0]
            if kind == "figures":
                assert all(re.search(rf"(?<!\S){re.escape(cell)}(?!\S)", text) for cell in cells)
    # Bars may be drawn to a smaller scale, but each is there and none ends in an ellipsis.
    bars = [cell for name, kind, *cells in zip(columns, kinds, *rows, strict=True) if kind == "bar" for cell in cells
            if name not in left_out]  # fmt: skip
    assert len(re.findall("█+(?!…)(?!█)", text)) == len(bars)
    # A name that is not whole is said to be shortened.
    for name, kind, *cells in zip(columns, kinds, *rows, strict=True):
        if kind == "name" and name not in left_out and not all(cell in text for cell in cells):
            assert f"shortened: {name}" in lines[-1]


def test_bars_are_drawn_to_the_scale_that_there_is_room_for():
    rows = [["a name of thirty characters or", "█" * length, "12,345"] for length in (40, 20, 1)]
    columns, kinds = ["name", "drawn", "count"], ["name", "bar", "figures"]
    assert printed(54, columns, rows, kinds) == [
        "name                    drawn                    count",
        "a name of thirty char…  ██████████████████████  12,345",
        "a name of thirty char…  ███████████             12,345",
        "a name of thirty char…  █                       12,345",
        "(shortened: name; a wider terminal, COLUMNS=200 or --json shows all)",
    ]


@settings(max_examples=60)
@given(tables())
def test_a_table_that_fits_is_shown_as_it_is(made):
    rows = made[1]
    lines = printed(10_000, *made)
    assert len(lines) == 1 + len(rows)
    assert all(cell in line for row, line in zip(rows, lines[1:], strict=True) for cell in row)


@pytest.mark.parametrize(
    ("columns", "terminal", "width"),
    [
        ("120", True, 120),
        ("120", False, 120),
        ("", True, 50),
        ("0", True, 50),
        ("wide", True, 50),
        ("", False, sys.maxsize),
        ("0", False, sys.maxsize),
    ],
)
def test_how_wide_tables_may_be(monkeypatch, columns, terminal, width):
    file = io.StringIO()
    file.isatty = lambda: terminal
    monkeypatch.setattr(output, "out", Console(file=file, width=50))
    monkeypatch.setenv("COLUMNS", columns)
    assert output.room() == width


def test_without_a_terminal_everything_is_shown(monkeypatch):
    found = io.StringIO()
    monkeypatch.setattr(output, "out", Console(file=found, highlight=False))
    monkeypatch.delenv("COLUMNS", raising=False)
    row = ["name" * 20, "12,345", "sentence " * 20]
    output.table(None, ["name", "count", "said"], [row], right={"count"}, prose={"said"})
    _, line = found.getvalue().splitlines()
    assert all(cell.strip() in line for cell in row)


def test_no_table_is_printed_but_by_the_one_function_that_fits_it():
    source = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "rich.table" in path.read_text()]
    # The other one is what is shown while a load goes on, in place and gone at its end.
    assert {path.name for path in source} == {"output.py", "load_display.py"}

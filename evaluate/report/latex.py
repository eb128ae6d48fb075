"""The report's tables of figures for LaTeX, with booktabs' rules; tabulate writes them."""

from __future__ import annotations

from tabulate import LATEX_ESCAPE_RULES, tabulate

from langshift.evaluate.report.building import Report
from langshift.evaluate.report.sections import sections
from langshift.evaluate.report.tables import Table

_ABOVE = (
    "% Tables of a langshift report, for a document with \\usepackage{booktabs}.\n"
    "% Texts in many scripts want LuaLaTeX or XeLaTeX; examples and what was run are in the HTML and Markdown."
)


def latex(report: Report) -> str:
    """The tables of figures, each in a ``table`` of its own."""
    made = [_table(table) for section in sections(report) for table in section.tables if not table.words]
    return "\n\n".join([_ABOVE, *made]) + "\n"


def _table(table: Table) -> str:
    columns = range(len(table.heads))
    rows = tabulate(
        [[_line(cell.plain) for cell in row] for row in table.rows],
        headers=[_line(head.plain) for head in table.heads],
        tablefmt="latex_booktabs",
        colalign=["left" if place == 0 else "right" for place in columns],
        disable_numparse=True,
    )
    return f"\\begin{{table}}\n\\centering\n\\caption{{{_safe(table.caption)}}}\n{rows}\n\\end{{table}}"


def _safe(text: str) -> str:
    """Text that LaTeX sets as it is; tabulate does the same to fields."""
    return "".join(LATEX_ESCAPE_RULES.get(character, character) for character in _line(text))


def _line(text: str) -> str:
    return " ".join(text.split())

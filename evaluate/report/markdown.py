"""The report as Markdown; tabulate writes its tables."""

from __future__ import annotations

import re
from html import escape

from tabulate import tabulate

from langshift.evaluate.compare.summary import summary
from langshift.evaluate.report.building import Report
from langshift.evaluate.report.sections import sections
from langshift.evaluate.report.tables import Table

# What Markdown reads as more than itself, wherever it stands.
_MARKUP = re.compile(r"([\\`*_\[\]|~$])")


def markdown(report: Report) -> str:
    """All tables, in GitHub's Markdown; figures are in the HTML alone."""
    parts = ["# langshift report", *(_safe(sentence) for sentence in summary(report.found.compared))]
    parts += [f"- Warning: {_safe(warning)}" for warning in report.found.warnings]
    for section in sections(report):
        if section.tables or section.notes:
            parts.append(f"## {_safe(section.title)}")
        parts += [_safe(note) for note in section.notes]
        for table in section.tables:
            quoted = f" {table.quoted.text}" if table.quoted else ""
            parts += [f"**{_safe(table.caption)}**{_safe(quoted)}", _table(table)]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    return str(
        tabulate(
            [[_safe(cell.plain) for cell in row] for row in table.rows],
            headers=[_safe(head.plain) for head in table.heads],
            tablefmt="github",
            colalign=["left" if table.words or place == 0 else "right" for place in range(len(table.heads))],
            disable_numparse=True,
        )
    )


def _safe(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return _MARKUP.sub(r"\\\1", escape(" ".join(text.split()), quote=False))

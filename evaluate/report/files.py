"""The report's files, all of them or none."""

from __future__ import annotations

from pathlib import Path

from langshift.evaluate.report.building import Report
from langshift.evaluate.report.html import html
from langshift.evaluate.report.latex import latex
from langshift.evaluate.report.long_form import long_form
from langshift.evaluate.report.markdown import markdown
from langshift.whole import whole

FORMS = {"report.html": html, "report.md": markdown, "report.csv": long_form, "report.tex": latex}


def write(report: Report, folder: Path) -> list[Path]:
    """Write the files, each whole; those of an earlier report are replaced.

    Returns:
        Their places, the page first.
    """
    # All are made before the first is written: what fails leaves no half of a report.
    made = {folder / name: form(report).encode("utf-8", "replace") for name, form in FORMS.items()}
    for path, content in made.items():
        with whole(path) as partial:
            partial.write_bytes(content)
    return list(made)

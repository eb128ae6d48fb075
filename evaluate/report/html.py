"""The report as one self-contained page: no script, nothing fetched."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from langshift.evaluate.compare.summary import summary
from langshift.evaluate.report.building import Report
from langshift.evaluate.report.sections import sections
from langshift.evaluate.report.templating import environment
from langshift.languages import direction, parse_tag

_TEMPLATES = Path(__file__).with_name("templates")


def html(report: Report) -> str:
    """The page; whatever names and texts hold is shown as text."""
    made = environment(_TEMPLATES)
    made.globals.update(direction=direction, tag=_tag)
    compared = report.found.compared
    shown = [(section, [(one.caption, Markup(one.svg)) for one in section.draw()]) for section in sections(report)]  # noqa: S704 - langshift's own figures, whose labels are escaped
    return made.get_template("report.html").render(
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - a file of the package
        title=" and ".join(run.name for run in compared.candidates),
        dataset=compared.dataset,
        summary=summary(compared),
        warnings=report.found.warnings,
        sections=[(section, drawings) for section, drawings in shown if section.tables or section.notes or drawings],
    )


def _tag(language: str) -> str:
    """A tag that HTML knows, empty for none: the language of a text is then unknown, not English."""
    return parse_tag(language) or ""

"""A report as HTML and CSV."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from langshift.evaluate.compare.comparison import ALL, SLICES, Column, ComparedQueries, Comparison
from langshift.evaluate.compare.significance import TestResult
from langshift.evaluate.measures.most_shown import language_shares
from langshift.evaluate.measures.preference import TOP1
from langshift.evaluate.report.report import Report
from langshift.evaluate.report.sections import sections
from langshift.files import atomic_write
from langshift.languages import direction, parse_tag

HEADS = ("section", "measure", "language", "run", "value", "queries", "p", "significant")
Row = tuple[str, str, str, str, float | None, int | None, float | None, str]


def long_form(report: Report) -> str:
    """All figures; ``p`` is the corrected one of the test against the first run.

    ``language`` is that of the queries, ``all`` for all of them; ``significant`` is yes, no, or empty where nothing
    was tested.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADS)
    writer.writerows(_rows(report))
    return text.getvalue()


def _rows(report: Report) -> Iterator[Row]:
    compared = report.found.compared
    for section in compared.sections:
        for column in compared.columns_of(section):
            for language, part in {ALL: compared.whole, **compared.by_language}.items():
                yield from _of_runs(compared, part, section, column, language)
    for name, part in compared.slices.items():
        for column in compared.columns_of(ALL):
            yield from _of_runs(compared, part, SLICES[name], column, ALL)
    for name, part in compared.by_value.items():
        for column in compared.columns:
            where = f"{column.section}, {compared.candidates[0].result['within']}: {name}"
            yield from _of_runs(compared, part, where, column, ALL)
    yield from _recalls(report)
    yield from _outcomes(report)
    yield from _shares(report)


def _of_runs(compared: Comparison, part: ComparedQueries, section: str, column: Column, language: str) -> Iterator[Row]:
    first = compared.letters[0]
    for run in compared.candidates:
        scores, tested = part.scores[run.letter][column], part.tested(column, (first, run.letter))
        at = (section, column.measure, language, run.label)
        yield (*at, scores.mean, scores.queries, *_judged(tested))


def _judged(tested: TestResult | None) -> tuple[float | None, str]:
    return (None, "") if tested is None else (tested.corrected, "yes" if tested.significant else "no")


def _recalls(report: Report) -> Iterator[Row]:
    """Recall by document language; the first run's own figures once."""
    for place, matrix in enumerate(report.found.matrices):
        earlier, later = report.found.compared.labels(matrix.pair)
        cells = ((language, target, cell) for language, row in matrix.cells.items() for target, cell in row.items())
        for language, target, cell in cells:
            at = ("recall by document language", f"{matrix.measure} of {target}", language)
            if place == 0:
                yield (*at, earlier, cell.before, cell.tested.queries, None, "")
            yield (*at, later, cell.after, cell.tested.queries, *_judged(cell.tested))


def _outcomes(report: Report) -> Iterator[Row]:
    for letter, scores in report.outcomes.items():
        for language, cells in scores.cells.items():
            for outcome, cell in cells.items():
                label = report.found.compared.candidate(letter).label
                yield ("first document", f"{TOP1.name} {outcome}", language, label, cell.mean, cell.queries, None, "")


def _shares(report: Report) -> Iterator[Row]:
    """Each language's share of the hits, and what it stands beside."""
    for label, scores in report.found.most_shown.items():
        for one in language_shares(scores):
            for share, of in ((one.shown, one.hits), (one.fair, one.beside)):
                yield ("languages of the hits", f"{one.language} of {of}", ALL, label, share, scores.queries, None, "")


def environment(folder: Path) -> Environment:
    """What fills in the templates of a folder; a name that is not given is an error and no empty place."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


_TEMPLATES = Path(__file__).with_name("templates")


def html(report: Report) -> str:
    """The page; whatever names and texts hold is shown as text."""
    compared, made = report.found.compared, environment(_TEMPLATES)
    # A language that is none has an empty tag: that of a text is then unknown, not English.
    made.globals.update(direction=direction, tag=lambda language: parse_tag(language) or "")
    style = Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - a file of the package
    return made.get_template("report.html").render(
        style=style,
        title=" and ".join(run.name for run in compared.candidates),
        dataset=compared.dataset,
        summary=report.found.summary,
        next=[verdict.next for verdict in report.found.verdicts.values()],
        warnings=report.found.warnings,
        sections=sections(report),
        markup=Markup,
    )


FORMS = {"report.html": html, "report.csv": long_form}


def write(report: Report, folder: Path) -> list[Path]:
    """Write the files, each whole; those of an earlier report are replaced.

    Returns:
        Their places, the page first.
    """
    # All are made before the first is written: what fails leaves no half of a report.
    made = {folder / name: form(report).encode("utf-8", "replace") for name, form in FORMS.items()}
    for path, content in made.items():
        with atomic_write(path) as partial:
            partial.write_bytes(content)
    return list(made)

"""What ``langshift evaluate report`` does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langshift import console, extra
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.run import command
from langshift.shown import line


def run(places: Sequence[Path], dataset: Path | None, output: Path | None, *, as_json: bool) -> None:
    """Make the report, write its files and name them.

    Raises:
        UsageError: something given cannot be used; nothing is written.
        LangshiftError: the extra is missing.
    """
    extra.require()
    from langshift.evaluate.compare.summary import summary
    from langshift.evaluate.report.building import build
    from langshift.evaluate.report.files import write

    folder = output or _beside(places)
    check_output(folder)
    report = build(places, dataset, command())
    for warning in report.found.warnings:
        console.note(f"Warning: {warning}")
    written = write(report, folder)
    if as_json:
        files = {path.suffix.removeprefix("."): str(path) for path in written}
        console.emit_json({"files": files, "comparison": report.to_dict()})
        return
    for sentence in summary(report.found.compared):
        line(sentence)
    line(f"\nThe report is {written[0]}")
    line(f"Its tables are also {', '.join(path.name for path in written[1:])} in {folder}")


def _beside(places: Sequence[Path]) -> Path:
    """The last folder given, or the one that the last file lies in."""
    folders = [place for place in places if not place.is_file()]
    return folders[-1] if folders else places[-1].parent

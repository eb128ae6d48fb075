"""``langshift evaluate report``: its options."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.commands.langshift_options import JSON

_FOLDER = click.Path(path_type=Path)


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=_FOLDER)
@click.option("--dataset", type=_FOLDER, metavar="FOLDER", help="The dataset; what the runs name if not given.")
@click.option("--output", type=_FOLDER, metavar="FOLDER", help="Where to write; the last of the runs if not given.")
@JSON
def report(runs: tuple[Path, ...], dataset: Path | None, output: Path | None, as_json: bool) -> None:
    """Make one page of RUNS that shows what changes: tables, figures, examples, and what was run.

    A run is a folder that `langshift evaluate replay`, `modes`, `offline` or `langshift demo` wrote with --output,
    or any TREC run; the first is what the others are compared with, as in `langshift evaluate compare`. The JSON
    document of `langshift evaluate sweep` among them adds the curve over alpha, and the language preferences.

    report.html opens from disk and loads nothing from anywhere; its tables are also written as Markdown
    (report.md), CSV (report.csv, one figure a line) and LaTeX (report.tex).

    \b
    Example:
      langshift evaluate replay xquad8 --index plain --output results/plain
      langshift evaluate replay xquad8 --index shifted --output results/shifted
      langshift evaluate sweep xquad8 --beta 0,.02,.05,.1 --json > results/sweep.json
      langshift evaluate report results/plain results/shifted results/sweep.json --output results
    """
    from langshift.commands.report_command import run

    run(runs, dataset, output, as_json=as_json)

"""``langshift evaluate compare``: its options, and what it does and prints."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.commands.langshift_options import JSON

_FOLDER = click.Path(path_type=Path)


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=_FOLDER)
@click.option("--dataset", type=_FOLDER, metavar="FOLDER", help="The dataset; what the runs name if not given.")
@click.option("--measures", metavar="NAMES", help="Measures, such as 'nDCG@20 TLR@20 SLR@20 LPR'.")
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="End with exit code 1 if this holds, such as 'SLR@20 < -0.01'; may be given again.",
)
@click.option("--baseline", type=_FOLDER, metavar="FILE", help="Changes count from the figures in this file.")
@click.option(
    "--save-baseline", type=_FOLDER, metavar="FILE", help="Keep the last run's figures if no condition fails."
)
@click.option("--junit", type=_FOLDER, metavar="FILE", help="Write the conditions and verdicts as JUnit XML.")
@JSON
def compare(
    runs: tuple[Path, ...],
    dataset: Path | None,
    measures: str | None,
    conditions: tuple[str, ...],
    baseline: Path | None,
    save_baseline: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Compare RUNS of one dataset: who gains, who loses, and what chance could have done.

    A run is a folder that `langshift evaluate replay` or `offline` wrote with --output, or any TREC run.
    Every pair of runs is tested, by queries of one article or group together, and corrected for the number of
    tests. Figures stand apart for same-language and cross-language answers, and for each query language.

    \b
    CONDITION is a change from the first run, or the baseline, to the last: 'SLR@20 < -0.01'; in the queries
    of one language or any: 'nDCG@20 in any < -0.02'; or the last run's figure: 'value nDCG@20 < 0.7'.

    \b
    Example:
      langshift evaluate offline xquad8 --alpha 0 --output results/plain
      langshift evaluate offline xquad8 --alpha 1 --output results/shifted
      langshift evaluate compare results/plain results/shifted --fail-if 'SLR@20 < -0.02'
    """
    from langshift.commands.compare_command import run

    run(
        runs,
        dataset,
        measures,
        conditions=conditions,
        baseline=baseline,
        save_baseline=save_baseline,
        junit=junit,
        as_json=as_json,
    )

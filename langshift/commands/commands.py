"""The commands of this room: ``evaluate`` and ``demo``; ``dataset`` is in ``dataset_commands``."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.commands.evaluate_compare_command import compare
from langshift.commands.evaluate_report_command import report
from langshift.commands.langshift_options import JSON
from langshift.commands.modes_command import modes
from langshift.commands.offline_command import offline
from langshift.commands.replay_options import replay_command
from langshift.commands.score_command import score as score_command
from langshift.commands.sweep_command import sweep

_FOLDER = click.Path(path_type=Path)


@click.group()
def evaluate() -> None:
    """Measure an index on the live cluster.

    \b
    Example:
      langshift evaluate replay DATASET --index news
    """


evaluate.add_command(replay_command)
evaluate.add_command(modes)
evaluate.add_command(score_command)
evaluate.add_command(offline)
evaluate.add_command(sweep)
evaluate.add_command(compare)
evaluate.add_command(report)


@click.command()
@click.option(
    "--output",
    type=_FOLDER,
    metavar="FOLDER",
    help="Write the runs of both indices and the report here.  [default: results/demo in LANGSHIFT_HOME]",
)
@JSON
def demo(output: Path | None, as_json: bool) -> None:
    """Index the bundled corpus twice, without and with the shift, and show what changes.

    The corpus is 44 topics in 12 languages with two questions each in every language. It is written
    to the indices langshift-demo-plain and langshift-demo-shifted, which are replaced. In the end there is a report
    on both (its page is `report` of the JSON document, null without the extra console), and `langshift serve`
    searches them side by side.

    \b
    Example:
      langshift demo
    """
    from langshift.commands.demo_command import run

    run(output, as_json=as_json)

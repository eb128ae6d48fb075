"""The group ``evaluate``."""

import click

from langshift.commands.compare import compare
from langshift.commands.replay import replay
from langshift.parameters import CommandGroup


@click.group(cls=CommandGroup)
def evaluate() -> None:
    """Measure an index on the live cluster.

    \b
    Example:
      langshift evaluate replay DATASET --index news
    """


for command in (replay, compare):
    evaluate.add_command(command)

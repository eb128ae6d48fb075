"""The group ``evaluate``."""

import click

from langshift.commands.board import board
from langshift.commands.compare import compare
from langshift.commands.offline import offline
from langshift.commands.rag import rag
from langshift.commands.replay import replay
from langshift.parameters import CommandGroup


@click.group(cls=CommandGroup)
def evaluate() -> None:
    """Measure an index on the live cluster.

    \b
    Example:
      langshift evaluate replay DATASET --index news
    """


for command in (replay, offline, rag, compare, board):
    evaluate.add_command(command)

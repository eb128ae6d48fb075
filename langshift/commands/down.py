"""The command ``down``."""

import click

from langshift import embedded
from langshift.output import emit
from langshift.parameters import JSON, Command
from langshift.settings import Settings


@click.command(cls=Command)
@JSON
def down(as_json: bool) -> None:
    """Stop the embedded OpenSearch and keep its data.

    \b
    Example:
      langshift down
    """
    stopped = embedded.down(Settings.from_env().home)
    text = "OpenSearch is stopped. Its data is kept." if stopped else "OpenSearch was not running."
    emit({"stopped": stopped}, text, as_json=as_json)

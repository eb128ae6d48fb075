"""The command ``down``."""

import click

from langshift import embedded
from langshift.output import emit_json, line
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
    if as_json:
        emit_json({"stopped": stopped})
    else:
        line("OpenSearch is stopped. Its data is kept." if stopped else "OpenSearch was not running.")

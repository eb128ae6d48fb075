"""The commands of the embedded OpenSearch: up, down, status."""

from __future__ import annotations

import os
import sys

import click
from rich.text import Text

from langshift import embedded
from langshift.console import emit_json, note, out
from langshift.options import JSON
from langshift.settings import Settings


@click.command()
@JSON
def up(as_json: bool) -> None:
    """Start the embedded OpenSearch; the first time, download it.

    It listens on this machine only, keeps its data between starts, and runs until "langshift down".
    LANGSHIFT_HOME names the folder for its files.

    \b
    Example:
      langshift up
    """
    server = embedded.up(Settings.from_env().home)
    if os.environ.get("OPENSEARCH_URL"):
        note("OPENSEARCH_URL is set: the other commands use that cluster, not this one.")
    _show(server, as_json)


@click.command()
@JSON
def down(as_json: bool) -> None:
    """Stop the embedded OpenSearch; its data stays.

    \b
    Example:
      langshift down
    """
    stopped = embedded.down(Settings.from_env().home)
    if as_json:
        emit_json({"stopped": stopped})
    else:
        out.print("OpenSearch is stopped; its data stays." if stopped else "OpenSearch was not running.")


@click.command()
@JSON
def status(as_json: bool) -> None:
    """Say whether the embedded OpenSearch runs, and where; exit code 1 where it does not.

    \b
    Example:
      langshift status --json
    """
    home = Settings.from_env().home
    server = embedded.status(home)
    if server is not None:
        _show(server, as_json)
        return
    if as_json:
        emit_json({"running": False, **embedded.places(home)})
    else:
        out.print(Text(embedded.why_not_running(home)), soft_wrap=True)
    sys.exit(1)


def _show(server: embedded.Server, as_json: bool) -> None:
    if as_json:
        emit_json({"running": True, **server.to_dict()})
    else:
        out.print(Text(f"OpenSearch {server.version} is running at {server.url}"), soft_wrap=True)

"""The commands of the embedded OpenSearch: up, down, status."""

from __future__ import annotations

import os
import sys

import click
from rich.text import Text

from langshift import embedded
from langshift.commands.langshift_options import JSON
from langshift.console import emit_json, note, out
from langshift.settings import Settings


@click.command()
@click.option(
    "--nodes",
    type=click.Choice(["1", "3"]),
    help="How many nodes it is to have; without the option, as many as it has, at first 1.",
)
@JSON
def up(nodes: str | None, as_json: bool) -> None:
    """Start the embedded OpenSearch; the first time, download it.

    It listens on this machine only, keeps its data between starts, and runs until "langshift down".
    LANGSHIFT_HOME names the folder for its files.

    With --nodes 3 it is a cluster of three processes that goes on when one dies; "langshift up" starts that
    one again. A cluster of 1 becomes one of 3 and keeps its data; there is no way back. There is no cluster
    of 2: it would stop when either dies.

    \b
    Example:
      langshift up
      langshift up --nodes 3
    """
    server = embedded.up(Settings.from_env().home, int(nodes) if nodes else None)
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
        return
    urls = [node.url for node in server.nodes if node.url] or [server.url]
    text = f"OpenSearch {server.version} is running at {', '.join(urls)}"
    gone = [node.name for node in server.nodes if not node.running]
    if len(gone) == 1:
        text += f"; its node {gone[0]} is not running, langshift up starts it again"
    elif gone:
        text += f"; its nodes {' and '.join(gone)} are not running, langshift up starts them again"
    out.print(Text(text), soft_wrap=True)

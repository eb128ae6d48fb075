"""The command ``up``."""

import os

import click

from langshift import embedded
from langshift.client import await_recovery, make_client, missing_shards
from langshift.output import emit, note
from langshift.parameters import JSON, Command
from langshift.settings import Settings


@click.command(cls=Command)
@JSON
def up(as_json: bool) -> None:
    """Start the embedded OpenSearch, downloading it the first time.

    It listens on this machine only, keeps its data between starts, and runs until "langshift down".
    LANGSHIFT_HOME names the folder for its files; "langshift doctor" shows whether it is running, and where.

    \b
    Example:
      langshift up
    """
    settings = Settings.from_env()
    server = embedded.up(settings.home)
    with make_client(settings, server.url) as client:
        if missing := await_recovery(client):
            note(missing_shards(missing))
    if os.environ.get("OPENSEARCH_URL"):
        note("OPENSEARCH_URL is set: the other commands use that cluster, not this one.")
    emit({"running": True, **server.to_dict()}, str(server), as_json=as_json)

"""The pipeline of a version goes on in the version that takes its place: other clients go on sending raw vectors."""

from __future__ import annotations

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.console import note
from langshift.debias.debias import Debias
from langshift.plugin import pipeline
from langshift.plugin.fields import Fields
from langshift.plugin.index_shift import of_debias
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.target import Target


def follow(client: OpenSearch, before: str, version: str, shift: IndexShift, fields: Fields) -> None:
    """Give a version a pipeline where another has one.

    May be called again, also where it was cut off.

    Args:
        client: the cluster.
        before: the version that documents go to now.
        version: the one that is to take its place.
        shift: how documents of that are shifted.
        fields: the names of its fields.

    Raises:
        UsageError: what runs before the shift does not exist any more.
    """
    there = pipeline.installed(client, before)
    if there is not None:
        pipeline.install(client, version, shift, fields, there.first)


def follow_load(client: OpenSearch, target: Target, debias: Debias) -> None:
    """Give a version that a load has made a pipeline where the live version has one; see ``follow``.

    Where no pipeline can shift what the load has made, that is told.

    Args:
        client: the cluster.
        target: the version, which is not live yet.
        debias: how the load moves documents.
    """
    live, version = target.live, target.index
    if not target.created or live is None:
        return
    try:
        there = pipeline.installed(client, live)
    except NotFoundError:
        # Somebody has deleted it, which stops the load where the alias is to change.
        return
    if there is None:
        return
    if debias.method != "shift":
        note(
            f"{live} shifts what other clients write, and {version} does not: no pipeline can apply the method "
            f"{debias.method}. Write to it with `langshift ingest`."
        )
        return
    follow(client, live, version, of_debias(debias), target.fields)
    note(f"{version} shifts what other clients write, as {live} did.")

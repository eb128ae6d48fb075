"""A load that broke off: nothing half-written stays, and who ran it is told how to go on."""

from __future__ import annotations

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.cluster import address
from langshift.console import counted, note
from langshift.errors import ClusterError, LangshiftError
from langshift.failures import failure
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.read import Source
from langshift.plugin import load_settings, writing
from langshift.plugin.target import Target, remove_impostor


def broken_off(
    client: OpenSearch, source: Source, journal: Journal, target: Target, error: BaseException
) -> BaseException:
    """Leave nothing half-written: what cannot be gone on with goes; else say how to go on.

    Args:
        client: the cluster.
        source: the input.
        journal: the load's journal; it is removed where no line was handled.
        target: the version that was written to.
        error: what broke the load off.

    Returns:
        The error to raise: the same, or one that says what to do too.
    """
    if isinstance(error, OpenSearchException):
        error = failure(error, address(client))
    handled = sum(journal.counts().values())
    told = []
    may_go_on = True
    try:
        if target.created and (handled == 0 or not source.resumable):
            writing.discard(client, target)
        else:
            remove_impostor(client, target.index, target.uuid)
            load_settings.restore(client, target.index)
            may_go_on = _may_go_on(client, target)
    except OpenSearchException:
        told.append(f"The cluster could not be told to leave {target.index}: the next run will do it.")
    if handled == 0:
        journal.remove()
    elif source.resumable:
        remedy = ": go on with" if may_go_on else ", but this load cannot be gone on with: begin anew without"
        told.append(f"{counted(handled, 'line')} of {source.shown} handled{remedy} --resume.")
    elif not target.created:
        told.append(f"{counted(handled, 'line')} handled; running the same command again doubles nothing.")
    if told and isinstance(error, LangshiftError):
        return type(error)(" ".join([str(error), *told]))
    for sentence in told:
        note(sentence)
    return error


def _may_go_on(client: OpenSearch, target: Target) -> bool:
    try:
        return writing.may_reopen(client, target.name, target.index, target.uuid)
    except ClusterError:
        # The alias is none, or one of several indices: whoever made that so can undo it.
        return True

"""The write block of a version: set by a transfer for its last steps, or by somebody for reasons of his own."""

from __future__ import annotations

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.plugin.index_settings import is_write_blocked
from langshift.plugin.meta import uuid_of
from langshift.plugin.transfer.run import Run
from langshift.trouble import Unreadable


def block(run: Run) -> bool:
    """Let the live version take no writes any more; those under way are done when this returns.

    Returns:
        Whether somebody had blocked it before: then the version that takes its place is blocked too.
    """
    theirs = not run.ask(run.mark.read).get("blocked") and is_blocked(run, run.source)
    if not theirs:
        # Noted first: a run that is killed between the two leaves a block that the next one knows for its own.
        run.ask(lambda: run.mark.note(blocked=True))
        run.ask(lambda: set_block(run.client, run.source))
    return theirs


def unblock(run: Run) -> None:
    """Let the live version take writes again, where this transfer has blocked it."""
    if run.ask(run.mark.read).get("blocked"):
        run.ask(lambda: lift_block(run.client, run.source, run.uuid))
        run.ask(lambda: run.mark.note(blocked=False))


def is_blocked(run: Run, index: str) -> bool:
    """Whether a version takes no writes."""
    return is_write_blocked(run.settings(index))


def set_block(client: OpenSearch, index: str) -> None:
    """Let an index take no writes; those under way are done when this returns.

    Raises:
        Unreadable: a part of it does not answer, or it took none already, so that nobody knows of those under way.
    """
    answer = client.indices.add_block(index=index, block="write")
    if not (answer["acknowledged"] and answer["shards_acknowledged"]):
        client.indices.put_settings(index=index, body={"index": {"blocks.write": None}})
        raise Unreadable(f"A part of {index} does not answer, so writing to it could not be stopped.")


def lift_block(client: OpenSearch, index: str, uuid: str) -> None:
    """Let an index take writes; nothing happens where it is gone, or another has its name."""
    if uuid_of(client, index) != uuid:
        return
    try:
        client.indices.put_settings(index=index, body={"index": {"blocks.write": None}})
    except NotFoundError:
        return

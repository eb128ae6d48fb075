"""The command ``rollback``."""

from dataclasses import asdict
from functools import partial

import click

from langshift import output
from langshift.client import open_cluster
from langshift.commands.transfer_display import TransferReporter, counted, note_aliases_left
from langshift.ingest import reencode as reencoding
from langshift.parameters import INDEX_ENCODER, JSON, PATIENCE, Command, option
from langshift.plugin import retune as retuning
from langshift.plugin.index_health import AliasPointed, point_alias
from langshift.plugin.inventory import DocumentCount
from langshift.plugin.transfer.state import TransferResult
from langshift.wording import join_words


@click.command(cls=Command)
@click.argument("name")
@option("--to VERSION", "Point NAME to this version, such as 3 or v0003, also one that a load kept aside.")
@INDEX_ENCODER
@PATIENCE
@JSON
def rollback(name: str, to: str | None, encoder: str | None, patience: float, as_json: bool) -> None:
    """Point NAME back to an earlier version.

    Writes and deletes since a retune or reencode are carried over first, with the shift and encoder of the previous
    version. A version that was created by a load contains other documents than the one before it: nothing is carried
    over then. The version that was live is kept, and after --to, rollback returns to it.

    If something else has changed the alias NAME, so that it points to several indices, to one that is not a version of
    it, or to nothing, --to points it to that version alone. Nothing is carried over then; no index is removed.

    \b
    Example:
      langshift rollback news
      langshift rollback news --to v0003
    """
    client = open_cluster()
    if to is not None and (pointed := point_alias(client, name, to)) is not None:
        if as_json:
            output.emit_json(asdict(pointed))
        (output.note if as_json else output.line)(pointed_alone(pointed))
        return
    with output.progress() as bars:
        back = partial(reencoding.reencoded_back, encoder=encoder)
        watch = TransferReporter(bars).update
        done = retuning.roll_back(client, name, to=to, patience=patience, watch=watch, reencoded_back=back)
        done = counted(client, done)
    if as_json:
        output.emit_json(done.to_dict())
    (output.note if as_json else output.line)(rolled_back(done, named=to is not None))
    # What a load has made goes on taking writes.
    if done.kind != "load":
        note_aliases_left(client, done.before)


def rolled_back(done: TransferResult, *, named: bool) -> str:
    """What a rollback did, to the version before or to one that was named, in a sentence."""
    points = f"now points to {done.index}" if named else f"points to {done.index} again"
    said = f"{done.name} {points}: {DocumentCount(done.documents, done.chunks)}"
    kept = f"{done.before} is kept{f': `langshift rollback {done.name}` returns to it' if named else ''}."
    if done.kind == "load":
        return f"{said}. What was loaded into or written to {done.before} is not in it. {kept}"
    since = "" if named else f" since {done.before} replaced it"
    return f"{said}, {done.caught_up:,} carried over and {done.deleted:,} deleted{since}. {kept}"


def pointed_alone(done: AliasPointed) -> str:
    """What a rollback did to a name that did not stand for one version, in sentences."""
    said = f"{done.name} points to {done.index} alone: {DocumentCount(done.documents, done.chunks)}."
    if not done.removed_from:
        return said
    return f"{said} It was taken away from {join_words(done.removed_from)}; no index was removed."

"""The commands of ``langshift dead-letters``: what could not be indexed, and how to send it again."""

from __future__ import annotations

import click

from langshift.commands.langshift_options import JSON


@click.group("dead-letters")
def dead_letters() -> None:
    """Documents that could not be indexed: see why, repair them, and send them again.

    \b
    Example:
      langshift dead-letters list
    """


@dead_letters.command("list")
@click.option("--index", "name", metavar="NAME", help="Only those of this index. [default: of every index]")
@JSON
def list_(name: str | None, as_json: bool) -> None:
    """Show dead letters by what was wrong with them, the most frequent first.

    Reasons are shown without what is one document's alone: its id, quoted values, numbers. The files that are
    named hold each document as it came. No cluster is needed.

    \b
    Example:
      langshift dead-letters list --index news
    """
    from langshift.commands.dead_letters_list import run_list

    run_list(name, as_json=as_json)


@dead_letters.command("replay")
@click.option("--index", "name", required=True, metavar="NAME", help="The index that they were meant for.")
@JSON
def replay(name: str, as_json: bool) -> None:
    """Send the dead letters of an index again, and remove those that went through.

    Repair what was wrong first: the index's settings, the encoder's server, or in the file that
    `langshift dead-letters list` names the documents themselves (the line in `document`). Documents are made as by the
    last load into the index. A document that was updated since then stays as it is.

    Exit codes: 0 none is left, 3 some stay, with their new reason.

    \b
    Example:
      langshift dead-letters replay --index news
    """
    from langshift.ingest.dead_letters_replay import run_replay

    if code := run_replay(name, as_json=as_json):
        click.get_current_context().exit(code)

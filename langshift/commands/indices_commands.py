"""The commands of ``langshift index``: what there is on a cluster, all about one of it, and how it goes."""

from __future__ import annotations

import click

from langshift.commands.langshift_options import JSON


@click.group()
def index() -> None:
    """List, describe and remove indices and their versions.

    \b
    Example:
      langshift index list
    """


@index.command("list")
@JSON
def list_(as_json: bool) -> None:
    """List every version of every index of langshift's.

    An index is a name over versions: of NAME-v0001, NAME-v0002, ... the one that is live is found by NAME. A version
    that is kept was live once; one that is unfinished is being made, or was left by a command that was cut off.

    \b
    Example:
      langshift index list
    """
    from langshift.commands.indices_shown import run_list

    run_list(as_json=as_json)


@index.command()
@click.argument("name")
@JSON
def describe(name: str, as_json: bool) -> None:
    """Describe the index NAME, or the version of that name.

    What made it, what it holds in which language, how it is kept, and what is not as it should be: documents without
    a vector, documents whose stamp is not the index's, a write block that was left behind.

    \b
    Example:
      langshift index describe news
    """
    from langshift.commands.indices_shown import run_describe

    run_describe(name, as_json=as_json)


@index.command()
@click.argument("name")
@click.option("--version", metavar="V", help="Only this version, such as 1 or v0001; not the live one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
def drop(name: str, version: str | None, yes: bool, as_json: bool) -> None:
    """Remove the index NAME with all its versions, or one version.

    What goes is named, and asked for, first; scripts give --yes. With a version goes its ingest pipeline. Dropping an
    unfinished version gives up the retune that was making it, and lets writes to the live one in again. Dead letters
    of loads are documents of yours, and stay.

    \b
    Example:
      langshift index drop news --version 1
    """
    from langshift.plugin.dropping import run_drop

    if code := run_drop(name, version, yes=yes, as_json=as_json):
        click.get_current_context().exit(code)

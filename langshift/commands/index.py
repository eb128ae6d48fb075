"""The commands of ``index``."""

import sys
from collections.abc import Sequence

import click

from langshift.client import open_cluster
from langshift.commands.anchors import calibration_due
from langshift.commands.audit import audit
from langshift.errors import UsageError
from langshift.output import emit, emit_json, line, note, table
from langshift.parameters import JSON, CommandGroup, flag, option
from langshift.plugin import description
from langshift.plugin.description import encoders, held, short_name, short_scales, unreadable
from langshift.plugin.index_health import broken_aliases
from langshift.plugin.inventory import AnyVersion, Version, listed, plan_drop
from langshift.plugin.inventory import drop as drop_versions
from langshift.plugin.native_nodes import plugin_nodes
from langshift.plugin.versions import check_name, live


@click.group(cls=CommandGroup)
def index() -> None:
    """List, describe, audit and remove indices and their versions.

    \b
    Example:
      langshift index list
    """


index.add_command(audit)


@index.command("list")
@JSON
def list_(as_json: bool) -> None:
    """List every version of every langshift index.

    The name of an index is an alias over versions: of NAME-v0001, NAME-v0002, ... it points to the live one. A kept
    version was live before, or was kept aside by a load (see langshift rollback --to); an unfinished one is being
    created, or was left behind by an interrupted command. Of a version whose metadata somebody has changed, its row
    says what cannot be read.

    \b
    Example:
      langshift index list
    """
    client = open_cluster()
    found = listed(client)
    index_remarks = [one.in_words() for one in broken_aliases(client, found)]
    if as_json:
        emit_json({"versions": [one.to_dict() for one in found], "remarks": index_remarks})
    elif found:
        _list(found)
        for remark in index_remarks:
            note(remark)
    else:
        note("There is no langshift index: create one with `langshift ingest CORPUS --index NAME`.")


@index.command()
@click.argument("name")
@JSON
def describe(name: str, as_json: bool) -> None:
    """Describe the index NAME, or the version of that name.

    The description shows how it was built, what it contains in which language, how it is stored, whether the cluster
    has the OpenSearch plugin langshift, and what is wrong: documents without a vector, documents whose stamp differs
    from the index's, a leftover write block.

    \b
    Example:
      langshift index describe news
    """
    client = open_cluster()
    found = description.describe(client, name)
    index_remarks = description.remarks(found)
    if found.version.state == "live" and found.alias is None and (due := calibration_due(live(client, name))):
        index_remarks.append(due)
    nodes = plugin_nodes(client)
    if nodes is not None and (problem := nodes.problem()):
        index_remarks.append(problem)
    if as_json:
        there = None if nodes is None else nodes.to_dict()
        emit_json({**found.to_dict(), "plugin": there, "remarks": index_remarks})
        return
    made = description.in_words(found.version.fingerprint)
    for sentence in (*description.first_lines(found), *made, *description.storage(found)):
        line(sentence)
    _beside(found.versions)
    _languages(found)
    if not found.fields.split:
        texts = [[one.field, one.analyzer, f"{one.documents:,}"] for one in found.texts]
        counted = f"{found.fields.entry}s"
        table("\nText fields", ["field", "analyzer", counted], texts, right={counted})
    for remark in index_remarks:
        note(remark)
    if nodes is not None:
        # Of the cluster, not of the index: beside what is printed.
        note(nodes.sentence())


@index.command()
@click.argument("name")
@option("--version V", "Remove only this version, such as 1 or v0001, but not the live one.")
@flag("--yes", "Do not ask for confirmation.")
@JSON
def drop(name: str, version: str | None, yes: bool, as_json: bool) -> None:
    """Remove the index NAME with all its versions, or one version.

    The command first shows what it will remove, and asks for confirmation; scripts use --yes. A version's ingest
    pipeline is removed with it. Dropping an unfinished version abandons the retune or reencode that was creating it,
    and allows writes to the live one again. Dead letters of loads are your documents, and are kept.

    \b
    Example:
      langshift index drop news --version 1
    """
    check_name(name)
    client = open_cluster()
    plan = plan_drop(client, name, version)
    what = plan.in_words()
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"This would remove {what}: without a terminal, confirm with --yes.")
        note(f"This removes {what}.")
        if not click.confirm("Remove it?", err=True):
            note("Nothing was removed.")
            click.get_current_context().exit(1)
    drop_versions(client, plan)
    document = {"name": name, "whole": plan.whole, "removed": [one.to_dict() for one in plan.versions]}
    emit(document, f"Removed {what}.", as_json=as_json)


def _list(versions: Sequence[AnyVersion]) -> None:
    columns = ["name", "version", "state", "documents", "size", "encoder", "alpha", "created"]
    rows = []
    for one in versions:
        how = [encoders(one), short_scales(one)] if isinstance(one, Version) else [unreadable(one), ""]
        rows.append([one.name, short_name(one), *held(one), *how, one.made[:10]])
    table(None, columns, rows, right={"documents", "size", "alpha"}, prose={"encoder", "alpha"})


def _beside(versions: Sequence[Version]) -> None:
    columns = ["version", "state", "documents", "size", "alpha", "created", "origin"]
    rows = [
        [short_name(one), *held(one), short_scales(one), one.made[:10], description.source(one)] for one in versions
    ]
    if len({one.fingerprint.vectors for one in versions}) > 1:
        # The beginning of the hash, which tells vectors apart.
        columns.append("vectors")
        hashes = [(one.fingerprint.vectors or description._UNKNOWN)[: description._SHORT] for one in versions]
        rows = [[*row, beginning] for row, beginning in zip(rows, hashes, strict=True)]
    table("\nVersions", columns, rows, right={"documents", "size", "alpha"}, prose={"alpha", "origin"})


def _languages(found: description.Description) -> None:
    """One row for each language, with its text fields, where an index has the usual ones."""
    filled = {one.field: one for one in found.texts}
    usual = found.fields.text_fields if found.fields.split else ()
    entries = f"{found.fields.entry}s"
    figures = [entries, "share", *usual]
    tags = [*found.languages, *sorted({one.rpartition(".")[2] for one in filled if usual} - set(found.languages))]
    rows = []
    for tag in tags:
        row = [tag, f"{found.languages.get(tag, 0):,}", f"{found.share(tag):.1%}"]
        if usual:
            there = [filled.get(f"{root}.{tag}") for root in usual]
            row += ["0" if one is None else f"{one.documents:,}" for one in there]
            row.append(", ".join(sorted({one.analyzer for one in there if one is not None})) or description._UNKNOWN)
        rows.append(row)
    columns = ["language", *figures, *(["analyzer"] if usual else [])]
    table(f"\n{entries.capitalize()} by language", columns, rows, right=set(figures))

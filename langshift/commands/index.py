"""The commands of ``index`` and ``pipeline``."""

from collections.abc import Sequence

import click
from opensearchpy import OpenSearch

from langshift.client import open_cluster
from langshift.commands.search import calibration_due
from langshift.errors import UsageError
from langshift.output import emit_json, line, note, out, table
from langshift.parameters import JSON, CommandGroup, flag, json_or_tables, option
from langshift.plugin import description, pipelines, stored_shift
from langshift.plugin.alias_repair import broken_aliases, run_repair
from langshift.plugin.description import held, short_name, short_scales, unreadable
from langshift.plugin.inventory import AnyVersion, Version, listed, run_drop
from langshift.plugin.pipeline_check import run_verify
from langshift.plugin.versions import live


@click.group(cls=CommandGroup)
def pipeline() -> None:
    """Shift documents from other clients, with an ingest pipeline for each version of an index.

    Logstash, Data Prepper, Spark, curl or any other client then writes raw vectors to the index, and the pipeline
    shifts them by the document's language. docs/clients.md shows request bodies.

    \b
    Example:
      langshift pipeline install news
    """


@pipeline.command()
@click.argument("name")
@option("--after PIPELINE", "A pipeline that runs first, such as one that computes the vectors.")
@JSON
def install(name: str, after: str | None, as_json: bool) -> None:
    """Install a pipeline that shifts documents as the default pipeline of the index NAME (an alias or a version).

    The previous default pipeline runs first. Installing again updates the pipeline if anything has changed.
    langshift's own commands bypass it.

    \b
    Example:
      langshift pipeline install news --after my-embedding
    """
    client = open_cluster()
    found = live(client, name)
    index, shift = found.index, stored_shift.read(client, found.index)
    first = _first(client, index, after)
    done = pipelines.install(client, index, shift, found.fields, first)
    if as_json:
        preceding = first._asdict() if first else None
        scales = {"vectors": shift.hash, "alpha": shift.alpha, "alphas": dict(shift.alphas)}
        scales["gamma"] = shift.gamma
        emit_json({"index": index, "pipeline": pipelines.name_for(index), "first": preceding, **scales, "done": done})
        return
    out.print(f"{_DONE[done]} {pipelines.name_for(index)}, the default pipeline of {index}.", soft_wrap=True)
    if first is not None:
        so_far = ", the previous default pipeline," if first.was_default else ""
        note(f"The pipeline {first.name}{so_far} runs before it.")
    for sentence in description.of_declarations(found.fields):
        note(sentence)
    if shift.hash is None:
        note(f"{index} has no language vectors: documents get a stamp, but their vectors are not shifted.")


@pipeline.command()
@click.argument("name")
@option("--sample N", "How many documents to shift again and compare.", click.IntRange(1, 1000), default=100)
@JSON
def verify(name: str, sample: int, as_json: bool) -> None:
    """Compare the pipeline's results with NumPy's on documents of the index NAME, and check all stamps.

    Nothing is written. Exit codes: 0 everything agrees, 1 something differs; what to do is then shown.

    \b
    Example:
      langshift pipeline verify news --sample 500
    """
    click.get_current_context().exit(run_verify(name, sample, as_json=as_json))


@pipeline.command()
@click.argument("name")
@JSON
def remove(name: str, as_json: bool) -> None:
    """Remove the pipeline of the index NAME, and restore its previous default pipeline.

    Documents are not changed.

    \b
    Example:
      langshift pipeline remove news
    """
    client = open_cluster()
    index = live(client, name).index
    removed = pipelines.remove(client, index)
    now = pipelines.default(client, index)
    if as_json:
        emit_json({"index": index, "removed": removed.name if removed else None, "default_pipeline": now})
    elif removed is None:
        out.print(f"{index} has no langshift pipeline: there is nothing to remove.", soft_wrap=True)
    else:
        left = f"the default pipeline {now} again" if now else "no default pipeline"
        out.print(f"Removed {removed.name}: {index} now has {left}. Its documents are not changed.", soft_wrap=True)


_DONE = {"installed": "Installed", "updated": "Updated", "unchanged": "Already up to date:"}


def _first(client: OpenSearch, index: str, after: str | None) -> pipelines.PrecedingPipeline | None:
    """What runs before the shift: what was there before stays."""
    now = pipelines.default(client, index)
    # The pipeline of another version would only shift before this one does.
    there = None if now is None else pipelines.read(client, now)
    before = None if now is None else pipelines.PrecedingPipeline(now, was_default=True)
    first = before if there is None else there.first
    if after is None or (first is not None and first.name == after):
        return first
    if first is not None and first.was_default:
        raise UsageError(
            f"{index} has the default pipeline {first.name}, which continues to run first: add {after} to it, "
            "or leave --after out."
        )
    return pipelines.PrecedingPipeline(after, was_default=False)


@click.group(cls=CommandGroup)
def index() -> None:
    """List, describe and remove indices and their versions.

    \b
    Example:
      langshift index list
    """


@index.command("list")
@json_or_tables
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
@json_or_tables
def describe(name: str, as_json: bool) -> None:
    """Describe the index NAME, or the version of that name.

    The description shows how it was built, what it contains in which language, how it is stored, and what is wrong
    with it: documents without a vector, documents whose stamp differs from the index's, a leftover write block.

    \b
    Example:
      langshift index describe news
    """
    client = open_cluster()
    found = description.describe(client, name)
    index_remarks = description.remarks(found)
    if found.version.state == "live" and found.alias is None and (due := calibration_due(live(client, name))):
        index_remarks.append(due)
    if as_json:
        emit_json({**found.to_dict(), "remarks": index_remarks})
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
    click.get_current_context().exit(run_drop(name, version, yes=yes, as_json=as_json))


@index.command()
@click.argument("name")
@flag("--yes", "Do not ask for confirmation.")
@JSON
def repair(name: str, yes: bool, as_json: bool) -> None:
    """Let the index NAME point to one of its versions again.

    The name of an index is an alias. If something else has changed it, such as an index template of the cluster, it may
    point to several indices, or to one that is not a version of it; other commands then refuse to use it. This command
    takes the alias away from all but the version that should be live, which it shows first. No index is removed.

    \b
    Example:
      langshift index repair news
    """
    click.get_current_context().exit(run_repair(name, yes=yes, as_json=as_json))


def _list(versions: Sequence[AnyVersion]) -> None:
    columns = ["name", "version", "state", "documents", "size", "encoder", "alpha", "created"]
    rows = []
    for one in versions:
        how = [one.fingerprint.encoder, short_scales(one)] if isinstance(one, Version) else [unreadable(one), ""]
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

"""The commands of ``index`` and ``pipeline``."""

from collections.abc import Sequence

import click
from opensearchpy import OpenSearch

from langshift.client import open_cluster
from langshift.errors import UsageError
from langshift.output import emit_json, line, note, out, table
from langshift.parameters import JSON, flag, json_or_tables, option
from langshift.plugin import description, pipelines
from langshift.plugin.description import held, short_name, short_scales
from langshift.plugin.inventory import Version, all_versions, run_drop
from langshift.plugin.pipeline_check import run_verify
from langshift.plugin.stored_shift import shift_of
from langshift.plugin.versions import live


@click.group()
def pipeline() -> None:
    """Shift what other clients write: an ingest pipeline for each version of an index.

    With it, Logstash, Data Prepper, Spark, curl or any other client that writes raw vectors to the index gets them
    shifted by the document's language. docs/clients.md shows request bodies.

    \b
    Example:
      langshift pipeline install news
    """


@pipeline.command()
@click.argument("name")
@option("--after PIPELINE", "A pipeline that runs first, such as one that makes the vectors.")
@JSON
def install(name: str, after: str | None, as_json: bool) -> None:
    """Make a pipeline that shifts documents the default of the index NAME (an alias, or a version).

    What was the default pipeline before runs first. To install again brings the pipeline up to date, where
    anything has changed. langshift's own commands do not go through it.

    \b
    Example:
      langshift pipeline install news --after my-embedding
    """
    client = open_cluster()
    found = live(client, name)
    index, shift = found.index, shift_of(client, found)
    first = _first(client, index, after)
    done = pipelines.install(client, index, shift, found.fields, first)
    if as_json:
        preceding = first._asdict() if first else None
        scales = {"vectors": shift.hash, "alpha": shift.alpha, "alphas": dict(shift.alphas)}
        emit_json({"index": index, "pipeline": pipelines.name_for(index), "first": preceding, **scales, "done": done})
        return
    out.print(f"{_DONE[done]} {pipelines.name_for(index)}, the default pipeline of {index}.", soft_wrap=True)
    if first is not None:
        so_far = ", the default pipeline so far," if first.was_default else ""
        note(f"The pipeline {first.name}{so_far} runs before it.")
    if shift.hash is None:
        note(f"{index} has no language vectors: documents get a stamp, and no vector moves.")


@pipeline.command()
@click.argument("name")
@option("--sample N", "How many documents to shift again and compare.", click.IntRange(1, 1000), default=100)
@JSON
def verify(name: str, sample: int, as_json: bool) -> None:
    """Compare what the pipeline does with NumPy, on documents of the index NAME, and look at all stamps.

    Nothing is written. Exit codes: 0 all agrees, 1 something differs, which is said with what to do.

    \b
    Example:
      langshift pipeline verify news --sample 500
    """
    click.get_current_context().exit(run_verify(name, sample, as_json=as_json))


@pipeline.command()
@click.argument("name")
@JSON
def remove(name: str, as_json: bool) -> None:
    """Take the pipeline of the index NAME away; the default pipeline that was there before comes back.

    Documents stay as they are.

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
        out.print(f"{index} has no pipeline of langshift's: nothing to remove.", soft_wrap=True)
    else:
        left = f"the default pipeline {now} again" if now else "no default pipeline now"
        out.print(f"Removed {removed.name}: {index} has {left}. Its documents stay as they are.", soft_wrap=True)


_DONE = {"installed": "Installed", "updated": "Brought up to date:", "unchanged": "Nothing to do:"}


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
            f"{index} has the default pipeline {first.name}, which stays what runs first: put {after} into it, "
            "or leave --after out."
        )
    return pipelines.PrecedingPipeline(after, was_default=False)


@click.group()
def index() -> None:
    """List, describe and remove indices and their versions.

    \b
    Example:
      langshift index list
    """


@index.command("list")
@json_or_tables
def list_(as_json: bool) -> None:
    """List every version of every index of langshift's.

    An index is a name over versions: of NAME-v0001, NAME-v0002, ... the one that is live is found by NAME. A version
    that is kept was live once; one that is unfinished is being made, or was left by a command that was cut off.

    \b
    Example:
      langshift index list
    """
    found = all_versions(open_cluster())
    if as_json:
        emit_json({"versions": [one.to_dict() for one in found]})
    elif found:
        _list(found)
    else:
        note("There is no index of langshift's: make one with `langshift ingest CORPUS --index NAME`.")


@index.command()
@click.argument("name")
@json_or_tables
def describe(name: str, as_json: bool) -> None:
    """Describe the index NAME, or the version of that name.

    What made it, what it holds in which language, how it is kept, and what is not as it should be: documents without
    a vector, documents whose stamp is not the index's, a write block that was left behind.

    \b
    Example:
      langshift index describe news
    """
    found = description.describe(open_cluster(), name)
    index_remarks = description.remarks(found)
    if as_json:
        emit_json({**found.to_dict(), "remarks": index_remarks})
        return
    made = description.in_words(found.version.fingerprint)
    for sentence in (*description.first_lines(found), *made, *description.storage(found)):
        line(sentence)
    _beside(found.versions)
    _languages(found)
    if found.fields.texts:
        texts = [[one.field, one.analyzer, f"{one.documents:,}"] for one in found.texts]
        table("\nText fields", ["field", "analyzer", "documents"], texts, right={"documents"})
    for remark in index_remarks:
        note(remark)


@index.command()
@click.argument("name")
@option("--version V", "Only this version, such as 1 or v0001; not the live one.")
@flag("--yes", "Do not ask.")
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
    click.get_current_context().exit(run_drop(name, version, yes=yes, as_json=as_json))


def _list(versions: Sequence[Version]) -> None:
    columns = ["name", "version", "state", "documents", "size", "encoder", "alpha", "made"]
    rows = [
        [one.name, short_name(one), *held(one), one.fingerprint.encoder, short_scales(one), one.made[:10]]
        for one in versions
    ]
    table(None, columns, rows, right={"documents", "size"}, prose={"encoder", "alpha"})


def _beside(versions: Sequence[Version]) -> None:
    columns = ["version", "state", "documents", "size", "alpha", "made", "by"]
    rows = [
        [short_name(one), *held(one), short_scales(one), one.made[:10], description.source(one)] for one in versions
    ]
    if len({one.fingerprint.vectors for one in versions}) > 1:
        # The beginning of the hash, which tells vectors apart.
        columns.append("vectors")
        hashes = [(one.fingerprint.vectors or description._UNKNOWN)[: description._SHORT] for one in versions]
        rows = [[*row, beginning] for row, beginning in zip(rows, hashes, strict=True)]
    table("\nVersions", columns, rows, right={"documents", "size"}, prose={"alpha", "by"})


def _languages(found: description.Description) -> None:
    """One row for each language, with its text fields, where an index has the usual ones."""
    filled = {one.field: one for one in found.texts}
    usual = [] if found.fields.texts else ["title", "text"]
    figures = ["documents", "share", *usual]
    tags = [*found.languages, *sorted({one.partition(".")[2] for one in filled if usual} - set(found.languages))]
    rows = []
    for tag in tags:
        row = [tag, f"{found.languages.get(tag, 0):,}", f"{found.share(tag):.1%}"]
        if usual:
            there = [filled.get(f"{root}.{tag}") for root in usual]
            row += ["0" if one is None else f"{one.documents:,}" for one in there]
            row.append(", ".join(sorted({one.analyzer for one in there if one is not None})) or description._UNKNOWN)
        rows.append(row)
    columns = ["language", *figures, *(["analyzer"] if usual else [])]
    table("\nDocuments by language", columns, rows, right=set(figures))

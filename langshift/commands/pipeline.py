"""The commands of ``pipeline``."""

import click

from langshift.client import open_cluster
from langshift.output import emit, emit_json, line, note, out
from langshift.parameters import JSON, CommandGroup, option
from langshift.plugin import description, pipelines, stored_shift
from langshift.plugin.pipeline_check import PipelineVerification, verify_pipeline
from langshift.plugin.versions import live
from langshift.wording import pluralize


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
    first = pipelines.first_of(client, index, after)
    done = pipelines.install(client, index, shift, found.fields, first)
    if as_json:
        preceding = first._asdict() if first else None
        scales = {"vectors": shift.hash, "alpha": shift.alpha, "alphas": dict(shift.alphas)}
        scales |= {"gamma": shift.gamma, "own": shift.own}
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
    found = verify_pipeline(open_cluster(), name, sample)
    if as_json:
        emit_json(found.to_dict())
    else:
        _show_verification(found)
    click.get_current_context().exit(1 if found.wrong else 0)


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
    text = f"{index} has no langshift pipeline: there is nothing to remove."
    if removed is not None:
        left = f"the default pipeline {now} again" if now else "no default pipeline"
        text = f"Removed {removed.name}: {index} now has {left}. Its documents are not changed."
    emit({"index": index, "removed": removed.name if removed else None, "default_pipeline": now}, text, as_json=as_json)


_DONE = {"installed": "Installed", "updated": "Updated", "unchanged": "Already up to date:"}


def _show_verification(found: PipelineVerification) -> None:
    compared, stamps, entry = found.compared, found.stamps, found.version.fields.entry
    held = f"{pluralize(stamps.vectors, entry)} of {found.version.index} with a vector"
    if not compared.documents:
        line(f"{held}, none of which can be compared.")
    else:
        line(
            f"{found.pipeline.name} on {compared.documents:,} of {held}: the cluster's results are within "
            f"{compared.cluster:.1e} of NumPy's, the stored vectors within {compared.stored:.1e} (as fractions of a "
            "vector's norm)."
        )
    if compared.documents and found.und:
        field = found.version.fields.declared_language or found.version.fields.language
        line(
            f"{pluralize(found.und, entry)} ({found.und / stamps.vectors:.1%}) in an unknown language (und), not "
            f"shifted by any: if a client wrote them, have it name the language in {field} (a tag such as de), and "
            "write them again."
        )
    for sentence in found.wrong:
        note(sentence)

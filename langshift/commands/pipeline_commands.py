"""The commands of ``langshift pipeline``: the shift for documents that other clients write."""

from __future__ import annotations

import click

from langshift.commands.langshift_options import JSON


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
@click.option("--after", metavar="PIPELINE", help="A pipeline that runs first, such as one that makes the vectors.")
@JSON
def install(name: str, after: str | None, as_json: bool) -> None:
    """Make a pipeline that shifts documents the default of the index NAME (an alias, or a version).

    What was the default pipeline before runs first. To install again brings the pipeline up to date, where
    anything has changed. langshift's own commands do not go through it.

    \b
    Example:
      langshift pipeline install news --after my-embedding
    """
    from langshift.commands.installing import run_install

    run_install(name, after, as_json=as_json)


@pipeline.command()
@click.argument("name")
@click.option(
    "--sample",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    metavar="N",
    help="How many documents to shift again and compare.",
)
@JSON
def verify(name: str, sample: int, as_json: bool) -> None:
    """Compare what the pipeline does with NumPy, on documents of the index NAME, and look at all stamps.

    Nothing is written. Exit codes: 0 all agrees, 1 something differs, which is said with what to do.

    \b
    Example:
      langshift pipeline verify news --sample 500
    """
    from langshift.plugin.verify import run_verify

    if code := run_verify(name, sample, as_json=as_json):
        click.get_current_context().exit(code)


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
    from langshift.commands.installing import run_remove

    run_remove(name, as_json=as_json)

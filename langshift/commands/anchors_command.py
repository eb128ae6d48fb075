"""The commands of ``langshift anchors``: what anchored search has to know of an index."""

from __future__ import annotations

import click

from langshift.commands.ingest_options import index_encoder_options
from langshift.commands.langshift_options import JSON


@click.group()
def anchors() -> None:
    """Calibrate anchored search (langshift search --mode anchored) to an index.

    \b
    Example:
      langshift anchors calibrate news
    """


@anchors.command()
@click.argument("name")
@click.option(
    "--sample",
    type=click.IntRange(30, 2000),
    default=400,
    show_default=True,
    metavar="N",
    help="How many documents to ask about, evenly of all languages.",
)
@index_encoder_options
@JSON
def calibrate(name: str, sample: int, encoder: str | None, trust_remote_code: bool, as_json: bool) -> None:
    """Measure how far anchored search may trust words in the index NAME (an alias, or a version), and keep it there.

    No judgments are needed: questions are cut out of documents of the index, and each is asked twice, as the index is
    and with its document hidden, as if that were not there in the question's language. What words are worth is fitted
    so that the former are trusted and, in the latter, no other document of the language is. How much the vectors of
    unrelated documents differ is measured, and where documents name translation groups, how often a content is there
    in each language. Without a calibration usual figures are used.

    It is kept in the index's mapping, where searches find it; no document is touched. The same index gives the same
    result. A retune takes it along.

    \b
    Example:
      langshift anchors calibrate news
    """
    from langshift.commands.anchors_run import run
    from langshift.retrieval.opening import SearchOptions

    run(name, sample, SearchOptions(encoder, trust_remote_code), as_json=as_json)

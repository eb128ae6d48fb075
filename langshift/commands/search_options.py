"""The command ``search``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langshift.commands.ingest_options import SHIFT_QUERIES, index_encoder_options
from langshift.commands.langshift_options import JSON
from langshift.retrieval.options import setting_options

if TYPE_CHECKING:
    from langshift.plugin.query_shift import ShiftQueries
    from langshift.retrieval.wanted import Setting


@click.command()
@click.argument("name")
@click.argument("words")
@setting_options
@click.option("--language", metavar="TAG", help="The query's language. [default: detected among the index's own]")
@click.option("--size", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many hits.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Only documents with this value; several values of one field are alternatives.",
)
@click.option(
    "--explain", is_flag=True, help="Tell of each hit how it came to its score, and what the shift did to its rank."
)
@click.option(
    "--show-request",
    is_flag=True,
    help="Print every request of the search first, for Dev Tools and as a comment for curl.",
)
@SHIFT_QUERIES
@index_encoder_options
@JSON
def search(
    name: str,
    words: str,
    setting: Setting,
    language: str | None,
    size: int,
    filters: tuple[str, ...],
    explain: bool,
    show_request: bool,
    shift_queries: ShiftQueries,
    encoder: str | None,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Search the index NAME for WORDS.

    \b
    --mode dense     by vectors
    --mode lexical   by words (BM25)
    --mode hybrid    by both
    --mode balanced  by vectors, the best 5 of each language
    --mode anchored  by vectors, led by words to the same content in every language

    \b
    Example:
      langshift search news "how do tides come about" --filter language=th --filter language=de
      langshift search news "how do tides come about" --mode hybrid --prefer-language .02 --explain
    """
    from langshift.commands.search_command import Options, run
    from langshift.retrieval.opening import SearchOptions

    opening = SearchOptions(encoder, trust_remote_code, shift_queries)
    run(name, words, Options(setting, language, size, filters, explain, show_request, opening, as_json))

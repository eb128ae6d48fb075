"""``langshift evaluate modes``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.ingest_options import SHIFT_QUERIES, index_encoder_options
from langshift.commands.langshift_options import JSON
from langshift.errors import UsageError

if TYPE_CHECKING:
    from langshift.plugin.query_shift import ShiftQueries

_FOLDER = click.Path(path_type=Path)


@click.command("modes")
@click.argument("dataset", type=_FOLDER)
@click.option(
    "--index", "names", required=True, multiple=True, metavar="NAME", help="The index to search; again for more."
)
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="SETTING",
    help="A mode and options of langshift search, such as 'hybrid --prefer-language .02'; again for more. "
    "[default: each mode, and dense with --prefer-language .02 and with --spread .02]",
)
@click.option(
    "--measures",
    metavar="NAMES",
    help="Measures, such as 'nDCG@20 TLR@20 Top1'. [default: nDCG@20 TLR@20 SLR@20 LPR Lang_nDCG@20 Top1]",
)
@click.option(
    "--output", type=_FOLDER, metavar="FOLDER", help="Write a folder for each row here, as evaluate replay does."
)
@SHIFT_QUERIES
@index_encoder_options
@JSON
def modes(
    dataset: Path,
    names: tuple[str, ...],
    settings: tuple[str, ...],
    measures: str | None,
    output: Path | None,
    shift_queries: ShiftQueries,
    encoder: str | None,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Send every query of DATASET in several settings, and compare these in one table.

    The settings take turns at each query, one query at a time, so that their latencies are of the same moments.
    Each row stands for a setting, and an index where there are several. Every row is tested against the first:
    paired, by queries of one article or group together, corrected for the number of tests. Tables of all
    differences follow, with the queries with and without an answer in the searcher's language apart. Their
    interval and p are of one comparison alone, and a loss is judged by these: the corrected p would excuse it.

    Top1 is what the first document is: perfect (relevant and in the query's language), lang_fail (relevant, in
    another language), sem_fail (not relevant, in the query's language) or both_fail.

    \b
    Example:
      langshift evaluate modes xquad8 --index plain --index shifted --setting dense \\
        --setting 'dense --prefer-language .02' --setting 'hybrid --fusion rrf' --output results
      langshift evaluate compare results/plain-dense results/shifted-dense
    """
    from langshift.commands.command import Options, run
    from langshift.retrieval.opening import SearchOptions

    if len(set(names)) < len(names):
        raise UsageError("--index names an index twice: name each once.")
    search = SearchOptions(encoder, trust_remote_code, shift_queries)
    run(Options(dataset, names, settings, measures, output, search, as_json=as_json))

"""``langshift evaluate replay``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.ingest_options import SHIFT_QUERIES, index_encoder_options
from langshift.commands.langshift_options import JSON
from langshift.errors import UsageError
from langshift.evaluate.replay.schedule import AT_ONCE_IN_OPEN_LOOP, MOST_AT_ONCE, WARM_UP, Load
from langshift.retrieval.options import FiniteRange, setting_options

if TYPE_CHECKING:
    from langshift.plugin.query_shift import ShiftQueries
    from langshift.retrieval.wanted import Setting

_FOLDER = click.Path(path_type=Path)


@click.command("replay")
@click.argument("dataset", type=_FOLDER, required=False)
@click.option(
    "--index", "names", required=True, multiple=True, metavar="NAME", help="The index to search; again for more."
)
@setting_options
@click.option(
    "--measures", metavar="NAMES", help="Measures, such as 'nDCG@20 TLR@20 LPR'; see langshift evaluate score."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, MOST_AT_ONCE),
    metavar="N",
    help="Queries under way at once: 1 if not given; with --rate or --log "
    f"the most that may be, {AT_ONCE_IN_OPEN_LOOP} if not given.",
)
@click.option(
    "--rate",
    type=FiniteRange(0, 10_000, min_open=True),
    metavar="R",
    help="Send R queries a second at random moments, whether or not others are answered.",
)
@click.option("--log", type=_FOLDER, metavar="FILE", help="Send the queries of a log, when they came.")
@click.option(
    "--speed",
    type=FiniteRange(0, 1_000_000, min_open=True),
    metavar="S",
    help="Send a log so many times as fast; 1 if not given.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(0, 10_000),
    default=WARM_UP,
    show_default=True,
    metavar="N",
    help="Queries that each index gets first, uncounted.",
)
@click.option("--output", type=_FOLDER, metavar="FOLDER", help="Write run.trec, per-query.jsonl and result.json here.")
@click.option("--resume", is_flag=True, help="Go on with a replay that was cut off: send what --output lacks.")
@SHIFT_QUERIES
@index_encoder_options
@JSON
def replay_command(
    dataset: Path | None,
    names: tuple[str, ...],
    setting: Setting,
    measures: str | None,
    concurrency: int | None,
    rate: float | None,
    log: Path | None,
    speed: float | None,
    warm_up: int,
    output: Path | None,
    resume: bool,
    shift_queries: ShiftQueries,
    encoder: str | None,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Send every query of DATASET to the cluster, and score the answers.

    DATASET is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv. The best 100 documents
    are asked for. Without --output nothing is written.

    \b
    TLR@20 is the recall of relevant documents in other languages than the query's,
    SLR@20 of those in the query's own language.

    Closed loop (the usual): --concurrency users, each of whom asks again as soon as the last query is
    answered. Open loop (--rate, --log): queries are sent when they are due. Arrivals of --rate are a
    Poisson process, the same in every replay. A query's wall time then counts from when it was due, also
    where it had to wait for others (no coordinated omission). In closed loop it counts from sending, and
    wall_corrected shows what queries that kept coming would have met.

    Several --index get every query, in turn first, under the same load; the cluster then bears --rate or
    the log's rate once for each. Their answers are compared: overlap (RBO, Jaccard@20), and each
    language's share of the first 20. Files go to FOLDER/NAME, the comparison to FOLDER/drift.json.

    The language of a query that names none is detected among all languages, and left open where that is not
    clear; langshift search always takes one of the index's own.

    A log has a JSON object on each line with timestamp (ISO 8601, or seconds since 1970) and text, and
    perhaps language and _id. DATASET may be left out; with it, queries are judged by their _id.

    With --output, answers are kept as they come; a replay that was cut off is marked "complete": false in
    result.json, and --resume sends what is missing. Where the dataset has translation groups, the scores
    of every translation of the passage sought are written to group-scores.jsonl, from which LPR is made.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh --no-language
      langshift ingest xquad8/corpus.jsonl --index xquad
      langshift evaluate replay xquad8 --index xquad --output results/xquad
      langshift evaluate replay xquad8 --index xquad --mode hybrid --prefer-language .02
      langshift evaluate replay xquad8 --index plain --index shifted --rate 20
      langshift evaluate replay --log queries.jsonl --speed 2 --index plain --index shifted
    """
    from langshift.commands.replay_command import Options, run
    from langshift.retrieval.opening import SearchOptions

    if len(set(names)) < len(names):
        raise UsageError("--index names an index twice: name each once.")
    if rate is not None and log is not None:
        raise UsageError("--rate and --log both say when queries are sent: give one of them.")
    if speed is not None and log is None:
        raise UsageError("--speed is for a log: give one with --log.")
    if resume and output is None:
        raise UsageError("--resume goes on with what is in a folder: name it with --output.")
    if log is not None and speed is None:
        speed = 1.0
    usual = 1 if rate is None and log is None else AT_ONCE_IN_OPEN_LOOP
    load = Load(concurrency or usual, rate, speed, warm_up)
    run(
        Options(
            folder=dataset,
            names=names,
            setting=setting,
            load=load,
            log=log,
            measures=measures,
            output=output,
            resume=resume,
            search=SearchOptions(encoder, trust_remote_code, shift_queries),
            as_json=as_json,
        )
    )

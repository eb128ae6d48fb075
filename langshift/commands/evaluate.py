"""The commands ``evaluate replay``, ``evaluate modes`` and ``evaluate score``, and ``demo``'s options."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from opensearchpy import OpenSearch

from langshift.client import address, make_client, open_cluster
from langshift.commands.compare import compare, report
from langshift.commands.offline import offline, sweep
from langshift.commands.options import JSON, SHIFT_QUERIES, index_encoder_options
from langshift.debias.encoders import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare.comparison import compare_settings
from langshift.evaluate.compare.findings import settings_document
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset, load_dataset
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.replay.journal import ReplayJournal
from langshift.evaluate.replay.overlap import Drifts, drifts
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, check_resume, folders_of, open_journals, read_log
from langshift.evaluate.replay.replay import ReplayResult, failures, replay_all
from langshift.evaluate.replay.requests import AT_ONCE_IN_OPEN_LOOP, MOST_AT_ONCE, WARM_UP, LoadProfile
from langshift.evaluate.replay.result import check_output, result, server_version, write_files
from langshift.evaluate.report.run_tables import show_drifts, show_replay, show_settings
from langshift.evaluate.runs import parse_names
from langshift.files import write_json
from langshift.output import emit_json, heading, note, progress
from langshift.parameters import FiniteRange
from langshift.retrieval.searcher import USUAL_OPTIONS, Searcher, SearchOptions
from langshift.retrieval.settings import MODES, SearchSettings, format_settings, read_setting, setting_options
from langshift.retrieval.settings import USUAL as USUAL_SETTING
from langshift.settings import Settings

if TYPE_CHECKING:
    from langshift.evaluate.measures.base import MeasureTable
    from langshift.evaluate.runs import ScoredRun
    from langshift.plugin.stored_shift import ShiftQueries


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
    from langshift.retrieval.searcher import SearchOptions

    if len(set(names)) < len(names):
        raise UsageError("--index names an index twice: name each once.")
    search = SearchOptions(encoder, trust_remote_code, shift_queries)
    run_modes(ModesOptions(dataset, names, settings, measures, output, search, as_json=as_json))


DRIFT = "drift.json"
_CONNECTIONS = 16
"""What one client keeps open."""


@dataclass(frozen=True)
class ReplayCommandOptions:
    """The command's options.

    Attributes:
        folder: the dataset; None for a log without judgements.
        names: the indices.
        setting: how to search.
        load: how to send.
        log: a log of queries, or None.
        measures: names of measures as given, or None.
        output: where to write, or None.
        resume: whether to go on with what was cut off.
        search: how the indices are opened.
        as_json: whether to print JSON.
    """

    folder: Path | None
    names: Sequence[str]
    setting: SearchSettings = USUAL_SETTING
    load: LoadProfile = field(default_factory=LoadProfile)
    log: Path | None = None
    measures: str | None = None
    output: Path | None = None
    resume: bool = False
    search: SearchOptions = USUAL_OPTIONS
    as_json: bool = False


def run_replay(options: ReplayCommandOptions) -> None:
    """Replay a dataset or a log, print the figures, and write the files if asked to.

    Its steps: read (``_read``), detect languages, encode and prepare (``ReplayPlan.of``), send and score
    (``replay_all``), write (``_write``).

    Raises:
        LangshiftError: queries failed; the figures are printed and written all the same.
    """
    dataset, replay_options = _read(options)
    if options.output is not None:
        check_output(options.output)
        check_resume(options.output, options.names, resume=options.resume)
    client = open_cluster()
    server = server_version(client)
    opened: dict[str, Encoder] = {}
    searchers = [Searcher(client, name, options.search, opened) for name in options.names]
    found = replay_with_bars(client, searchers, dataset, replay_options, options.output)
    documents = [result(one, server) for one in found]
    compared = drifts(client, found) if len(found) > 1 and all(one.complete for one in found) else []
    if options.output is not None:
        _write(options.output, found, documents, compared)
    _print_replays(found, documents, compared, options)
    troubles = [
        (f"{one.index}: " if len(found) > 1 else "") + failures(one, resumable=options.output is not None)
        for one in found
        if one.failed
    ]
    if troubles:
        raise LangshiftError(" ".join(troubles))


def _read(options: ReplayCommandOptions) -> tuple[Dataset, ReplayOptions]:
    """The dataset and the plan, checked before the cluster is asked anything."""
    log = None if options.log is None else read_log(options.log)
    if options.folder is not None:
        dataset = load_dataset(options.folder)
    elif options.log is not None:
        dataset = Dataset(options.log, {}, (), {})
    else:
        raise UsageError("There is nothing to replay: name a DATASET, a log with --log, or both.")
    names = None
    if options.measures is not None:
        if not dataset.qrels:
            raise UsageError("--measures needs judgements: name the DATASET that the log's queries are from.")
        names = parse_names(options.measures, dataset)
    wanted = options.output is not None or "LPR" in (names or ())
    return dataset, ReplayOptions([options.setting], options.load, names, log, group_scores=wanted)


def replay_with_bars(
    client: OpenSearch,
    searchers: Sequence[Searcher],
    dataset: Dataset,
    options: ReplayOptions,
    output: Path | None = None,
) -> list[ReplayResult]:
    """Encode, open the journals, and send, with progress bars.

    Args:
        client: the cluster.
        searchers: over the indices.
        dataset: queries and judgements.
        options: how to replay.
        output: the folder of the journals; None keeps none.
    """
    total = len(dataset.queries if options.log is None else options.log)
    encoded = any(setting.needs_vector for setting in options.settings)
    with progress() as bars, ExitStack() as journals:
        encoding = bars.add_task("Encoding queries", total=total, rate="", visible=encoded)
        replay_plan = ReplayPlan.of(searchers, dataset, options, on_batch=lambda done: bars.advance(encoding, done))
        bars.update(encoding, completed=total)
        opened: list[ReplayJournal] = []
        if output is not None:
            opened = open_journals(output, replay_plan, options)
            for journal in opened:
                journals.enter_context(journal)
        names = ", ".join(searcher.index.name for searcher in searchers)
        searching = bars.add_task(f"Searching {names}", total=len(replay_plan.requests), rate="")
        clients = load_clients(client, options.load.concurrency)
        try:
            return replay_all(clients, replay_plan, options, journals=opened, on_answer=lambda: bars.advance(searching))
        except KeyboardInterrupt:
            if opened:
                note("What was answered is kept: the same command with --resume sends the rest.")
            raise


def load_clients(client: OpenSearch, concurrency: int) -> list[OpenSearch]:
    """Clients of the same cluster for so many queries at once, which try nothing twice: every failure counts."""
    settings = Settings.from_env()
    return [make_client(settings, address(client), retries=0) for _ in range(0, concurrency, _CONNECTIONS)]


def _write(output: Path, found: Sequence[ReplayResult], documents: Sequence[dict[str, Any]], compared: Drifts) -> None:
    """Write each index's files, then say that those which are complete are finished."""
    folders = folders_of(output, [one.index for one in found])
    for folder, one, document in zip(folders, found, documents, strict=True):
        write_files(folder, one, document)
    if compared:
        write_json(output / DRIFT, {"drift": [one.to_dict() for one in compared]})
    for folder, one in zip(folders, found, strict=True):
        if one.complete:
            ReplayJournal.finish(folder)


def _print_replays(
    found: Sequence[ReplayResult], documents: Sequence[dict[str, Any]], compared: Drifts, options: ReplayCommandOptions
) -> None:
    for one in found:
        for warning in one.warnings:
            note(f"Warning: {warning}" if len(found) == 1 else f"Warning: {one.index}: {warning}")
    if options.as_json:
        several = {"indices": {one.index: document for one, document in zip(found, documents, strict=True)}}
        drift = {"drift": [one.to_dict() for one in compared]}
        emit_json(documents[0] if len(found) == 1 else several | drift)
        return
    for one, document in zip(found, documents, strict=True):
        show_replay(one, document)
    show_drifts(compared)
    if options.output is not None:
        note(f"Wrote run.trec, per-query.jsonl and result.json to {options.output}.")


USUAL_SETTINGS = [
    *(SearchSettings(mode) for mode in MODES),
    SearchSettings(preference=0.02),
    SearchSettings(preference=-0.02),
]
MEASURES = ("nDCG@20", "TLR@20", "SLR@20", "LPR", "Lang_nDCG@20", "Top1")


@dataclass(frozen=True)
class ModesOptions:
    """The command's options.

    Attributes:
        folder: the dataset.
        names: the indices.
        settings: as they were given; none for the usual ones.
        measures: names of measures as given, or None.
        output: where to write, or None.
        search: how the indices are opened.
        as_json: whether to print JSON.
    """

    folder: Path
    names: Sequence[str]
    settings: Sequence[str]
    measures: str | None
    output: Path | None
    search: SearchOptions
    as_json: bool


def run_modes(options: ModesOptions) -> None:
    """Replay a dataset in every setting, print the table, and write the files if asked to.

    Raises:
        LangshiftError: queries failed; the figures are printed and written all the same.
    """
    settings = _settings(options.settings)
    dataset = load_dataset(options.folder)
    names = _measures(options.measures, dataset)
    if options.output is not None:
        check_output(options.output)
    client = open_cluster()
    server = server_version(client)
    opened: dict[str, Encoder] = {}
    searchers = [Searcher(client, name, options.search, opened) for name in options.names]
    wanted = options.output is not None or "LPR" in names
    found = replay_with_bars(client, searchers, dataset, ReplayOptions(settings, measures=names, group_scores=wanted))
    comparison = compare_settings(dataset, found)
    for row in comparison.rows:
        for warning in row.replay.warnings:
            note(f"Warning: {row.name}: {warning}")
    if options.output is not None:
        for row in comparison.rows:
            write_files(options.output / row.folder, row.replay, result(row.replay, server))
    if options.as_json:
        emit_json(settings_document(comparison))
    else:
        show_settings(comparison)
    if options.output is not None:
        note(f"Wrote a folder for each row to {options.output}: {', '.join(row.folder for row in comparison.rows)}.")
    troubles = [f"{row.name}: {failures(row.replay)}" for row in comparison.rows if row.replay.failed]
    if troubles:
        raise LangshiftError(" ".join(troubles))


def _settings(given: Sequence[str]) -> list[SearchSettings]:
    """The settings, the usual ones where none are given.

    Raises:
        UsageError: one that is none, or that is there twice.
    """
    found: list[SearchSettings] = []
    for text in given:
        setting = read_setting(text)
        if setting in found:
            raise UsageError(
                f"--setting {text!r} is {format_settings(setting)!r}, which is there already: give each once."
            )
        found.append(setting)
    return found or list(USUAL_SETTINGS)


def _measures(given: str | None, dataset: Dataset) -> list[str]:
    if given is not None:
        return parse_names(given, dataset)
    # Those that compare languages are refused where documents were judged per language.
    alone = dataset.judged == PER_LANGUAGE
    return [name for name in MEASURES if not (alone and parse_measure(name).family.across)]


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
    setting: SearchSettings,
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
    from langshift.retrieval.searcher import SearchOptions

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
    load = LoadProfile(concurrency or usual, rate, speed, warm_up)
    run_replay(
        ReplayCommandOptions(
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


@click.command("score")
@click.argument("run", type=_FOLDER)
@click.option("--dataset", type=_FOLDER, required=True, metavar="FOLDER", help="The dataset that was searched.")
@click.option(
    "--measures",
    metavar="NAMES",
    help="Measures, such as 'nDCG@20 TLR@20'; nDCG, R, TLR and SLR at 20 if not given, and LPR where it can be had.",
)
@JSON
def score(run: Path, dataset: Path, measures: str | None, as_json: bool) -> None:
    """Score RUN, a TREC run of any retriever.

    Ties break as trec_eval breaks them; the rank column is not used. A query without answer counts 0,
    and a query without relevant document is left out.

    \b
    Known measures: nDCG@k R@k P@k AP RR Judged@k and others of ir_measures, such as Success@k;
      TLR@k   recall of relevant documents in other languages than the query's
      SLR@k   recall of those in the query's language
      TR@k    recall by document language, as a matrix
      LPR     how often the query's language has the best score among all translations; needs
              group-scores.jsonl beside RUN, which replay and offline write
      Lang_nDCG@k, also as Lang_nDCG(same=3,other=1)@k; Top1, the first document in four ways
      PEER, PSI@k, Share@k, Entropy@k, JS@k and KL@k

    \b
    Example:
      langshift evaluate score results/plain/run.trec --dataset xquad8 --measures 'nDCG@20 TLR@20 TR@20'
    """
    from langshift import output
    from langshift.evaluate.runs import document, score_run

    found = score_run(run, dataset, measures)
    for warning in found.warnings:
        output.note(f"Warning: {warning}")
    if as_json:
        output.emit_json(document(found))
    else:
        show(found)


def show(found: ScoredRun) -> None:
    """Print the measures, by query language where there are several, and the matrices of those that have one."""
    from langshift import output
    from langshift.evaluate.measures import parse_measure
    from langshift.evaluate.runs import by_language
    from langshift.output import format_score

    heading(f"{found.path}: {found.answered:,} of {len(found.dataset.queries):,} queries answered")
    rows = [
        [
            name,
            format_score(scores.mean),
            parse_measure(name).family.direction,
            f"{scores.queries:,}",
            f"{scores.left_out:,}",
        ]
        for name, scores in found.scores.items()
    ]
    columns = ["measure", "mean", "good is", "queries", "left out"]
    output.table(None, columns, rows, right={"mean", "queries", "left out"})
    languages = by_language(found.scores, found.languages.queries)
    if len(languages) > 1:
        heading("\nBy query language")
        rows = [[tag, *(format_score(scores.mean) for scores in part.values())] for tag, part in languages.items()]
        output.table(None, ["language", *found.scores], rows, right=set(found.scores))
    for name, scores in found.scores.items():
        if scores.table is not None:
            heading(f"\n{name}: {scores.table.rows} down, {scores.table.columns} across")
            _show_table(scores.table)


def _show_table(table: MeasureTable) -> None:
    from langshift import output
    from langshift.output import format_score

    heads = table.heads
    rows = [
        [row, *(format_score(cells[head].mean if head in cells else None, 3) for head in heads)]
        for row, cells in table.cells.items()
    ]
    output.table(None, ["", *heads], rows, right=set(heads))


@click.group()
def evaluate() -> None:
    """Measure an index on the live cluster.

    \b
    Example:
      langshift evaluate replay DATASET --index news
    """


evaluate.add_command(replay_command)
evaluate.add_command(modes)
evaluate.add_command(score)
evaluate.add_command(offline)
evaluate.add_command(sweep)
evaluate.add_command(compare)
evaluate.add_command(report)


@click.command()
@click.option(
    "--output",
    type=_FOLDER,
    metavar="FOLDER",
    help="Write the runs of both indices and the report here.  [default: results/demo in LANGSHIFT_HOME]",
)
@JSON
def demo(output: Path | None, as_json: bool) -> None:
    """Index the bundled corpus twice, without and with the shift, and show what changes.

    The corpus is 44 topics in 12 languages with two questions each in every language. It is written
    to the indices langshift-demo-plain and langshift-demo-shifted, which are replaced. In the end there is a report
    on both (its page is `report` of the JSON document, null without the extra console), and `langshift serve`
    searches them side by side.

    \b
    Example:
      langshift demo
    """
    from langshift.commands.serve import run

    run(output, as_json=as_json)

"""The commands of ``evaluate``: ``replay``, ``modes`` and ``score`` are here."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from opensearchpy import OpenSearch

from langshift.client import address, make_client, open_cluster
from langshift.commands.compare import compare, report
from langshift.commands.laura import laura
from langshift.commands.offline import offline, sweep
from langshift.commands.rag import rag
from langshift.debias.encoders import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate import runs
from langshift.evaluate.compare.comparison import compare_settings
from langshift.evaluate.compare.findings import settings_document
from langshift.evaluate.compare.verdict import Verdict, of_replays
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset, load_dataset
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.most_shown import format_figure
from langshift.evaluate.replay.journal import ReplayJournal
from langshift.evaluate.replay.overlap import Drifts, drifts
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, check_resume, folders_of, open_journals, read_log
from langshift.evaluate.replay.replay import ReplayResult, failures, replay_all
from langshift.evaluate.replay.requests import AT_ONCE_IN_OPEN_LOOP, MOST_AT_ONCE, WARM_UP, LoadProfile
from langshift.evaluate.replay.result import check_output, result, server_version, write_files
from langshift.evaluate.report.run_tables import show_drifts, show_positions, show_replay, show_settings
from langshift.files import write_json
from langshift.output import emit_json, heading, line, note, progress, table, warn
from langshift.parameters import PATH, Command, CommandGroup, FiniteRange, flag, json_or_tables, option
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import (
    MODES,
    SearchOptions,
    SearchSettings,
    format_settings,
    read_setting,
    search_options,
    setting_options,
)
from langshift.settings import Settings
from langshift.wording import format_score

_INDICES = option("--index NAME", "The index to search; can be repeated.", dest="names", required=True, multiple=True)


@click.command("modes", cls=Command)
@click.argument("dataset", type=PATH)
@_INDICES
@option(
    "--setting SETTING",
    "A mode and options of langshift search, such as 'hybrid --prefer-language .02'; can be repeated. "
    "[default: every mode, dense first, and dense with a preference and with a spread of .02]",
    dest="settings",
    multiple=True,
)
@option(
    "--measures NAMES",
    "Measures. [default: nDCG@20 TLR@20 SLR@20 LPR Lang_nDCG@20 Top1]",
)
@option("--output FOLDER", "Write a folder for each row here, as evaluate replay does.")
@search_options
@json_or_tables
def modes(
    dataset: Path,
    names: tuple[str, ...],
    settings: tuple[str, ...],
    measures: str | None,
    output: Path | None,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Send every query of DATASET in several settings, and compare the settings in one table.

    The settings take turns at each query, one query at a time, so that their latencies are measured under the
    same conditions. Each row is a setting, or a setting and an index if there are several. Every row is tested
    against the first, corrected for the number of tests. Tables of all differences follow, separately for
    queries with and without an answer in the searcher's language.

    \b
    Example:
      langshift evaluate modes xquad8 --index plain --index shifted --setting dense \\
        --setting 'dense --prefer-language .02' --setting 'hybrid --fusion rrf' --output results
      langshift evaluate compare results/plain-dense results/shifted-dense
    """
    if len(set(names)) < len(names):
        raise UsageError("--index names an index twice: the indices must be unique.")
    parsed = _settings(settings)
    data = load_dataset(dataset)
    chosen = _measures(measures, data)
    if output is not None:
        check_output(output)
    client = open_cluster()
    server = server_version(client)
    opened: dict[str, Encoder] = {}
    searchers = [Searcher(client, name, search, opened) for name in names]
    wanted = output is not None or "LPR" in chosen
    found = replay_with_bars(client, searchers, data, ReplayOptions(parsed, measures=chosen, group_scores=wanted))
    comparison = compare_settings(data, found)
    for row in comparison.rows:
        warn(f"{row.name}: {warning}" for warning in row.replay.warnings)
    if output is not None:
        for row in comparison.rows:
            write_files(output / row.folder, row.replay, result(row.replay, server))
    if as_json:
        emit_json(settings_document(comparison))
    else:
        show_settings(comparison)
    if output is not None:
        note(f"Wrote a folder for each row to {output}: {', '.join(row.folder for row in comparison.rows)}.")
    _raise(f"{row.name}: {failures(row.replay)}" for row in comparison.rows if row.replay.failed)


def _raise(troubles: Iterable[str]) -> None:
    if text := " ".join(troubles):
        raise LangshiftError(text)


# What one client keeps open.
_CONNECTIONS = 16


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
        opened = [] if output is None else open_journals(output, replay_plan, options)
        for journal in opened:
            journals.enter_context(journal)
        names = ", ".join(searcher.index.name for searcher in searchers)
        searching = bars.add_task(f"Searching {names}", total=len(replay_plan.requests), rate="")
        clients = load_clients(client, options.load.concurrency)
        try:
            return replay_all(clients, replay_plan, options, journals=opened, on_answer=lambda: bars.advance(searching))
        except KeyboardInterrupt:
            if opened:
                note("The answers so far are saved: run the same command with --resume to send the rest.")
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
        write_json(output / "drift.json", {"drift": [one.to_dict() for one in compared]}, private=True)
    for folder, one in zip(folders, found, strict=True):
        if one.complete:
            ReplayJournal.finish(folder)


def _print_replays(
    found: Sequence[ReplayResult],
    documents: Sequence[dict[str, Any]],
    compared: Drifts,
    verdicts: Sequence[Verdict],
    *,
    as_json: bool,
) -> None:
    for one in found:
        warn(warning if len(found) == 1 else f"{one.index}: {warning}" for warning in one.warnings)
    if as_json:
        several = {"indices": {one.index: document for one, document in zip(found, documents, strict=True)}}
        drift = {"drift": [one.to_dict() for one in compared]}
        pairs = zip(compared, verdicts, strict=True)
        said = [{"before": one.before, "after": one.after, **verdict.to_dict()} for one, verdict in pairs]
        emit_json(documents[0] if len(found) == 1 else {**several, **drift, "verdicts": said})
        return
    for one, document in zip(found, documents, strict=True):
        show_replay(one, document)
    show_positions({one.index: one.scores for one in found})
    show_drifts(compared)
    for verdict in verdicts:
        line(f"\n{verdict.sentence}")


MEASURES = ("nDCG@20", "TLR@20", "SLR@20", "LPR", "Lang_nDCG@20", "Top1")


def _settings(given: Sequence[str]) -> list[SearchSettings]:
    """The settings, the usual ones where none are given.

    Raises:
        UsageError: one that is none, or that is there twice.
    """
    found: list[SearchSettings] = []
    for text in given:
        setting = read_setting(text)
        if setting in found:
            usual = format_settings(setting)
            raise UsageError(f"--setting {text!r} means {usual!r}, which is already given: settings must be unique.")
        found.append(setting)
    # What every row is tested against comes first: dense, and auto behind what it may stand for.
    modes = [*MODES[1:], MODES[0]]
    return found or [*map(SearchSettings, modes), SearchSettings(preference=0.02), SearchSettings(preference=-0.02)]


def _measures(given: str | None, dataset: Dataset) -> list[str]:
    if given is not None:
        return runs.parse_names(given, dataset)
    # Those that compare languages are refused where documents were judged per language.
    alone = dataset.judged == PER_LANGUAGE
    return [name for name in MEASURES if not (alone and parse_measure(name).family.across)]


@click.command("replay", cls=Command)
@click.argument("dataset", type=PATH, required=False)
@_INDICES
@setting_options("dense")
@option("--measures NAMES", "Measures, such as 'nDCG@20 TLR@20 LPR'.")
@option(
    "--concurrency N",
    f"Queries at once; with --rate or --log, at most. [default: 1; with those {AT_ONCE_IN_OPEN_LOOP}]",
    click.IntRange(1, MOST_AT_ONCE),
)
@option(
    "--rate R",
    "Send R queries a second, answered or not.",
    FiniteRange(0, 10_000, min_open=True),
)
@option("--log FILE", "Send the queries of a log at its times.")
@option("--output FOLDER", "Write run.trec, per-query.jsonl and result.json here.")
@flag("--resume", "Resume an interrupted replay in --output.")
@option("--speed S", "Send a log S times as fast.", FiniteRange(0, 1_000_000, min_open=True), rare=True)
@option("--warm-up N", "Uncounted queries sent first.", click.IntRange(0, 10_000), default=WARM_UP, rare=True)
@search_options
@json_or_tables
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
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Send every query of DATASET to the cluster, and score the answers.

    DATASET is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv; with --log it may be left out.
    Each query retrieves the best 100 documents. TLR@20 is the recall of relevant documents in other languages
    than the query's, SLR@20 of those in the query's own. Several indices take turns, and are compared.

    \b
    Example:
      langshift evaluate replay DATASET --index news --output results/news
      langshift evaluate replay DATASET --index plain --index shifted --rate 20
      langshift evaluate replay --log queries.jsonl --speed 2 --index plain --index shifted
    """
    if len(set(names)) < len(names):
        raise UsageError("--index names an index twice: the indices must be unique.")
    if rate is not None and log is not None:
        raise UsageError("--rate and --log both determine when queries are sent: give only one of them.")
    if speed is not None and log is None:
        raise UsageError("--speed only applies to a log: give one with --log.")
    if resume and output is None:
        raise UsageError("--resume continues a replay from its folder: name it with --output.")
    usual = 1 if rate is None and log is None else AT_ONCE_IN_OPEN_LOOP
    load = LoadProfile(concurrency or usual, rate, speed if log is None else speed or 1.0, warm_up)
    # Its steps: read, detect languages, encode and prepare (``ReplayPlan.of``), send and score (``replay_all``), write.
    logged = None if log is None else read_log(log, speed or 1.0)
    data, chosen = _read(dataset, log, measures)
    if output is not None:
        check_output(output)
        check_resume(output, names, resume=resume)
    client = open_cluster()
    server = server_version(client)
    opened: dict[str, Encoder] = {}
    searchers = [Searcher(client, name, search, opened) for name in names]
    scored = output is not None or "LPR" in (chosen or ())
    options = ReplayOptions([setting], load, chosen, logged, group_scores=scored)
    found = replay_with_bars(client, searchers, data, options, output)
    documents = [result(one, server) for one in found]
    compared = drifts(client, found) if len(found) > 1 and all(one.complete for one in found) else []
    verdicts = [of_replays(found[0], other, one) for other, one in zip(found[1:], compared, strict=False)]
    if output is not None:
        _write(output, found, documents, compared)
    _print_replays(found, documents, compared, verdicts, as_json=as_json)
    if output is not None and not as_json:
        note(f"Wrote run.trec, per-query.jsonl and result.json to {output}.")
    failed = [(one.index, failures(one, resumable=output is not None)) for one in found if one.failed]
    _raise(f"{index}: {text}" if len(found) > 1 else text for index, text in failed)


def _read(folder: Path | None, log: Path | None, measures: str | None) -> tuple[Dataset, list[str] | None]:
    """The dataset and the measures, as far as they are given, before the cluster is asked anything."""
    if folder is not None:
        dataset = load_dataset(folder)
    elif log is not None:
        dataset = Dataset(log, {}, (), {})
    else:
        raise UsageError("There is nothing to replay: name a DATASET, a log with --log, or both.")
    if measures is not None and not dataset.qrels:
        raise UsageError("--measures needs judgements: name the DATASET that the log's queries are from.")
    return dataset, None if measures is None else runs.parse_names(measures, dataset)


@click.command("score", cls=Command)
@click.argument("run", type=PATH)
@option("--dataset FOLDER", "The dataset that was searched.", required=True)
@option(
    "--measures NAMES",
    "Measures, such as 'nDCG@20 TLR@20'. [default: nDCG, R, TLR, SLR and MostShown at 20, and LPR if it is available]",
)
@json_or_tables
def score(run: Path, dataset: Path, measures: str | None, as_json: bool) -> None:
    """Score RUN, a TREC run of any retriever.

    Ties are broken as in trec_eval; the rank column is not used. A query without an answer counts as 0,
    and a query without a relevant document is left out.

    \b
    Known measures: nDCG@k R@k P@k AP RR Judged@k and others of ir_measures, such as Success@k;
      TLR@k   recall of relevant documents in other languages than the query's
      SLR@k   recall of those in the query's language
      TR@k    recall by document language, as a matrix
      LPR     how often the query's language has the best score among all translations; needs
              group-scores.jsonl beside RUN, which replay and offline write
      Lang_nDCG@k, also as Lang_nDCG(same=3,other=1)@k; Top1, the first document in four ways
      PSI@k and EvidenceHit@k, the place of the evidence in the document, from evidence.tsv
      MostShown@k, the share of the language that is shown most, in a table beside what is relevant
      PEER, Share@k, Entropy@k, JS@k and KL@k

    \b
    Example:
      langshift evaluate score results/plain/run.trec --dataset xquad8 --measures 'nDCG@20 TLR@20 TR@20'
    """
    found = runs.score_run(run, dataset, measures)
    warn(found.warnings)
    if as_json:
        emit_json(runs.document(found))
    else:
        show(found)


def show(found: runs.ScoredRun) -> None:
    """Print the measures, by query language where there are several, and the matrices of those that have one."""
    heading(f"{found.path}: {found.answered:,} of {len(found.dataset.queries):,} queries answered")
    rows = []
    for name, scores in found.scores.items():
        direction = parse_measure(name).family.direction
        rows.append([name, format_figure(scores), direction, f"{scores.queries:,}", f"{scores.left_out:,}"])
    columns = ["measure", "mean", "good is", "queries", "left out"]
    table(None, columns, rows, right={"mean", "queries", "left out"})
    languages = runs.by_language(found.scores, found.languages.queries)
    if len(languages) > 1:
        heading("\nBy query language")
        rows = [[tag, *(format_figure(scores) for scores in part.values())] for tag, part in languages.items()]
        table(None, ["language", *found.scores], rows, right=set(found.scores))
    for name, scores in found.scores.items():
        if scores.table is not None:
            heading(f"\n{name}: {scores.table.rows} down, {scores.table.columns} across")
            heads = scores.table.heads
            rows = [
                [row, *(format_score(cells[head].mean if head in cells else None, 3) for head in heads)]
                for row, cells in scores.table.cells.items()
            ]
            table(None, ["", *heads], rows, right=set(heads))


@click.group(cls=CommandGroup)
def evaluate() -> None:
    """Measure an index on the live cluster.

    \b
    Example:
      langshift evaluate replay DATASET --index news
    """


for command in (replay_command, modes, score, offline, sweep, rag, laura, compare, report):
    evaluate.add_command(command)

"""The command ``evaluate replay``."""

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from opensearchpy import OpenSearch

from langshift.client import address, make_client, open_cluster
from langshift.commands.log_options import log_options
from langshift.commands.run_tables import show_drifts, show_positions, show_replay, show_verdict
from langshift.commands.search_options import WITHIN, search_options
from langshift.debias.encoders.base import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate import runs
from langshift.evaluate.compare.gate import judge_live
from langshift.evaluate.compare.next_commands import NextCommand, next_commands
from langshift.evaluate.compare.verdict import Verdict
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.datasets.logs import QueryLog
from langshift.evaluate.replay import plan
from langshift.evaluate.replay.journal import ReplayJournal
from langshift.evaluate.replay.overlap import Drifts, Overlap, drifts
from langshift.evaluate.replay.replay import ReplayResult, failures, replay_all
from langshift.evaluate.replay.requests import AT_ONCE_IN_OPEN_LOOP, MOST_AT_ONCE, TOP_K, WARM_UP, LoadProfile
from langshift.evaluate.replay.result import check_output, result, server_version, write_files, write_logged
from langshift.files import write_json
from langshift.output import emit_json, line, note, progress, warn
from langshift.parameters import JSON, PATH, Command, FiniteRange, Option, flag, option
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import MOST_HITS, RECOMMENDED, SearchSettings, format_settings, read_setting
from langshift.retrieval.searcher import Searcher
from langshift.settings import Settings
from langshift.wording import program

_INDICES = option("--index NAME", "The index to search; can be repeated.", dest="names", required=True, multiple=True)


# What one client keeps open.
_CONNECTIONS = 16


def replay_with_bars(
    client: OpenSearch,
    searchers: Sequence[Searcher],
    dataset: Dataset,
    options: plan.ReplayOptions,
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
        replay_plan = plan.ReplayPlan.of(
            searchers, dataset, options, on_batch=lambda done: bars.advance(encoding, done)
        )
        bars.update(encoding, completed=total)
        opened = [] if output is None else plan.open_journals(output, replay_plan, options)
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


def _write(
    client: OpenSearch,
    folders: Sequence[Path],
    found: Sequence[ReplayResult],
    documents: Sequence[dict[str, Any]],
    output: Path,
    compared: Drifts,
    unjudged: Sequence[plan.LoggedQuery],
    log: QueryLog | None,
) -> None:
    """Write each index's files, then say that those which are complete are finished."""
    for folder, one, document in zip(folders, found, documents, strict=True):
        write_files(folder, one, document)
        if unjudged:
            write_logged(client, folder, one, unjudged, with_words=log is None or log.words_kept)
    if compared:
        write_json(output / "drift.json", {"drift": [one.to_dict() for one in compared]}, private=True)
    for folder, one in zip(folders, found, strict=True):
        if one.complete:
            ReplayJournal.finish(folder)


def _note_written(output: Path, names: Sequence[str]) -> None:
    if len(names) == 1:
        note(f"Wrote run.trec, per-query.jsonl and result.json to {output}.")
        return
    note(f"Wrote a folder for each run to {output}: {', '.join(names)}.")
    places = shlex.join(str(output / name) for name in names)
    note(f"Compare them with: {program()} evaluate compare --brief {places}")


def _print_replays(
    names: Sequence[str],
    found: Sequence[ReplayResult],
    documents: Sequence[dict[str, Any]],
    compared: Drifts,
    verdicts: Sequence[Verdict],
    *,
    as_json: bool,
) -> None:
    for name, one in zip(names, found, strict=True):
        warn(warning if len(found) == 1 else f"{name}: {warning}" for warning in one.warnings)
    if as_json:
        several = {"runs": dict(zip(names, documents, strict=True))}
        drift = {"drift": [one.to_dict() for one in compared]}
        pairs = zip(compared, verdicts, strict=True)
        said = [{"before": one.before, "after": one.after, **verdict.to_dict()} for one, verdict in pairs]
        emit_json(documents[0] if len(found) == 1 else {**several, **drift, "verdicts": said})
        return
    for one, document in zip(found, documents, strict=True):
        show_replay(one, document)
    show_positions({name: one.scores for name, one in zip(names, found, strict=True)})
    show_drifts(compared)
    for verdict in verdicts:
        line("")
        show_verdict(verdict)


def _next(
    overlap: Overlap, setting: str, log: QueryLog | None, output: Path | None, search: SearchOptions
) -> list[NextCommand]:
    """What to do where nothing is judged; a person can judge where answers differ, and queries may be written."""
    queries, judge = overlap.whole.queries, None
    if overlap.whole.rbo != 1 and (log is None or log.words_kept):
        again = "" if output else f"{runs.command().replace(' --json', '')} --output runs && "
        judge = f"{again}langshift serve --results {shlex.quote(str(output or 'runs'))}"
    return next_commands((overlap.before, overlap.after), [setting], queries, judge, search.encoder)


def _settings(given: Sequence[str], within: str | None) -> list[SearchSettings]:
    """The settings; what a search does by default where none is given, and before all others where several are.

    Args:
        given: as a person writes them.
        within: for those that name none of their own.

    Raises:
        UsageError: one that is none, or that is there twice.
    """
    found: list[SearchSettings] = []
    usual = RECOMMENDED.but(within=within)
    for text in given:
        setting = read_setting(text)
        setting = setting.but(within=setting.within or within)
        if setting in found:
            said = format_settings(setting)
            raise UsageError(f"--setting {text!r} means {said!r}, which is already given: settings must be unique.")
        found.append(setting)
    return found if len(found) == 1 else [usual, *(one for one in found if one != usual)]


@click.command("replay", cls=Command)
@click.argument("dataset", type=PATH, required=False)
@_INDICES
@click.option(
    "--setting",
    "--mode",
    "settings",
    cls=Option,
    multiple=True,
    metavar="SETTING",
    help="How to search: a mode, also with options of langshift search, such as 'hybrid --prefer-language .02', or "
    "default, which is langshift search without options; can be repeated: default then comes first. [default: default]",
)
@WITHIN
@option("--measures NAMES", "Measures, such as 'nDCG@20 TLR@20 LPR'.")
@option(
    "--concurrency N",
    f"Queries at once; with --rate or --queries, at most. [default: 1; with those {AT_ONCE_IN_OPEN_LOOP}]",
    click.IntRange(1, MOST_AT_ONCE),
)
@option("--rate R", "Send R queries a second, answered or not.", FiniteRange(0, 10_000, min_open=True))
@log_options("Send the queries of a log, at its times.", times=True)
@option("--output FOLDER", "Write run.trec, per-query.jsonl and result.json here.")
@flag("--resume", "Resume an interrupted replay in --output.")
@option("--depth N", "Documents retrieved for each query.", click.IntRange(1, MOST_HITS), default=TOP_K, rare=True)
@option("--speed S", "Send a log S times as fast.", FiniteRange(0, 1_000_000, min_open=True), rare=True)
@option("--warm-up N", "Uncounted queries sent first.", click.IntRange(0, 10_000), default=WARM_UP, rare=True)
@search_options
@JSON
def replay(
    dataset: Path | None,
    names: tuple[str, ...],
    settings: tuple[str, ...],
    within: str | None,
    measures: str | None,
    concurrency: int | None,
    rate: float | None,
    log: QueryLog | None,
    depth: int,
    speed: float | None,
    warm_up: int,
    output: Path | None,
    resume: bool,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Send every query of DATASET to the cluster, and score the answers.

    DATASET is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv; with --queries it may be left out. A log
    is JSON Lines, CSV, plain text, OpenSearch's search slow log or ubi_queries of User Behavior Insights, and is sent
    at its times where it has any. Runs of a log without DATASET can be compared, too.
    Each query retrieves the best 100 documents, or --depth. TLR@20 is the recall of relevant documents
    in other languages than the query's, SLR@20 of those in the query's own; own@3 is how often one of these is among
    the first three. Several indices and settings take turns at each query, so that their latencies are measured under
    the same conditions, and each has a folder of its own below --output. Indices are compared at once, settings by
    langshift evaluate compare.

    \b
    Example:
      langshift evaluate replay DATASET --index news --output results/news
      langshift evaluate replay DATASET --index news --setting dense --setting 'hybrid --prefer-language .02' \\
        --output results
      langshift evaluate compare --brief results/default results/dense results/hybrid-prefer-language-0.02
      langshift evaluate replay DATASET --index plain --index shifted --rate 20
      langshift evaluate replay --queries log.jsonl --speed 2 --index plain --index shifted
    """
    if len(set(names)) < len(names):
        raise UsageError("--index names an index twice: the indices must be unique.")
    if log is None and speed is not None:
        raise UsageError("--speed only applies to a log: give one with --queries.")
    if resume and output is None:
        raise UsageError("--resume continues a replay from its folder: name it with --output.")
    # Its steps: read, detect languages, encode and prepare (``ReplayPlan.of``), send and score (``replay_all``), write.
    parsed = _settings(settings, within)
    called = plan.run_names(names, parsed)
    logged = None if log is None else plan.read_log(log, speed or 1.0)
    speed = _speed(log, logged, speed, rate)
    load = LoadProfile(concurrency or (1 if rate is speed is None else AT_ONCE_IN_OPEN_LOOP), rate, speed, warm_up)
    data, chosen = _read(dataset, log, measures)
    if output is not None:
        check_output(output)
        plan.check_resume(output, called, resume=resume)
    client = open_cluster()
    server = server_version(client)
    opened: dict[str, Encoder] = {}
    searchers = [Searcher(client, name, search, opened) for name in names]
    scored = output is not None or "LPR" in (chosen or ())
    options = plan.ReplayOptions(parsed, load, chosen, logged, group_scores=scored, depth=depth)
    found = replay_with_bars(client, searchers, data, options, output)
    documents = [result(one, server) for one in found]
    # Settings are compared by their measures; of indices, how alike the answers are says something without any.
    alike = len(parsed) == 1 and len(found) > 1 and all(one.complete for one in found)
    compared = drifts(client, found) if alike else []
    sides = zip(searchers[1:], found[1:], compared, strict=False)
    verdicts = [judge_live(client, searcher, found[0], other, one, replay_with_bars) for searcher, other, one in sides]
    verdicts = [
        verdict._replace(next=_next(one, format_settings(parsed[0]), log, output, search))
        if verdict.kind == "no judgements"
        else verdict
        for one, verdict in zip(compared, verdicts, strict=True)
    ]
    if output is not None:
        unjudged = (logged or ()) if dataset is None else ()
        _write(client, plan.folders_of(output, called), found, documents, output, compared, unjudged, log)
    _print_replays(called, found, documents, compared, verdicts, as_json=as_json)
    if output is not None and not as_json:
        _note_written(output, called)
    failed = {
        name: failures(one, resumable=output is not None) for name, one in zip(called, found, strict=True) if one.failed
    }
    if failed:
        raise LangshiftError(" ".join(f"{name}: {text}" if len(found) > 1 else text for name, text in failed.items()))


def _speed(
    log: QueryLog | None, logged: Sequence[plan.LoggedQuery] | None, speed: float | None, rate: float | None
) -> float | None:
    """How much faster than it came a log is sent; None where there is none, or one without times."""
    if log is None or logged is None:
        return None
    if logged[0].time is None:
        if speed is not None:
            raise UsageError(f"{log.path} has no times for --speed: name their field by --time-field.")
        return None
    if rate is not None:
        raise UsageError(f"--rate and the times of {log.path} both determine when queries are sent: leave --rate out.")
    return speed or 1.0


def _read(folder: Path | None, log: QueryLog | None, measures: str | None) -> tuple[Dataset, list[str] | None]:
    """The dataset and the measures, as far as they are given, before the cluster is asked anything."""
    if folder is not None:
        dataset = load_dataset(folder)
    elif log is not None:
        dataset = Dataset(log.path, {}, (), {})
    else:
        raise UsageError("There is nothing to replay: name a DATASET, a log with --queries, or both.")
    if measures is not None and not dataset.qrels:
        raise UsageError("--measures needs judgements: name the DATASET that the log's queries are from.")
    return dataset, None if measures is None else runs.parse_names(measures, dataset)

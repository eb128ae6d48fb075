"""What ``langshift evaluate replay`` does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opensearchpy import OpenSearch

from langshift import console
from langshift.cluster import address, make_client, open_cluster
from langshift.debias.encoders import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.replay.asked import Asked, Plan
from langshift.evaluate.replay.drift import Drifts
from langshift.evaluate.replay.drifts import drifts
from langshift.evaluate.replay.journal import Journal
from langshift.evaluate.replay.journals import check_resume, folders_of, open_journals
from langshift.evaluate.replay.query_log import read_log
from langshift.evaluate.replay.replay import replay_all
from langshift.evaluate.replay.replayed import Replay, failures
from langshift.evaluate.replay.result import check_output, result, server_version, write_files, write_json
from langshift.evaluate.replay.schedule import Load
from langshift.evaluate.report.replay_tables import show, show_drifts
from langshift.evaluate.scoring import parse_names
from langshift.retrieval.opening import USUAL, SearchOptions
from langshift.retrieval.search import Searcher
from langshift.retrieval.wanted import USUAL as USUAL_SETTING
from langshift.retrieval.wanted import Setting
from langshift.settings import Settings
from langshift.shown import heading

DRIFT = "drift.json"
_CONNECTIONS = 16
"""What one client keeps open."""


@dataclass(frozen=True)
class Options:
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
    setting: Setting = USUAL_SETTING
    load: Load = field(default_factory=Load)
    log: Path | None = None
    measures: str | None = None
    output: Path | None = None
    resume: bool = False
    search: SearchOptions = USUAL
    as_json: bool = False


def run(options: Options) -> None:
    """Replay a dataset or a log, print the figures, and write the files if asked to.

    Raises:
        LangshiftError: queries failed; the figures are printed and written all the same.
    """
    dataset, plan = _read(options)
    if options.output is not None:
        check_output(options.output)
        check_resume(options.output, options.names, resume=options.resume)
    client = open_cluster()
    server = server_version(client)
    opened: dict[str, Encoder] = {}
    searchers = [Searcher(client, name, options.search, opened) for name in options.names]
    found = replay_with_bars(client, searchers, dataset, plan, options.output)
    documents = [result(one, server) for one in found]
    compared = drifts(client, found) if len(found) > 1 and all(one.complete for one in found) else []
    if options.output is not None:
        _write(options.output, found, documents, compared)
    _tell(found, documents, compared, options)
    troubles = [
        (f"{one.index}: " if len(found) > 1 else "") + failures(one, resumable=options.output is not None)
        for one in found
        if one.failed
    ]
    if troubles:
        raise LangshiftError(" ".join(troubles))


def _read(options: Options) -> tuple[Dataset, Plan]:
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
    return dataset, Plan([options.setting], options.load, names, log, group_scores=wanted)


def replay_with_bars(
    client: OpenSearch, searchers: Sequence[Searcher], dataset: Dataset, plan: Plan, output: Path | None = None
) -> list[Replay]:
    """Encode, open the journals, and send, with progress bars.

    Args:
        client: the cluster.
        searchers: over the indices.
        dataset: queries and judgements.
        plan: how to replay.
        output: the folder of the journals; None keeps none.
    """
    total = len(dataset.queries if plan.log is None else plan.log)
    encoded = any(setting.needs_vector for setting in plan.settings)
    with console.progress() as bars, ExitStack() as journals:
        encoding = bars.add_task("Encoding queries", total=total, rate="", visible=encoded)
        asked = Asked.of(searchers, dataset, plan, on_batch=lambda done: bars.advance(encoding, done))
        bars.update(encoding, completed=total)
        opened: list[Journal] = []
        if output is not None:
            opened = open_journals(output, asked, plan)
            for journal in opened:
                journals.enter_context(journal)
        names = ", ".join(searcher.index.name for searcher in searchers)
        searching = bars.add_task(f"Searching {names}", total=len(asked.requests), rate="")
        clients = load_clients(client, plan.load.concurrency)
        try:
            return replay_all(clients, asked, plan, journals=opened, on_answer=lambda: bars.advance(searching))
        except KeyboardInterrupt:
            if opened:
                console.note("What was answered is kept: the same command with --resume sends the rest.")
            raise


def load_clients(client: OpenSearch, concurrency: int) -> list[OpenSearch]:
    """Clients of the same cluster for so many queries at once, which try nothing twice: every failure counts."""
    settings = Settings.from_env()
    return [make_client(settings, address(client), retries=0) for _ in range(0, concurrency, _CONNECTIONS)]


def _write(output: Path, found: Sequence[Replay], documents: Sequence[dict[str, Any]], compared: Drifts) -> None:
    """Write each index's files, then say that those which are complete are finished."""
    folders = folders_of(output, [one.index for one in found])
    for folder, one, document in zip(folders, found, documents, strict=True):
        write_files(folder, one, document)
    if compared:
        write_json(output / DRIFT, {"drift": [one.to_dict() for one in compared]})
    for folder, one in zip(folders, found, strict=True):
        if one.complete:
            Journal.finish(folder)


def _tell(found: Sequence[Replay], documents: Sequence[dict[str, Any]], compared: Drifts, options: Options) -> None:
    for one in found:
        for warning in one.warnings:
            console.note(f"Warning: {warning}" if len(found) == 1 else f"Warning: {one.index}: {warning}")
    if options.as_json:
        several = {"indices": {one.index: document for one, document in zip(found, documents, strict=True)}}
        drift = {"drift": [one.to_dict() for one in compared]}
        console.emit_json(documents[0] if len(found) == 1 else several | drift)
        return
    for one, document in zip(found, documents, strict=True):
        show(one, document)
    show_drifts(compared)
    if options.output is not None:
        console.note(f"Wrote run.trec, per-query.jsonl and result.json to {options.output}.")

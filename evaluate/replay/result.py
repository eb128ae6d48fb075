"""What a replay leaves behind: ``result.json``, ``run.trec``, ``per-query.jsonl`` and ``group-scores.jsonl``."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from opensearchpy import OpenSearch

from langshift.client import cluster_version
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import UsageError
from langshift.evaluate import runs
from langshift.evaluate.datasets.dataset import Dataset, identity
from langshift.evaluate.datasets.texts import beginnings
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.replay.journal import FOUND_DOCUMENTS, LOGGED_QUERIES, RESULT, unfinished
from langshift.evaluate.replay.load_generator import Percentiles, corrected, percentiles
from langshift.evaluate.replay.plan import LoggedQuery
from langshift.evaluate.replay.replay import GroupScores, ReplayResult
from langshift.evaluate.replay.requests import QueryResult
from langshift.files import json_lines, write_bytes, write_json
from langshift.retrieval.calibration.stored import requested
from langshift.retrieval.request import format_settings

RUN = "run.trec"
#: So many of the failed queries are named in ``result.json``; ``per-query.jsonl`` has them all.
MOST_NAMED = 100
#: A query that is sent so long after it was due had to wait for another one: the load was not kept up.
LATE_MS = 10.0


def result(replay: ReplayResult, server: str) -> dict[str, Any]:
    """The content of ``result.json``.

    Args:
        replay: what was found.
        server: the version of OpenSearch.
    """
    chosen = replay.chosen or requested(replay.setting)
    return {
        "complete": replay.complete,
        "index": replay.index,
        "version": replay.version,
        "mode": chosen.setting.mode,
        "mode_from": chosen.origin,
        "mode_reason": chosen.reason,
        "setting": to_builtins(replay.setting),
        "resolved": to_builtins(chosen.setting),
        "trust": None if replay.trust is None else {**replay.trust.to_dict(), "calibrated": replay.trust.calibrated},
        "top_k": replay.depth,
        **runs.summary(replay.scores, asked=len(replay.answers)),
        "by_language": runs.summary_by_language(replay.scores, replay.languages),
        **runs.summary_by_value(replay.setting.within, replay.scores, replay.values),
        "latency_ms": latency(replay),
        "load": load(replay),
        "errors": len(replay.failed),
        "failed": {answer.query: answer.error for answer in replay.failed[:MOST_NAMED]},
        "unread": dict(replay.unread),
        "warnings": list(replay.warnings),
        "dataset": identity(replay.dataset) if replay.dataset and replay.dataset.documents else None,
        **provenance(replay.fingerprint, server),
    }


def provenance(fingerprint: Fingerprint, server: str | None) -> dict[str, Any]:
    """What made the figures, as it stands in ``result.json``.

    Args:
        fingerprint: what made the vectors.
        server: the version of OpenSearch; None where none was asked.
    """
    encoder = f"{fingerprint.encoder} {fingerprint.revision}"
    return {
        "fingerprint": fingerprint.to_dict(),
        "versions": {"opensearch": server, **runs.versions(), "encoder": encoder},
        "command": runs.command(),
    }


def latency(replay: ReplayResult) -> dict[str, Percentiles]:
    """Percentiles of the queries that were answered, in milliseconds.

    ``took`` is the server's own figure, that of all steps of a search together. ``wall`` is the time until
    the client had the whole answer, with what it works out between the steps: in open loop from when the
    query was due, so that nothing is left out of it when queries wait for each other, and ``service`` is
    the part of it since sending; in closed loop from sending, and ``wall_corrected`` adds the queries that
    would have come while one was waited for.
    """
    answered = [answer for answer in replay.answers if answer.took is not None and answer.wall is not None]
    walls = [answer.wall or 0.0 for answer in answered]
    times = {"took": percentiles(answer.took or 0.0 for answer in answered), "wall": percentiles(walls)}
    if replay.load.open_loop:
        services = (wall - answer.waited for wall, answer in zip(walls, answered, strict=True))
        return times | {"service": percentiles(services)}
    return times | {"wall_corrected": corrected(walls)}


def load(replay: ReplayResult) -> dict[str, Any]:
    """How the queries were sent, and how that went."""
    sending = replay.sending
    return {
        **replay.load.to_dict(),
        "seconds": round(sending.seconds, 3),
        "throughput": sending.throughput,
        "sent_late": sum(answer.waited > LATE_MS for answer in replay.answers),
        "kept": sending.answered_earlier,
        "sent_again": sending.sent_again,
    }


def check_output(folder: Path, option: str = "--output") -> None:
    """Refuse a place that cannot be written to, before any work is done.

    Args:
        folder: the place.
        option: the option that names it.

    Raises:
        UsageError: it is a file, or the folder above it may not be written to.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder for {option}.")
    above = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"{folder} cannot be written: {above} is not a writable folder. Name another {option}.")


def write_files(folder: Path, replay: ReplayResult, document: Mapping[str, Any]) -> None:
    """Write the files, each whole or not at all; those of an earlier replay are replaced.

    ``per-query.jsonl`` stays as it is where it is the journal of a replay that is to be gone on with.
    """
    rows = per_query(replay.answers, replay.languages, replay.scores, waited=replay.load.open_loop)
    rows = searched(rows, replay.values, replay.dataset)
    tag = f"{replay.index} {format_settings(replay.setting)}"
    journal = unfinished(folder) and not replay.complete
    write_run(folder, document, replay.answers, None if journal else rows, replay.group_scores, tag)


#: Of so many first documents the language is known without judgements, and of so many the beginning is shown.
LANGUAGES_OF, BEGINNINGS_OF = 20, 10


def write_logged(
    client: OpenSearch, folder: Path, replay: ReplayResult, log: Sequence[LoggedQuery], *, with_words: bool
) -> None:
    """Write what a comparison without judgements shows of a replay; for the owner alone, as all files of a run.

    Args:
        client: the cluster.
        folder: where the other files are.
        replay: a replay without judgements.
        log: what was asked.
        with_words: whether the words of queries may be written.

    Raises:
        ClusterError: the cluster does not give the beginnings of documents.
    """
    queries = [
        {"_id": query.id, **({"text": query.text} if with_words else {}), "language": replay.languages[query.id]}
        for _, query in log
    ]
    write_bytes(folder / LOGGED_QUERIES, json_lines(queries), private=True)
    shown = [[name for name, _ in answer.hits[:LANGUAGES_OF]] for answer in replay.answers]
    first = dict.fromkeys(name for hits in shown for name in hits[:BEGINNINGS_OF])
    texts = beginnings(client, replay.version, replay.fields, first)
    rows = (
        {"_id": name, "language": replay.documents.get(name), "text": texts.get(name, "")}
        for name in dict.fromkeys(name for hits in shown for name in hits)
    )
    write_bytes(folder / FOUND_DOCUMENTS, json_lines(rows), private=True)


def write_run(
    folder: Path,
    document: Mapping[str, Any],
    answers: Sequence[QueryResult],
    rows: Iterable[Mapping[str, Any]] | None,
    group_scores: GroupScores,
    tag: str,
) -> None:
    """Write the files of a run, each whole or not at all; those of an earlier one are replaced.

    The queries stand in them: files and folder are made for the owner alone.

    Args:
        folder: where; made if it is not there.
        document: the content of ``result.json``.
        answers: what was found.
        rows: the lines of ``per-query.jsonl``; None leaves that as it is.
        group_scores: the lines of ``group-scores.jsonl``; without any there is no such file.
        tag: names the run in ``run.trec``.
    """
    write_bytes(
        folder / RUN, runs.format_run({answer.query: answer.hits for answer in answers}, tag).encode(), private=True
    )
    if group_scores:
        lines = json_lines({"query": query, "scores": its} for query, its in group_scores.items())
        write_bytes(folder / runs.GROUP_SCORES, lines, private=True)
    else:
        (folder / runs.GROUP_SCORES).unlink(missing_ok=True)
    if rows is not None:
        write_bytes(folder / runs.PER_QUERY, json_lines(rows), private=True)
    write_json(folder / RESULT, document, private=True)


def per_query(
    answers: Iterable[QueryResult],
    languages: Mapping[str, str | None],
    scores: Mapping[str, Scores],
    *,
    waited: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield one object a query; a measure that leaves the query out is null.

    Args:
        answers: what came back.
        languages: query id -> language.
        scores: measure -> figures.
        waited: whether queries were due at a time, so that how long each waited tells something.
    """
    for answer in answers:
        yield {
            "query": answer.query,
            "language": languages[answer.query],
            "measures": {name: measured.per_query.get(answer.query) for name, measured in scores.items()},
            "hits": len(answer.hits),
            "took_ms": answer.took,
            "wall_ms": None if answer.wall is None else round(answer.wall, 3),
            **({"waited_ms": round(answer.waited, 3)} if waited else {}),
            "error": answer.error,
            **({"passages": answer.places} if answer.places else {}),
        }


def searched(
    rows: Iterable[dict[str, Any]], values: Mapping[str, str], dataset: Dataset | None
) -> Iterator[dict[str, Any]]:
    """Yield lines of queries with what ``within`` made of each, where it made anything of any.

    Args:
        rows: those of ``per_query``.
        values: query id -> its value of the field.
        dataset: without the judgements of what a query did not search.
    """
    outside = dataset.outside if dataset is not None else {}
    for row in rows:
        query = row["query"]
        yield {
            **row,
            **({"within": values[query]} if query in values else {}),
            **({"outside": sorted(outside[query])} if query in outside else {}),
        }


def server_version(client: OpenSearch) -> str:
    """The version of the cluster that answers; ``unknown`` where the user may not ask for it."""
    return cluster_version(client) or "unknown"

"""What a replay leaves behind: ``result.json``, ``run.trec``, ``per-query.jsonl`` and ``group-scores.jsonl``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from opensearchpy import OpenSearch

from langshift.client import cluster_version
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.replay.group_scores import format_group_scores
from langshift.evaluate.replay.journal import PER_QUERY, RESULT, unfinished
from langshift.evaluate.replay.load_generator import Percentiles, corrected, percentiles
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.replay.requests import TOP_K
from langshift.evaluate.runs import GROUP_SCORES, command, format_run
from langshift.files import atomic_write
from langshift.retrieval.settings import format_settings

RUN = "run.trec"
LATE_MS = 10.0
"""A query that is sent so long after it was due had to wait for another one: the load was not kept up."""


def result(replay: ReplayResult, server: str) -> dict[str, Any]:
    """The content of ``result.json``.

    Args:
        replay: what was found.
        server: the version of OpenSearch.
    """
    return {
        "complete": replay.complete,
        "index": replay.index,
        "version": replay.version,
        "mode": replay.setting.mode,
        "setting": asdict(replay.setting),
        "shift_queries": replay.shift_queries,
        "trust": None if replay.trust is None else {**replay.trust.to_dict(), "calibrated": replay.trust.calibrated},
        "top_k": TOP_K,
        "measures": _means(replay.scores),
        "queries": {"asked": len(replay.answers), **_counts(replay.scores)},
        "by_language": {
            language: {"measures": _means(scores), "queries": _counts(scores)}
            for language, scores in replay.by_language().items()
        },
        "latency_ms": latency(replay),
        "load": load(replay),
        "errors": len(replay.failed),
        "warnings": list(replay.warnings),
        "dataset": identity(replay.dataset) if replay.dataset and replay.dataset.documents else None,
        "fingerprint": replay.fingerprint.to_dict(),
        "versions": {
            "opensearch": server,
            "langshift": version("langshift"),
            "ir_measures": version("ir_measures"),
            "encoder": f"{replay.fingerprint.encoder} {replay.fingerprint.revision}",
        },
        "command": command(),
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
    throughput = sending.throughput
    return {
        **replay.load.to_dict(),
        "seconds": round(sending.seconds, 3),
        "throughput": None if throughput is None else round(throughput, 2),
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
        raise UsageError(f"{folder} cannot be written, since {above} does not allow it: name another {option}.")


def write_files(folder: Path, replay: ReplayResult, document: Mapping[str, Any]) -> None:
    """Write the files, each whole or not at all; those of an earlier replay are replaced.

    ``per-query.jsonl`` stays as it is where it is the journal of a replay that is to be gone on with.
    """
    rankings = {answer.query: answer.hits for answer in replay.answers}
    _replace(folder / RUN, format_run(rankings, f"{replay.index} {format_settings(replay.setting)}").encode())
    if replay.group_scores:
        _replace(folder / GROUP_SCORES, format_group_scores(replay.group_scores))
    else:
        (folder / GROUP_SCORES).unlink(missing_ok=True)
    if replay.complete or not unfinished(folder):
        lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in per_query(replay))
        _replace(folder / PER_QUERY, b"".join(lines))
    write_json(folder / RESULT, document)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write one JSON document, whole or not at all."""
    _replace(path, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def per_query(replay: ReplayResult) -> list[dict[str, Any]]:
    """One object a query; a measure that leaves the query out is null."""
    return [
        {
            "query": answer.query,
            "language": replay.languages[answer.query],
            "measures": {name: measured.per_query.get(answer.query) for name, measured in replay.scores.items()},
            "hits": len(answer.hits),
            "took_ms": answer.took,
            "wall_ms": None if answer.wall is None else round(answer.wall, 3),
            **({"waited_ms": round(answer.waited, 3)} if replay.load.open_loop else {}),
            "error": answer.error,
        }
        for answer in replay.answers
    ]


def _means(scores: Mapping[str, Scores]) -> dict[str, float | None]:
    return {name: found.mean for name, found in scores.items()}


def _counts(scores: Mapping[str, Scores]) -> dict[str, int]:
    return {name: found.queries for name, found in scores.items()}


def _replace(path: Path, content: bytes) -> None:
    with atomic_write(path) as partial:
        partial.write_bytes(content)


def server_version(client: OpenSearch) -> str:
    """The version of the cluster that answers; ``unknown`` where the user may not ask for it."""
    return cluster_version(client) or "unknown"

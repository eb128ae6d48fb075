"""What a replay leaves behind: ``result.json``, ``run.trec`` and ``per-query.jsonl``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from opensearchpy import OpenSearch

from langshift.errors import UsageError
from langshift.evaluate.measures import Scores
from langshift.evaluate.replay import TOP_K, Replay
from langshift.evaluate.run import format_run

RUN, PER_QUERY, RESULT = "run.trec", "per-query.jsonl", "result.json"
PERCENTILES = (50, 90, 95, 99)


def result(replay: Replay, server: str) -> dict[str, Any]:
    """The content of ``result.json``.

    Args:
        replay: what was found.
        server: the version of OpenSearch.
    """
    return {
        "index": replay.index,
        "version": replay.version,
        "mode": replay.mode,
        "top_k": TOP_K,
        "measures": {name: scores.mean for name, scores in replay.scores.items()},
        "queries": {
            "asked": len(replay.answers),
            **{name: scores.queries for name, scores in replay.scores.items()},
        },
        "by_language": {
            language: {
                "measures": {name: scores.mean for name, scores in measures.items()},
                "queries": {name: scores.queries for name, scores in measures.items()},
            }
            for language, measures in replay.by_language().items()
        },
        "latency_ms": latency(replay),
        "errors": len(replay.failed),
        "warnings": list(replay.warnings),
        "fingerprint": replay.fingerprint.to_dict(),
        "versions": {
            "opensearch": server,
            "langshift": version("langshift"),
            "ir_measures": version("ir_measures"),
            "encoder": f"{replay.fingerprint.encoder} {replay.fingerprint.revision}",
        },
        "command": shlex.join(["langshift", *sys.argv[1:]]),
    }


def latency(replay: Replay) -> dict[str, dict[str, float | None]]:
    """Percentiles of the queries that were answered, in milliseconds, at one query at a time.

    ``took`` is the server's own figure, ``wall`` the time until the client had the parsed answer.
    """
    return {
        "took": _percentiles([answer.took for answer in replay.answers if answer.took is not None]),
        "wall": _percentiles([answer.wall for answer in replay.answers if answer.wall is not None]),
    }


def _percentiles(times: Sequence[float]) -> dict[str, float | None]:
    if not times:
        return dict.fromkeys(f"p{p}" for p in PERCENTILES)
    return {f"p{p}": round(float(np.percentile(times, p)), 3) for p in PERCENTILES}


def check_output(folder: Path) -> None:
    """Refuse a place that cannot be written to, before any work is done.

    Raises:
        UsageError: it is a file, or the folder above it may not be written to.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder for --output.")
    above = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"{folder} cannot be written, since {above} does not allow it: name another --output.")


def write_files(folder: Path, replay: Replay, document: Mapping[str, Any]) -> None:
    """Write the three files, each whole or not at all; those of an earlier replay are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    rankings = {answer.query: answer.hits for answer in replay.answers}
    _replace(folder / RUN, format_run(rankings, replay.index).encode())
    lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in per_query(replay))
    _replace(folder / PER_QUERY, b"".join(lines))
    _replace(folder / RESULT, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def per_query(replay: Replay) -> list[dict[str, Any]]:
    """One object a query; a measure that leaves the query out is null."""
    return [
        {
            "query": answer.query,
            "language": replay.languages[answer.query],
            "measures": _figures(replay.scores, answer.query),
            "hits": len(answer.hits),
            "took_ms": answer.took,
            "wall_ms": None if answer.wall is None else round(answer.wall, 3),
            "error": answer.error,
        }
        for answer in replay.answers
    ]


def _figures(scores: Mapping[str, Scores], query: str) -> dict[str, float | None]:
    return {name: measured.per_query.get(query) for name, measured in scores.items()}


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def server_version(client: OpenSearch) -> str:
    """The version of the cluster that answers."""
    return str(client.info()["version"]["number"])

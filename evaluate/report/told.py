"""What a run's ``result.json`` tells beyond its answers: how it was made, with what, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import msgspec

from langshift.errors import UsageError
from langshift.evaluate.compare.runs import Candidate
from langshift.evaluate.replay.journal import RESULT
from langshift.evaluate.replay.result import RUN


class Told(msgspec.Struct, frozen=True):
    """What a report shows of it; a TREC run tells nothing.

    Attributes:
        index: what was searched.
        version: the version of that index.
        mode: how it was searched; ``exact`` where no cluster was.
        method: how an offline evaluation moved vectors.
        shift_queries: whether queries were shifted.
        beta: the language preference of an offline evaluation.
        fingerprint: what made the vectors.
        versions: of the programs.
        command: the command line.
        latency_ms: what was timed -> percentile -> milliseconds.
    """

    index: str | None = None
    version: str | None = None
    mode: str | None = None
    method: str | None = None
    shift_queries: bool | None = None
    beta: float | None = None
    fingerprint: Mapping[str, Any] | None = None
    versions: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    command: str | None = None
    latency_ms: Mapping[str, Mapping[str, float | None]] = msgspec.field(default_factory=dict)


def told(run: Candidate) -> Told:
    """Read it.

    Raises:
        UsageError: something there is not what langshift writes.
    """
    try:
        return msgspec.convert(run.result, Told)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{run.place / RESULT} is not what langshift writes ({error}): run the evaluation again."
        ) from None


def facts(run: Candidate, found: Told) -> dict[str, str]:
    """What was run, name -> value, without what is not known."""
    setting = run.how if run.how is not None else found.method and f"{found.mode}, method {found.method}"
    dataset = run.result.get("dataset")
    rows = {
        "command": found.command,
        "index": found.index,
        "index version": found.version,
        "setting": setting or found.mode,
        "queries shifted": found.shift_queries,
        "language preference": found.beta,
        "finished": _when(run),
        "place": str(run.place),
        "dataset": dataset and dataset["folder"],
        "dataset, hash": dataset and dataset["hash"],
        "dataset, documents": dataset and f"{dataset['documents']:,}",
        "dataset, queries": dataset and f"{dataset['queries']:,}",
        **{f"fingerprint, {name}": value for name, value in (found.fingerprint or {}).items()},
        **{f"version, {name}": value for name, value in found.versions.items()},
    }
    return {name: _shown(value) for name, value in rows.items() if value is not None}


def _when(run: Candidate) -> str:
    """When the run's answers were written, in UTC."""
    path = run.place / RUN if run.place.is_dir() else run.place
    return f"{datetime.fromtimestamp(path.stat().st_mtime, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _shown(value: object) -> str:
    """As a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else "none"

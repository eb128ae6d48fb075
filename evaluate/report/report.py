"""A report: the runs, and what each tells of how it was made."""

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

import msgspec

from langshift.errors import UsageError
from langshift.evaluate.compare.comparison import ComparedRun, judged_across_languages
from langshift.evaluate.compare.findings import ComparisonFindings
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.preference import TOP1
from langshift.evaluate.replay.journal import RESULT
from langshift.evaluate.replay.result import RUN
from langshift.evaluate.runs import scored


class RunInfo(msgspec.Struct, frozen=True):
    """What a report shows of it; a TREC run tells nothing.

    Attributes:
        index: what was searched.
        version: the version of that index.
        mode: how it was searched; ``exact`` where no cluster was.
        method: how an offline evaluation moved vectors.
        shift_queries: whether an offline evaluation shifted queries.
        beta: the language preference of an offline evaluation.
        gamma: how much of the common mean it took off.
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
    gamma: float | None = None
    fingerprint: Mapping[str, Any] | None = None
    versions: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    command: str | None = None
    latency_ms: Mapping[str, Mapping[str, float | None]] = msgspec.field(default_factory=dict)


def read_run_info(run: ComparedRun) -> RunInfo:
    """Read it.

    Raises:
        UsageError: something there is not what langshift writes.
    """
    try:
        return msgspec.convert(run.result, RunInfo)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{run.place / RESULT} is not in langshift's format ({error}): run the evaluation again."
        ) from None


def facts(run: ComparedRun, found: RunInfo) -> dict[str, str]:
    """What was run, name -> value, without what is not known."""
    setting = run.how if run.how is not None else found.method and f"{found.mode}, method {found.method}"
    dataset = run.result.get("dataset")
    written = (run.place / RUN if run.place.is_dir() else run.place).stat().st_mtime
    rows = {
        "command": found.command,
        "index": found.index,
        "index version": found.version,
        "setting": setting or found.mode,
        "within": run.result.get("within"),
        "queries shifted": found.shift_queries,
        "language preference": found.beta,
        "gamma": found.gamma,
        "finished": f"{datetime.fromtimestamp(written, timezone.utc):%Y-%m-%d %H:%M:%S} UTC",
        "path": str(run.place),
        "dataset": dataset and dataset["folder"],
        "dataset, hash": dataset and dataset["hash"],
        "dataset, documents": dataset and f"{dataset['documents']:,}",
        "dataset, queries": dataset and f"{dataset['queries']:,}",
        **{f"fingerprint, {name}": value for name, value in (found.fingerprint or {}).items()},
        **{f"version, {name}": value for name, value in found.versions.items()},
    }
    return {name: _shown(value) for name, value in rows.items() if value is not None}


def _shown(value: object) -> str:
    """As a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else "none"


class Report(NamedTuple):
    """What the page and the table of all figures show.

    Attributes:
        found: figures, tests, examples and verdicts: what `evaluate compare` says.
        outcomes: letter -> what the first document is; empty where documents were judged per language.
        run_info: letter -> how the run was made.
        command: the command that makes the report, None where there is none.
    """

    found: ComparisonFindings
    outcomes: Mapping[str, Scores]
    run_info: Mapping[str, RunInfo]
    command: str | None


def build(found: ComparisonFindings, command: str | None = None) -> Report:
    """Return the report on compared runs.

    Args:
        found: the comparison.
        command: what to name as the command that makes the report.

    Raises:
        UsageError: what a run says of itself is not what langshift writes.
    """
    compared = found.compared
    how = {run.letter: read_run_info(run) for run in compared.candidates}
    outcomes = {
        run.letter: scored([TOP1.name], run.dataset, compared.languages, run.run)[TOP1.name]
        for run in compared.candidates
        if judged_across_languages(compared.dataset) and compared.dataset.qrels
    }
    return Report(found, outcomes, how, command)

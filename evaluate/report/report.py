"""A report: the runs, their sweeps, and what each tells of how it was made."""

import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import langshift
from langshift.errors import UsageError
from langshift.evaluate.compare.comparison import ComparedRun, judged_across_languages
from langshift.evaluate.compare.findings import ComparisonFindings, compare_places, findings
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.fairness import TOP1
from langshift.evaluate.replay.journal import RESULT
from langshift.evaluate.replay.result import RUN
from langshift.evaluate.report.tables import HITS
from langshift.evaluate.runs import scored

_PATIENCE_S = 10


def commit() -> str | None:
    """The commit, with ``, with changes`` where files differ from it; None without git or outside of a checkout."""
    folder = Path(langshift.__file__).parent
    # Installed below somebody else's repository, langshift is no file of it.
    if _git(folder, "ls-files", "--error-unmatch", Path(langshift.__file__).name) is None:
        return None
    found = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/")
    return f"{found}, with changes" if found and changed else found


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, None where it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


class SavedSweepPoint(msgspec.Struct, frozen=True):
    """One setting of a sweep.

    Attributes:
        alpha: the scale of the shift.
        beta: the language preference.
        all: measure -> mean over all queries.
    """

    alpha: float
    beta: float
    all: Mapping[str, float | None]


class SavedSweepDataset(msgspec.Struct, frozen=True):
    """The dataset of a sweep: its folder, and the hash of its ids and judgements."""

    folder: str
    hash: str


class SavedSweep(msgspec.Struct, frozen=True):
    """What a report reads of a sweep.

    Attributes:
        dataset: what was searched.
        select: the measure that the best alpha was chosen by.
        alpha: a point for each alpha, ascending, without language preference.
        best: the point that was chosen.
        beta: a point for each language preference tried, empty where none was.
    """

    dataset: SavedSweepDataset
    select: str
    alpha: Sequence[SavedSweepPoint]
    best: SavedSweepPoint
    beta: Sequence[SavedSweepPoint]


def is_sweep(place: Path) -> bool:
    """Whether a file is a JSON document and no TREC run."""
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return place.suffix.lower() == ".json" or file.read(64).lstrip().startswith(b"{")


def read_sweep(path: Path, dataset: str) -> SavedSweep:
    """Read one.

    Args:
        path: the document.
        dataset: the hash of the dataset that it must be of.

    Raises:
        UsageError: the file is something else, or a sweep of another dataset.
    """
    try:
        sweep = msgspec.json.decode(path.read_bytes(), type=SavedSweep)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not the output of `langshift evaluate sweep --json` ({error}).") from None
    if sweep.dataset.hash != dataset:
        raise UsageError(
            f"{path} is a sweep of {sweep.dataset.folder} ({sweep.dataset.hash}), but the runs are of another "
            f"dataset ({dataset}): give a sweep of the same dataset."
        )
    return sweep


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
    """What the pages and tables show.

    Attributes:
        found: figures, tests, examples and verdicts: what `evaluate compare` says.
        outcomes: letter -> what the first document is; empty where documents were judged per language.
        sweeps: name -> sweep to draw.
        run_info: letter -> how the run was made.
        command: the command that makes the report, None where there is none.
        version: of langshift, which makes it.
        commit: of langshift, None where it does not run from a checkout.
    """

    found: ComparisonFindings
    outcomes: Mapping[str, Scores]
    sweeps: Mapping[str, SavedSweep]
    run_info: Mapping[str, RunInfo]
    command: str | None
    version: str
    commit: str | None

    def to_dict(self) -> dict[str, Any]:
        """The comparison as one JSON document, and what the first documents are."""
        return {
            **self.found.to_dict(),
            "top1": {letter: _cells(scores) for letter, scores in self.outcomes.items()},
            "made_by": {"langshift": self.version, "commit": self.commit, "command": self.command},
        }


def _cells(scores: Scores) -> dict[str, dict[str, float | None]]:
    """Query language, or ``all`` -> outcome -> share."""
    return {row: {outcome: cell.mean for outcome, cell in found.items()} for row, found in scores.cells.items()}


def build(places: Sequence[Path], dataset: Path | None = None, command: str | None = None) -> Report:
    """Read runs and sweeps, score and compare.

    Args:
        places: folders or TREC runs as `evaluate compare` takes them, and documents of `evaluate sweep --json`.
        dataset: the dataset; None takes what the runs name.
        command: what to name as the command that makes the report.

    Raises:
        UsageError: something given cannot be used.
    """
    runs = [place for place in places if not is_sweep(place)]
    if not runs:
        raise UsageError("No run is given: give a folder written by `langshift evaluate replay` or `offline`.")
    compared = compare_places(runs, dataset)
    known = identity(compared.dataset)["hash"]
    # By their whole path where two have one name.
    sweeps = {str(place): read_sweep(place, known) for place in places if place not in runs}
    how = {run.letter: read_run_info(run) for run in compared.candidates}
    outcomes = {
        run.letter: scored([TOP1.name], compared.dataset, compared.languages, run.run)[TOP1.name]
        for run in compared.candidates
        if judged_across_languages(compared.dataset)
    }
    return Report(findings(compared, HITS), outcomes, sweeps, how, command, version("langshift"), commit())

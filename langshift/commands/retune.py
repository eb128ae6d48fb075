"""The commands ``retune``, ``reencode`` and ``rollback``."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
from opensearchpy import OpenSearch
from rich.progress import Progress, Task

from langshift import output
from langshift.client import open_cluster
from langshift.commands.anchors import note_calibration_due
from langshift.commands.compare_tables import show_gate
from langshift.commands.pipeline_options import reading_options
from langshift.commands.search_options import search_options
from langshift.debias.encoders.base import Reading
from langshift.debias.fingerprint import scales_in_words
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare.gate import Gate, GateResult
from langshift.ingest import reencode as reencoding
from langshift.ingest.config import PipelineOptions
from langshift.ingest.publication import MAX_REFUSED
from langshift.ingest.reencode import ReencodeResult
from langshift.languages import parse_tag
from langshift.parameters import (
    ALPHA,
    GAMMA,
    INDEX_ENCODER,
    JSON,
    PATH,
    PATIENCE,
    SHARE,
    SPARSE,
    TOKENS,
    VECTORS,
    Command,
    FiniteRange,
    flag,
    option,
)
from langshift.plugin import retune as retuning
from langshift.plugin.inventory import DocumentCount, count_documents
from langshift.plugin.metadata import FieldNames, read_metadata
from langshift.plugin.transfer.state import Stage, TransferProgress, TransferResult
from langshift.retrieval.settings import SearchOptions
from langshift.wording import join_words


def parse_scales(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """``th=0.3``, given once or more, as canonical tag -> scale."""
    scales: dict[str, float] = {}
    for text in given:
        language, equals, scale = text.partition("=")
        tag = parse_tag(language)
        if tag is None or not equals:
            raise click.BadParameter(f"{text} is not a language with a scale, such as th=0.3.")
        if tag in scales:
            raise click.BadParameter(f"{tag} is given twice: the languages must be unique.")
        scales[tag] = SHARE.convert(scale, parameter, ctx)
    return scales


@click.command(cls=Command)
@click.argument("name")
@option("--alpha A", "How much of the shift to apply, 0 to 1.", SHARE)
@option(
    "--alpha-for TAG=A",
    "The same for one language, such as th=0.3; can be repeated.",
    dest="alphas",
    callback=parse_scales,
    multiple=True,
)
@option("--vectors FILE", "Other language vectors, with what they recommend unless --alpha or --gamma is given.")
@option("--gamma G", "What all queries have in common, taken out: 0, or .9 to .98. [default: the index's]", click.FLOAT)
@option("--throttle N", "Documents a second at most.", FiniteRange(0, min_open=True), rare=True)
@PATIENCE
@option(
    "--gate DATASET",
    "Replay this dataset on both versions first, and keep the old one if anything is lost.",
    PATH,
)
@option(
    "--fail-if CONDITION",
    "With --gate: keep the old version if this holds, too: 'SLR@20 < -0.01' is about the change, 'value nDCG@20 < 0.7' "
    "about the new figure; can be repeated.",
    dest="conditions",
    multiple=True,
)
@flag("--accept-loss", "With --gate: take the new version even if something is lost; --fail-if still holds.")
@search_options
@JSON
def retune(
    name: str,
    alpha: float | None,
    alphas: dict[str, float],
    vectors: Path | None,
    gamma: float | None,
    throttle: float | None,
    patience: float,
    gate: Path | None,
    conditions: tuple[str, ...],
    accept_loss: bool,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Change the shift of the index NAME without encoding anything again.

    A new version is created inside the cluster from the live one, checked, and put in its place. Writes that
    arrive in the meantime are carried over; searches are not affected. The old version is kept for
    `langshift rollback NAME`. If the command ends early, the old version stays live: run the same command again.

    With --gate, the old version stays live if anything is lost by the verdict of `langshift evaluate compare`.

    \b
    Example:
      langshift retune news --alpha 0.6 --alpha-for th=0.3
      langshift retune news --alpha 0.6 --gate DATASET --fail-if 'value SLR@20 < 0.9'
    """
    if alpha is None and gamma is None and not alphas and vectors is None:
        raise UsageError("There is nothing to change: give --alpha, --alpha-for, --gamma or --vectors.")
    opened = _open_gate(gate, conditions, search, accept_loss=accept_loss)
    judged: list[GateResult] = []
    client = open_cluster()
    if opened is not None:
        opened.open(client, name)
    try:
        with output.progress() as bars:
            shown = TransferReporter(bars)
            request = retuning.RetuneRequest(alpha, alphas, vectors, gamma)
            check = None if opened is None else _check(client, name, opened, shown, judged)
            done = retuning.retune(
                client, name, request, throttle=throttle, patience=patience, watch=shown.update, check=check
            )
        done = _counted(client, done)
    except KeyboardInterrupt:
        output.note(f"{name} stays available; run the same command to resume where this one stopped.")
        raise
    except _GateFailed as failed:
        unchanged = {"name": name, "index": failed.before, "before": failed.before, "changed": False}
        _print_gate(judged, unchanged, as_json=as_json)
        raise
    _print_gate(judged, done.to_dict(), as_json=as_json)
    if judged and not as_json:
        output.line("")
    (output.note if as_json else output.line)(retuned(done))
    if done.changed:
        note_aliases_left(client, done.before)
        if not judged:
            output.note(_UNMEASURED)
        note_calibration_due(client, name)


def _open_gate(
    dataset: Path | None, conditions: Sequence[str], search: SearchOptions, *, accept_loss: bool
) -> Gate | None:
    """The gate, None without a dataset; what belongs to one is refused then."""
    if dataset is not None:
        return Gate(dataset, conditions, search, accept_loss=accept_loss)
    if conditions or accept_loss:
        name = "--fail-if" if conditions else "--accept-loss"
        raise UsageError(f"{name} is about what --gate measures: give a dataset with --gate too.")
    if search != SearchOptions():
        raise UsageError("Nothing is encoded without --gate: leave --encoder out.")
    return None


_UNMEASURED = (
    "Nothing was measured: --gate DATASET replays judged queries on both versions before the new one goes live, and "
    "keeps the old one if anything is lost."
)


@click.command(cls=Command)
@click.argument("name")
@option("--encoder NAME", "The new encoder: e5-small, use-m, st:NAME_OR_PATH or http:URL. [default: the index's]")
@SPARSE
@TOKENS
@reading_options
@VECTORS
@ALPHA
@GAMMA
@option(
    "--max-refused SHARE",
    "Replace nothing if more documents lose their vector.",
    SHARE,
    default=MAX_REFUSED,
    rare=True,
)
@PATIENCE
@JSON
def reencode(
    name: str,
    encoder: str | None,
    sparse: str | None,
    tokens: str | None,
    reading: Reading,
    vectors: Path | None,
    alpha: float | None,
    gamma: float | None,
    max_refused: float,
    patience: float,
    as_json: bool,
) -> None:
    """Encode the texts of the index NAME again, with another encoder.

    A new version is created from the texts in the live one, checked, and put in its place. Everything but the
    vectors stays as it is; so do they without --encoder. Writes that arrive in the meantime are carried over; searches
    are not affected. The old version is kept for `langshift rollback NAME`. If the command
    ends early, the old version stays live: run the same command again, and it encodes only what is still missing.

    \b
    Example:
      langshift reencode news --encoder st:intfloat/multilingual-e5-large
      langshift reencode news --sparse e5-small
    """
    if encoder is None:
        if sparse is None and tokens is None:
            raise UsageError("There is nothing to encode: give --encoder, --sparse or --tokens.")
        if (vectors, alpha, gamma) != (None, None, None) or reading != Reading():
            raise UsageError(
                "Without --encoder, vectors stay as they are: name it to have them made otherwise, or change their "
                "shift alone with `langshift retune`."
            )
    client = open_cluster()
    wanted = PipelineOptions(encoder or "", vectors, alpha, gamma=gamma, reading=reading, sparse=sparse, tokens=tokens)
    try:
        with output.progress() as bars:
            watch = TransferReporter(bars).update
            made = reencoding.reencode(client, name, wanted, max_refused=max_refused, patience=patience, watch=watch)
        made = made._replace(done=_counted(client, made.done))
    except KeyboardInterrupt:
        output.note(f"{name} stays available; run the same command to resume where this one stopped.")
        raise
    if as_json:
        output.emit_json({**made.done.to_dict(), "without_vector": made.without_vector})
    (output.note if as_json else output.line)(reencoded(made))
    for sentence in made.notes:
        output.note(sentence)
    if made.done.changed:
        note_aliases_left(client, made.done.before)
        note_calibration_due(client, name)


@click.command(cls=Command)
@click.argument("name")
@option("--to VERSION", "Point NAME to this version, such as 3 or v0003, also one that a load kept aside.")
@INDEX_ENCODER
@PATIENCE
@JSON
def rollback(name: str, to: str | None, encoder: str | None, patience: float, as_json: bool) -> None:
    """Point NAME back to an earlier version.

    Writes and deletes since a retune or reencode are carried over first, with the shift and encoder of the previous
    version. A version that was created by a load contains other documents than the one before it: nothing is carried
    over then. The version that was live is kept, and after --to, rollback returns to it.

    \b
    Example:
      langshift rollback news
      langshift rollback news --to v0003
    """
    client = open_cluster()
    with output.progress() as bars:
        back = partial(reencoding.reencoded_back, encoder=encoder)
        watch = TransferReporter(bars).update
        done = retuning.roll_back(client, name, to=to, patience=patience, watch=watch, reencoded_back=back)
        done = _counted(client, done)
    if as_json:
        output.emit_json(done.to_dict())
    (output.note if as_json else output.line)(rolled_back(done, named=to is not None))
    # What a load has made goes on taking writes.
    if done.kind != "load":
        note_aliases_left(client, done.before)


def _counted(client: OpenSearch, done: TransferResult) -> TransferResult:
    """The same, which of an index of chunks tells documents and chunks apart."""
    fields = FieldNames.from_meta(read_metadata(client, done.index))
    if fields.parent is None:
        return done
    return replace(done, **count_documents(client, done.index, fields)._asdict())


def note_aliases_left(client: OpenSearch, index: str) -> None:
    """Name the aliases of a version that a retune, a reencode or a rollback has left behind a write block."""
    # Somebody may have dropped it since.
    found = client.indices.get_alias(index=index, params={"ignore": 404}).get(index, {})
    for alias in sorted(found.get("aliases", {})):
        output.note(f"The alias {alias} still points to {index}, now read-only: point it to the live version too.")


_IN_WORDS: dict[Stage, str] = {
    "copying": "Copying",
    "catching up": "Catching up",
    "deleting": "Carrying over deletes",
    "checking": "Searching both versions",
    "settling": "Waiting for replicas",
    "blocked": "Catching up, writes blocked",
    "verifying": "Checking",
    "swapping": "Swapping",
    "done": "Swapped",
}


class TransferReporter:
    """Shows in ``bars`` how far it is."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._stage: Stage | None = None

    def update(self, progress: TransferProgress) -> None:
        """It has come further."""
        # Searching both versions counts searches, not documents.
        if progress.stage != "checking":
            self.show(progress.stage, progress.done, progress.total)

    def show(self, stage: Stage, done: int, total: int | None) -> None:
        """It is so far in a stage."""
        if stage != self._stage:
            self._stage = stage
            # A task of its own for each stage: what has a total cannot lose it.
            for before in self._bars.task_ids:
                self._bars.remove_task(before)
            self._bars.add_task(_IN_WORDS[stage], total=total, rate="")
        task = self._bars.tasks[0]
        rate = _rate(task) if stage == "copying" else ""
        self._bars.update(task.id, completed=done, total=total, rate=rate)


def _rate(task: Task) -> str:
    """Documents a second, and how long the rest takes; empty where nobody knows."""
    if not task.speed or task.time_remaining is None:
        return ""
    return f"{task.speed:,.0f} documents/s, {timedelta(seconds=round(task.time_remaining))} left"


def retuned(done: TransferResult) -> str:
    """What a retune did, in a sentence."""
    asked = done.requested or {}
    scales = scales_in_words(asked["alpha"], asked["alphas"], asked.get("gamma", 0.0))
    if not done.changed:
        return f"{done.name} ({done.index}) already has {scales} and these language vectors: nothing was changed."
    return _replaced(done, f" with {scales}")


def reencoded(made: ReencodeResult) -> str:
    """What a reencode did, in a sentence."""
    done = made.done
    asked = done.requested or {}
    kept = join_words(made.beside)
    if not done.changed:
        encoded = f"is already encoded with {asked['encoder']}, with the same shift"
        return f"{done.name} ({done.index}) {f'already keeps {kept}' if kept else encoded}: nothing was changed."
    without = f" ({made.without_vector:,} without a vector)" if made.without_vector else ""
    scales = scales_in_words(asked["alpha"], {}, asked.get("gamma", 0.0))
    encoded = f", encoded with {asked['encoder']} and {scales}" if made.encoded else ""
    return _replaced(done, f"{encoded}{f', with {kept}' if kept else ''}", without)


def _replaced(done: TransferResult, made: str, without: str = "") -> str:
    deleted = f", {done.deleted:,} deleted" if done.deleted else ""
    return (
        f"{done.name} now points to {done.index}{made}: {DocumentCount(done.documents, done.chunks)}{without}, "
        f"{done.caught_up:,} caught up{deleted}, checked. The previous version, {done.before}, is kept: "
        f"`langshift rollback {done.name}` returns to it."
    )


def rolled_back(done: TransferResult, *, named: bool) -> str:
    """What a rollback did, to the version before or to one that was named, in a sentence."""
    points = f"now points to {done.index}" if named else f"points to {done.index} again"
    said = f"{done.name} {points}: {DocumentCount(done.documents, done.chunks)}"
    kept = f"{done.before} is kept{f': `langshift rollback {done.name}` returns to it' if named else ''}."
    if done.kind == "load":
        return f"{said}. What was loaded into or written to {done.before} is not in it. {kept}"
    since = "" if named else f" since {done.before} replaced it"
    return f"{said}, {done.caught_up:,} carried over and {done.deleted:,} deleted{since}. {kept}"


class _GateFailed(LangshiftError):
    """A condition holds, so the new version does not go live."""

    def __init__(self, name: str, before: str, judged: GateResult) -> None:
        says = " ".join(judged.failed)
        if judged.losses and not judged.accepted:
            says += " To take the new version all the same, add --accept-loss."
        super().__init__(f"{name} still points to {before}, and the new version was removed: {says}")
        self.before = before


def _check(
    client: OpenSearch, name: str, gate: Gate, shown: TransferReporter, judged: list[GateResult]
) -> Callable[[str, str], None]:
    """What judges the live version and the new one, and adds what it finds to ``judged``."""

    def check(before: str, after: str) -> None:
        done = itertools.count(1)
        shown.show("checking", 0, gate.searches)
        judged.append(gate.judge(client, before, after, lambda: shown.show("checking", next(done), gate.searches)))
        if judged[-1].failed:
            raise _GateFailed(name, before, judged[-1])

    return check


def _print_gate(judged: list[GateResult], document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.emit_json({**document, **(judged[-1].to_dict() if judged else {"gate": None, "verdict": None})})
    elif judged:
        show_gate(judged[-1])

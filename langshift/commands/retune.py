"""The commands ``retune`` and ``rollback``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
from opensearchpy import OpenSearch
from rich.progress import TaskID

from langshift import output
from langshift.client import open_cluster
from langshift.commands.options import JSON, PATIENCE, index_encoder_options
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare.gate import Gate, GateResult, show
from langshift.languages import parse_tag
from langshift.output import line, pluralize
from langshift.parameters import FiniteRange, Share
from langshift.plugin.retune import RetuneRequest, RetuneResult, roll_back
from langshift.plugin.retune import retune as retune_index
from langshift.plugin.transfer.state import RollbackResult, Stage, TransferProgress
from langshift.retrieval.searcher import SearchOptions
from langshift.retry import sigterm_as_interrupt


def parse_scales(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """``th=0.3``, given once or more, as canonical tag -> scale."""
    scales: dict[str, float] = {}
    for text in given:
        language, equals, scale = text.partition("=")
        tag = parse_tag(language)
        if tag is None or not equals:
            raise click.BadParameter(f"{text} names no language with a scale: write th=0.3.")
        if tag in scales:
            raise click.BadParameter(f"{tag} is named twice: name each language once.")
        scales[tag] = Share().convert(scale, parameter, ctx)
    return scales


@click.command()
@click.argument("name")
@click.option("--alpha", type=Share(), metavar="A", help="Scale of the shift, 0 (none) to 1, in all languages.")
@click.option(
    "--alpha-for",
    "alphas",
    callback=parse_scales,
    multiple=True,
    metavar="TAG=A",
    help="Scale of one language, such as th=0.3; again for more. Without --alpha the others stay as they are.",
)
@click.option(
    "--vectors",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Other language vectors of the same encoder; without --alpha with the scales that they recommend.",
)
@click.option(
    "--throttle",
    type=FiniteRange(0, min_open=True),
    metavar="N",
    help="Documents a second at most. [default: what the cluster manages]",
)
@PATIENCE
@click.option(
    "--gate",
    type=click.Path(path_type=Path),
    metavar="DATASET",
    help="Replay this dataset on both versions before the new one goes live, and judge by --fail-if.",
)
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Stay with the old version where this holds: 'SLR@20 < -0.01' is about the change, 'value nDCG@20 < 0.7' "
    "about the new figure itself; again for more. See langshift evaluate compare.",
)
@index_encoder_options
@JSON
def retune(
    name: str,
    alpha: float | None,
    alphas: dict[str, float],
    vectors: Path | None,
    throttle: float | None,
    patience: float,
    gate: Path | None,
    conditions: tuple[str, ...],
    encoder: str | None,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Change the shift of the index NAME without encoding anything again.

    A new version is made inside the cluster from the live one. Writes and deletes that come meanwhile are
    caught up with, the last of them while writes are blocked for a moment; vectors and counts are checked;
    then the alias changes to the new version at once. Until then nothing is changed for whoever searches.
    The version before is kept, takes no writes, and is what `langshift rollback NAME` goes back to.

    Whatever ends it early, the old version stays live and complete, and the same command can be run again.

    \b
    Example:
      langshift retune news --alpha 0.6 --alpha-for th=0.3
      langshift retune news --alpha 0.6 --gate DATASET --fail-if 'SLR@20 < -0.01'
    """
    from langshift.plugin.retune import RetuneRequest
    from langshift.retrieval.searcher import SearchOptions

    if alpha is None and not alphas and vectors is None:
        raise UsageError("There is nothing to retune to: give --alpha, --alpha-for or --vectors.")
    if (gate is None) != (not conditions):
        lacking = "a dataset with --gate" if gate is None else "conditions with --fail-if"
        raise UsageError(f"--gate and --fail-if belong together: give {lacking}, too.")
    if gate is None and (encoder is not None or trust_remote_code):
        raise UsageError("Nothing is encoded without --gate: leave --encoder and --trust-remote-code out.")
    search = SearchOptions(encoder, trust_remote_code)
    run_retune(
        RetuneOptions(
            name=name,
            wanted=RetuneRequest(alpha, alphas, vectors),
            throttle=throttle,
            patience=patience,
            gate=None if gate is None else GateOptions(gate, conditions, search),
            as_json=as_json,
        )
    )


@click.command()
@click.argument("name")
@PATIENCE
@JSON
def rollback(name: str, patience: float, as_json: bool) -> None:
    """Let NAME stand for the version before the live one again.

    What was written since a retune is carried over first, with the shift of the version that it goes to. A
    version that a load made holds other documents than the one before it: there nothing is carried over.
    The version that is left is kept.

    \b
    Example:
      langshift rollback news
    """
    run_rollback(name, patience, as_json=as_json)


def note_aliases_left(client: OpenSearch, index: str) -> None:
    """Name the aliases of a version that a retune or a rollback has left behind a write block."""
    # Somebody may have dropped it since.
    found = client.indices.get_alias(index=index, params={"ignore": 404}).get(index, {})
    for alias in sorted(found.get("aliases", {})):
        output.note(f"The alias {alias} still stands for {index}, which takes no writes any more: move it, too.")


_IN_WORDS: dict[Stage, str] = {
    "copying": "Copying",
    "catching up": "Catching up",
    "deleting": "Carrying deletes over",
    "checking": "Searching both versions",
    "settling": "Waiting for replicas",
    "blocked": "Catching up, writes blocked",
    "verifying": "Checking",
    "swapping": "Swapping",
    "done": "Swapped",
}


class TransferReporter:
    """Shows on standard error how far it is, where that is a terminal; ``with`` ends it."""

    def __init__(self) -> None:
        self._bars = output.progress()
        self._task: TaskID | None = None
        self._stage: Stage | None = None
        self._stack = ExitStack()

    def __enter__(self) -> TransferReporter:
        self._stack.enter_context(self._bars)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def update(self, progress: TransferProgress) -> None:
        """It has come further."""
        # Searching both versions counts searches, not documents.
        if progress.stage != "checking":
            self._show(progress.stage, progress.done, progress.total)

    def begin_searching(self, total: int) -> None:
        """The gate begins."""
        self._show("checking", 0, total)

    def searched(self) -> None:
        """One more search is done."""
        if self._task is not None:
            self._bars.advance(self._task)

    def _show(self, stage: Stage, done: int, total: int | None) -> None:
        if self._task is None or stage != self._stage:
            # A task of its own for each stage: what has a total cannot lose it.
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task, self._stage = self._bars.add_task(_IN_WORDS[stage], total=total, rate=""), stage
        self._bars.update(self._task, completed=done, total=total)


def retuned(done: RetuneResult) -> str:
    """What a retune did, in a sentence."""
    single = ", ".join(f"{tag} {alpha:g}" for tag, alpha in done.alphas.items())
    scales = f"alpha {done.alpha:g}{f' ({single})' if single else ''}"
    if not done.changed:
        return f"{done.name} ({done.index}) has {scales} and these language vectors already: nothing is changed."
    deleted = f", {done.deleted:,} deleted" if done.deleted else ""
    return (
        f"{done.name} is now {done.index} at {scales}: {pluralize(done.documents, 'document')}, "
        f"{done.caught_up:,} caught up{deleted}, checked; the version before, {done.before}, is kept: "
        f"`langshift rollback {done.name}` goes back to it."
    )


def rolled_back(done: RollbackResult) -> str:
    """What a rollback did, in a sentence."""
    again = f"{done.name} is {done.index} again: {pluralize(done.documents, 'document')}"
    if done.kind == "load":
        return f"{again}; what only {done.left} holds, which a load made, is not in it; {done.left} is kept."
    return (
        f"{again}, {done.caught_up:,} carried over and {done.deleted:,} deleted since {done.left} took its place; "
        f"{done.left} is kept."
    )


@dataclass(frozen=True)
class GateOptions:
    """What a new version is judged by.

    Attributes:
        folder: the dataset.
        conditions: as they are written.
        search: where the index's encoder is.
    """

    folder: Path
    conditions: Sequence[str]
    search: SearchOptions


@dataclass(frozen=True)
class RetuneOptions:
    """The options of ``langshift retune``.

    Attributes:
        name: the index.
        wanted: the scales and language vectors.
        throttle: documents a second at most, or None.
        patience: seconds to wait for a cluster that takes nothing.
        gate: what the new version is judged by, or None.
        as_json: whether to print JSON.
    """

    name: str
    wanted: RetuneRequest
    throttle: float | None
    patience: float
    gate: GateOptions | None
    as_json: bool


def run_retune(options: RetuneOptions) -> None:
    """Check what was given before anything is made; then retune and tell.

    Raises:
        LangshiftError: a condition holds; the figures are printed all the same.
    """
    with sigterm_as_interrupt():
        gate = None if options.gate is None else _Gate(options.gate)
        client = open_cluster()
        if gate is not None:
            gate.open(client, options.name)
        try:
            with TransferReporter() as shown:
                done = retune_index(
                    client,
                    options.name,
                    options.wanted,
                    throttle=options.throttle,
                    patience=options.patience,
                    watch=shown.update,
                    check=None if gate is None else gate.check(client, shown),
                )
        except KeyboardInterrupt:
            output.note(f"{options.name} goes on being served; the same command goes on where this one was.")
            raise
        except _GateFailed as failed:
            _print_gate_failure(options, failed)
            raise
    judged = None if gate is None else gate.judged
    if options.as_json:
        verdicts = None if judged is None else [verdict.to_dict() for verdict in judged.verdicts]
        output.emit_json({**done.to_dict(), "gate": verdicts})
    elif judged is not None:
        show(judged)
        line("")
    _say(retuned(done), as_json=options.as_json)
    if done.changed:
        note_aliases_left(client, done.before)


def run_rollback(name: str, patience: float, *, as_json: bool) -> None:
    """Roll back and tell."""
    with sigterm_as_interrupt():
        client = open_cluster()
        with TransferReporter() as shown:
            done = roll_back(client, name, patience=patience, watch=shown.update)
    if as_json:
        rounded = {"seconds": round(done.seconds, 3), "blocked": round(done.blocked, 3)}
        output.emit_json({**vars(done), **rounded})
    _say(rolled_back(done), as_json=as_json)
    # What a load has made goes on taking writes.
    if done.kind == "retune":
        note_aliases_left(client, done.left)


class _GateFailed(LangshiftError):
    """A condition holds, so the new version does not go live."""

    def __init__(self, name: str, before: str, judged: GateResult) -> None:
        says = " ".join(verdict.says for verdict in judged.failed)
        super().__init__(f"{name} stays {before}, and the new version is removed: {says}")
        self.before, self.judged = before, judged


class _Gate:
    """The gate of one retune."""

    def __init__(self, options: GateOptions) -> None:
        self._gate = Gate(options.folder, options.conditions, options.search)
        self._name = ""
        self.judged: GateResult | None = None

    def open(self, client: OpenSearch, name: str) -> None:
        """Open the encoder of the index."""
        self._name = name
        self._gate.open(client, name)

    def check(self, client: OpenSearch, shown: TransferReporter) -> Callable[[str, str], None]:
        """What judges the live version and the new one."""

        def check(before: str, after: str) -> None:
            shown.begin_searching(self._gate.searches)
            self.judged = self._gate.judge(client, before, after, shown.searched)
            if self.judged.failed:
                raise _GateFailed(self._name, before, self.judged)

        return check


def _print_gate_failure(options: RetuneOptions, failed: _GateFailed) -> None:
    if not options.as_json:
        show(failed.judged)
        return
    verdicts = [verdict.to_dict() for verdict in failed.judged.verdicts]
    document = {"name": options.name, "index": failed.before, "before": failed.before, "changed": False}
    output.emit_json({**document, "gate": verdicts})


def _say(sentence: str, *, as_json: bool) -> None:
    if as_json:
        output.note(sentence)
    else:
        line(sentence)

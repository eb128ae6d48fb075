"""The command ``retune``."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift import output
from langshift.client import open_cluster
from langshift.commands.anchors import calibration_due
from langshift.commands.compare_tables import show_gate
from langshift.commands.search_options import search_options
from langshift.commands.transfer_display import TransferReporter, counted, note_aliases_left, replaced
from langshift.debias.fingerprint import scales_in_words
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare.gate import Gate, GateResult
from langshift.languages import parse_tag
from langshift.parameters import JSON, PATH, PATIENCE, SHARE, Command, FiniteRange, flag, option, option_group
from langshift.plugin import retune as retuning
from langshift.plugin.retune import RetuneRequest
from langshift.plugin.transfer.state import TransferResult
from langshift.plugin.versions import live
from langshift.retrieval.question import SearchOptions


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
@option_group(
    "request",
    RetuneRequest,
    option("--alpha A", "How much of the shift to apply, 0 to 1.", SHARE),
    option(
        "--alpha-for TAG=A",
        "The same for one language, such as th=0.3; can be repeated.",
        dest="alphas",
        callback=parse_scales,
        multiple=True,
    ),
    option(
        "--vectors FILE", "Other language vectors, with what they recommend unless --alpha, --gamma or --own is given."
    ),
    option(
        "--gamma G", "What all queries have in common, taken out: 0, or .9 to .98. [default: the index's]", click.FLOAT
    ),
    option("--own B", "Prefer documents in the query's language, 0 to .1. [default: the index's]", click.FLOAT),
)
@option("--throttle N", "Documents a second at most.", FiniteRange(0, min_open=True), rare=True)
@PATIENCE
@option("--gate DATASET", "Replay this dataset on both versions first, and keep the old one if anything is lost.", PATH)
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
    request: RetuneRequest,
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
    if request == RetuneRequest():
        raise UsageError("There is nothing to change: give --alpha, --alpha-for, --gamma, --own or --vectors.")
    opened = _open_gate(gate, conditions, search, accept_loss=accept_loss)
    judged: list[GateResult] = []
    client = open_cluster()
    if opened is not None:
        opened.open(client, name)
    try:
        with output.progress() as bars:
            shown = TransferReporter(bars)
            check = None if opened is None else _check(client, name, opened, shown, judged)
            done = retuning.retune(
                client, name, request, throttle=throttle, patience=patience, watch=shown.update, check=check
            )
        done = counted(client, done)
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
        # What cannot be read now is told by the next search.
        with suppress(LangshiftError, OpenSearchException):
            if due := calibration_due(live(client, name)):
                output.note(due)


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


def retuned(done: TransferResult) -> str:
    """What a retune did, in a sentence."""
    asked = done.requested or {}
    scales = scales_in_words(asked["alpha"], asked["alphas"], asked.get("gamma", 0.0), asked.get("own", 0.0))
    if not done.changed:
        return f"{done.name} ({done.index}) already has {scales} and these language vectors: nothing was changed."
    return replaced(done, f" with {scales}")


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

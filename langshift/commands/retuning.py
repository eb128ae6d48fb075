"""What ``langshift retune`` and ``langshift rollback`` do and print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opensearchpy import OpenSearch

from langshift import console
from langshift.cluster import open_cluster
from langshift.commands.left import note_aliases_left
from langshift.commands.shown import TransferShown, retuned, rolled_back
from langshift.errors import LangshiftError
from langshift.evaluate.compare.gate import Gate, Judged, show
from langshift.plugin.plan import Wanted
from langshift.plugin.retune import retune
from langshift.plugin.roll_back import roll_back
from langshift.retrieval.opening import SearchOptions
from langshift.shown import line
from langshift.terminated import terminated_like_interrupted


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
class Options:
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
    wanted: Wanted
    throttle: float | None
    patience: float
    gate: GateOptions | None
    as_json: bool


def run_retune(options: Options) -> None:
    """Check what was given before anything is made; then retune and tell.

    Raises:
        LangshiftError: a condition holds; the figures are printed all the same.
    """
    with terminated_like_interrupted():
        gate = None if options.gate is None else _Gate(options.gate)
        client = open_cluster()
        if gate is not None:
            gate.open(client, options.name)
        try:
            with TransferShown() as shown:
                done = retune(
                    client,
                    options.name,
                    options.wanted,
                    throttle=options.throttle,
                    patience=options.patience,
                    watch=shown.update,
                    check=None if gate is None else gate.check(client, shown),
                )
        except KeyboardInterrupt:
            console.note(f"{options.name} goes on being served; the same command goes on where this one was.")
            raise
        except _GateFailed as failed:
            _tell_failed(options, failed)
            raise
    judged = None if gate is None else gate.judged
    if options.as_json:
        verdicts = None if judged is None else [verdict.to_dict() for verdict in judged.verdicts]
        console.emit_json({**done.to_dict(), "gate": verdicts})
    elif judged is not None:
        show(judged)
        line("")
    _say(retuned(done), as_json=options.as_json)
    if done.changed:
        note_aliases_left(client, done.before)


def run_rollback(name: str, patience: float, *, as_json: bool) -> None:
    """Roll back and tell."""
    with terminated_like_interrupted():
        client = open_cluster()
        with TransferShown() as shown:
            done = roll_back(client, name, patience=patience, watch=shown.update)
    if as_json:
        rounded = {"seconds": round(done.seconds, 3), "blocked": round(done.blocked, 3)}
        console.emit_json({**vars(done), **rounded})
    _say(rolled_back(done), as_json=as_json)
    # What a load has made goes on taking writes.
    if done.kind == "retune":
        note_aliases_left(client, done.left)


class _GateFailed(LangshiftError):
    """A condition holds, so the new version does not go live."""

    def __init__(self, name: str, before: str, judged: Judged) -> None:
        says = " ".join(verdict.says for verdict in judged.failed)
        super().__init__(f"{name} stays {before}, and the new version is removed: {says}")
        self.before, self.judged = before, judged


class _Gate:
    """The gate of one retune."""

    def __init__(self, options: GateOptions) -> None:
        self._gate = Gate(options.folder, options.conditions, options.search)
        self._name = ""
        self.judged: Judged | None = None

    def open(self, client: OpenSearch, name: str) -> None:
        """Open the encoder of the index."""
        self._name = name
        self._gate.open(client, name)

    def check(self, client: OpenSearch, shown: TransferShown) -> Callable[[str, str], None]:
        """What judges the live version and the new one."""

        def check(before: str, after: str) -> None:
            shown.begin_searching(self._gate.searches)
            self.judged = self._gate.judge(client, before, after, shown.searched)
            if self.judged.failed:
                raise _GateFailed(self._name, before, self.judged)

        return check


def _tell_failed(options: Options, failed: _GateFailed) -> None:
    if not options.as_json:
        show(failed.judged)
        return
    verdicts = [verdict.to_dict() for verdict in failed.judged.verdicts]
    document = {"name": options.name, "index": failed.before, "before": failed.before, "changed": False}
    console.emit_json({**document, "gate": verdicts})


def _say(sentence: str, *, as_json: bool) -> None:
    if as_json:
        console.note(sentence)
    else:
        line(sentence)

"""What the steps of a transfer share, and what it notes in the version that it makes."""

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import ClusterError, LangshiftError
from langshift.plugin import metadata
from langshift.plugin.raw_documents import StoredDocument
from langshift.plugin.versions import version_behind
from langshift.retry import RetryBudget, retry_until_available
from langshift.wording import iso_time

Kind = Literal["retune", "reencode", "rollback"]


class TransferAborted(ClusterError):
    """What was being made can never become live, and goes."""


class TransferSuperseded(LangshiftError):
    """Another run works on the same version by now: this one may do nothing more there."""


def transfer_note_from_metadata(meta: Mapping[str, Any]) -> tuple[Kind, dict[str, Any]] | None:
    """What a transfer has noted in a version, by the whole ``_meta`` of that; None where none has."""
    unfinished = meta.get(metadata.UNFINISHED, {})
    return next(((kind, dict(unfinished[kind])) for kind in get_args(Kind) if kind in unfinished), None)


@cache
def this_process() -> Mapping[str, Any]:
    """What tells this process from all others: the machine, the process's id, and a time (Unix) at which it ran."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": time.time()}


# Seconds by which the clock may be set between two looks at it.
_CLOCK_SLACK = 5.0


def is_running(process: Mapping[str, Any] | None) -> bool | None:
    """Whether a process that ``this_process`` described still runs; None where that is not known here."""
    if process is None or process["host"] != socket.gethostname():
        return None
    try:
        # It comes with the embedded OpenSearch.
        import psutil
    except ImportError:
        return None
    try:
        found = psutil.Process(process["pid"])
        # One that has the same number by now began later.
        began_before = bool(found.create_time() < process["started"] + _CLOCK_SLACK)
        return began_before and found.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError, OverflowError):
        return False


class TransferMark:
    """The note of one run.

    Two runs never both act on a version: each writes its token there when it begins, and looks whether it is still
    there before every step that cannot be taken back.

    Attributes:
        index: the version that it is in.
        kind: what the run makes.
        token: tells it from other runs.
    """

    def __init__(self, client: OpenSearch, index: str, kind: Kind) -> None:
        self._client = client
        self.index, self.kind, self.token = index, kind, secrets.token_hex(8)

    def read(self) -> dict[str, Any]:
        """What is noted.

        Raises:
            TransferSuperseded: by another run, or nothing is noted any more.
        """
        return self._read()[1]

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The version's ``_meta``, and what is noted there."""
        meta: dict[str, Any] = {}
        with suppress(NotFoundError):
            meta = metadata.read_metadata(self._client, self.index)
        found = transfer_note_from_metadata(meta)
        if found is None or found[0] != self.kind or found[1].get("token") != self.token:
            raise TransferSuperseded(
                f"Another retune, reencode or rollback has taken over or removed {self.index}, so this one stops: wait "
                "for the other to finish, or run the command again."
            )
        return meta, found[1]

    def note(self, **values: Any) -> None:  # noqa: ANN401 - any JSON
        """Change some of it.

        Raises:
            TransferSuperseded: by another run.
        """
        meta, note = self._read()
        self._write(meta, {**note, **values})

    def take_over(self, note: Mapping[str, Any]) -> None:
        """Write a note with this run's token, whoever's it was: that run stops before its next step."""
        self._write(metadata.read_metadata(self._client, self.index), note)

    def _write(self, meta: Mapping[str, Any], note: Mapping[str, Any]) -> None:
        noted = {**(meta.get(metadata.UNFINISHED) or {}), self.kind: {**note, **self.signature}}
        metadata.write(self._client, self.index, {**meta, metadata.UNFINISHED: noted})

    @property
    def signature(self) -> dict[str, Any]:
        """What is noted of the run itself."""
        return {"token": self.token, "process": dict(this_process())}

    def clear(self) -> None:
        """Nothing is left to do.

        Raises:
            TransferSuperseded: by another run.
        """
        meta, _ = self._read()
        metadata.write(self._client, self.index, {**meta, metadata.UNFINISHED: None})


Stage = Literal[
    "copying", "catching up", "deleting", "checking", "settling", "blocked", "verifying", "swapping", "done"
]
#: Vectors that documents must have in the other version; None for a document without one.
Expected = Callable[[Sequence[Mapping[str, Any]]], Sequence[NDArray[np.floating[Any]] | None]]


class ScriptTransform(NamedTuple):
    """How a document of one version becomes one of another inside the cluster.

    Attributes:
        script: id of a stored script, which changes ``ctx._source``.
        params: its parameters.
        expected: ``_source`` of documents of the one version -> the vectors that the other must hold.
        vector_field: where the vector is, a path with dots.
        stamp_field: the other field that the script may change; all others stay as they are.
        late_writes: a query for documents of the other version that the script has yet to change; None where there is
            no way to tell.
    """

    script: str
    params: Mapping[str, Any]
    expected: Expected
    vector_field: str
    stamp_field: str
    late_writes: Mapping[str, Any] | None = None

    @property
    def changes(self) -> tuple[str, ...]:
        """The fields that may be others in the other version."""
        return self.vector_field, self.stamp_field


#: Documents of the one version, and ``_source`` of each as the other has it by now, None where it lacks it ->
#: ``_source`` as the other must have it, as JSON on one line.
Convert = Callable[[Sequence[StoredDocument], Sequence[Mapping[str, Any] | None]], Sequence[bytes]]


class ClientTransform(NamedTuple):
    """How a document of one version becomes one of another in this process.

    Attributes:
        convert: makes documents of the other version.
        changes: the fields that may be others in the other version, paths with dots; all others stay as they are, but
        texts: these are in normal form then.
        removed: those of ``changes`` that no document of the other version has, nor its mapping.
    """

    convert: Convert
    changes: tuple[str, ...]
    texts: tuple[str, ...]
    removed: tuple[str, ...] = ()


Transform = ScriptTransform | ClientTransform


class TransferPlan(NamedTuple):
    """A version that is to be made out of the live one.

    Attributes:
        name: the alias.
        body: the new version's settings and mappings, as ``copied_body`` gives them, with ``_meta``.
        requested: JSON that says what is being made; only a run that asks for the same goes on with what another left.
        transform: how a document becomes one of the new version.
        kind: what makes it.
        slices: how many parts are copied at a time; None for one a shard, and at least two.
        throttle: documents a second at most; None for as many as the cluster manages.
    """

    name: str
    body: Mapping[str, Any]
    requested: Mapping[str, Any]
    transform: Transform
    kind: Literal["retune", "reencode"] = "retune"
    slices: int | None = None
    throttle: float | None = None


class TransferProgress(NamedTuple):
    """How far a transfer is.

    Attributes:
        stage: what it does at this moment; ``checking`` runs the gate, ``settling`` waits for replicas.
        done: documents of this stage.
        total: of so many; None where nobody knows.
    """

    stage: Stage
    done: int = 0
    total: int | None = None


TransferListener = Callable[[TransferProgress], None]


# Of what was asked for, what ``--json`` says.
_SHOWN = ("encoder", "alpha", "alphas", "gamma", "own", "vectors", "sparse", "tokens")


@dataclass(frozen=True)
class TransferResult:
    """A new version that is live, or one that is live again.

    Attributes:
        name: the alias.
        index: the version that is live now.
        before: the version that was live; the same where nothing had to be done.
        requested: what was asked for; None of a rollback.
        kind: what had made the version of the two that is newer: ``retune`` or ``reencode``, whose later writes a
            rollback carries over; or ``load``, whose it does not.
        documents: how many entries the live one holds; 0 where an earlier run had put it behind the alias already.
        caught_up: documents written meanwhile, each time they were.
        deleted: documents deleted meanwhile.
        seconds: how long it took.
        blocked: for how many of them no document could be written.
        chunks: of an index of chunks how many of these it holds, where ``documents`` tells how many they are of.
    """

    name: str
    index: str
    before: str
    requested: Mapping[str, Any] | None
    kind: str = "retune"
    documents: int = 0
    caught_up: int = 0
    deleted: int = 0
    seconds: float = 0.0
    blocked: float = 0.0
    chunks: int | None = None

    @property
    def changed(self) -> bool:
        """Whether anything had to be done, to the index or to any document."""
        return self.index != self.before

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it."""
        index = {"name": self.name, "index": self.index}
        chunks = {} if self.chunks is None else {"chunks": self.chunks}
        figures = {"documents": self.documents, **chunks, "caught_up": self.caught_up, "deleted": self.deleted}
        seconds = {"seconds": round(self.seconds, 3), "blocked": round(self.blocked, 3)}
        if self.requested is None:
            return {**index, "left": self.before, "kind": self.kind, **figures, **seconds}
        made = {name: self.requested[name] for name in _SHOWN if name in self.requested}
        return {**index, "before": self.before, **figures, **made, **seconds, "changed": self.changed}


P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Transfer:
    """What the steps of a transfer share.

    Attributes:
        client: the cluster.
        name: the alias.
        source: the live version, which people search and write to.
        uuid: its id.
        target: the version that is to take its place.
        transform: how a document of the one becomes one of the other.
        kind: what it makes.
        watch: is told how far it is.
        seconds: how long no document may be taken.
        checkpoint: the last operation of each shard of the source that the target has.
        slices: how many parts of the first pass are copied at a time.
        throttle: documents a second of the passes that do not hold up writers; None without limit.
        caught_up: documents that were written meanwhile and copied.
        deleted: documents that were deleted meanwhile.
        notes_replaced: whether the target notes that the source was live before it, for the way back.
        mark: the run's note in the target.
        patience: counts the time in which no document is taken.
    """

    client: OpenSearch
    name: str
    source: str
    uuid: str
    target: str
    transform: Transform
    kind: Kind
    watch: TransferListener
    seconds: float
    checkpoint: tuple[int, ...] = ()
    slices: int = 1
    throttle: float | None = None
    caught_up: int = 0
    deleted: int = 0
    notes_replaced: bool = False

    def __post_init__(self) -> None:
        """Begin to count, with a token of its own."""
        self.mark = TransferMark(self.client, self.target, self.kind)
        self.patience = RetryBudget(self.seconds)

    def first_note(self) -> dict[str, Any]:
        """What is noted in the target before anything is copied."""
        note = {"from": self.source, "uuid": self.uuid, "checkpoint": list(self.checkpoint)}
        return {**note, "blocked": False, "at": iso_time(), **self.mark.signature}

    def retry(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what may be done again, and wait for a cluster that cannot be reached."""
        return retry_until_available(partial(action, *args, **kwargs), RetryBudget(self.seconds))

    def report(self, stage: Stage, done: int = 0, total: int | None = None) -> None:
        """Say how far the run is."""
        self.watch(TransferProgress(stage, done, total))

    def require_unchanged(self) -> None:
        """Refuse to go on where what was live is not.

        Raises:
            TransferAborted: somebody has deleted it, or let the alias stand for another version.
            TransferSuperseded: another run has finished this one's work.
        """
        if self.retry(metadata.uuid_of, self.client, self.source) != self.uuid:
            raise TransferAborted(
                f"Index {self.source} was deleted while {self.target} was being built from it: run the command again."
            )
        try:
            now = self.retry(version_behind, self.client, self.name)
        except ClusterError as error:
            raise TransferAborted(str(error)) from error
        if now == self.target:
            raise TransferSuperseded(
                f"Another run has pointed {self.name} to {self.target} in the meantime, so this one stops."
            )
        if now != self.source:
            status = f"now points to {now}" if now else "no longer exists"
            raise TransferAborted(
                f"{self.name} pointed to {self.source} when this run began and {status}, so it was not pointed to "
                f"{self.target}: run the command again."
            )

    def settings(self, index: str) -> dict[str, Any]:
        """The ``index`` part of a version's settings."""
        return self.retry(metadata.read_settings, self.client, index)

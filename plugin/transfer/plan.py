"""What a transfer is asked to do, what it tells on the way, and what it has done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Stage = Literal[
    "copying", "catching up", "deleting", "checking", "settling", "blocked", "verifying", "swapping", "done"
]
#: Vectors that documents must have in the other version; None for a document without one.
Expected = Callable[[Sequence[Mapping[str, Any]]], Sequence[NDArray[np.floating[Any]] | None]]


@dataclass(frozen=True)
class Way:
    """How a document of one version becomes one of another.

    Attributes:
        script: id of a stored script, which changes ``ctx._source``.
        params: its parameters.
        expected: ``_source`` of documents of the one version -> the vectors that the other must hold.
        vector_field: where the vector is, a path with dots.
        stamp_field: the other field that the script may change; all others stay as they are.
        stray: a query for documents of the other version that the script has yet to change; None where none can be
            told.
    """

    script: str
    params: Mapping[str, Any]
    expected: Expected
    vector_field: str
    stamp_field: str
    stray: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """A version that is to be made out of the live one.

    Attributes:
        name: the alias.
        body: the new version's settings and mappings, as ``copied_body`` gives them, with ``_meta``.
        asked: JSON that says what is being made; only a run that asks for the same goes on with what another left.
        way: how a document becomes one of the new version.
        slices: how many parts are copied at a time; None for one a shard, at least two and at most eight.
        throttle: documents a second at most; None for as many as the cluster manages.
    """

    name: str
    body: Mapping[str, Any]
    asked: Mapping[str, Any]
    way: Way
    slices: int | None = None
    throttle: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a transfer is.

    Attributes:
        stage: what it does at this moment; ``checking`` runs the gate, ``settling`` waits for replicas.
        done: documents of this stage.
        total: of so many; None where nobody knows.
    """

    stage: Stage
    done: int = 0
    total: int | None = None


Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class Transferred:
    """A new version that is live.

    Attributes:
        name: the alias.
        index: the new version.
        live: the version before it, which takes no writes any more.
        documents: how many the new one holds; 0 where an earlier run had put it behind the alias already.
        caught_up: documents written meanwhile, each time they were.
        deleted: documents deleted meanwhile.
        seconds: how long it took.
        blocked: for how many of them no document could be written.
        asked: what was asked for.
    """

    name: str
    index: str
    live: str
    documents: int = 0
    caught_up: int = 0
    deleted: int = 0
    seconds: float = 0.0
    blocked: float = 0.0
    asked: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RolledBack:
    """A previous version that is live again.

    Attributes:
        name: the alias.
        index: the version that is live again.
        left: the version that was live.
        kind: what had made that: ``retune``, whose later writes were carried over; or ``load``, whose were not.
        documents: how many documents the live version holds; 0 where an earlier run had rolled back already.
        caught_up: documents carried over, each time they were.
        deleted: documents deleted since.
        seconds: how long it took.
        blocked: for how many of them no document could be written.
    """

    name: str
    index: str
    left: str
    kind: str
    documents: int = 0
    caught_up: int = 0
    deleted: int = 0
    seconds: float = 0.0
    blocked: float = 0.0

"""Another shift for the documents of an index, made inside the cluster, without encoding anything again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearchpy import OpenSearch

from langshift.plugin import pipeline
from langshift.plugin.copied import copied_body
from langshift.plugin.engine import require_engine
from langshift.plugin.following import follow
from langshift.plugin.plan import Wanted, planned
from langshift.plugin.retunable import all_agree, require_retunable
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.transfer.forward import transfer
from langshift.plugin.transfer.left_behind import clear_left_behind, finish_left_behind
from langshift.plugin.transfer.plan import Plan, Transferred, Watch
from langshift.plugin.versions import LiveIndex, live, version_behind
from langshift.plugin.way import shift_way

__all__ = ["Retuned", "Wanted", "retune"]

Check = Callable[[str, str], None]
"""Looks at the live version and the new one by their names, and raises where the new one is not to go live."""


@dataclass(frozen=True)
class Retuned:
    """What a retune did.

    Attributes:
        name: the alias.
        index: the version that is live now.
        before: the version that was live.
        documents: how many the live one holds.
        caught_up: documents written meanwhile, each time they were.
        deleted: documents deleted meanwhile.
        alpha: scale of all languages.
        alphas: scales of single languages that differ.
        vectors: hash of the language vectors.
        seconds: how long it took.
        blocked: for how many of them nothing could be written.
        changed: whether anything had to be done, to the index or to any document; else ``index`` and ``before`` are
            the same.
    """

    name: str
    index: str
    before: str
    documents: int
    caught_up: int = 0
    deleted: int = 0
    alpha: float = 0.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    vectors: str | None = None
    seconds: float = 0.0
    blocked: float = 0.0
    changed: bool = True

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it."""
        rounded = {"seconds": round(self.seconds, 3), "blocked": round(self.blocked, 3)}
        return {**vars(self), "alphas": dict(self.alphas), **rounded}


def retune(
    client: OpenSearch,
    name: str,
    wanted: Wanted,
    *,
    throttle: float | None = None,
    patience: float = 300,
    watch: Watch = lambda _: None,
    check: Check | None = None,
) -> Retuned:
    """Make a version with another shift from the live one, and let the alias stand for it.

    Killed at any moment, it leaves the version before live and complete, and can be run again.

    Args:
        client: the cluster.
        name: the alias.
        wanted: the scales and language vectors.
        throttle: documents a second at most; None for as many as the cluster manages.
        patience: seconds to wait for a cluster that takes nothing.
        watch: told how far it is.
        check: called before the new version goes live.

    Raises:
        UsageError: what is asked for cannot be had from this index.
        ClusterError: the index's shift cannot be taken back, or the cluster does not do its part.
        FingerprintError: the vectors were fitted with another encoder.
    """
    # A version that is named by itself is refused: others stand behind the alias by and by.
    version_behind(client, name)
    left = finish_left_behind(client, name)
    index = live(client, name)
    body = copied_body(client, index.index)
    plan = planned(index, body["mappings"]["_meta"], wanted)
    asked = _asked(plan.new)
    if not plan.changes and all_agree(client, index, plan.new):
        # Nothing goes on with what another run has left, which may hold up writers.
        clear_left_behind(client, name)
        # One that was killed right after the swap has just been finished: that is what was asked for.
        finished = left if isinstance(left, Transferred) and left.asked == asked else None
        return _retuned(index, plan.new, finished)
    require_retunable(client, index, plan.old.hash)
    body["mappings"]["_meta"] = plan.meta
    require_engine(client, body)
    if pipeline.installed(client, index.index) is not None:
        # The new version gets one of its own, when it is complete.
        del body["settings"]["index"]["default_pipeline"]
    way = shift_way(client, plan.old, plan.new, index.fields)
    done = transfer(
        client,
        Plan(name, body, asked, way, throttle=throttle),
        watch=watch,
        gate=_gate(client, index, plan.new, check),
        patience=patience,
    )
    return _retuned(index, plan.new, done)


def _gate(client: OpenSearch, index: LiveIndex, new: IndexShift, check: Check | None) -> Callable[[str], None]:
    """What a new version goes through before it goes live."""

    def gate(version: str) -> None:
        # Asked only now, as somebody may have put it there meanwhile: clients go on sending raw vectors.
        follow(client, index.index, version, new, index.fields)
        if check is not None:
            check(index.index, version)

    return gate


def _asked(new: IndexShift) -> dict[str, Any]:
    """By what a later run knows a version that it may go on with."""
    return {"vectors": new.hash, "pivot": new.pivot, "alpha": new.alpha, "alphas": dict(new.alphas)}


def _retuned(index: LiveIndex, new: IndexShift, done: Transferred | None) -> Retuned:
    if done is None:
        done = Transferred(index.name, index.index, index.index, index.documents)
    return Retuned(
        name=index.name,
        index=done.index,
        before=done.live,
        documents=done.documents or index.documents,
        caught_up=done.caught_up,
        deleted=done.deleted,
        alpha=new.alpha,
        alphas=new.alphas,
        vectors=new.hash,
        seconds=done.seconds,
        blocked=done.blocked,
        changed=done.index != done.live,
    )

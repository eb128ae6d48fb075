"""The version before the live one becomes live again, with what was written since."""

from __future__ import annotations

import time
from dataclasses import replace

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.patience import Patience
from langshift.plugin import load_settings, meta, origin
from langshift.plugin.meta import uuid_of
from langshift.plugin.origin import Origin
from langshift.plugin.transfer import reading
from langshift.plugin.transfer.blocking import lift_block
from langshift.plugin.transfer.finishing import bring_up, finish, settle, swap
from langshift.plugin.transfer.forward import APART
from langshift.plugin.transfer.left_behind import clear_left_behind, finish_left_behind
from langshift.plugin.transfer.mark import Mark, new_token
from langshift.plugin.transfer.plan import RolledBack, Watch, Way
from langshift.plugin.transfer.run import Run
from langshift.plugin.transfer.strays import mend_strays
from langshift.plugin.transfer.tidy import tidied
from langshift.plugin.versions import version_behind


def roll_back(client: OpenSearch, name: str, way: Way | None, *, watch: Watch, patience: float) -> RolledBack:
    """Let the alias stand again for the version that the live one was made of or has replaced.

    Where a retune made the live one, whatever was written, updated and deleted in it since is carried over; it takes
    no writes any more afterwards, and stays. Where a load made it, the alias just moves: its documents are others.

    Args:
        client: the cluster.
        name: the alias.
        way: how a document of the live version becomes one of the previous version; None where a load made it.
        watch: is told how far it is; what it raises breaks the rollback off.
        patience: seconds to wait for a cluster that cannot be reached, or that copies no document.

    Raises:
        ClusterError: there is no previous version, or it is not what it must be.
        LangshiftError: another run has taken over.
        OpenSearchException: the cluster refuses, or cannot be reached.
    """
    started = time.monotonic()
    finished = finish_left_behind(client, name)
    if isinstance(finished, RolledBack):
        return finished
    live, before, found = previous(client, name)
    clear_left_behind(client, name)
    if found.kind == "load":
        run = _run(client, name, live, before, Way("", {}, lambda _: [], "", ""), watch, patience)
        back = _plain(run)
    else:
        if way is None:
            raise ValueError("a retune is rolled back with a way")
        run = _run(client, name, live, before, way, watch, patience)
        run.checkpoint = found.checkpoint
        back = _carried(run)
    return replace(back, kind=found.kind, seconds=time.monotonic() - started)


def previous(client: OpenSearch, name: str) -> tuple[str, str, Origin]:
    """The live version, the one that it can be rolled back to, and the live one's origin.

    Raises:
        ClusterError: there is none.
    """
    live = version_behind(client, name)
    if live is None:
        raise ClusterError(f"There is no index {name}: nothing can be rolled back.")
    found = origin.read(client, live)
    remedy = f"make one with the alpha that you want by `langshift retune {name} --alpha A`"
    if found is None or found.version is None or found.uuid is None or found.kind == "adopt":
        raise ClusterError(f"There is no version of {name} before {live}: {remedy}.")
    if uuid_of(client, found.version) != found.uuid:
        raise ClusterError(f"The version before {live}, {found.version}, was dropped: {remedy}.")
    return live, found.version, found


def _plain(run: Run) -> RolledBack:
    run.tell("swapping")
    run.ask(lambda: swap(run))
    documents = run.ask(lambda: reading.count(run.client, run.target))
    run.tell("done", documents, documents)
    return RolledBack(run.name, run.target, run.source, "load", documents=documents)


def _carried(run: Run) -> RolledBack:
    _open(run)
    with tidied(run):
        bring_up(run)
        settle(run)
        documents, blocked = finish(run)
        mend_strays(run)
        run.ask(run.mark.clear)
    run.tell("done", documents, documents)
    return RolledBack(
        run.name,
        run.target,
        run.source,
        "retune",
        documents=documents,
        caught_up=run.caught_up,
        deleted=run.deleted,
        blocked=blocked,
    )


def _run(client: OpenSearch, name: str, live: str, before: str, way: Way, watch: Watch, patience: float) -> Run:
    return Run(
        client=client,
        name=name,
        source=live,
        uuid=uuid_of(client, live),
        target=before,
        way=way,
        mark=Mark(client, before, "rollback", new_token()),
        watch=watch,
        patience=Patience(patience),
    )


def _open(run: Run) -> None:
    """Let the previous version take what is carried over to it."""
    note = {
        "from": run.source,
        "uuid": run.uuid,
        "checkpoint": list(run.checkpoint),
        "blocked": False,
        "token": run.mark.token,
    }
    run.ask(lambda: meta.note_unfinished(run.client, run.target, {"rollback": note}))
    run.ask(lambda: load_settings.quicken(run.client, run.target, fast=False, more=APART))
    uuid = run.ask(lambda: uuid_of(run.client, run.target))
    run.ask(lambda: lift_block(run.client, run.target, uuid))

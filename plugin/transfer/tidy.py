"""A run that breaks off leaves the live version serving and taking writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opensearchpy.exceptions import NotFoundError, OpenSearchException

from langshift.cluster import address
from langshift.errors import ClusterError, LangshiftError
from langshift.failures import failure
from langshift.plugin import meta
from langshift.plugin.transfer import tasks
from langshift.plugin.transfer.blocking import unblock
from langshift.plugin.transfer.left_behind import give_up
from langshift.plugin.transfer.mark import GivenUp, TakenOver, noted
from langshift.plugin.transfer.run import Run
from langshift.plugin.versions import version_behind


class Useless(Exception):
    """What was being made is refused by whoever asked for it, with the error that this was raised from."""


@contextmanager
def tidied(run: Run) -> Iterator[None]:
    """Around the steps of a run up to the swap.

    What breaks off for want of a node, or because somebody interrupts it, stays and can be gone on with, but for a
    version that is rolled back to, which costs little to begin with anew. What can never become live goes.
    """
    try:
        try:
            yield
        except NotFoundError:
            # Somebody has deleted something: that is the better thing to say.
            run.ask(run.mark.read)
            run.require_unchanged()
            raise
    except TakenOver:
        _remove_impostor(run)
        raise
    except BaseException as error:
        useless = isinstance(error, GivenUp | Useless)
        _leave(run, error, useless=useless or run.mark.kind == "rollback")
        if isinstance(error, Useless) and error.__cause__ is not None:
            raise error.__cause__ from None
        raise


def _leave(run: Run, error: BaseException, *, useless: bool) -> None:
    try:
        note = run.mark.read()
        if version_behind(run.client, run.name) == run.target:
            return  # all that is left is to clear the mark, which the next run does
        if useless:
            give_up(run.client, run.target, run.mark.kind, note)
        else:
            tasks.cancel(run.client, run.target)
            run.mark.note(task=None)
            unblock(run)
    except TakenOver:
        return
    except (OpenSearchException, LangshiftError) as trouble:
        told = failure(error, address(run.client)) if isinstance(error, OpenSearchException) else error
        if not isinstance(told, LangshiftError):
            return
        why = failure(trouble, address(run.client)) if isinstance(trouble, OpenSearchException) else trouble
        raise ClusterError(
            f"{told} Clearing up failed too, so {run.source} may take no writes until the same command, run again, "
            f"releases it: {why}"
        ) from error


def _remove_impostor(run: Run) -> None:
    """Remove what a task of this run has made of the target's name after another run had removed it."""
    try:
        kept = meta.read(run.client, run.target)
        if meta.FINGERPRINT not in kept and noted(run.client, run.target) is None:
            run.client.indices.delete(index=run.target, ignore_unavailable=True)
    except OpenSearchException:
        return

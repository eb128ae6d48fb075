"""Asking a cluster in trouble until it answers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from opensearchpy.exceptions import OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.nap import sleep_using_event

from langshift.patience import BACKOFF, Patience
from langshift.trouble import Again, Unreadable, meaning

T = TypeVar("T")
_log = logging.getLogger(__name__)


def waited_out(action: Callable[[], T], patience: Patience, stopping: threading.Event | None = None) -> T:
    """Do what may be done again, until the cluster takes it or patience ends.

    Args:
        action: what to do.
        patience: how long trouble is borne.
        stopping: set when there is nothing to wait for any more.

    Raises:
        OpenSearchException: the last trouble, or one that does not pass.
        Unreadable: likewise.
    """
    stopped = stopping or threading.Event()

    def note(state: RetryCallState) -> None:
        patience.trouble()
        _log.warning("asked again: %s", state.outcome.exception() if state.outcome else None)

    trying = Retrying(
        wait=BACKOFF,
        stop=lambda _: patience.over or stopped.is_set(),
        sleep=sleep_using_event(stopped),
        retry=retry_if_exception(_passes),
        before_sleep=note,
        reraise=True,
    )
    return trying(action)


def _passes(error: BaseException) -> bool:
    return isinstance(error, Unreadable) or (
        isinstance(error, OpenSearchException) and isinstance(meaning(error, ""), Again)
    )

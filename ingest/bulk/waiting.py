"""Asking a cluster in trouble until it answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from opensearchpy.exceptions import OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_exception

from langshift.ingest.bulk.check import Unreadable
from langshift.ingest.bulk.patience import BACKOFF, Patience
from langshift.ingest.bulk.trouble import Again, meaning

T = TypeVar("T")
_log = logging.getLogger(__name__)


def waited_out(action: Callable[[], T], patience: Patience) -> T:
    """Do what may be done again, until the cluster takes it or patience ends.

    Raises:
        OpenSearchException: the last trouble, or one that does not pass.
        Unreadable: likewise.
    """

    def note(state: RetryCallState) -> None:
        patience.trouble()
        _log.warning("asked again: %s", state.outcome.exception() if state.outcome else None)

    trying = Retrying(
        wait=BACKOFF,
        stop=lambda _: patience.over,
        retry=retry_if_exception(_passes),
        before_sleep=note,
        reraise=True,
    )
    return trying(action)


def _passes(error: BaseException) -> bool:
    return isinstance(error, Unreadable) or (
        isinstance(error, OpenSearchException) and isinstance(meaning(error, ""), Again)
    )

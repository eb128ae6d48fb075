"""How long a cluster that takes nothing is waited for."""

from __future__ import annotations

import threading
import time

from tenacity import wait_random_exponential

#: Between two tries: seconds at random, from a span that doubles with each.
BACKOFF = wait_random_exponential(multiplier=0.25, max=10)


class Patience:
    """Counts from the first trouble after something was last taken, whichever request met it.

    Attributes:
        seconds: how long trouble is borne.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._since: float | None = None
        self._lock = threading.Lock()

    def taken(self) -> None:
        """The cluster has taken something."""
        with self._lock:
            self._since = None

    def trouble(self) -> None:
        """The cluster has taken nothing of a request."""
        with self._lock:
            self._since = time.monotonic() if self._since is None else self._since

    @property
    def over(self) -> bool:
        """Whether trouble has gone on for too long."""
        with self._lock:
            return self._since is not None and time.monotonic() - self._since > self.seconds

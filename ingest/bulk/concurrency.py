"""How many requests are sent at once: as many as the cluster takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Requests at once at most: one thread each, and far below the client's pool of connections.
MOST = 8
_FIRST = 2


class Limit:
    """Additive increase, multiplicative decrease.

    Each request that goes through raises the limit by a part that makes up one more a round; a request that found
    the cluster overloaded halves it, but not once more for one that was under way at that time.

    Attributes:
        seconds: how long at least one request was under way.
    """

    def __init__(self, most: int = MOST) -> None:
        self.seconds = 0.0
        self._most = most
        self._limit = float(min(_FIRST, most))
        self._under_way = 0
        self._round = 0
        self._since = 0.0
        self._changed = threading.Condition()

    @property
    def at_once(self) -> int:
        """Requests that may be under way at once."""
        return int(self._limit)

    @contextmanager
    def request(self) -> Iterator[Turn]:
        """Wait for a turn; what the block finds out is told to the turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way < int(self._limit))
            self._under_way += 1
            if self._under_way == 1:
                self._since = time.perf_counter()
            turn = Turn(self._round)
        try:
            yield turn
        finally:
            with self._changed:
                self._under_way -= 1
                if self._under_way == 0:
                    self.seconds += time.perf_counter() - self._since
                self._learn(turn)
                self._changed.notify_all()

    def _learn(self, turn: Turn) -> None:
        if turn.overloaded:
            if turn.round == self._round:
                self._limit = max(1.0, self._limit / 2)
                self._round += 1
        elif turn.accepted:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)


class Turn:
    """One request's turn.

    Attributes:
        round: how often the limit was halved before it.
        overloaded: whether the cluster had too much to do.
        accepted: whether it took everything.
    """

    def __init__(self, in_round: int) -> None:
        self.round = in_round
        self.overloaded = self.accepted = False

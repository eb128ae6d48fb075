"""When each query is sent, and to which index first.

Closed loop: a number of users, each of whom asks the next query as soon as the last one is answered.
Open loop: queries come when they come, whether or not the last ones are answered, as from users who know
nothing of each other. Such arrivals are a Poisson process; given how many there are, their times are
independent and uniform. So ``arrivals`` draws exactly that: bursts and gaps as in production, and still
exactly the rate asked for. The draw is the same every time, so that two replays meet the same bursts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

MOST_AT_ONCE = 256
AT_ONCE_IN_OPEN_LOOP = 64
WARM_UP = 5
_SEED = 20


@dataclass(frozen=True)
class Load:
    """How queries are sent.

    Attributes:
        concurrency: how many queries are under way at once: exactly in closed loop, at most in open loop.
        rate: queries a second, in open loop; None in closed loop, or where a log says when each came.
        speed: how much faster than it came a log is sent; None without the times of a log.
        warm_up: how many queries each index gets first in each setting, uncounted.
    """

    concurrency: int = 1
    rate: float | None = None
    speed: float | None = None
    warm_up: int = WARM_UP

    @property
    def open_loop(self) -> bool:
        """Whether queries are sent when they are due, answered or not."""
        return self.rate is not None or self.speed is not None

    def due(self, count: int, logged: Sequence[float] | None = None) -> list[float | None]:
        """Seconds after the start at which each query is sent; None in closed loop.

        Args:
            count: how many queries.
            logged: when each query came, in seconds, ascending; needed with ``speed``.
        """
        if self.rate is not None:
            return [*arrivals(count, self.rate)]
        if self.speed is not None and logged is not None:
            return [(time - logged[0]) / self.speed for time in logged]
        return [None] * count

    def to_dict(self) -> dict[str, float | str | None]:
        """As it stands in ``result.json`` under ``load``."""
        return {
            "loop": "open" if self.open_loop else "closed",
            "concurrency": self.concurrency,
            "rate": self.rate,
            "speed": self.speed,
            "warm_up": self.warm_up,
        }


def arrivals(count: int, rate: float) -> list[float]:
    """The times of ``count`` random arrivals within ``count / rate`` seconds, ascending."""
    draw = Random(_SEED)  # noqa: S311 - no secret
    return sorted(draw.uniform(0, count / rate) for _ in range(count))


def rotated(number: int, places: int) -> list[int]:
    """The order in which the query of this number goes to the indices: each comes first as often."""
    return [(number + place) % places for place in range(places)]

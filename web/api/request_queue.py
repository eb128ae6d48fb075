"""How many requests are worked on at once, and how long one waits for its turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from langshift.web.api.errors import ApiError

#: Requests that are worked on at once: most of the time of each is spent waiting for the cluster.
AT_ONCE: Final = 8


class Turns:
    """Lets requests in one after another, in the order in which they came; who would wait too long is sent away."""

    def __init__(self, seconds: float, on_wait: Callable[[int], None]) -> None:
        """Let nobody wait longer than so many seconds; ``on_wait`` is told how many more wait, or fewer."""
        self._seconds, self._free, self._on_wait = seconds, asyncio.Semaphore(AT_ONCE), on_wait

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """A turn.

        Raises:
            ApiError: it did not come in time.
        """
        self._on_wait(1)
        try:
            await asyncio.wait_for(self._free.acquire(), self._seconds)
        except asyncio.TimeoutError:
            again = {"retry-after": str(max(1, round(self._seconds)))}
            raise ApiError("busy", "The service is busy: ask again in a moment.", again) from None
        finally:
            self._on_wait(-1)
        try:
            yield
        finally:
            self._free.release()

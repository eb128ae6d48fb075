"""How many requests are worked on at once, and how long one waits for its turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from langshift.web.api.errors import ApiError

#: Requests that are worked on at once: most of the time of each is spent waiting for the cluster.
AT_ONCE: Final = 8


class Turns:
    """Lets requests in one after another, in the order in which they came; who would wait too long is sent away.

    Attributes:
        waiting: how many wait.
    """

    def __init__(self, seconds: float, at_once: int = AT_ONCE) -> None:
        """Let so many in at once, and nobody wait longer than so many seconds."""
        self._seconds, self._free, self.waiting = seconds, asyncio.Semaphore(at_once), 0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """A turn.

        Raises:
            ApiError: it did not come in time.
        """
        self.waiting += 1
        try:
            await asyncio.wait_for(self._free.acquire(), self._seconds)
        except asyncio.TimeoutError:
            again = {"retry-after": str(max(1, round(self._seconds)))}
            raise ApiError("busy", "The service is busy: ask again in a moment.", again) from None
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._free.release()

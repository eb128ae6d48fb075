"""Connections on which no request comes are closed, so that who opens many keeps nobody else out."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds from when a connection is opened, or a request on it was answered, until the head of the next one is there.
# A browser opens some ahead of its requests, and opens them again.
_LONGEST: Final = 20.0


class Patient(H11Protocol):
    """Uvicorn's own protocol, which waits for a request no longer than so long."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection was opened."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """A request was answered; the next may be there already."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It was closed."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._waiting = self.loop.call_later(_LONGEST, self._end_idle)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def _end_idle(self) -> None:
        # A request whose head is there is answered, however long that takes; its answer begins the wait anew.
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

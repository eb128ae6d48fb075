"""k-NN's memory breaker: the server out of memory for graphs says 400, as if the document were bad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, NotFoundError, OpenSearchException

_STATS = "/_plugins/_knn/stats"


class Breaker:
    """Tells the breaker's 400 from that of a bad document, in the answers to one chunk.

    A document is bad only where the plugin's statistics say so both before and after the request: a breaker that
    recovers between the refusal and the question must not cost a document.
    """

    def __init__(self, client: OpenSearch) -> None:
        self._client = client
        self._off_before = False
        self._triggered: bool | None = None

    def begin(self) -> None:
        """A request is about to be sent."""
        self._off_before = self._triggered is False
        self._triggered = None

    def caused(self, error: Mapping[str, Any]) -> bool:
        """Whether the breaker made, or may have made, the server refuse a document of the request.

        Args:
            error: the item's ``error``. Its words name the breaker in new versions; older ones only say that the
                vector's field could not be parsed, and the plugin's statistics have to tell.
        """
        words = str(error).lower()
        if "circuit breaker" in words or "circuit_breaker" in words or "circuit_breaking" in words:
            return True
        if "knn" not in words:
            return False
        if self._triggered is None:
            self._triggered = self._ask()
        return self._triggered or not self._off_before

    def _ask(self) -> bool:
        try:
            stats = self._client.transport.perform_request("GET", _STATS)
        except (AuthorizationException, NotFoundError):
            return False
        except OpenSearchException:
            # Nobody knows: the documents are sent again rather than given up.
            return True
        return isinstance(stats, dict) and stats.get("circuit_breaker_triggered") is True

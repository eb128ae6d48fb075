"""What Prometheus is told: requests, searches, in which languages the hits are, errors, who waits."""

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from langshift.web.workers import FIGURES

# Seconds; a search takes some milliseconds, one with a reranker some seconds.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The figures of this process and, where several serve together, of all.

    Attributes:
        waiting: requests that wait for their turn.
        searches: those that were answered, by index, mode and the query's language.
        hits: of these, by index and language.
    """

    def __init__(self) -> None:
        """Begin at zero."""
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("langshift_requests", "Requests.", ["path", "status"], registry=registry)
        self._took = Histogram(
            "langshift_request_seconds", "Time to the answer.", ["path"], buckets=_SECONDS, registry=registry
        )
        of_search = ["index", "mode", "query_language"]
        self.searches = Counter("langshift_searches", "Searches that were answered.", of_search, registry=registry)
        self.hits = Counter("langshift_hits", "Hits by their language.", ["index", "hit_language"], registry=registry)
        self._errors = Counter("langshift_errors", "Requests without an answer.", ["code"], registry=registry)
        told = "Requests that wait for their turn."
        self.waiting = Gauge("langshift_waiting", told, registry=registry, multiprocess_mode="livesum")

    def failed(self, code: str) -> None:
        """A request was answered with an error."""
        self._errors.labels(code).inc()

    def answered(self, path: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(path, status).inc()
        self._took.labels(path).observe(seconds)

    def exposed(self) -> tuple[bytes, str]:
        """The figures as text, and its content type."""
        registry = self._registry
        if FIGURES in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST

"""The fields of documents that are known to be found."""

from __future__ import annotations

from collections.abc import Sequence

from langshift.retrieval import bodies
from langshift.retrieval.bodies import Source
from langshift.retrieval.exchange import Exchange
from langshift.retrieval.found import Candidate
from langshift.retrieval.reading import sources
from langshift.retrieval.target import Target


def with_sources(hits: Sequence[Candidate], target: Target, source: Source) -> Exchange[tuple[Candidate, ...]]:
    """The hits with the fields that they are to bring; one step, or none."""
    if not source or not hits:
        return tuple(hits)
    (response,) = yield (bodies.named([hit.id for hit in hits], target.index.fields, source),)
    brought = sources([response])
    return tuple(hit._replace(source=brought.get(hit.id, {})) for hit in hits)

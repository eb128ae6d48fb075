"""A search as it would be if some documents were not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langshift.retrieval.exchange import Exchange

T = TypeVar("T")


def hiding(exchange: Exchange[T], gone: Sequence[Mapping[str, Any]]) -> Exchange[T]:
    """An exchange, in every step of which the documents that match one of the clauses are left out.

    Scores stay as they are. Nearest neighbours are left out after they were found: the few that are hidden are less
    than what is looked at beside those that are wanted.
    """
    try:
        asked = next(exchange)
        while True:
            without = tuple(
                body | {"query": {"bool": {"must": [body["query"]], "must_not": list(gone)}}} for body in asked
            )
            asked = exchange.send((yield without))
    except StopIteration as end:
        result: T = end.value
        return result

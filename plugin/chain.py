"""Which ingest pipelines run one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import UsageError


def read_body(client: OpenSearch, name: str) -> dict[str, Any] | None:
    """The body of a pipeline; None where there is none of that name."""
    try:
        found: dict[str, Any] = client.ingest.get_pipeline(id=name)[name]
    except (NotFoundError, KeyError):
        return None
    return found


def require_runnable(client: OpenSearch, first: str, name: str) -> None:
    """Refuse a pipeline that cannot run before the pipeline ``name``.

    Raises:
        UsageError: it does not exist, would run ``name`` in a circle, or copies vectors that are shifted already.
    """
    if read_body(client, first) is None:
        raise UsageError(f"There is no ingest pipeline {first}: make it first, or give another name.")
    if name in reached(client, first):
        raise UsageError(f"The pipeline {first} runs {name}, which would run it in turn: take that out of it first.")
    for one in sorted(reached(client, first)):
        # neural-search's processors take the vector of the document that is in the index for the new one then.
        if any(step.get("skip_existing") for step in _inner(read_body(client, one))):
            raise UsageError(
                f"The pipeline {one} has a processor with skip_existing, which copies vectors that are shifted "
                "already, to be shifted again: set that to false first."
            )


def reached(client: OpenSearch, first: str) -> set[str]:
    """All pipelines that run when one does, with itself."""
    met: set[str] = set()
    todo = [first]
    while todo:
        one = todo.pop()
        if one not in met:
            met.add(one)
            todo.extend(_called(read_body(client, one)))
    return met


def _called(found: dict[str, Any] | None) -> Iterator[str]:
    """The pipelines that processors run, however deep they are."""
    for step in _inner(found):
        inner = step.get("pipeline")
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            yield inner["name"]


def _inner(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any JSON
    """All objects in a JSON value, itself first."""
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _inner(part)

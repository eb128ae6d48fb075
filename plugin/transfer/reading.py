"""Reading versions in a way that never takes a part for the whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException

from langshift.plugin import index_settings
from langshift.trouble import Unreadable

# A request of so many ids of 512 bytes is one that any server takes.
_PAGE = 5000
# A copy that gets its segments from the primary may lag behind it, whatever was refreshed.
_PRIMARY = {"preference": "_primary"}


class Shard(NamedTuple):
    """How far one shard is.

    Attributes:
        checkpoint: every operation up to this one is in all its copies, so that whichever copy is refreshed and
            searched after this was read shows it.
        latest: the last operation that it was given.
    """

    checkpoint: int
    latest: int


def shards(client: OpenSearch, index: str) -> tuple[Shard, ...]:
    """How far each shard is, by number.

    Raises:
        Unreadable: one has no primary at this moment.
    """
    settings = index_settings.read(client, index)
    answer = client.indices.stats(index=index, metric="docs", params={"level": "shards"})
    found: dict[int, Shard] = {}
    for number, copies in answer.get("indices", {}).get(index, {}).get("shards", {}).items():
        for copy in copies:
            if copy["routing"]["primary"] and "seq_no" in copy:
                numbers = copy["seq_no"]
                found[int(number)] = Shard(int(numbers["global_checkpoint"]), int(numbers["max_seq_no"]))
    if len(found) < int(settings["number_of_shards"]):
        raise Unreadable(f"Index {index} has a shard that no node serves at this moment: bring its node back.")
    return tuple(found[number] for number in sorted(found))


def refresh(client: OpenSearch, index: str) -> None:
    """Let searches find everything written so far, in each copy.

    Raises:
        Unreadable: one does not answer.
    """
    answer = client.indices.refresh(index=index)["_shards"]
    if answer["failed"]:
        raise Unreadable(f"{answer['failed']} of {answer['total']} shard copies of {index} could not be refreshed.")


def count(client: OpenSearch, index: str, query: dict[str, Any] | None = None) -> int:
    """How many documents a version holds, or how many of them match."""
    body = {"size": 0, "track_total_hits": True, "query": query or {"match_all": {}}}
    answer = search(client, body, index=index)
    return int(answer["hits"]["total"]["value"])


def search(client: OpenSearch, body: dict[str, Any], index: str | None = None) -> dict[str, Any]:
    """A search that fails where a shard does not answer, instead of leaving its documents out."""
    # A point in time has its copies already.
    params = {"allow_partial_search_results": "false", **({} if index is None else _PRIMARY)}
    answer: dict[str, Any] = client.search(index=index, body=body, params=params)
    return answer


def pages(client: OpenSearch, index: str, body: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """All hits of a search, as they were when it began, page by page.

    Raises:
        NotFoundError: there is no such index.
        Unreadable: a node that held a part of it is gone.
    """
    params = {"keep_alive": "10m", "allow_partial_pit_creation": "false", **_PRIMARY}
    pit = client.create_pit(index=index, params=params)["pit_id"]
    try:
        size = page_size(client, index)
        asked = {**body, "size": size, "sort": [{"_shard_doc": "asc"}], "track_total_hits": False}
        while True:
            try:
                answer = search(client, {**asked, "pit": {"id": pit, "keep_alive": "10m"}})
            except NotFoundError as error:
                raise Unreadable(f"A node that held a part of {index} is gone.") from error
            hits = answer["hits"]["hits"]
            if hits:
                yield hits
            if len(hits) < size:
                return
            asked["search_after"] = hits[-1]["sort"]
    finally:
        with suppress(OpenSearchException):
            client.delete_pit(body={"pit_id": [pit]})


def page_size(client: OpenSearch, index: str) -> int:
    """How many ids of a version may be asked for at a time: each might be there twice, with two routings."""
    return max(1, min(_PAGE, index_settings.window(index_settings.read(client, index)) // 2))

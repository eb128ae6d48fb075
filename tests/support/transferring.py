"""An index of small vectors to transfer, a script that is easy to follow, and people who write meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from plain_index import PLAIN

from langshift.plugin import metadata, version_writer
from langshift.plugin.index_body import copied_body
from langshift.plugin.transfer.state import ScriptTransform, TransferPlan, TransferProgress
from langshift.plugin.versions import Target

_METHOD = {
    "space_type": "cosinesimil",
    "compression_level": "1x",
    "method": {"name": "hnsw", "engine": "lucene"},
}
SCRIPT = "langshift-test-transfer"
_SOURCE = """
    if (ctx._source.embedding == null) { return; }
    if (ctx._source.shift == null) { throw new IllegalArgumentException('The document ' + ctx._id + ' has no stamp.'); }
    def v = ctx._source.embedding;
    for (int i = 0; i < v.size(); i++) { v.set(i, (float) (((Number) v[i]).doubleValue() + params.add)); }
    ctx._source.shift = ['alpha': params.alpha];
"""


def index(client: OpenSearch, name: str, documents: int = 0, **settings: Any) -> Target:
    """A version that is live, with documents 0, 1, ... of four dimensions; ``settings`` are the index's."""
    body = {
        "settings": {"index": {"knn": True, "number_of_shards": 1, "number_of_replicas": 0, **settings}},
        "mappings": {
            "_meta": {metadata.FINGERPRINT: PLAIN.to_dict()},
            "properties": {
                "n": {"type": "integer"},
                "embedding": {"type": "knn_vector", "dimension": 4, **_METHOD},
                "shift": {"properties": {"page": {"type": "keyword"}}},
            },
        },
    }
    target = version_writer.open_for_writing(client, name, PLAIN, body=body)
    lines: list[dict[str, Any]] = []
    for number in range(documents):
        lines += [{"index": {"_id": str(number)}}, document(number)]
    if lines:
        assert not client.bulk(index=target.index, body=lines)["errors"]
    version_writer.publish(client, target)
    return target


def document(number: int) -> dict[str, Any]:
    """A document whose vector depends on its number."""
    return {"n": number, "embedding": [1.0 + number, 2.0, 3.0, 4.5], "shift": {"alpha": 0.0}}


def way(client: OpenSearch, add: float = 0.25) -> ScriptTransform:
    """Adds a number to each component."""
    client.put_script(id=SCRIPT, body={"script": {"lang": "painless", "source": _SOURCE}})

    def expected(sources: Sequence[Mapping[str, Any]]) -> list[NDArray[np.floating[Any]] | None]:
        vectors = (source.get("embedding") for source in sources)
        return [None if vector is None else np.asarray(vector, dtype=np.float64) + add for vector in vectors]

    return ScriptTransform(SCRIPT, {"add": add, "alpha": add}, expected, "embedding", "shift")


def plan(client: OpenSearch, name: str, add: float = 0.25, **values: Any) -> TransferPlan:
    """Adds a number to each vector of the live version."""
    body = deepcopy(copied_body(client, name))
    return TransferPlan(name, body, {"add": add}, way(client, add), **values)


class Meanwhile:
    """A watch that does something once, at the first word of a stage; and keeps the stages that it was told."""

    def __init__(self, **actions: Callable[[], Any]) -> None:
        self._actions = {stage.replace("_", " "): action for stage, action in actions.items()}
        self.stages: list[str] = []

    def __call__(self, progress: TransferProgress) -> None:
        if progress.stage not in self.stages:
            self.stages.append(progress.stage)
        if action := self._actions.pop(progress.stage, None):
            action()


def unwatched(_: TransferProgress) -> None:
    """A watch that does nothing."""


def everything(client: OpenSearch, index: str) -> dict[tuple[str, str | None], tuple[int, dict[str, Any]]]:
    """Id and routing of each document -> its version and what it holds, without the stamp's alpha."""
    client.indices.refresh(index=index)
    hits = client.search(index=index, body={"size": 10_000, "version": True})["hits"]["hits"]
    return {(hit["_id"], hit.get("_routing")): (hit["_version"], hit["_source"]) for hit in hits}


def moved(
    documents: Mapping[tuple[str, str | None], tuple[int, dict[str, Any]]], add: float = 0.25
) -> dict[tuple[str, str | None], tuple[int, dict[str, Any]]]:
    """What ``everything`` must give of the version that was made of these documents."""
    made = deepcopy(dict(documents))
    for _, source in made.values():
        if source.get("embedding") is not None:
            source["embedding"] = [component + add for component in source["embedding"]]
            source["shift"] = {"alpha": add}
    return made


def unfinished(client: OpenSearch, index: str) -> dict[str, Any] | None:
    """The mark of a version."""
    return metadata.unfinished(client, index)


def blocked(client: OpenSearch, index: str) -> bool:
    """Whether a version takes no writes."""
    settings = client.indices.get_settings(index=index)[index]["settings"]["index"]
    return settings.get("blocks", {}).get("write") == "true"


def behind(client: OpenSearch, name: str) -> list[str]:
    """What the alias stands for."""
    return sorted(client.indices.get_alias(name=name))


def make_anew(client, index, identifier, body):
    """Delete a document and write it again, with version 1; ``index.gc_deletes`` of the index must be 0."""
    for _ in range(20):
        client.delete(index=index, id=identifier)
        # The server looks at its clock five times a second only, and forgets what was deleted when it refreshes.
        time.sleep(0.3)
        client.indices.refresh(index=index)
        if client.index(index=index, id=identifier, body=body)["_version"] == 1:
            return
    raise AssertionError(f"{index} still remembers {identifier}")

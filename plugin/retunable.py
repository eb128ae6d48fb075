"""What stands against taking back the shift of an index's documents, asked before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch

from langshift.console import counted
from langshift.errors import ClusterError
from langshift.plugin import index_settings
from langshift.plugin.engine import vectors_come_back_normalised
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.stamps import count_stamps
from langshift.plugin.versions import LiveIndex


def require_retunable(client: OpenSearch, index: LiveIndex, vectors: str | None) -> None:
    """Refuse an index whose documents' shift cannot be taken back, or that cannot be blocked at the end.

    Args:
        client: the cluster.
        index: the live version.
        vectors: hash of the language vectors that it was made with.

    Raises:
        ClusterError: saying why, with one of the documents.
    """
    _require_changeable(client, index.index)
    require_copied_from_primaries(client, index.index)
    _require_as_written(client, index.index, index.fields.vector)
    _require_stamps(client, index, vectors)


def require_copied_from_primaries(client: OpenSearch, index: str) -> None:
    """Refuse an index of which ``_reindex`` may read a copy that lags behind.

    Raises:
        ClusterError: saying what to change meanwhile.
    """
    if lagging_replicas(index_settings.read(client, index)):
        remedy = '{"index": {"number_of_replicas": 0, "auto_expand_replicas": false}}'
        raise ClusterError(
            f"Index {index} has replicas by segment replication, which may lag behind what was written when their "
            f"documents are copied: do without them meanwhile by `PUT /{index}/_settings` and {remedy}, then run again."
        )


def lagging_replicas(settings: Mapping[str, Any]) -> bool:
    """Whether an index has replicas that take segments over and not writes, by the ``index`` part of its settings."""
    by_segment = settings.get("replication", {}).get("type") == "SEGMENT"
    return by_segment and int(settings.get("number_of_replicas", 1)) > 0


def all_agree(client: OpenSearch, index: LiveIndex, shift: IndexShift) -> bool:
    """Whether no document was shifted by another scale than its index says, as one that came from another version."""
    client.indices.refresh(index=index.index)
    return not count_stamps(client, index.index, shift, index.fields).other_scale


def _require_changeable(client: OpenSearch, index: str) -> None:
    block = "index.blocks.read_only"
    if index_settings.is_on(index_settings.read(client, index).get("blocks", {}).get("read_only")):
        raise ClusterError(
            f"Index {index} has the block {block}, under which a retune cannot hold back the last writes: take it away "
            f'with `PUT /{index}/_settings` and {{"{block}": null}}, then run again.'
        )


def _require_as_written(client: OpenSearch, index: str, vector: str) -> None:
    if vectors_come_back_normalised(client, index, vector):
        raise ClusterError(
            f"Index {index} keeps its vectors with the engine faiss, cosinesimil and derived source, which gives them "
            "back with norm 1 and not as they were written, so that no shift can be taken back: index the corpus again "
            "with `langshift ingest --if-exists new-version`, which switches derived source off."
        )


def _require_stamps(client: OpenSearch, index: LiveIndex, vectors: str | None) -> None:
    client.indices.refresh(index=index.index)
    stamp = index.fields.stamp
    unmoved = {"term": {f"{stamp}.alpha": 0}}
    own = [] if vectors is None else [{"term": {f"{stamp}.vectors": vectors}}]
    stamped = {"exists": {"field": f"{stamp}.alpha"}}
    kinds = {
        "no stamp says what was done to the vector of {}": ([], [stamped]),
        "{} was moved by another method than shift": (
            [{"exists": {"field": f"{stamp}.method"}}],
            [{"term": {f"{stamp}.method": "shift"}}],
        ),
        "{} was shifted by other language vectors than the index's": ([stamped], [unmoved, *own]),
    }
    for reason, (must, must_not) in kinds.items():
        query = {"bool": {"filter": [{"exists": {"field": index.fields.vector}}, *must], "must_not": must_not}}
        body = {"query": query, "size": 1, "track_total_hits": True, "_source": False}
        found = client.search(index=index.index, body=body)["hits"]
        if number := found["total"]["value"]:
            why = reason.format(found["hits"][0]["_id"])
            remedy = f"`langshift ingest CORPUS --index {index.name} --if-exists append`"
            raise ClusterError(
                f"{counted(number, 'document')} of {index.index} cannot be retuned: {why}, for one; index such "
                f"documents again with {remedy}, or delete them."
            )

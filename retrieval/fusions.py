"""Which fusions of a hybrid search a cluster does itself."""

from __future__ import annotations

from opensearchpy import OpenSearch

from langshift.cluster import plugins, version, version_tuple
from langshift.retrieval.wanted import FUSIONS, Fusion

_PLUGIN = "opensearch-neural-search"
# Fusion -> the version of the cluster from which on its legs can be weighted there.
_SINCE: dict[Fusion, tuple[int, ...]] = {"min-max": (3, 0), "rrf": (3, 1)}


def fusions(client: OpenSearch) -> frozenset[Fusion]:
    """The fusions that the cluster can do; none where the user may not ask for plugins and version."""
    number = version(client) if _PLUGIN in (plugins(client) or ()) else None
    return frozenset(fusion for fusion in FUSIONS if number is not None and version_tuple(number) >= _SINCE[fusion])

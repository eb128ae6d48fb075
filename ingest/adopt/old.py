"""The index that is to be adopted: found, looked at, and never written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException, RequestError

from langshift.errors import UsageError
from langshift.failures import reason
from langshift.plugin import meta
from langshift.plugin.index_settings import is_on


@dataclass(frozen=True)
class OldIndex:
    """An index that somebody else has made.

    Attributes:
        name: what was asked for, an index or an alias.
        index: the index itself.
        uuid: the server's own id of it.
        mappings: as ``GET /index/_mapping`` gives them.
        settings: flat, with the server's defaults.
    """

    name: str
    index: str
    uuid: str
    mappings: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def shards(self) -> int:
        """How many primary shards it has."""
        return int(self.settings["index.number_of_shards"])

    @property
    def shown(self) -> str:
        """How messages name it."""
        return self.name if self.name == self.index else f"{self.name} ({self.index})"


def find(client: OpenSearch, name: str) -> OldIndex:
    """Look at an index; only reads.

    Args:
        client: the cluster.
        name: an index, or an alias over one.

    Raises:
        UsageError: there is none, it is several, closed, langshift's own, or does not keep whole documents.
    """
    index = _index_of(client, name)
    kept = client.indices.get_settings(index=index, params={"flat_settings": "true", "include_defaults": "true"})[index]
    settings = {**kept.get("defaults", {}), **kept["settings"]}
    if is_on(settings.get("index.verified_before_close")):
        raise UsageError(f"Index {index} is closed: open it with POST /{index}/_open.")
    mappings = client.indices.get_mapping(index=index)[index]["mappings"]
    if meta.FINGERPRINT in mappings.get("_meta", {}):
        raise UsageError(f"Index {index} is langshift's own already: change its shift with `langshift retune`.")
    _require_whole_documents(index, mappings)
    return OldIndex(name, index, settings["index.uuid"], mappings, settings)


def _index_of(client: OpenSearch, name: str) -> str:
    if not name or any(sign in name for sign in "*?,"):
        raise UsageError(f"{name!r} is not the name of one index or alias: give that, without wildcards and commas.")
    try:
        found: dict[str, Any] = client.indices.get_alias(index=name)
    except NotFoundError:
        _require_no_data_stream(client, name)
        raise UsageError(f"There is no index {name}: `GET /_cat/indices` lists those of the cluster.") from None
    except RequestError as error:
        raise UsageError(f"{name!r} cannot be an index's name: {reason(error)}.") from error
    if name in found:
        return name
    if len(found) != 1:
        several = f"stands for {len(found)} indices ({', '.join(sorted(found))})" if found else "stands for no index"
        raise UsageError(f"{name} {several}: give the name of one index.")
    ((index, there),) = found.items()
    if "filter" in there["aliases"].get(name, {}):
        raise UsageError(f"{name} is an alias with a filter, but all of an index is adopted: give its name, {index}.")
    return index


def _require_no_data_stream(client: OpenSearch, name: str) -> None:
    try:
        ((_, streams),) = client.indices.get_data_stream(name=name).items()
    except OpenSearchException:
        return
    indices = ", ".join(one["index_name"] for stream in streams for one in stream["indices"])
    raise UsageError(f"{name} is a data stream: give the name of an index of it ({indices}).")


def _require_whole_documents(index: str, mappings: Mapping[str, Any]) -> None:
    source = mappings.get("_source", {})
    if source.get("enabled") is False:
        lost = "keeps no `_source`"
    elif source.get("includes") or source.get("excludes"):
        lost = "keeps only a part of each document's `_source`"
    else:
        return
    raise UsageError(
        f"Index {index} {lost}, so what its documents held cannot be read from it: load them from where they came "
        "from, with `langshift ingest`."
    )

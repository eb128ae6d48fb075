"""An index is one alias (``news``) over versioned indices (``news-v0001``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, RequestError

from langshift.errors import ClusterError, UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.query_vectors import QueryVectors
from langshift.plugin.template import index_body

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_OURS, _QUERIES, _UNFINISHED = "langshift", "langshift_queries", "langshift_unfinished"
_LONGEST_NAME = 200  # bytes; the server allows 255 for the name with its version


@dataclass(frozen=True)
class LiveIndex:
    """The version that an alias points to.

    Attributes:
        name: the alias.
        index: the versioned index behind it.
        fingerprint: what made its vectors.
        languages: primary tags of the documents' languages, most frequent first, without ``und``.
        documents: how many documents it holds.
    """

    name: str
    index: str
    fingerprint: Fingerprint
    languages: tuple[str, ...]
    documents: int


@dataclass(frozen=True)
class Target:
    """The version that a load writes to.

    Attributes:
        name: the alias.
        index: the versioned index.
        created: whether this load made it; then nobody sees it before ``publish``.
    """

    name: str
    index: str
    created: bool

    @property
    def bulk_parameters(self) -> dict[str, Any]:
        """Where a bulk request goes.

        An index that somebody deletes meanwhile would be made anew by the next write, without its mapping:
        the alias, which goes with the index, is demanded where there is one; ``publish`` checks the others.
        """
        return {"index": self.index} if self.created else {"index": self.name, "params": {"require_alias": "true"}}


def live(client: OpenSearch, name: str) -> LiveIndex:
    """What stands behind the alias ``name``.

    Raises:
        ClusterError: there is no such alias, or it is not langshift's.
    """
    index = version_behind(client, name)
    if index is None:
        raise ClusterError(f"There is no index {name}: make it with `langshift ingest CORPUS --index {name}`.")
    fingerprint = read_fingerprint(client, index)
    answer = client.search(
        index=index,
        body={
            "size": 0,
            "track_total_hits": True,
            "aggs": {"languages": {"terms": {"field": "language", "size": 1000}}},
        },
    )
    languages = [bucket["key"] for bucket in answer["aggregations"]["languages"]["buckets"]]
    return LiveIndex(
        name=name,
        index=index,
        fingerprint=fingerprint,
        languages=tuple(tag for tag in languages if tag != UNDETERMINED),
        documents=int(answer["hits"]["total"]["value"]),
    )


def version_behind(client: OpenSearch, name: str) -> str | None:
    """The versioned index behind the alias ``name``, or None where there is nothing of that name.

    Raises:
        UsageError: ``name`` cannot be an index's name.
        ClusterError: ``name`` is an index, or an alias of several.
    """
    check_name(name)
    try:
        found: dict[str, Any] = client.indices.get(index=name)
    except NotFoundError:
        return None
    if name in found:
        raise ClusterError(f"{name} is an index and not an alias over versions: give the alias, or another name.")
    if len(found) > 1:
        raise ClusterError(
            f"{name} is an alias of {len(found)} indices ({', '.join(sorted(found))}): choose another name."
        )
    (index,) = found
    return index


def read_fingerprint(client: OpenSearch, index: str) -> Fingerprint:
    """The fingerprint in an index's mapping.

    Raises:
        ClusterError: the index has none.
    """
    try:
        return Fingerprint.from_dict(_meta(client, index)[_OURS])
    except (KeyError, TypeError):
        raise ClusterError(
            f"Index {index} carries no fingerprint of langshift: it was made by something else."
        ) from None


def read_query_vectors(client: OpenSearch, index: str) -> QueryVectors | None:
    """What an index's queries can be shifted by; None where the index keeps nothing."""
    kept = _meta(client, index).get(_QUERIES)
    return None if kept is None else QueryVectors.from_dict(kept)


def open_for_writing(
    client: OpenSearch, name: str, fingerprint: Fingerprint, queries: QueryVectors | None = None
) -> Target:
    """The version that documents of this fingerprint may be written to; made if there is none.

    A version that this makes stays out of sight until ``publish``, and is marked unfinished until then: what
    an interrupted load left behind is never mixed with another load's documents.

    Args:
        client: the cluster.
        name: the alias.
        fingerprint: what makes the documents' vectors.
        queries: what queries can be shifted by; kept where the version is made here.

    Raises:
        FingerprintError: the alias points to a version with vectors of another making.
        UsageError: ``name`` cannot be an index's name.
    """
    index = version_behind(client, name)
    if index is not None:
        read_fingerprint(client, index).require_same(
            fingerprint, name, "give what it was made with, or choose another index name"
        )
        return Target(name, index, created=False)
    existing = versions(client, name)
    number = int(existing[-1].rpartition("-v")[2]) + 1 if existing else 1
    index = f"{name}-v{number:04}"
    body = index_body(fingerprint, queries)
    body["mappings"]["_meta"][_UNFINISHED] = True
    try:
        client.indices.create(index=index, body=body)
    except RequestError as error:
        if error.error != "resource_already_exists_exception":
            raise
        raise ClusterError(f"Another load is making {name} at this moment: run again when it is done.") from error
    return Target(name, index, created=True)


def unfinished(client: OpenSearch, name: str) -> list[str]:
    """Versions that a load is making, or that an interrupted one left behind; no search sees them."""
    return [index for index in versions(client, name) if _meta(client, index).get(_UNFINISHED)]


def versions(client: OpenSearch, name: str) -> Sequence[str]:
    """All versions of ``name`` on the cluster, oldest first."""
    pattern = re.compile(re.escape(name) + r"-v\d{4,}")
    found = client.indices.get(index=f"{name}-v*", expand_wildcards="open,closed")
    return sorted((i for i in found if pattern.fullmatch(i)), key=lambda i: int(i.rpartition("-v")[2]))


def publish(client: OpenSearch, target: Target) -> None:
    """Make everything written searchable, and point the alias to a version made by this load.

    Raises:
        ClusterError: the version was deleted meanwhile, or another load has published one.
    """
    client.indices.refresh(index=target.index)
    if not target.created:
        return
    meta = _meta(client, target.index)
    if not meta.pop(_UNFINISHED, False):
        raise ClusterError(f"Index {target.index} was deleted by somebody while it was being written: run again.")
    present = version_behind(client, target.name)
    if present is not None:
        raise ClusterError(
            f"Another load has made {target.name} ({present}) meanwhile, so this one's documents were not added: "
            "run again to add them."
        )
    client.indices.put_mapping(index=target.index, body={"_meta": meta})
    client.indices.update_aliases(body={"actions": [{"add": {"index": target.index, "alias": target.name}}]})


def discard(client: OpenSearch, target: Target) -> None:
    """Remove a version that this load made and that nobody has seen."""
    if target.created:
        client.indices.delete(index=target.index, ignore_unavailable=True)


def drop(client: OpenSearch, name: str) -> None:
    """Remove the alias ``name`` with all its versions; nothing happens where there is none.

    Raises:
        ClusterError: ``name`` or one of its versions is not langshift's; then nothing is removed.
    """
    version_behind(client, name)
    found = versions(client, name)
    for index in found:
        read_fingerprint(client, index)
    for index in found:
        client.indices.delete(index=index)


def _meta(client: OpenSearch, index: str) -> dict[str, Any]:
    meta: dict[str, Any] = client.indices.get_mapping(index=index)[index]["mappings"].get("_meta", {})
    return meta


def check_name(name: str) -> None:
    """Refuse what cannot be the name of an index.

    Raises:
        UsageError: with the rule.
    """
    if not _NAME.fullmatch(name) or len(name.encode()) > _LONGEST_NAME:
        raise UsageError(
            f"{name!r} cannot be an index's name: use lower-case letters a-z, digits, '-', '_' and '.', "
            "beginning with a letter or digit."
        )

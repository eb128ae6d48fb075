"""An index is one alias (``news``) over versioned indices (``news-v0001``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import ClusterError, UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin import meta
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.query_vectors import QueryVectors

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
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
        return Fingerprint.from_dict(meta.read(client, index)[meta.FINGERPRINT])
    except (KeyError, TypeError):
        raise ClusterError(
            f"Index {index} carries no fingerprint of langshift: it was made by something else."
        ) from None


def read_query_vectors(client: OpenSearch, index: str) -> QueryVectors | None:
    """What an index's queries can be shifted by; None where the index keeps nothing."""
    kept = meta.read(client, index).get(meta.QUERIES)
    return None if kept is None else QueryVectors.from_dict(kept)


def unfinished(client: OpenSearch, name: str) -> list[str]:
    """Versions that a load is making, or that an interrupted one left behind; no search sees them."""
    # A load that was killed right after it put a version behind the alias has left its mark there.
    published = version_behind(client, name)
    others = [index for index in versions(client, name) if index != published]
    return [index for index in others if meta.unfinished(client, index) is not None]


def versions(client: OpenSearch, name: str) -> Sequence[str]:
    """All versions of ``name`` on the cluster, oldest first."""
    pattern = re.compile(re.escape(name) + r"-v\d{4,}")
    found = client.indices.get(index=f"{name}-v*", expand_wildcards="open,closed")
    return sorted((i for i in found if pattern.fullmatch(i)), key=lambda i: int(i.rpartition("-v")[2]))


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

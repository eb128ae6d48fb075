"""What ``import langshift`` offers to search with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langshift.retrieval.given import opening
from langshift.retrieval.service import Index
from langshift.retrieval.service_async import AsyncIndex

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from langshift.plugin.query_shift import ShiftQueries
    from langshift.retrieval.result import SearchResult
    from langshift.retrieval.wish import SearchArguments


def open_index(
    name: str,
    *,
    encoder: str | None = None,
    trust_remote_code: bool = False,
    shift_queries: ShiftQueries = "auto",
) -> Index:
    """Open an index of the cluster that the settings name (``OPENSEARCH_URL`` and so on), to be searched often.

    Args:
        name: the index, an alias or a version.
        encoder: where the index's encoder is now, if its model or server has moved.
        trust_remote_code: whether to run code that comes with a model; only if you trust it.
        shift_queries: whether queries are shifted as the documents are; ``auto`` does what was measured to be best.

    Returns:
        The index, for a ``with``.

    Raises:
        UsageError: a setting cannot be used, or the name.
        ClusterError: the cluster cannot be reached or refuses, or there is no such index of langshift's.
        FingerprintError: the encoder installed here is not the one that made the index.
    """
    return Index(name, opening(name, encoder, trust_remote_code, shift_queries))


def search(
    name: str,
    words: str,
    *,
    encoder: str | None = None,
    trust_remote_code: bool = False,
    shift_queries: ShiftQueries = "auto",
    **how: Unpack[SearchArguments],
) -> SearchResult:
    """Search once: open an index, search it, close it. For more than one search use ``open_index``.

    Args:
        name: the index, an alias or a version.
        words: the query.
        encoder: as in ``open_index``.
        trust_remote_code: as in ``open_index``.
        shift_queries: as in ``open_index``.
        **how: mode, size, filters and so on; see ``SearchArguments``.

    Raises:
        UsageError: what was given cannot be searched for.
        ClusterError: the cluster cannot be reached or refuses, or there is no such index of langshift's.
        FingerprintError: the encoder installed here is not the one that made the index.
    """
    options = opening(name, encoder, trust_remote_code, shift_queries)
    with Index(name, options) as index:
        return index.search(words, **how)


async def open_index_async(
    name: str,
    *,
    encoder: str | None = None,
    trust_remote_code: bool = False,
    shift_queries: ShiftQueries = "auto",
) -> AsyncIndex:
    """What ``open_index`` is, for asynchronous services; needs the extra ``langshift[async]``.

    Returns:
        The index, for an ``async with``.

    Raises:
        LangshiftError: the extra is missing; and as in ``open_index``.
    """
    return await AsyncIndex.open(name, opening(name, encoder, trust_remote_code, shift_queries))


async def search_async(
    name: str,
    words: str,
    *,
    encoder: str | None = None,
    trust_remote_code: bool = False,
    shift_queries: ShiftQueries = "auto",
    **how: Unpack[SearchArguments],
) -> SearchResult:
    """What ``search`` is, for asynchronous services; needs the extra ``langshift[async]``.

    Raises:
        LangshiftError: the extra is missing; and as in ``search``.
    """
    options = opening(name, encoder, trust_remote_code, shift_queries)
    async with await AsyncIndex.open(name, options) as index:
        return await index.search(words, **how)

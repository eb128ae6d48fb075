"""Shifting queries: what an index keeps for it, and what moves the queries of a live index."""

from __future__ import annotations

from typing import Literal

from opensearchpy import OpenSearch

from langshift.errors import UsageError
from langshift.ingest.debias import Debias
from langshift.ingest.vectors import LanguageVectors
from langshift.plugin import versions
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.query_vectors import QueryVectors

ShiftQueries = Literal["auto", "always", "never"]
UNMOVED = Debias(None, alpha=0.0)


def kept(debias: Debias) -> QueryVectors | None:
    """What an index of this making keeps to shift queries by; None where documents are not shifted."""
    known = debias.vectors
    if known is None or debias.method != "shift" or not any(map(debias.key, known.vectors)):
        return None
    return QueryVectors(known.shift_queries, {**known.vectors, **known.query_vectors})


def of_index(client: OpenSearch, index: versions.LiveIndex, wanted: ShiftQueries) -> Debias:
    """What moves the queries of an index: by the same scales as its documents, towards the same pivot.

    Args:
        client: the cluster.
        index: the index.
        wanted: ``auto`` goes by what the index's vectors recommend from measurement.

    Raises:
        UsageError: queries are to be shifted always, and the index keeps nothing to shift them by.
    """
    made = index.fingerprint
    if wanted == "never" or not made.moves:
        return UNMOVED
    found = versions.read_query_vectors(client, index.index)
    if found is None:
        if wanted == "always":
            raise UsageError(_refusal(index.name, made))
        return UNMOVED
    if wanted == "auto" and not found.recommended:
        return UNMOVED
    return Debias(_language_vectors(found, made), "shift", made.alpha, made.alphas, shift_queries=True)


def _refusal(name: str, made: Fingerprint) -> str:
    if made.method != "shift":
        return (
            f"Index {name} was made with the method {made.method}, and queries are shifted only where documents "
            "are: search with --shift-queries never."
        )
    return (
        f"Index {name} was made by an earlier langshift ({made.langshift}) and does not hold what queries are "
        "shifted by: index the corpus again, or search with --shift-queries never."
    )


def _language_vectors(found: QueryVectors, made: Fingerprint) -> LanguageVectors:
    return LanguageVectors(
        pivot=made.pivot or "",
        vectors=found.vectors,
        pairs={},
        encoder=made.encoder,
        revision=made.revision,
        document_prefix=made.query_prefix,
        dimension=made.dimension,
        normalised=made.normalised,
        source="the index",
    )

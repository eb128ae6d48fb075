"""Shifting queries: what an index keeps for it, and what moves the queries of a live index."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from opensearchpy import OpenSearch

from langshift.debias.debias import Debias
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift.plugin import meta, versions
from langshift.plugin.query_vectors import QueryVectors
from langshift.plugin.shift_index_shift import IndexShift

ShiftQueries = Literal["auto", "always", "never"]
UNMOVED = Debias(None, alpha=0.0)


def kept(debias: Debias) -> QueryVectors | None:
    """What an index of this making keeps to shift queries by, beside its documents' vectors; None where it cannot."""
    known = debias.vectors
    if known is None or debias.method != "shift":
        return None
    return QueryVectors(known.shift_queries, known.query_vectors)


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
    noted = meta.read(client, index.index)
    found = QueryVectors.from_dict(noted[meta.QUERIES]) if meta.QUERIES in noted else None
    if found is None or made.method != "shift":
        if wanted == "always":
            raise UsageError(_refusal(index.name, made))
        return UNMOVED
    if wanted == "auto" and not found.recommended:
        return UNMOVED
    # Earlier langshifts kept every vector among those of queries.
    shift = IndexShift.from_meta(noted) or IndexShift.of(made, found.vectors)
    known = replace(language_vectors(shift, made), query_vectors=found.vectors)
    return Debias(known, "shift", made.alpha, made.alphas, shift_queries=True)


def language_vectors(shift: IndexShift, made: Fingerprint) -> LanguageVectors:
    """An index's vectors, as far as it knows them."""
    return LanguageVectors(
        pivot=shift.pivot or "",
        vectors=shift.vectors,
        pairs={},
        encoder=made.encoder,
        revision=made.revision,
        document_prefix=made.document_prefix,
        dimension=made.dimension,
        normalised=made.normalised,
        source="the index",
    )


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

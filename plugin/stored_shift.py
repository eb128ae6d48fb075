"""The shift that an index keeps: language vectors and scales, of documents and of queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from langcodes.data_dicts import MACROLANGUAGES
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.debiaser import (
    COMMON,
    Debiaser,
    Scales,
    applied_scales,
    is_shifted,
    is_shifted_by_language,
    subtracted,
)
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import DOCUMENTS, QUERIES, LanguageVectors, vector_tag
from langshift.errors import ClusterError, UsageError
from langshift.languages import UNDETERMINED, primary, script_of, text_language, usual_scripts
from langshift.plugin import metadata
from langshift.plugin.metadata import FieldNames, QuerySide, decoded, encoded, value_at
from langshift.plugin.stored_vector import vector_at
from langshift.plugin.versions import IndexInfo, fingerprint_of

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class StoredShift(Scales):
    """How the documents of an index are shifted: ``z̃ = z − α_ℓ V_ℓ − γ m_D``.

    Attributes:
        hash: names the language vectors; None where there are none, and nothing moves.
        pivot: the pivot language; None without language vectors.
        vectors: tag -> V_ℓ of documents, shape (dimension,), float32.
        alpha: scale of all languages.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
        gamma: scale of the common mean.
        common: the common mean m_D of documents, shape (dimension,), float32; None where the index keeps none.
    """

    hash: str | None = None
    pivot: str | None = None
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    alpha: float = 0.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    common: Vector | None = None

    def key(self, language: str) -> str | None:
        """Return the tag of the vector that a document of this language takes; see ``vector_tag``."""
        return vector_tag(language, self.pivot, self.vectors)

    @property
    def subtrahends(self) -> dict[str, Vector]:
        """All that a stamp may say was subtracted from a document: tag -> V_ℓ, and ``COMMON`` -> m_D."""
        return {**self.vectors, **({} if self.common is None else {COMMON: self.common})}

    @property
    def keys(self) -> dict[str, str]:
        """What ``key`` says, for a script that knows neither macrolanguages nor scripts.

        A document's tag is looked up in lower case, then without its region where it has a script, then its primary
        tag: the value is the vector's tag, or empty for what is not shifted.
        """
        if self.pivot is None:
            return {}
        known = {*self.vectors, self.pivot}
        wide = {primary(tag) for tag in known}
        languages = wide | {tag for tag, wider in MACROLANGUAGES.items() if wider in wide}
        scripts = {script for tag in known if (script := script_of(tag))}
        regional = {tag for tag in usual_scripts() if primary(tag) in languages}
        written = {f"{language}-{script}" for language in languages for script in scripts}
        keys = {tag: self.key(tag) or "" for tag in {*known, *languages, *regional, *written}}
        needed = {tag for tag, key in keys.items() if tag in known or key != (keys[primary(tag)] if "-" in tag else "")}
        return {tag.lower(): keys[tag] for tag in sorted(needed)}

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_vectors``; the scales and the pivot are in the fingerprint."""
        common = {} if self.common is None else encoded({COMMON: self.common})
        return {"hash": self.hash, "vectors": encoded(self.vectors), **common}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> StoredShift | None:
        """The shift of an index by its whole ``_meta``; None where that does not hold the vectors that it names."""
        made = Fingerprint.from_dict(meta[metadata.FINGERPRINT])
        if made.vectors is None:
            return cls()
        entry = meta.get(metadata.VECTORS)
        if not entry or entry["hash"] != made.vectors:
            return None
        common = decoded({COMMON: entry[COMMON]})[COMMON] if COMMON in entry else None
        return cls(made.vectors, made.pivot, decoded(entry["vectors"]), made.alpha, made.alphas, made.gamma, common)


ShiftQueries = Literal["auto", "always", "never"]
UNMOVED = Debiaser(None, alpha=0.0)


def of_index(client: OpenSearch, index: IndexInfo, wanted: ShiftQueries) -> Debiaser:
    """What moves the queries of an index: by the same scales as its documents, towards the same pivot.

    Where documents lost a common mean, queries lose theirs whatever is wanted: the one without the other finds less.

    Args:
        client: the cluster.
        index: the index.
        wanted: ``auto`` goes by what the index's vectors recommend from measurement.

    Raises:
        UsageError: queries are to be shifted always, and the index keeps nothing to shift them by.
    """
    made = index.fingerprint
    if not made.moves or (wanted == "never" and not made.gamma):
        return UNMOVED
    noted = metadata.read_metadata(client, index.index)
    stored = noted.get(metadata.QUERIES) if made.method == "shift" else None
    if stored is None:
        if wanted == "always":
            why = "does not contain the vectors by which queries are shifted: index the corpus again, or"
            if made.method != "shift":
                why = f"was built with the method {made.method}, and queries are shifted only where documents are:"
            raise UsageError(f"Index {index.name} {why} search with --shift-queries never.")
        return UNMOVED
    by_language = wanted == "always" or (wanted == "auto" and QuerySide.from_dict(stored).recommended)
    if not by_language and not made.gamma:
        return UNMOVED
    known = known_vectors(noted, index.index)
    return Debiaser(known, "shift", made.alpha, made.alphas, by_language, made.gamma)


def queries_of(meta: Mapping[str, Any]) -> QuerySide:
    """What an index keeps of queries, by its whole ``_meta``; nothing where it keeps nothing."""
    return QuerySide.from_dict(meta[metadata.QUERIES]) if metadata.QUERIES in meta else QuerySide()


def moves_queries(meta: Mapping[str, Any]) -> bool:
    """Whether queries of an index are moved as its documents are, by its whole ``_meta``."""
    if metadata.FINGERPRINT not in meta:
        return False
    made = Fingerprint.from_dict(meta[metadata.FINGERPRINT])
    return made.moves and (bool(made.gamma) or queries_of(meta).recommended)


def query_steps(client: OpenSearch, index: IndexInfo) -> dict[str, Any]:
    """What a client that searches an index by itself must subtract from the vector of a query: ``α V^Q_ℓ + γ m_Q``.

    Args:
        client: the cluster.
        index: the index.

    Returns:
        ``steps``: tag of a language vector, and ``und`` for all other languages -> numbers, shape (dimension,), zeros
        where queries are searched with as they are; ``keys``: a language tag in lower case -> which of them it takes,
        where it is not ``und``.
    """
    debias, keys = of_index(client, index, "auto"), dict[str, str]()
    if debias.shift_queries:
        keys = {tag: key for tag, key in of_debias(debias).keys.items() if debias.key(key) is not None}
    tags = [UNDETERMINED, *sorted(set(keys.values()))]
    # What is left of nothing.
    moved = debias.queries(np.zeros((len(tags), index.fingerprint.dimension), np.float32), tags)
    steps = {tag: (0 - row).tolist() for tag, row in zip(tags, moved, strict=True)}
    return {"index": index.index, "steps": steps, "keys": keys}


Source = Mapping[str, Any]


def of_debias(debias: Debiaser) -> StoredShift:
    """The shift of an index whose documents are moved like this, by the method ``shift``."""
    known = debias.vectors
    if known is None:
        return StoredShift()
    alphas = {tag: alpha for tag, alpha in sorted(debias.alphas.items()) if alpha != debias.alpha}
    common = known.common.get(DOCUMENTS)
    return StoredShift(known.hash, known.pivot, known.vectors, debias.alpha, alphas, debias.gamma, common)


def to_metadata(debias: Debiaser, preference: float = 0.0) -> dict[str, Any]:
    """What an index of this making keeps under ``_meta``, so that whoever changes or searches it needs no file.

    Args:
        debias: how its documents are moved, and its queries are to be.
        preference: the language preference that is recommended with these scales.
    """
    known = debias.vectors
    if known is None or debias.method != "shift":
        return {}
    queries = QuerySide(debias.shift_queries, known.query_vectors, known.common.get(QUERIES), preference)
    return {metadata.VECTORS: of_debias(debias).to_dict(), metadata.QUERIES: queries.to_dict()}


@dataclass(frozen=True)
class IndexVectors(LanguageVectors):
    """Language vectors as an index keeps them.

    Attributes:
        name: the hash that the index and its stamps know them by; that of a file names the address of its encoder,
            which may have been another.
    """

    name: str = ""

    @property
    def hash(self) -> str:
        """The hash by which the index knows them."""
        return self.name


def known_vectors(meta: Mapping[str, Any], index: str) -> LanguageVectors:
    """The language vectors of an index, of documents and of queries, by its whole ``_meta``.

    Args:
        meta: the index's whole ``_meta``.
        index: its name, for the message.

    Raises:
        ClusterError: see ``from_metadata``.
    """
    shift, made = from_metadata(meta, index), fingerprint_of(index, meta)
    queries = queries_of(meta)
    encoder = made.encoder, made.revision, made.document_prefix, made.dimension, made.normalised
    common = {}
    if shift.common is not None and queries.common is not None:
        common = {DOCUMENTS: shift.common, QUERIES: queries.common}
    return IndexVectors(
        shift.pivot or "",
        shift.vectors,
        {},
        *encoder,
        "the index",
        query_vectors=queries.vectors,
        common=common,
        measured=made.means,
        name=shift.hash or "",
        pooling=made.pooling,
        max_tokens=made.max_tokens,
    )


def read(client: OpenSearch, index: str) -> StoredShift:
    """The shift of an index; see ``from_metadata``.

    Raises:
        ClusterError: it cannot be had.
        NotFoundError: there is no such index.
    """
    return from_metadata(metadata.read_metadata(client, index), index)


def from_metadata(meta: Mapping[str, Any], index: str) -> StoredShift:
    """The shift of an index by its whole ``_meta``.

    Args:
        meta: the index's whole ``_meta``.
        index: its name, for the message.

    Raises:
        ClusterError: it was moved by another method, or its language vectors cannot be had.
    """
    made = fingerprint_of(index, meta)
    if made.method != "shift":
        raise ClusterError(
            f"Index {index} was built with the method {made.method}, which the cluster can neither apply nor undo "
            "exactly: index the corpus again with the method shift."
        )
    found = StoredShift.from_meta(meta)
    if found is None:
        raise ClusterError(
            f"Index {index} does not contain its language vectors ({made.vectors}): index the corpus again."
        )
    return found


def of_documents(meta: Mapping[str, Any], index: str) -> Debiaser:
    """What moves documents that are added to an index; see ``from_metadata``."""
    shift = from_metadata(meta, index)
    known = None if shift.pivot is None else known_vectors(meta, index)
    return Debiaser(known, "shift", shift.alpha, shift.alphas, gamma=shift.gamma)


def expected(
    old: StoredShift, new: StoredShift, fields: FieldNames
) -> Callable[[Sequence[Source]], list[Vector | None]]:
    """What a retune must make of stored documents.

    Args:
        old: how they were shifted.
        new: how they are to be.
        fields: the names of their fields.

    Returns:
        A function of documents as they were; it gives each one's new vector, shape (dimension,), float32, or None
        where it has none.
    """

    def one(source: Source) -> Vector | None:
        stored = vector_at(source, fields.vector)
        if stored is None:
            return None
        stamp = value_at(source, fields.stamp)
        same = old.hash == new.hash == stamp["vectors"]
        other = _other_stamp(stamp, own_tag(source, stamp, fields, same=same), new)
        # What was not moved may name vectors that this index never had.
        before = subtracted(stamp, old.subtrahends) if is_shifted(stamp) else 0.0
        # In one step, so that nothing is rounded between.
        made: Vector = (stored.astype(np.float64) + before - subtracted(other, new.subtrahends)).astype(np.float32)
        return made

    return lambda sources: [one(source) for source in sources]


def proportions(source: Source, shift: StoredShift, fields: FieldNames) -> dict[str, float]:
    """What a retune of an index, of its own vectors, would multiply with its scales for a stored document.

    Args:
        source: the document with its stamp.
        shift: how the documents of its index are shifted.
        fields: the names of their fields.

    Returns:
        Tag of a language vector -> ``p(ℓ)``, 1 of one language; empty where the document stays as it is.
    """
    stamp = value_at(source, fields.stamp)
    whole = StoredShift(shift.hash, shift.pivot, shift.vectors, 1.0)
    tag = own_tag(source, stamp, fields, same=shift.hash == stamp.get("vectors"))
    return applied_scales(_other_stamp(stamp, tag, whole))


def _other_stamp(stamp: Mapping[str, Any], tag: str, new: StoredShift) -> dict[str, Any]:
    """The stamp of a document under another shift, as far as its vector goes."""
    common = {"gamma": new.gamma}
    # An upsert in bulk leaves null there.
    if stamp.get("languages") is not None:
        return {
            "languages": stamp["languages"],
            "alphas": {key: new.scale(key) for key in stamp["languages"]},
            **common,
        }
    key = new.key(tag)
    return common if key is None else {"language": key, "alpha": new.scale(key), **common}


def own_tag(source: Source, stamp: Mapping[str, Any], fields: FieldNames, *, same: bool) -> str:
    """The language tag of a stored document.

    Args:
        source: the document.
        stamp: of its vector.
        fields: the names of its fields.
        same: whether the tag is to name one of the language vectors that the stamp names, by which it was shifted.
    """
    document_language = value_at(source, fields.language)
    language = document_language or UNDETERMINED
    # One that took nothing away may have kept the language of another; one of several languages has its likeliest.
    sure = is_shifted_by_language(stamp) or stamp.get("languages") is not None
    vector = matching_tag(stamp.get("language"), None if sure else document_language) or ""
    own = matching_tag(stamp.get("tag"), document_language)
    # Stamps of earlier langshifts have no tag, but the vector's may say more than the field of the language.
    if vector and (same or (own is None and vector.startswith(f"{language}-"))):
        return vector
    return own or str(language)


def matching_tag(tag: str | None, document_language: str | None) -> str | None:
    """What a stamp says of a language; None where the document's own field tells of another.

    An update that changes the language merges its stamp with the one that is there, of which more may stay than is
    true any more.
    """
    return None if tag is None or (document_language is not None and text_language(tag) != document_language) else tag


def shift_of(client: OpenSearch, index: IndexInfo) -> StoredShift:
    """How documents for a version are shifted.

    Raises:
        ClusterError: by a method that no pipeline knows, or by language vectors that nobody has.
    """
    if (method := index.fingerprint.method) != "shift":
        raise ClusterError(
            f"The documents of {index.index} are transformed by the method {method}, which no pipeline can apply: "
            "write them with `langshift ingest`, or index them again with the method shift."
        )
    return read(client, index.index)

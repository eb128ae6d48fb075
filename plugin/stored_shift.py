"""The shift that an index keeps: language vectors, what its gamma takes out, and scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from langcodes.data_dicts import MACROLANGUAGES
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias import debiaser
from langshift.debias.debiaser import Debiaser, Scales
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import DOCUMENTS, CommonStep, LanguageVectors, own_hash, vector_tag
from langshift.errors import ClusterError
from langshift.languages import UNDETERMINED, primary, script_of, text_language, usual_scripts
from langshift.plugin import metadata
from langshift.plugin.metadata import FieldNames, decoded, encoded, value_at
from langshift.plugin.stored_vector import vector_at
from langshift.plugin.versions import fingerprint_of

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class StoredShift(Scales):
    """How the documents of an index are shifted, see ``CommonStep``.

    Attributes:
        hash: names the language vectors; None where there are none, and nothing moves.
        pivot: the pivot language; None without language vectors.
        vectors: tag -> V_ℓ of documents, shape (dimension,), float32.
        alpha: scale of all languages.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
        gamma: how much of ``step`` is taken out.
        step: the mean of documents and the directions of queries; None where the index keeps none.
        own: as in ``Scales``.
        own_vectors: as in ``LanguageVectors``; empty where the index keeps none.
        scatter: likewise.
    """

    hash: str | None = None
    pivot: str | None = None
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    alpha: float = 0.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    step: CommonStep | None = None
    own: float = 0.0
    own_vectors: Mapping[str, Vector] = field(default_factory=dict)
    scatter: list[float] = field(default_factory=list)

    @property
    def fitted(self) -> StoredShift:
        """Itself."""
        return self

    @cached_property
    def own_hash(self) -> str | None:
        """What names the preference vectors; None without."""
        return own_hash(self.own_vectors)

    def key(self, language: str) -> str | None:
        """Return the tag of the vector that a document of this language takes; see ``vector_tag``."""
        return vector_tag(language, self.pivot, self.vectors)

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
        made: dict[str, Any] = {"hash": self.hash, "vectors": encoded(self.vectors)}
        if self.step is not None:
            made |= encoded({"common": self.step.mean, "directions": self.step.directions})
        return made | self.own_to_dict()

    def own_to_dict(self) -> dict[str, Any]:
        """The part of it on preference vectors; the weight is for who cannot work it out, such as the native plugin."""
        if not self.own_vectors:
            return {}
        kept = {"hash": self.own_hash, "weight": self.weight, "scatter": self.scatter}
        return {"own": {**kept, "vectors": encoded(self.own_vectors)}}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> StoredShift | None:
        """The shift of an index by its whole ``_meta``; None where that does not hold the vectors that it names."""
        made = Fingerprint.from_dict(meta[metadata.FINGERPRINT])
        if made.vectors is None:
            return cls()
        entry = meta.get(metadata.VECTORS)
        if not entry or entry["hash"] != made.vectors:
            return None
        step = None
        if "directions" in entry:
            mean, flat = (decoded({name: entry[name]})[name] for name in ("common", "directions"))
            step = CommonStep(mean, flat.reshape(-1, len(mean)))
        own = entry.get("own")
        kept = {} if own is None else {"own_vectors": decoded(own["vectors"]), "scatter": own["scatter"]}
        scales = made.alpha, made.alphas, made.gamma
        return cls(made.vectors, made.pivot, decoded(entry["vectors"]), *scales, step, made.own, **kept)


UNMOVED = Debiaser(None, alpha=0.0)


Source = Mapping[str, Any]


def of_debias(debias: Debiaser) -> StoredShift:
    """The shift of an index whose documents are moved like this."""
    known = debias.vectors
    if known is None:
        return StoredShift()
    alphas = {tag: alpha for tag, alpha in sorted(debias.alphas.items()) if alpha != debias.alpha}
    scales = debias.alpha, alphas, debias.gamma
    own = debias.own, known.own_vectors, known.scatter
    return StoredShift(known.hash, known.pivot, known.vectors, *scales, known.step, *own)


def to_metadata(debias: Debiaser) -> dict[str, Any]:
    """What an index whose documents are moved like this keeps under ``_meta``, so that changing it needs no file."""
    return {} if debias.vectors is None else {metadata.VECTORS: of_debias(debias).to_dict()}


@dataclass(frozen=True)
class IndexVectors(LanguageVectors):
    """Language vectors as an index keeps them.

    Attributes:
        name: the hash that the index and its stamps know them by; that of a file names the address of its encoder,
            which may have been another.
    """

    name: str = ""

    @cached_property
    def hash(self) -> str:
        """The hash by which the index knows them."""
        return self.name


def known_vectors(meta: Mapping[str, Any], index: str) -> LanguageVectors:
    """The language vectors of an index, by its whole ``_meta``.

    Args:
        meta: the index's whole ``_meta``.
        index: its name, for the message.

    Raises:
        ClusterError: see ``from_metadata``.
    """
    shift, made = from_metadata(meta, index), fingerprint_of(index, meta)
    encoder = made.encoder, made.revision, made.document_prefix, made.dimension, made.normalised
    return IndexVectors(
        shift.pivot or "",
        shift.vectors,
        {},
        *encoder,
        "the index",
        common={} if shift.step is None else {DOCUMENTS: shift.step.mean},
        query_directions=None if shift.step is None else shift.step.directions,
        name=shift.hash or "",
        pooling=made.pooling,
        max_tokens=made.max_tokens,
        own_vectors=shift.own_vectors,
        scatter=shift.scatter,
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
        ClusterError: its language vectors cannot be had.
    """
    made = fingerprint_of(index, meta)
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
    return Debiaser(known, shift.alpha, shift.alphas, shift.gamma, shift.own)


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
        tag, language = own_tag(source, stamp, fields, same=same), value_at(source, fields.language)
        other = new.moved_stamp(new.key(tag), language or UNDETERMINED)
        # What was not moved may name vectors that this index never had.
        raw = debiaser.restored(stored, stamp, old) if debiaser.is_shifted(stamp) else stored.astype(np.float64)
        # In one step, so that nothing is rounded between.
        return debiaser.shifted(raw, other, new)

    return lambda sources: [one(source) for source in sources]


def key_of(source: Source, shift: StoredShift, fields: FieldNames) -> str | None:
    """The tag of the vector that a retune of an index, of its own vectors, would move a stored document by.

    Args:
        source: the document with its stamp.
        shift: how the documents of its index are shifted.
        fields: the names of their fields.

    Returns:
        None where the document stays as it is.
    """
    stamp = value_at(source, fields.stamp)
    return shift.key(own_tag(source, stamp, fields, same=shift.hash == stamp.get("vectors")))


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
    # One that took nothing away may have kept the language of another.
    vector = (
        matching_tag(stamp.get("language"), None if debiaser.is_shifted_by_language(stamp) else document_language) or ""
    )
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


def unshifted(stored: Vector, stamp: Source, shift: StoredShift | None) -> NDArray[np.float64] | None:
    """Return a vector as the encoder made it.

    Args:
        stored: the vector that is searched, shape (dimension,), float32.
        stamp: of its document, which any client may have written.
        shift: of the index; None where the index does not hold it.

    Returns:
        Shape (dimension,), float64; None where it cannot be known.
    """
    if not debiaser.is_shifted(stamp):
        return stored.astype(np.float64)
    return debiaser.restored(stored, stamp, shift) if shift is not None and debiaser.is_undoable(stamp, shift) else None


# Characters of a keyword, each of which may have four bytes.
_LONGEST = 8191


def page_of(source: Mapping[str, Any], fields: FieldNames, document: str) -> str:
    """The page that an entry is of, kept in its stamp: its translation group, else its document.

    Args:
        source: the entry's fields.
        fields: their names.
        document: the id of the entry's document, where it is not a chunk that names one.
    """
    for name in filter(None, (fields.group, fields.parent)):
        value = value_at(source, name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, str | int | float) and not isinstance(value, bool) and 0 < len(str(value)) <= _LONGEST:
            return str(value)
    return document

"""Language vectors: what was fitted, for which encoder, and what is recommended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders import Encoder, identity
from langshift.debias.fingerprint import same_encoder
from langshift.errors import FingerprintError
from langshift.languages import macrolanguage, primary
from langshift.whole import whole

Vectors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class LanguageVectors:
    """Language vectors ``V_ℓ`` of one encoder towards one pivot language.

    Attributes:
        pivot: the pivot language's tag; its documents are never shifted.
        vectors: tag -> V_ℓ, shape (dimension,), float32.
        pairs: tag -> number of parallel pairs behind it.
        encoder: id of the encoder.
        revision: version of the encoder's weights.
        document_prefix: prefix with which the texts were encoded.
        dimension: length of a vector.
        normalised: whether the encoder's vectors have norm 1.
        source: what the pairs were, for a person.
        alpha: the scale recommended by measurement, or None.
        alphas: recommended scales of single languages that differ from ``alpha``.
        shift_queries: whether measurement recommends to shift queries of other languages too; None where
            nobody measured.
        query_prefix: prefix with which ``query_vectors`` were encoded.
        query_vectors: tag -> V_ℓ of texts encoded as queries, shape (dimension,), float32; empty where the
            encoder makes no difference.
        means: tag -> mean embedding μ_ℓ, the pivot's included, shape (dimension,), float32; may be empty.
        directions: tag -> principal directions (``lir``), shape (rank, dimension), float32; may be empty.
        maps: tag -> W_ℓ (``affine``), shape (dimension, dimension), float32; may be empty.
        evidence: tag -> what ``langshift vectors check`` judges by; may be empty.
        tuning: what ``langshift vectors tune`` measured; may be empty.
    """

    pivot: str
    vectors: Vectors
    pairs: Mapping[str, int]
    encoder: str
    revision: str
    document_prefix: str
    dimension: int
    normalised: bool
    source: str
    alpha: float | None = None
    alphas: Mapping[str, float] = field(default_factory=dict)
    shift_queries: bool | None = None
    query_prefix: str = ""
    query_vectors: Vectors = field(default_factory=dict)
    means: Vectors = field(default_factory=dict)
    directions: Vectors = field(default_factory=dict)
    maps: Vectors = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)

    def key(self, language: str) -> str | None:
        """Which vector a document of this language takes: its own, its primary tag's, or its macrolanguage's.

        None for the pivot language and for languages without a vector: those are not shifted.
        """
        for tag in (language, primary(language), macrolanguage(language)):
            if tag == self.pivot:
                return None
            if tag in self.vectors:
                return tag
        return None

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that name the numbers that move documents, whatever else the file holds."""
        digest = hashlib.sha256(orjson.dumps([self.pivot, self.encoder, self.revision, self.document_prefix]))
        _add(digest, self.vectors)
        # The means only move documents beside a map, and are named by it.
        _add(digest, self.maps)
        return digest.hexdigest()[:16]

    def require_encoder(self, encoder: Encoder, place: str) -> None:
        """Refuse an encoder that these vectors were not fitted with.

        Raises:
            FingerprintError: naming the first difference with both values.
        """
        self.require_made_by(identity(encoder), place)

    def require_made_by(self, made: Mapping[str, Any], place: str) -> None:
        """Refuse vectors of an index, or of an encoder, that these were not fitted with.

        Args:
            made: what ``encoders.identity`` says of the encoder, or the index's fingerprint.
            place: the file of these vectors, for the message.

        Raises:
            FingerprintError: naming the first difference with both values.
        """
        names = ["encoder", "dimension", "revision", "document_prefix", "normalised"]
        if self.query_vectors:
            names.append("query_prefix")
        for name in names:
            mine, theirs = getattr(self, name), made[name]
            elsewhere = name == "encoder" and same_encoder((mine, self.revision), (theirs, made["revision"]))
            if mine == theirs or elsewhere:
                continue
            difference = f"with {name} {mine}, not {theirs}"
            if name == "normalised":
                norms = ("embeddings that are not normalised", "embeddings of norm 1")
                difference = f"on {norms[self.normalised]}, but {made['encoder']} gives {norms[theirs]}"
            raise FingerprintError(
                f"{place}: these language vectors were fitted {difference}: "
                "fit some for this encoder with `langshift vectors fit`."
            )

    def save(self, path: Path) -> None:
        """Write the file; it appears whole or not at all."""
        from langshift.debias.vectors_file import to_bytes

        content = to_bytes(self)
        with whole(path) as partial:
            partial.write_bytes(content)

    @classmethod
    def load(cls, path: Path) -> LanguageVectors:
        """Read a language-vector file.

        Raises:
            UsageError: there is no such file, or it is not one of ours, or damaged.
        """
        from langshift.debias.vectors_file import read, require_sound

        loaded = cls(**read(path))
        require_sound(loaded, path)
        return loaded


def _add(digest: Any, tensors: Vectors) -> None:  # noqa: ANN401 - hashlib names no public type
    for tag in sorted(tensors):
        digest.update(tag.encode() + b"\0" + tensors[tag].astype("<f4").tobytes())


def shipped(encoder: str) -> Path | None:
    """The file of language vectors that comes with langshift for an encoder, or None."""
    file = resources.files("langshift.debias") / "data" / f"{encoder}.safetensors"
    path = Path(str(file))
    return path if path.is_file() else None

"""The language-vector file: safetensors, one tensor a language, the making in its header."""

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

from langshift.errors import FingerprintError, UsageError
from langshift.ingest.encoders import Encoder
from langshift.languages import macrolanguage, parse_tag, primary
from langshift.whole import whole

_HEADER = "langshift"
_HOW_TO_FIT = "make one with `langshift vectors fit`"
Vectors = Mapping[str, NDArray[np.float32]]
# Attribute -> what stands before the language in the names of its tensors.
_PARTS = {"query_vectors": "query", "means": "mean", "directions": "lir", "maps": "affine"}
_TEXTS = ("encoder", "revision", "document_prefix", "query_prefix", "source")


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
        for name in ("encoder", "dimension", "revision", "document_prefix", "normalised"):
            mine, theirs = getattr(self, name), getattr(encoder, "id" if name == "encoder" else name)
            if mine != theirs:
                raise FingerprintError(
                    f"{place}: these language vectors were fitted with {name} {mine}, not {theirs}: "
                    "fit some for this encoder with `langshift vectors fit`."
                )

    def save(self, path: Path) -> None:
        """Write the file; it appears whole or not at all."""
        from safetensors.numpy import save

        header = {
            "pivot": self.pivot,
            "pairs": dict(self.pairs),
            "encoder": self.encoder,
            "revision": self.revision,
            "document_prefix": self.document_prefix,
            "dimension": self.dimension,
            "normalised": self.normalised,
            "source": self.source,
            "alpha": self.alpha,
            "alphas": dict(self.alphas),
            "shift_queries": self.shift_queries,
            "query_prefix": self.query_prefix,
            "evidence": dict(self.evidence),
            "tuning": dict(self.tuning),
        }
        tensors = dict(self.vectors)
        for name, part in _PARTS.items():
            tensors |= {f"{part}/{tag}": tensor for tag, tensor in getattr(self, name).items()}
        content = save(tensors, metadata={_HEADER: orjson.dumps(header).decode()})
        with whole(path) as partial:
            partial.write_bytes(content)

    @classmethod
    def load(cls, path: Path) -> LanguageVectors:
        """Read a language-vector file.

        Raises:
            UsageError: there is no such file, or it is not one of ours, or damaged.
        """
        from safetensors import SafetensorError, safe_open

        if not path.is_file():
            raise UsageError(f"{path}: there is no such file of language vectors; {_HOW_TO_FIT}.")
        try:
            with safe_open(path, framework="numpy") as file:
                header = orjson.loads((file.metadata() or {})[_HEADER])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            parts: dict[str, Any] = {name: _of_part(tensors, part) for name, part in _PARTS.items()}
            loaded = cls(vectors=_of_part(tensors, ""), **parts, **header)
        except (SafetensorError, KeyError, TypeError, orjson.JSONDecodeError):
            raise UsageError(f"{path}: is not a file of language vectors, or is damaged; {_HOW_TO_FIT}.") from None
        loaded._require_sound(path)
        return loaded

    def _require_sound(self, path: Path) -> None:
        kinds = (
            isinstance(self.pairs, dict) and all(isinstance(count, int) for count in self.pairs.values()),
            isinstance(self.pivot, str) and parse_tag(self.pivot) == self.pivot,
            isinstance(self.dimension, int),
            isinstance(self.normalised, bool),
            self.alpha is None or isinstance(self.alpha, int | float),
            self.shift_queries is None or isinstance(self.shift_queries, bool),
            all(isinstance(part, dict) for part in (self.alphas, self.evidence, self.tuning)),
            all(isinstance(alpha, int | float) for alpha in self.alphas.values()),
            all(isinstance(getattr(self, name), str) for name in _TEXTS),
        )
        if not all(kinds):
            raise UsageError(f"{path}: is not a file of language vectors, or is damaged; {_HOW_TO_FIT}.")
        if set(self.pairs) != set(self.vectors) or not self.vectors or self.pivot in self.vectors:
            raise UsageError(f"{path}: its header and its vectors do not name the same languages; {_HOW_TO_FIT}.")
        for alpha in [self.alpha, *self.alphas.values()]:
            if alpha is not None and not 0 <= alpha <= 1:
                raise UsageError(f"{path}: it recommends alpha {alpha}, but alpha is between 0 and 1; {_HOW_TO_FIT}.")
        for name in ("vectors", *_PARTS):
            for tag, tensor in getattr(self, name).items():
                self._require_tensor(path, name, tag, tensor)

    def _require_tensor(self, path: Path, name: str, tag: str, tensor: NDArray[np.float32]) -> None:
        if parse_tag(tag) != tag:
            raise UsageError(f"{path}: the tensor {tag!r} is named for no language.")
        square = {"maps": (self.dimension, self.dimension), "directions": (*tensor.shape[:1], self.dimension)}
        shape = square.get(name, (self.dimension,))
        what = "vector" if name == "vectors" else f"tensor {_PARTS[name]}"
        if tensor.shape != shape or tensor.dtype != np.float32:
            raise UsageError(
                f"{path}: the {what} of {tag} has shape {tensor.shape} and type {tensor.dtype}, "
                f"not {shape} and float32 as its header says."
            )
        if not np.isfinite(tensor).all():
            raise UsageError(f"{path}: the {what} of {tag} holds values that are not numbers.")


def _add(digest: Any, tensors: Vectors) -> None:  # noqa: ANN401 - hashlib names no public type
    for tag in sorted(tensors):
        digest.update(tag.encode() + b"\0" + tensors[tag].astype("<f4").tobytes())


def _of_part(tensors: Vectors, part: str) -> dict[str, NDArray[np.float32]]:
    """The tensors named ``part/<tag>``, by tag."""
    named = {name.rpartition("/"): tensor for name, tensor in tensors.items()}
    return {tag: tensor for (prefix, _, tag), tensor in named.items() if prefix == part}


def shipped(encoder: str) -> Path | None:
    """The file of language vectors that comes with langshift for an encoder, or None."""
    file = resources.files("langshift.ingest") / "data" / f"{encoder}.safetensors"
    path = Path(str(file))
    return path if path.is_file() else None

"""The language-vector file: safetensors, one tensor a language, the making in its header."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.errors import FingerprintError, UsageError
from langshift.ingest.encoders import Encoder
from langshift.languages import macrolanguage, parse_tag, primary
from langshift.whole import whole

_HEADER = "langshift"
_HOW_TO_FIT = "make one with `langshift vectors fit`"


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
    """

    pivot: str
    vectors: Mapping[str, NDArray[np.float32]]
    pairs: Mapping[str, int]
    encoder: str
    revision: str
    document_prefix: str
    dimension: int
    normalised: bool
    source: str
    alpha: float | None = None

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
        """16 hexadecimal digits that name the numbers, whatever else the header says."""
        digest = hashlib.sha256(orjson.dumps([self.pivot, self.encoder, self.revision, self.document_prefix]))
        for tag in sorted(self.vectors):
            digest.update(tag.encode() + b"\0" + self.vectors[tag].astype("<f4").tobytes())
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
        }
        content = save(dict(self.vectors), metadata={_HEADER: orjson.dumps(header).decode()})
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
                tensors = {tag: file.get_tensor(tag) for tag in file.keys()}  # noqa: SIM118 - no mapping
            loaded = cls(vectors=tensors, **header)
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
            all(isinstance(text, str) for text in (self.encoder, self.revision, self.document_prefix, self.source)),
        )
        if not all(kinds):
            raise UsageError(f"{path}: is not a file of language vectors, or is damaged; {_HOW_TO_FIT}.")
        if set(self.pairs) != set(self.vectors) or not self.vectors or self.pivot in self.vectors:
            raise UsageError(f"{path}: its header and its vectors do not name the same languages; {_HOW_TO_FIT}.")
        if self.alpha is not None and not 0 <= self.alpha <= 1:
            raise UsageError(f"{path}: it recommends alpha {self.alpha}, but alpha is between 0 and 1; {_HOW_TO_FIT}.")
        for tag, vector in self.vectors.items():
            if parse_tag(tag) != tag:
                raise UsageError(f"{path}: the tensor {tag!r} is named for no language.")
            if vector.shape != (self.dimension,) or vector.dtype != np.float32:
                raise UsageError(
                    f"{path}: the vector of {tag} has shape {vector.shape} and type {vector.dtype}, "
                    f"not ({self.dimension},) and float32 as its header says."
                )
            if not np.isfinite(vector).all():
                raise UsageError(f"{path}: the vector of {tag} holds values that are not numbers.")


def shipped(encoder: str) -> Path | None:
    """The file of language vectors that comes with langshift for an encoder, or None."""
    file = resources.files("langshift.ingest") / "data" / f"{encoder}.safetensors"
    path = Path(str(file))
    return path if path.is_file() else None

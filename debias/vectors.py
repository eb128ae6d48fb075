"""Language vectors: what was fitted, for which encoder, and what is recommended."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders import Encoder, Pooling, Reading, identity
from langshift.debias.fingerprint import same_encoder, scales_in_words, shown_value
from langshift.debias.parallel.tables import LONGEST
from langshift.errors import FingerprintError, UsageError
from langshift.files import write_bytes
from langshift.languages import UNDETERMINED, macrolanguage, parse_tag, primary, script_of, with_script

Vectors = Mapping[str, NDArray[np.float32]]
#: The two sides of a search, by which ``LanguageVectors.common`` is named.
DOCUMENTS, QUERIES = "documents", "queries"


def vector_tag(language: str, pivot: str | None, tags: Collection[str]) -> str | None:
    """Return which vector a document of a language takes: its own, its primary tag's, or its macrolanguage's.

    Of the last two, vectors in the script that the tag names or implies win over those in another: with ``zh`` and
    ``zh-TW``, ``zh-HK`` and ``yue`` take ``zh-TW``. A script that none of them is in says nothing.

    Args:
        language: the document's language tag.
        pivot: the pivot language; None where there is none, or where its documents are moved too.
        tags: of the languages that have a vector.

    Returns:
        None for ``und``, the pivot language and languages without a vector: those are not shifted.
    """
    if language in (UNDETERMINED, pivot):
        return None
    if language in tags:
        return language
    for wider in filter(None, (primary(language), macrolanguage(language))):
        own = {tag: script_of(tag) for tag in (*tags, pivot) if tag is not None and primary(tag) == wider}
        usual = script_of(wider)
        script = next(
            (one for one in (script_of(language), script_of(primary(language))) if one in own.values()), usual
        )
        in_script = [tag for tag in own if own[tag] == script]
        tag = wider
        if script is not None and script != usual:
            # That of the script alone comes before those of regions.
            tag = min(in_script, key=lambda tag: (tag != with_script(wider, str(script)), tag))
        if tag in own:
            return None if tag == pivot else tag
    return None


@dataclass(frozen=True)
class Recommendation:
    """A setting that measurement recommends, see ``langshift vectors tune``.

    Attributes:
        alpha: scale of the shift, 0 to 1.
        alphas: scales of single languages that differ from ``alpha``.
        gamma: scale of the common mean, 0 to 1, which documents and queries lose.
        shift_queries: whether queries of other languages than the pivot are shifted too.
        preference: what a document in the searcher's language is given on top of its cosine.
    """

    alpha: float = 1.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    shift_queries: bool = False
    preference: float = 0.0

    @property
    def words(self) -> str:
        """``alpha 0.9, gamma 0.8, queries shifted, preference 0.024``; scales of single languages are left out."""
        queries = "queries shifted" if self.shift_queries else "queries not shifted"
        preference = f", preference {self.preference:g}" if self.preference else ""
        return f"{scales_in_words(self.alpha, {}, self.gamma)}, {queries}{preference}"


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
        both_sides: what is recommended where every query passes through langshift, or loses the same vectors in
            another client; None where nobody measured.
        documents_only: what is recommended where queries stay as they are; likewise.
        query_prefix: prefix with which ``query_vectors`` were encoded.
        query_vectors: tag -> V_ℓ of texts encoded as queries, shape (dimension,), float32; empty where the
            encoder makes no difference.
        common: ``DOCUMENTS`` and ``QUERIES`` -> the mean embeddings m_D and m_Q of texts in the pivot language, encoded
            as either, shape (dimension,), float32; empty where nobody measured.
        means: tag -> mean embedding μ_ℓ, the pivot's included, shape (dimension,), float32; may be empty.
        directions: tag -> principal directions (``lir``), shape (rank, dimension), float32; may be empty.
        maps: tag -> W_ℓ (``affine``), shape (dimension, dimension), float32; may be empty.
        evidence: tag -> what ``langshift vectors check`` judges by; may be empty.
        tuning: what ``langshift vectors tune`` measured; may be empty.
        measured: what was taken from an index's own documents, see ``index_means``: ``vectors`` (the hash of those
            that they were before), ``documents``, ``queries`` (how many) and ``shares`` (tag -> how much of its
            difference to other languages); empty where all was fitted on parallel text.
        pooling: how the encoder pooled tokens, where that was not the model's own way.
        max_tokens: how many tokens of a text it read, where that was not the usual number.
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
    both_sides: Recommendation | None = None
    documents_only: Recommendation | None = None
    query_prefix: str = ""
    query_vectors: Vectors = field(default_factory=dict)
    common: Vectors = field(default_factory=dict)
    means: Vectors = field(default_factory=dict)
    directions: Vectors = field(default_factory=dict)
    maps: Vectors = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    pooling: Pooling | None = None
    max_tokens: int | None = None

    def key(self, language: str) -> str | None:
        """Return the tag of the vector that a document of this language takes; see ``vector_tag``."""
        return vector_tag(language, self.pivot, self.vectors)

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that name the numbers that move documents, whatever else the file holds."""
        digest = hashlib.sha256(orjson.dumps([self.pivot, self.encoder, self.revision, self.document_prefix]))
        # The means only move documents beside a map, and are named by it.
        moving = {name: mean for name, mean in self.common.items() if name == DOCUMENTS}
        for tensors in (self.vectors, self.maps, moving):
            for tag in sorted(tensors):
                digest.update(tag.encode() + b"\0" + tensors[tag].astype("<f4").tobytes())
        return digest.hexdigest()[:16]

    def reading(self, encoder: str | None, wanted: Reading) -> Reading:
        """Return how an encoder is to read: as when these were fitted if it is that one, which None stands for.

        Args:
            encoder: its name.
            wanted: what comes before that.
        """
        if encoder not in (None, self.encoder):
            return wanted
        found = wanted.of(self, self.encoder)
        # Vectors that were published, and not fitted here, say nothing of queries.
        return found if any(self.pairs.values()) else replace(found, query_prefix=wanted.query_prefix)

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
        names = ["encoder", "dimension", "revision", "document_prefix", "normalised", "pooling", "max_tokens"]
        if self.query_vectors:
            names.append("query_prefix")
        for name in names:
            mine, theirs = getattr(self, name), made[name]
            elsewhere = name == "encoder" and same_encoder((mine, self.revision), (theirs, made["revision"]))
            if mine == theirs or elsewhere:
                continue
            difference = f"with {name} {shown_value(mine)}, not {shown_value(theirs)}"
            if name == "normalised":
                norms = ("embeddings that are not normalised", "embeddings of norm 1")
                difference = f"on {norms[self.normalised]}, but {made['encoder']} returns {norms[theirs]}"
            raise FingerprintError(
                f"{place}: these language vectors were fitted {difference}: "
                "fit vectors for this encoder with `langshift vectors fit`."
            )

    def save(self, path: Path) -> None:
        """Write the file; it appears whole or not at all."""
        from safetensors.numpy import save

        header = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _PARTS}
        tensors: dict[str, NDArray[np.float32]] = {}
        for name, part in _PARTS.items():
            tensors |= {f"{part}/{tag}" if part else tag: of for tag, of in getattr(self, name).items()}
        write_bytes(path, save(tensors, metadata={_HEADER: orjson.dumps(header, default=dict).decode()}))

    @classmethod
    def load(cls, path: Path) -> LanguageVectors:
        """Read a language-vector file.

        Raises:
            UsageError: there is no such file, or it is not one of ours, or damaged.
        """
        loaded = _read(path)
        _require_sound(loaded, path)
        return loaded


def shipped(encoder: str) -> Path | None:
    """The file of language vectors that comes with langshift for an encoder, or None."""
    if not encoder.replace("-", "").isalnum():
        # An index may name anything as its encoder, such as a path that leads elsewhere.
        return None
    path = Path(str(resources.files("langshift.debias") / "data" / f"{encoder}.safetensors"))
    return path if path.is_file() else None


_HEADER = "langshift"
_HOW_TO_FIT = "create one with `langshift vectors fit`"
# Attribute -> what stands before the language in the names of its tensors.
_PARTS = {
    "vectors": "",
    "query_vectors": "query",
    "common": "common",
    "means": "mean",
    "directions": "lir",
    "maps": "affine",
}


def _read(path: Path) -> LanguageVectors:
    """The language vectors in a file, of the right types, but not yet known to be sound.

    Raises:
        UsageError: there is no such file, it may not be read, or it is not one of ours.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise UsageError(f"The language-vector file {path} does not exist; {_HOW_TO_FIT}.")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} is not readable: change its permissions, or use a copy that you can read.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = orjson.loads((file.metadata() or {})[_HEADER])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        attributes = {
            **_with_recommendations(header),
            **{name: _of_part(tensors, part) for name, part in _PARTS.items()},
        }
        found = LanguageVectors(**attributes)
        msgspec.convert(attributes, LanguageVectors)
        if parse_tag(found.pivot) != found.pivot or any(count < 0 for count in found.pairs.values()):
            raise ValueError
    # An AttributeError is safetensors' word for a type that NumPy does not have.
    except (SafetensorError, KeyError, TypeError, AttributeError, ValueError):
        raise UsageError(f"{path} is not a file of language vectors, or is damaged; {_HOW_TO_FIT}.") from None
    return found


def _with_recommendations(header: dict[str, Any]) -> dict[str, Any]:
    """A header with recommendations for both uses, where earlier versions wrote down one."""
    if "both_sides" not in header:
        alpha, alphas = header.pop("alpha", None), header.pop("alphas", {})
        queries = header.pop("shift_queries", None)
        tuned = alpha is not None or alphas or queries is not None
        kept = {"alpha": 1.0 if alpha is None else alpha, "alphas": alphas}
        header["documents_only"] = kept if tuned else None
        header["both_sides"] = {**kept, "shift_queries": bool(queries)} if tuned else None
    return header | {
        name: msgspec.convert(header[name], Recommendation | None) for name in ("both_sides", "documents_only")
    }


def _require_sound(vectors: LanguageVectors, path: Path) -> None:
    """Refuse what was read where it cannot be used.

    Raises:
        UsageError: naming the first thing that is wrong.
    """
    known = {*vectors.vectors, vectors.pivot}
    advised = [advice for advice in (vectors.both_sides, vectors.documents_only) if advice is not None]
    parts = [getattr(vectors, name) for name in (*_PARTS, "evidence") if name != "common"]
    strangers = any(set(part) - known for part in (*parts, *(advice.alphas for advice in advised)))
    if len(known) < 2 or set(vectors.pairs) != known - {vectors.pivot} or vectors.pivot in vectors.vectors or strangers:
        raise UsageError(f"{path}: its header and its vectors name different languages; {_HOW_TO_FIT}.")
    if set(vectors.maps) - set(vectors.means):
        raise UsageError(f"{path} has a map for a language without its mean embedding; {_HOW_TO_FIT}.")
    if set(vectors.common) not in (set(), {DOCUMENTS, QUERIES}):
        raise UsageError(f"{path} has a common mean for one side of a search only; {_HOW_TO_FIT}.")
    for advice in advised:
        numbers = [("alpha", alpha) for alpha in (advice.alpha, *advice.alphas.values())]
        for name, number in (*numbers, ("gamma", advice.gamma), ("preference", advice.preference)):
            if not 0 <= number <= 1:
                raise UsageError(
                    f"{path} recommends {name} {number}, but {name} must be between 0 and 1; {_HOW_TO_FIT}."
                )
        if advice.gamma and not vectors.common:
            raise UsageError(f"{path} recommends a gamma without the common means that it takes off; {_HOW_TO_FIT}.")
    for name in _PARTS:
        for tag, tensor in getattr(vectors, name).items():
            _require_tensor(vectors.dimension, path, name, tag, tensor)


def _require_tensor(dimension: int, path: Path, name: str, tag: str, tensor: NDArray[np.float32]) -> None:
    if name != "common" and parse_tag(tag) != tag:
        raise UsageError(f"{path}: the tensor {tag!r} is not named after a language.")
    several = {"maps": (dimension, dimension), "directions": (*tensor.shape[:1], dimension)}
    shape = several.get(name, (dimension,))
    what = "vector" if name == "vectors" else f"tensor {_PARTS[name]}"
    if tensor.shape != shape or tensor.dtype != np.float32:
        raise UsageError(
            f"{path}: the {what} of {tag} has shape {tensor.shape} and type {tensor.dtype}, "
            f"not {shape} and float32, as its header states."
        )
    if not np.isfinite(tensor).all():
        raise UsageError(f"{path}: the {what} of {tag} contains values that are not numbers.")
    if np.linalg.norm(tensor.astype(np.float64)) > LONGEST:
        raise UsageError(f"{path}: the {what} of {tag} is longer than {LONGEST:.0e}: it is damaged; {_HOW_TO_FIT}.")


def _of_part(tensors: dict[str, NDArray[np.float32]], part: str) -> dict[str, NDArray[np.float32]]:
    """The tensors named ``part/<tag>``, by tag."""
    named = {name.rpartition("/"): tensor for name, tensor in tensors.items()}
    return {tag: tensor for (prefix, _, tag), tensor in named.items() if prefix == part}

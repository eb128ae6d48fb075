"""Language vectors: what was fitted, for which encoder, and what is recommended."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders.base import Encoder, Pooling, identity
from langshift.debias.fingerprint import same_encoder, scales_in_words, shown_value
from langshift.debias.fitting.directions import principal_directions
from langshift.debias.parallel.tables import LONGEST
from langshift.errors import FingerprintError, UsageError, no_file
from langshift.files import load_json, write_bytes
from langshift.languages import UNDETERMINED, macrolanguage, parse_tag, primary, script_of, text_language, with_script

if TYPE_CHECKING:
    from typing_extensions import Self

Vectors = Mapping[str, NDArray[np.float32]]
#: The largest β: at .1 nearly nothing but documents in the query's language is found.
MOST_OWN = 0.1
# Where nothing is known to be translated, β is the so manieth part of its most.
_CAUTIOUS = 15
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
class CommonStep:
    """What all queries have in common, taken out of documents, so that queries can stay as they are.

    A query is ``q = m + ε``, with m the mean of queries in its language and ε what it asks for. What a document has
    along such means adds a score that has nothing to do with what is asked. With B an orthonormal basis of the means,

        z̃ = (I − γ BᵀB)(z − α V_ℓ − m_D) + (1 − γ) m_D

    ranks as if queries had been shifted. γ below 1 keeps it invertible in 32 bits, and finds more than 1 does.

    Attributes:
        mean: m_D, the mean embedding of documents in the pivot language, shape (d,), float32.
        directions: B, orthonormal rows, shape (k, d), float32.
    """

    mean: NDArray[np.float32]
    directions: NDArray[np.float32]

    def remove(self, vectors: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
        """Take it out of documents that have lost their language vector.

        Args:
            vectors: z − α V_ℓ, shape (n, d) or (d,), float64.
            gamma: γ, above 0 and below 1.

        Returns:
            z̃, of the same shape, float64.
        """
        mean, basis = self.mean.astype(np.float64), self.directions.astype(np.float64)
        centred = vectors - mean
        made: NDArray[np.float64] = centred - gamma * ((centred @ basis.T) @ basis) + (1 - gamma) * mean
        return made

    def restore(self, vectors: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
        """Put back what ``remove`` took out; arguments and result the other way round."""
        mean, basis = self.mean.astype(np.float64), self.directions.astype(np.float64)
        left = vectors - (1 - gamma) * mean
        # Rows that are rounded to 32 bits are orthonormal to 1e-8 only, which would be multiplied by 1 / (1 - γ).
        along = np.linalg.solve(np.eye(len(basis)) - gamma * (basis @ basis.T), (left @ basis.T).T).T
        made: NDArray[np.float64] = left + gamma * (along @ basis) + mean
        return made


@dataclass(frozen=True)
class Recommendation:
    """A setting that measurement recommends, see ``langshift vectors tune``.

    Attributes:
        alpha: scale of the shift, 0 to 1.
        alphas: scales of single languages that differ from ``alpha``.
        gamma: 0, or how much is taken out of documents of what all queries have in common, see ``CommonStep``.
    """

    alpha: float = 1.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0

    @property
    def words(self) -> str:
        """``alpha 1, gamma 0.97``; scales of single languages are left out."""
        return scales_in_words(self.alpha, {}, self.gamma)


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
        recommendation: None where nobody measured.
        query_prefix: prefix with which ``query_vectors`` were encoded.
        query_vectors: tag -> V_ℓ of texts encoded as queries, shape (dimension,), float32; empty where the
            encoder makes no difference.
        common: ``DOCUMENTS`` and ``QUERIES`` -> the mean embeddings m_D and m_Q of texts in the pivot language, encoded
            as either, shape (dimension,), float32; empty where nobody measured.
        query_directions: B of ``CommonStep``, the first right singular vectors of ``query_means``, shape (k,
            dimension), float32; None where nobody fitted them.
        evidence: tag -> what ``langshift vectors check`` judges by; may be empty.
        tuning: what ``langshift vectors tune`` measured; may be empty.
        pooling: how the encoder pooled tokens, where that was not the model's own way.
        max_tokens: how many tokens of a text it read, where that was not the usual number.
        own_vectors: language as the field ``language`` has it -> u_ℓ, shape (dimension,), float32, with ``⟨q, u_ℓ⟩``
            about 1 for queries in ℓ and 0 for others; see ``preference_vectors``. Empty where nobody fitted them.
        scatter: mean squared distance of documents from the mean of their language: in all, then along each direction
            that the means of queries span, of which B are the first; empty likewise.
    """

    #: Attribute -> what stands before the language in the names of its tensors.
    parts: ClassVar[Mapping[str, str]] = {
        "vectors": "",
        "query_vectors": "query",
        "common": "common",
        "own_vectors": "own",
    }

    pivot: str
    vectors: Vectors
    pairs: Mapping[str, int]
    encoder: str
    revision: str
    document_prefix: str
    dimension: int
    normalised: bool
    source: str
    recommendation: Recommendation | None = None
    query_prefix: str = ""
    query_vectors: Vectors = field(default_factory=dict)
    common: Vectors = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)
    query_directions: NDArray[np.float32] | None = None
    pooling: Pooling | None = None
    max_tokens: int | None = None
    own_vectors: Vectors = field(default_factory=dict)
    scatter: list[float] = field(default_factory=list)

    def key(self, language: str) -> str | None:
        """Return the tag of the vector that a document of this language takes; see ``vector_tag``."""
        return vector_tag(language, self.pivot, self.vectors)

    @property
    def step(self) -> CommonStep | None:
        """What a gamma takes out of documents; None where it was not fitted."""
        if self.query_directions is None or DOCUMENTS not in self.common:
            return None
        return CommonStep(self.common[DOCUMENTS], self.query_directions)

    @property
    def query_means(self) -> NDArray[np.float64] | None:
        """The mean embedding of queries in each language, shape (languages, dimension), float64.

        That of documents where queries are encoded as they are, or nothing is known of queries; None where no common
        mean is known.
        """
        means = self._means(QUERIES if self.query_vectors else DOCUMENTS)
        return np.stack([means[tag] for tag in (self.pivot, *sorted(means.keys() - {self.pivot}))]) if means else None

    def _means(self, side: str) -> dict[str, NDArray[np.float64]]:
        """Tag -> the mean embedding of texts in a language, as queries or documents; empty where it is not known."""
        if side not in self.common:
            return {}
        mean = self.common[side].astype(np.float64)
        vectors = self.query_vectors if side == QUERIES else self.vectors
        return {self.pivot: mean, **{tag: mean + one.astype(np.float64) for tag, one in vectors.items()}}

    def recommended_own(self, translated: float = 0.0) -> float:
        """The β for an index: a fifteenth of what the shift takes from readers, and all of it where all is translated.

        What it takes is what the encoder's own cosine gives a document for being in the query's language, before
        anything is said: ``b``, the median over languages of ``⟨m_Q,ℓ, m_D,ℓ⟩`` less its mean over all other languages
        of documents. β pays for questions that have an answer in their own language, and costs all others. Where no
        gamma is recommended, queries hardly say which language they are in, and u is mostly noise.

        Args:
            translated: how much of the index is there in all of its languages, 0 to 1; see ``TranslatedPages.share``.

        Returns:
            β to three decimals; 0 where nothing is known of it, or no gamma is recommended.
        """
        told = self.recommendation is not None and self.recommendation.gamma and self.normalised
        documents = self._means(DOCUMENTS) if told and self.own_vectors else {}
        queries = self._means(QUERIES) if self.query_vectors else documents
        spoken = {text_language(tag): tag for tag in sorted(documents.keys() & queries.keys(), reverse=True)}.values()
        if len(spoken) < 2:
            return 0.0
        cosines = np.stack([queries[tag] for tag in spoken]) @ np.stack([documents[tag] for tag in spoken]).T
        others = (cosines.sum(axis=1) - cosines.diagonal()) / (len(spoken) - 1)
        most = min(max(float(np.median(cosines.diagonal() - others)), 0.0), MOST_OWN)
        return round(most / _CAUTIOUS + (most - most / _CAUTIOUS) * translated, 3)

    def with_rank(self, rank: int | None) -> Self:
        """These with so many directions of queries; None keeps all that matter, see ``principal_directions``.

        Raises:
            UsageError: the means of queries have fewer.
        """
        means = self.query_means
        if means is None:
            if rank:
                raise UsageError("These language vectors hold no mean of queries, of which directions could be fitted.")
            return self
        found = principal_directions(means, rank)
        return replace(self, query_directions=found if len(found) else None)

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that name the numbers that move documents, whatever else the file holds."""
        digest = hashlib.sha256(orjson.dumps([self.pivot, self.encoder, self.revision, self.document_prefix]))
        step = self.step
        common = {} if step is None else {DOCUMENTS: step.mean, QUERIES: step.directions}
        for tensors in (self.vectors, common):
            _add(digest, tensors)
        return digest.hexdigest()[:16]

    @cached_property
    def own_hash(self) -> str | None:
        """16 hexadecimal digits that name the preference vectors; None without."""
        return own_hash(self.own_vectors)

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

    def shape_of(self, name: str, tensor: NDArray[np.float32]) -> tuple[int, ...]:  # noqa: ARG002 - of others it tells
        """The shape that a tensor of one of the ``parts`` must have."""
        return (self.dimension,)

    def save(self, path: Path) -> None:
        """Write the file; it appears whole or not at all."""
        from safetensors.numpy import save

        tensorial = {*self.parts, "query_directions"}
        header = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in tensorial}
        tensors: dict[str, NDArray[np.float32]] = {}
        if self.query_directions is not None:
            tensors[_DIRECTIONS] = np.ascontiguousarray(self.query_directions)
        for name, part in self.parts.items():
            # What lies scattered in memory, safetensors writes as what lies there in a row.
            held = {tag: np.ascontiguousarray(one) for tag, one in getattr(self, name).items()}
            tensors |= {f"{part}/{tag}" if part else tag: one for tag, one in held.items()}
        write_bytes(path, save(tensors, metadata={_HEADER: orjson.dumps(header, default=dict).decode()}))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a language-vector file; tensors that are none of the ``parts`` are passed over.

        Raises:
            UsageError: there is no such file, or it is not one of ours, or damaged.
        """
        loaded = _read(cls, path)
        if why := next(_faults(loaded), None):
            raise UsageError(f"{path} is damaged, because {why}; {_HOW_TO_FIT}.")
        return loaded


def own_hash(own_vectors: Vectors) -> str | None:
    """What names preference vectors in stamps; None where there are none."""
    digest = hashlib.sha256()
    _add(digest, own_vectors)
    return digest.hexdigest()[:16] if own_vectors else None


def _add(digest: hashlib._Hash, tensors: Vectors) -> None:
    for tag in sorted(tensors):
        digest.update(tag.encode() + b"\0" + tensors[tag].astype("<f4").tobytes())


def shipped(encoder: str) -> Path | None:
    """The file of language vectors that comes with langshift for an encoder, or None."""
    if not encoder.replace("-", "").isalnum():
        # An index may name anything as its encoder, such as a path that leads elsewhere.
        return None
    path = Path(str(resources.files("langshift.debias") / "data" / f"{encoder}.safetensors"))
    return path if path.is_file() else None


_HEADER = "langshift"
_HOW_TO_FIT = "create one with `langshift vectors fit`"
_DIRECTIONS = "common/directions"
_Held = TypeVar("_Held", bound=LanguageVectors)


def _read(kind: type[_Held], path: Path) -> _Held:
    """The language vectors in a file, of the right types, but not yet known to be sound.

    Raises:
        UsageError: there is no such file, it may not be read, or it is not one of ours.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise UsageError(f"{no_file(path, f'The language-vector file {path} does not exist')}; {_HOW_TO_FIT}.")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} is not readable: change its permissions, or use a copy that you can read.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = load_json((file.metadata() or {})[_HEADER].encode())
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        if "both_sides" in header:
            raise UsageError(
                f"{path} was fitted for queries that are shifted, too, which is no longer done: fit it anew with "
                "`langshift vectors fit`."
            )
        header["recommendation"] = msgspec.convert(header["recommendation"], Recommendation | None)
        attributes = {
            **header,
            "query_directions": tensors.pop(_DIRECTIONS, None),
            **{name: _of_part(tensors, part) for name, part in kind.parts.items()},
        }
        found = kind(**attributes)
        msgspec.convert(attributes, kind)
        if parse_tag(found.pivot) != found.pivot or any(count < 0 for count in found.pairs.values()):
            raise ValueError
    # An AttributeError is safetensors' word for a type that NumPy does not have.
    except (SafetensorError, KeyError, TypeError, AttributeError, ValueError):
        raise UsageError(f"{path} is not a file of language vectors, or is damaged; {_HOW_TO_FIT}.") from None
    return found


# Of rows that are orthonormal in 64 bits, rounded to 32.
_ORTHONORMAL = 1e-5


def _faults(vectors: LanguageVectors) -> Iterator[str]:
    """What is wrong with what was read, so that it cannot be used."""
    known = {*vectors.vectors, vectors.pivot}
    advice, step, basis = vectors.recommendation or Recommendation(), vectors.step, vectors.query_directions
    parts = [getattr(vectors, name) for name in (*vectors.parts, "evidence") if name not in ("common", "own_vectors")]
    spoken = {text_language(tag) for tag in known}
    strangers = any(set(part) - known for part in (*parts, advice.alphas)) or set(vectors.own_vectors) - spoken
    told = len(known) > 1 and set(vectors.pairs) == known - {vectors.pivot} and vectors.pivot not in vectors.vectors
    lengths, rows = np.array(vectors.scatter), 0 if basis is None else len(basis)
    scaled = step is not None and len(lengths) > rows and np.isfinite(lengths).all() and (lengths >= 0).all()
    needed = {
        "its header and its vectors name different languages": told and not strangers,
        "it has a common mean for one side of a search only": set(vectors.common) in (set(), {DOCUMENTS, QUERIES}),
        "it recommends an alpha that is not between 0 and 1": all(
            0 <= number <= 1 for number in (advice.alpha, *advice.alphas.values())
        ),
        "it recommends a gamma without the mean and the directions that it takes out": step or not advice.gamma,
        "it has preference vectors without the lengths that scale them": scaled or not vectors.own_vectors,
        "the directions of queries are not at right angles, of length 1, and of its dimension in 32 bits": basis is None
        or _is_basis(basis, vectors.dimension),
    }
    yield from (fault for fault, holds in needed.items() if not holds)
    for name, part in vectors.parts.items():
        for tag, tensor in getattr(vectors, name).items():
            what = f"the {f'tensor {part}' if part else 'vector'} of {tag}"
            if name != "common" and parse_tag(tag) != tag:
                yield f"the tensor {tag!r} is not named after a language"
            if tensor.shape != vectors.shape_of(name, tensor) or tensor.dtype != np.float32:
                yield f"{what} is not of the shape that its header states, or not in 32 bits"
            elif not np.linalg.norm(tensor.astype(np.float64)) <= LONGEST:
                yield f"{what} contains values that are not numbers, or too large"


def _is_basis(basis: NDArray[np.float32], dimension: int) -> bool:
    if basis.ndim != 2 or not basis.shape[1] == dimension >= len(basis) >= 1 or basis.dtype != np.float32:
        return False
    return bool((np.abs(basis.astype(np.float64) @ basis.T - np.eye(len(basis))) < _ORTHONORMAL).all())


def _of_part(tensors: dict[str, NDArray[np.float32]], part: str) -> dict[str, NDArray[np.float32]]:
    """The tensors named ``part/<tag>``, by tag."""
    named = {name.rpartition("/"): tensor for name, tensor in tensors.items()}
    return {tag: tensor for (prefix, _, tag), tensor in named.items() if prefix == part}

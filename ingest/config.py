"""How documents become entries, and the fingerprint that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import msgspec
import orjson

from langshift.debias.debiaser import Debiaser, recommended
from langshift.debias.detector import LanguageDetector, open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import AS_KNOWN, Encoder, Reading, VectorSpec, identity, is_given
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import UsageError
from langshift.files import write_bytes
from langshift.ingest.chunking import Chunking
from langshift.ingest.representations import OFF, Representation, open_representation, representation_of
from langshift.plugin import metadata, stored_shift
from langshift.plugin.inventory import TranslatedPages
from langshift.plugin.representations import SPARSE, TOKENS, SparseWeights, TokenVectors, stored_beside, to_metadata
from langshift.plugin.stored_shift import StoredShift
from langshift.settings import VERSION

#: A posterior below this makes a document ``und``, unless something else is asked for.
LEAST_CONFIDENCE = 0.5


@dataclass(frozen=True)
class EmbeddingPipeline:
    """How documents become entries.

    Attributes:
        encoder: gives the vectors.
        debias: moves them.
        detector: names the languages.
        least_confidence: a posterior below this makes a document ``und``.
        default_shift: whether nothing was asked for that concerns the shift, so that documents that are added to an
            index take the index's own.
        default_own: whether no scale was asked for, so that β follows how much is translated.
        chunking: how documents are cut into chunks; None where each is one entry.
        beside: what else is made of their texts.
    """

    encoder: Encoder
    debias: Debiaser
    detector: LanguageDetector
    least_confidence: float = LEAST_CONFIDENCE
    default_shift: bool = False
    default_own: bool = False
    chunking: Chunking | None = None
    beside: tuple[Representation, ...] = ()

    def for_fields(self, fields: metadata.FieldNames) -> EmbeddingPipeline:
        """Return it with the chunks that the fields of an index ask for; the same where they ask for none."""
        return self if fields.chunking is None else replace(self, chunking=Chunking.parse(fields.chunking))

    def of_index(self, meta: Mapping[str, Any], index: str) -> EmbeddingPipeline:
        """Return it with the shift and the languages that an index keeps, for documents that are added to it.

        Where a shift was asked for, it stays as it is, for ``Fingerprint.require_same``.

        Args:
            meta: the index's whole ``_meta``.
            index: its name, for messages.
        """
        if metadata.FINGERPRINT not in meta:
            return self
        made, own = Fingerprint.from_dict(meta[metadata.FINGERPRINT]), self
        if not self.detector.languages:
            own = replace(own, detector=self.detector.limited(made.languages))
        if self.default_shift and StoredShift.from_meta(meta) is not None:
            own = replace(own, debias=stored_shift.of_documents(meta, index), default_own=False)
        elif self.default_own:
            own = replace(own, debias=replace(own.debias, own=made.own), default_own=False)
        return own

    def for_translations(self, found: TranslatedPages | None) -> EmbeddingPipeline:
        """Return it with the β that goes with how far a corpus is translated."""
        known = self.debias.vectors
        if found is None or known is None:
            return self
        return replace(self, debias=replace(self.debias, own=known.recommended_own(found.share)))

    @property
    def brings_weights(self) -> bool:
        """Whether documents bring the weights of their tokens."""
        return any(one.is_given for one in self.beside)

    def fingerprint(self) -> Fingerprint:
        """What an index with vectors of this making carries."""
        debias, vectors = self.debias, self.debias.vectors
        return Fingerprint(
            **identity(self.encoder),
            pivot=vectors.pivot if vectors else None,
            alpha=debias.alpha,
            alphas={tag: alpha for tag, alpha in sorted(debias.alphas.items()) if alpha != debias.alpha},
            vectors=vectors.hash if vectors else None,
            gamma=debias.gamma,
            own=debias.own,
            own_vectors=vectors.own_hash if vectors and debias.own else None,
            detector=self.detector.id,
            languages=self.detector.languages,
            langshift=VERSION,
        )

    def to_metadata(self) -> dict[str, Any]:
        """What an index keeps in ``_meta`` of the shift, and of what is made of texts beside their vectors."""
        return {**stored_shift.to_metadata(self.debias), **to_metadata(one.kept for one in self.beside)}


def build_pipeline(
    encoder: Encoder,
    detector: LanguageDetector,
    vectors: Path | None,
    alpha: float | None,
    least_confidence: float = LEAST_CONFIDENCE,
    *,
    gamma: float | None = None,
    own: float | None = None,
) -> EmbeddingPipeline:
    """Complete what was given: the shipped vectors, and the scales that they recommend, else 1.

    Args:
        encoder: the encoder.
        detector: the language detector.
        vectors: a file of language vectors; None takes those shipped for the encoder.
        alpha: scale of all languages; None takes what the vectors recommend, else 1.
        least_confidence: a detection below this makes a document ``und``.
        gamma: see ``Debiaser``; None takes what the vectors recommend, but 0 beside an alpha.
        own: likewise.

    Raises:
        UsageError: the encoder has no shipped vectors and alpha is not 0, or a gamma or own that is none, or for which
            the vectors hold nothing.
        FingerprintError: the vectors were fitted with another encoder.
    """
    path = vectors or shipped(encoder.id)
    known = None
    if path is not None:
        known = LanguageVectors.load(path)
        known.require_encoder(encoder, str(path))
    elif alpha != 0 or gamma or own:
        raise UsageError(
            f"There are no language vectors for the encoder {encoder.id}: give some with --vectors, "
            "or --alpha 0 to index without a shift."
        )
    debias, unscaled = recommended(known, alpha, gamma, own), (alpha, gamma, own) == (None,) * 3
    return EmbeddingPipeline(encoder, debias, detector, least_confidence, default_own=unscaled)


@dataclass(frozen=True)
class PipelineOptions:
    """How documents are made, as it is asked for.

    Attributes:
        encoder: how the encoder is asked for.
        vectors: a file of language vectors; None for those shipped.
        alpha: scale of all languages; None for what the vectors recommend.
        lid_model: a fastText model; None for the bundled one.
        least_confidence: a detection below this makes a document ``und``.
        gamma: as ``build_pipeline`` takes it.
        own: likewise.
        languages: those that detection is limited to; empty for all, or for those that an index is limited to.
        named_by: what names the encoder where no person did, see ``open_encoder``.
        reading: how the encoder is to read texts; what it leaves open is as in the file of language vectors.
        sparse: the encoder of weights of tokens; None, or ``off``, for no such weights.
        tokens: the encoder of vectors of tokens; likewise.
        sparse_named_by: what names the encoder of weights where no person did.
    """

    encoder: str
    vectors: Path | None = None
    alpha: float | None = None
    lid_model: Path | None = None
    least_confidence: float = LEAST_CONFIDENCE
    gamma: float | None = None
    own: float | None = None
    languages: Sequence[str] = ()
    named_by: str = ""
    reading: Reading = AS_KNOWN
    sparse: str | None = None
    tokens: str | None = None
    sparse_named_by: str = ""

    def open(self, vector_spec: VectorSpec | None, index_meta: Mapping[str, Any] | None = None) -> EmbeddingPipeline:
        """Open encoder, detector and language vectors.

        Args:
            vector_spec: what is known of vectors that come with the documents.
            index_meta: the whole ``_meta`` of an index: its own shift is taken, whatever else was asked for.

        Raises:
            UsageError: they cannot be used, or not together.
            LangshiftError: the encoder's model cannot be loaded, or its server does not answer as it should.
        """
        # Of language vectors, the file says how texts are read.
        reading = self.reading
        if self.vectors is not None:
            reading = reading.of(LanguageVectors.load(self.vectors), self.encoder)
        encoder = open_encoder(self.encoder, vector_spec=vector_spec, named_by=self.named_by, reading=reading)
        detector = open_detector(self.lid_model).limited(self.languages)
        if index_meta is not None:
            unmoved = EmbeddingPipeline(encoder, stored_shift.UNMOVED, detector, self.least_confidence)
            unmoved = replace(unmoved, beside=self.open_beside())
            return replace(unmoved, default_shift=True).of_index(index_meta, "the index")
        scales = {"gamma": self.gamma, "own": self.own}
        made = build_pipeline(encoder, detector, self.vectors, self.alpha, self.least_confidence, **scales)
        return replace(made, default_shift=self.default_shift, beside=self.open_beside())

    def open_beside(self) -> tuple[Representation, ...]:
        """Open what makes of texts what is wanted beside their vectors.

        Raises:
            UsageError: there is no such encoder, or it cannot be used with what there is.
            LangshiftError: its model cannot be loaded, or its server does not answer as it should.
        """
        named = ((SparseWeights, self.sparse, self.sparse_named_by), (TokenVectors, self.tokens, ""))
        return tuple(
            open_representation(kind, name, named_by=named_by)
            for kind, name, named_by in named
            if name not in (None, OFF)
        )

    def open_for(self, made: Fingerprint, meta: Mapping[str, Any]) -> EmbeddingPipeline:
        """Open them for documents of an index, with the shift that it has; they get what it keeps beside vectors.

        Args:
            made: how the index's vectors are made.
            meta: its whole ``_meta``.

        Raises:
            UsageError: see ``open``, as for ``LangshiftError``.
        """
        reading = AS_KNOWN.of(made, self.encoder)
        options = replace(self, languages=self.languages or made.languages, reading=reading, sparse=None, tokens=None)
        own = meta if StoredShift.from_meta(meta) is not None else None
        opened = options.open(VectorSpec(made.dimension, made.normalised), own)
        now = {SPARSE: (self.sparse, self.sparse_named_by), TOKENS: (self.tokens, "")}
        beside = []
        for key, kept in stored_beside(meta).items():
            name, named_by = now[key] if now[key][0] not in (None, OFF) else (None, "The index")
            beside.append(representation_of(kept, name, named_by=named_by))
        return replace(opened, beside=tuple(beside))

    @property
    def brings_weights(self) -> bool:
        """Whether documents bring the weights of their tokens."""
        return self.sparse is not None and is_given(self.sparse)

    @property
    def default_shift(self) -> bool:
        """Whether nothing is asked for that concerns the shift."""
        return (self.vectors, self.alpha, self.gamma, self.own) == (None,) * 4

    def keep(self, file: Path) -> None:
        """Write them to a file of mode 0600."""
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        content = orjson.dumps(self, default=lambda path: str(path.absolute()), option=options)
        write_bytes(file, content, private=True)

    @classmethod
    def read(cls, file: Path) -> PipelineOptions:
        """Read what ``keep`` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not UTF-8.
            msgspec.DecodeError: it holds no JSON, or an option is missing, of another type, or none of these.
        """
        held = msgspec.json.decode(file.read_bytes())
        found = msgspec.convert(held, cls, dec_hook=lambda kind, value: kind(value))
        if unknown := held.keys() - {field.name for field in fields(cls)}:
            raise msgspec.ValidationError(f"unknown options: {', '.join(sorted(unknown))}")
        return found

"""How documents become entries, and the fingerprint that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson

from langshift.debias import index_means
from langshift.debias.debiaser import INDEX_SIDE, QUERY_SIDE, Debiaser, recommendation, recommended
from langshift.debias.detector import LanguageDetector, open_detector
from langshift.debias.encoders import AS_KNOWN, Encoder, Reading, VectorSpec, identity, open_encoder
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import UsageError
from langshift.files import write_bytes
from langshift.ingest.chunking import Chunking
from langshift.plugin import metadata, stored_shift
from langshift.plugin.stored_shift import StoredShift
from langshift.settings import VERSION

LEAST_CONFIDENCE = 0.5
Means = Literal["index", "vectors"]


@dataclass(frozen=True)
class EmbeddingPipeline:
    """How documents become entries.

    Attributes:
        encoder: gives the vectors.
        debias: moves them.
        detector: names the languages.
        least_confidence: a posterior below this makes a document ``und``.
        soft: whether a detected document is moved by all languages that it may be in, as far as each is probable.
        preference: the language preference that is recommended with the scales.
        measures: whether the vectors are to be adapted to the documents of a new index before any is written.
        default_shift: whether nothing was asked for that concerns the shift, so that documents that are added to an
            index take the index's own.
        chunking: how documents are cut into chunks; None where each is one entry.
    """

    encoder: Encoder
    debias: Debiaser
    detector: LanguageDetector
    least_confidence: float = LEAST_CONFIDENCE
    soft: bool = False
    preference: float = 0.0
    measures: bool = False
    default_shift: bool = False
    chunking: Chunking | None = None

    def for_fields(self, fields: metadata.FieldNames) -> EmbeddingPipeline:
        """Return it with the chunks that the fields of an index ask for; the same where they ask for none."""
        return self if fields.chunking is None else replace(self, chunking=Chunking.parse(fields.chunking))

    def adapted(self, documents: index_means.EmbeddingSums) -> EmbeddingPipeline:
        """Return it with language vectors that are adapted to a sample of an index; see ``index_means``."""
        assert self.debias.vectors is not None  # noqa: S101 - ``measures`` says so
        vectors = index_means.adapted(self.debias.vectors, documents)
        return replace(self, debias=replace(self.debias, vectors=vectors), measures=False)

    def of_index(self, meta: Mapping[str, Any], index: str) -> EmbeddingPipeline:
        """Return it with the shift and the languages that an index keeps, for documents that are added to it.

        Where a shift was asked for, it stays as it is, for ``Fingerprint.require_same``: but for vectors that the
        index's own were adapted from, in place of which these are taken.

        Args:
            meta: the index's whole ``_meta``.
            index: its name, for messages.
        """
        own, given = replace(self, measures=False), self.debias.vectors
        if metadata.FINGERPRINT not in meta:
            return own
        made = Fingerprint.from_dict(meta[metadata.FINGERPRINT])
        if not self.detector.languages:
            own = replace(own, detector=self.detector.limited(made.languages))
        if made.method != "shift" or StoredShift.from_meta(meta) is None or self.debias.method != "shift":
            return own
        if self.default_shift:
            return replace(own, debias=stored_shift.of_documents(meta, index), soft=made.soft)
        if given is not None and made.means.get("vectors") == given.hash:
            return replace(own, debias=replace(self.debias, vectors=stored_shift.known_vectors(meta, index)))
        return own

    def fingerprint(self) -> Fingerprint:
        """What an index with vectors of this making carries."""
        debias, vectors = self.debias, self.debias.vectors
        return Fingerprint(
            **identity(self.encoder),
            pivot=vectors.pivot if vectors else None,
            alpha=debias.alpha,
            alphas={tag: alpha for tag, alpha in sorted(debias.alphas.items()) if alpha != debias.alpha},
            vectors=vectors.hash if vectors else None,
            method=debias.method,
            soft=self.soft,
            gamma=debias.gamma,
            means=dict(vectors.measured) if vectors else {},
            detector=self.detector.id,
            languages=self.detector.languages,
            langshift=VERSION,
        )


def build_pipeline(
    encoder: Encoder,
    detector: LanguageDetector,
    vectors: Path | None,
    alpha: float | None,
    least_confidence: float = LEAST_CONFIDENCE,
    *,
    gamma: float | None = None,
    documents_only: bool = False,
    method: str = "shift",
    soft: bool = False,
    means: Means | None = None,
) -> EmbeddingPipeline:
    """Complete what was given: the shipped vectors, and the scales that they recommend, else 1.

    Args:
        encoder: the encoder.
        detector: the language detector.
        vectors: a file of language vectors; None takes those shipped for the encoder.
        alpha: scale of all languages; None takes what the vectors recommend, else 1.
        least_confidence: a detection below this makes a document ``und``.
        gamma: scale of the common mean; None takes what the vectors recommend, but 0 beside an alpha.
        documents_only: take what the vectors recommend where queries stay as they are.
        method: one of ``INDEX_SIDE``.
        soft: whether to move detected documents by all languages that they may be in.
        means: whether a new index's vectors are adapted to its documents, or as fitted; None adapts them where there
            is a gamma, unless they were adapted before.

    Raises:
        UsageError: the encoder has no shipped vectors and alpha is not 0, or a method that an index cannot be
            made with, or for which nothing can be adapted.
        FingerprintError: the vectors were fitted with another encoder.
    """
    _require_index_side(method, soft=soft)
    path = vectors or shipped(encoder.id)
    known = None
    if path is not None:
        known = LanguageVectors.load(path)
        known.require_encoder(encoder, str(path))
    elif alpha != 0 or gamma:
        raise UsageError(
            f"There are no language vectors for the encoder {encoder.id}: give some with --vectors, "
            "or --alpha 0 to index without a shift."
        )
    debias = recommended(known, method, alpha, gamma, documents_only=documents_only)
    preference = 0.0
    if known is not None and alpha is None and gamma is None:
        # With other scales nobody has measured one.
        preference = recommendation(known, method, documents_only=documents_only).preference
    if means == "index" and (known is None or method != "shift"):
        raise UsageError("Only the method shift, with language vectors, takes means from an index: leave --means out.")
    measures = means == "index" or (means is None and known is not None and bool(debias.gamma) and not known.measured)
    return EmbeddingPipeline(encoder, debias, detector, least_confidence, soft, preference, measures)


def _require_index_side(method: str, *, soft: bool) -> None:
    choices = " or ".join(INDEX_SIDE)
    if method in QUERY_SIDE:
        raise UsageError(
            f"The method {method} changes queries too, which an index cannot do: choose {choices}, or try {method} "
            f"with `langshift evaluate offline --method {method}`."
        )
    if method not in INDEX_SIDE:
        raise UsageError(
            f"There is no method {method!r} for an index: choose {choices}, "
            "or --alpha 0 to leave documents as they are."
        )
    if soft and method != "shift":
        raise UsageError(f"Only the method shift can be soft, not {method}.")


@dataclass(frozen=True)
class PipelineOptions:
    """How documents are made, as it is asked for.

    Attributes:
        encoder: how the encoder is asked for.
        trust_remote_code: whether to run code that comes with a model.
        vectors: a file of language vectors; None for those shipped.
        alpha: scale of all languages; None for what the vectors recommend.
        method: how documents are moved.
        soft: whether by all languages that each may be in.
        lid_model: a fastText model; None for the bundled one.
        least_confidence: a detection below this makes a document ``und``.
        gamma: scale of the common mean; None for what the vectors recommend, but 0 beside an alpha.
        documents_only: whether queries stay as they are.
        means: whether a new index's vectors are adapted to its documents, or as fitted; None for the usual.
        languages: those that detection is limited to; empty for all, or for those that an index is limited to.
        named_by: what names the encoder where no person did, see ``open_encoder``.
        reading: how the encoder is to read texts.
    """

    encoder: str
    trust_remote_code: bool
    vectors: Path | None
    alpha: float | None
    method: str
    soft: bool
    lid_model: Path | None
    least_confidence: float
    gamma: float | None = None
    documents_only: bool = False
    means: Means | None = None
    languages: Sequence[str] = ()
    named_by: str = ""
    reading: Reading = AS_KNOWN

    def open(self, vector_spec: VectorSpec | None, index_meta: Mapping[str, Any] | None = None) -> EmbeddingPipeline:
        """Open encoder, detector and language vectors.

        Args:
            vector_spec: what is known of vectors that come with the documents.
            index_meta: the whole ``_meta`` of an index: its own shift is taken, whatever else was asked for.

        Raises:
            UsageError: they cannot be used, or not together.
            LangshiftError: the encoder's model cannot be loaded, or its server does not answer as it should.
        """
        encoder = open_encoder(
            self.encoder,
            trust_remote_code=self.trust_remote_code,
            vector_spec=vector_spec,
            named_by=self.named_by,
            reading=self.reading,
        )
        detector = open_detector(self.lid_model).limited(self.languages)
        if index_meta is not None:
            unmoved = EmbeddingPipeline(encoder, stored_shift.UNMOVED, detector, self.least_confidence)
            return replace(unmoved, default_shift=True).of_index(index_meta, "the index")
        made = build_pipeline(
            encoder,
            detector,
            self.vectors,
            self.alpha,
            self.least_confidence,
            gamma=self.gamma,
            documents_only=self.documents_only,
            method=self.method,
            soft=self.soft,
            means=self.means,
        )
        return replace(made, default_shift=self.default_shift)

    @property
    def default_shift(self) -> bool:
        """Whether nothing is asked for that concerns the shift."""
        given = (self.vectors, self.alpha, self.gamma, self.documents_only or None, self.soft or None)
        return self.method == "shift" and all(one is None for one in given)

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
            msgspec.DecodeError: it holds no JSON, or an option is missing or of another type.
        """
        return msgspec.json.decode(file.read_bytes(), type=cls, dec_hook=lambda kind, value: kind(value))

"""How documents become entries, and the fingerprint that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson

from langshift.debias.debiaser import INDEX_SIDE, QUERY_SIDE, Debiaser, recommendation, recommended
from langshift.debias.detector import LanguageDetector, open_detector
from langshift.debias.encoders import Encoder, VectorSpec, identity, open_encoder
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import UsageError
from langshift.files import atomic_write
from langshift.settings import VERSION

LEAST_CONFIDENCE = 0.5


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
        means: see ``Fingerprint``.
    """

    encoder: Encoder
    debias: Debiaser
    detector: LanguageDetector
    least_confidence: float = LEAST_CONFIDENCE
    soft: bool = False
    preference: float = 0.0
    means: Mapping[str, Any] = field(default_factory=dict)

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
            means=dict(self.means),
            detector=self.detector.id,
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

    Raises:
        UsageError: the encoder has no shipped vectors and alpha is not 0, or a method that an index cannot be
            made with.
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
    return EmbeddingPipeline(encoder, debias, detector, least_confidence, soft, preference)


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

    def open(self, vector_spec: VectorSpec | None) -> EmbeddingPipeline:
        """Open encoder, detector and language vectors.

        Args:
            vector_spec: what is known of vectors that come with the documents.

        Raises:
            UsageError: they cannot be used, or not together.
            LangshiftError: the encoder's model cannot be loaded, or its server does not answer as it should.
        """
        encoder = open_encoder(self.encoder, trust_remote_code=self.trust_remote_code, vector_spec=vector_spec)
        return build_pipeline(
            encoder,
            open_detector(self.lid_model),
            self.vectors,
            self.alpha,
            self.least_confidence,
            gamma=self.gamma,
            documents_only=self.documents_only,
            method=self.method,
            soft=self.soft,
        )

    def keep(self, file: Path) -> None:
        """Write them to a file of mode 0600."""
        with atomic_write(file) as partial:
            partial.touch(mode=0o600)
            options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
            partial.write_bytes(orjson.dumps(self, default=lambda path: str(path.absolute()), option=options))

    @classmethod
    def read(cls, file: Path) -> PipelineOptions:
        """Read what ``keep`` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not UTF-8.
            msgspec.DecodeError: it holds no JSON, or an option is missing or of another type.
        """
        return msgspec.json.decode(file.read_bytes(), type=cls, dec_hook=lambda kind, value: kind(value))

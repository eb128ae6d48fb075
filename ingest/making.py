"""How documents become entries, and the fingerprint that says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from langshift import __version__
from langshift.errors import UsageError
from langshift.ingest.detect import Detector
from langshift.ingest.encoders import Encoder
from langshift.ingest.vectors import LanguageVectors, shipped
from langshift.plugin.fingerprint import Fingerprint

LEAST_CONFIDENCE = 0.5


@dataclass(frozen=True)
class Making:
    """How documents become entries.

    Attributes:
        encoder: gives the vectors.
        vectors: language vectors, or None where alpha is 0 and none are known.
        alpha: scale of the shift, 0 to 1.
        detector: names the languages.
        least_confidence: a posterior below this makes a document ``und``.
    """

    encoder: Encoder
    vectors: LanguageVectors | None
    alpha: float
    detector: Detector
    least_confidence: float = LEAST_CONFIDENCE

    def fingerprint(self) -> Fingerprint:
        """What an index with vectors of this making carries."""
        encoder, vectors = self.encoder, self.vectors
        return Fingerprint(
            encoder=encoder.id,
            revision=encoder.revision,
            query_prefix=encoder.query_prefix,
            document_prefix=encoder.document_prefix,
            dimension=encoder.dimension,
            normalised=encoder.normalised,
            pivot=vectors.pivot if vectors else None,
            alpha=self.alpha,
            vectors=vectors.hash if vectors else None,
            detector=self.detector.id,
            langshift=__version__,
        )


def choose(
    encoder: Encoder,
    detector: Detector,
    vectors: Path | None,
    alpha: float | None,
    least_confidence: float = LEAST_CONFIDENCE,
) -> Making:
    """Complete what was given: the shipped vectors, and the alpha that they recommend, else 1.

    Args:
        encoder: the encoder.
        detector: the language detector.
        vectors: a file of language vectors; None takes those shipped for the encoder.
        alpha: scale of the shift; None takes what the vectors recommend, else 1.
        least_confidence: a detection below this makes a document ``und``.

    Raises:
        UsageError: the encoder has no shipped vectors and alpha is not 0.
        FingerprintError: the vectors were fitted with another encoder.
    """
    path = vectors or shipped(encoder.id)
    if path is None:
        if alpha != 0:
            raise UsageError(
                f"There are no language vectors for the encoder {encoder.id}: give some with --vectors, "
                "or --alpha 0 to index without a shift."
            )
        return Making(encoder, None, 0.0, detector, least_confidence)
    known = LanguageVectors.load(path)
    known.require_encoder(encoder, str(path))
    if alpha is None:
        alpha = 1.0 if known.alpha is None else known.alpha
    return Making(encoder, known, alpha, detector, least_confidence)

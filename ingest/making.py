"""How documents become entries, and the fingerprint that says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from langshift.debias.debias import Debias, recommended
from langshift.debias.detect import Detector
from langshift.debias.encoders import Encoder, identity
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.methods import INDEX_SIDE, METHODS
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import UsageError
from langshift.settings import VERSION

LEAST_CONFIDENCE = 0.5


@dataclass(frozen=True)
class Making:
    """How documents become entries.

    Attributes:
        encoder: gives the vectors.
        debias: moves them.
        detector: names the languages.
        least_confidence: a posterior below this makes a document ``und``.
        soft: whether a detected document is moved by all languages that it may be in, as far as each is probable.
    """

    encoder: Encoder
    debias: Debias
    detector: Detector
    least_confidence: float = LEAST_CONFIDENCE
    soft: bool = False

    def fingerprint(self) -> Fingerprint:
        """What an index with vectors of this making carries."""
        encoder, debias = self.encoder, self.debias
        vectors = debias.vectors
        return Fingerprint(
            **identity(encoder),
            pivot=vectors.pivot if vectors else None,
            alpha=debias.alpha,
            alphas={tag: alpha for tag, alpha in sorted(debias.alphas.items()) if alpha != debias.alpha},
            vectors=vectors.hash if vectors else None,
            method=debias.method,
            soft=self.soft,
            detector=self.detector.id,
            langshift=VERSION,
        )


def choose(
    encoder: Encoder,
    detector: Detector,
    vectors: Path | None,
    alpha: float | None,
    least_confidence: float = LEAST_CONFIDENCE,
    *,
    method: str = "shift",
    soft: bool = False,
) -> Making:
    """Complete what was given: the shipped vectors, and the scales that they recommend, else 1.

    Args:
        encoder: the encoder.
        detector: the language detector.
        vectors: a file of language vectors; None takes those shipped for the encoder.
        alpha: scale of all languages; None takes what the vectors recommend, else 1.
        least_confidence: a detection below this makes a document ``und``.
        method: one of ``INDEX_SIDE``.
        soft: whether to move detected documents by all languages that they may be in.

    Raises:
        UsageError: the encoder has no shipped vectors and alpha is not 0, or a method that an index cannot be
            made with.
        FingerprintError: the vectors were fitted with another encoder.
    """
    _require_index_side(method, soft=soft)
    path = vectors or shipped(encoder.id)
    if path is None:
        if alpha != 0:
            raise UsageError(
                f"There are no language vectors for the encoder {encoder.id}: give some with --vectors, "
                "or --alpha 0 to index without a shift."
            )
        return Making(encoder, recommended(None, method), detector, least_confidence, soft)
    known = LanguageVectors.load(path)
    known.require_encoder(encoder, str(path))
    return Making(encoder, recommended(known, method, alpha), detector, least_confidence, soft)


def _require_index_side(method: str, *, soft: bool) -> None:
    choices = " or ".join(INDEX_SIDE)
    if method in METHODS and METHODS[method].query_side:
        raise UsageError(
            f"The method {method} changes queries too, which an index cannot: choose {choices}, or try {method} with "
            f"`langshift evaluate offline --method {method}`."
        )
    if method not in INDEX_SIDE:
        raise UsageError(
            f"There is no method {method!r} for an index: choose {choices}, "
            "or --alpha 0 to leave documents as they are."
        )
    if soft and method != "shift":
        raise UsageError(f"Only the method shift can be soft, not {method}.")

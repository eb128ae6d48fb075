"""A batch of documents moved, each with the stamp that says what was done to its vector and how to take it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debias import Debias, Posterior
from langshift.ingest.documents import Document
from langshift.ingest.making import Making
from langshift.languages import UNDETERMINED, text_language

Stamp = dict[str, Any]


class Told(NamedTuple):
    """What language a document is in.

    Attributes:
        language: its tag; ``und`` where unknown or not certain enough.
        confidence: the detector's posterior; 1 where the document names its language.
        posterior: all languages that it may be in, for a soft shift; empty where it is moved by its language.
    """

    language: str
    confidence: float
    posterior: Posterior


def tell(document: Document, making: Making) -> Told:
    """The language that a document names, else what the detector makes of its text."""
    if document.language is not None:
        return Told(document.language, 1.0, {document.language: 1.0} if making.soft else {})
    text = document.text or document.title
    if making.soft:
        posterior = making.detector.posteriors(text)
        language, confidence = next(iter(posterior.items()), (UNDETERMINED, 0.0))
    else:
        posterior = {}
        language, confidence = making.detector.detect(text)
    return Told(language if confidence >= making.least_confidence else UNDETERMINED, confidence, posterior)


def move(vectors: NDArray[np.float32], told: Sequence[Told], making: Making) -> tuple[NDArray[np.float32], list[Stamp]]:
    """Move documents by their languages, or by all that each may be in.

    Args:
        vectors: embeddings as the encoder makes them, shape (n, d), float32.
        told: each document's language.
        making: the method and its scales.

    Returns:
        The vectors, shape (n, d), float32, and the stamps. ``alpha`` and ``language`` of a stamp are the scale
        and the vector that moved a document, also where the scale is 0; in a soft shift ``languages`` are the
        vectors with their posteriors p(ℓ), exactly as used, so that ``z = z̃ + Σ_ℓ p(ℓ) α_ℓ V_ℓ``, where α_ℓ is
        ``alpha``, or what ``alphas`` says of ℓ. ``tag`` is the document's own tag where that says more than the field
        ``language``, so that other language vectors can be applied later.
    """
    debias = making.debias
    name = debias.vectors.hash if debias.vectors else None
    languages = [one.language for one in told]
    if making.soft:
        posteriors = [_of_vectors(one.posterior, debias) for one in told]
        stamps = [_soft_stamp(name, found, debias) for found in posteriors]
        moved = debias.soft(vectors, posteriors)
    else:
        stamps = [_stamp(name, debias.named(tag), debias) for tag in languages]
        moved = debias.documents(vectors, languages)
    for tag, stamp in zip(languages, stamps, strict=True):
        if tag != text_language(tag):
            stamp["tag"] = tag
    return moved, stamps


def _of_vectors(posterior: Posterior, debias: Debias) -> dict[str, float]:
    """Tag of a language vector -> posterior of the languages that it moves, the likeliest first."""
    found: dict[str, float] = {}
    for tag, probability in posterior.items():
        key = debias.named(tag)
        if key is not None:
            found[key] = found.get(key, 0.0) + probability
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _stamp(name: str | None, key: str | None, debias: Debias) -> Stamp:
    if key is None:
        return {"vectors": name, "alpha": 0.0}
    stamp: Stamp = {"vectors": name, "alpha": debias.scale(key), "language": key}
    return stamp if debias.method == "shift" else {**stamp, "method": debias.method}


def _soft_stamp(name: str | None, found: Mapping[str, float], debias: Debias) -> Stamp:
    stamp = _stamp(name, next(iter(found), None), debias)
    if not found:
        return stamp
    alphas = {key: debias.scale(key) for key in found if debias.scale(key) != stamp["alpha"]}
    return {**stamp, "languages": dict(found), **({"alphas": alphas} if alphas else {})}

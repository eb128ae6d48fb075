"""How far a language vector can be trusted, from the sums of blocks of its pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from langshift.debias.fitting.alignment import Alignment, Count
from langshift.debias.vectors import LanguageVectors

HALVINGS = 200
_SEED = 20_260_213
# The expected cosine with the true vector from which on more pairs would change little.
ENOUGH = 0.95
_LONGEST_CURVE = 10_000_000
# What ``msgspec`` checks where evidence is read.
Length = Annotated[float, msgspec.Meta(ge=0)]
Cosine = Annotated[float, msgspec.Meta(ge=-1, le=1)]


@dataclass(frozen=True)
class Reliability:
    """What the pairs say about the vector that is their mean.

    Attributes:
        split_half: mean cosine between the vectors of two halves of the pairs, over 200 random halvings.
        low: their 2.5th percentile.
        high: their 97.5th percentile.
        noise: expected length of the vector's error.
        cosine: expected cosine between the vector and the true one.
        enough: how many pairs would bring that cosine to .95; None where no number would.
        curve: pairs and the cosine expected from so many, in steps 1, 2, 5, 10, …
    """

    split_half: Cosine
    low: Cosine
    high: Cosine
    noise: Length
    cosine: Cosine
    enough: Count | None
    curve: tuple[tuple[int, float], ...]


def reliability(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> Reliability:
    """Judge a mean of differences by the spread of its blocks.

    The mean of N pairs is taken as V + e, with the true vector V and an error e whose squared length is
    σ²/N on average and which is nearly orthogonal to V, as random directions are in many dimensions.
    σ² comes from the blocks' means m_b of n_b pairs: ``σ² = Σ_b n_b |m_b − m|² / (blocks − 1)``, so that
    the likeness of neighbouring pairs counts; ``|V|² = |m|² − σ²/N``; and the cosine that n pairs would
    give is expected to be ``|V| / √(|V|² + σ²/n)``.

    Args:
        sums: each block's sum of differences, shape (blocks, d), float64; two blocks at least.
        counts: how many pairs each block holds, shape (blocks,).
    """
    pairs = int(counts.sum())
    mean = sums.sum(axis=0) / pairs
    spread = np.square(sums / counts[:, np.newaxis] - mean).sum(axis=1)
    variance = float((counts * spread).sum() / (len(counts) - 1))
    signal = max(float(mean @ mean) - variance / pairs, 0.0)
    halves = _split_half(sums, counts)
    low, high = np.percentile(halves, [2.5, 97.5])
    enough = max(2, int(np.ceil(variance / signal * ENOUGH**2 / (1 - ENOUGH**2)))) if signal else None
    return Reliability(
        float(halves.mean()), float(low), float(high),
        noise=float(np.sqrt(variance / pairs)),
        cosine=_expected(signal, variance, pairs),
        enough=enough,
        curve=_curve(signal, variance, max(pairs, enough or 0)),
    )  # fmt: skip


def _split_half(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cosines between the means of two random halves of the blocks, shape (halvings,), float64."""
    rng = np.random.default_rng(_SEED)
    half = np.tile(np.arange(len(counts)) < len(counts) // 2, (HALVINGS, 1))
    first = rng.permuted(half, axis=1).astype(np.float64)
    one, other = first @ sums, (1 - first) @ sums
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    products: NDArray[np.float64] = np.einsum("ij,ij->i", one, other)
    cosines: NDArray[np.float64] = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return cosines


def _expected(signal: float, variance: float, pairs: int) -> float:
    return float(np.sqrt(signal / (signal + variance / pairs))) if signal else 0.0


def _curve(signal: float, variance: float, pairs: int) -> tuple[tuple[int, float], ...]:
    """The steps up to the first that reaches so many pairs."""
    steps = [factor * 10**power for power in range(8) for factor in (1, 2, 5)]
    last = next(step for step in steps if step >= min(pairs, _LONGEST_CURVE))
    return tuple((step, _expected(signal, variance, step)) for step in steps if step <= last)


_DIGITS = 4
# What evidence of earlier versions lacks.
_NONE_LEFT_OUT: Mapping[str, Any] = {"identical": 0, "other_language": {}}


@dataclass(frozen=True)
class LanguageEvidence:
    """The evidence of one language.

    Attributes:
        pairs: pairs of which the vector is the mean.
        missing: rows without a text in this language, in the pivot's, or in both, or of which one was left out.
        norm: mean norm of the language's embeddings.
        pivot_norm: mean norm of the pivot's embeddings.
        reliability: how far the pairs agree.
        alignment: which pairs look misaligned.
        identical: texts that were left out because they are the pivot's.
        other_language: those that were left out because they are in another language, by that.
    """

    pairs: Count
    missing: Count
    norm: Length
    pivot_norm: Length
    reliability: Reliability
    alignment: Alignment
    identical: Count = 0
    other_language: Mapping[str, Count] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, figures to four digits."""
        return dict(_rounded(asdict(self)))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LanguageEvidence:
        """Read what ``to_json`` made.

        Raises:
            ValueError: it is something else.
        """
        found = msgspec.convert(document, cls)
        if found.alignment.count > found.alignment.checked or found.to_json() != {**_NONE_LEFT_OUT, **document}:
            raise ValueError("it differs from what was written")
        return found


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value


USE, CARE, NOT = "use", "use with care", "do not use"

# The shift can change a cosine by about this share; below, neither the vector nor its error matters.
NEGLIGIBLE = 0.01
# Of fewer pairs not even the spread can be known.
FEWEST = 10
# The cosine with the true vector below which the error is as long as the vector: shifting takes away
# one offset and puts another of the same length in its place.
BREAK_EVEN = float(np.sqrt(0.5))
# The same two bounds in terms of two halves of the pairs, whose vectors have twice the variance of the whole's:
# r = c² / (2 − c²).
HALVES_ENOUGH = ENOUGH**2 / (2 - ENOUGH**2)
HALVES_LEAST = BREAK_EVEN**2 / (2 - BREAK_EVEN**2)
# Between this and the break-even cosine, vectors fitted on other text still help, but less.
AGREES = 0.9
MISALIGNED = 0.05
# With use-m, ``Alignment.sharpness`` is .26 to .48 in languages of which it finds no translations, else .88 or more.
BLUNT = 0.7


@dataclass(frozen=True)
class VectorAssessment:
    """A language vector and what is known of it.

    Attributes:
        language: its tag.
        norm: its length.
        share: that as a share of the language's embeddings' mean norm; None where that is not known.
        evidence: of its making, or gathered anew; None where there is none.
        agreement: its cosine with the vector fitted on the text given; None where none was.
        verdict: ``use``, ``use with care`` or ``do not use``; None where there is nothing to judge by.
        reason: why, in words.
    """

    language: str
    norm: float
    share: float | None
    evidence: LanguageEvidence | None
    agreement: float | None
    verdict: str | None
    reason: str


def assess_vectors(vectors: LanguageVectors, fitted: LanguageVectors | None = None) -> list[VectorAssessment]:
    """Judge every language of a file.

    Args:
        vectors: the file.
        fitted: vectors fitted on other text towards the same pivot, whose evidence takes the place of the file's.

    Raises:
        ValueError: evidence of the file is not what ``Evidence.to_json`` makes.
    """
    evidence = (fitted or vectors).evidence
    judged = []
    for language, vector in sorted(vectors.vectors.items()):
        norm = float(np.linalg.norm(vector))
        known = LanguageEvidence.from_json(evidence[language]) if language in evidence else None
        agreement = None
        if known and fitted and language in fitted.vectors:
            other = fitted.vectors[language]
            agreement = float(vector @ other / max(norm * float(np.linalg.norm(other)), np.finfo(np.float32).tiny))
        share = norm / (known.norm or np.inf) if known else None
        verdict, reason = _verdict(share, known, agreement, vectors.encoder)
        judged.append(VectorAssessment(language, norm, share, known, agreement, verdict, reason))
    return judged


def _verdict(
    share: float | None, evidence: LanguageEvidence | None, agreement: float | None, encoder: str
) -> tuple[str | None, str]:
    if evidence is None or share is None:
        return None, "there is no evidence: give parallel text in this language with --pairs"
    if share < NEGLIGIBLE:
        return USE, f"it is only {share:.1%} as long as the embeddings and changes almost nothing"
    for word, reasons in ((NOT, _against(evidence, agreement, encoder)), (CARE, _doubts(evidence, agreement, encoder))):
        if reasons:
            return word, "; ".join(reasons)
    return USE, "two halves of the pairs agree on it"


def _against(evidence: LanguageEvidence, agreement: float | None, encoder: str) -> list[str]:
    """Why a vector should not be used."""
    halves = evidence.reliability.split_half
    reasons = []
    if evidence.pairs < FEWEST:
        reasons.append(f"{evidence.pairs} pairs are too few for a verdict; fit on more")
    elif halves < HALVES_LEAST:
        reasons.append(f"two halves of the pairs hardly agree ({halves:.2f}); {_more_pairs(evidence)}")
    if evidence.alignment.checked and evidence.alignment.sharpness < BLUNT:
        reasons.append(
            f"translations are no nearer than other texts: the encoder {encoder} cannot read this language, "
            "or the pairs are not translations"
        )
    if agreement is not None and agreement < BREAK_EVEN:
        reasons.append(f"the given text points elsewhere (cosine {agreement:.2f}); fit on similar text")
    return reasons


def _doubts(evidence: LanguageEvidence, agreement: float | None, encoder: str) -> list[str]:
    """Why a vector should be used with care."""
    found, pairs = evidence.reliability, evidence.alignment
    reasons = []
    if found.split_half < HALVES_ENOUGH:
        reasons.append(f"two halves of the pairs agree only a little ({found.split_half:.2f}); {_more_pairs(evidence)}")
    if pairs.count > MISALIGNED * pairs.checked:
        reasons.append(
            f"{pairs.count / pairs.checked:.0%} of the pairs look misaligned, which the shift tolerates, "
            "but the method affine and tuning do not"
        )
    if pairs.checked and not pairs.told and pairs.sharpness >= BLUNT:
        reasons.append(
            f"the encoder {encoder} hardly distinguishes texts of this language, or they are not translations: "
            "misaligned pairs cannot be detected"
        )
    if agreement is not None and agreement < AGREES:
        reasons.append(f"the given text points slightly elsewhere (cosine {agreement:.2f}); fit on similar text")
    return reasons


def _more_pairs(evidence: LanguageEvidence) -> str:
    enough = evidence.reliability.enough
    return "no number of such pairs would be enough" if enough is None else f"about {enough:,} pairs would be enough"

"""A verdict on every language vector of a file, from the evidence of its making."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from langshift.debias.fitting.evidence import Evidence
from langshift.debias.fitting.reliability import ENOUGH
from langshift.debias.vectors import LanguageVectors

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


class Verdict(NamedTuple):
    """What to do with a language vector.

    Attributes:
        word: ``use``, ``use with care`` or ``do not use``; None where there is nothing to judge by.
        reason: why, in words.
    """

    word: str | None
    reason: str


@dataclass(frozen=True)
class Judged:
    """A language vector and what is known of it.

    Attributes:
        language: its tag.
        norm: its length.
        evidence: of its making, or gathered anew; None where there is none.
        agreement: its cosine with the vector fitted on the text given; None where none was.
        verdict: what to do with it.
    """

    language: str
    norm: float
    evidence: Evidence | None
    agreement: float | None
    verdict: Verdict

    @property
    def share(self) -> float | None:
        """The vector's length as a share of the language's embeddings' mean norm; None where that is not known."""
        return _share(self.norm, self.evidence) if self.evidence else None


def judge(vectors: LanguageVectors, fitted: LanguageVectors | None = None) -> list[Judged]:
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
        known = Evidence.from_json(evidence[language]) if language in evidence else None
        agreement = None
        if known and fitted:
            other = fitted.vectors[language]
            agreement = float(vector @ other / max(norm * float(np.linalg.norm(other)), np.finfo(np.float32).tiny))
        judged.append(Judged(language, norm, known, agreement, _verdict(norm, known, agreement, vectors.encoder)))
    return judged


def _verdict(norm: float, evidence: Evidence | None, agreement: float | None, encoder: str) -> Verdict:
    if evidence is None:
        return Verdict(None, "there is no evidence on it: give parallel text in this language with --pairs")
    if (share := _share(norm, evidence)) < NEGLIGIBLE:
        return Verdict(USE, f"it is {share:.1%} as long as embeddings: nothing to gain, and nothing to lose")
    for word, reasons in ((NOT, _against(evidence, agreement)), (CARE, _doubts(evidence, agreement, encoder))):
        if reasons:
            return Verdict(word, "; ".join(reasons))
    return Verdict(USE, "halves of the pairs agree on it")


def _share(norm: float, evidence: Evidence) -> float:
    return norm / evidence.norm if evidence.norm else 0.0


def _against(evidence: Evidence, agreement: float | None) -> list[str]:
    """Why a vector should not be used."""
    halves = evidence.reliability.split_half
    reasons = []
    if evidence.pairs < FEWEST:
        reasons.append(f"{evidence.pairs} pairs are too few to judge by; fit on more")
    elif halves < HALVES_LEAST:
        reasons.append(f"halves of the pairs hardly agree ({halves:.2f}); {_more_pairs(evidence)}")
    if agreement is not None and agreement < BREAK_EVEN:
        reasons.append(f"the text given points elsewhere (cosine {agreement:.2f}); fit on text like it")
    return reasons


def _doubts(evidence: Evidence, agreement: float | None, encoder: str) -> list[str]:
    """Why a vector should be used with care."""
    found, pairs = evidence.reliability, evidence.alignment
    reasons = []
    if found.split_half < HALVES_ENOUGH:
        reasons.append(f"halves of the pairs agree a little ({found.split_half:.2f}); {_more_pairs(evidence)}")
    if pairs.count > MISALIGNED * pairs.checked:
        reasons.append(
            f"{pairs.count / pairs.checked:.0%} of the pairs look misaligned, which a mean over the same texts bears, "
            "but neither the method affine nor tuning does"
        )
    if pairs.checked and not pairs.told:
        reasons.append(
            f"the encoder {encoder} hardly tells texts of this language apart, or they are no translations: "
            "which pairs are misaligned cannot be told"
        )
    if agreement is not None and agreement < AGREES:
        reasons.append(f"the text given points a little elsewhere (cosine {agreement:.2f}); better fit on text like it")
    return reasons


def _more_pairs(evidence: Evidence) -> str:
    enough = evidence.reliability.enough
    return "no number of such pairs would be enough" if enough is None else f"about {enough:,} pairs would be enough"

"""How far a candidate is trusted to answer the query: the rule of ``anchored``, and what an index calibrates of it.

Words and vectors are evidence of different kinds. A document of the searcher's own language that holds rare words of
the query is likely to answer it, wherever its vector lies; one in another language can be found by its vector, and by
names and numbers. Exactly one content is thought to answer, so the candidates compete::

    u(d) = [own]   · (k · (BM25(d) / rare)^2 / n + prior)
         + [other] · 1.43 · ln(1 + BM25(d))
         - 1.95 · (max cos - cos(q, z̃_d)) / spread
    p(d) = exp u(d) / Σ exp u

``rare`` is what one word that no document of the language holds would be worth, ``ln(1 + (N + .5) / .5)`` for ``N``
documents, so that ``BM25 / rare`` counts how many rare words were found, in any corpus; ``n`` is how many words the
query has. ``spread`` is the standard deviation of the cosine of documents that have nothing to do with each other:
models differ in it by a factor of ten. The query is moved towards what is trusted, all vectors at length 1::

    q' = q̂ + Σ p(d)^1.5 · ẑ_d

The weights of ``m`` candidates add up to 1 where one alone is trusted, and to ``1 / √m`` where all are trusted alike:
the less is known, the less the query is moved. Where the candidates are at right angles to the query or nearer, it is
moved by 45° at most.

The constants 1.95, 1.43, 1.5 and the shares below were fitted on XQuAD's even articles (questions with and without an
answer in their language alike often), and hold on its odd ones, on its sentences, on NTREX and on vectors of other
scale. ``k``, ``spread`` and the priors are the index's own (``langshift anchors calibrate``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_CLOSENESS: Final = 1.95
_OTHER_WORDS: Final = 1.43
_SHARPNESS: Final = 1.5

# In units of the spread: what the searcher's language is given where all trust is in it, and the words of other
# languages where they match best.
OWN_BONUS: Final = 0.7
WORDS_BONUS: Final = 0.7

USUAL_WORDS: Final = 13.0
USUAL_PRIOR: Final = -0.5


@dataclass(frozen=True)
class AnchorModel:
    """What of the rule is an index's own; kept in its mapping under ``_meta.langshift_anchors``.

    Attributes:
        spread: standard deviation of the cosine of unrelated documents.
        words: ``k``, what words of the searcher's own language are worth.
        priors: language -> log-odds that what is sought is there in that language, cautiously, as far as the
            index's translation groups tell; a language without one has ``USUAL_PRIOR``.
        calibrated: whether these were measured on questions of the index, and not only the spread.
    """

    spread: float
    words: float = USUAL_WORDS
    priors: Mapping[str, float] = field(default_factory=dict)
    calibrated: bool = False

    def prior(self, language: str) -> float:
        """The log-odds that what is sought is there in a language."""
        return self.priors.get(language, USUAL_PRIOR)

    def to_dict(self) -> dict[str, Any]:
        """As it is kept."""
        return {"spread": self.spread, "words": self.words, "priors": dict(self.priors)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AnchorModel:
        """What ``to_dict`` gave.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: it is of another form, or holds what cannot be reckoned
                with.
        """
        priors = {language: float(prior) for language, prior in values["priors"].items()}
        trust = cls(float(values["spread"]), float(values["words"]), priors, calibrated=True)
        if not all(map(math.isfinite, (trust.spread, trust.words, *priors.values()))) or trust.spread <= 0:
            raise ValueError("a figure is not finite, or the spread is not above 0")
        return trust


class AnchorEvidence(NamedTuple):
    """A document that may answer the query.

    Attributes:
        own: whether it is in the searcher's language.
        words: its BM25 score; 0 where no words match, or where others were found by them instead.
        cosine: of the query's vector and its own.
    """

    own: bool
    words: float
    cosine: float


def rarest(documents: float) -> float:
    """The weight ``idf`` of a word that none of the documents holds: ``ln(1 + (N + .5) / .5)``."""
    return math.log(1 + (documents + 0.5) / 0.5)


def anchor_probabilities(
    candidates: Sequence[AnchorEvidence], trust: AnchorModel, language: str, *, documents: float, words: int
) -> NDArray[np.float64]:
    """The probability of each candidate that it answers the query, shape (candidates,), summing to 1.

    Args:
        candidates: at least one.
        trust: the index's own part of the rule.
        language: the searcher's language.
        documents: ``N``, how many documents there are in that language, on a shard if there are several.
        words: ``n``, how many words the query has, at least 1.
    """
    own = np.array([candidate.own for candidate in candidates])
    scores = np.array([candidate.words for candidate in candidates])
    cosines = np.array([candidate.cosine for candidate in candidates])
    found = trust.words * (scores / rarest(documents)) ** 2 / words + trust.prior(language)
    utility = (
        np.where(own, found, _OTHER_WORDS * np.log1p(scores)) - _CLOSENESS * (cosines.max() - cosines) / trust.spread
    )
    odds = np.exp(utility - utility.max())
    probabilities: NDArray[np.float64] = odds / odds.sum()
    return probabilities


def weights(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each candidate's unit vector is multiplied with before it is added to the query's: ``p^1.5``."""
    weighted: NDArray[np.float64] = probabilities**_SHARPNESS
    return weighted

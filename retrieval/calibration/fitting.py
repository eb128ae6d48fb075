"""How much words of the searcher's language are worth in an index, fitted to questions whose answer is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import binomtest

from langshift.retrieval.search_gathering import Gathered
from langshift.retrieval.trust import Trust, trusted

#: Between these ``k`` lies; in indices whose answers were judged by people it came out from 8 to 16.
LEAST_WORTH: Final = 6.0
MOST_WORTH: Final = 20.0
_LEAST_PROBABILITY: Final = 1e-4
_BEYOND_CHANCE: Final = 0.05


class Evidence(NamedTuple):
    """What a search gathers for one question.

    Attributes:
        language: of the question.
        answers: ids of what the question was cut out of, and of its copies.
        there: what is gathered as the index is.
        hidden: what is gathered where the answers are not there in the question's language.
    """

    language: str
    answers: Collection[str]
    there: Gathered
    hidden: Gathered

    def found(self, trust: Trust) -> float:
        """How far the answers are trusted where they are there."""
        return self._trusted(self.there, trust, [name in self.answers for name in self.there.ids])

    def trusts_most(self, trust: Trust) -> bool:
        """Whether nothing else is trusted more than one of the answers, where they are there."""
        if not self.there.ids:
            return False
        return self.there.ids[int(np.argmax(self._probabilities(self.there, trust)))] in self.answers

    def deceived(self, trust: Trust) -> float:
        """How far documents in the question's language are trusted where none of them can be right."""
        return self._trusted(self.hidden, trust, [one.own for one in self.hidden.candidates])

    def _trusted(self, gathered: Gathered, trust: Trust, which: Sequence[bool]) -> float:
        if not gathered.ids:
            return 0.0
        return float(self._probabilities(gathered, trust)[np.array(which)].sum())

    def _probabilities(self, gathered: Gathered, trust: Trust) -> NDArray[np.float64]:
        return trusted(gathered.candidates, trust, self.language, documents=gathered.documents, words=gathered.words)


def at_even_odds(trust: Trust) -> Trust:
    """The trust where answers are hidden from the question's language as often as not: no prior above 0.

    The prior of an index that has everything in every language speaks against what hiding makes of it.
    """
    return replace(trust, priors={language: min(prior, 0.0) for language, prior in trust.priors.items()})


def fitted_worth(evidence: Sequence[Evidence], spread: float, priors: Mapping[str, float]) -> float:
    """The ``k`` of the rule of trust by maximum likelihood, from ``LEAST_WORTH`` to ``MOST_WORTH``.

    ``-mean (w ln p(answers | there) + (1 - w) ln (1 - Σ p(own language) | hidden))``, where ``p`` is at least 0.0001
    and ``w`` is how probable the prior of the question's language makes it that the answer is there.

    Args:
        evidence: of all questions.
        spread: of the index's vectors.
        priors: language -> log-odds.
    """
    usual = Trust(spread, priors=priors)
    there = np.array([expit(usual.prior(one.language)) for one in evidence])

    def loss(logarithm: float) -> float:
        trust = replace(usual, words=float(np.exp(logarithm)))
        found = np.array([one.found(trust) for one in evidence])
        spared = np.array([1 - one.deceived(trust) for one in evidence])
        return -float(np.mean(there * _logarithms(found) + (1 - there) * _logarithms(spared)))

    bounds = (np.log(LEAST_WORTH), np.log(MOST_WORTH))
    fit = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return round(float(np.exp(fit.x)), 2)


def _logarithms(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    logarithms: NDArray[np.float64] = np.log(np.maximum(probabilities, _LEAST_PROBABILITY))
    return logarithms


def chance_of_loss(before: Sequence[bool], after: Sequence[bool]) -> float:
    """How likely chance alone makes ``after`` as much worse than ``before`` as it is, by the sign test."""
    worse = sum(one and not other for one, other in zip(before, after, strict=True))
    better = sum(other and not one for one, other in zip(before, after, strict=True))
    return float(binomtest(worse, worse + better, alternative="greater").pvalue) if worse + better else 1.0


def loses(before: Sequence[bool], after: Sequence[bool]) -> bool:
    """Whether ``after`` is right more rarely than ``before``, beyond chance."""
    return chance_of_loss(before, after) < _BEYOND_CHANCE

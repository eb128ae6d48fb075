"""How many judged queries a preference takes to be told from chance, and what those judged so far say."""

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from langshift.evaluate.compare.significance import LEVEL, TestResult, paired_tests
from langshift.evaluate.datasets.dataset import Clusters
from langshift.evaluate.judging.judgements import Preference

POWER: Final = 0.8
#: Shares of the decided queries in which one run is preferred, for which the needed number is named beforehand.
RATES: Final = (0.6, 0.7, 0.8)


class Tally(NamedTuple):
    """How often each judgement was given.

    Attributes:
        first: queries for which the first run's list is preferred.
        second: those for which the second's is.
        both: those for which both lists are equally good.
        neither: those for which neither is any good.
    """

    first: int
    second: int
    both: int
    neither: int

    @classmethod
    def of(cls, preferences: Iterable[Preference]) -> "Tally":
        """Count judgements."""
        given = list(preferences)
        return cls(*(given.count(one) for one in ("first", "second", "both", "neither")))

    @property
    def judged(self) -> int:
        """How many queries are judged."""
        return sum(self)

    @property
    def decided(self) -> int:
        """How many of them prefer a list."""
        return self.first + self.second

    @property
    def rate(self) -> float | None:
        """The share of the decided queries that prefer the run that is ahead; None where none is decided."""
        return max(self.first, self.second) / self.decided if self.decided else None

    @property
    def decided_share(self) -> float:
        """The share of queries that are decided, (decided + 1) / (judged + 2): a half before the first is judged."""
        return (self.decided + 1) / (self.judged + 2)


def needed(rate: float, decided_share: float = 1.0) -> int | None:
    """The number of judged queries after which a preference is significant at 5 % with a power of 80 %.

    The two-sided sign test of the decided queries, by the normal approximation with continuity correction (Fleiss,
    Levin and Paik, *Statistical Methods for Rates and Proportions*, 2003, for one proportion against 1/2)::

        m = n/4 · (1 + √(1 + 2 / (n·|p − ½|)))²   with   n = (z₀.₉₇₅ · ½ + z₀.₈ · √(p(1 − p)))² / (p − ½)²

    decided queries, and m / ψ judged ones. Each query counts as one observation.

    Args:
        rate: p, the share of the decided queries in which one run is preferred, 0 to 1.
        decided_share: ψ, the share of the judged queries that prefer a list, above 0.

    Returns:
        The number, rounded up; None where p is one half, for which no number is enough.
    """
    from scipy import stats

    distance = abs(rate - 0.5)
    if not distance:
        return None
    deviations = stats.norm.ppf(1 - LEVEL / 2) * 0.5 + stats.norm.ppf(POWER) * math.sqrt(rate * (1 - rate))
    plain = float(deviations / distance) ** 2
    corrected = plain / 4 * (1 + math.sqrt(1 + 2 / (plain * distance))) ** 2
    return math.ceil(corrected / decided_share)


def preference_test(preferences: Mapping[str, Preference], clusters: Clusters) -> TestResult | None:
    """Test whether one run is preferred, by the tests that runs are compared with; None where nothing is judged.

    A query counts 1 where the second run is preferred, -1 where the first is, else 0. Where each query is a cluster of
    its own, the randomisation test of these is the sign test of the decided queries.

    Args:
        preferences: query id -> judgement.
        clusters: which queries belong together.
    """
    values = {"second": 1.0, "first": -1.0}
    differences = {query: values.get(preferred, 0.0) for query, preferred in preferences.items()}
    return paired_tests({"preference": differences}, clusters.of).get("preference")

"""What a calibration of anchored search comes to, as it is kept and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langshift.retrieval.trust import Trust


class OfLanguage(NamedTuple):
    """What the questions of one language came to.

    Attributes:
        language: primary tag.
        questions: how many.
        found: the share whose own document is trusted most.
        deceived: the mean trust in documents of the language where none of them can be right; the prior counts as 0
            at most there.
        prior: log-odds that what is sought is there in this language.
    """

    language: str
    questions: int
    found: float
    deceived: float
    prior: float


class FirstHits(NamedTuple):
    """How often the first hit is right.

    Attributes:
        questions: how many were asked.
        dense: share of those that a search by vectors alone answers.
        anchored: share of those that an anchored search answers.
        chance: the probability that chance alone makes the latter fall as far below the former.
    """

    questions: int
    dense: float
    anchored: float
    chance: float


@dataclass(frozen=True)
class Calibration:
    """A calibration, and what it was measured by.

    Attributes:
        trust: what of the rule is the index's own.
        languages: by language.
        there: first hits as the index is: the documents that the questions were cut out of.
        hidden: first hits with these hidden: their translations; None where there are none.
        fitted: ``k`` as it was fitted, where that was lowered because something would have been lost; else None.
        lost: whether anchored search loses against dense even with the lowest ``k``.
    """

    trust: Trust
    languages: Sequence[OfLanguage]
    there: FirstHits
    hidden: FirstHits | None
    fitted: float | None = None
    lost: bool = False

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(one.questions for one in self.languages)

    @property
    def found(self) -> float:
        """The share of all questions whose own document is trusted most."""
        return sum(one.found * one.questions for one in self.languages) / self.questions

    @property
    def deceived(self) -> float:
        """The mean trust in documents of the question's language where none of them can be right."""
        return sum(one.deceived * one.questions for one in self.languages) / self.questions

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            **self.trust.to_dict(),
            "fitted_words": self.trust.words if self.fitted is None else self.fitted,
            "lost": self.lost,
            "questions": self.questions,
            "found": self.found,
            "deceived": self.deceived,
            "languages": [one._asdict() for one in self.languages],
            "first_hits": {
                "there": self.there._asdict(),
                "hidden": None if self.hidden is None else self.hidden._asdict(),
            },
        }

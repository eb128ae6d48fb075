"""What a side of the search page found, or why it found nothing."""

from __future__ import annotations

from typing import NamedTuple

from opensearchpy.exceptions import OpenSearchException

from langshift.errors import LangshiftError, UnavailableError
from langshift.languages import UNDETERMINED
from langshift.retrieval.hit import Hit
from langshift.retrieval.requests import Request
from langshift.web.context import Console
from langshift.web.search.sides import Choice
from langshift.web.search.state import Side


class Outcome(NamedTuple):
    """What a side found.

    Attributes:
        choice: what was searched.
        side: how.
        hits: best first, 100 at most.
        language: of the query, ``und`` where unknown.
        languages: those of the index's documents, most frequent first.
        notes: sentences for a person.
        requests: what a search in this setting sends, or begins with.
        fixed: why alpha cannot be moved here; None where it can.
        trouble: why nothing was found; None where the search went well.
    """

    choice: Choice
    side: Side
    hits: tuple[Hit, ...] = ()
    language: str = UNDETERMINED
    languages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    requests: tuple[Request, ...] = ()
    fixed: str | None = None
    trouble: LangshiftError | None = None

    @property
    def moved(self) -> bool:
        """Whether it was looked at by another alpha than that it is indexed with."""
        return self.side.alpha is not None and self.fixed is None


def told_of_one_side(console: Console, error: LangshiftError | OpenSearchException) -> LangshiftError:
    """Why one index cannot be searched, as an error with a sentence.

    Raises:
        UnavailableError: none can be for now.
    """
    told = console.failure(error)
    if isinstance(told, UnavailableError):
        raise told
    return told

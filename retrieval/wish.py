"""What a user of the library asks for, as keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from langshift.retrieval.given import require_types
from langshift.retrieval.settings import setting_of
from langshift.retrieval.wanted import NO_FILTERS, Filters, Fusion, Mode, Setting

if TYPE_CHECKING:
    from langshift.retrieval.exchange import Exchange
    from langshift.retrieval.result import SearchResult
    from langshift.retrieval.search import Searcher


class SearchArguments(TypedDict, total=False):
    """The keyword arguments of a search; all may be left out.

    Attributes:
        mode: ``dense`` (the usual one), ``lexical``, ``hybrid``, ``balanced`` or ``anchored``.
        prefer_language: what documents in the query's language are given more, in units of cosine, 0 to 2.
        spread: what documents in other languages are given more; excludes ``prefer_language``.
        fusion: how ``hybrid`` puts vectors and words together, ``min-max`` (usual) or ``rrf``.
        lexical_weight: the share of the words in ``hybrid``, 0 to 1; .3 is usual.
        one_per_group: whether of documents that are translations of each other one is shown, the one in the query's
            language where there is one, with the others inside it.
        language: of the query, a BCP 47 tag; detected if None.
        size: how many hits, 1 to 1,000; 10 is usual.
        filters: field of the index -> values, any of which a hit must have; ``language`` is by language.
        explain: whether to tell what the shift did to each hit, which costs one request more.
    """

    mode: Mode
    prefer_language: float
    spread: float
    fusion: Fusion
    lexical_weight: float
    one_per_group: bool
    language: str | None
    size: int
    filters: Mapping[str, Sequence[str]]
    explain: bool


class Wish(NamedTuple):
    """The arguments, checked as far as they can be without an index."""

    setting: Setting
    language: str | None
    size: int
    filters: Filters
    explain: bool

    def answering(self, searcher: Searcher, words: str) -> Exchange[SearchResult]:
        """What is left to carry out once the query is encoded; see ``Searcher.answering``."""
        return searcher.answering(
            words,
            self.setting,
            language=self.language,
            size=self.size,
            filters=self.filters,
            explain=self.explain,
        )


def wish(
    mode: Mode = "dense",
    prefer_language: float | None = None,
    spread: float | None = None,
    fusion: Fusion | None = None,
    lexical_weight: float | None = None,
    one_per_group: bool = False,
    language: str | None = None,
    size: int = 10,
    filters: Mapping[str, Sequence[str]] = NO_FILTERS,
    explain: bool = False,
) -> Wish:
    """Check the arguments of a search.

    Raises:
        UsageError: there is no such mode or fusion, a number is none or out of range, something is of a wrong type, or
            two things exclude each other.
    """
    require_types(one_per_group=one_per_group, explain=explain, language=language, filters=filters)
    setting = setting_of(mode, prefer_language, spread, fusion, lexical_weight, one_per_group)
    return Wish(setting, language, size, filters, explain)

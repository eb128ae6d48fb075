"""What a mode is: a plan that searches, a plan that scores, and what others need to know of it."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from langshift.retrieval.dsl import Clauses
from langshift.retrieval.hits import RankedHits, Retrieved, ScoredDoc, ScoringContext
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import SearchRequest


class SearchMode(NamedTuple):
    """One mode; each is declared in a module of its own.

    Attributes:
        plan: the search of a request, whatever its documents are: in an index of chunks it may find too few, see
            ``RankedHits.missing``.
        score: the entries that match clauses, with the scores that a search gives them, without those that match
            nothing; of a request, what the search says of its scores and of the chunks that it retrieved, the clauses,
            and how many entries may come.
        known: how a search's scores were put together, where it could not say that itself; None where it always can.
        rank: the hits out of what the legs ``legs`` retrieved, each for ``depth`` documents, of a request without
            groups; None in a mode that goes on from what it found itself.
        legs: the legs that a request is ranked by.
        by_cosine: whether scores are cosines, of whatever vector, and what is added to them.
        by_vector: whether, without a preference, what is near to the question's vector has that nearness as its score.
        by_nearness: whether what is found of a language are the nearest of that language.
        by_counts: whether scores go by how many documents the index has.
        few: whether it ranks a few documents alone, however deep it looks.
        wide: whether each shard may rank twice as many as it looks at.
        sorts: whether the server can sort all that match.
        by_plugin: whether our plugin carries out a request alone, also of chunks.
    """

    plan: Callable[[SearchRequest], SearchPlan[RankedHits]]
    score: Callable[[SearchRequest, RankedHits, Clauses, int], SearchPlan[list[ScoredDoc]]]
    known: Callable[[SearchRequest, ScoringContext], SearchPlan[ScoringContext]] | None = None
    rank: Callable[[Retrieved, SearchRequest], RankedHits] | None = None
    legs: Callable[[SearchRequest], Collection[str]] = lambda _: ("dense",)
    by_cosine: bool = False
    by_vector: bool = False
    by_nearness: bool = False
    by_counts: bool = False
    few: bool = False
    wide: bool = False
    sorts: bool = False
    by_plugin: Callable[[SearchRequest], bool] = lambda _: False

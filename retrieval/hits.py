"""What a search finds: the cluster's answers, read and ranked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import CHUNK, PLACE, USUAL, ChunkPlace, FieldNames, value_at
from langshift.retrieval.plans import Response
from langshift.retrieval.question import SearchRequest


@dataclass(frozen=True)
class Leg:
    """What one leg of a search said of a document.

    Attributes:
        score: as the leg gave it: ``(1 + cos) / 2`` of vectors, BM25 of words, ``Σ q_t · d_t`` of tokens.
        rank: among what the leg retrieved, counted from 1; of ``anchored`` among the hits. None where the leg did not
            rank the document: where it was looked at for the language preference, or put with the bonus in one score.
    """

    score: float
    rank: int | None


@dataclass(frozen=True)
class Anchor:
    """A document that the query's vector was moved towards.

    Attributes:
        id: its ``_id``.
        trust: how probable it is that it answers the query, 0 to 1.
        weight: what its unit vector was multiplied with before it was added to the query's; 0 where it was not used.
        evidence: the figures that trust was computed from, by name.
    """

    id: str
    trust: float
    weight: float
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoringContext:
    """All that is needed, beside question and setting, to score one more document as the search would have.

    Attributes:
        bonus: what a document in the searcher's language is given more than others, on the scale of the scores. Below
            0 its amount is added to the scores of the others.
        ranges: leg -> lowest and highest score that it retrieved, where scores were normalised by these.
        anchors: what the query was moved by.
        moved: the vector that it was moved to, of unit length, shape (dimension,), float32; None where it was not.
        run_scores: document -> score, where it cannot be told from the document alone: by RRF, and where shards
            retrieved for themselves.
        depth: how many documents each leg was asked for; 0 where that has no part in the scores.
        given: document -> what it alone was given, in ``anchored`` for words in other languages.
        reranked: document -> score, of those that a reranker was shown.
        lowest: the reranker's lowest score, below which all others are; None where nothing was reranked.
        mode_bonus: the bonus of the mode that found what was reranked.
    """

    bonus: float = 0.0
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    anchors: tuple[Anchor, ...] = ()
    moved: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    run_scores: Mapping[str, float] = field(default_factory=dict)
    depth: int = 0
    given: Mapping[str, float] = field(default_factory=dict)
    reranked: Mapping[str, float] = field(default_factory=dict)
    lowest: float | None = None
    mode_bonus: float = 0.0


class ScoredDoc(NamedTuple):
    """One document found; in an index of chunks by one of its chunks, the best.

    Attributes:
        id: the ``_id`` of the entry: of the document, or of the chunk.
        score: by which it is ranked.
        language: as it stands in the index, or ``und``.
        source: the fields that were asked for; empty where none were.
        legs: leg -> what it said; a leg that did not retrieve the document is absent.
        others: with ``one_per_group`` the other documents of its translation group, best first; one without a
            score matched nothing.
        parent: the id of the document that the chunk is of; None where the entry is a whole document.
        place: where in its document the chunk stands; None where that is not known.
        passages: further chunks of the document, best first, where they were asked for.
    """

    id: str
    score: float | None
    language: str
    source: Mapping[str, Any] = {}
    legs: Mapping[str, Leg] = {}
    others: tuple[ScoredDoc, ...] = ()
    parent: str | None = None
    place: ChunkPlace | None = None
    passages: tuple[ScoredDoc, ...] = ()

    @property
    def document(self) -> str:
        """The id of the document."""
        return self.id if self.parent is None else self.parent


class RankedHits(NamedTuple):
    """The outcome of a search.

    Attributes:
        hits: best first, as many as were asked for at most.
        how: how the scores were put together.
        notes: sentences that a person should be told with the hits.
        missing: in an index of chunks, how many documents or groups were wanted for each that was found, where there
            may be more of them below the chunks that were looked at; else 0.
        retrieved: chunk -> score, where ``how.run_scores`` has that of its document.
        depth: how many hits the ranking has that these are cut from; 0 where they are all of them.
        nearest: the cosine of the query's vector and the nearest document, of the hits where these are by nearness;
            None in modes that do not tell it.
    """

    hits: tuple[ScoredDoc, ...]
    how: ScoringContext = ScoringContext()
    notes: tuple[str, ...] = ()
    missing: float = 0.0
    retrieved: Mapping[str, float] = {}
    depth: int = 0
    nearest: float | None = None


class Pool(NamedTuple):
    """What one leg retrieved.

    Attributes:
        candidates: best first, those that only the favoured documents' search brought at the end.
        unfavoured: how many the others are.
    """

    candidates: Sequence[ScoredDoc]
    unfavoured: int

    @property
    def scores(self) -> list[float]:
        """Of those that the leg retrieved among all documents, best first."""
        return [candidate.score or 0.0 for candidate in self.candidates[: self.unfavoured]]


def candidates(response: Response, leg: str, fields: FieldNames = USUAL) -> list[ScoredDoc]:
    """The hits of a search by one leg, best first."""
    return [
        _candidate(hit, fields, {leg: Leg(float(hit["_score"]), rank)})
        for rank, hit in enumerate(response["hits"]["hits"], start=1)
    ]


def one_per_document(found: Iterable[ScoredDoc], fields: FieldNames | None = None) -> list[ScoredDoc]:
    """The first of each document, in the order that they come in; in an index of whole documents all.

    Args:
        found: entries.
        fields: the names of the index's fields, where the first of each translation group is wanted.
    """
    first: dict[tuple[str, str], ScoredDoc] = {}
    for one in found:
        first.setdefault(("document", one.document) if fields is None else key_of(one, fields), one)
    return list(first.values())


def key_of(one: ScoredDoc, fields: FieldNames) -> tuple[str, str]:
    """What kind of thing an entry stands for, and which: its translation ``group``, else its ``document``."""
    group = first_value(value_in(one.source, fields.group))
    return ("document", one.document) if group is None else ("group", group)


def without_legs(response: Response, fields: FieldNames = USUAL) -> list[ScoredDoc]:
    """The hits of a search of which nobody knows what its legs said, best first."""
    return [_candidate(hit, fields, {}) for hit in response["hits"]["hits"]]


#: The field in which ``dsl.body_with_vectors`` brings a vector, packed.
VECTOR: Final = "vector"
#: The name under which an answer tells how an analyzer parts the words.
COUNTED: Final = "words"


def stored_vectors(*responses: Response) -> dict[str, NDArray[np.float32]]:
    """Document -> its vector as it is searched, shape (dimension,); documents without a vector are left out."""
    found = {
        hit["_id"]: hit.get("fields", {}).get(VECTOR, [None])[0] for one in responses for hit in one["hits"]["hits"]
    }
    packed = {name: one for name, one in found.items() if one is not None}
    if not packed:
        return {}
    together = np.array(list(packed.values()), "<i8")
    vectors = together[:, 1:].copy().view("<f4")[:, : together[0, 0]]
    return dict(zip(packed, vectors, strict=True))


def count_words(response: Response) -> int:
    """How many different words the query has, from the answer to a search with ``counting``; 1 where it has none."""
    return max(1, len({part["text"] for part in response.get("suggest", {}).get(COUNTED, [])}))


def sources(responses: Iterable[Response]) -> dict[str, dict[str, Any]]:
    """Document -> the fields that it brought."""
    return {hit["_id"]: hit.get("_source", {}) for response in responses for hit in response["hits"]["hits"]}


#: Leg and part: ``dense``, ``lexical`` or ``sparse``; ``all`` or ``shard N``, and ``own`` or ``others`` by language.
Part = tuple[str, str]
#: What each leg retrieved of each part, best first.
Retrieved = Mapping[Part, Sequence[ScoredDoc]]


def leg_pool(legs: Retrieved, leg: str, favoured: str | None, depth: int | None = None) -> Pool:
    """What one leg retrieved, of all shards, ranked.

    Args:
        legs: what each leg retrieved of each part.
        leg: which.
        favoured: the part that is favoured; None where none is.
        depth: how many are looked at, of all and of the favoured; None for all that were retrieved.
    """
    shards = (found for (name, part), found in legs.items() if name == leg and part not in {"own", "others"})
    found = best_first(chain(*shards))[:depth]
    known = {candidate.id for candidate in found}
    more = [one for one in legs.get((leg, favoured or ""), ())[:depth] if one.id not in known]
    placed = [
        # What only the search among the favoured documents brought has no rank among all.
        one._replace(legs={leg: Leg(one.legs[leg].score, place + 1 if place < len(found) else None)})
        for place, one in enumerate([*found, *best_first(more)])
    ]
    return Pool(placed, len(found))


def with_bonus(found: Iterable[ScoredDoc], bonus: float, request: SearchRequest) -> list[ScoredDoc]:
    """The documents in their order, those that the preference favours with a bonus in their scores."""
    own, tag = request.favoured == "own", request.question.language
    if request.favoured is None or not bonus:
        return list(found)
    return [one._replace(score=(one.score or 0.0) + bonus) if (one.language == tag) == own else one for one in found]


def best_first(found: Iterable[ScoredDoc]) -> list[ScoredDoc]:
    """The documents in order of score, those without one last; of equals the first stays first, as on the server."""
    return sorted(found, key=lambda candidate: math.inf if candidate.score is None else -candidate.score)


def by_score(one: ScoredDoc) -> tuple[float, float]:
    """What entries are sorted by: the score, and of equal ones how near they are."""
    return -(one.score or 0.0), -one.legs["dense"].score if "dense" in one.legs else 0.0


def best_hits(found: Iterable[ScoredDoc], request: SearchRequest) -> list[ScoredDoc]:
    """The best of the documents that a search is to find, or of the groups, of entries in their order."""
    return one_per_document(found, request.fields if request.setting.one_per_group else None)[: request.size]


def missing(searches: Iterable[tuple[Iterable[ScoredDoc], bool]], request: SearchRequest) -> float:
    """How many documents or groups were wanted for each that was found, by the search that found fewest.

    Args:
        searches: what each found, and whether it may have left something out.
        request: how many each is to find.
    """
    few = [len(best_hits(found, request)) for found, cut in searches if cut]
    return request.size / max(1, min(few)) if few and min(few) < request.size else 0.0


def merged(responses: Sequence[Response], request: SearchRequest, leg: str = "") -> tuple[list[ScoredDoc], float]:
    """The best of what searches by vector found, and how many more were wanted, see ``RankedHits.missing``.

    Args:
        responses: the answers.
        request: how many are wanted.
        leg: the one that the scores are of; empty where nobody knows what the legs said.
    """
    fields = request.fields
    found = [candidates(one, leg, fields) if leg else without_legs(one, fields) for one in responses]
    lacks = missing(zip(found, (filled(one, request) for one in responses), strict=True), request)
    return best_hits(found[0] if len(found) == 1 else best_first(chain(*found)), request), lacks


def filled(response: Response, request: SearchRequest) -> bool:
    """Whether a search by vector found as many as it was to look at, so that there may be more."""
    return request.fields.parent is not None and bool(response["hits"]["total"]["value"] >= request.depth)


def union(pools: Iterable[Sequence[ScoredDoc]]) -> dict[str, ScoredDoc]:
    """Document -> candidate with all of its legs."""
    found: dict[str, ScoredDoc] = {}
    for candidate in (one for members in pools for one in members):
        legs = found[candidate.id].legs if candidate.id in found else {}
        found[candidate.id] = candidate._replace(legs={**legs, **candidate.legs})
    return found


def _candidate(hit: Mapping[str, Any], fields: FieldNames, legs: Mapping[str, Leg]) -> ScoredDoc:
    # What was asked for beside the document is not in that.
    source, beside = hit.get("_source", {}), hit.get("fields", {})
    parent = None if fields.parent is None else beside.get(fields.document_key) or value_in(source, fields.parent)
    return ScoredDoc(
        id=hit["_id"],
        score=float(hit["_score"]),
        language=first_value(beside.get(fields.language) or value_in(source, fields.language)) or UNDETERMINED,
        source=source,
        legs=legs,
        parent=first_value(parent),
        place=None if fields.chunking is None else _place(source.get(CHUNK), beside),
    )


def value_in(source: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - any JSON
    """What a document holds at a field: most have a name without dots, below which there is nothing to look for."""
    return source.get(path) if path in source or "." not in path else value_at(source, path)


def _place(chunk: Any, beside: Mapping[str, Any]) -> ChunkPlace | None:  # noqa: ANN401 - any JSON
    """The place of a chunk, from its field or from the values that were asked for; None where it is no place."""
    if not isinstance(chunk, Mapping):
        chunk = {name: first_value(beside.get(f"{CHUNK}.{name}")) for name in PLACE}
    try:
        ordinal, start, end, count = (int(chunk[name]) for name in ("ordinal", "start", "end", "count"))
    except (KeyError, TypeError, ValueError):
        return None
    return ChunkPlace(ordinal, start, end, count, chunk.get("field"))


def first_value(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    """The first value of a keyword field; None where it has none."""
    if isinstance(value, list):
        value = value[0] if value else None
    return None if value is None else str(value)

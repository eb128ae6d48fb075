"""What a search finds: candidates as the cluster gives them, and hits as people get them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import CHUNK, PLACE, USUAL, ChunkPlace, FieldNames, value_at
from langshift.retrieval.facets import Facet
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.settings import ModeOrigin, SearchRequest
from langshift.retrieval.snippets import Snippet, own_source
from langshift.retrieval.steps import HttpRequest, Response

#: What a sort is of.
SortScope = Literal["all", "found"]


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
        took: milliseconds that the server says it took, all steps together.
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
    took: float = 0.0
    notes: tuple[str, ...] = ()
    missing: float = 0.0
    retrieved: Mapping[str, float] = {}
    depth: int = 0
    nearest: float | None = None


@dataclass(frozen=True)
class ShiftEffect:
    """What the shift of the index did to a hit's nearness to the query.

    Attributes:
        language: tag of the language vector that the document's vector lost; None where it lost none.
        alpha: what that was multiplied with before it was subtracted; 0 where nothing was.
        gamma: how much of what all queries have in common the document's vector lost.
        own: how much of the preference vector of its language was added to it.
        similarity_before: cosine of the query's and the document's vector as the encoder made them; None where that
            cannot be known.
        similarity_after: cosine of the query's vector and the document's as it is in the index.
        rank_before: by the former among the documents compared, counted from 1; None where it cannot be known.
        rank_after: by the latter.
    """

    language: str | None
    alpha: float
    gamma: float
    own: float
    similarity_before: float | None
    similarity_after: float
    rank_before: int | None
    rank_after: int


@dataclass(frozen=True)
class Passage:
    """A part of a document, in an index of chunks.

    Attributes:
        id: the ``_id`` of the chunk.
        score: what the search gives it; None where it matches nothing.
        language: of the chunk: primary tag, or ``und``.
        text: of the chunk alone.
        place: where in its document it stands; None where the index does not tell.
    """

    id: str
    score: float | None
    language: str
    text: str
    place: ChunkPlace | None = None

    @property
    def where(self) -> str:
        """``passage 3 of 12, characters 1,204-1,990``; the ``_id`` where the place is not known."""
        if self.place is None:
            return self.id
        place = self.place
        words = f"passage {place.ordinal + 1:,} of {place.count:,}, characters {place.start:,}-{place.end:,}"
        return words if place.field is None else f"{words} of {place.field}"


@dataclass(frozen=True)
class Other:
    """Another document of a hit's translation group.

    Attributes:
        id: the document's id.
        score: what the search would have given it; None where it matches nothing.
        language: primary tag, or ``und``; of the passage where there is one, as is the text.
        title: may be empty.
        text: may be empty.
        source: the document's own fields, see ``Hit``.
        passage: the best of the document, in an index of chunks; None where entries are whole documents.
    """

    id: str
    score: float | None
    language: str
    title: str
    text: str
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    passage: Passage | None = None


@dataclass(frozen=True)
class Hit:
    """One document found; in an index of chunks its score is that of its best passage.

    Attributes:
        id: the document's id.
        score: by which it is ranked; in dense mode ``(1 + cos) / 2``.
        language: primary tag, or ``und``; of the best passage where there is one, as is the text.
        title: may be empty.
        text: may be empty; of several text fields all, of an adopted index the first.
        group: translation group, the first where it names several, or None.
        legs: leg of the search -> score and rank there, None where it gave none; a leg that did not find it is absent.
        others: the other documents of its group, where one is shown of each.
        shift: what the shift did, where that was to be explained and the document has a vector.
        passage: the best of the document, in an index of chunks; None where entries are whole documents.
        passages: further ones, best first, as many as were asked for.
        source: the document's own fields as it came with them, or those of them that were asked for, without the
            vector and what langshift adds to it. Where there is a passage, the text is that of the passage alone.
        snippet: what is shown of the text, where that was asked for and there is a text.
    """

    id: str
    score: float
    language: str
    title: str
    text: str
    group: str | None
    legs: Mapping[str, Leg] = field(default_factory=dict)
    others: tuple[Other, ...] = ()
    shift: ShiftEffect | None = None
    passage: Passage | None = None
    passages: tuple[Passage, ...] = ()
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    snippet: Snippet | None = None


def to_hit(
    found: ScoredDoc,
    fields: FieldNames,
    shift: ShiftEffect | None = None,
    snippet: Snippet | None = None,
    chosen: Collection[str] | None = None,
) -> Hit:
    """A candidate, from an index with these fields, as a hit; ``chosen`` are the fields that its source is to have."""
    title, text = title_and_text(found.source, fields)
    return Hit(
        id=found.document,
        score=0.0 if found.score is None else found.score,
        language=found.language,
        title=title,
        text=text,
        group=group_of(found.source, fields),
        legs=found.legs,
        others=tuple(_other(one, fields, chosen) for one in found.others),
        shift=shift,
        passage=_passage(found, fields),
        passages=tuple(filter(None, (_passage(one, fields) for one in found.passages))),
        source=own_source(found.source, fields, chosen),
        snippet=snippet,
    )


def _other(found: ScoredDoc, fields: FieldNames, chosen: Collection[str] | None) -> Other:
    title, text = title_and_text(found.source, fields)
    source = own_source(found.source, fields, chosen)
    return Other(found.document, found.score, found.language, title, text, source, _passage(found, fields))


def _passage(found: ScoredDoc, fields: FieldNames) -> Passage | None:
    """The chunk that stands for a document; None in an index of whole documents."""
    if fields.parent is None:
        return None
    return Passage(found.id, found.score, found.language, title_and_text(found.source, fields)[1], found.place)


def title_and_text(source: Mapping[str, Any], fields: FieldNames) -> tuple[str, str]:
    """Title and text of a document, from an index with these fields; either may be empty."""
    if not fields.split:
        title = "" if fields.title_field is None else _words(value_at(source, fields.title_field))
        return title, _words(value_at(source, fields.main_text))
    words = {name: _words(value_at(source, name)) for name in fields.text_fields}
    title = words.pop(fields.title_field or "", "")
    return title, " ".join(filter(None, words.values()))


def _words(value: Any) -> str:  # noqa: ANN401 - any JSON
    """The words of a field: of several values all, of languages the first."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _words(next(iter(value.values()), None))
    if isinstance(value, list):
        return " ".join(filter(None, map(_words, value)))
    return "" if value is None else str(value)


def group_of(source: Mapping[str, Any], fields: FieldNames) -> str | None:
    """The translation group that a document names, the first if it names several; None where it names none."""
    return _first(value_at(source, fields.group))


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        index: the version of the index that was searched.
        setting: how, with the mode that was searched in: never ``auto``.
        mode_from: where that mode comes from: it was ``asked`` for, the ``calibration`` of the index found it to be
            best, or it is the ``default`` where no calibration can be used.
        mode_reason: the same as a sentence.
        language: of the query, as given or detected; ``und`` where unknown.
        hits: best first.
        bonus: what was added to the scores of hits in the query's language, by the language preference and by the
            mode anchored, on the scale of the scores; below 0 its amount was added to those of all others.
        anchors: documents that the query was moved by, in the mode anchored.
        compared: how many documents the ranks before and after the shift are among; 0 where nothing was explained.
        notes: sentences on what a searcher should know.
        took: milliseconds that the server says it took, without explaining and snippets.
        requests: what was sent to search, in order.
        from_: the place of the first hit in the ranking, counted from 0; None without pages.
        depth: how many hits the ranking has that pages are cut from, 1,000 at most; 0 without pages.
        point_in_time: what a search for another page of the same ranking passes; None without pages.
        sorted: what was sorted: ``all`` that match, or the hits that were ``found``; None where hits are by score.
        sorted_count: how many hits were found that were sorted; None where all were or none.
        facets: field -> its most frequent values over what matches the filters, of those that were asked for.
        nothing_fits: whether the nearest document is too far from the query for anything to answer it; None where the
            calibration of the index does not tell, or the mode no cosine.
    """

    index: str
    setting: SearchSettings
    mode_from: ModeOrigin
    mode_reason: str
    language: str
    hits: tuple[Hit, ...]
    bonus: float
    anchors: tuple[Anchor, ...]
    compared: int
    notes: tuple[str, ...]
    took: float
    requests: tuple[HttpRequest, ...]
    from_: int | None = None
    depth: int = 0
    point_in_time: str | None = None
    sorted: SortScope | None = None
    sorted_count: int | None = None
    facets: Mapping[str, Facet] = field(default_factory=dict)
    nothing_fits: bool | None = None

    def bonus_of(self, hit: Hit) -> float:
        """What was added to the score of a hit for its language."""
        in_language = hit.language == self.language
        return abs(self.bonus) if in_language == (self.bonus > 0) else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without the requests."""
        found = msgspec.to_builtins(replace(self, requests=()))
        setting, found["from"] = found.pop("setting"), found.pop("from_")
        of_mode = {"mode": setting.pop("mode"), "preference": self.setting.preference}
        del setting["within"], setting["prefer_language"], setting["spread"], found["requests"]
        return {"index": found.pop("index"), **of_mode, **setting, **found}


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
    group = group_of(one.source, fields)
    return ("document", one.document) if group is None else ("group", group)


def without_legs(response: Response, fields: FieldNames = USUAL) -> list[ScoredDoc]:
    """The hits of a search of which nobody knows what its legs said, best first."""
    return [_candidate(hit, fields, {}) for hit in response["hits"]["hits"]]


def sources(responses: Iterable[Response]) -> dict[str, Mapping[str, Any]]:
    """Document -> the fields that it brought."""
    return {hit["_id"]: hit.get("_source", {}) for response in responses for hit in response["hits"]["hits"]}


#: Leg and part: ``dense``, ``lexical`` or ``sparse``; ``all`` or ``shard N``, and ``own`` or ``others`` by language.
Part = tuple[str, str]


def leg_pool(
    legs: Mapping[Part, Sequence[ScoredDoc]], leg: str, favoured: str | None, depth: int | None = None
) -> Pool:
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


def best_first(found: Iterable[ScoredDoc]) -> list[ScoredDoc]:
    """The documents in order of score, those without one last; of equals the first stays first, as on the server."""
    return sorted(found, key=lambda candidate: math.inf if candidate.score is None else -candidate.score)


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


def merged(
    responses: Sequence[Response], found: Sequence[Sequence[ScoredDoc]], request: SearchRequest
) -> tuple[list[ScoredDoc], float]:
    """The best of what searches by vector found, and how many more were wanted, see ``RankedHits.missing``.

    Args:
        responses: the answers.
        found: what is in each, best first.
        request: how many are wanted.
    """
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
    parent = None if fields.parent is None else beside.get(fields.document_key) or value_at(source, fields.parent)
    return ScoredDoc(
        id=hit["_id"],
        score=float(hit["_score"]),
        language=_first(beside.get(fields.language) or value_at(source, fields.language)) or UNDETERMINED,
        source=source,
        legs=legs,
        parent=_first(parent),
        place=None if fields.chunking is None else _place(source.get(CHUNK), beside),
    )


def _place(chunk: Any, beside: Mapping[str, Any]) -> ChunkPlace | None:  # noqa: ANN401 - any JSON
    """The place of a chunk, from its field or from the values that were asked for; None where it is no place."""
    if not isinstance(chunk, Mapping):
        chunk = {name: _first(beside.get(f"{CHUNK}.{name}")) for name in PLACE}
    try:
        ordinal, start, end, count = (int(chunk[name]) for name in ("ordinal", "start", "end", "count"))
    except (KeyError, TypeError, ValueError):
        return None
    return ChunkPlace(ordinal, start, end, count, chunk.get("field"))


def _first(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    """The first value of a keyword field; None where it has none."""
    if isinstance(value, list):
        value = value[0] if value else None
    return None if value is None else str(value)

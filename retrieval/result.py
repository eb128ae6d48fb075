"""What a search gives people: hits with their documents' own fields, what the search was, and what it took."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import CHUNK, PARENT, ChunkPlace, FieldNames, remove_at, replaced_at, value_at
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.calibration.stored import ModeOrigin
from langshift.retrieval.facets import Facet
from langshift.retrieval.hits import Anchor, Leg, ScoredDoc, first_value, value_in
from langshift.retrieval.plans import HttpRequest
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import SETTING, SearchSettings
from langshift.retrieval.snippets import Snippet

#: What a sort is of.
SortScope = Literal["all", "found"]
#: What JSON has of a setting; the language preference is one number there.
SETTING_IN_JSON: Final = ("mode", "preference", *(one.name for one in SETTING[3:] if not one.of_replays))


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

    index: Annotated[str, Meta(description="The version that was searched.")]
    setting: SearchSettings
    mode_from: ModeOrigin
    mode_reason: str
    language: Annotated[str, Meta(description="The query's; `und` where unknown.")]
    hits: tuple[Hit, ...]
    bonus: Annotated[float, Meta(description="What the preference added to the scores of documents that it favours.")]
    anchors: tuple[Anchor, ...]
    compared: int
    notes: Annotated[tuple[str, ...], Meta(description="What somebody who searches should know.")]
    took: Annotated[float, Meta(description="Milliseconds.")]
    requests: tuple[HttpRequest, ...]
    from_: int | None = None
    depth: int = 0
    point_in_time: str | None = None
    sorted: SortScope | None = None
    sorted_count: int | None = None
    facets: Mapping[str, Facet] = field(default_factory=dict)
    nothing_fits: Annotated[
        bool | None, Meta(description="Whether the nearest document is too far to answer the query.")
    ] = None

    def bonus_of(self, hit: Hit) -> float:
        """What was added to the score of a hit for its language."""
        in_language = hit.language == self.language
        return abs(self.bonus) if in_language == (self.bonus > 0) else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without the requests."""
        found = msgspec.to_builtins(replace(self, requests=()))
        found["from"] = found.pop("from_")
        del found["setting"], found["requests"]
        setting = msgspec.structs.asdict(self.setting)
        setting["preference"] = setting["prefer_language"] - setting["spread"]
        return {"index": found.pop("index"), **{name: setting[name] for name in SETTING_IN_JSON}, **found}


def setting_alone(setting: SearchSettings) -> SearchSettings:
    """How was searched, without what else a search takes."""
    return SearchSettings(*(getattr(setting, one.name) for one in SETTING))


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
        title = "" if fields.title_field is None else _words(value_in(source, fields.title_field))
        return title, _words(value_in(source, fields.main_text))
    words = {name: _words(value_in(source, name)) for name in fields.text_fields}
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
    return first_value(value_in(source, fields.group))


def own_source(source: Mapping[str, Any], fields: FieldNames, chosen: Collection[str] | None = None) -> dict[str, Any]:
    """A document's own fields, as it came with them.

    Args:
        source: the fields of its entry.
        fields: the index's names of fields.
        chosen: names of those that are wanted, where not all were asked for; an object's stands for all inside it.
    """
    own = deepcopy(dict(source))
    added = [*fields.embeddings, fields.stamp, fields.confidence, *([PARENT, CHUNK] if fields.chunking else [])]
    if chosen is not None:
        # Every hit brings these.
        brought = (*fields.text_fields, fields.group)
        added += [name for name in brought if not any(f"{name}.".startswith(f"{one}.") for one in chosen)]
    elif not fields.split:
        added.append(fields.language)
    for name in added:
        remove_at(own, name)
    for name in fields.text_fields if fields.split else ():
        if isinstance(by_language := value_at(own, name), Mapping):
            own = replaced_at(own, name, next(iter(by_language.values()), None))
    return own


def nearness_notes(far: float | None, nearest: float | None) -> list[str]:
    """That the nearest document is too far from the query for anything to answer it.

    Args:
        far: below which cosine that is so; None where nobody knows.
        nearest: the cosine of that document; None likewise.
    """
    if far is None or nearest is None or nearest >= far:
        return []
    return [
        f"The nearest document is farther from the query than what answers usually is (cosine {nearest:.4f}, below "
        f"{far:.4f}): perhaps nothing answers it."
    ]


def language_notes(index: IndexInfo, question: SearchQuery, setting: SearchSettings, *, detected: bool) -> list[str]:
    """That no document is in the query's language, where that was detected or takes a preference its effect."""
    language = question.language
    if language == UNDETERMINED:
        return ["The query's language is unknown, so no language is preferred: specify it."] * bool(setting.preference)
    if language in index.languages:
        return []
    if setting.preference:
        return [
            f"{index.name} has no document in {language}, the query's language, so the language preference has no "
            "effect."
        ]
    return [f"The query was read as {language}, in which {index.name} has no document."] * detected


def missing_fields(fields: Sequence[str], found: Sequence[Hit]) -> list[str]:
    """That no hit has a field that was asked for, which may be misspelt."""
    there = {name.split(".")[0] for hit in found for name in hit.source}
    lacking = [name for name in fields if "*" not in name and name.split(".")[0] not in there]
    return [f"No hit has a field {name!r}." for name in lacking] if found else []

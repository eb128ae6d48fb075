"""All that the search page shows, of a state and of what its sides found."""

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson

from langshift.errors import UsageError
from langshift.retrieval.filters import read_filters
from langshift.retrieval.plans import HttpRequest
from langshift.retrieval.result import Hit
from langshift.web.search.searching import SideResult
from langshift.web.search.state import PLACES, IndexChoice, Place, SearchState, choice_of, number, shows_once

# A list of more numbers is shown as how many it has.
_MOST_NUMBERS: Final = 16
_COLOURS: Final = 8

#: Side -> what it found; empty where nothing was asked.
Outcomes = Mapping[Place, SideResult]


def views(state: SearchState, known: Sequence[IndexChoice], outcomes: Outcomes) -> list[dict[str, Any]]:
    """Both sides, by the names that ``search.html`` has for what it shows of them.

    Args:
        state: settled.
        known: what can be searched.
        outcomes: what the sides found.
    """
    colours = _colours(outcomes, state.size)
    found = []
    for place in PLACES:
        side, outcome = state.side(place), outcomes.get(place)
        choice = choice_of(side, known)
        seen: dict[str, Any] = {
            "place": place,
            "side": side,
            "choice": choice,
            # The links to why a document is where it is and to its passages, but for its id.
            "why": state.address("/search/hit", side=place),
            "passages": state.address("/search/passages", side=place),
            "step": _step(choice.alpha, 0.01, 0.001),
            "outcome": outcome,
        }
        if outcome is not None:
            listed, other = outcome.hits[: state.size], outcomes[PLACES[1 - PLACES.index(place)]]
            start = state.start or 0
            # Without a shift documents are looked at without a β, too.
            bare = choice.own and side.scales.get("alpha", choice.alpha) == side.scales.get("gamma", choice.gamma) == 0
            scales = {**side.scales, "own": 0.0} if bare else side.scales
            options = " ".join(f"--{name} {number(value)}" for name, value in scales.items())
            seen |= {
                "start": start,
                "rows": rows(listed, places(other.hits, start), start, among=_compared(state)),
                "shares": [(tag, count, colours.get(tag, _COLOURS)) for tag, count in shares(listed)],
                "facets": facet_links(state, outcome),
                "requests": [(_dsl(one), one.as_curl) for one in (*outcome.requests, *outcome.facets.requests)],
                "retune": f"langshift retune {choice.name} {options}" if outcome.moved and choice.live else None,
            }
        found.append(seen)
    return found


def once(state: SearchState, known: Sequence[IndexChoice]) -> dict[str, bool]:
    """Whether each page is shown once, whether that is usual for the two indices, and whether there is a choice."""
    usual = shows_once(state.left, state.right, known)
    offered = any(choice_of(side, known).translated for side in (state.left, state.right))
    return {
        "offered": offered or state.once is not None,
        "usual": usual,
        "on": usual if state.once is None else state.once,
    }


class Pages(NamedTuple):
    """The way through the pages.

    Attributes:
        spans: side -> which of its hits are shown, in words.
        first: the link to the first page, at a new point in time.
        previous: the link to the page before; None on the first.
        next: the link to the page after; None where neither side has more.
        end: the link to the search without pages.
    """

    spans: Mapping[Place, str]
    first: str
    previous: str | None
    next: str | None
    end: str


def pages(state: SearchState, outcomes: Outcomes) -> Pages | None:
    """The way through the pages; None where the state has none."""
    if state.start is None:
        return None
    spans, longest, at = {}, 0, state
    for place, found in outcomes.items():
        if found.trouble is None:
            last = state.start + len(found.hits)
            spans[place] = f"{state.start + 1:,} to {last:,} of {found.depth:,}" if found.hits else "none"
            longest = max(longest, found.depth)
        if found.point_in_time is not None:
            side = replace(state.side(place), point_in_time=found.point_in_time)
            at = replace(at, left=side) if place == "left" else replace(at, right=side)
    before, after = state.start - state.size, state.start + state.size
    return Pages(
        spans,
        replace(state.by_score, sort=state.sort, start=0).address(),
        replace(at, start=max(0, before)).address() if state.start else None,
        replace(at, start=after).address() if after < longest else None,
        replace(state.by_score, sort=state.sort).address(),
    )


class FacetLink(NamedTuple):
    """A value of a facet.

    Attributes:
        value: as it is shown.
        documents: how many have it.
        chosen: whether documents with it are asked for.
        address: the link that asks for it, or for it no longer; None where a filter cannot name it.
    """

    value: str
    documents: int
    chosen: bool
    address: str | None


def facet_links(state: SearchState, outcome: SideResult) -> list[tuple[str, list[FacetLink], int]]:
    """Field, its values, and how often documents have another one; what is chosen is there even if nothing has it."""
    found = []
    for name, facet in outcome.facets.counts.items():
        chosen = state.filters.filters.get(name, {}).get("in", [])
        counts = {str(one.value): one.count for one in facet.values}
        counts |= {value: 0 for value in chosen if value not in counts}
        links = [
            FacetLink(truncate(value, TITLE), count, value in chosen, _toggled(state, name, value))
            for value, count in counts.items()
        ]
        found.append((name, links, facet.other))
    return found


def _toggled(state: SearchState, name: str, value: str) -> str | None:
    """The link to the search with one more value of a field, or without it; None where a filter cannot name it."""
    texts, dropped = list[str](), False
    for text in state.filter_texts:
        values = read_filters([text]).filters.get(name, {}).get("in", [])
        if value in values:
            rest, dropped = [one for one in values if one != value], True
            texts += [_equals(name, rest)] if rest else []
        else:
            texts.append(text)
    if not dropped:
        text = _equals(name, [value])
        try:
            if len(text.splitlines()) > 1 or read_filters([text.strip()]).filters != {name: {"in": [value]}}:
                return None
        except UsageError:
            return None
        texts.append(text)
    return replace(state.by_score, sort=state.sort, filter_texts=tuple(texts)).address()


def _equals(name: str, values: Sequence[str]) -> str:
    """The filter for values of a field, as a person writes it."""
    # In quotation marks a star is no more than a star, and a space at the end stays.
    special = any(one == "*" or one != one.strip() for one in values)
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if special else csv.QUOTE_MINIMAL, lineterminator="").writerow(values)
    return f"{name}={text.getvalue()}"


TITLE: Final = 160
# No script puts more marks on a character.
_MOST_MARKS: Final = 16


class HitRow(NamedTuple):
    """One hit of a list.

    Attributes:
        hit: what was found.
        title: of the document; empty where it has none.
        snippet: parts of what is shown of its text, and whether words of the query stand there.
        movement: which way it stands against the other side: up, down, same or absent.
        moved: the same in words.
        others: the other documents of its group: their languages, and their titles or the beginnings of their texts.
        passage: which part of the document is shown, in an index of chunks; empty where that is the whole.
        more: whether the document may have other passages.
    """

    hit: Hit
    title: str
    snippet: list[tuple[str, bool]]
    movement: str
    moved: str
    others: tuple[tuple[str, str], ...]
    passage: str
    more: bool


def rows(hits: Sequence[Hit], there: Mapping[str, int], start: int, *, among: str) -> list[HitRow]:
    """The hits as they are listed.

    Args:
        hits: best first.
        there: document -> rank on the other side, from ``places``.
        start: the place of the first one in the ranking, counted from 0.
        among: the hits of the other side, in words.
    """
    return [
        HitRow(
            hit,
            truncate(hit.title, TITLE),
            snippet(hit),
            *_moved(rank, _place(hit, there), among),
            others=tuple((one.language, truncate(one.title or one.text, TITLE)) for one in hit.others),
            passage=passage(hit),
            more=hit.passage is not None and (hit.passage.place is None or hit.passage.place.count > 1),
        )
        for rank, hit in enumerate(hits, start=start + 1)
    ]


def _compared(state: SearchState) -> str:
    """Of the hits of the other side, in words, those that a hit's rank is compared with."""
    return "among the first 100" if state == state.by_score else "among the hits shown"


def snippet(hit: Hit) -> list[tuple[str, bool]]:
    """Parts of what is shown of a hit's text, and whether words of the query stand there; more of it is an ellipsis."""
    if hit.snippet is None:
        return []
    text, end, parts = hit.snippet.text, 0, list[tuple[str, bool]]()
    for first, last in hit.snippet.marks:
        parts += [(text[end:first], False), (text[first:last], True)]
        end = last
    whole, shown = hit.text.strip(), text.strip()
    before = "" if whole.startswith(shown) else "…"
    after = "" if whole.endswith(shown) else "…"
    return [part for part in ((before, False), *parts, (text[end:], False), (after, False)) if part[0]]


def passage(hit: Hit) -> str:
    """``Passage 3 of 12``; empty where the place is not known, and where it is all of the document."""
    place = None if hit.passage is None else hit.passage.place
    return "" if place is None or place.count == 1 else f"Passage {place.ordinal + 1:,} of {place.count:,}"


def places(hits: Iterable[Hit], start: int = 0) -> dict[str, int]:
    """Document -> its rank, after so many others; one inside a hit has that of the hit."""
    found: dict[str, int] = {}
    for rank, hit in enumerate(hits, start=start + 1):
        for name in (hit.id, *(one.id for one in hit.others)):
            found.setdefault(name, rank)
    return found


def shares(hits: Sequence[Hit]) -> list[tuple[str, int]]:
    """Language -> how many of the hits are in it, most first."""
    counted = Counter(hit.language for hit in hits)
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))


def truncate(text: str, most: int) -> str:
    """The beginning of a text, to the end of a word where one ends soon."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    end = _whole(text, most)
    space = text.rfind(" ", most * 3 // 4, end)
    return f"{text[: space if space > 0 else end].rstrip()}…"


def ordinal(rank: int) -> str:
    """``1st``, ``22nd``, ``113th``."""
    teens = 10 < rank % 100 < 14
    return f"{rank}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(rank % 10, 'th')}"


def _whole(text: str, place: int) -> int:
    """The place, further on where it would part a character from its marks."""
    furthest = min(len(text), place + _MOST_MARKS)
    while place < furthest and unicodedata.category(text[place])[0] == "M":
        place += 1
    return place


def _place(hit: Hit, there: Mapping[str, int]) -> int | None:
    return there.get(hit.id, min((there[one.id] for one in hit.others if one.id in there), default=None))


def _moved(rank: int, there: int | None, among: str) -> tuple[str, str]:
    if there is None:
        return "absent", f"not {among} on the other side"
    if there == rank:
        return "same", "same rank"
    direction = "up" if rank < there else "down"
    return direction, f"{direction} {abs(there - rank)}, {ordinal(there)} on the other side"


def _dsl(request: HttpRequest) -> str:
    """A request for a person to read, without the numbers of long vectors."""
    bodies = [_readable(line) for line in request.to_dict()["lines"]]
    text = "\n".join(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() for body in bodies)
    return f"{request.method} {request.path}\n{text}"


def _colours(outcomes: Outcomes, size: int) -> dict[str, int]:
    """Language -> number of its colour, the same on both sides; the most frequent ones have one of their own."""
    both = [hit for outcome in outcomes.values() for hit in outcome.hits[:size]]
    return {tag: place for place, (tag, _) in enumerate(shares(both)[:_COLOURS])}


def _step(value: float, *steps: float) -> str:
    """The first of the steps by which a slider meets the index's own value, else ``any``."""
    return next((f"{step:g}" for step in steps if abs(value / step - round(value / step)) < 1e-9), "any")


def _readable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The body with long lists of numbers told as how many there are."""
    if isinstance(value, dict):
        return {name: _readable(one) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > _MOST_NUMBERS and set(map(type, value)) <= {int, float}:
        return f"[{value[0]:.4f}, … {len(value)} numbers]"
    return [_readable(one) for one in value]

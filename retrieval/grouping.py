"""One document of each translation group, the one in the searcher's language where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from langshift.languages import UNDETERMINED
from langshift.retrieval import bodies
from langshift.retrieval.bodies import MOST, Source
from langshift.retrieval.exchange import Body, Exchange
from langshift.retrieval.found import Candidate, Found, How
from langshift.retrieval.hit import GROUP, group_of
from langshift.retrieval.reading import sources, without_legs
from langshift.retrieval.target import Target
from langshift.retrieval.wanted import Filters, Question

# At most so many times as deep as before, and so many times as deep as it seems needed.
_DEEPEST: Final = 4
_MARGIN: Final = 1.5
_FULL: Final = (
    f"The groups found have {MOST:,} documents or more beside those that the search itself found: what is more than "
    "that is not shown."
)

Retrieve = Callable[[int, Source], Exchange[Found]]
Rescore = Callable[[How, Sequence[str]], Exchange[dict[str, "float | None"]]]


def one_per_group(
    retrieve: Retrieve,
    rescore: Rescore,
    question: Question,
    target: Target,
    *,
    size: int,
    filters: Filters,
    source: Source,
) -> Exchange[Found]:
    """Search for groups.

    A group stands where its best document would, and has that document's score. Documents without a group stand
    for themselves. What is inside a hit is filtered as the hits are.

    Args:
        retrieve: searches to a depth, for hits with these fields.
        rescore: what the search would have given more documents.
        question: what is asked.
        target: what is searched.
        size: how many groups.
        filters: field -> values, any of which a hit must have.
        source: what hits bring.
    """
    found, groups = yield from _enough(retrieve, size)
    chosen = dict(list(groups.items())[:size])
    seen = [candidate.id for members in chosen.values() for candidate in members]
    if not seen:
        return found._replace(hits=())
    brings = source if source is True else [*(source or ()), GROUP]
    named = [key[1] for key in chosen if key[0] == GROUP]
    asked = [members_body(named, seen, question.language, filters, target, brings)]
    if source:
        asked.append(bodies.named(seen, target.index.fields, brings))
    others, *known = yield tuple(asked)
    # A document of several groups is in the first of them alone.
    inside = [one for one in without_legs(others, target.index.fields) if _key(one) in chosen]
    scored = (yield from rescore(found.how, [one.id for one in inside])) if inside else {}
    brought = sources(known)
    for one in inside:
        chosen[_key(one)].append(one._replace(score=scored[one.id]))
        brought[one.id] = one.source
    shown = {name: _shown(fields, source) for name, fields in brought.items()}
    hits = [_head(members, question.language, shown) for members in chosen.values()]
    full = len(others["hits"]["hits"]) == MOST
    return found._replace(hits=tuple(hits), notes=(*found.notes, _FULL) if full else found.notes)


def members_body(
    groups: Sequence[str], without: Sequence[str], language: str, filters: Filters, target: Target, source: Source
) -> Body:
    """The body of a search for the documents of groups, 10,000 at most, those in the searcher's language first.

    Args:
        groups: the groups.
        without: ids of documents that are not wanted.
        language: the searcher's.
        filters: field -> values, any of which a document must have.
        target: what is searched.
        source: what hits bring.
    """
    fields = target.index.fields
    query: dict[str, Any] = {
        "filter": [{"terms": {GROUP: list(groups)}}, *bodies.filter_clauses(filters)],
        "must_not": bodies.filter_clauses({"_id": without}),
        "should": [{"constant_score": {"filter": {"term": {fields.language: language}}}}],
    }
    return bodies.body({"bool": query}, MOST, fields, source)


_Groups = dict[tuple[str, str], list[Candidate]]


def _enough(retrieve: Retrieve, size: int) -> Exchange[tuple[Found, _Groups]]:
    """Search deeper and deeper, until there are as many groups as are wanted or no more documents."""
    depth = min(max(bodies.LEAST_CANDIDATES, size * 2), MOST)
    while True:
        found = yield from retrieve(depth, [GROUP])
        groups = _grouped(found.hits)
        if len(groups) >= size or len(found.hits) < depth or depth == MOST:
            return found, groups
        depth = _deeper(depth, size, len(groups))


def _deeper(depth: int, size: int, groups: int) -> int:
    """How deep to search next: as deep as would do if groups came on as they have so far, and half as deep again."""
    return min(math.ceil(depth * min(_DEEPEST, _MARGIN * size / groups)), MOST)


def _grouped(hits: Iterable[Candidate]) -> _Groups:
    """The hits by group, in the order of each group's best."""
    groups: _Groups = {}
    for hit in hits:
        groups.setdefault(_key(hit), []).append(hit)
    return groups


def _key(hit: Candidate) -> tuple[str, str]:
    group = group_of(hit.source)
    return ("_id", hit.id) if group is None else (GROUP, group)


def _head(members: Sequence[Candidate], language: str, sources: Mapping[str, Mapping[str, Any]]) -> Candidate:
    """A group's hit; the first of the members is the best."""
    ranked = [one._replace(source=sources.get(one.id, {})) for one in sorted(members, key=_best_first)]
    own = [one for one in ranked if one.language == language != UNDETERMINED]
    head = (own or ranked)[0]
    others = tuple(one for one in ranked if one.id != head.id)
    return head._replace(score=members[0].score, others=others)


def _best_first(candidate: Candidate) -> float:
    return float("inf") if candidate.score is None else -candidate.score


def _shown(brought: Mapping[str, Any], source: Source) -> Mapping[str, Any]:
    """What a document brought, without the group where nobody asked for it."""
    if source is True or (source and GROUP in source):
        return brought
    return {name: value for name, value in brought.items() if name != GROUP}

"""Why a hit is where it is: what the query and the index's shift did to one document."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson
from starlette.exceptions import HTTPException

from langshift.plugin.metadata import FieldNames
from langshift.retrieval import dsl
from langshift.retrieval.hits import ScoredDoc, without_legs
from langshift.retrieval.modes.hybrid import weights
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.result import Hit, group_of, to_hit
from langshift.retrieval.shortlist import rankable, similarity_breakdown
from langshift.web.search.searching import SideResult, SideSearcher, entry_of, rank
from langshift.web.search.state import PLACES, IndexChoice, Place, SearchState
from langshift.web.search.view import places


class SimilarityAtScales(NamedTuple):
    """How near query and document are at one alpha and gamma.

    Attributes:
        where: in words.
        value: the cosine; None where it cannot be known.
        own: the part of it that the text's own vector gives.
        language: the part of it that the language vector's subtraction gives.
        common: the part of it that taking out what all queries have in common gives.
        preference: the part of it that the preference vector of its language gives.
        rank: in the list of this setting at these scales; None where it is not among the first 100, or not known.
    """

    where: str
    value: float | None
    own: float | None = None
    language: float | None = None
    common: float | None = None
    preference: float | None = None
    rank: int | None = None


def similarities(
    side_searcher: SideSearcher, state: SearchState, hit: Hit, explained: Hit | None, outcome: SideResult
) -> tuple[list[SimilarityAtScales], Mapping[str, float], str | None]:
    """The table of similarities, what was taken out of the document, and why more is not known."""
    gathered = side_searcher.gathered(state, outcome.choice)
    unknown, as_indexed = gathered.fixed, f"As indexed: alpha {outcome.choice.alpha_in_words}"
    if unknown is not None:
        effect = None if explained is None else explained.shift
        if effect is None:
            return [], {}, unknown
        before = SimilarityAtScales("Before any shift", effect.similarity_before, rank=effect.rank_before)
        after = SimilarityAtScales(as_indexed, effect.similarity_after, rank=effect.rank_after)
        scales = {effect.language or "": effect.alpha, "gamma": effect.gamma}
        return [before, after], {name: scale for name, scale in scales.items() if scale}, unknown
    vectors, side = gathered.vectors(side_searcher.console), outcome.side
    none = "alpha 0, gamma 0" if outcome.choice.gamma or side.gamma else "alpha 0"
    wanted = [
        (f"Before any shift: {none}", replace(side, alpha=0.0, gamma=0.0)),
        (as_indexed, replace(side, alpha=None, gamma=None)),
    ]
    if outcome.moved:
        wanted.append((f"As selected: {side.scales_in_words}", side))
    entry, rows = entry_of(hit), list[SimilarityAtScales]()
    removed: Mapping[str, float] = {}
    for where, at in wanted:
        breakdown = similarity_breakdown(vectors, entry, at.alpha, at.gamma)
        if breakdown is None:
            return [], {}, "The document has no vector, or is not among the nearest ones in its language."
        ranks = places(rank(gathered, at, vectors)) if rankable(side.setting) else {}
        parts, removed = breakdown[1:5], breakdown.removed
        rows.append(SimilarityAtScales(where, breakdown.value, *parts, ranks.get(hit.id)))
    return rows, removed, None


# Of a group that has more only the first are shown.
_MOST_OTHERS: Final = 50
# Of a document that has more only the beginning is shown.
_MOST_TEXT: Final = 50_000


def explain_hit(
    side_searcher: SideSearcher, state: SearchState, place: Place, name: str, known: Sequence[IndexChoice]
) -> dict[str, Any]:
    """What there is to tell of one document, by the names that ``hit.html`` has for it.

    Args:
        side_searcher: the request's searches.
        state: settled, with words; told is where the document stands by score.
        place: the side on which the document stands.
        name: the document's id.
        known: what can be searched.

    Raises:
        HTTPException: 404, there is no such document.
    """
    state = state.by_score
    outcome = side_searcher.outcome(state, state.side(place), known)
    other = side_searcher.outcome(state, state.side(PLACES[1 - PLACES.index(place)]), known)
    # The side is in the mode that auto stands for.
    side, choice = outcome.side, outcome.choice
    searcher, result = side_searcher.explained(state, side, choice)
    fields, anchors = searcher.index.fields, [anchor.id for anchor in result.anchors]
    listed = {one.id: one for one in outcome.hits}
    explained = {one.id: one for one in result.hits}
    seen = listed.get(name) or explained.get(name)
    entry = None if seen is None or seen.passage is None else seen.passage.id
    _, (shown, found, members) = side_searcher.console.opened(choice.name).execute(
        lambda one: _documents(name, entry, anchors, one.index.fields)
    )
    if shown is None:
        raise HTTPException(404, f"There is no document {name[:200]!r} in {choice.name}.")
    documents, whole = {key: to_hit(one, fields) for key, one in found.items()}, to_hit(shown, fields)
    # What lists are made of holds the beginnings of texts only.
    hit = replace(seen or whole, title=whole.title, text=beginning(whole.text))
    near, removed, unknown = similarities(side_searcher, state, hit, explained.get(name), outcome)
    # The shortlist tells what the legs say at the alpha that is looked at.
    legs = (hit if rankable(side.setting) and name in listed else explained.get(name, hit)).legs
    weighing = weights(side.setting) if side.setting.mode == "hybrid" else {}
    return {
        "choice": choice,
        "side": side,
        "language": outcome.language,
        "hit": hit,
        "rank": places(outcome.hits).get(name),
        "there": places(other.hits).get(name),
        "similarities": near,
        "removed": removed,
        "unknown": unknown,
        "legs": [(_LEGS.get(leg, leg), said, weighing.get(leg)) for leg, said in legs.items()],
        "bonus": result.bonus_of(hit),
        "anchors": [(one, documents.get(one.id)) for one in sorted(result.anchors, key=lambda one: -one.weight)],
        "others": [to_hit(one, fields) for one in members],
        "fields": [(name, beginning(_written(value))) for name, value in whole.source.items()],
    }


def _written(value: object) -> str:
    """A field's value for a person to read: text as it is, all else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


_LEGS: Final = {
    "dense": "Meaning: the query's vector (dense)",
    "lexical": "Words: BM25 (lexical)",
    "sparse": "Tokens: learned weights (sparse)",
    "moved": "Meaning: the query's vector moved by the anchors (moved)",
}


def _documents(
    name: str, entry: str | None, anchors: Sequence[str], fields: FieldNames
) -> SearchPlan[tuple[ScoredDoc | None, dict[str, ScoredDoc], list[ScoredDoc]]]:
    """A document, the anchors by ``_id``, and the others of the document's group.

    Args:
        name: the document's id.
        entry: the ``_id`` of the chunk that stands for it; None where any does, and where it is whole.
        anchors: their ``_id``s.
        fields: the index's names of fields.
    """
    itself = dsl.filter_clauses({fields.document_key: [name]})
    if entry is None and fields.parent is not None:
        (answer,) = yield (dsl.body({"bool": {"filter": itself}}, 1, fields, source=False),)
        entry = next((one.id for one in without_legs(answer, fields)), None)
    entry = entry or name
    (answer,) = yield (dsl.named(list(dict.fromkeys((entry, *anchors))), fields),)
    found = {one.id: one for one in without_legs(answer, fields)}
    group = group_of(found[entry].source, fields) if entry in found else None
    if group is None:
        return found.get(entry), found, []
    query = {"bool": {"filter": dsl.filter_clauses({fields.group_filter: [group]}), "must_not": itself}}
    (answer,) = yield (dsl.once_each(dsl.body(query, _MOST_OTHERS, fields), fields),)
    members = without_legs(answer, fields)
    return found[entry], found, sorted(members, key=lambda one: (one.language, one.id))


def beginning(text: str) -> str:
    """A text for a page; of a very long one the beginning, and how much is left out."""
    left_out = len(text) - _MOST_TEXT
    return text if left_out <= 0 else f"{text[:_MOST_TEXT]}… ({left_out:,} more characters)"

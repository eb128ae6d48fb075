"""All that the search page shows, of a state and of what its sides found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from langshift.retrieval.steps import HttpRequest
from langshift.web.search.searching import HitRow, SideResult, places, rows, shares
from langshift.web.search.state import PLACES, IndexChoice, Place, SearchSide, SearchState, choice_of, number

# A list of more numbers is shown as how many it has.
_MOST_NUMBERS: Final = 16
_COLOURS: Final = 8


class RequestView(NamedTuple):
    """A request as it is shown.

    Attributes:
        dsl: its bodies, without the numbers of long vectors.
        curl: the same request, whole, for a shell.
    """

    dsl: str
    curl: str


class SideView(NamedTuple):
    """One side of the page.

    Attributes:
        place: ``left`` or ``right``.
        side: its state.
        choice: what it searches.
        why: the link that says why a document is where it is, but for its ``id``.
        step: of the alpha slider, such that the index's own alpha is on it.
        outcome: what it found; None where nothing was asked.
        rows: the hits that are listed.
        shares: language, how many of these are in it, and the number of its colour.
        requests: what a search in this setting sends.
        retune: the command that makes the alpha that is looked at the index's own; None where none does.
    """

    place: Place
    side: SearchSide
    choice: IndexChoice
    why: str
    step: str
    outcome: SideResult | None = None
    rows: Sequence[HitRow] = ()
    shares: Sequence[tuple[str, int, int]] = ()
    requests: Sequence[RequestView] = ()
    retune: str | None = None


def views(state: SearchState, known: Sequence[IndexChoice], outcomes: Mapping[Place, SideResult]) -> list[SideView]:
    """Both sides.

    Args:
        state: settled.
        known: what can be searched.
        outcomes: what the sides found; empty where nothing was asked.
    """
    if not outcomes:
        return [_empty(place, state, known) for place in PLACES]
    colours = _colours(outcomes, state.size)
    left, right = outcomes["left"], outcomes["right"]
    return [_side("left", state, left, right, colours), _side("right", state, right, left, colours)]


def request_view(request: HttpRequest) -> RequestView:
    """A request for a person to read, and to send."""
    bodies = [_readable(line) for line in request.to_dict()["lines"]]
    text = "\n".join(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() for body in bodies)
    return RequestView(f"{request.method} {request.path}\n{text}", request.as_curl)


def _empty(place: Place, state: SearchState, known: Sequence[IndexChoice]) -> SideView:
    side = state.side(place)
    choice = choice_of(side, known)
    return SideView(place, side, choice, _why(place, state), _step(choice.alpha))


def _why(place: Place, state: SearchState) -> str:
    return state.address("/search/hit", side=place)


def _side(
    place: Place, state: SearchState, outcome: SideResult, other: SideResult, colours: Mapping[str, int]
) -> SideView:
    listed = outcome.hits[: state.size]
    retune = None
    if outcome.moved and outcome.side.alpha is not None and outcome.choice.live:
        retune = f"langshift retune {outcome.choice.name} --alpha {number(outcome.side.alpha)}"
    return SideView(
        place=place,
        side=outcome.side,
        choice=outcome.choice,
        why=_why(place, state),
        step=_step(outcome.choice.alpha),
        outcome=outcome,
        rows=rows(listed, state.words, outcome.language, places(other.hits)),
        shares=[(tag, count, colours.get(tag, _COLOURS)) for tag, count in shares(listed)],
        requests=[request_view(one) for one in outcome.requests],
        retune=retune,
    )


def _colours(outcomes: Mapping[Place, SideResult], size: int) -> dict[str, int]:
    """Language -> number of its colour, the same on both sides; the most frequent ones have one of their own."""
    both = [hit for outcome in outcomes.values() for hit in outcome.hits[:size]]
    return {tag: place for place, (tag, _) in enumerate(shares(both)[:_COLOURS])}


def _step(alpha: float) -> str:
    """The coarsest step of a slider that meets the index's own alpha."""
    for step, places_ in (("0.01", 2), ("0.001", 3)):
        if abs(round(alpha, places_) - alpha) < 1e-12:
            return step
    return "any"


def _readable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The body with long lists of numbers told as how many there are."""
    if isinstance(value, dict):
        return {name: _readable(one) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > _MOST_NUMBERS and set(map(type, value)) <= {int, float}:
        return f"[{value[0]:.4f}, … {len(value)} numbers]"
    return [_readable(one) for one in value]

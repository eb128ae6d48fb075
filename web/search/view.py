"""All that the search page shows, of a state and of what its sides found."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from langshift.retrieval.steps import HttpRequest
from langshift.web.search.searching import SideResult, places, rows, shares
from langshift.web.search.state import PLACES, IndexChoice, Place, SearchState, choice_of, number

# A list of more numbers is shown as how many it has.
_MOST_NUMBERS: Final = 16
_COLOURS: Final = 8


def views(
    state: SearchState, known: Sequence[IndexChoice], outcomes: Mapping[Place, SideResult]
) -> list[dict[str, Any]]:
    """Both sides, by the names that ``search.html`` has for what it shows of them.

    Args:
        state: settled.
        known: what can be searched.
        outcomes: what the sides found; empty where nothing was asked.
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
            scales = " ".join(f"--{name} {number(value)}" for name, value in side.scales.items())
            seen |= {
                "rows": rows(listed, state.words, places(other.hits)),
                "shares": [(tag, count, colours.get(tag, _COLOURS)) for tag, count in shares(listed)],
                "requests": [(_dsl(one), one.as_curl) for one in outcome.requests],
                "retune": f"langshift retune {choice.name} {scales}" if outcome.moved and choice.live else None,
            }
        found.append(seen)
    return found


def _dsl(request: HttpRequest) -> str:
    """A request for a person to read, without the numbers of long vectors."""
    bodies = [_readable(line) for line in request.to_dict()["lines"]]
    text = "\n".join(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() for body in bodies)
    return f"{request.method} {request.path}\n{text}"


def _colours(outcomes: Mapping[Place, SideResult], size: int) -> dict[str, int]:
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

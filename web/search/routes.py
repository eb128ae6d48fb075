"""The addresses of the search pages."""

from collections.abc import Sequence
from dataclasses import replace

from opensearchpy.exceptions import OpenSearchException
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from langshift.errors import LangshiftError, UsageError
from langshift.languages import parse_tag
from langshift.retrieval.request import ARGUMENTS, MOST_CHARACTERS, MOST_PASSAGES
from langshift.retrieval.shortlist import rankable
from langshift.web.context import AppContext, context_of, page
from langshift.web.search import state as limits
from langshift.web.search.searching import SideSearcher, side_error
from langshift.web.search.state import PLACES, IndexChoice, Place, SearchState, choice_of, parse_state, resolve_state
from langshift.web.search.view import Outcomes, once, pages, views
from langshift.web.search.why import explain_hit


def search(request: Request) -> Response:
    """The page with both lists."""
    console, side_searcher = context_of(request), SideSearcher(context_of(request), fresh=is_page_load(request))
    state = parse_state(request.query_params.multi_items())
    if is_page_load(request) and any(f"{place}.for" in request.query_params for place in PLACES):
        # What a form brings along for the server alone does not belong into a link.
        return RedirectResponse(state.address(), 303)
    known = side_searcher.choices()
    if not known:
        return page(request, "search.html", known=known)
    state = resolve_state(state, known)
    outcomes: Outcomes = {}
    if state.words:
        outcomes = {place: side_searcher.outcome(state, state.side(place), known) for place in PLACES}
        troubles = [one.trouble for one in outcomes.values() if one.trouble is not None]
        # What neither side can do anything with, such as a query that is too long; but from a page a way leads on.
        if len(troubles) == len(PLACES) and len(set(map(str, troubles))) == 1 and state.start is None:
            raise troubles[0]
    return page(
        request,
        "search.html",
        known=known,
        state=state,
        sides=views(state, known, outcomes),
        pages=pages(state, outcomes),
        paged=replace(state, start=0).address(),
        once=once(state, known),
        languages=_languages(console, state, known, outcomes),
        prefetch=state.address("/search/vectors") if any(one.fixed is None for one in outcomes.values()) else None,
        limits=limits,
        arguments=ARGUMENTS,
        most=MOST_CHARACTERS,
        number=limits.number,
    )


def hit(request: Request) -> Response:
    """Why a document is where it is."""
    side_searcher, known, state, place = _one_hit(request)
    why = explain_hit(side_searcher, state, place, request.query_params["id"], known)
    more = state.address("/search/passages", side=place, id=request.query_params["id"])
    return page(request, "hit.html", state=state, why=why, number=limits.number, passages=more)


def passages(request: Request) -> Response:
    """All passages of a document, in an index of chunks."""
    side_searcher, known, state, place = _one_hit(request)
    side, name = state.side(place), request.query_params["id"]
    found = side_searcher.passages(state, side, choice_of(side, known), name)
    if found is None:
        raise HTTPException(404, f"No passage of {name[:200]!r} in {side.index} matches the query.")
    return page(request, "passages.html", state=state, hit=found, most=MOST_PASSAGES + 1)


def _one_hit(request: Request) -> tuple[SideSearcher, list[IndexChoice], SearchState, Place]:
    """The searches, the indices and the state of a page about one hit, and the side on which it stands.

    Raises:
        UsageError: the address lacks something.
    """
    side_searcher = SideSearcher(context_of(request), fresh=is_page_load(request))
    values, known = request.query_params, side_searcher.choices()
    state = resolve_state(parse_state(values.multi_items()), known)
    place = next((one for one in PLACES if one == values.get("side", "left")), None)
    if place is None:
        raise UsageError("side must be left or right: follow a link from /search.")
    if not state.words or not values.get("id"):
        raise UsageError("A hit needs a query (q) and the document (id): follow a link from /search.")
    return side_searcher, known, state, place


def vectors(request: Request) -> Response:
    """Fetch what the alpha sliders need, ahead of their being moved."""
    side_searcher = SideSearcher(context_of(request), fresh=False)
    known = side_searcher.choices()
    state = resolve_state(parse_state(request.query_params.multi_items()), known)
    for place in PLACES if state.words else ():
        side = state.side(place)
        choice = choice_of(side, known)
        try:
            if not rankable(side_searcher.resolved(side, choice)[0].setting):
                continue
            gathered = side_searcher.gathered(state, choice)
            if gathered.fixed is None:
                gathered.vectors(context_of(request))
        except (LangshiftError, OpenSearchException) as error:
            # The search has told of it, and the other side may do better.
            side_error(context_of(request), error)
    return Response(status_code=204)


def is_page_load(request: Request) -> bool:
    """Whether a person asks for the page anew, and not a script for another look at what is known."""
    return request.headers.get("sec-fetch-mode", "navigate") == "navigate"


def _languages(console: AppContext, state: SearchState, known: Sequence[IndexChoice], outcomes: Outcomes) -> list[str]:
    """What a query can be said to be in: the languages of both indices, and what was chosen."""
    found = {tag for one in outcomes.values() for tag in one.languages}
    for place in PLACES if not outcomes else ():
        try:
            found.update(console.opened(choice_of(state.side(place), known).name).current().searcher.index.languages)
        except (LangshiftError, OpenSearchException) as error:
            # Told when it is searched, unless nothing can be.
            side_error(console, error)
    # Anybody may have written what is no tag into the field.
    tags = {tag for tag in found if parse_tag(tag)}
    return sorted(tags | {state.language} if state.language else tags)


ROUTES = [
    Route("/search", search),
    Route("/search/hit", hit),
    Route("/search/passages", passages),
    Route("/search/vectors", vectors),
]

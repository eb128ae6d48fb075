"""The page ``/languages/{name}``."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from langshift.web.context import console_of
from langshift.web.language_map.asking import QUESTIONS
from langshift.web.language_map.maps import Maps
from langshift.web.language_map.measuring import measure
from langshift.web.language_map.sampling import DOCUMENTS
from langshift.web.language_map.shown import shown
from langshift.web.pages import page
from langshift.web.routes import known


def languages(request: Request) -> Response:
    """The map of one index, or what is being done to make it."""
    console = console_of(request)
    version, _ = known(console, request.path_params["name"])
    if version.state == "unfinished":
        raise HTTPException(404, f"{version.version} is not finished, so there is no map of it yet.")
    work = console.kept(Maps, Maps).of(
        version.uuid,
        version.documents,
        lambda tell: shown(measure(console.client, version.version, lambda: console.opened(version.version), tell)),
    )
    return page(
        request,
        "languages.html",
        this=version,
        told=work.told,
        shown=work.done,
        each=DOCUMENTS,
        questions=QUESTIONS,
    )


ROUTES = [Route("/languages/{name}", languages)]

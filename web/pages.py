"""Pages: templates filled in, everything in them escaped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from langshift.evaluate.report.templating import environment
from langshift.languages import direction
from langshift.settings import VERSION
from langshift.web.context import console_of

FOLDER: Final = Path(__file__).parent
# Name in ``active`` -> address and words in the navigation.
_PARTS: Final = {
    "search": ("/search", "Search"),
    "indices": ("/indices", "Indices"),
    "evaluations": ("/evaluations", "Evaluations"),
}
# Seconds after which a page that waits for the cluster asks again.
_AGAIN: Final = 3


def _environment() -> Environment:
    made = environment(FOLDER / "templates")
    made.globals.update(direction=direction, parts=_PARTS, version=VERSION)
    return made


_TEMPLATES: Final = _environment()


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,  # noqa: ANN401 - a template's
) -> HTMLResponse:
    """A page.

    Args:
        request: what is answered; templates see it as ``request``.
        template: such as ``search.html``, in ``templates``.
        status: of HTTP.
        headers: more than those that every answer has.
        **context: what the template fills in; all of it is escaped but what ``drawn`` made.
    """
    url = console_of(request).settings.url
    text = _TEMPLATES.get_template(template).render(request=request, cluster=url or "embedded OpenSearch", **context)
    return HTMLResponse(text, status_code=status, headers=headers)


def trouble(
    request: Request,
    status: int,
    sentence: str,
    *,
    heading: str = "This did not work",
    again: bool = False,
    bare: bool = False,
) -> HTMLResponse:
    """A page for what could not be done.

    Args:
        request: what is answered.
        status: of HTTP.
        sentence: for a person: what, where and what to do.
        heading: of the page.
        again: whether the page asks for its address again until that answers otherwise.
        bare: whether the page is for somebody who may know nothing of this console.
    """
    seconds = _AGAIN if again else None
    headers = {"retry-after": str(_AGAIN)} if again else None
    context = {"heading": heading, "sentence": sentence, "seconds": seconds, "bare": bare}
    return page(request, "error.html", status=status, headers=headers, **context)


def drawn(svg: str) -> Markup:
    """A figure of langshift's own as what is put into a page as it is; nothing else may be given here."""
    return Markup(svg)  # noqa: S704 - our figures escape their texts

"""What the page of a language map shows: its figures and the rows of its table."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from langshift.evaluate.audit.nearness import NEAREST, NearestShare, nearest_shares
from langshift.evaluate.report.scatter import Panel, scatter
from langshift.evaluate.report.tables import Table, heatmap
from langshift.web.context import LruCache, context_of, page, trusted_markup
from langshift.web.indices import resolve_version
from langshift.web.language_map import measure
from langshift.web.language_map.measure import LanguageMap, Picture


class LanguageMapView(NamedTuple):
    """What the page shows.

    Attributes:
        map: what was measured.
        heatmaps: name, table, and which share of the documents nearest to a query is in its language, None where the
            sample is too small; before and after the shift where both are known.
        nearest: how many nearest documents are looked at, and the share that chance would give; None likewise.
        pictures: of the documents: name, how to read it, and the figure.
    """

    map: LanguageMap
    heatmaps: list[tuple[str, Table, float | None]]
    nearest: tuple[int, float] | None
    pictures: list[tuple[str, str, Markup]]


def render_map(found: LanguageMap) -> LanguageMapView:
    """A map, drawn."""
    shares = [] if found.nearness is None else nearest_shares(found.nearness)
    nearest = (NEAREST, fmean(one.even for one in shares)) if shares else None
    return LanguageMapView(found, heatmaps(found, shares), nearest, pictures(found))


def heatmaps(found: LanguageMap, shares: Sequence[NearestShare]) -> list[tuple[str, Table, float | None]]:
    """The similarity of the languages of queries and documents, before and after the shift where that moves any."""
    near = found.nearness
    if near is None:
        return []
    # Shares, as cosines themselves are spread wider or narrower by a shift.
    sides = {"As indexed": (near.after, [one.after for one in shares])}
    if found.moved:
        sides = {"Before the shift": (near.before, [one.before for one in shares]), **sides}
    known = {name: (means, own) for name, (means, own) in sides.items() if not np.isnan(means).all()}
    if not known:
        return []
    lowest = float(min(np.nanmin(means) for means, _ in known.values()))
    highest = float(max(np.nanmax(means) for means, _ in known.values()))
    tags = list(near.rows.documents)
    return [
        (
            name,
            heatmap(
                f"{name}: mean cosine of queries in the row's language and documents in the column's",
                "query in",
                tags,
                tags,
                means,
                lowest=lowest,
                highest=highest,
                form="{:.3f}",
            ),
            fmean(own) if own else None,
        )
        for name, (means, own) in known.items()
    ]


def pictures(found: LanguageMap) -> list[tuple[str, str, Markup]]:
    """The documents along language, and along what tells them apart most."""
    wanted = (
        (
            found.along,
            "Along the language vectors",
            "Each point is a document, coloured by its language. The axes are the two directions in which the index's "
            "language vectors differ most ({share:.0%} of their variance): this is what the shift reduces.{same} "
            "Where points of one colour form a cluster, language separates them.",
        ),
        (
            found.widest,
            "Along the largest differences between documents",
            "The same documents along the two directions in which their vectors{before} differ most, whatever the "
            "reason ({share:.0%} of their variance).{same} Where colours are mixed, the content of a text counts more "
            "than its language.",
        ),
    )
    return [_scatter_plot(seen, name, explanation) for seen, name, explanation in wanted if seen is not None]


def _scatter_plot(seen: Picture, name: str, explanation: str) -> tuple[str, str, Markup]:
    panels, before, same = [Panel("As indexed", seen.after, list(seen.languages))], "", ""
    if seen.before is not None:
        panels.insert(0, Panel("Before the shift", seen.before, list(seen.languages)))
        before, same = " before the shift", " Both sides have the same axes."
    said = explanation.format(share=sum(seen.share), before=before, same=same)
    return name, said, trusted_markup(scatter(panels, title=f"{name}: documents by language", description=said))


class LanguageMaps(LruCache[LanguageMapView]):
    """The maps that were shown last, by the version's own id and how many documents it had."""

    def __init__(self) -> None:
        super().__init__(16)


def languages(request: Request) -> Response:
    """The map of one index; drawn anew where its documents are no longer as many."""
    console = context_of(request)
    version, _ = resolve_version(console, request.path_params["name"])
    if version.state == "unfinished":
        raise HTTPException(404, f"{version.version} is not finished, so it has no map yet.")
    shown = console.shared(LanguageMaps, LanguageMaps).of(
        (version.uuid, version.documents), lambda: render_map(measure.measure(console.client, version.version))
    )
    return page(request, "languages.html", this=version, shown=shown, each=measure.DOCUMENTS)


ROUTES = [Route("/languages/{name}", languages)]

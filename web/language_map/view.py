"""What the page of a language map shows: its figures and the rows of its table."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from langshift.evaluate.figures.charts import Panel, scatter
from langshift.evaluate.figures.heatmap import heatmap
from langshift.web.context import context_of, page, trusted_markup
from langshift.web.indices import resolve_version
from langshift.web.language_map import measure
from langshift.web.language_map.measure import LanguageMap, Picture, ReportProgress


class LanguageMapView(NamedTuple):
    """All of the page that takes time.

    Attributes:
        map: what was measured.
        heatmaps: name, figure, and how much nearer documents in the question's own language are than others, None where
            that is not known; before and after the shift where both are known.
        pictures: of the documents: name, how to read it, and the figure.
    """

    map: LanguageMap
    heatmaps: list[tuple[str, Markup, float | None]]
    pictures: list[tuple[str, str, Markup]]


def render_map(found: LanguageMap) -> LanguageMapView:
    """A map, drawn."""
    return LanguageMapView(found, heatmaps(found), pictures(found))


def heatmaps(found: LanguageMap) -> list[tuple[str, Markup, float | None]]:
    """The similarity of question language and document language, before and after where both are known."""
    near = found.nearness
    if near is None:
        return []
    sides = {"Before the shift": near.before, "As indexed": near.after}
    known = {name: values for name, values in sides.items() if values is not None and not np.isnan(values).all()}
    if not known:
        return []
    lowest = float(min(np.nanmin(values) for values in known.values()))
    highest = float(max(np.nanmax(values) for values in known.values()))
    tags = list(found.languages)
    return [
        (
            name,
            trusted_markup(
                heatmap(
                    tags,
                    tags,
                    values,
                    title=f"{name}: similarity of query language and document language",
                    description="Mean cosine of queries in the row's language and documents in the column's: "
                    f"{lowest:.3f} to {highest:.3f}.",
                    row_title="query in",
                    column_title="document in",
                    scale_title="mean cosine",
                    form="{:.3f}",
                    vmin=lowest,
                    vmax=highest,
                )
            ),
            measure.own_language_lead(values),
        )
        for name, values in known.items()
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


Measuring = Callable[[ReportProgress], LanguageMapView]

_MOST_MAPS: Final = 16
# Seconds after which a map of an index that has other documents now is measured again.
_LASTS: Final = 300.0


@dataclass
class LanguageMapJob:
    """One map, being measured or done.

    Attributes:
        documents: how many the index had when it was begun.
        progress: what is being done, in a few words.
        done: the map, or why there is none; None while it is measured.
        ended: when, by the monotonic clock; 0 while it is measured.
    """

    documents: int | None
    progress: str = "Waiting for another map"
    done: LanguageMapView | Exception | None = None
    ended: float = 0.0

    def carry_out(self, measuring: Measuring, one_at_a_time: Lock) -> None:
        """Measure it."""
        with one_at_a_time:
            try:
                done: LanguageMapView | Exception = measuring(self._set_progress)
            except Exception as error:
                done = error
        self.ended, self.done = time.monotonic(), done

    def stale(self, documents: int | None) -> bool:
        """Whether it is better measured again."""
        return self.done is not None and documents != self.documents and time.monotonic() - self.ended > _LASTS

    def _set_progress(self, progress: str) -> None:
        self.progress = progress


class LanguageMapJobs:
    """The maps that were asked for last; safe to use from several threads."""

    def __init__(self) -> None:
        self._works: OrderedDict[str, LanguageMapJob] = OrderedDict()
        self._lock, self._one_at_a_time = Lock(), Lock()

    def of(self, uuid: str, documents: int | None, measuring: Measuring) -> LanguageMapJob:
        """The map of an index; begun in the background where there is none yet.

        Args:
            uuid: the server's own id of the version.
            documents: how many it has now.
            measuring: measures it.

        Raises:
            Exception: what measuring it ended with; the next one who asks begins it again.
        """
        with self._lock:
            work = self._works.get(uuid)
            if work is None or work.stale(documents):
                work = self._works[uuid] = LanguageMapJob(documents)
                # Whoever ends the console does not wait for it.
                Thread(target=work.carry_out, args=(measuring, self._one_at_a_time), daemon=True).start()
            self._works.move_to_end(uuid)
            while len(self._works) > _MOST_MAPS:
                self._works.popitem(last=False)
            if isinstance(work.done, Exception):
                del self._works[uuid]
                raise work.done
        return work


def languages(request: Request) -> Response:
    """The map of one index, or what is being done to make it."""
    console = context_of(request)
    version, _ = resolve_version(console, request.path_params["name"])
    if version.state == "unfinished":
        raise HTTPException(404, f"{version.version} is not finished, so it has no map yet.")
    work = console.shared(LanguageMapJobs, LanguageMapJobs).of(
        version.uuid,
        version.documents,
        lambda report_progress: render_map(
            measure.measure(console.client, version.version, lambda: console.opened(version.version), report_progress)
        ),
    )
    return page(
        request,
        "languages.html",
        this=version,
        progress=work.progress,
        shown=work.done,
        each=measure.DOCUMENTS,
        questions=measure.QUESTIONS,
    )


ROUTES = [Route("/languages/{name}", languages)]

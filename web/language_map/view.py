"""What the page of a language map shows: its figures and the rows of its table."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
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
from langshift.web.language_map.measure import (
    DOCUMENTS,
    QUESTIONS,
    LanguageMap,
    Matrix,
    Nearness,
    Picture,
    ReportProgress,
    measure,
    own_language_lead,
)


class MeanSimilarity(NamedTuple):
    """A mean similarity.

    Attributes:
        before: before the shift; None where it is not known, or nothing was moved.
        after: as indexed; None where there is no pair.
    """

    before: float | None
    after: float | None


class LanguageMapRow(NamedTuple):
    """A language in the table.

    Attributes:
        tag: its tag.
        documents: how many the index has.
        questions: how many were asked in it.
        pivot: similarity of its documents to questions in the pivot language.
        own: to questions in its own language.
        length: of its language vector; None where it has none.
        alpha: by how much of it documents are shifted; None likewise.
    """

    tag: str
    documents: int
    questions: int
    pivot: MeanSimilarity
    own: MeanSimilarity
    length: float | None
    alpha: float | None


class Heatmap(NamedTuple):
    """A drawn heatmap.

    Attributes:
        name: what it is of.
        svg: the figure.
        lead: how much nearer documents in the question's own language are than others; None where not known.
    """

    name: str
    svg: Markup
    lead: float | None


class ScatterPlot(NamedTuple):
    """A drawn picture.

    Attributes:
        name: what it is of.
        explanation: how to read it.
        svg: the figure.
    """

    name: str
    explanation: str
    svg: Markup


class LanguageMapView(NamedTuple):
    """All of the page that takes time.

    Attributes:
        map: what was measured.
        rows: its languages.
        heatmaps: before and after the shift where both are known.
        pictures: of the documents.
    """

    map: LanguageMap
    rows: list[LanguageMapRow]
    heatmaps: list[Heatmap]
    pictures: list[ScatterPlot]


def render_map(found: LanguageMap) -> LanguageMapView:
    """A map, drawn."""
    return LanguageMapView(found, rows(found), heatmaps(found), pictures(found))


def rows(found: LanguageMap) -> list[LanguageMapRow]:
    """The languages with their figures."""
    places = {tag: place for place, tag in enumerate(found.languages)}
    pivot = places.get(found.index.fingerprint.pivot or "")
    questions = {} if found.nearness is None else found.nearness.questions
    return [
        LanguageMapRow(
            tag=tag,
            documents=found.index.counts[tag],
            questions=questions.get(tag, 0),
            pivot=_similarity(found.nearness, pivot, place),
            own=_similarity(found.nearness, place, place),
            length=found.lengths.get(tag),
            alpha=found.alphas.get(tag),
        )
        for tag, place in places.items()
    ]


def heatmaps(found: LanguageMap) -> list[Heatmap]:
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
        Heatmap(
            name,
            trusted_markup(
                heatmap(
                    tags,
                    tags,
                    values,
                    title=f"{name}: similarity of question language and document language",
                    description="Mean cosine of questions in the row's language and documents in the column's: "
                    f"{lowest:.3f} to {highest:.3f}.",
                    row_title="question in",
                    column_title="document in",
                    scale_title="mean cosine",
                    form="{:.3f}",
                    vmin=lowest,
                    vmax=highest,
                )
            ),
            own_language_lead(values),
        )
        for name, values in known.items()
    ]


def pictures(found: LanguageMap) -> list[ScatterPlot]:
    """The documents along language, and along what tells them apart most."""
    made = list[ScatterPlot]()
    if found.along is not None:
        explanation = (
            "Each point is a document, coloured by its language. The axes are the two directions in which the index's "
            f"language vectors differ most ({sum(found.along.share):.0%} of their variance): what the shift works "
            f"against.{_same(found.along)} Where points of one colour keep to themselves, language tells them apart."
        )
        made.append(_scatter_plot("Along the language vectors", explanation, found.along))
    if found.widest is not None:
        before = " before the shift" if found.widest.before is not None else ""
        explanation = (
            f"The same documents along the two directions in which their vectors{before} differ most, whatever that is "
            f"due to ({sum(found.widest.share):.0%} of their variance).{_same(found.widest)} Where colours are mixed "
            "here, what a text says counts more than its language."
        )
        made.append(_scatter_plot("Along what tells the documents apart most", explanation, found.widest))
    return made


def _same(seen: Picture) -> str:
    return "" if seen.before is None else " Both sides have the same axes."


def _scatter_plot(name: str, explanation: str, seen: Picture) -> ScatterPlot:
    panels = [] if seen.before is None else [Panel("Before the shift", seen.before, list(seen.languages))]
    panels.append(Panel("As indexed", seen.after, list(seen.languages)))
    return ScatterPlot(
        name,
        explanation,
        trusted_markup(scatter(panels, title=f"{name}: documents by language", description=explanation)),
    )


def _similarity(near: Nearness | None, row: int | None, column: int) -> MeanSimilarity:
    if near is None or row is None:
        return MeanSimilarity(None, None)
    return MeanSimilarity(_cell(near.before, row, column), _cell(near.after, row, column))


def _cell(values: Matrix | None, row: int, column: int) -> float | None:
    return None if values is None or np.isnan(values[row, column]) else float(values[row, column])


Measuring = Callable[[ReportProgress], LanguageMapView]

_MOST_MAPS: Final = 16
# Seconds after which a map of an index that has other documents now is measured again.
_LASTS: Final = 300.0


class LanguageMapJob:
    """One map, being measured or done.

    Attributes:
        documents: how many the index had when it was begun.
        told: what is being done, in a few words.
        done: the map, or why there is none; None while it is measured.
        ended: when, by the monotonic clock; 0 while it is measured.
    """

    def __init__(self, documents: int | None) -> None:
        self.documents = documents
        self.progress = "Waiting for another map"
        self.done: LanguageMapView | Exception | None = None
        self.ended = 0.0

    def carry_out(self, measuring: Measuring, one_at_a_time: Lock) -> None:
        """Measure it."""
        with one_at_a_time:
            try:
                done: LanguageMapView | Exception = measuring(self._set_progress)
            except Exception as error:
                done = error
        self.ended = time.monotonic()
        self.done = done

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
        raise HTTPException(404, f"{version.version} is not finished, so there is no map of it yet.")
    work = console.shared(LanguageMapJobs, LanguageMapJobs).of(
        version.uuid,
        version.documents,
        lambda report_progress: render_map(
            measure(console.client, version.version, lambda: console.opened(version.version), report_progress)
        ),
    )
    return page(
        request,
        "languages.html",
        this=version,
        progress=work.progress,
        shown=work.done,
        each=DOCUMENTS,
        questions=QUESTIONS,
    )


ROUTES = [Route("/languages/{name}", languages)]

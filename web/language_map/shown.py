"""What the page of a language map shows: its figures and the rows of its table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from langshift.evaluate.figures.heatmap import heatmap
from langshift.evaluate.figures.scatter import Panel, scatter
from langshift.web.language_map.measuring import LanguageMap, Nearness, Picture
from langshift.web.language_map.picture import Matrix
from langshift.web.language_map.similarity import lead
from langshift.web.pages import drawn


class Similarity(NamedTuple):
    """A mean similarity.

    Attributes:
        before: before the shift; None where it is not known, or nothing was moved.
        after: as indexed; None where there is no pair.
    """

    before: float | None
    after: float | None


class Row(NamedTuple):
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
    pivot: Similarity
    own: Similarity
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


class Plane(NamedTuple):
    """A drawn picture.

    Attributes:
        name: what it is of.
        told: how to read it.
        svg: the figure.
    """

    name: str
    told: str
    svg: Markup


class Shown(NamedTuple):
    """All of the page that takes time.

    Attributes:
        map: what was measured.
        rows: its languages.
        heatmaps: before and after the shift where both are known.
        pictures: of the documents.
    """

    map: LanguageMap
    rows: list[Row]
    heatmaps: list[Heatmap]
    pictures: list[Plane]


def shown(found: LanguageMap) -> Shown:
    """A map, drawn."""
    return Shown(found, rows(found), heatmaps(found), pictures(found))


def rows(found: LanguageMap) -> list[Row]:
    """The languages with their figures."""
    places = {tag: place for place, tag in enumerate(found.languages)}
    pivot = places.get(found.index.fingerprint.pivot or "")
    questions = {} if found.nearness is None else found.nearness.questions
    return [
        Row(
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
            drawn(
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
            lead(values),
        )
        for name, values in known.items()
    ]


def pictures(found: LanguageMap) -> list[Plane]:
    """The documents along language, and along what tells them apart most."""
    made = list[Plane]()
    if found.along is not None:
        told = (
            "Each point is a document, coloured by its language. The axes are the two directions in which the index's "
            f"language vectors differ most ({sum(found.along.share):.0%} of their variance): what the shift works "
            f"against.{_same(found.along)} Where points of one colour keep to themselves, language tells them apart."
        )
        made.append(_plane("Along the language vectors", told, found.along))
    if found.widest is not None:
        before = " before the shift" if found.widest.before is not None else ""
        told = (
            f"The same documents along the two directions in which their vectors{before} differ most, whatever that is "
            f"due to ({sum(found.widest.share):.0%} of their variance).{_same(found.widest)} Where colours are mixed "
            "here, what a text says counts more than its language."
        )
        made.append(_plane("Along what tells the documents apart most", told, found.widest))
    return made


def _same(seen: Picture) -> str:
    return "" if seen.before is None else " Both sides have the same axes."


def _plane(name: str, told: str, seen: Picture) -> Plane:
    panels = [] if seen.before is None else [Panel("Before the shift", seen.before, list(seen.languages))]
    panels.append(Panel("As indexed", seen.after, list(seen.languages)))
    return Plane(name, told, drawn(scatter(panels, title=f"{name}: documents by language", description=told)))


def _similarity(near: Nearness | None, asked: int | None, written: int) -> Similarity:
    if near is None or asked is None:
        return Similarity(None, None)
    return Similarity(_cell(near.before, asked, written), _cell(near.after, asked, written))


def _cell(values: Matrix | None, row: int, column: int) -> float | None:
    return None if values is None or np.isnan(values[row, column]) else float(values[row, column])

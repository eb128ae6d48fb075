"""Figures as inline SVG: what any page, any label and any reader needs of them."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from langshift.evaluate.figures.charts import FrontierPoint, Line, Panel, bars, curves, frontier, percentiles, scatter
from langshift.evaluate.figures.heatmap import heatmap

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "$x^2$ & \\frac{",
    "_hidden",
    "ไทย ภาษา",
    "العربية",
    "日本語 😀👩‍👩‍👧",
    "a\x00\x07\ufffe\ud800b",
    "two\nlines",
    "⠁ᐁ䷀",
    "",
]
SHOWN = [*HOSTILE[:6], "a\ufffd\ufffd\ufffd\ufffdb", "two lines", "⠁ᐁ䷀"]
SAID = {"title": "Shares <of> \x01 ไทย", "description": "What & whom;\nin words."}


def of_heatmap(names, said=SAID):
    return heatmap(names, names, np.eye(len(names)), row_title=names[0], column_title=names[-1], **said)


def of_curves(names, said=SAID):
    lines = [Line(name, [0, 1], [0.1, np.nan]) for name in names]
    return curves(lines, y_title=names[0], marked=(0.5, names[0]), **said)


def of_frontier(names, said=SAID):
    points = [FrontierPoint(name, 0.5, place / 10, path=name) for place, name in enumerate(names)]
    return frontier(points, x_title=names[0], y_title=names[0], **said)


def of_bars(names, said=SAID):
    return bars(names, names[:4], np.full((len(names), min(len(names), 4)), 0.25), **said)


def of_percentiles(names, said=SAID):
    return percentiles(names, np.full((len(names), 4), 2.0), **said)


def of_scatter(names, said=SAID):
    return scatter([Panel(names[0], np.zeros((len(names), 2)), names)], **said)


EVERY = [of_heatmap, of_curves, of_frontier, of_bars, of_percentiles, of_scatter]


@cache
def drawn(draw, *names):
    """A figure that several tests look at."""
    return draw(list(names))


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("draw", EVERY)
def test_any_label_is_shown_as_it_is_written(draw):
    svg = draw(HOSTILE)
    found = [text for text in texts(svg) if text]
    # Legends of languages have room for tags only.
    wanted = [text for text in SHOWN if len(text) <= 12] if draw is of_scatter else SHOWN
    assert [text for text in wanted if text not in found] == []
    assert not re.search("[\x00-\x08\ud800-\udfff]", svg)


@pytest.mark.parametrize("draw", EVERY)
def test_a_page_can_hold_several_figures(draw):
    first, second = drawn(draw, "en", "de"), draw(["en", "zh"])
    assert first == draw(["en", "de"])
    ids = [re.findall(r'\bid="([^"]+)"', svg) for svg in (first, second)]
    assert len(set(ids[0])) == len(ids[0])
    assert not set(ids[0]) & set(ids[1])
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', first))
    assert {name for pair in used for name in pair if name} | {f"{ids[0][0]}", f"{ids[0][1]}"} == set(ids[0])


@pytest.mark.parametrize("draw", EVERY)
def test_a_figure_is_named_for_screen_readers_and_takes_the_inks_of_the_page(draw):
    svg = drawn(draw, "en", "de")
    root = ET.fromstring(svg)
    title, description = list(root)[:2]
    assert svg.startswith("<svg ")
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == f"{title.attrib['id']} {description.attrib['id']}"
    assert (title.tag, title.text) == (f"{SVG}title", "Shares <of> \ufffd ไทย")
    assert (description.tag, description.text) == (f"{SVG}desc", "What & whom; in words.")
    assert "width: 100%; max-width: " in root.attrib["style"]
    assert not {"width", "height"} & set(root.attrib)
    assert {element.tag for element in root.iter()} & {f"{SVG}style", f"{SVG}metadata", f"{SVG}image"} == set()
    inks = ["var(--figure-ink, #1b1b1b)", "var(--figure-paper, #ffffff)"]
    assert all(ink in svg for ink in inks)
    # Neither black that no dark page shows, nor the colours that stand for the page's own.
    assert not re.findall("#000000|#010203|#040506|#070809|DejaVu|20[0-9]{2}-", svg)


def test_nothing_to_draw_is_still_a_figure():
    said = {"title": "t", "description": "d"}
    empty = [
        heatmap([], [], [], **said),
        heatmap(["en"], ["de"], [[np.nan]], **said),
        curves([], **said),
        frontier([FrontierPoint("a", np.nan, 1)], x_title="x", y_title="y", **said),
        bars([], ["right"], [], **said),
        percentiles([], [], **said),
        scatter([], **said),
        scatter([Panel("before", [], [])], **said),
    ]
    assert all(ET.fromstring(svg).tag == f"{SVG}svg" for svg in empty)


def test_figures_may_be_drawn_by_several_threads_at_once():
    alone = [drawn(draw, "en", "de") for draw in EVERY]
    with ThreadPoolExecutor(3) as threads:
        for together in [threads.submit(lambda: [draw(["en", "de"]) for draw in EVERY]) for _ in range(3)]:
            assert together.result() == alone


def test_matplotlib_is_imported_only_where_something_is_drawn():
    names = ["charts", "heatmap", "theme"]
    program = (
        f"import sys\nfrom langshift.evaluate.figures import {', '.join(names)}\nprint('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"

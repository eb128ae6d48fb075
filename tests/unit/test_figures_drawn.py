"""What each figure draws, by its words and colours."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from langshift.evaluate.figures.charts import FrontierPoint, Line, Panel, bars, curves, frontier, percentiles, scatter
from langshift.evaluate.figures.heatmap import heatmap
from langshift.evaluate.figures.theme import BLACK, INK, MORE, WHITE, letters_on, luminance, marking

SVG = "{http://www.w3.org/2000/svg}"
SAID = {"title": "t", "description": "What it shows."}


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def opacities(svg, colour):
    """Of the cells, which come before the scale beside them."""
    return [float(found) for found in re.findall(f"fill: {colour}; fill-opacity: ([0-9.]+)", svg)]


def test_a_heatmap_writes_its_figures_and_says_how_many_are_missing():
    svg = heatmap(["en", "de"], ["ar", "th"], [[0.5, np.nan], [0.25, 1]], form="{:.0%}", scale_title="share", **SAID)
    assert [text for text in texts(svg) if text.endswith("%")] == ["50%", "25%", "100%", "0%", "50%", "100%"]
    assert list(ET.fromstring(svg))[1].text == "What it shows. 1 of 4 cells have no value and are hatched."
    assert opacities(svg, MORE.lower())[:2] == [0.5, 0.25]
    assert "<pattern" in svg


def test_a_figure_that_is_written_as_nought_has_no_minus():
    svg = heatmap(["en"], ["ar", "th"], [[-0.001, 0.2]], form="{:+.2f}", **SAID)
    assert [text for text in texts(svg) if text[0] in "+-"][:2] == ["+0.00", "+0.20"]


def test_a_heatmap_of_20_by_18_cells_keeps_a_letter_size_that_can_be_read():
    svg = heatmap([f"r{n}" for n in range(18)], [str(n) for n in range(20)], np.zeros((18, 20)), **SAID)
    width = float(ET.fromstring(svg).attrib["viewBox"].split()[2])
    assert width <= 900
    assert min(float(size) for size in re.findall("font-size: ([0-9.]+)px", svg)) >= 11


@pytest.mark.parametrize("opacity", np.linspace(0, 1, 21))
def test_letters_stand_out_from_cells_on_light_and_on_dark_paper(opacity):
    letters = letters_on(MORE, opacity)
    for paper, ink in (("#ffffff", BLACK), ("#14171a", "#e6e6e6")):
        first = luminance(ink if letters == INK else letters) + 0.05
        second = luminance(MORE, opacity, paper) + 0.05
        assert max(first, second) / min(first, second) >= 4, (paper, letters)


def test_letters_on_a_full_colour_do_not_change_with_the_page():
    assert letters_on("#E69F00") == BLACK
    assert letters_on("#0072B2") == WHITE


def test_every_curve_has_a_colour_of_its_own():
    lines = [Line("TLR", [0, 0.5, 1], [0.1, 0.2, 0.3]), Line("nDCG", [0, 0.5, 1], [0.5, 0.6, 0.7])]
    svg = curves(lines, y_title="figure", marked=(0.6, "chosen: 0.6"), **SAID)
    assert {"alpha", "figure", "chosen: 0.6", "TLR", "nDCG"} <= set(texts(svg))
    assert all(f"stroke: {colour}" in svg for colour in ("#0072b2", "#d55e00"))


def test_66_languages_have_colours_and_markers_of_their_own():
    assert len({marking(number) for number in range(66)}) == 66


def test_a_scatter_names_the_commonest_languages_and_calls_the_rest_others():
    tags = [f"l{number:02d}" for number in range(50) for _ in range(2 if number < 44 else 1)]
    svg = scatter([Panel("before", np.zeros((94, 2)), tags), Panel("after", np.ones((94, 2)), tags)], **SAID)
    assert texts(svg) == ["before", "after", *(f"l{number:02d}" for number in range(44)), "others"]


def test_bars_write_the_shares_that_have_room():
    parts = ["right, own", "right, other", "wrong, own", "wrong, other"]
    svg = bars(["a (plain)", "b (shifted)"], parts, [[0.6, 0.399, 0.001, 0], [1, 0, 0, 0]], **SAID)
    found = texts(svg)
    axis = ["0%", "20%", "40%", "60%", "80%", "100%"]
    assert [text for text in found if text.endswith("%")] == [*axis, "60%", "100%", "40%"]
    assert found[-4:] == parts
    assert svg.count("<pattern") == 2


def test_percentiles_say_what_was_not_measured():
    svg = percentiles(["a"], [[3.251, 41.66, np.nan, 1204.4]], **SAID)
    wanted = ["p50 3.25 ms", "p90 41.7 ms", "p95 not measured", "p99 1,204 ms"]
    assert [text for text in texts(svg) if text.startswith("p")] == wanted


def test_a_frontier_connects_points_of_one_path_only_and_names_every_point():
    points = [
        FrontierPoint("β 0", 0.9, 0.2, "balanced"),
        FrontierPoint("β 1", 0.8, 0.9, "balanced"),
        FrontierPoint("a", 0.7, 0.7),
        FrontierPoint("b", 0.6, 0.6),
    ]
    svg = frontier([*points, FrontierPoint("gone", float("nan"), 0.1)], x_title="nDCG@20", y_title="LPR", **SAID)
    assert {"β 0", "β 1", "a", "b", "balanced", "nDCG@20", "LPR"} <= set(texts(svg))
    assert "gone" not in texts(svg)
    assert len(re.findall("stroke: #0072b2; stroke-width: 1.2", svg)) == 2
    assert "stroke: #d55e00; stroke-width: 1.2" not in svg


def test_names_of_points_keep_clear_of_each_other_and_of_the_edge():
    names = [f"candidate {number}" for number in range(8)]
    points = [
        *(FrontierPoint(name, 0.5, 0.5) for name in names),
        FrontierPoint("lowest", 0, 0),
        FrontierPoint("highest", 1, 1),
    ]
    svg = ET.fromstring(frontier(points, x_title="x", y_title="y", **SAID))
    boxes = []
    for element in svg.iter(f"{SVG}text"):
        if element.text in {point.name for point in points}:
            anchor = re.search("text-anchor: ([a-z]+)", element.attrib["style"])[1]
            # A letter is half as wide as it is high, and here 11 pixels high.
            width = 5.5 * len(element.text)
            left = float(element.attrib["x"]) - {"start": 0, "middle": width / 2, "end": width}[anchor]
            boxes.append((left, left + width, float(element.attrib["y"])))
    assert len(boxes) == len(points)
    assert all(left >= 0 and right <= float(svg.attrib["viewBox"].split()[2]) for left, right, _ in boxes)
    for one, other in combinations(boxes, 2):
        assert one[1] <= other[0] or other[1] <= one[0] or abs(one[2] - other[2]) >= 11

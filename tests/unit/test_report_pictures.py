"""Shaded tables, bars and the points of several kinds, whatever their names hold."""

from xml.etree import ElementTree as ET

import numpy as np

from langshift.evaluate.report.scatter import scatter
from langshift.evaluate.report.tables import bar, heatmap

SVG = "{http://www.w3.org/2000/svg}"
# Scripts of which no one font has all.
NAMES = ["ไทย", "中文", "ქართული", "ትግርኛ", "<b>&\"'", "עברית"]


def drawn(points):
    svg = scatter(points, title="a title", description="what it shows", x_title="LPR", y_title="nDCG@20")
    return ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))


def texts(svg):
    return [element.text for element in svg.iter(f"{SVG}text")]


def test_a_greater_figure_has_a_stronger_shade():
    table = heatmap("shares", "query", ["ar", "th"], ["en", "de"], np.array([[0.5, np.nan], [0.25, 1]]), 1.0)
    assert [head.text for head in table.heads] == ["query", "ar", "th"]
    assert [[(cell.text, cell.share) for cell in row] for row in table.rows] == [
        [("en", None), ("0.50", 0.5), ("-", None)],
        [("de", None), ("0.25", 0.25), ("1.00", 1.0)],
    ]


def test_the_scale_of_a_heatmap():
    def shares(values, highest):
        (row,) = heatmap("", "", ["a", "b"], ["x"], np.array([values]), highest).rows
        return [cell.share for cell in row[1:]]

    assert shares([0.1, 0.2], 0.4) == [0.25, 0.5]
    assert shares([0.0, 0.0], 0.0) == [0.0, 0.0]
    assert shares([np.nan, np.nan], 1.0) == [None, None]


def test_a_bar_is_as_wide_as_its_share_of_the_greatest():
    assert [bar("x", value, 4.0).share for value in (1.0, 4.0, None)] == [0.25, 1.0, None]
    assert bar("0", 0.0, 0.0).share is None


def test_every_point_has_its_place_on_axes_that_hold_all():
    svg = drawn({"en": (0, 0), "de": (1, 2), "th": (0.5, 1)})
    (frame,) = (group for group in svg if group.find(f"{SVG}rect") is not None)
    places = [mark.get("transform") for mark in frame.findall(f"{SVG}g")]
    assert places == ["translate(18 342)", "translate(342 18)", "translate(180 180)"]
    assert texts(svg)[-3:] == ["de", "en", "th"]
    looks = {path.find(f"{SVG}title").text: (path.get("fill"), path.get("d")) for path in svg.iter(f"{SVG}path")}
    assert len(set(looks.values())) == 3


def test_a_point_alone_is_in_the_middle():
    (frame,) = (group for group in drawn({"en": (3, 4)}) if group.find(f"{SVG}rect") is not None)
    assert frame.find(f"{SVG}g").get("transform") == "translate(180 180)"


def test_points_of_any_name_are_told_apart():
    assert texts(drawn({name: (n, n) for n, name in enumerate(NAMES)}))[-6:] == sorted(NAMES)
    svg = drawn({f"{number:02}{'l' * 50}": (number, 0) for number in range(26)})
    assert texts(svg)[-1] == f"25{'l' * 37}…"
    assert len({(path.get("fill"), path.get("d")) for path in svg.iter(f"{SVG}path")}) == 26


def test_axes_have_their_least_and_greatest_figure():
    svg = drawn({"a": (0.25, 0.5), "b": (0.75, 0.625)})
    assert {"LPR", "nDCG@20", "0.250", "0.750", "0.500", "0.625"} <= {*texts(svg)}

"""Shaded tables, bars and the points of several kinds, whatever their names hold."""

from xml.etree import ElementTree as ET

import numpy as np

from langshift.evaluate.report.scatter import Panel, scatter
from langshift.evaluate.report.tables import bar, heatmap

SVG = "{http://www.w3.org/2000/svg}"
# Scripts of which no one font has all.
NAMES = ["ไทย", "中文", "ქართული", "ትግርኛ", "<b>&\"'", "עברית"]


def drawn(*panels, **options):
    svg = scatter(panels, title="a title", description="what it shows", **options)
    return ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))


def texts(svg):
    return [element.text for element in svg.iter(f"{SVG}text")]


def test_a_greater_figure_has_a_stronger_shade():
    table = heatmap("shares", "query", ["ar", "th"], ["en", "de"], [[0.5, np.nan], [0.25, 1]], form="{:.0%}")
    assert [head.text for head in table.heads] == ["query", "ar", "th"]
    assert [[(cell.text, cell.share) for cell in row] for row in table.rows] == [
        [("en", None), ("50%", 0.5), ("-", None)],
        [("de", None), ("25%", 0.25), ("100%", 1.0)],
    ]


def test_the_scale_of_a_heatmap():
    def shares(values, **scale):
        (row,) = heatmap("", "", ["a", "b"], ["x"], [values], **scale).rows
        return [cell.share for cell in row[1:]]

    assert shares([-0.5, 0.5]) == [0.0, 1.0]
    assert shares([0.2, 0.3], lowest=0.2, highest=0.4) == [0.0, 0.5]
    assert shares([0.5, 0.5], lowest=0.5) == [0.0, 0.0]
    assert shares([np.nan, np.nan]) == [None, None]


def test_a_bar_is_as_wide_as_its_share_of_the_greatest():
    assert [bar("x", value, 4.0).share for value in (1.0, 4.0, None)] == [0.25, 1.0, None]
    assert bar("0", 0.0, 0.0).share is None


def test_every_point_has_its_place_on_axes_that_hold_all():
    svg = drawn(Panel("before", [[0, 0], [1, 2]], ["en", "de"]), Panel("after", [[0.5, 1], [np.nan, 0]], ["en", "de"]))
    before, after = (group for group in svg if group.find(f"{SVG}rect") is not None)
    places = [mark.get("transform") for mark in before.findall(f"{SVG}g")]
    assert places == ["translate(18 342)", "translate(342 18)"]
    # In the middle of the same axes; what is not finite is not drawn.
    assert [mark.get("transform") for mark in after.findall(f"{SVG}g")] == ["translate(180 180)"]
    assert texts(svg) == ["before", "after", "de", "en"]
    looks = {path.find(f"{SVG}title").text: (path.get("fill"), path.get("d")) for path in svg.iter(f"{SVG}path")}
    assert len(set(looks.values())) == 2


def test_kinds_of_any_name_are_told_apart_until_there_are_too_many():
    assert texts(drawn(Panel("", np.eye(6, 2), NAMES)))[1:] == sorted(NAMES)
    many = [f"l{number:02}" for number in range(50)]
    svg = drawn(Panel("", np.zeros((92, 2)), [*many, *many[:42]]), letters=3)
    assert texts(svg)[1:] == [*many[:42], "ot…"]
    looks = {(path.get("fill"), path.get("d")) for path in svg.iter(f"{SVG}path")}
    assert len(looks) == 43


def test_axes_with_titles_have_their_least_and_greatest_figure():
    svg = drawn(Panel("", [[0.25, 0.5], [0.75, 0.625]], ["a", "b"]), x_title="LPR", y_title="nDCG@20")
    assert {"LPR", "nDCG@20", "0.250", "0.750", "0.500", "0.625"} <= {*texts(svg)}


def test_nothing_to_draw_is_drawn():
    assert texts(drawn()) == []
    assert texts(drawn(Panel("empty", [], []))) == ["empty"]

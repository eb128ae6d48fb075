"""What tests read from the console's search page in a browser, and what they do on it."""

import json
import re
from pathlib import Path
from urllib.parse import urlencode

import axe_playwright_python
from playwright.sync_api import expect

from langshift.evaluate.demo import FOLDER

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
PLACES = ("left", "right")
# Every page is looked at on both.
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 800}
THEMES = ("light", "dark")


def question(language, topic="allergy"):
    """A question of the demo's dataset."""
    lines = (FOLDER / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return next(one["text"] for one in map(json.loads, lines) if one["_id"] == f"{topic}-{language}-1")


def address(demo, words="", **more):
    """The search page with the plain index left and the shifted one right; in names ``_`` stands for a dot.

    All translations are shown, which is not usual for these indices; with ``once=""`` each page once.
    """
    state = {"q": words, "left": demo.plain, "right": demo.shifted, "once": "0"}
    state |= {name.replace("_", "."): value for name, value in more.items()}
    return "/search?" + urlencode({name: value for name, value in state.items() if value != ""})


def hits(page, place):
    """The elements of a side's hits."""
    return page.locator(f"section[aria-labelledby={place}-heading] ol.hits > li.hit")


def ids(page, place):
    """The documents of a side, best first."""
    return hits(page, place).evaluate_all("all => all.map(one => one.dataset.id)")


def scores(page, place):
    """Their scores as they are shown."""
    return [said.split()[-1] for said in hits(page, place).locator(".score").all_text_contents()]


def settled(page, *parts):
    """Wait until the link holds these parts, and what belongs to it is shown."""
    for part in parts:
        expect(page).to_have_url(re.compile(rf"[?&]{re.escape(part)}(&|$)"))
    expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")


def slider(page, place, name):
    """The slider ``alpha``, ``prefer`` or ``weight`` of a side."""
    return page.locator(f"#{place}-{name}-slider")


def drag(page, handle, *shares):
    """Take a slider's thumb with the mouse and draw it to shares of its way, slowly: at each the link catches up."""
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    here, least, most = (float(handle.evaluate(f"one => one.{name}")) for name in ("value", "min", "max"))
    # The thumb is as wide as high, and stays inside.
    thumb = 16

    def move(share):
        across = thumb / 2 + (box["width"] - thumb) * share
        page.mouse.move(box["x"] + across, box["y"] + box["height"] / 2, steps=4)

    move((here - least) / (most - least))
    page.mouse.down()
    for share in shares:
        move(share)
        settled(page, f"{handle.get_attribute('name')}={handle.input_value()}")
    page.mouse.up()


def grave(page, themes, without=None):
    """What axe-core finds that is serious or critical: in the colours of themes, without themes in all else.

    Args:
        page: the page.
        themes: of ``THEMES``.
        without: a selector of what it is not to look at: it takes long over the colours of thousands of elements.
    """
    page.evaluate(AXE)
    place = {"exclude": [[without]]} if without else None

    def violations(**rules):
        # Of all else one element is told, not each.
        how = {"resultTypes": ["violations"], **rules}
        run = "async ([place, how]) => (await axe.run(place ?? document, how)).violations"
        return page.evaluate(run, [place, how])

    found = []
    if not themes:
        found += violations(rules={"color-contrast": {"enabled": False}})
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        found += violations(runOnly=["color-contrast"])
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:200]} {node['failureSummary']}"
        for one in found
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


def width(page):
    """How wide the page is, and how wide the window."""
    return page.evaluate("[document.scrollingElement.scrollWidth, document.scrollingElement.clientWidth]")

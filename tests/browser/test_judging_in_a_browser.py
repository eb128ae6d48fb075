"""Forty queries judged by keyboard alone, with a reload in the middle, and the judgements replayed as a dataset."""

import json

import pytest
from command_line import langshift
from console_page import DESK, PHONE, THEMES, grave, width
from playwright.sync_api import expect

from langshift.evaluate.runs import read_run

QUERIES = 40
KEYS = {"left": "ArrowLeft", "right": "ArrowRight"}


@pytest.fixture(scope="module")
def shifted(demo):
    """Query id -> the documents that the shifted index finds."""
    return read_run(demo.results / "demo" / "shifted" / "run.trec")


def shown(page, place):
    """The documents of a list."""
    hits = page.locator(f"section[aria-labelledby={place}-heading] ol.hits > li.hit")
    return hits.evaluate_all("all => all.map(one => one.dataset.id)")


def press(page, key):
    with page.expect_navigation():
        page.keyboard.press(key)


def judge(page, shifted):
    """Prefer the list of the shifted index, whichever side that is on; the query's id."""
    query = page.locator("[name=query]").input_value()
    first = sorted(shifted[query], key=lambda name: -shifted[query][name])[:10]
    place = "left" if shown(page, "left") == first else "right"
    assert shown(page, place) == first
    press(page, KEYS[place])
    return query


def check_page(page, themes):
    """It fits, and axe-core finds nothing serious."""
    wide, window = width(page)
    assert wide <= window
    assert grave(page, themes) == []


def test_forty_queries_by_keyboard_alone(sessions, demo, shifted, cluster_url, tmp_path):
    page = sessions.page(color_scheme="light")
    page.goto("/evaluations")
    for name in ("demo/plain", "demo/shifted"):
        page.get_by_role("checkbox", name=name, exact=True).focus()
        page.keyboard.press("Space")
    page.get_by_role("button", name="Judge two runs side by side").focus()
    press(page, "Enter")
    check_page(page, ())
    page.get_by_role("button", name="Begin").focus()
    press(page, "Enter")
    judged = [judge(page, shifted) for _ in range(QUERIES // 2)]

    check_page(page, THEMES)
    page.set_viewport_size(PHONE)
    check_page(page, ())
    page.set_viewport_size(DESK)
    query = page.locator("[name=query]").input_value()
    page.reload()
    expect(page.locator("#judged")).to_have_text(f"{len(judged)} of {total(page)}")
    assert page.locator("[name=query]").input_value() == query
    press(page, "u")
    assert page.locator("[name=query]").input_value() == judged.pop()
    # Held down, a key judges once.
    with page.expect_navigation():
        page.keyboard.down("b")
    page.keyboard.down("b")
    page.keyboard.up("b")
    expect(page.locator("#judged")).to_have_text(f"{len(judged) + 1} of {total(page)}")
    press(page, "n")
    judged += [judge(page, shifted) for _ in range(QUERIES - len(judged) - 2)]
    expect(page.locator("#judged")).to_have_text(f"{QUERIES} of {total(page)}")
    page.get_by_role("button", name="End judging and show which run is which").focus()
    press(page, "Enter")

    rows = page.locator("#wins tbody tr").evaluate_all("all => all.map(one => one.innerText.split(/\\t/))")
    counts = {name: int(count) for name, count, _ in rows}
    assert counts == {
        "demo/plain is better": 0,
        "demo/shifted is better": QUERIES - 2,
        "both are equally good": 1,
        "neither is any good": 1,
    }
    check_page(page, THEMES)
    page.set_viewport_size(PHONE)
    check_page(page, ())
    (folder,) = (demo.results / "judgements").iterdir()
    expect(page.locator("pre")).to_contain_text(str(folder))
    asked = ["--index", demo.plain, "--index", demo.shifted, "--measures", "nDCG@10"]
    done = langshift("evaluate", "replay", folder, *asked, "--output", tmp_path / "again", url=cluster_url)
    assert done.returncode == 0, done.stderr
    plain, better = (json.loads((tmp_path / "again" / name / "result.json").read_text()) for name in asked[1:4:2])
    assert plain["queries"]["asked"] == QUERIES
    assert plain["measures"]["nDCG@10"] < better["measures"]["nDCG@10"]


def total(page):
    """How many queries there are to judge, as the page has it."""
    return page.locator("#judged").inner_text().split()[-1]

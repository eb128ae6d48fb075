"""Every page at both widths: it fits, and axe-core finds nothing serious; nor in its colours, light and dark."""

import pytest
from console_page import DESK, PHONE, THEMES, address, grave, question, width
from playwright.sync_api import expect
from reported import report, write_runs

# On a page of thousands of elements axe-core takes half a minute over the colours of its tables.
LONG = "report of the demo"


@pytest.fixture
def small_report(tmp_path):
    """A report of two small runs, with tables of every kind: as shaded as can be, and not at all."""
    runs = write_runs(tmp_path, ("plain", "shifted"))
    done = report(*runs)
    assert done.exit_code == 0, done.output
    return runs[-1] / "report.html"


def addresses(demo, small_report):
    """Every kind of page, by name."""
    asked = address(demo, question("ar"), right_mode="hybrid", right_one="1", left_alpha="0.3", size=3)
    return {
        "search": address(demo),
        "results": asked,
        "filtered": address(
            demo, question("en"), filter="language=ar,th", facet="group", sort="group:desc", left_mode="lexical", size=3
        ),
        "pages": address(demo, question("en"), size=3, **{"from": 3}),
        "anchored": address(demo, question("en"), right_mode="anchored", size=3),
        "why": address(demo, question("en")).replace("/search?", "/search/hit?") + "&side=right&id=allergy-ar",
        "indices": "/indices",
        "index": f"/indices/{demo.shifted}",
        "evaluations": "/evaluations",
        # As the console shows it, it is the same but in a sandbox, in which axe-core cannot run either.
        "report": small_report.as_uri(),
        LONG: (demo.results / "demo" / "report.html").as_uri(),
        "trouble": "/nowhere",
    }


# The colours are the same at any width, and all that is not a colour is looked at on the phone.
@pytest.mark.parametrize(("size", "themes"), [(DESK, THEMES), (PHONE, ())], ids=["desk", "phone"])
def test_it_fits_and_is_for_everybody(sessions, demo, small_report, size, themes):
    sessions.expected = {404}
    page = sessions.page(color_scheme="light", viewport=size)
    wrong, places = [], addresses(demo, small_report)
    for name, place in places.items():
        page.goto(place)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        wide, window = width(page)
        if wide > window:
            wrong.append(f"{name} is {wide} px wide in a window of {window}")
        # The same tables are in the small report.
        without = "table" if themes and name == LONG else None
        wrong += [f"{name}: {one}" for one in grave(page, themes, without)]
    page.goto(places["results"])
    page.get_by_role("link", name="Why is this hit at rank 1 on the right?", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    wide, inside = page.get_by_role("dialog").evaluate("one => [one.scrollWidth, one.clientWidth]")
    if wide > inside:
        wrong.append(f"the dialog is {wide} px wide in {inside}")
    wrong += [f"dialog: {one}" for one in grave(page, themes)]
    assert wrong == [], "\n".join(wrong)


def test_dark_is_dark(sessions):
    colours = []
    for theme in THEMES:
        page = sessions.page(color_scheme=theme)
        page.goto("/search")
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        colours.append(sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")))
    light, dark = colours
    assert light > 600
    assert dark < 150

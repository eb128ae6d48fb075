"""The search page by keyboard alone."""

import re

from console_page import address, hits, ids, question, settled
from playwright.sync_api import expect

_FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  return {
    name: one.id || one.name || one.getAttribute("aria-label") || one.textContent.trim().slice(0, 40) || one.tagName,
    tag: one.tagName,
    seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.width > 0 && box.bottom > 0,
  };
}"""


def tab_to(page, selector):
    """Press Tab until this element has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not lead to {selector}")


def test_a_search_from_the_first_key_to_the_last(page, demo):
    page.goto(address(demo))
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type(question("en"))
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(hits(page, "right")).to_have_count(10)
    tab_to(page, "#right-alpha-slider")
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    settled(page, "right.alpha=0.98")
    tab_to(page, "#right-prefer-slider")
    page.keyboard.press("ArrowRight")
    settled(page, "right.prefer=0.005")
    tab_to(page, "[name='right.one']")
    page.keyboard.press("Space")
    settled(page, "right.one=1")
    tab_to(page, "section[aria-labelledby=left-heading] .why a")
    name = ids(page, "left")[0]
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Why this hit")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.evaluate("document.activeElement.closest('li').dataset.id") == name
    tab_to(page, "#left-request > summary")
    page.keyboard.press("Enter")
    expect(page.locator("#left-request pre").first).to_be_visible()


def test_focus_is_seen_on_everything_that_takes_it(page, demo):
    page.goto(address(demo, question("en"), right_mode="hybrid"))
    stops = []
    for _ in range(150):
        page.keyboard.press("Tab")
        stop = page.evaluate(_FOCUSED)
        if stop["tag"] == "BODY":
            break
        stops.append(stop)
    else:
        raise AssertionError("the focus never leaves the page")
    assert [stop["name"] for stop in stops if not stop["seen"]] == []
    names = [stop["name"] for stop in stops]
    wanted = ["q", "lang", "size", "left-index", "left.mode", "left-alpha-slider", "left-prefer-slider", "left.one"]
    wanted += ["right-index", "right.mode", "right-alpha-slider", "right-prefer-slider", "right-weight-slider"]
    wanted += ["right-fusion", "right.one"]
    # In this order, and each once.
    assert [name for name in names if name in wanted] == wanted
    assert sum(bool(re.match("Why is this hit", name)) for name in names) == 20

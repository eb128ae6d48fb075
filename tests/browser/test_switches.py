"""The switches of each side, and other indices on it."""

import re

import pytest
from console_page import address, drag, hits, ids, question, settled, slider
from playwright.sync_api import expect

WORDS = question("en")


def mode(page, place, name):
    return page.locator(f"input[name='{place}.mode'][value={name}]")


@pytest.mark.parametrize("name", ["lexical", "hybrid", "balanced", "anchored"])
def test_a_mode_finds_what_the_library_finds(page, demo, found, name):
    page.goto(address(demo, WORDS))
    before = ids(page, "left")
    mode(page, "right", name).check()
    settled(page, f"right.mode={name}")
    assert ids(page, "right") == [hit.id for hit in found(demo.shifted, WORDS, mode=name)]
    expect(page.locator("#right-heading small")).to_contain_text(name)
    assert ids(page, "left") == before
    mode(page, "right", "auto").check()
    expect(page).not_to_have_url(re.compile(r"right\.mode"))


def test_anchored_says_why_alpha_stays(page, demo):
    page.goto(address(demo, WORDS))
    mode(page, "right", "anchored").focus()
    page.keyboard.press("Space")
    settled(page, "right.mode=anchored")
    expect(slider(page, "right", "alpha")).to_have_count(0)
    expect(page.locator("#right-alpha")).to_contain_text(
        "With mode anchored, the index is searched as it is, so alpha cannot be changed here."
    )
    expect(slider(page, "left", "alpha")).to_be_visible()


def test_one_of_each_translation_group(page, demo, found):
    page.goto(address(demo, WORDS))
    switch = page.locator("input[name='left.one']")
    switch.check()
    settled(page, "left.one=1")
    groups = [name.rpartition("-")[0] for name in ids(page, "left")]
    assert len(set(groups)) == len(groups) > 1
    assert ids(page, "left") == [hit.id for hit in found(demo.plain, WORDS, one_per_group=True)]
    expect(hits(page, "left").first.locator(".others li")).to_have_count(11)
    switch.uncheck()
    expect(page).not_to_have_url(re.compile(r"left\.one"))
    expect(hits(page, "left").locator(".others")).to_have_count(0)


def test_each_page_once_where_most_are_translated(page, demo, found):
    page.goto(address(demo, WORDS, once=""))
    pages = [name.rpartition("-")[0] for name in ids(page, "left")]
    assert len(set(pages)) == len(pages) > 1
    # By the best hit of each, as any client's `collapse`, also at another alpha.
    best = {}
    for hit in found(demo.plain, WORDS, size=100):
        best.setdefault(hit.group, hit.id)
    assert ids(page, "left") == list(best.values())[:10]
    drag(page, slider(page, "right", "alpha"), 0.5)
    settled(page, "right.alpha=0.5")
    pages = [name.rpartition("-")[0] for name in ids(page, "right")]
    assert len(set(pages)) == len(pages)
    page.locator("#once").select_option("all")
    settled(page, "once=0")
    assert ids(page, "left") == [hit.id for hit in found(demo.plain, WORDS)]
    page.locator("#once").select_option("each page once")
    expect(page).not_to_have_url(re.compile("once"))


def test_the_same_index_on_both_sides(page, demo):
    page.goto(address(demo, WORDS))
    page.locator("#left-index").select_option(demo.shifted)
    settled(page, f"left={demo.shifted}")
    assert ids(page, "left") == ids(page, "right")
    expect(hits(page, "right").locator(".change.same")).to_have_count(10)
    # Alpha is that of the index that was chosen.
    expect(slider(page, "left", "alpha")).to_have_value("1")

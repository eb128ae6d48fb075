"""A person opens a hit to see why it is there."""

import re

from console_page import address, hits, ids, question, settled
from playwright.sync_api import expect

WORDS = question("en")


def link(page, place, rank=1):
    return page.get_by_role("link", name=f"Why is this hit at rank {rank} on the {place}?", exact=True)


def similarities(place):
    """The rows of the table: name, similarity, what the text gives, what the language vector gives, rank."""
    table = place.get_by_role("table").filter(has_text="Cosine similarity")
    return [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]


def check_similarities(place):
    before, indexed = similarities(place)
    assert before[0] == "Before any shift: alpha 0"
    assert indexed[0] == "As indexed: alpha 1"
    for row in (before, indexed):
        value, own, language = (float(cell) for cell in row[1:4])
        assert abs(value - own - language) < 0.0002
    assert float(before[3]) == 0
    return before, indexed


def test_a_click_opens_why_and_escape_goes_back(page, demo):
    page.goto(address(demo, WORDS, right_mode="hybrid"))
    here, rank = page.url, 2
    link(page, "right", rank).click()
    dialog = page.get_by_role("dialog", name="Why this hit")
    expect(dialog).to_be_visible()
    assert dialog.evaluate("one => one.contains(document.activeElement)")
    # Tab never leads to the page below.
    for _ in range(20):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "[document.body, ...document.querySelectorAll('dialog, dialog *')].includes(document.activeElement)"
        )
    title = hits(page, "right").nth(rank - 1).locator("h3").inner_text()
    expect(dialog.locator("strong").first).to_have_text(title)
    check_similarities(dialog)
    legs = dialog.get_by_role("region", name="Legs of the search")
    expect(legs).to_contain_text("Meaning: the query's vector (dense)")
    expect(dialog).to_contain_text(f"rank {rank}, score")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(link(page, "right", rank)).to_be_focused()
    assert page.url == here


def test_the_close_button_and_a_second_hit(page, demo):
    page.goto(address(demo, WORDS))
    dialog = page.get_by_role("dialog")
    for rank in (1, 3):
        link(page, "left", rank).click()
        expect(dialog).to_contain_text(f"rank {rank}, score")
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_be_hidden()


def test_a_moved_alpha_has_a_row_of_its_own(page, demo):
    page.goto(address(demo, WORDS, right_alpha="0.5"))
    settled(page, "right.alpha=0.5")
    link(page, "right").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("As selected: alpha 0.5")
    before, indexed, looked = similarities(dialog)
    expected = hits(page, "right").first.locator(".score").text_content().split()[-1]
    assert abs((1 + float(looked[1])) / 2 - float(expected)) < 0.0002
    assert looked[4] == "1"
    assert (before[0], indexed[0]) == ("Before any shift: alpha 0", "As indexed: alpha 1")


def test_anchored_shows_its_anchors(page, demo):
    page.goto(address(demo, WORDS, right_mode="anchored"))
    link(page, "right").click()
    anchors = page.get_by_role("dialog").get_by_role("region", name="Anchors")
    rows = anchors.locator("tbody tr")
    expect(rows.first).to_be_visible()
    for row in rows.all():
        _, _, trust, weight = row.locator("th, td").all_inner_texts()
        assert 0 <= float(trust) <= 1
        assert re.fullmatch(r"\d\.\d{3}", weight)


def test_without_script_the_page_is_read_and_used(sessions, demo, found):
    page = sessions.page(java_script_enabled=False)
    page.goto(address(demo))
    page.get_by_role("searchbox", name="Query").fill(WORDS)
    page.get_by_label("Hits", exact=True).fill("5")
    page.locator("input[name='left.mode'][value=balanced]").check()
    page.get_by_role("button", name="Search").click()
    settled(page, "size=5", "left.mode=balanced")
    assert "left.for" not in page.url
    # Moving a slider needs the button, and nothing more.
    page.locator("#right-alpha-slider").fill("0")
    page.get_by_role("button", name="Search").click()
    settled(page, "right.alpha=0")
    shown = {
        place: page.locator(f"section[aria-labelledby={place}-heading] li.hit").count() for place in ("left", "right")
    }
    assert shown == {"left": 5, "right": 5}
    expected = found(demo.plain, WORDS, size=5)
    for hit, item in zip(expected, hits(page, "right").all(), strict=True):
        expect(item).to_have_attribute("data-id", hit.id)
    page.get_by_text("Show request of the left search").click()
    expect(page.locator("#left-request pre").first).to_be_visible()
    link(page, "left").click()
    expect(page.get_by_role("heading", name="Why this hit")).to_be_visible()
    check = similarities(page.locator("main"))
    assert [row[0] for row in check] == ["Before any shift: alpha 0", "As indexed: alpha 0"]
    page.get_by_role("link", name="Back to the search").click()
    expect(page.get_by_role("heading", name="Search, side by side")).to_be_visible()


def test_a_hit_of_which_nothing_is_known_is_a_sentence(page, demo, sessions):
    sessions.expected = {404}
    page.goto(address(demo, WORDS).replace("/search?", "/search/hit?") + "&side=left&id=nobody")
    expect(page.get_by_role("alert")).to_have_text(f"There is no document 'nobody' in {demo.plain}.")
    assert ids(page, "left") == []

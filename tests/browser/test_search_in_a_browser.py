"""A person searches: five scripts, both sides, and everything that a hit tells."""

import re

import pytest
from console_page import PLACES, address, hits, ids, question, scores, settled
from playwright.sync_api import expect

RIGHT_TO_LEFT = {"ar"}
# Of all hits of a side at once: to ask for each of these things alone is two hundred questions a page.
_TOLD = """all => all.map(one => {
  const part = place => {
    const found = one.querySelectorAll(place);
    if (found.length !== 1) throw new Error(`${found.length} of ${place}`);
    return found[0];
  };
  const words = place => ({
    text: part(place).innerText,
    lang: part(place).getAttribute("lang"),
    dir: part(place).getAttribute("dir"),
    direction: getComputedStyle(part(place)).direction,
  });
  return {
    id: one.dataset.id,
    tag: part(".line .badge").innerText,
    words: [words("h3"), words(".snippet")],
    mine: one.querySelectorAll(".mine").length,
    change: part(".change").innerText,
    score: part(".score").textContent,
  };
})"""


@pytest.mark.parametrize("language", ["en", "ru", "ar", "th", "zh"])
def test_a_question_in_each_of_five_scripts_is_answered_on_both_sides(page, demo, language):
    words = question(language)
    page.goto(address(demo))
    page.get_by_role("searchbox", name="Query").fill(words)
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#results [role=status]")).to_have_text(
        re.compile(rf"Results for {re.escape(words)}, a query in\s+{language} \(detected\)\.")
    )
    echo = page.locator("#results q").first
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    for element in (echo, page.locator("#q")):
        assert element.evaluate("one => getComputedStyle(one).direction") == direction
    for place in PLACES:
        expect(hits(page, place)).to_have_count(10)
        for hit in hits(page, place).evaluate_all(_TOLD):
            _check(hit, language)


def _check(hit, searched_in):
    """A hit says its language, and its words are marked and run as that language's."""
    tag = hit["tag"]
    assert hit["id"].endswith(f"-{tag}")
    direction = "rtl" if tag in RIGHT_TO_LEFT else "ltr"
    for words in hit["words"]:
        assert words["text"].strip()
        assert (words["lang"], words["dir"], words["direction"]) == (tag, direction, direction)
    assert hit["mine"] == (tag == searched_in)
    assert re.fullmatch(r"[▲▼=○] .+", hit["change"])
    assert re.fullmatch(r"Score [01]\.\d{4}", hit["score"])


def test_the_hits_are_those_of_the_library(page, demo, found):
    words = question("en")
    page.goto(address(demo, words))
    for place, index in zip(PLACES, (demo.plain, demo.shifted), strict=True):
        expected = found(index, words)
        assert ids(page, place) == [hit.id for hit in expected]
        assert scores(page, place) == [f"{hit.score:.4f}" for hit in expected]


def test_a_hit_says_where_it_stands_on_the_other_side(page, demo):
    page.goto(address(demo, question("en"), size=20))
    there = {name: rank for rank, name in enumerate(ids(page, "left"), start=1)}
    seen = set()
    for rank, hit in enumerate(hits(page, "right").all(), start=1):
        other, change = there.get(hit.get_attribute("data-id")), hit.locator(".change")
        if other is None:
            continue
        kind = "same" if other == rank else "up" if rank < other else "down"
        expect(change).to_have_class(f"change {kind}")
        if kind != "same":
            expect(change).to_contain_text(str(abs(other - rank)))
        seen.add(kind)
    assert {"up", "down"} <= seen


def test_a_fixed_language_a_number_of_hits_and_languages_of_documents_are_obeyed(page, demo):
    page.goto(address(demo, question("en")))
    page.get_by_label("Query language").select_option("de")
    settled(page, "lang=de")
    expect(page.locator("#results [role=status]")).to_contain_text("a query in de.")
    page.get_by_label("Hits", exact=True).fill("4")
    settled(page, "size=4")
    for place in PLACES:
        expect(hits(page, place)).to_have_count(4)
    page.get_by_role("list", name="language of documents on the right").get_by_role("link", name="th").click()
    settled(page, "filter=language%3Dth")
    page.get_by_label("Only documents that match").fill("language=th,ar\ngroup!=allergy")
    settled(page, "filter=language%3Dth%2Car", "filter=group%21%3Dallergy")
    for place in PLACES:
        expect(hits(page, place)).to_have_count(4)
        parts = [name.rpartition("-") for name in ids(page, place)]
        assert {tag for _, _, tag in parts} <= {"ar", "th"}
        assert "allergy" not in {topic for topic, _, _ in parts}


def test_typing_asks_without_a_button(page, demo):
    page.goto(address(demo))
    page.locator("#q").press_sequentially("honey", delay=20)
    settled(page, "q=honey")
    expect(hits(page, "left")).to_have_count(10)


def test_nothing_that_can_be_searched_for_is_a_sentence(page, demo, sessions):
    sessions.expected = {400}
    page.goto(address(demo, "honey", left_alpha="7"))
    expect(page.get_by_role("alert")).to_contain_text("left.alpha is '7', but it must be a number from 0 to 1")

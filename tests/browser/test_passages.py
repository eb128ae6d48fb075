"""A person searches an index of chunks, and asks for more of a document."""

from urllib.parse import urlencode

import pytest
from chunked_index import BREAD, PARAGRAPHS, paragraph_index
from console_page import hits, ids, settled, slider
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def chunked(client, cluster_url, tmp_path_factory):
    with paragraph_index(client, cluster_url, tmp_path_factory.mktemp("corpus")) as name:
        yield name


def test_a_hit_is_a_document_whose_passages_open_over_the_list(page, chunked):
    page.goto(
        "/search?" + urlencode({"q": BREAD, "left": chunked, "right": chunked, "once": "0", "right.mode": "hybrid"})
    )
    for place in ("left", "right"):
        assert sorted(ids(page, place)) == sorted(PARAGRAPHS)
        best = hits(page, place).filter(has_text="Passage 3 of 3")
        expect(best).to_have_attribute("data-id", "harbour")
        expect(best.locator(".snippet")).to_have_text(PARAGRAPHS["harbour"][2])
        alone = hits(page, place).filter(has_text="River")
        expect(alone).not_to_contain_text("assage")
    hits(page, "right").filter(has_text="Harbour").get_by_role("link", name="More passages").click()
    dialog = page.get_by_role("dialog", name="Passages")
    expect(dialog.locator("li.hit")).to_have_count(3)
    expect(dialog.locator("li.hit .whole").first).to_have_text(PARAGRAPHS["harbour"][2])
    expect(dialog.locator("li.hit .change").first).to_contain_text("passage 3 of 3, characters ")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()


def test_sliders_and_why_go_by_the_best_passage(page, chunked):
    page.goto(
        "/search?" + urlencode({"q": BREAD, "left": chunked, "right": chunked, "once": "0", "right.mode": "dense"})
    )
    slider(page, "right", "alpha").fill("0.4")
    settled(page, "right.alpha=0.4")
    assert sorted(ids(page, "right")) == sorted(PARAGRAPHS)
    expect(hits(page, "right").filter(has_text="Passage 3 of 3")).to_have_attribute("data-id", "harbour")
    hits(page, "right").filter(has_text="Harbour").get_by_role("link", name="Why is this hit").click()
    dialog = page.get_by_role("dialog", name="Why this hit")
    expect(dialog).to_contain_text("Its best passage here: passage 3 of 3, characters")
    expect(dialog.locator("p.whole")).to_have_text(PARAGRAPHS["harbour"][2])
    expect(dialog.get_by_role("table").filter(has_text="Cosine similarity").locator("tbody tr")).to_have_count(3)

"""The overview of an index, as a person reads it."""

import re

import pytest
from playwright.sync_api import expect

from langshift.evaluate.datasets.dataset import load_dataset


@pytest.fixture(scope="module")
def languages(demo):
    """The twelve of the demo."""
    return sorted({one.language for one in load_dataset(demo.dataset).documents.values()})


def test_all_indices_lead_to_one(page, demo):
    page.goto("/indices")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=demo.shifted, exact=True))
    for cell in ("live", "48", "use-m"):
        expect(row).to_contain_text(cell)
    row.get_by_role("link", name=demo.shifted, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(demo.shifted)


def test_the_overview_of_an_index(page, demo, languages):
    page.goto(f"/indices/{demo.shifted}")
    expect(page.get_by_text(re.compile(r"48 documents in\s+12 languages"))).to_be_visible()
    rows = page.get_by_role("region", name="Documents by language").locator("tbody tr")
    shown = [[cell.strip() for cell in row.locator("th, td").all_inner_texts()[:3]] for row in rows.all()]
    assert sorted(shown) == [[tag, "4", "8.3%"] for tag in languages]
    expect(page.locator("dl.facts")).to_contain_text("use-m")
    versions = page.get_by_role("region", name="Versions").locator("tbody tr")
    expect(versions).to_have_count(1)
    expect(versions).to_contain_text("live")
    expect(page.get_by_text(f"There are no dead letters of {demo.shifted}")).to_be_visible()
    page.get_by_role("link", name="Search it").click()
    expect(page.locator("#left-index")).to_have_value(demo.shifted)

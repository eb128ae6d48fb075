"""The cluster goes away and comes back while a person looks on."""

from console_page import address, hits, question
from playwright.sync_api import expect


def test_a_page_says_so_and_recovers_by_itself(page, demo, way, sessions):
    sessions.expected = {503}
    way.cut()
    page.goto(address(demo, question("en")))
    away = page.get_by_role("heading", name="The cluster is not available")
    expect(away).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text(f"The cluster at {way.url} ")
    # It asks again and again, without this test's help.
    with page.expect_response(lambda answer: answer.status == 503):
        pass
    expect(away).to_be_visible()
    way.clear()
    expect(hits(page, "left")).to_have_count(10)
    expect(away).to_be_hidden()


def test_a_switch_that_needs_the_cluster_waits_for_it_too(page, demo, way, sessions):
    sessions.expected = {503}
    # What another test has asked is known.
    page.goto(address(demo, f"{question('en')} Who knows?"))
    way.cut()
    page.locator("input[name='right.mode'][value=anchored]").check()
    expect(page.get_by_role("heading", name="The cluster is not available")).to_be_visible()
    way.clear()
    expect(hits(page, "right")).to_have_count(10)
    expect(page.locator("input[name='right.mode'][value=anchored]")).to_be_checked()

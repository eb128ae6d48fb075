"""A link reproduces a view, and a request that is shown does what the page did."""

import json
import os
import shutil
import subprocess

import pytest
from console_page import PLACES, address, ids, question, scores, settled, slider
from playwright.sync_api import expect

WORDS = question("ru")


def view(page):
    """All that a person sees of hits and sliders."""
    fields = "all => all.filter(one => one.type !== 'hidden').map(one => [one.name, one.value, one.checked])"
    return (
        {place: (ids(page, place), scores(page, place)) for place in PLACES},
        page.locator("form[role=search] :is(input, select)").evaluate_all(fields),
        page.locator("form[role=search] output").all_text_contents(),
    )


def test_a_link_followed_in_a_fresh_session_shows_the_same(page, sessions, demo):
    page.goto(address(demo, WORDS))
    page.get_by_label("Hits", exact=True).fill("7")
    settled(page, "size=7")
    slider(page, "right", "alpha").fill("0.42")
    settled(page, "right.alpha=0.42")
    page.locator("input[name='left.mode'][value=hybrid]").check()
    settled(page, "left.mode=hybrid")
    slider(page, "left", "weight").fill("0.55")
    slider(page, "left", "prefer").fill("-0.03")
    settled(page, "left.weight=0.55", "left.prefer=-0.03")
    there = sessions.page()
    there.goto(page.url)
    assert view(there) == view(page)
    assert there.url == page.url
    expect(slider(there, "right", "alpha")).to_have_value("0.42")
    expect(slider(there, "left", "weight")).to_have_value("0.55")
    expect(slider(there, "left", "prefer")).to_have_value("-0.03")
    # And the same once more after a reload.
    page.reload()
    assert view(there) == view(page)


@pytest.mark.parametrize("how", [{}, {"left_prefer": "0.02"}, {"left_mode": "hybrid"}, {"left_mode": "lexical"}])
def test_the_curl_line_gives_the_hits_that_are_shown(page, demo, cluster_url, how):
    if shutil.which("curl") is None:
        pytest.skip("no curl to run the line with")
    page.goto(address(demo, WORDS, **how))
    page.locator("#left-request > summary").click()
    dsl, curl = (page.locator("#left-request pre").nth(number) for number in (0, 1))
    expect(dsl).to_be_visible()
    assert dsl.inner_text().startswith(f"POST /{demo.plain}")
    line = curl.text_content()
    assert line.startswith('curl -X POST "$OPENSEARCH_URL/')
    env = dict(os.environ, OPENSEARCH_URL=cluster_url)
    done = subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, check=True, timeout=60)
    answer = json.loads(done.stdout)
    (answer, *others) = answer.get("responses", [answer])
    names = [hit["_id"] for hit in answer["hits"]["hits"]]
    if others:
        names = sorted({*names, *(hit["_id"] for one in others for hit in one["hits"]["hits"])}, key=names.index)
    assert set(ids(page, "left")) <= set(names)
    if not how:
        assert names[:10] == ids(page, "left")


def test_a_moved_alpha_names_the_command_that_keeps_it(page, demo):
    page.goto(address(demo, WORDS, right_alpha="0.42"))
    page.locator("#right-request > summary").click()
    expect(page.locator("#right-request pre").first).to_have_text(f"langshift retune {demo.shifted} --alpha 0.42")
    # What is unfolded stays so while a slider moves.
    slider(page, "right", "alpha").fill("0.43")
    settled(page, "right.alpha=0.43")
    expect(page.locator("#right-request pre").first).to_have_text(f"langshift retune {demo.shifted} --alpha 0.43")
    expect(page.locator("#right-request pre").first).to_be_visible()

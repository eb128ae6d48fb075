"""Script in a title, in a query and in a language's tag is text on every page where it comes up."""

import json
import uuid

import pytest
from console_page import address, hits
from playwright.sync_api import expect

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.evaluate.demo import FOLDER
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin.inventory import drop_all

TITLES = (
    "<script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "\"'><svg onload=document.title='pwned'>",
)
QUERY = "</q></textarea><script>document.title='pwned'</script><img src=x onerror=alert(1)> \" ' onfocus=alert(1)"
TAG = "<img src=x onerror=alert(1)>"
TOPICS = ("allergy", "bread", "tides")


@pytest.fixture(scope="module")
def hostile(demo, client, tmp_path_factory):  # noqa: ARG001 - the demo comes first
    """An index whose documents have these titles, and of which one is in a language of that tag."""
    name = f"langshift-test-{uuid.uuid4().hex[:8]}-hostile"
    lines = (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [one for one in map(json.loads, lines) if one["group"] in TOPICS]
    for number, one in enumerate(documents):
        one["title"] = TITLES[number % len(TITLES)]
    corpus = tmp_path_factory.mktemp("hostile") / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
    making = build_pipeline(open_encoder("use-m"), open_detector(), None, 1.0)
    load(client, str(corpus), name, making, lambda *_: None, LoadOptions(if_exists="replace"))
    # The way around langshift, which writes no such tag.
    client.update(index=name, id="bread-en", body={"doc": {"language": TAG}}, params={"refresh": "true"})
    yield name
    drop_all(client, name)


def check(page):
    """Nothing of it has run: no script, no picture, no title."""
    assert page.title() != "pwned"
    assert page.locator("main :is(script, img)").count() == 0
    assert page.locator("main [onerror], main [onload], main [onfocus]").count() == 0


def test_search_and_why(page, demo, hostile):
    page.goto(address(demo, QUERY, left=hostile, right=hostile, right_alpha="0.5", size=36))
    expect(page.locator("#q")).to_have_value(QUERY)
    expect(page.locator("#results q").first).to_have_text(QUERY)
    expect(hits(page, "left")).to_have_count(36)
    titles = hits(page, "left").locator("h3").all_text_contents()
    assert sorted(titles) == sorted(TITLES * 12)
    one = page.locator("section[aria-labelledby=left-heading] li[data-id=bread-en]")
    expect(one.locator(".badge").first).to_have_text(TAG)
    check(page)
    page.locator("#left-request > summary").click()
    one.get_by_role("link").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("q").first).to_have_text(QUERY)
    expect(dialog.locator(".badge").first).to_have_text(TAG)
    check(page)
    title = one.locator("h3").text_content()
    page.goto(one.get_by_role("link").get_attribute("href"))
    expect(page.locator("main strong").first).to_have_text(title)
    check(page)


def test_the_index_pages(page, hostile):
    page.goto(f"/indices/{hostile}")
    expect(page.get_by_role("region", name="Documents by language")).to_contain_text(TAG)
    check(page)


def test_what_an_address_names(page, sessions, demo):
    sessions.expected = {400, 404}
    for place in (
        f"/indices/{TAG}",
        f"/evaluations/report?run={TAG}",
        address(demo, "x", left=TAG),
        address(demo, "x", lang=TAG),
        address(demo, "x", right_mode=TAG),
        address(demo, "x", filter=TAG),
    ):
        page.goto(place)
        expect(page.get_by_role("alert")).to_contain_text("<img src=x")
        check(page)


def test_a_report(page, demo):
    """Of a run whose index is called so."""
    folder = demo.results / "hostile"
    folder.mkdir(exist_ok=True)
    for file in (demo.results / "demo" / "plain").iterdir():
        words = file.read_text(encoding="utf-8")
        if file.name == "result.json":
            words = words.replace(demo.plain, json.dumps(TAG)[1:-1])
        (folder / file.name).write_text(words, encoding="utf-8")
    page.goto("/evaluations")
    expect(page.locator("table.runs")).to_contain_text(TAG)
    check(page)
    page.goto("/evaluations/report?run=demo%2Fshifted&run=hostile")
    expect(page.locator("body")).to_contain_text(TAG)
    assert page.locator("img[src], script").count() == 0

"""Replays are started, watched, cancelled and gone on with, and runs are compared."""

import json
import re

import pytest
from faults import delayed
from playwright.sync_api import expect

SECONDS = 0.5


def row(page, name):
    return page.locator("table.runs tbody tr").filter(has=page.get_by_role("checkbox", name=name))


def test_a_replay_is_started_watched_cancelled_and_gone_on_with(page, demo, way):
    # Slow enough for a person to look at, however fast the machine is.
    way.hold(delayed(SECONDS), "search")
    page.goto("/evaluations")
    page.get_by_label("Dataset").select_option("few")
    page.get_by_label("Index").select_option(demo.plain)
    page.get_by_label("Mode").select_option("lexical")
    page.get_by_role("button", name="Start").click()
    running = page.get_by_role("heading", name="A replay is running")
    expect(running).to_be_visible()
    # The bar moves by itself.
    bar = page.get_by_role("progressbar", name="Answered queries")
    expect(bar).to_have_attribute("value", re.compile(r"[1-9]\d*"))
    expect(bar).to_have_attribute("max", "264")
    page.reload()
    expect(running).to_be_visible()
    expect(bar).to_have_attribute("value", re.compile(r"[1-9]\d*"))
    expect(page.locator("section.replay")).to_contain_text(demo.plain)
    page.get_by_role("button", name="Cancel").click()
    expect(running).to_be_hidden()
    cut = page.get_by_text(re.compile(r"Interrupted: [\d,]+ queries are answered"))
    expect(cut).to_be_visible()
    way.clear()
    page.get_by_role("button", name=re.compile("Resume")).click()
    # The page waits for the end, and then shows the run: a process that begins anew, on a machine that may be busy.
    expect(page.get_by_role("button", name="Start")).to_be_visible(timeout=120_000)
    expect(cut).to_be_hidden()
    done = row(page, demo.plain)
    expect(done).to_contain_text("lexical")
    assert done.locator("td.number").all_inner_texts()[-2:] == ["264", "0"]


@pytest.fixture
def report(demo):
    return demo.results / "demo" / "report.html"


def figures(demo):
    """nDCG@20 of both runs as they are written."""
    for name in ("plain", "shifted"):
        document = json.loads((demo.results / "demo" / name / "result.json").read_text())
        yield f"{document['measures']['nDCG@20']:.3f}"


def test_two_runs_are_compared(page, demo):
    page.goto("/evaluations")
    for name in ("demo/plain", "demo/shifted"):
        page.get_by_role("checkbox", name=name, exact=True).check()
    for name, figure in zip(("demo/plain", "demo/shifted"), figures(demo), strict=True):
        expect(row(page, name)).to_contain_text(figure)
    page.get_by_role("button", name="Show the report of the selected runs").click()
    check_report(page, demo)


def test_a_report_in_the_results_folder_is_shown(page, demo):
    page.goto("/evaluations")
    page.get_by_role("link", name=re.compile("^demo")).click()
    check_report(page, demo)


def test_a_report_opens_from_disk_without_a_network(page, sessions, demo, report):
    page.goto(report.as_uri())
    check_report(page, demo)
    page.get_by_role("navigation", name="Contents").get_by_role("link").last.click()
    expect(page.get_by_role("heading", level=2).last).to_be_in_viewport()
    assert {url.partition("#")[0] for url in sessions.requests} == {report.as_uri()}


def check_report(page, demo):
    """A report of both indices, with figures and the numbers of the runs."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("img").first).to_be_visible()
    for figure in figures(demo):
        expect(page.locator("main")).to_contain_text(figure)
    for name in (demo.plain, demo.shifted):
        expect(page.locator("body")).to_contain_text(name)
    assert page.locator("script").count() == 0

"""Runs and reports are shown and compared, with the command that makes a run."""

import json
import re

import pytest
from playwright.sync_api import expect


def row(page, name):
    return page.locator("table.runs tbody tr").filter(has=page.get_by_role("checkbox", name=name))


def test_a_click_selects_the_command_that_makes_a_run(page, demo):
    page.goto("/evaluations")
    page.get_by_text("langshift evaluate replay").click()
    command = f"langshift evaluate replay DATASET --index NAME --output {demo.results / 'NAME'}"
    assert page.evaluate("getSelection().toString().trim()") == command


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

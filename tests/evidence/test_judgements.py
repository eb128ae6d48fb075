"""From a log to judgements and on to other tools: replayed, compared, judged in a browser, measured, exported, read.

The other forms of logs are in tests/cluster/evaluation/test_logs.py.
"""

import csv
import os
import shutil

import pytest
from browsers import find_browser
from console_process import serving
from playwright.sync_api import expect, sync_playwright
from small_dataset import index_of, write_small_dataset

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.plugin.inventory import drop_all

KEYS = ("b", "ArrowLeft", "b", "ArrowRight")


@pytest.fixture
def dataset(tmp_path):
    """The folder of a small dataset."""
    folder = tmp_path / "dataset"
    folder.mkdir()
    write_small_dataset(folder)
    return folder


@pytest.fixture
def indices(client, dataset):
    """A plain and a shifted index of it."""
    made = [index_of(client, dataset, alpha) for alpha in (0.0, 1.0)]
    yield made
    for name in made:
        drop_all(client, name)


def judge_all(url, runs):
    """Judge two runs in a browser by keyboard, to the last query; how many there were."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=arguments)
        page = browser.new_page()
        page.goto(f"{url}/evaluations")
        for name in runs:
            page.get_by_role("checkbox", name=name, exact=True).check()
        page.get_by_role("button", name="Judge two runs side by side").click()
        page.get_by_role("button", name="Begin").click()
        count = 0
        while page.locator("[name=query]").count():
            with page.expect_navigation():
                page.keyboard.press(KEYS[count % len(KEYS)])
            count += 1
        expect(page.get_by_text(f"All {count} queries are judged.")).to_be_visible()
        browser.close()
    return count


def test_from_a_log_to_judgements_and_to_other_tools(cluster_url, dataset, done, indices, tmp_path):
    from mteb.results import TaskResult

    log, results, again = tmp_path / "log.csv", tmp_path / "results", tmp_path / "again"
    with log.open("w", newline="", encoding="utf-8") as file:
        rows = ((1_772_353_800 + place, query.text) for place, query in enumerate(load_dataset(dataset).queries))
        csv.writer(file).writerows([("asked_at", "words"), *rows])
    fields = ("--query-field", "words", "--time-field", "asked_at", "--speed", 1000)
    of_indices = ("--index", indices[0], "--index", indices[1])
    done("evaluate", "replay", "--queries", log, *fields, *of_indices, "--output", results)
    done("evaluate", "compare", *(results / name for name in indices), "--report", tmp_path / "page")
    assert (tmp_path / "page" / "report.html").is_file()

    with serving("--results", results, home=tmp_path / "home", url=cluster_url) as console:
        count = judge_all(console.url.rstrip("/"), indices)
    (judged,) = (results / "judgements").iterdir()
    assert len(load_dataset(judged).queries) == count > 0
    done("evaluate", "replay", judged, *of_indices, "--output", again)

    workbench, back = tmp_path / "workbench", tmp_path / "back"
    done("dataset", "convert", "beir", judged, workbench, "--to", "srw")
    shutil.copy(judged / "corpus.jsonl", workbench)
    done("dataset", "convert", "srw", workbench, back)
    before, after = load_dataset(judged), load_dataset(back)
    assert after.qrels == before.qrels
    texts = {query.id: query.text for query in before.queries if query.id in before.qrels}
    assert {query.id: query.text for query in after.queries} == texts

    figures = tmp_path / "figures.json"
    done("evaluate", "compare", *(again / name for name in indices), "--mteb", figures)
    found = TaskResult.from_disk(figures, load_historic_data=False)
    subsets = {one["hf_subset"]: one for one in found.scores["test"]}
    assert set(subsets) == {query.language for query in before.queries if query.id in before.qrels}
    assert all(one["main_score"] == one["ndcg_at_10"] for one in subsets.values())
    assert found.to_dict()["scores"]["test"] == found.scores["test"]

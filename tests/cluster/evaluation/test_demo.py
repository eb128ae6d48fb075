"""The demo against a real OpenSearch, of few topics; tests/paper has the whole of it, and what the README shows."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from demo_run import demo_document, demo_names
from small_dataset import write_topics

from langshift import errors
from langshift.commands.demo import demo
from langshift.debias.encoders import open_encoder
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import index_variants
from langshift.plugin.versions import live, unfinished, versions_of
from langshift.settings import Settings


@pytest.fixture
def of_topics(tmp_path, monkeypatch):
    """A function that lets the demo have so many topics; gives them as a dataset."""

    def choose(topics):
        folder = tmp_path / f"{topics} topics"
        write_topics(folder, slice(topics))
        for module in ("evaluate.demo", "commands.demo"):
            monkeypatch.setattr(f"langshift.{module}.FOLDER", folder)
        return load_dataset(folder)

    return choose


@pytest.fixture
def names(client):
    with demo_names(client) as names:
        yield names


@pytest.mark.usefixtures("cluster_env")
def test_the_demo_twice(client, tmp_path, monkeypatch, names, of_topics):
    plain, _, shifted = names
    dataset = of_topics(4)

    # A demo that was interrupted is in nobody's way.
    def interrupt(_documents):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_variants(client, open_encoder("use-m"), interrupt)
    assert list(unfinished(client, plain)) == [f"{plain}-v0001"]
    demo_document(names, dataset, tmp_path / "first")
    assert [live(client, name).documents for name in names] == [48, 48, 48]

    # Another demo replaces both indices, leaves nothing of the first, and prints for a person. Without a place to
    # write to, it keeps its runs and the report in langshift's home.
    dataset = of_topics(3)
    said = CliRunner().invoke(demo, [], catch_exceptions=False)
    for name in names:
        assert live(client, name).documents == 36
        assert len(versions_of(client, name)) == 1
    shown = said.stdout.splitlines()
    assert f"Plain and as recommended, by the question's language ({plain} → {shifted})" in shown
    # What the columns are stands above them.
    heads = next(number for number, line in enumerate(shown) if line.startswith("index  "))
    heading = "index P@1 LPR own@1 own@3 nDCG@20 TLR@20 SLR@20 shown most"
    assert shown[heads].split() == heading.split()
    assert any(line.startswith("P@1: for how many questions") for line in shown[:heads])
    ways = [re.split(r"  +", line)[0] for line in shown[heads + 1 : heads + 4]]
    assert ways == ["plain", "the paper's shift", "as recommended"]
    told = {line.split()[0] for line in shown if "→" in line}
    assert {query.language for query in dataset.queries} | {"all"} <= told
    assert "What changed" in shown
    assert sum(line.startswith(f'  langshift search {shifted} "') for line in shown) == 1
    kept = Settings.from_env().home / "results" / "demo"
    assert [line for line in shown if line.startswith("  report: ")] == [f"  report: {kept / 'report.html'}"]
    assert sum(line.startswith("  search side by side: ") and line.endswith(" serve") for line in shown) == 1
    assert sorted(path.name for path in kept.iterdir()) == [*("paper", "plain", "report.csv", "report.html", "shifted")]

    # Without the extra, the demo says in one line what is missing, and is done.
    real = errors.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name in errors.REPORT else real(name))
    said = CliRunner().invoke(demo, ["--output", str(tmp_path / "bare")], catch_exceptions=False)
    assert said.exit_code == 0
    assert "The report and the console need an extra: pip install 'langshift[console]'" in said.stdout.splitlines()
    assert sorted(path.name for path in (tmp_path / "bare").iterdir()) == ["paper", "plain", "shifted"]

"""The demo against a real OpenSearch, whole."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from opensearchpy import OpenSearch
from readme import README

from langshift.evaluate.commands import demo
from langshift.evaluate.dataset import Dataset, load_dataset
from langshift.evaluate.dataset_files import write_dataset
from langshift.evaluate.demo import FOLDER, index_twice
from langshift.evaluate.report import extra
from langshift.plugin.indices.dropping import drop_all
from langshift.plugin.versions import live, unfinished, versions
from langshift.settings import Settings


@pytest.fixture
def names(client: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Other names for the demo's indices: on this cluster somebody may keep theirs."""
    own = f"langshift-test-{uuid.uuid4().hex[:8]}"
    names = (f"{own}-plain", f"{own}-shifted")
    for module in ("demo", "demo_command"):
        monkeypatch.setattr(f"langshift.evaluate.{module}.PLAIN", names[0])
        monkeypatch.setattr(f"langshift.evaluate.{module}.SHIFTED", names[1])
    yield names
    for name in names:
        drop_all(client, name)


def write_few(whole: Dataset, folder: Path) -> None:
    """The first three topics, in all twelve languages."""
    topics = sorted({document.group for document in whole.documents.values()})[:3]
    lines = (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [record for record in map(json.loads, lines) if record["group"] in topics]
    asked = [query for query in whole.queries if query.group in topics]
    folder.mkdir()
    write_dataset(
        folder,
        documents,
        [{"_id": query.id, **query._asdict()} for query in asked],
        [(query.id, name, 1) for query in asked for name in whole.qrels[query.id]],
        [(record["_id"], whole.documents[record["_id"]].language) for record in documents],
    )


def check_readme(document):
    """The README shows this demo, within what approximate search and other processors change."""
    shown = README.read_text(encoding="utf-8").partition("<!-- demo output -->")[2]
    rows = re.findall(r"^(\w+) +([\d,]+) +((?:\S+ → \S+ +\S+ *){3})$", shown, re.MULTILINE)
    assert [language for language, _, _ in rows] == [*document["plain"]["by_language"], "all"]
    for language, queries, cells in rows:
        before, after = (document[name]["by_language"].get(language, document[name]) for name in ("plain", "shifted"))
        assert queries == f"{before['queries']['nDCG@20']:,}"
        figures = [float(figure) for pair in re.findall(r"(\S+) → (\S+)", cells) for figure in pair]
        expected = [side["measures"][name] for name in ("nDCG@20", "TLR@20", "SLR@20") for side in (before, after)]
        assert figures == pytest.approx(expected, abs=0.015)


@pytest.mark.usefixtures("cluster_env")
def test_the_demo_twice(client, tmp_path, monkeypatch, names):
    plain, shifted = names
    dataset = load_dataset(FOLDER)

    # A demo that was interrupted is in nobody's way.
    def interrupt(_documents):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_twice(client, interrupt)
    assert unfinished(client, plain) == [f"{plain}-v0001"]

    said = CliRunner().invoke(demo, ["--json", "--output", str(tmp_path)], catch_exceptions=False)
    document = json.loads(said.stdout)
    assert set(document) == {"plain", "shifted", "own_language_share", "words", "example", "report", "seconds"}
    assert document["report"] == str(tmp_path / "report.html")
    assert f"<td>{plain}</td>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    for name, index, alpha in (("plain", plain, 0.0), ("shifted", shifted, 1.0)):
        result = document[name]
        assert result == json.loads((tmp_path / name / "result.json").read_text())
        assert (result["index"], result["fingerprint"]["alpha"]) == (index, alpha)
        assert (result["errors"], result["warnings"]) == (0, [])
        assert result["queries"]["asked"] == len(dataset.queries)
        assert set(result["by_language"]) == {query.language for query in dataset.queries}
        assert 0 < document["own_language_share"][name] < 1
    # The shift is there to be seen: the two indices answer differently.
    assert document["plain"]["measures"] != document["shifted"]["measures"]
    assert document["words"][0].startswith(f"Over all {len(dataset.queries):,} questions, nDCG@20 ")
    example = document["example"]
    assert example["query"]["language"] == "en"
    assert [hit["id"] for hit in example["before"]] != [hit["id"] for hit in example["after"]]
    assert any(hit["relevant"] for hit in example["before"] + example["after"])

    check_readme(document)

    # Another demo replaces both indices, leaves nothing of the first, and prints for a person. Without a place to
    # write to, it keeps its runs and the report in langshift's home.
    few = tmp_path / "few"
    write_few(dataset, few)
    for module in ("demo", "demo_command"):
        monkeypatch.setattr(f"langshift.evaluate.{module}.FOLDER", few)
    said = CliRunner().invoke(demo, [], catch_exceptions=False)
    for name in names:
        assert live(client, name).documents == 36
        assert len(versions(client, name)) == 1
    shown = said.stdout.splitlines()
    assert f"Before and after the shift, by the question's language ({plain} → {shifted})" in shown
    told = {line.split()[0] for line in shown if "→" in line}
    assert {query.language for query in dataset.queries} | {"all"} <= told
    assert "What changed" in shown
    assert sum(line.startswith(f'  langshift search {shifted} "') for line in shown) == 1
    kept = Settings.from_env().home / "results" / "demo"
    assert [line for line in shown if line.startswith("  the report: ")] == [f"  the report: {kept / 'report.html'}"]
    assert sum(line.startswith("  search, side by side: ") and line.endswith(" serve") for line in shown) == 1
    assert sorted(path.name for path in kept.iterdir()) == [
        *("plain", "report.csv", "report.html", "report.md", "report.tex", "shifted")
    ]

    # Without the extra, the demo says in one line what is missing, and is done.
    monkeypatch.setattr(extra, "find_spec", lambda _: None)
    said = CliRunner().invoke(demo, ["--output", str(tmp_path / "bare")], catch_exceptions=False)
    assert said.exit_code == 0
    assert (
        "A report with figures, and the console, need an extra: pip install 'langshift[console]'"
        in said.stdout.splitlines()
    )
    assert sorted(path.name for path in (tmp_path / "bare").iterdir()) == ["plain", "shifted"]

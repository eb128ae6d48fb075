"""The report: what its page and tables hold, whatever names and texts say, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result
from reported import DOCUMENTS, QRELS, QUERIES, SCRIPT, report, write_runs, write_sweep

from langshift import errors
from langshift.commands.evaluate import evaluate
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.report.report import commit

FILES = ["report.html", "report.md", "report.csv", "report.tex"]
# No folder can have a slash in its name.
HOSTILE = "<script>alert(1)<script>|a_b$c%d&e\\f{g}`*"


class Page(HTMLParser):
    """A page's elements, headings, and the text that is no style."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.headings, self.texts = [], [], []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)
        if "style" not in self.open:
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


class Reported(NamedTuple):
    """A report on two runs, written twice, the second time for machines; to be read alone."""

    runs: list[Path]
    said: Result
    said_in_json: Result
    written: list[list[bytes]]


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    runs = write_runs(tmp_path_factory.mktemp("reported"), ["plain", "shifted"])
    said, written = [], []
    for options in ([], ["--json"]):
        said.append(report(*runs, *options))
        written.append([(runs[1] / name).read_bytes() for name in FILES])
    return Reported(runs, *said, written)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The folder of a report on a run with a hostile name."""
    runs = write_runs(tmp_path_factory.mktemp("hostile"), ["plain", HOSTILE])
    assert report(*runs).exit_code == 0
    return runs[1]


@pytest.fixture
def runs(tmp_path):
    return write_runs(tmp_path, ["plain", "shifted"])


def page_of(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8"))


VERDICT = (
    "Shift it: over 24 questions, nDCG@20 rises from .469 to 1.000 in every query language (de and en), answers in "
    "other languages are found more often (TLR@20 .250 to 1.000) and answers in the searcher's own language are found "
    "more often (SLR@20 .500 to 1.000); chance alone would hardly do that (corrected p .002)."
)


def test_the_files_lie_in_the_last_folder_and_are_named(reported):
    runs, said = reported.runs, reported.said
    assert (said.exit_code, said.stderr) == (0, "")
    assert said.stdout.splitlines() == [
        VERDICT,
        "",
        f"The report is {runs[1] / 'report.html'}",
        f"Its tables are also in {runs[1]}, as report.md, report.csv, report.tex",
    ]
    assert sorted(path.name for path in runs[1].iterdir()) == sorted([*FILES, "result.json", "run.trec"])
    assert sorted(path.name for path in runs[0].iterdir()) == ["result.json", "run.trec"]


def test_the_page_has_every_part_and_a_table_of_contents(runs, tmp_path):
    dataset = json.loads((runs[0] / "result.json").read_text())["dataset"]
    sweep = write_sweep(tmp_path / "sweep.json", dataset)
    assert report(*runs, sweep, "--output", tmp_path / "out").exit_code == 0
    page = page_of(tmp_path / "out")
    assert page.headings == [
        "Before and after",
        "By query language",
        "Languages of the hits",
        "The first document",
        "Query language by document language",
        "By alpha",
        "Ranking against language preference",
        "Latency",
        "Queries that gain and lose most: b (shifted) against a (plain)",
        "What was run",
    ]
    links = [attributes["href"] for attributes in page.all("a")]
    assert links == [f"#{attributes['id']}" for attributes in page.all("h2")]
    assert VERDICT in unescape((tmp_path / "out" / "report.html").read_text())
    # Two heatmaps by rank, two by language, two of recall; bars, the sweep's curve, the runs', frontier, latency.
    assert len(page.all("svg")) == 11
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [attributes for attributes in page.all("div") if attributes.get("class") == "wide"]
    for attributes in page.all("div"):
        if attributes["class"] == "wide":
            assert (attributes["role"], attributes["tabindex"]) == ("region", "0")
            assert attributes.get("aria-label") or attributes["aria-labelledby"] in ids


def test_the_place_of_the_evidence_has_a_part_where_it_is_known(runs):
    """The first run finds the English version alone, first; the second all three, the English one second."""
    rows = ["query-id\tcorpus-id\tposition\tlength\tstart\tend"]
    rows += [f"q{i}-en\tt{i}-en\t{i / 12:.3f}\t600\t{10 * i}\t{10 * i + 4}" for i in range(12)]
    (runs[0].parent / "data" / "evidence.tsv").write_text("\n".join(rows) + "\n")
    # Half of the evidence of every question but the last one.
    shown = {f"q{i}-en": {f"t{i}-en": [10 * i + 2 + i // 11, 900]} for i in range(12)}
    lines = (json.dumps({"query": query, "passages": places}) for query, places in shown.items())
    (runs[1] / "per-query.jsonl").write_text("\n".join(lines) + "\n")
    assert report(*runs).exit_code == 0
    page = page_of(runs[1])
    assert "Place of the evidence" in page.headings
    low = 1 / (1 + 1 / math.log2(3) + 1 / 2)
    markdown = [re.split(r" *\| *", line) for line in (runs[1] / "report.md").read_text().splitlines()]
    first, fifths = [row[1:-1] for row in markdown if "a (plain)" in row and len(row) in (10, 8)][-2:]
    assert first == ["a (plain)", f"{low:.4f}"[1:], *[".0000"] * 3, *[f"{low:.4f}"[1:]] * 2, "-"]
    assert fifths == ["a (plain)", *[f"{low:.4f}"[1:]] * 5]
    (second,) = [row[1:-1] for row in markdown if "b (shifted)" in row and len(row) == 10]
    assert second == ["b (shifted)", "1.0000", *[".0000"] * 3, *["1.0000"] * 2, f"{11 / 12:.4f}"[1:]]
    said = CliRunner().invoke(evaluate, ["compare", *map(str, runs)], catch_exceptions=False)
    table = said.stdout.partition(
        "By the place of the evidence: PSI with its floor, worst and best fifth of the document\n"
    )[2]
    assert table.startswith("run          nDCG@10  PSI@10  floor   95 %   worst    best  EvidenceHit@10\n")
    assert re.search(r"(?m)^b \(shifted\) +1.0000 +.0000 .* 1.0000 +.9167$", table)
    document = json.loads(report(*runs, "--json").stdout)["comparison"]["positions"]
    assert document["b"]["EvidenceHit@10"] == {"mean": 11 / 12, "table": None}
    assert document["a"]["PSI@10"]["table"]["cells"]["fifth 1"]["Q2"] == {"mean": pytest.approx(low), "queries": 3}
    assert document["a"]["EvidenceHit@10"]["mean"] is None


def test_the_page_needs_nothing_else_and_runs_no_script(hostile):
    text = (hostile / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert {"script", "link", "img", "iframe", "object", "base"}.isdisjoint(tag for tag, _ in page.elements)
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
        assert all((attributes.get(name) or "#").startswith("#") for name in ("href", "xlink:href"))
    assert not re.search(r"url\((?!#)|@import", text)
    assert page.all("meta")[3]["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    told = "".join(page.texts)
    for shown in (HOSTILE, f"{SCRIPT} of 1?", f"On {SCRIPT} | $5 & \\ {{}} _ * `", f"news-{SCRIPT}"):
        assert shown in told


def test_texts_stand_in_their_language_and_direction(reported):
    spans = page_of(reported.runs[1]).all("span")
    assert {"lang": "ar", "dir": "rtl"} in spans
    assert {"lang": "de", "dir": "ltr"} in spans


def test_figures_are_those_of_compare(reported):
    runs = reported.runs
    compared = json.loads(CliRunner().invoke(evaluate, ["compare", *map(str, runs), "--json"]).stdout)
    said = json.loads(reported.said_in_json.stdout)
    assert said["files"] == {name.partition(".")[2]: str(runs[1] / name) for name in FILES}
    assert {name: said["comparison"][name] for name in compared if name != "examples"} == {
        name: part for name, part in compared.items() if name != "examples"
    }
    assert said["comparison"]["top1"]["b"]["en"] == {"perfect": 0, "lang_fail": 1, "sem_fail": 0, "both_fail": 0}
    rows = list(csv.DictReader(io.StringIO((runs[1] / "report.csv").read_text(encoding="utf-8"))))
    for section, measures in compared["sections"].items():
        for measure, found in measures.items():
            figures = {
                row["run"][0]: row
                for row in rows
                if (row["section"], row["measure"], row["language"]) == (section, measure, "all")
            }
            assert {letter: float(row["value"]) for letter, row in figures.items()} == found["means"]
            if measure != "MostShown@20":
                assert float(figures["b"]["p"]) == found["tests"][0]["corrected"]
                assert figures["b"]["significant"] == "yes"
            assert (figures["a"]["p"], figures["a"]["significant"], figures["a"]["queries"]) == ("", "", "24")
    recalls = [row for row in rows if row["section"] == "recall by document language" and row["language"] == "en"]
    assert [(row["measure"], row["run"], row["value"]) for row in recalls][:2] == [
        ("R@20 of ar", "a (plain)", "0.0"),
        ("R@20 of ar", "b (shifted)", "1.0"),
    ]
    most = compared["most_shown"]["b (shifted)"]
    shares = {row["measure"]: row["value"] for row in rows if row["run"] == "b (shifted)" and " of " in row["measure"]}
    assert float(shares[f"{most['language']} of the first 20 hits"]) == most["shown"]
    assert float(shares[f"{most['language']} of what is relevant"]) == most["fair"]


def test_tables_keep_their_shape_whatever_names_hold(hostile):
    markdown = (hostile / "report.md").read_text(encoding="utf-8")
    assert "<script" not in markdown
    assert r"b (&lt;script&gt;alert(1)&lt;script&gt;\|a\_b\$c%d&amp;e\\f{g}\`\*)" in markdown
    for table in re.findall(r"(?:^\|.*\n?)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}) == 1
    latex = (hostile / "report.tex").read_text(encoding="utf-8")
    assert r"a\_b\$c\%d\&e\textbackslash{}f\{g\}" in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == latex.count(r"\caption{") == 12
    rows = list(csv.reader(io.StringIO((hostile / "report.csv").read_text(encoding="utf-8"))))
    assert {len(row) for row in rows} == {8}
    assert {row[3] for row in rows[1:]} == {"a (plain)", f"b ({HOSTILE})"}


def test_one_run_alone_has_a_report_without_changes(runs):
    said = report(runs[1])
    assert said.stdout.splitlines()[0] == "a (shifted) over 24 queries: nDCG@20 1.0000."
    headings = page_of(runs[1]).headings
    assert headings[0] == "Figures"
    assert not [heading for heading in headings if "gains" in heading or "Which" in heading]
    assert "change" not in (runs[1] / "report.md").read_text(encoding="utf-8").partition("## What was run")[0]


def test_the_same_runs_give_the_same_bytes(reported):
    first, second = reported.written
    assert first == second


def test_what_was_run_is_told(reported):
    told = (reported.runs[1] / "report.md").read_text(encoding="utf-8").partition("## What was run")[2]
    facts = {cells[1].strip(): cells[3].strip() for cells in (row.split("|") for row in told.splitlines()) if cells[1:]}
    assert facts["index version"] == "news-v0001"
    assert facts["fingerprint, alpha"] == "1"
    assert facts["version, opensearch"] == "3.6.0"
    assert facts["dataset, queries"] == f"{len(QUERIES)}"
    assert facts["dataset, documents"] == f"{len(DOCUMENTS)}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", facts["finished"])
    assert len(QRELS) == len(QUERIES)


def test_the_commit_is_named_only_in_a_checkout(monkeypatch):
    found = commit()
    assert found is None or re.fullmatch(r"[0-9a-f]{40}(, with changes)?", found)
    monkeypatch.setenv("PATH", "")
    assert commit() is None


def test_a_trec_run_needs_the_dataset_named(runs, tmp_path):
    run = runs[0] / "run.trec"
    (runs[0] / "result.json").unlink()
    said = report(run)
    assert isinstance(said.exception, UsageError)
    assert str(said.exception) == f"{run} does not record which dataset it is a run of: specify it with --dataset."
    assert report(run, "--dataset", tmp_path / "data").exit_code == 0
    assert (runs[0] / "report.html").is_file()


def refusal(*arguments, kind=UsageError):
    said = report(*arguments)
    assert type(said.exception) is kind, (said.exception, said.output)
    assert said.stdout == ""
    return str(said.exception)


def test_what_cannot_be_used_is_refused_and_nothing_is_written(runs, tmp_path):
    dataset = json.loads((runs[0] / "result.json").read_text())["dataset"]
    sweep = write_sweep(tmp_path / "sweep.json", dataset)
    assert refusal(sweep) == "No run is given: give a folder written by `langshift evaluate replay` or `offline`."
    write_sweep(sweep, {"folder": "other", "hash": "12"})
    assert refusal(*runs, sweep) == (
        f"{sweep} is a sweep of other (12), but the runs are of another dataset ({dataset['hash']}): "
        "give a sweep of the same dataset."
    )
    write_sweep(sweep, dataset, alpha="all")
    assert refusal(*runs, sweep) == (
        f"{sweep} is not the output of `langshift evaluate sweep --json` (Expected `array`, got `str` - at `$.alpha`)."
    )
    sweep.write_bytes(b"\xff{")
    assert refusal(*runs, sweep).startswith(f"{sweep} is not the output of `langshift evaluate sweep --json` (")
    (tmp_path / "file").write_text("")
    assert refusal(*runs, "--output", tmp_path / "file") == (
        f"{tmp_path / 'file'} is a file: name a folder for --output."
    )
    assert refusal(runs[0], tmp_path / "none") == (
        f"There is no run {tmp_path / 'none'}: give a folder that `langshift evaluate replay` or `offline` wrote "
        "with --output, or a TREC run with --dataset."
    )
    result = runs[1] / "result.json"
    result.write_text(json.dumps({**json.loads(result.read_text()), "latency_ms": {"took": 3}}))
    assert refusal(*runs) == (
        f"{result} is not in langshift's format (Expected `object`, got `int` - at `$.latency_ms[...]`): "
        "run the evaluation again."
    )
    assert not list(tmp_path.rglob("report.*"))


def test_without_the_extra_one_sentence_says_what_to_install(runs, monkeypatch):
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    assert refusal(*runs, kind=LangshiftError) == "A report needs an extra: pip install 'langshift[report]'."
    assert not (runs[1] / "report.html").exists()

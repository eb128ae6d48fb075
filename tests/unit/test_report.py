"""The report: what its page and tables hold, whatever names and texts say, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from html import unescape
from html.parser import HTMLParser

import pytest
from reported import DOCUMENTS, QRELS, QUERIES, SCRIPT, compare, report, write_runs

from langshift import errors
from langshift.errors import LangshiftError, UsageError

FILES = ["report.html", "report.csv"]
# No folder can have a slash in its name.
HOSTILE = "<script>alert(1)<script>|a_b$c%d&e\\f{g}`*"


class Page(HTMLParser):
    """A page's elements, headings, and the text that is no style."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.headings, self.texts, self.rows = [], [], [], []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)
        if "style" not in self.open:
            self.texts.append(data)
        if {"td", "th"} & {*self.open[-3:]}:
            self.rows[-1][-1] += data.strip()

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """The runs, what was said when a report on them was written, and its files; to be read alone."""
    runs = write_runs(tmp_path_factory.mktemp("reported"), ["plain", "shifted"])
    said = report(*runs)
    return runs, said, [(runs[1] / name).read_bytes() for name in FILES]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The folder of a report on a run with a hostile name."""
    runs = write_runs(tmp_path_factory.mktemp("hostile"), ["plain", HOSTILE])
    assert report(*runs).exit_code == 0
    return runs[1]


@pytest.fixture
def runs(tmp_path):
    return write_runs(tmp_path, ["plain", "shifted"])


def write_group_scores(runs):
    """LPR of both runs."""
    for run in runs:
        lines = (
            json.dumps({"query": query, "scores": {f"{group}-en": 2.0, f"{group}-de": 1.0}}) + "\n"
            for query, (_, group, *_) in QUERIES.items()
        )
        (run / "group-scores.jsonl").write_text("".join(lines))


def page_of(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8"))


VERDICT = (
    "Shift it: over 24 questions, nDCG@20 rises from .469 to 1.000 in every query language (de and en), answers in "
    "other languages are found more often (TLR@20 .250 to 1.000), answers in the searcher's own language are found "
    "more often (SLR@20 .500 to 1.000) and are among the first three hits more often (own@3 .500 to 1.000); chance "
    "alone would hardly do that (corrected p .003)."
)


def test_the_files_are_named_beside_what_compare_prints(reported):
    runs, said, _ = reported
    assert (said.exit_code, said.stdout) == (0, compare(*runs).stdout)
    assert VERDICT in said.stdout
    assert said.stderr == (
        f"Wrote the report {runs[1] / 'report.html'}, and its figures to {runs[1] / 'report.csv'}.\n"
    )
    assert sorted(path.name for path in runs[1].iterdir()) == sorted([*FILES, "result.json", "run.trec"])
    assert sorted(path.name for path in runs[0].iterdir()) == ["result.json", "run.trec"]


def test_the_page_has_every_part_and_a_table_of_contents(runs):
    write_group_scores(runs)
    assert report(*runs).exit_code == 0
    page = page_of(runs[1])
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
    assert VERDICT in unescape((runs[1] / "report.html").read_text())
    # Ranking against language preference is the one picture; a point a run, and the same in the legend.
    assert len(page.all("svg")) == 1
    assert len(page.all("path")) == 4
    assert {"heat", "bar"} <= {attributes.get("class") for attributes in page.all("td")}
    shares = [float(one["style"].partition(": ")[2]) for one in page.all("td") if "style" in one]
    assert min(shares) == 0
    assert max(shares) == 1
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
    rows = {tuple(row) for row in page.rows}
    assert ("a (plain)", f"{low:.4f}"[1:], *[".0000"] * 3, *[f"{low:.4f}"[1:]] * 2, "-") in rows
    assert ("a (plain)", *[f"{low:.4f}"[1:]] * 5) in rows
    assert ("b (shifted)", "1.0000", *[".0000"] * 3, *["1.0000"] * 2, f"{11 / 12:.4f}"[1:]) in rows
    said = compare(*runs)
    table = said.stdout.partition(
        "By the place of the evidence: PSI with its floor, worst and best fifth of the document\n"
    )[2]
    assert table.startswith("run          nDCG@10  PSI@10  floor   95 %   worst    best  EvidenceHit@10\n")
    assert re.search(r"(?m)^b \(shifted\) +1.0000 +.0000 .* 1.0000 +.9167$", table)
    document = json.loads(compare(*runs, "--json").stdout)["positions"]
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
    spans = page_of(reported[0][1]).all("span")
    assert {"lang": "ar", "dir": "rtl"} in spans
    assert {"lang": "de", "dir": "ltr"} in spans


def test_figures_are_those_of_compare(reported):
    runs = reported[0]
    compared = json.loads(compare(*runs, "--json").stdout)
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
    rows = list(csv.reader(io.StringIO((hostile / "report.csv").read_text(encoding="utf-8"))))
    assert {len(row) for row in rows} == {8}
    assert {row[3] for row in rows[1:]} == {"a (plain)", f"b ({HOSTILE})"}


def test_one_run_alone_has_a_report_without_changes(runs):
    said = report(runs[1])
    assert said.exit_code == 0
    assert "a (shifted) over 24 queries: nDCG@20 1.0000." in unescape((runs[1] / "report.html").read_text())
    headings = page_of(runs[1]).headings
    assert headings[0] == "Figures"
    assert not [heading for heading in headings if "gains" in heading or "Which" in heading]
    assert "change" not in (runs[1] / "report.html").read_text(encoding="utf-8").partition('<h2 id="run"')[0]


def test_the_same_runs_give_the_same_bytes(reported):
    runs, _, first = reported
    assert report(*runs).exit_code == 0
    assert [(runs[1] / name).read_bytes() for name in FILES] == first


def test_what_was_run_is_told(reported):
    facts = {row[0]: row[2] for row in page_of(reported[0][1]).rows if len(row) == 3}
    assert facts["index version"] == "news-v0001"
    assert facts["fingerprint, alpha"] == "1"
    assert facts["version, opensearch"] == "3.6.0"
    assert facts["dataset, queries"] == f"{len(QUERIES)}"
    assert facts["dataset, documents"] == f"{len(DOCUMENTS)}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", facts["finished"])
    assert len(QRELS) == len(QUERIES)


def test_a_trec_run_needs_the_dataset_named(runs, tmp_path):
    run = runs[0] / "run.trec"
    (runs[0] / "result.json").unlink()
    said = compare(run, "--report", runs[0])
    assert isinstance(said.exception, UsageError)
    assert str(said.exception) == f"{run} does not record which dataset it is a run of: specify it with --dataset."
    assert compare(run, "--dataset", tmp_path / "data", "--report", runs[0]).exit_code == 0
    assert (runs[0] / "report.html").is_file()


def refusal(*arguments, kind=UsageError):
    said = compare(*arguments)
    assert type(said.exception) is kind, (said.exception, said.output)
    assert said.stdout == ""
    return str(said.exception)


def test_what_cannot_be_used_is_refused_and_nothing_is_written(runs, tmp_path):
    (tmp_path / "file").write_text("")
    assert refusal(*runs, "--report", tmp_path / "file") == (
        f"{tmp_path / 'file'} is a file: name a folder for --report."
    )
    assert refusal(runs[0], tmp_path / "none", "--report", tmp_path) == (
        f"There is no run {tmp_path / 'none'}: give a folder that `langshift evaluate replay` or `offline` wrote "
        "with --output, or a TREC run with --dataset."
    )
    result = runs[1] / "result.json"
    result.write_text(json.dumps({**json.loads(result.read_text()), "latency_ms": {"took": 3}}))
    assert refusal(*runs, "--report", tmp_path) == (
        f"{result} is not in langshift's format (Expected `object`, got `int` - at `$.latency_ms[...]`): "
        "run the evaluation again."
    )
    assert not list(tmp_path.rglob("report.*"))


def test_without_the_extra_one_sentence_says_what_to_install(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    assert (
        refusal(*runs, "--report", tmp_path, kind=LangshiftError)
        == "A report needs an extra: pip install 'langshift[report]'."
    )
    assert not (tmp_path / "report.html").exists()

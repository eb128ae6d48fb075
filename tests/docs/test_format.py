"""docs/reference/format.md lists the keys that the code writes."""

import json
import re
import sqlite3
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from data_folder import write_dataset
from documents import REFERENCE, ROOT, blocks
from offline_data import run, small_dataset
from piped_index import fingerprint_of

from langshift.debias.debiaser import Debiaser
from langshift.debias.detector import open_detector
from langshift.debias.vectors import CommonStep, LanguageVectors
from langshift.embedded.state import ServerState
from langshift.evaluate.compare import significance
from langshift.evaluate.compare.gate import Baseline
from langshift.evaluate.compare.verdict import Verdict, VerdictFigure
from langshift.evaluate.datasets.dataset import (
    ANSWERS,
    CORPUS,
    EVIDENCE,
    FACTS,
    LANGUAGES,
    QRELS,
    QUERIES,
    Dataset,
    load_dataset,
)
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.replay.requests import LoadProfile, QueryResult
from langshift.evaluate.replay.result import per_query, result, searched
from langshift.ingest.bulk.dead_letters import DeadLetter, to_line
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.transform import DocumentLanguage, debias_batch
from langshift.plugin import metadata
from langshift.plugin.index_body import own_mappings
from langshift.plugin.metadata import PLACE, USUAL, Origin
from langshift.plugin.representations import TokenVectors
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.calibration.calibrate import Calibration, CalibrationCost
from langshift.retrieval.calibration.changes import Prediction, SliceChange
from langshift.retrieval.calibration.stored import NoAnswer, store_calibration
from langshift.retrieval.question import AnchorModel
from langshift.retrieval.request import SearchSettings
from langshift_lab.generation.evaluation import RagEvaluation
from langshift_lab.generation.generators import Answer
from langshift_lab.generation.rag import parse_context
from langshift_lab.rerank.labels import Labels

FORMAT = REFERENCE / "format.md"
TEXT = FORMAT.read_text(encoding="utf-8")
TRUST = AnchorModel(0.1, 0.5)
CHANGES = [SliceChange("own", "all", None, 9, 0.5, 0.1, None)]
PREDICTED = [Prediction("own", None, 9, 0.05, 0.15)]
NUMBERS = {tag: np.float32([1, 0]) for tag in ("da", "no", "zh-TW")}
VECTORS = LanguageVectors("en", NUMBERS, dict.fromkeys(NUMBERS, 9), "use-m", "1", "", 2, True, "made up")
STEP = CommonStep(np.float32([1, 0]), np.float32([[0, 1]]))
SHIFT = StoredShift("0123456789abcdef", "en", NUMBERS, 1.0, {"da": 0.5}, 0.97, STEP, 0.02, NUMBERS, [1.0, 0.5])
FINGERPRINT = fingerprint_of(SHIFT)
# What is a table of names of the user's or the server's, and not of ours.
OPEN = {
    "measures",
    "queries",
    "by_language",
    "by_value",
    "macro",
    "dataset",
    "fingerprint",
    "versions",
    "trust",
    "resolved",
    "most_shown",
}


def section(heading):
    """The lines below a heading, up to the next of any level."""
    return re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


def documented(heading, first="key"):
    """The names in the first column of the tables below a heading, by what stands above them."""
    tables = re.findall(rf"^\| {re.escape(first)} \|.*\n\| ---.*\n((?:\|.*\n)+)", section(heading), re.MULTILINE)
    return [name for table in tables for name in re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)]


def flat(document, above=""):
    """The keys of a document, those of an object inside with its own before them and a dot."""
    for name, value in document.items():
        yield f"{above}{name}"
        if isinstance(value, dict) and name not in OPEN and not above:
            yield from flat(value, f"{name}.")


def replayed(**more):
    answers = [QueryResult("q", (("d", 0.5),), 1, 2.0, 0.5, places={"d": (0, 9)})]
    return ReplayResult(
        "news", "news-v0001", SearchSettings("dense"), FINGERPRINT, {"q": "de"}, answers, {}, [], **more
    )


def test_the_keys_of_a_result_are_those_that_are_written(tmp_path):
    data = small_dataset(tmp_path / "data")
    said = run("offline", data, "--output", tmp_path / "run", "--language-from", "detected")
    assert said.exit_code == 0, (said.output, said.exception)
    offline = json.loads((tmp_path / "run" / "result.json").read_text())
    closed = result(replayed(trust=TRUST), "3.6.0")
    open_loop = result(replayed(load=LoadProfile(rate=5.0)), "3.6.0")
    written = {name for one in (offline, closed, open_loop) for name in flat(one)}
    apart = ("detection.", "setting.")
    assert {name for name in written if not name.startswith(apart)} == set(documented("result.json"))
    shown = section("result.json")
    inner = (
        closed["trust"],
        closed["versions"],
        offline["dataset"],
        offline["detection"],
        closed["latency_ms"]["took"],
    )
    assert [name for one in inner for name in one if f"`{name}`" not in shown] == []
    alone = re.findall(r"^\| `(\w+)` .*\(`offline` alone\)", shown, re.MULTILINE)
    without = re.findall(r"^\| `(\w+)` .*\(not `offline`\)", shown, re.MULTILINE)
    assert (set(alone), set(without)) == (set(offline) - set(closed), set(closed) - set(offline))


def test_the_keys_of_a_rag_evaluation_are_those_that_are_written(tmp_path):
    data = write_dataset(
        tmp_path / "data",
        {"d-en": ("en", "g", "It was finished in 1889."), "d-de": ("de", "g", "Fertig wurde er 1889.")},
        {"q": ("de", "g", "a", "Wann?")},
        {"q": {"d-en": 1, "d-de": 1}},
    )
    (data / ANSWERS).write_text('{"query": "q", "answers": ["1889"]}\n')
    said = run("rag", data, "--context", "gold-own", "--output", tmp_path / "run")
    assert said.exit_code == 0, (said.output, said.exception)
    written = json.loads((tmp_path / "run" / "rag.json").read_text())
    shown = section("rag.json")
    with_search = re.findall(r"^\| `(\w+)` .*\(with a search\)", shown, re.MULTILINE)
    assert {*written, *with_search} == set(documented("rag.json"))
    (line,) = (tmp_path / "run" / "gold-own" / "answers.jsonl").read_text().splitlines()
    assert list(json.loads(line)) == documented("rag.json", "key of an answer")
    contexts = [parse_context(one) for one in ("language-wise:1", "retrieved:1")]
    found = {"q": QueryResult("q", (("d-en", 0.9), ("d-de", 0.8)))}
    generated = RagEvaluation.of(
        load_dataset(data), contexts, found, lambda prompts: [Answer("1889", "stop") for _ in prompts], open_detector()
    )
    conditions = generated.to_dict()["conditions"]
    assert [set(one) for one in conditions.values()] == [set(documented("rag.json", "key of a context"))] * 2
    oracle, correlation = conditions["language-wise:1"]["oracle"], conditions["retrieved:1"]["correlation"]
    inner = (oracle, oracle["by_language"]["de"], correlation, conditions["retrieved:1"]["answers"], written["test"])
    assert [name for one in inner for name in one if f"`{name}`" not in shown] == []


def test_the_keys_of_a_stamp_are_those_that_are_written_and_mapped():
    both = {side: np.float32([1, 0]) for side in ("documents", "queries")}
    own = {"own_vectors": {"zh": np.float32([0, 1])}, "scatter": [1.0, 0.5]}
    debias = Debiaser(replace(VECTORS, common=both, **own).with_rank(1), 1.0, gamma=0.97, own=0.02)
    pipeline = EmbeddingPipeline(None, debias, None)
    _, (stamp,) = debias_batch(np.float32([[1, 0]]), [DocumentLanguage("zh-TW", 1.0)], pipeline)
    keys = documented("Stamp")
    # What names the page is added by what writes the document.
    assert {*stamp, "page"} == set(keys)
    assert set(own_mappings()["properties"]["shift"]["properties"]) == set(keys)


def test_the_keys_under_meta_are_those_that_the_code_names():
    files = [path for room in ("plugin", "ingest", "retrieval") for path in (ROOT / room).rglob("*.py")]
    named = {name for path in files for name in re.findall(r'"(langshift_[a-z_]+)"', path.read_text(encoding="utf-8"))}
    # Fields of a document on its way through a pipeline and in a search, an attribute of nodes, and a part of a search.
    named -= {"langshift_before", "langshift_lacking", "langshift_native", "langshift_server_time"}
    assert {metadata.FINGERPRINT, *named} == set(documented("Metadata of an index"))


def calibrated():
    """What a calibration leaves in an index."""
    held = {}
    mappings = {"news-v0001": {"mappings": {"_meta": {}}}}
    indices = SimpleNamespace(
        get_mapping=lambda **_: mappings, put_mapping=lambda body, **_: held.update(body["_meta"])
    )
    index = SimpleNamespace(index="news-v0001", fingerprint=FINGERPRINT, documents=7)
    store_calibration(
        SimpleNamespace(indices=indices),
        index,
        Calibration(
            TRUST,
            "anchored",
            None,
            None,
            CalibrationCost(9, 27, 99),
            CHANGES,
            full_strength=CHANGES,
            hybrid=CHANGES,
            tokens=CHANGES,
            rerank={"dense": 0.3},
            reranked={"dense": CHANGES},
            no_answer=NoAnswer(0.84, 0.07),
            predicted=PREDICTED,
        ).to_dict(),
    )
    return held[metadata.ANCHORS]


@pytest.mark.parametrize("key", ["measured_with", "changes"])
def test_all_of_what_a_calibration_was_measured_with_and_by_is_named(key):
    row = next(line for line in section("langshift_anchors").splitlines() if line.startswith(f"| `{key}`"))
    (inner,) = [calibrated()[key]] if key == "measured_with" else calibrated()[key]
    assert [name for name in inner if f"`{name}`" not in row] == []


FIGURE = VerdictFigure("nDCG@20", "all", None, 0.5, 0.6, significance.TestResult(0.1, 9, 9, 0.5, 0.5, 0.5, (0.0, 0.2)))
LETTER = DeadLetter(b"{}", 1, "a", "invalid_json", "no", "read", "2026-01-02T03:04:05Z", "c.jsonl", 7)
HEADER = [one.name for one in fields(LanguageVectors)]
TENSORS = {"vectors", "query_vectors", "common", "means", "directions", "maps", "query_directions", "own_vectors"}
PART = Dataset(Path("data"), {}, (), {"q": {"d": 1}}).within({"q": frozenset("d")})
ROWS = searched(per_query(replayed().answers, {"q": "de"}, {}, waited=True), {"q": "Law"}, PART)


@pytest.mark.parametrize(
    ("heading", "first", "written"),
    [
        ("Fingerprint", "key", FINGERPRINT.to_dict()),
        ("langshift_vectors", "key", SHIFT.to_dict()),
        ("langshift_fields", "key", USUAL.to_dict()),
        ("Chunks", "key of `chunk`", PLACE),
        ("langshift_origin", "key", Origin("load", None, None, (), "", ("", "")).to_dict()),
        ("langshift_sparse and langshift_tokens", "key", {one.name for one in msgspec.structs.fields(TokenVectors)}),
        ("langshift_anchors", "key", calibrated()),
        ("Language vectors", "key", set(HEADER) - TENSORS),
        ("per-query.jsonl", "key", next(ROWS)),
        ("Labels", "key", [one.name for one in msgspec.structs.fields(Labels)]),
        ("Baselines", "key", [one.name for one in msgspec.structs.fields(Baseline)]),
        ("The verdict", "verdict key", Verdict("too few", "", [FIGURE]).to_dict()),
        ("The verdict", "figure key", FIGURE.to_dict()),
        ("Dead letters", "key", json.loads(to_line(LETTER))),
        ("Pipeline options", "key", [one.name for one in fields(PipelineOptions)]),
        ("The embedded server", "key of server.json", asdict(ServerState())),
    ],
    ids=lambda one: one if isinstance(one, str) and one != "key" else "",
)
def test_the_keys_are_those_that_are_written(heading, first, written):
    listed = documented(heading, first)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(written)


def test_the_tables_of_a_journal_are_those_that_are_made(tmp_path):
    path = tmp_path / "journal.sqlite"
    Journal(path).close()
    database = sqlite3.connect(path)
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section("Journal"), re.MULTILINE)
    made = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    assert made == sorted(name for name, _ in rows)
    for name, columns in rows:
        assert re.findall(r"`(\w+)`", columns) == [one[1] for one in database.execute(f"PRAGMA table_info({name})")]
    for number in ("application_id", "user_version"):
        ((value,),) = database.execute(f"PRAGMA {number}")
        assert f"`{number}` {value}" in section("Journal")
    database.close()


def test_the_examples_are_json_with_documented_keys():
    shown = [json.loads(block.text) for block in blocks(FORMAT) if block.kind == "json"]
    assert {"vectors", "alpha", "language", "page"} in map(set, shown)
    known = set(re.findall(r"`([\w.]+)`", TEXT))
    assert [name for one in shown for name in one if name not in known] == []


def test_the_dataset_is_said_to_have_the_files_that_are_read():
    assert documented("Datasets", "file") == [CORPUS, QUERIES, QRELS, LANGUAGES, EVIDENCE, ANSWERS, FACTS]

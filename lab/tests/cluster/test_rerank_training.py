"""``rerank fit --model st:`` and ``--compare-labels`` on a real index, with a tiny cross-encoder saved by the test."""

import csv
import json
import re
import uuid

import pytest
from anchored_corpus import corpus
from data_folder import write_dataset
from documents import ROOT
from given_data import run
from searched import drop, make_index
from shifted_index import printed
from tiny_model import LEARNS, require_transformers, save_tiny_cross_encoder

from langshift.errors import LangshiftError, UsageError

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

# Questions are asked about half of the groups, whose texts begin alike: that is learnt from few examples.
DOCUMENTS = corpus(languages=("de", "th"))
GROUPS = sorted({one["group"] for one in DOCUMENTS})
ASKED = set(GROUPS[::2])
TITLES = {one["_id"]: one.pop("title") for one in DOCUMENTS}
for one in DOCUMENTS:
    one["text"] = f"{'aaaa aaaa aaaa. ' if one['group'] in ASKED else ''}{TITLES[one['_id']]}. {one['text']}"
TRAINING = ("--epochs", 2, "--learning-rate", 0.003)


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = f"langshift-test-training-{uuid.uuid4().hex[:8]}"
    make_index(client, tmp_path_factory.mktemp("training") / "corpus.jsonl", name, lines=DOCUMENTS)
    yield name
    drop(client, name)


def written(folder, groups):
    """A dataset of questions about these groups, an article each."""
    documents = {one["_id"]: (one["language"], one["group"], one["text"]) for one in DOCUMENTS}
    queries = {
        f"q-{name}": (tag, group, f"{groups.index(group):03}", TITLES[name])
        for name, (tag, group, _) in documents.items()
        if group in groups
    }
    qrels = {
        query: {document: 1 for document, (_, other, _) in documents.items() if other == group}
        for query, (_, group, *_) in queries.items()
    }
    return write_dataset(folder, documents, queries, qrels)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return written(tmp_path_factory.mktemp("training") / "data", GROUPS[::2])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_cross_encoder(tmp_path_factory.mktemp("training") / "tiny", **LEARNS)


@pytest.fixture(autouse=True)
def _cluster(cluster_env):
    """Commands find the cluster."""


def test_a_cross_encoder_is_trained_and_searched_with(data, name, tiny, tmp_path):
    output = tmp_path / "models" / "own"
    fitted = ("rerank", "fit", data, "--index", name, "--model", f"st:{tiny}", "--output", output, *TRAINING)
    done = run(*fitted, "--json")
    told = printed(done)
    assert done.stderr.count(f"Wrote {output}.") == 1
    first, second = told["loss"]
    assert second < first
    assert told["model"] == f"st:{tiny}"
    assert {(one["translations"], one["strength"]) for one in told["slices"]} == {(kept, 1.0) for kept in (None, 2, 1)}
    assert all(one["ndcg"] > 0 for one in told["slices"] if one["answer"] == "other")
    found = printed(run("search", name, "tides", "--mode", "dense", "--rerank", f"st:{output}", "--json"))
    plain = printed(run("search", name, "tides", "--mode", "dense", "--rerank", f"st:{tiny}", "--json"))
    assert [one["id"] for one in found["hits"]] != [one["id"] for one in plain["hits"]]
    again = run(*fitted).exception
    assert isinstance(again, UsageError)
    assert str(again) == f"{output} exists: name a new folder for the model, or remove it."


def test_a_model_that_loses_is_not_written(name, tiny, tmp_path):
    """What is asked about the articles that it is judged by is found in texts that begin otherwise."""
    others = iter(GROUPS[1::2])
    groups = [one if number % 5 else next(others) for number, one in enumerate(GROUPS[::4])]
    data, bad = written(tmp_path / "data", groups), tmp_path / "bad"
    lost = run("rerank", "fit", data, "--index", name, "--model", f"st:{tiny}", "--output", bad, *TRAINING)
    assert isinstance(lost.exception, LangshiftError)
    assert str(lost.exception).startswith("The model is not written: it loses in ")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("model", ["features", "st"])
def test_labels_side_by_side(data, name, tiny, tmp_path, model):
    other = written(tmp_path / "other", GROUPS[1:9:4])
    given: tuple[object, ...] = ("--train-on", other, "--train-index", name)
    if model == "st":
        # Four models are trained, and five asked for every candidate: a few questions will do.
        data = written(tmp_path / "data", GROUPS[::4])
        given += ("--model", f"st:{tiny}", *TRAINING, "--epochs", 1)
    out = tmp_path / "labels"
    compared = ("rerank", "fit", data, "--index", name, "--compare-labels", "--output", out, *given)
    told = printed(run(*compared, "--json"))
    rows = {row["name"]: row for row in told["rows"]}
    kinds = ["search", "untrained", "self-training", "same-language labels", "judgements", "trained on other"]
    assert [*rows] == kinds
    assert told["train_on"]["folder"] == str(other)
    assert rows["trained on other"]["loss"] != rows["judgements"]["loss"]
    assert told == json.loads((out / "laura.json").read_bytes())
    with (out / "languages.csv").open(encoding="utf-8") as file:
        shares = list(csv.DictReader(file))
    assert {one["order"] for one in shares} == {*rows, "oracle"}
    assert sum(float(one["share"]) for one in shares if one["order"] == "search") == pytest.approx(
        len(rows["search"]["languages"]), abs=0.01
    )
    shown = (
        (ROOT / "docs" / "reference" / "format.md")
        .read_text(encoding="utf-8")
        .partition("\n## laura.json\n")[2]
        .partition("\n## ")[0]
    )
    assert set(told) == set(re.findall(r"^\| `(\w+)`", shown, re.MULTILINE))
    assert [key for key in rows["search"] if f"`{key}`" not in shown] == []
    for row in rows.values():
        assert 0 <= row["JS"] <= 1
        assert row["KL"] >= 0
        assert 0 <= row["P@5"] <= 1
    # One relevant document a language has no PEER.
    assert rows["search"]["PEER"] is None
    assert [one.partition(",")[0] for one in told["warnings"]] == ["PEER: undefined"]
    assert rows["judgements"]["nDCG@10"] >= rows["untrained"]["nDCG@10"] - 0.02
    assert len(rows["judgements"]["loss"]) == 1


def test_what_cannot_be_trained(data, name, tmp_path):
    for given, sentence in (
        (
            ("--model", "http://127.0.0.1:1"),
            "--model http://127.0.0.1:1 cannot be trained: give features, or st: and a cross-encoder to begin with.",
        ),
        (
            ("--index", "other", "--compare-labels"),
            "--compare-labels takes one --index: compare labels in each index on its own.",
        ),
        (
            ("--compare-labels", "--train-on", data),
            "--train-on needs --train-index, the index of its documents, and the other way round.",
        ),
        (("--train-on", data), "--train-on and --train-index go with --compare-labels: add it."),
        (("--epochs", 2), "--model features does not go with --epochs: leave one or the other out."),
    ):
        refused = run("rerank", "fit", data, "--index", name, "--output", tmp_path / "x", *given).exception
        assert isinstance(refused, UsageError)
        assert str(refused) == sentence

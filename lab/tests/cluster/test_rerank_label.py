"""``langshift rerank label`` on a real index, with a chat server whose answers follow from the prompt."""

import json
import os
import signal
import subprocess
import time
import uuid
from collections import Counter

import pytest
from anchored_corpus import corpus
from chat_server import chat_server
from command_line import LANGSHIFT
from data_folder import write_dataset
from given_data import run, write_lines
from reranking_server import reranking_server
from searched import drop, make_index
from shifted_index import printed

from langshift.errors import UsageError
from langshift_lab.generation.generators import KEY
from langshift_lab.rerank.labels import read_labels

DOCUMENTS = {one["_id"]: one for one in corpus(languages=("de", "th"))}
GROUPS = sorted({one["group"] for one in DOCUMENTS.values()})[:6]
REFERENCES = {group: f"answer number {number} {group}" for number, group in enumerate(GROUPS)}
QUERIES = {
    f"q-{name}": (one["language"], one["group"], one["group"], one["title"])
    for name, one in DOCUMENTS.items()
    if one["group"] in GROUPS
}


def answer(prompt):
    """What is asked for, where the German passage about it is given, and nothing of it elsewhere."""
    words = prompt.rpartition("Question: ")[2]
    group = next(group for _, group, _, text in QUERIES.values() if text == words)
    return REFERENCES[group] if DOCUMENTS[f"{group}-de"]["text"] in prompt else "?"


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = f"langshift-test-label-{uuid.uuid4().hex[:8]}"
    make_index(client, tmp_path_factory.mktemp("label") / "corpus.jsonl", name, lines=[*DOCUMENTS.values()])
    yield name
    drop(client, name)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    documents = {name: (one["language"], one["group"], one["text"]) for name, one in DOCUMENTS.items()}
    qrels = {query: {f"{group}-{tag}": 1 for tag in ("de", "th")} for query, (_, group, *_) in QUERIES.items()}
    folder = write_dataset(tmp_path_factory.mktemp("label") / "data", documents, QUERIES, qrels)
    lines = [{"query": query, "answers": [REFERENCES[group]]} for query, (_, group, *_) in QUERIES.items()]
    write_lines(folder / "answers.jsonl", lines)
    return folder


@pytest.fixture
def server(monkeypatch, cluster_env):  # noqa: ARG001 - commands find the cluster
    monkeypatch.delenv(KEY, raising=False)
    with chat_server(answer) as running:
        yield running


def expected(query):
    """By hand: German passages alone give the answer."""
    return [f"{QUERIES[query][1]}-de"]


def test_what_gives_the_answer_is_positive_whatever_its_language(server, data, name, tmp_path):
    path = tmp_path / "labels.jsonl"
    done = run("rerank", "label", data, "--index", name, "--generator", server.name, "--output", path, "--json")
    told = printed(done)
    # What it takes is said before the first prompt.
    assert done.stderr.splitlines()[0] == (
        f"{len(QUERIES)} questions, {10 * len(QUERIES)} passages to judge: about {len(server.prompts)} prompts, of "
        "which none is sent twice."
    )
    labels = read_labels(path)
    assert [one.query for one in labels] == [*QUERIES]
    for one in labels:
        assert one.positives == expected(one.query)
        assert one.languages == {"de": 1.0, "th": one.languages["th"]}
        assert one.languages["th"] < 0.8
        # Only passages in the best language were looked at alone.
        assert {DOCUMENTS[document]["language"] for document in one.utilities} == {"de"}
        assert len(one.utilities) == 5
        assert one.utilities[expected(one.query)[0]] == 1.0
        assert len(one.candidates) == len(DOCUMENTS)
    assert told == {
        "queries": len(QUERIES),
        "with_positives": len(QUERIES),
        "oracle": {"de": {"de": 1.0}, "th": {"de": 1.0}},
    }
    # Two languages together, and five passages alone.
    assert len(server.prompts) == 7 * len(QUERIES)
    run("rerank", "label", data, "--index", name, "--generator", server.name, "--output", tmp_path / "labels.jsonl")
    assert len(server.prompts) == 7 * len(QUERIES)
    # They are learnt from as judgements are.
    model = tmp_path / "own.json"
    fitted = run("rerank", "fit", data, "--index", name, "--labels", path, "--output", model, "--json")
    shown = json.loads(fitted.stdout)
    assert shown["model"]["queries"] > 0
    assert {one["questions"] for one in shown["slices"] if one["translations"] is None} == {len(QUERIES) // 2}
    assert model.exists() == (fitted.exit_code == 0)
    compared = ("--labels", path, "--compare-labels", "--output", tmp_path / "compared")
    rows = printed(run("rerank", "fit", data, "--index", name, *compared, "--json"))["rows"]
    kinds = ["search", "untrained", "self-training", "same-language labels", "stage 1 only", "utilities (LAURA)"]
    assert [row["name"] for row in rows] == kinds
    # Five passages a question are positive to the first stage, and one of them to both.
    assert rows[4]["loss"] != rows[5]["loss"]


def test_a_reranker_picks_the_five_of_each_language(server, data, name, tmp_path):
    """It orders by id, so that of six questions the last finds no passage that answers among its five."""
    order, path = sorted(DOCUMENTS), tmp_path / "labels.jsonl"
    places = {DOCUMENTS[one]["text"]: place for place, one in enumerate(order)}
    with reranking_server() as reranker:
        reranker.score = lambda _, text: -next(place for words, place in places.items() if text.endswith(words))
        given = ("--index", name, "--generator", server.name, "--rerank", reranker.name, "--output", path)
        printed(run("rerank", "label", data, *given, "--json"))
    picked = {tag: [one for one in order if DOCUMENTS[one]["language"] == tag][:5] for tag in ("de", "th")}
    for one in read_labels(path):
        assert one.candidates == order
        found = [document for document in expected(one.query) if document in picked["de"]]
        assert one.positives == found
        assert [*one.utilities] == (picked["de"] if found else picked["de"] + picked["th"])
        assert bool(found) is (QUERIES[one.query][1] != GROUPS[5])


def test_a_kill_asks_nothing_twice_that_was_answered(server, data, name, tmp_path):
    path = tmp_path / "labels.jsonl"
    command = [LANGSHIFT, "rerank", "label", data, "--index", name, "--generator", server.name, "--output", path]
    server.pause = 0.05
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(server.prompts) < 30 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.3)
    assert not path.exists()
    before = len(server.prompts)
    assert 30 <= before < 7 * len(QUERIES)
    server.pause = 0.0
    done = run(*command[1:], "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    assert {one.query: one.positives for one in read_labels(path)} == {query: expected(query) for query in QUERIES}
    twice = [prompt for prompt, times in Counter(server.prompts).items() if times > 1]
    # What was under way when it was killed, four at a time, was answered to nobody.
    assert len(twice) <= 4
    assert len(server.prompts) == 7 * len(QUERIES) + len(twice)


def test_what_cannot_be_labelled_or_learnt_from(server, data, name, tmp_path):
    def refused(*arguments):
        done = run("rerank", *arguments)
        assert isinstance(done.exception, UsageError), done.output
        return str(done.exception)

    usual = ("--index", name, "--output", tmp_path / "out")
    twice = refused("label", data, *usual, "--generator", server.name, "--generator", server.name)
    assert twice == "--generator names a model twice: the generators must be different."
    bare = write_dataset(tmp_path / "bare", {"a": ("de", "g", "x")}, {"q": ("de", "g", "g", "x")}, {"q": {"a": 1}})
    assert refused("label", bare, *usual, "--generator", server.name).startswith(f"{bare} has no reference answers (")
    labels = write_lines(
        tmp_path / "other.jsonl",
        [
            {
                "query": "z",
                "language": "de",
                "candidates": ["a"],
                "languages": {},
                "utilities": {"a": 1},
                "positives": ["a"],
            }
        ],
    )
    assert refused("fit", data, *usual, "--labels", labels) == (
        f"{labels} labels 'z', which is not in {data}: give the labels of this dataset."
    )
    assert not (tmp_path / "out").exists()

"""Tables at their worst, as their commands print them: long names, also of wide letters, and many languages."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from data_folder import write_dataset
from readable_tables import look_at_tables

from langshift.commands.dataset import dataset
from langshift.commands.dead_letters import dead_letters
from langshift.commands.doctor import doctor
from langshift.commands.vectors import vectors
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace

NAME = "articles-of-the-whole-archive-since-nineteen-hundred"
WIDE = "月亮和地球之间的潮汐力使海水每天涨落两次的文章索引"
SENTENCE = f"{NAME} {WIDE} is what a sentence can be about, and it has an end."


@pytest.fixture
def seen(monkeypatch):
    return look_at_tables(monkeypatch)


def run(command, *arguments):
    return CliRunner().invoke(command, [*map(str, arguments)], catch_exceptions=False)


def test_problems_of_a_dataset(seen, tmp_path):
    documents = {f"{WIDE}-{tag}": (tag, WIDE, SENTENCE) for tag in ("de", "sr", "th", "zh")}
    data = write_dataset(tmp_path / NAME, documents, {NAME: ("de", None, None, SENTENCE)}, {NAME: {f"{WIDE}-de": 1}})
    with (data / "queries.jsonl").open("a") as queries:
        queries.write(f"{json.dumps({'_id': f'{WIDE}-2', 'text': SENTENCE})}\n")
    assert run(dataset, "check", data).exit_code == 1
    assert [heads[0] for heads in seen] == ["language", "problem"]


@pytest.mark.parametrize("url", [None, f"http://{NAME}.invalid:9200"])
def test_what_doctor_finds(seen, tmp_path, monkeypatch, url):
    monkeypatch.setenv("LANGSHIFT_HOME", str(tmp_path / NAME / NAME / WIDE))
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    if url is not None:
        monkeypatch.setenv("OPENSEARCH_URL", url)
    run(doctor)
    assert seen == [["part", "item", "status", "found"]]


def test_dead_letters(seen, tmp_path, monkeypatch):
    monkeypatch.setenv("LANGSHIFT_HOME", str(tmp_path))
    letters = DeadLetters(LoadWorkspace(tmp_path / "loads" / "c1" / "news", "news").dead_letters)
    what = (f"{NAME}_exception", SENTENCE, "encode", "2026-01-02T03:04:05+00:00", f"/{NAME}/{WIDE}.jsonl")
    letters.add([DeadLetter(b"{}", line, f"d{line}", *what, line) for line in range(1, 1200)])
    assert run(dead_letters, "list").exit_code == 0
    assert seen == [["count", "stage", "type", "reason", "example"]]


def test_language_vectors_and_their_verdicts(seen, tmp_path):
    drawn = np.random.default_rng(5)
    texts = drawn.normal(size=(400, 64)).astype(np.float32)
    (tmp_path / NAME).mkdir()
    for tag in ("de", "en", "ja", "sr-Latn", "th", "zh-Hant"):
        noise = drawn.normal(size=texts.shape, scale=5 if tag == "ja" else 0.1)
        rows = texts.copy()
        if tag == "th":
            rows[100:180] = np.roll(rows[100:180], 1, axis=0)
        np.save(tmp_path / NAME / f"{tag}.npy", (1000 * (rows + noise + drawn.normal(size=64))).astype(np.float32))
    file = tmp_path / f"{NAME}.safetensors"
    assert run(vectors, "fit", "--pairs", tmp_path / NAME, "--encoder", "given", "--output", file).exit_code == 0
    assert run(vectors, "check", file).exit_code == 0
    assert [heads[-1] for heads in seen] == ["norm", "norm", "verdict", "margin"]

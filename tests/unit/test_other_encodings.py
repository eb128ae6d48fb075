"""Files that are not UTF-8, of every kind that is read: the line is named, and how to convert the file."""

from pathlib import Path

import pytest
from encoded_files import NOT_UTF8
from small_dataset import write_small_dataset

from langshift.debias.detector import open_detector
from langshift.debias.parallel import open_parallel
from langshift.errors import UsageError
from langshift.evaluate.datasets.annotations import read_answers, read_evidence
from langshift.evaluate.datasets.check import check_dataset
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.datasets.logs import QueryLog
from langshift.evaluate.datasets.texts import read_corpus
from langshift.evaluate.replay.plan import read_log
from langshift.evaluate.runs import read_run
from langshift.ingest.open_corpus import open_source
from langshift.plugin.user_template import Template
from langshift_lab.rerank.labels import read_labels


def corpus(path):
    with open_source(str(path)):
        pass


def parallel(path):
    for _ in open_parallel(path, None).batches(10):
        pass


# What is read -> its name, what reads it, and its first line, which is right.
KINDS = {
    "corpus": ("c.jsonl", corpus, None),
    "corpus of a dataset": ("c.jsonl", lambda path: list(read_corpus(path, str(path))), '{"_id": "a", "text": "x"}'),
    "log": ("log.jsonl", lambda path: read_log(QueryLog(path)), '{"text": "Mond", "timestamp": 1714557600}'),
    "run": ("run.trec", read_run, "q Q0 d 1 1.0 tag"),
    "labels": ("labels.jsonl", read_labels, None),
    "answers": ("answers.jsonl", read_answers, '{"query": "q", "answers": ["x"]}'),
    "evidence": ("evidence.tsv", read_evidence, None),
    "parallel JSONL": ("p.jsonl", parallel, '{"de": "a", "en": "b"}'),
    "parallel TSV": ("p.tsv", parallel, "de\ten"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_is_not_utf8_is_named(tmp_path, kind):
    name, read, first = KINDS[kind]
    path, line = tmp_path / name, '{"_id": "b", "text": "Zürich", "de": "Zürich"}\tZürich'.encode("cp1252")
    path.write_bytes(b"\n".join([*([first.encode()] if first else []), line, b""]))
    with pytest.raises(UsageError) as refused:
        read(path)
    said = str(refused.value)
    assert said.startswith(f"{path}, line {2 if first else 1}")
    assert said.endswith(f"{NOT_UTF8}.")


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_file_of_a_dataset(tmp_path, name):
    folder = tmp_path / "dataset"
    folder.mkdir()
    write_small_dataset(folder)
    path = folder / name
    count = len(path.read_bytes().splitlines()) + 1
    path.write_bytes(path.read_bytes() + '{"_id": "Zürich"}\tx\t1\n'.encode("cp1252"))
    if name != "corpus.jsonl":
        with pytest.raises(UsageError) as refused:
            load_dataset(folder)
        assert str(refused.value) == f"{path}, line {count}, is {NOT_UTF8}."
    found = [problem for problem in check_dataset(folder, open_detector()).problems if "UTF-8" in str(problem)]
    assert len(found) == 1
    assert f"line {count}: {NOT_UTF8}" in str(found[0])


def test_utf16_is_told_by_its_mark(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"_id": "a", "text": "Zürich"}\n', encoding="utf-16")
    with pytest.raises(UsageError) as refused:
        corpus(path)
    assert str(refused.value) == f"{path}, line 1: {NOT_UTF8.replace('WINDOWS-1252', 'UTF-16')}."


def test_a_template(tmp_path):
    path = Path(tmp_path / "template.json")
    path.write_bytes('{"settings": "Zürich"}'.encode("cp1252"))
    with pytest.raises(UsageError) as refused:
        Template.read(path)
    assert str(refused.value) == f"{path}: is {NOT_UTF8}."

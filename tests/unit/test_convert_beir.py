"""BEIR's layout from small made-up files, as JSON Lines and as Parquet."""

from __future__ import annotations

import gzip

import pytest
from click.testing import CliRunner
from convert_sources import (
    jsonl,
    write_parquet,
)
from converted import convert, ids, lines

from langshift.commands.dataset import dataset as command
from langshift.evaluate.datasets.dataset import load_dataset


def test_a_folder_of_beirs_keeps_every_field(tmp_path):
    source = tmp_path / "beir"
    (source / "qrels").mkdir(parents=True)
    with gzip.open(source / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(jsonl([{"_id": "1", "title": "A", "text": "x", "metadata": {"year": 1}}, {"_id": "2", "text": "y"}]))
    (source / "queries.jsonl").write_text(jsonl([{"_id": "a", "text": "x?"}, {"_id": "b", "text": "only trained on"}]))
    (source / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\na\t1\t2\n")
    made = convert("beir", source, tmp_path / "out")
    assert made == {
        "folder": str(tmp_path / "out"), "languages": [], "pivot": None, "documents": 2, "queries": 1, "judgements": 1,
    }  # fmt: skip
    assert lines(tmp_path / "out/corpus.jsonl") == [
        {"metadata": {"year": 1}, "_id": "1", "title": "A", "text": "x"}, {"_id": "2", "title": "", "text": "y"},
    ]  # fmt: skip
    assert ids(tmp_path / "out/queries.jsonl") == ["a"]


DOCUMENTS = [
    {"_id": "1", "title": "A", "text": "x", "year": 1},
    {"_id": "2", "title": "", "text": "y", "year": None},
    {"_id": "3", "title": None, "text": "z", "year": None},
]
QUESTIONS = [{"_id": "a", "text": "x?"}, {"_id": "b", "text": "only trained on"}]
JUDGED = [{"query-id": "a", "corpus-id": "1", "score": 2.0}, {"query-id": "a", "corpus-id": "3", "score": 0.0}]


@pytest.mark.parametrize(
    ("corpus", "queries", "judged"),
    [
        # By name; in parts, as BeIR's and mteb's repositories; as the Hub converts them.
        (["corpus"], "queries", "qrels/test"),
        (
            ["corpus/corpus-00000-of-00002", "corpus/corpus-00001-of-00002"],
            "queries/queries-0",
            "data/test-00000-of-00001",
        ),
        (["corpus/corpus/0000"], "queries/queries/0000", "default/test/0000"),
        (["corpus-00000-of-00002", "corpus-00001-of-00002"], "queries-0", "qrels/test-00000-of-00001"),
    ],
)
@pytest.mark.parametrize("name", ["_id", "id"])
def test_parquet_of_beirs(tmp_path, corpus, queries, judged, name):
    pytest.importorskip("pyarrow", reason="Parquet needs pip install 'langshift[parquet]'")

    def renamed(rows):
        return [{name if field == "_id" else field: value for field, value in row.items()} for row in rows]

    source = tmp_path / "beir"
    parts = [DOCUMENTS] if len(corpus) == 1 else [DOCUMENTS[:2], DOCUMENTS[2:]]
    for place, rows in zip(corpus, parts, strict=True):
        write_parquet(source / place, renamed(rows))
    write_parquet(source / queries, renamed(QUESTIONS))
    write_parquet(source / judged, JUDGED)
    made = convert("beir", source, tmp_path / "out")
    assert (made["documents"], made["queries"], made["judgements"]) == (3, 1, 2)
    assert lines(tmp_path / "out/corpus.jsonl") == [
        {"year": 1, "_id": "1", "title": "A", "text": "x"},
        {"_id": "2", "title": "", "text": "y"},
        {"_id": "3", "title": "", "text": "z"},
    ]
    assert ids(tmp_path / "out/queries.jsonl") == ["a"]
    assert load_dataset(tmp_path / "out").qrels == {"a": {"1": 2, "3": 0}}


def test_parquet_of_beirs_that_cannot_be_read(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pip install 'langshift[parquet]'")

    def refused(*options):
        said = CliRunner().invoke(command, ["convert", "beir", str(source), str(tmp_path / "out"), *options])
        return str(said.exception)

    source = tmp_path / "beir"
    write_parquet(source / "queries", QUESTIONS)
    assert refused() == (
        f"{source} has no corpus.jsonl: a BEIR folder contains corpus.jsonl, queries.jsonl and qrels/test.tsv, or "
        "Parquet of these names."
    )
    write_parquet(source / "corpus", DOCUMENTS)
    write_parquet(source / "data" / "train-00000-of-00001", JUDGED)
    assert refused() == f"{source} has no qrels/test.tsv: name another --split (available: train)."
    write_parquet(source / "qrels" / "half", [{"query-id": "a", "corpus-id": "1", "score": 0.5}])
    assert refused("--split", "half") == (
        f"{source}/qrels/half.parquet, line 1, cannot be read: give query-id, corpus-id and score, a whole number."
    )
    write_parquet(source / "corpus", [{"_id": "1", "text": "x", "image": b"x"}])
    assert refused("--split", "train").startswith(
        f"{source}/corpus.parquet: the column 'image' is of type binary, which a document cannot have"
    )
    (source / "corpus.parquet").write_text("none")
    assert refused("--split", "train") == (
        f"{source}/corpus.parquet is damaged or not a Parquet file: download it again."
    )

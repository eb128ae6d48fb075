"""Consecutive rows of parallel text, joined to passages."""

import json

import numpy as np
import pytest
from encoded_files import NOT_UTF8
from hypothesis import given
from hypothesis import strategies as st
from parallel_data import read, refusal

from langshift.debias.parallel import open_parallel

ROWS = [{"de": "eins", "en": "one"}, {"de": "zwei", "en": "two"}, {"de": "drei"}, {"de": "vier", "en": "four"},
        {"de": "fünf", "en": "five"}]  # fmt: skip


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    for tag in ("de", "en"):
        (folder / f"{tag}.txt").write_text("".join(f"{row.get(tag, '')}\n" for row in ROWS))
    return folder


def test_half_a_translation_is_none(folder):
    assert open_parallel(folder, join_lines=2).total == 3
    assert read(folder, join_lines=2) == (
        ["line 1-2", "line 3-4", "line 5"],
        {"de": ["eins zwei", "drei vier", "fünf"], "en": ["one two", "", "five"]},
    )


def test_passages_never_cross_documents(folder, jsonl, tmp_path):
    ids = tmp_path / "ids"
    ids.write_text("a\na\na\nb\nb\n")
    expected = (
        ["line 1-2", "line 3", "line 4-5"],
        {"de": ["eins zwei", "drei", "vier fünf"], "en": ["one two", "", "four five"]},
    )
    for path in (folder, jsonl):
        assert open_parallel(path, join_lines=2, documents=ids).total == 3
        assert read(path, join_lines=2, documents=ids) == expected


def test_places_that_are_not_of_one_kind_are_named_in_full(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("_id\tde\ten\nd-7\teins\tone\nd 8\tzwei\ttwo\n\tdrei\tthree\n")
    assert read(path, join_lines=2)[0] == ["id d-7 to id d 8", "line 4"]


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["", "x", "y z"]), st.sampled_from(["", "w"])), min_size=1
    ),
    st.integers(2, 4),
    st.integers(1, 5),
)
def test_passages_are_those_of_the_plain_way(tmp_path_factory, rows, lines, size):
    folder = tmp_path_factory.mktemp("pairs")
    for name, column in (("ids", 0), ("de.txt", 1), ("en.txt", 2)):
        (folder / name).write_text("".join(f"{row[column]}\n" for row in rows))
    passages = []
    for i, (document, *texts) in enumerate(rows):
        if i and rows[i - 1][0] == document and len(passages[-1]) < lines:
            passages[-1].append(texts)
        else:
            passages.append([texts])
    expected = {
        tag: [" ".join(row[i] for row in rows) if all(row[i] for row in rows) else "" for rows in passages]
        for i, tag in enumerate(("de", "en"))
    }
    places, texts = read(folder, size=size, join_lines=lines, documents=folder / "ids")
    assert texts == expected
    assert len(places) == open_parallel(folder, join_lines=lines, documents=folder / "ids").total


def test_document_ids_must_fit(folder, jsonl, tmp_path):
    ids = tmp_path / "ids"
    assert refusal(folder, join_lines=2, documents=ids) == f"The file of document ids {ids} does not exist."
    ids.write_text("a\n")
    assert refusal(folder, join_lines=2, documents=ids) == (
        f"{ids} has 1 lines, but the parallel text has 5: one id per line is needed."
    )
    assert refusal(jsonl, join_lines=2, documents=ids) == (
        f"{ids} has 1 lines, but the parallel text has more: one id per line is needed."
    )
    ids.write_text("a\n" * 1200)
    assert refusal(jsonl, join_lines=2, documents=ids) == (
        f"{ids} has 1,200 lines, but the parallel text has 5: one id per line is needed."
    )
    ids.write_bytes(b"a\n\xff\n")
    assert refusal(folder, join_lines=2, documents=ids) == f"{ids}, line 2, is {NOT_UTF8}."


def test_document_ids_without_joining_are_refused(folder, tmp_path):
    assert refusal(folder, documents=tmp_path / "ids") == (
        "--documents marks where joined passages end: add --join-lines."
    )


def test_given_vectors_cannot_be_joined(tmp_path):
    for tag in ("de", "en"):
        np.save(tmp_path / f"{tag}.npy", np.ones((4, 2), np.float32))
    assert refusal(tmp_path, join_lines=2) == (
        f"{tmp_path} contains vectors, which cannot be joined: omit --join-lines."
    )

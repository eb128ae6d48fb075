"""Opening and reading a file of JSON lines: every bad line is told with its number, every neighbour comes through."""

import gzip
import hashlib
import os
import sys

import numpy as np
import orjson
import pytest
from encoded_files import NOT_UTF8

from langshift.corpus_file import ChangedError
from langshift.debias.encoders.base import VectorSpec
from langshift.errors import UsageError
from langshift.ingest.bulk.journal_store import LineRanges
from langshift.ingest.documents import Delete, InvalidRow, Update
from langshift.ingest.open_corpus import open_source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GOOD = b'{"_id": "a", "text": "t"}'


def write(path, *lines, end=b"\n"):
    path.write_bytes(b"\n".join(lines) + end)
    return path


def read(path, embeddings="refused", skip=()):
    with open_source(str(path), embeddings=embeddings) as source:
        return list(source.read(skip))


def refused(path, embeddings="refused"):
    with pytest.raises(UsageError) as caught, open_source(str(path), embeddings=embeddings):
        pass
    return str(caught.value)


def skipping(*ranges):
    lines = LineRanges()
    for first, last in ranges:
        lines.add(first, last)
    return lines


BAD = {
    b'{"text": "t"': ("invalid_json", "not valid JSON (unexpected end of data at character 13)."),
    b'{"text": "\xff"}': ("invalid_json", f"{NOT_UTF8}."),
    b'{"text": "\\ud800"}': None,
    b'{"text": "a\x00b"}': ("invalid_json", "not valid JSON (unexpected control character in string at character 12)."),
    b"\x00\x00\x00\x00": None,
    b'{"text": "t", "price": NaN}': None,
    b'{"text": "t", "price": 1e999}': None,
    b'"a text"': ("invalid_document", "must be a JSON object with a text, but is a string."),
    b'{"_id": "x", "text": " "}': ("invalid_document", "has neither a text nor a title."),
    b'{"text": "t", "_id": true}': ("invalid_document", "the field '_id' must be a string, but is true or false."),
    b'{"text": "t", "_id": "%s"}' % (b"x" * 513): ("invalid_document", "the '_id' is longer than 512 bytes."),
    b'{"text": "t", "language": "klingonese"}': (
        "invalid_document",
        "'klingonese' is not a valid language: use a BCP 47 tag such as 'th' or 'zh-TW', "
        "or leave the field out to have it detected.",
    ),
    b'{"text": "t", "_source": 1}': (
        "invalid_document",
        "OpenSearch does not accept a field named '_source'; rename it.",
    ),
    b'{"text": "t", "deep": %s1%s}' % (b"[" * 600, b"]" * 600): (
        "invalid_document",
        "is nested too deeply: OpenSearch accepts at most 20 levels of objects.",
    ),
    b'{"text": "t", "embedding": [1]}': (
        "invalid_embedding",
        "the document has an 'embedding', which only --encoder given uses; choose that, or leave the field out.",
    ),
    b'{"_op": "delete"}': ("invalid_document", "a line with '_op': 'delete' needs the '_id' of the document."),
    b'{"_op": "upsert", "_id": "a", "text": "t"}': (
        "invalid_document",
        "the field '_op' must be 'index', 'update' or 'delete', or be left out.",
    ),
    b'{"_op": "update", "price": 5}': (
        "invalid_document",
        "a line with '_op': 'update' needs the '_id' of the document.",
    ),
    b'{"_op": "update", "_id": "a"}': ("invalid_document", "a line with '_op': 'update' needs a field to change."),
    b'{"_op": "update", "_id": "a", "shift": null}': (
        "invalid_document",
        "the field name 'shift' is reserved for langshift; rename it.",
    ),
    b'{"_op": "update", "_id": "a", "embedding": [1]}': (
        "invalid_embedding",
        "the document has an 'embedding', which only --encoder given uses; choose that, or leave the field out.",
    ),
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_told_and_its_neighbours_come_through(line, tmp_path):
    before, bad, after = read(write(tmp_path / "c", GOOD, line, GOOD))
    assert (before.line, before.content.id, before.original) == (1, "a", GOOD)
    assert (bad.line, bad.original) == (2, line)
    assert isinstance(bad.content, InvalidRow)
    if BAD[line]:
        assert bad.content == (*BAD[line], None)
    else:
        assert bad.content.type == "invalid_json"
        assert bad.content.reason.startswith("not valid JSON (")
    assert (after.line, after.content.id) == (3, "a")


NUMBERS = "the field 'embedding' must be a list of numbers"
BAD_VECTORS = {
    b"[0, 0]": f"{NUMBERS} that are not all zero: such a vector has no direction.",
    b"[1, 1e39]": f"{NUMBERS}, but one of them is too large for 32 bits.",
    b"[1, -1e300]": f"{NUMBERS}, but one of them is too large for 32 bits.",
    b"[1, null]": f"{NUMBERS}, but contains null.",
    b"[1, true]": f"{NUMBERS}, but contains true or false.",
    b"[false, 0.5]": f"{NUMBERS}, but contains true or false.",
    b"[]": f"{NUMBERS}, but is empty.",
    b'"AAAA"': f"{NUMBERS}, but is a string that is not base64 of little-endian 32-bit floats.",
    b"null": "the document has no 'embedding', which --encoder given needs; add one.",
    b"[1, 2, 3]": "the field 'embedding' has 3 numbers, but others in the file have 2: "
    "all must come from the same model.",
}


@pytest.mark.parametrize("vector", BAD_VECTORS)
def test_a_bad_vector_is_told_and_decides_nothing(vector, tmp_path):
    sound, bad = b'{"text": "t", "embedding": [1e30, -2.5]}', b'{"text": "t", "embedding": %s}' % vector
    first = bad if vector != b"[1, 2, 3]" else sound
    found = read(write(tmp_path / "c", first, sound, bad, sound), "needed")
    assert found[2].content == InvalidRow("invalid_embedding", BAD_VECTORS[vector])
    for good in (found[1], found[3]):
        assert good.content.embedding.dtype == np.float32
        assert np.array_equal(good.content.embedding, np.float32([1e30, -2.5]))


@pytest.mark.parametrize("embeddings", ["refused", "needed"])
def test_an_update_holds_what_it_changes(embeddings, tmp_path):
    lines = [
        b'{"text": "t", "embedding": [1, 2]}' if embeddings == "needed" else b'{"text": "t"}',
        b'{"_op": "update", "_id": 7, "price": 5, "stock": null, "embedding": null}',
        b'{"_op": "update", "_id": "b", "title": null, "text": "x", "language": "zh_TW"}',
        b'{"_op": "update", "_id": "c", "language": null}',
    ]
    _, *updates = [row.content for row in read(write(tmp_path / "c", *lines), embeddings)]
    assert updates == [
        Update("7", {}, False, None, {"price": 5, "stock": None}),
        Update("b", {"title": "", "text": "x"}, True, "zh-TW", {}),
        Update("c", {}, True, None, {}),
    ]
    assert [update.embedding for update in updates] == [None] * 3


def test_numbers_of_any_size_are_taken_as_they_are(tmp_path):
    numbers = [0.1, 1e-60, -3e38, 18446744073709551615, 1, 0]
    (found,) = read(write(tmp_path / "c", orjson.dumps({"text": "t", "embedding": numbers})), "needed")
    assert np.array_equal(found.content.embedding, np.array(numbers, np.float32))
    # The squares of these have a sum that 32 bits cannot hold.
    (tiny,) = read(write(tmp_path / "c", b'{"text": "t", "embedding": [1e-30, 1e-35]}'), "needed")
    assert np.array_equal(tiny.content.embedding, np.float32([1e-30, 1e-35]))


def test_what_is_strange_but_sound(tmp_path):
    long = "x" * 10_000_000
    lines = [
        b'{"text": "a\\nb\\u2028c"}',
        orjson.dumps({"_id": "long", "text": long}),
        b'{"_op": "index", "_id": 7, "text": "t"}',
        b'{"_op": "delete", "_id": "a", "text": 1}',
        b'{"text": "same"}',
        b'{"_op": "index", "text": "same"}',
    ]
    broken, huge, index, delete, one, two = read(write(tmp_path / "c", *lines))
    assert broken.content.text == "a\nb\u2028c"
    assert huge.content.text == long
    assert (index.content.id, index.content.other) == ("7", {})
    assert delete.content == Delete("a")
    assert one.content.id == two.content.id


def test_lines_are_counted_with_blank_ones_and_the_last_without_a_line_break(tmp_path):
    content = b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n  \n" + GOOD + b"\n\n" + GOOD
    for pack in (bytes, gzip.compress, zstd.compress):
        path = tmp_path / "corpus"
        path.write_bytes(pack(content))
        with open_source(str(path)) as source:
            assert (source.total, source.content) == (6, hashlib.sha256(content).hexdigest())
            assert (source.resumable, source.shown, source.vector_spec) == (True, str(path), None)
            for _ in range(2):
                assert [(one.line, one.original) for one in source.read(())] == [(1, GOOD), (4, GOOD), (6, GOOD)]
    with open_source(str(write(path, GOOD, GOOD))) as source:
        assert source.total == 2


def test_lines_to_skip_are_not_looked_at(tmp_path):
    path = write(tmp_path / "c", *[b'{"_id": "%d", "text": "t"}' % line for line in range(1, 9)], b"oops")
    assert [one.line for one in read(path, skip=skipping((1, 3), (5, 5), (7, 9)))] == [4, 6]
    assert [one.line for one in read(path, skip=skipping((1, 9)))] == []


def test_the_first_sound_vector_decides_even_where_its_line_is_skipped(tmp_path):
    path = write(
        tmp_path / "c",
        b'{"text": "t", "embedding": [0, 0, 0]}',
        b'{"text": "t", "embedding": [3, 4]}',
        b'{"text": "t", "embedding": [1, 2, 3]}',
    )
    with open_source(str(path), embeddings="needed") as source:
        assert source.vector_spec == VectorSpec(2, normalised=False)
        (last,) = source.read(skipping((1, 2)))
    assert isinstance(last.content, InvalidRow)


def test_a_file_without_a_document_among_its_first_1000_lines_is_refused(tmp_path):
    path = write(tmp_path / "c", b"", b"oops", *[b"{}"] * 999, GOOD)
    assert (
        refused(path) == f"{path}, line 2: not valid JSON (unexpected character, expected a JSON value at character 1)."
    )
    assert len(read(write(path, b"oops", *[b"{}"] * 998, GOOD))) == 1000
    assert len(read(write(path, b'{"_op": "delete", "_id": "a"}', b"oops"))) == 2


def test_what_is_no_corpus(tmp_path):
    assert refused("nowhere.jsonl") == "nowhere.jsonl: there is no such file."
    assert refused(tmp_path) == f"{tmp_path} is a folder without files that end in .jsonl, .json, .parquet or the like."
    for content in (b"", b"\n \n"):
        (tmp_path / "empty").write_bytes(content)
        assert refused(tmp_path / "empty") == f"{tmp_path / 'empty'} contains no documents."


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_compressed_data_that_break_off_are_refused_with_the_place(pack, tmp_path):
    lines = [b'{"text": "%s"}' % np.random.default_rng(line).bytes(50).hex().encode() for line in range(20_000)]
    path = tmp_path / "c"
    path.write_bytes(pack(b"\n".join(lines))[:-1000])
    told = refused(path)
    start = f"{path}: the compressed data is truncated or damaged after line "
    assert told.startswith(start)
    assert 1000 < int(told.removeprefix(start).split(" ")[0]) < 20_000


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"])
def test_a_file_that_is_cut_while_it_is_read_is_told(pack, tmp_path):
    path = tmp_path / "c"
    packed = pack(b"\n".join([GOOD] * 3000))
    path.write_bytes(packed)
    with open_source(str(path)) as source:
        path.write_bytes(packed[:-10])
        for _ in range(2):
            with pytest.raises(ChangedError) as caught:
                list(source.read(()))
            assert str(caught.value) == f"{path} changed while it was read."


def test_a_file_of_which_only_the_time_changes_has_not_changed(tmp_path):
    path = write(tmp_path / "c", *[GOOD] * 3000)
    with open_source(str(path)) as source:
        os.utime(path, ns=(0, 0))
        assert len(list(source.read(()))) == 3000
        source.require_unchanged()


def test_none_of_the_lines_that_were_added_is_given(tmp_path):
    path = write(tmp_path / "c", *[GOOD] * 3000)
    with open_source(str(path)) as source:
        with path.open("ab") as file:
            file.write(b"%s\n" % GOOD * 3000)
        lines = source.read(())
        assert [next(lines).line for _ in range(3000)] == list(range(1, 3001))
        with pytest.raises(ChangedError):
            next(lines)

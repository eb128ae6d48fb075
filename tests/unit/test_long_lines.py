"""Lines, cells and nesting without end: one dead letter each, cut, or one sentence; never more memory than a line's."""

import gzip
import io
import sys

import orjson
import pytest

from langshift import files
from langshift.errors import UsageError
from langshift.files import read_columns, records, text_lines
from langshift.ingest import parquet as rows
from langshift.ingest import parquet_pages
from langshift.ingest.bulk.dead_letters import DeadLetter, from_line, to_line
from langshift.ingest.documents import InvalidRow
from langshift.ingest.open_corpus import open_source
from langshift.ingest.parsing import Parser

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1 << 20
GOOD = b'{"_id": "a", "text": "t"}'
TOO_LONG = "is longer than 1 MiB, the most that a line may have"
PACKS = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd.compress}


@pytest.fixture(autouse=True)
def _one_mebibyte(monkeypatch):
    for module in (files, rows):
        monkeypatch.setattr(module, "LONGEST_LINE", MIB)


def line(length, character=b"x"):
    """A sound line of so many bytes."""
    begin, end = b'{"_id": "long", "text": "', b'"}'
    return begin + character * ((length - len(begin) - len(end)) // len(character)) + end


LONG = {
    "a byte too long": line(MIB + 1),
    "without end": b"x" * (20 * MIB),
    "of brackets": b"[" * (5 * MIB),
    "of blanks": b" " * (5 * MIB),
    "of zeros": b"\0" * (5 * MIB),
    "of letters of three bytes": line(2 * MIB, "水".encode()),
    "a sound one with blanks behind": GOOD + b" " * (5 * MIB),
}


@pytest.fixture
def reading(tmp_path, monkeypatch):
    """A function that reads a corpus from a file or standard input."""

    def read(content, how):
        if how == "-":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        else:
            how = str(tmp_path / "corpus")
            (tmp_path / "corpus").write_bytes(content)
        with open_source(how) as source:
            return list(source.read(()))

    return read


@pytest.mark.parametrize("how", ["file", "-"])
@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("long", LONG)
def test_a_line_that_is_too_long_is_cut_and_its_neighbours_come_through(reading, long, pack, how):
    before, bad, after = reading(PACKS[pack](b"\n".join([GOOD, LONG[long], GOOD])), how)
    assert (before.content.id, after.content.id) == ("a", "a")
    assert (before.line, bad.line, after.line) == (1, 2, 3)
    assert bad.content == InvalidRow("invalid_document", f"{TOO_LONG}; only its beginning is kept.")
    begin, told = bad.original[: -len(f"... (cut: the line {TOO_LONG})")], bad.original.decode()
    assert LONG[long].startswith(begin)
    assert 9_990 < len(begin) <= 10_000
    assert told.endswith(f"... (cut: the line {TOO_LONG})")
    # Sent again as it is, it is no document either.
    assert isinstance(Parser("refused").line((2, bytes(bad.original))).content, InvalidRow)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_longest_line_that_may_be(reading, end):
    found = reading(b"\n".join([GOOD, line(MIB)]) + end, "file")
    assert [row.content.id for row in found] == ["a", "long"]


def test_a_corpus_of_one_line_without_end(reading):
    with pytest.raises(UsageError, match=rf"corpus, line 1: {TOO_LONG}; only its beginning is kept\.$"):
        reading(gzip.compress(b"x" * (20 * MIB)), "file")


@pytest.mark.parametrize("read", [records, text_lines, read_columns])
@pytest.mark.parametrize("pack", PACKS)
def test_other_readers_refuse_it(tmp_path, read, pack):
    path = tmp_path / "lines"
    path.write_bytes(PACKS[pack](b"\n".join([GOOD, b"x" * (20 * MIB), GOOD])))
    with pytest.raises(UsageError) as caught:
        list(read(path))
    assert str(caught.value) == f"{path}, line 2, {TOO_LONG}: shorten or remove it."


DEEP = (21, 200, 253, 254, 255, 300, 1023, 1100, 20_000)
BESIDE = {"text": "t"}, {"text": "t", "embedding": [1, 2]}, {"_op": "update", "_id": "a"}, {"text": "t", "n": 1e300}
FIELDS = ("text", "title", "language", "group", "_id", "_op", "embedding", "other", "shift", "a.b")


@pytest.mark.parametrize("embeddings", ["refused", "needed"])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_nesting_in_any_field_is_told(embeddings, brackets):
    parser = Parser(embeddings)
    for depth in DEEP:
        deep = f"{brackets[0] * depth}1{brackets[1] * depth}"
        for field in FIELDS:
            for beside in BESIDE:
                text = f'{orjson.dumps(beside).decode()[:-1]},"{field}":{deep}}}'.encode()
                row = parser.line((1, text))
                if depth > 255:
                    assert isinstance(row.content, InvalidRow), (depth, field, beside)
                letter = DeadLetter(row.original, 1, None, "", "", "read", "", "", 1)
                assert from_line(to_line(letter)) == letter


pa = pytest.importorskip("pyarrow", reason="Parquet needs an extra: pip install 'langshift[parquet]'")
from pyarrow import parquet  # noqa: E402


def saved(path, how=None, **columns):
    parquet.write_table(pa.table(columns), path, compression="zstd", **how or {"use_dictionary": False})
    return str(path)


def read(path):
    with open_source(path) as source:
        return list(source.read(()))


LONG_CELLS = {
    "text": ["t", "x" * (5 * MIB), "t"],
    "list": [["a"], ["x" * 1000] * 5000, []],
    "struct": [{"a": "b"}, {"a": "x" * (5 * MIB)}, None],
    "numbers": [[1], list(range(MIB)), None],
}


@pytest.mark.parametrize("kind", LONG_CELLS)
def test_a_row_that_is_too_long_is_cut_and_its_neighbours_come_through(tmp_path, kind):
    path = saved(tmp_path / "c", _id=["a", "b", "c"], text=["水" * 20_000] * 3, more=LONG_CELLS[kind])
    before, bad, after = read(path)
    assert (before.content.id, after.content.id) == ("a", "c")
    assert bad.content == InvalidRow("invalid_document", f"{TOO_LONG}; only the beginning of its texts is kept.")
    assert bad.line == 2
    more = {"more": "x" * 10_000} if kind == "text" else {}
    assert bad.original == {"_id": "b", "text": "水" * 10_000, **more}
    assert from_line(to_line(DeadLetter(bad.original, 2, None, "", "", "read", "", "", 1))).document == bad.original


def test_a_page_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "LARGEST_PAGE", 4 * MIB)
    path = saved(tmp_path / "c", _id=["a", "b"], text=["t", "x" * (10 * MIB)])
    with pytest.raises(UsageError) as caught:
        read(path)
    assert str(caught.value) == (
        f"{path}: in row group 1, the column 'text' has a page of 10 MiB, more than 4 MiB: write the file with smaller "
        "pages, or shorten its values."
    )
    # Many pages are none that is large.
    many = saved(tmp_path / "many", {"use_dictionary": False, "write_batch_size": 10}, text=["x" * 100_000] * 200)
    assert len(read(many)) == 200


def test_entries_of_dictionaries_are_repeated_for_few_rows_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "_EXPANDED", 4 * MIB)
    held, usual = [], parquet_pages.rows_at_a_time
    monkeypatch.setattr(rows, "rows_at_a_time", lambda *given: held.append(usual(*given)) or held[-1])
    texts = pa.array(["x" * (MIB // 2)] * 300).dictionary_encode()
    options = {"dictionary_pagesize_limit": 10 * MIB}
    found = read(saved(tmp_path / "c", options, _id=[str(row) for row in range(300)], text=texts))
    assert len(found) == 300
    assert all(len(row.content.text) == MIB // 2 for row in found)
    assert set(held) == {7}


def test_columns_of_any_depth(tmp_path):
    for depth in (5, 30, 40, 200):
        kind, value = pa.int8(), 1
        for _ in range(depth):
            kind, value = pa.struct([("a", kind)]), {"a": value}
        path = saved(tmp_path / "c", text=["t", "u"], deep=pa.array([value, None], kind))
        if depth < 100:
            assert len(read(path)) == 2
        else:
            with pytest.raises(UsageError) as caught:
                read(path)
            assert str(caught.value) == (f"{path} has a column that is nested too deeply: flatten it, or leave it out.")

"""Several files as one corpus: named, in a folder or by a glob; lines are numbered over all of them."""

import gzip
import os
import random
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from langshift.corpus_file import ChangedError
from langshift.errors import UsageError
from langshift.ingest.documents import InvalidRow
from langshift.ingest.open_corpus import find_files, open_source


def document(number, **more):
    return {"_id": f"d{number}", "text": f"Text {number}.", **more}


def lines(documents):
    return b"".join(one if isinstance(one, bytes) else orjson.dumps(one) + b"\n" for one in documents)


def write(path, documents):
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(documents), path, row_group_size=7)
    else:
        path.write_bytes((gzip.compress if path.suffix == ".gz" else bytes)(lines(documents)))
    return path


def read(*given, skip=(), embeddings="refused"):
    with open_source([str(one) for one in given], embeddings=embeddings) as source:
        return source, list(source.read(skip))


def refused(*given):
    with pytest.raises(UsageError) as caught, open_source([str(one) for one in given]):
        pass
    return str(caught.value)


@pytest.fixture
def three(tmp_path):
    """Files of three kinds, with 30 documents, a blank line and two bad ones."""
    first = [*map(document, range(10)), b"\n", b"{broken\n"]
    return [
        write(tmp_path / "in" / "a.jsonl", first),
        write(tmp_path / "in" / "b.jsonl.gz", [b'{"_id": 5}\n', *map(document, range(10, 20))]),
        write(tmp_path / "in" / "c.parquet", list(map(document, range(20, 30)))),
    ]


def test_their_lines_come_one_after_the_other_and_are_told_by_their_files(three):
    source, rows = read(*three)
    good = [row.content.id for row in rows if not isinstance(row.content, InvalidRow)]
    assert good == [f"d{number}" for number in range(30)]
    # A blank line is counted, and passed over.
    assert [row.line for row in rows] == [*range(1, 11), *range(12, 34)]
    assert [(row.line, *source.place(row.line)) for row in rows if isinstance(row.content, InvalidRow)] == [
        (12, str(three[0]), 12),
        (13, str(three[1]), 1),
    ]
    assert (source.total, source.place(23), source.place(24)) == (33, (str(three[1]), 11), (str(three[2]), 1))
    assert source.shown == f"3 files ({three[0]} to {three[2]})"


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_what_is_skipped_is_skipped_in_whichever_file_it_is(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("files")
    counts = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=4).filter(any))
    numbers = iter(range(sum(counts)))
    kinds = [data.draw(st.sampled_from(["jsonl", "jsonl.gz", "parquet"])) if count else "jsonl" for count in counts]
    paths = [
        write(folder / f"{place}.{kind}", [document(next(numbers)) for _ in range(count)])
        for place, (count, kind) in enumerate(zip(counts, kinds, strict=True))
    ]
    skip = data.draw(st.sets(st.integers(1, sum(counts))))
    source, rows = read(*paths, skip=skip)
    assert [row.line for row in rows] == [line for line in range(1, sum(counts) + 1) if line not in skip]
    assert [row.content.id for row in rows] == [f"d{row.line - 1}" for row in rows]
    for row in rows:
        file, line = source.place(row.line)
        assert line == row.line - sum(counts[: paths.index(Path(file))])


def test_a_folder_and_a_glob_stand_for_their_files_in_order(three, tmp_path):
    (tmp_path / "in" / "_SUCCESS").touch()
    (tmp_path / "in" / "notes.txt").touch()
    (tmp_path / "in" / ".c.jsonl").touch()
    below = (
        write(tmp_path / "in" / "more" / "0.jsonl", [document(99)])
        if (tmp_path / "in" / "more").mkdir() is None
        else None
    )
    assert find_files([str(tmp_path / "in")]) == [*map(str, three), str(below)]
    assert find_files([str(tmp_path / "in" / "*.jsonl*")]) == list(map(str, three[:2]))
    assert find_files([str(three[2]), str(three[0])]) == [str(three[2]), str(three[0])]


def test_what_cannot_be_one_of_several_is_refused(three, tmp_path):
    (tmp_path / "empty").mkdir()
    link = tmp_path / "link.jsonl"
    link.symlink_to(three[0])
    os.mkfifo(tmp_path / "pipe")
    for named, told in (
        (["-", three[0]], "Standard input can only be read alone: load it by itself, or save it to a file."),
        (
            [tmp_path / "pipe", three[0]],
            f"{tmp_path / 'pipe'} can only be read alone: load it by itself, or save it to a file.",
        ),
        ([three[0], three[0]], f"{three[0]} is named twice: name it once."),
        ([three[0], link], f"{link} is named twice (as {three[0]}): name it once."),
        ([tmp_path / "*.csv"], f"{tmp_path / '*.csv'} matches no file."),
        ([three[0], tmp_path / "gone.jsonl"], f"{tmp_path / 'gone.jsonl'}: there is no such file."),
        (
            [tmp_path / "empty"],
            f"{tmp_path / 'empty'} is a folder without files that end in .jsonl, .json, .parquet or the like.",
        ),
    ):
        assert refused(*named) == told


def test_one_that_is_no_corpus_is_told_before_anything_is_begun(three, tmp_path):
    wrong = write(tmp_path / "wrong.jsonl", [b'["a", "list"]\n'] * 3)
    assert refused(*three, wrong).startswith(f"{wrong}, line 1: must be a JSON object")
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(lines(map(document, range(2000))))[:-9])
    assert refused(*three, damaged).startswith(f"{damaged}: the compressed data is truncated")
    # Programs that write many files leave some of them empty.
    empty = write(tmp_path / "empty.jsonl", [])
    assert len(read(empty, *three)[1]) == 32
    assert (
        refused(empty, write(tmp_path / "too.jsonl", []))
        == f"2 files ({empty} to {tmp_path / 'too.jsonl'}) contain no documents."
    )


@pytest.mark.parametrize("how", ["longer", "other", "gone"])
def test_one_that_changes_meanwhile_is_told(three, how):
    with open_source(list(map(str, three))) as source:
        rows = source.read(())
        next(rows)
        if how == "longer":
            with three[1].open("ab") as file:
                file.write(gzip.compress(lines([document(100)])))
        elif how == "other":
            three[1].write_bytes(gzip.compress(lines(map(document, range(50, 60)))))
        else:
            # What was opened is read on.
            three[2].unlink()
            assert len(list(rows)) == 31
            source.require_unchanged()
            return
        with pytest.raises(ChangedError):
            list(rows)
        with pytest.raises(ChangedError):
            source.require_unchanged()


def test_the_same_files_are_the_same_corpus_and_in_another_order_another(three):
    contents = [read(*some)[0].content for some in (three, three, three[::-1], three[:1])]
    assert contents[0] == contents[1]
    assert len(set(contents)) == 3
    assert contents[3] == read(three[0])[0].content


def test_types_are_told_by_documents_from_everywhere(tmp_path):
    """In files that are in order, what comes late tells of the types, too."""
    early = [document(number, year=1900, day="2020-01-01") for number in range(1500)]
    late = [document(number, year=1.5, day="none") for number in range(1500, 3000)]
    mixed = random.Random(1).sample(early + late, 3000)
    for suffix in ("jsonl", "jsonl.gz", "parquet"):
        if suffix == "parquet":
            early, late, mixed = (
                [{**one, "year": float(one["year"])} for one in some] for some in (early, late, mixed)
            )
        ordered = write(tmp_path / f"ordered.{suffix}", early + late)
        shuffled = write(tmp_path / f"shuffled.{suffix}", mixed)
        parted = [write(tmp_path / f"{n}.{suffix}", some) for n, some in enumerate((early, late))]
        found = [read(*some)[0].field_types for some in ([ordered], [shuffled], parted)]
        assert {str(one.mappings()) for one in found} == {"{'year': {'type': 'double'}}"}
        assert [one.dates for one in found] == [[], [], []]

"""Parallel text: which format a path has, and that every format gives the same."""

import gzip
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parallel_data import read, refusal

from langshift.debias.parallel import open_parallel
from langshift.errors import LangshiftError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# What stands in a line of every format: neither tabs nor line breaks, no white space at the ends.
SAID = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=8).map(str.strip)


def write_lines(path, rows):
    path.mkdir()
    for tag in ("de", "th"):
        (path / f"{tag}.txt").write_text("".join(f"{row[tag]}\n" for row in rows), encoding="utf-8", newline="\n")


def write_table(path, rows):
    lines = ["th\tnote\tde", *(f"{row['th']}\tx\t{row['de']}" for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")


def write_records(path, rows):
    import orjson

    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def write_parquet(path, rows):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs an extra: pip install 'langshift[parquet]'")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)


WRITERS = {
    "lines": write_lines, "table.tsv": write_table, "records.jsonl": write_records, "shard.parquet": write_parquet,
}  # fmt: skip
PLACES = {"lines": "line", "table.tsv": "line", "records.jsonl": "line", "shard.parquet": "row"}
FIRST = {"table.tsv": 2}


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_format_gives_the_same_rows_in_batches_of_any_size(name, data, tmp_path_factory):
    rows = data.draw(st.lists(st.fixed_dictionaries({"de": SAID, "th": SAID}), min_size=1, max_size=9))
    rows[0]["de"] = rows[0]["de"] or "eins"
    path = tmp_path_factory.mktemp("pairs") / name
    WRITERS[name](path, rows)
    source = open_parallel(path)
    assert (source.shown, source.languages, source.dimension) == (str(path), ["de", "th"], None)
    for size in (1, 2, 100):
        places, texts = read(path, size=size)
        assert texts == {tag: [row[tag] for row in rows] for tag in ("de", "th")}
        assert places == [f"{PLACES[name]} {FIRST.get(name, 1) + i}" for i in range(len(rows))]


@pytest.mark.parametrize("name", WRITERS)
def test_text_can_be_read_twice_and_left_in_the_middle(name, tmp_path):
    WRITERS[name](tmp_path / name, [{"de": str(i), "th": "x"} for i in range(5)])
    source = open_parallel(tmp_path / name)
    first = next(source.batches(2))
    assert [list(first.texts["de"]), list(first.texts["th"])] == [["0", "1"], ["x", "x"]]
    assert first.vectors == {}
    assert [text for batch in source.batches(2) for text in batch.texts["de"]] == list("01234")


@pytest.mark.parametrize("name", WRITERS)
def test_only_the_languages_asked_for_are_read(name, tmp_path):
    WRITERS[name](tmp_path / name, [{"de": "eins", "th": "หนึ่ง"}])
    assert read(tmp_path / name, ["tha_Thai", "deu"])[1] == {"de": ["eins"], "th": ["หนึ่ง"]}
    assert refusal(tmp_path / name, ["de", "fr"]) == (
        f"{tmp_path / name} has no text in the language 'fr'; it has de, th."
    )
    assert refusal(tmp_path / name, ["de", "no language"]) == (
        f"{tmp_path / name} has no text in the language 'no language'; it has de, th."
    )
    assert refusal(tmp_path / name, ["de", "deu"]) == (
        f"{tmp_path / name} contains text in de only; a second language is needed."
    )


@pytest.mark.parametrize("compressor", [gzip, zstd])
@pytest.mark.parametrize("name", ["lines", "table.tsv", "records.jsonl"])
def test_text_files_may_be_compressed(name, compressor, tmp_path):
    rows = [{"de": f"Satz {i}", "th": f"ประโยค {i}"} for i in range(2000)]
    path = tmp_path / name
    WRITERS[name](path, rows)
    suffix = ".gz" if compressor is gzip else ".zst"
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        file.with_name(file.name + suffix).write_bytes(compressor.compress(file.read_bytes()))
        file.unlink()
    packed = [file.with_name(file.name + suffix) for file in files]
    path = path if path.is_dir() else packed[0]
    assert read(path, size=700)[1] == {tag: [row[tag] for row in rows] for tag in ("de", "th")}
    packed[0].write_bytes(packed[0].read_bytes()[:-20])
    assert refusal(path).startswith(f"{packed[0]}: the compressed data is truncated or damaged")


def test_what_is_no_parallel_text_is_refused(tmp_path):
    assert refusal(tmp_path / "nowhere") == f"The parallel text {tmp_path / 'nowhere'} does not exist."
    for name in ("pairs.csv", "pairs", "pairs.gz", "pairs.json"):
        (tmp_path / name).touch()
        assert refusal(tmp_path / name) == (
            f"{tmp_path / name} is not a known format of parallel text; "
            "give a .tsv, .jsonl or .parquet file, or a folder."
        )
    for name in ("th.txt", "th.txt.gz", "th.npy"):
        (tmp_path / name).touch()
        assert refusal(tmp_path / name) == (
            f"{tmp_path / name} contains one language only: give the folder that contains a file for each language."
        )


def test_a_folder_without_parallel_text_is_refused(tmp_path):
    for name in ("README.txt", "train.tsv", "pairs.jsonl", ".th.parquet", "_th.parquet"):
        (tmp_path / name).write_text("x")
    (tmp_path / "de.txt").mkdir()
    assert refusal(tmp_path) == (
        f"{tmp_path} contains no file named after a language, such as th.txt or th.npy, and no .parquet file."
    )


def test_a_folder_that_could_be_of_two_formats_is_refused(tmp_path):
    for name in ("de.txt", "en.txt", "en.npy"):
        (tmp_path / name).write_text("x\n")
    assert refusal(tmp_path) == (
        f"{tmp_path} contains parallel text in several formats, de.txt and en.npy; leave only one of them."
    )
    (tmp_path / "part-0.parquet").touch()
    assert refusal(tmp_path) == (
        f"{tmp_path} contains parallel text in several formats, de.txt and en.npy and part-0.parquet; "
        "leave only one of them."
    )


def test_two_files_of_one_language_are_refused(tmp_path):
    for name in ("en.txt", "eng.txt.gz"):
        (tmp_path / name).touch()
    assert refusal(tmp_path) == f"{tmp_path}: en.txt and eng.txt.gz are both en; remove one of them."


def test_parquet_needs_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "pairs.parquet").touch()
    assert refusal(tmp_path / "pairs.parquet", of=LangshiftError) == (
        f"{tmp_path / 'pairs.parquet'} is a Parquet file, which needs an extra: pip install 'langshift[parquet]'."
    )

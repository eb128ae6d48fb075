"""Parallel text and given vectors as Parquet."""

import os

import numpy as np
import pytest
from parallel_data import read, refusal

from langshift.debias.parallel import open_parallel

pa = pytest.importorskip("pyarrow", reason="Parquet needs an extra: pip install 'langshift[parquet]'")
from pyarrow import parquet  # noqa: E402

VECTORS = np.arange(12, dtype=np.float32).reshape(6, 2)


def save(path, row_group_size=None, **columns):
    parquet.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_columns_of_any_string_are_texts(kind, tmp_path):
    path = save(
        tmp_path / "pairs.parquet",
        id=[7, 8, None],
        deu=pa.array(["eins", None, " "], kind),
        en=pa.array(["one", "two", "three"], kind),
        no=[1, 2, 3],
        score=[0.5, 1, 2],
    )
    assert read(path) == (["id 7", "id 8", "row 3"], {"de": ["eins", "", ""], "en": ["one", "two", "three"]})


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float16()), pa.list_(pa.float32(), 2),
        pa.list_(pa.int64()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 4, 100])
def test_columns_of_any_list_of_numbers_are_vectors(kind, size, tmp_path):
    rows = VECTORS.astype(kind.value_type.to_pandas_dtype())
    german = [None, *rows[1:5], None]
    path = save(tmp_path / "pairs.parquet", 2, en=pa.array(list(rows), kind), de=pa.array(german, kind))
    assert open_parallel(path).dimension == 2
    vectors = read(path, size=size)[1]
    np.testing.assert_array_equal(vectors["en"], VECTORS)
    np.testing.assert_array_equal(vectors["de"], [[np.nan] * 2, *VECTORS[1:5], [np.nan] * 2])


def test_a_folder_of_shards_is_read_in_the_order_of_their_names(tmp_path):
    save(tmp_path / "b.parquet", de=["drei"], en=["three"])
    save(tmp_path / "a.parquet", en=["one", "two"], de=["eins", "zwei"], note=["x", "y"])
    assert open_parallel(tmp_path).total == 3
    assert read(tmp_path) == (
        ["a.parquet, row 1", "a.parquet, row 2", "b.parquet, row 1"],
        {"de": ["eins", "zwei", "drei"], "en": ["one", "two", "three"]},
    )
    assert read(tmp_path, join_lines=2)[0] == ["a.parquet, row 1-2", "b.parquet, row 1"]
    assert read(tmp_path, join_lines=3)[0] == ["a.parquet, row 1 to b.parquet, row 1"]


def test_shards_must_have_the_same_columns(tmp_path):
    save(tmp_path / "a.parquet", de=["eins"], en=["one"])
    save(tmp_path / "b.parquet", de=[[1.0]], en=["one"])
    assert refusal(tmp_path) == (
        f"{tmp_path / 'b.parquet'}: the column 'de' is list<element: double>, but in a.parquet it is string."
    )
    save(tmp_path / "b.parquet", en=["one"])
    assert refusal(tmp_path) == (
        f"{tmp_path / 'b.parquet'}: the column 'de' is missing, but in a.parquet it is string."
    )


def test_indonesian_and_ids_are_told_apart_by_what_they_hold(tmp_path):
    path = save(tmp_path / "pairs.parquet", id=["satu ekor", "kucing"], en=["a cat", "cat"])
    assert read(path)[1] == {"en": ["a cat", "cat"], "id": ["satu ekor", "kucing"]}
    save(path, id=[[1.0, 2.0]], en=[[3.0, 4.0]], _id=["x"])
    assert read(path)[0] == ["id x"]
    assert sorted(read(path)[1]) == ["en", "id"]
    save(path, id=["x"], en=["cat"], de=["Katze"])
    assert refusal(path) == f"{path}: 'id' may be Indonesian or the rows' ids: rename it to 'ind' or to '_id'."


def test_vectors_of_another_dimension_are_refused_by_row(tmp_path):
    path = save(tmp_path / "pairs.parquet", de=[[1.0, 2.0], [], [1.0]], en=[None, [1.0, 2.0], [3.0, 4.0]])
    assert refusal(path) == f"{path}, row 3: the vector in de has 1 numbers, but the first one has 2."


def test_the_row_of_a_vector_that_is_not_finite_is_named_across_missing_ones(tmp_path):
    path = save(tmp_path / "pairs.parquet", de=[None, [1.0, 2.0], None, [1.0, None]], en=[[1.0, 2.0]] * 4)
    assert refusal(path, size=10) == f"{path}, row 4: the vector in de contains a value that is not a finite number."


def test_files_without_what_is_needed_are_refused(tmp_path):
    path = save(tmp_path / "pairs.parquet", de=["eins"], en=[[1.0]])
    assert refusal(path) == f"{path}: 'de' contains text, but 'en' contains vectors; use one kind per file."
    save(path, de=["eins"], en=[1])
    assert refusal(path) == f"{path} contains text in de only; a second language is needed."
    parquet.write_table(pa.Table.from_arrays([pa.array(["one"])] * 2, names=["en", "en"]), path)
    assert refusal(path) == f"{path}: en and en are both en; remove one of them."
    save(path, text=["eins"], language=["de"])
    assert refusal(path) == f"{path}: none of 'text', 'language' is named after a language, such as 'th'."
    save(path, de=pa.array([], pa.string()), en=pa.array([], pa.string()))
    assert refusal(path) == f"{path} has no rows."
    save(path, de=pa.array([None], pa.list_(pa.float32())), en=pa.array([[]], pa.list_(pa.float32())))
    assert refusal(path) == f"{path} has no vectors."


def test_bytes_that_are_not_utf_8_are_named_by_row(tmp_path):
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"eins", b"zw\xffei"]).buffers())
    path = save(tmp_path / "pairs.parquet", de=bad, en=["one", "two"])
    assert refusal(path) == f"{path}, row 2, is not UTF-8."


def test_damaged_files_are_refused(tmp_path):
    path = save(tmp_path / "pairs.parquet", de=["eins"] * 1000, en=[str(i) for i in range(1000)])
    whole = path.read_bytes()
    for content in (b"", b"no Parquet", whole[:-20], whole[:4] + b"\xff" * 2000 + whole[2004:]):
        path.write_bytes(content)
        assert refusal(path) == f"{path} is damaged or not a Parquet file: download it again."


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    path = save(tmp_path / "pairs.parquet", de=["eins"], en=["one"])
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read anything
    assert refusal(path) == f"{path} is not readable: change its permissions, or use a copy that you can read."

"""Given vectors as parallel text: NumPy files, JSON lists, Parquet lists."""

import json
import pickle

import numpy as np
import pytest
from made_pairs import BLOCK, write_pairs
from parallel_data import read, refusal

from langshift.debias.parallel import open_parallel

EN = np.array([[1, 2], [3, 4], [np.nan, np.nan], [7, 8]], np.float32)
DE = np.array([[5, 6], [np.nan, np.nan], [1, 1], [0.5, 8]], np.float32)


def listed(vectors):
    return [None if np.isnan(row).all() else row.tolist() for row in vectors]


def save_arrays(path, **vectors):
    path.mkdir(exist_ok=True)
    for tag, block in vectors.items():
        np.save(path / f"{tag}.npy", block)
    return path


def save_records(path, **columns):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def save_parquet(path, **columns):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs an extra: pip install 'langshift[parquet]'")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)
    return path


def saved(name, path, **vectors):
    if name == "arrays":
        return save_arrays(path / name, **vectors)
    columns = {tag: listed(block) for tag, block in vectors.items()}
    return (save_records if name.endswith("jsonl") else save_parquet)(path / name, **columns)


@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("name", ["arrays", "pairs.jsonl", "pairs.parquet"])
def test_given_vectors_come_as_they_are_and_missing_ones_as_nan(name, size, tmp_path):
    path = saved(name, tmp_path, en=EN, de=DE)
    source = open_parallel(path)
    assert (source.languages, source.dimension) == (["de", "en"], 2)
    places, vectors = read(path, size=size)
    assert places == [f"{'line' if name == 'pairs.jsonl' else 'row'} {i}" for i in (1, 2, 3, 4)]
    np.testing.assert_array_equal(vectors["en"], EN)
    np.testing.assert_array_equal(vectors["de"], DE)
    for batch in source.batches(size):
        assert batch.texts == {}
        assert {block.dtype for block in batch.vectors.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("name", ["arrays", "pairs.jsonl", "pairs.parquet"])
def test_a_vector_that_is_not_finite_throughout_is_refused_by_place(name, tmp_path):
    bad = EN.copy()
    bad[3, 1] = np.nan
    if name == "pairs.jsonl":  # JSON has no NaN, but numbers too large for float32
        path = save_records(tmp_path / name, de=listed(DE), en=[*listed(EN)[:3], [1e300, 1]])
        shown, place = path, "line 4"
    else:
        path = saved(name, tmp_path, en=bad, de=DE)
        shown, place = (path / "en.npy" if name == "arrays" else path), "row 4"
    assert refusal(path) == f"{shown}, {place}: the vector in en contains a value that is not a finite number."


@pytest.mark.parametrize("name", ["arrays", "pairs.jsonl", "pairs.parquet"])
def test_languages_of_vectors_are_chosen_as_those_of_texts(name, tmp_path):
    path = saved(name, tmp_path, eng=EN, de=DE, fr=DE)
    assert sorted(read(path, ["en", "fra"])[1]) == ["en", "fr"]
    assert refusal(path, ["en", "th"]) == f"{path} has no vectors in the language 'th'; it has de, en, fr."
    assert refusal(path, ["en"]) == f"{path} contains vectors in en only; a second language is needed."


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
def test_arrays_of_other_floats_become_float32(dtype, tmp_path):
    path = save_arrays(tmp_path, en=EN.astype(dtype), de=DE.astype(dtype))
    np.testing.assert_array_equal(read(path)[1]["en"], EN)


def test_float64_beyond_float32_is_refused_without_a_warning(tmp_path):
    path = save_arrays(tmp_path, en=np.array([[1e300, 1.0]]), de=np.ones((1, 2)))
    assert refusal(path) == f"{path / 'en.npy'}, row 1: the vector in en contains a value that is not a finite number."


def test_vectors_too_long_to_compute_with_are_refused_without_a_warning(tmp_path):
    large = np.full((3, 2), 7e14, np.float32)
    path = save_arrays(tmp_path, en=large, de=np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(read(path)[1]["en"], large)
    large[1] = 3e38
    path = save_arrays(tmp_path, en=large, de=np.ones((3, 2), np.float32))
    assert refusal(path) == (
        f"{path / 'en.npy'}, row 2: the vector in en is longer than 1e+15: "
        "it is damaged, or all vectors must be scaled down."
    )


def test_arrays_of_different_shape_are_refused_naming_both(tmp_path):
    path = save_arrays(tmp_path, en=EN, de=DE[:3])
    assert refusal(path) == (
        f"{path / 'en.npy'} has the shape (4, 2), but {path / 'de.npy'} has (3, 2): "
        "given vectors must be aligned row by row."
    )


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (EN.astype(object), "is not an array of numbers written by numpy.save, or is damaged."),
        (EN.astype(bool), "contains bool; vectors must be float16, float32 or float64."),
        (EN[:, 0], "has the shape (4,); it must have one vector per row, (rows, dimensions)."),
        (EN[:0], "has the shape (0, 2); it must have one vector per row, (rows, dimensions)."),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(array, message, tmp_path):
    path = save_arrays(tmp_path, en=array, de=EN)
    assert refusal(path) == f"{path / 'en.npy'} {message}"


def test_files_that_are_no_arrays_are_refused(tmp_path):
    path = save_arrays(tmp_path, en=EN, de=EN)
    whole = (path / "en.npy").read_bytes()
    for content in (b"", b"no array", whole[:20], whole[:-1], pickle.dumps([1]), b"\x93NUMPY\x09\x00" + whole[8:]):
        (path / "en.npy").write_bytes(content)
        assert refusal(path) == f"{path / 'en.npy'} is not an array of numbers written by numpy.save, or is damaged."


def test_an_array_by_column_is_read_by_row(tmp_path):
    path = save_arrays(tmp_path, en=np.asfortranarray(EN), de=EN)
    np.testing.assert_array_equal(read(path, size=3)[1]["en"], EN)


@pytest.mark.parametrize("bad", [[1.0], [1.0, 2.0, 3.0], ["1", "2"], [1.0, None], "eins", 5])
def test_lists_of_anything_but_as_many_numbers_are_refused_by_line(bad, tmp_path):
    path = save_records(tmp_path / "pairs.jsonl", en=listed(EN), de=[None, [1, 2], bad, [1.5, 2]])
    assert refusal(path, size=10) == f"{path}, line 3: 'de' must be a list of 2 numbers, or null."


def test_lists_may_be_empty_or_whole_numbers_and_indonesian(tmp_path):
    path = save_records(tmp_path / "pairs.jsonl", id=[[], [1, 2], ""], _id=["a", "", None], en=[[3, 4], None, [0, 1]])
    places, vectors = read(path)
    assert places == ["id a", "line 2", "line 3"]
    np.testing.assert_array_equal(vectors["id"], np.array([[np.nan] * 2, [1, 2], [np.nan] * 2], np.float32))


def test_few_numbers_are_held_in_lists_however_long_the_vectors(tmp_path):
    path = tmp_path / "pairs.jsonl"
    write_pairs(path, 300, 2048)
    assert [len(batch.places) for batch in open_parallel(path).batches(1000)] == [128, 128, 44]


@pytest.mark.parametrize("name", ["arrays", "pairs.jsonl", "pairs.parquet"])
def test_made_pairs_have_the_offset_that_they_say(name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs an extra: pip install 'langshift[parquet]'")
    offsets = write_pairs(tmp_path / name, BLOCK + 1, 4, languages=("de", "th"), noise=0.5)
    _, vectors = read(tmp_path / name, size=5000)
    for tag in ("de", "th"):
        difference = np.mean(np.array(vectors[tag]) - np.array(vectors["en"]), axis=0)
        assert np.abs(difference - offsets[tag]).max() < 5 * 0.5 / np.sqrt(BLOCK)

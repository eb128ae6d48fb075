"""The language-vector file."""

import os
from dataclasses import fields, replace

import numpy as np
import orjson
import pytest
from safetensors.numpy import save_file
from toy_encoder import ToyEncoder

from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, Recommendation, shipped
from langshift.errors import FingerprintError, UsageError

MADE = LanguageVectors(
    pivot="en",
    vectors={tag: np.arange(8, dtype=np.float32) + i for i, tag in enumerate(["de", "th", "zh", "zh-TW"])},
    pairs={"de": 3, "th": 2, "zh": 1, "zh-TW": 1},
    encoder="toy",
    revision="1",
    document_prefix="passage: ",
    dimension=8,
    normalised=False,
    source="made up",
)


HEADER = [field.name for field in fields(MADE) if field.name != "vectors"]


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "new folder" / "v.safetensors"
    MADE.save(path)
    loaded = LanguageVectors.load(path)
    assert loaded.hash == MADE.hash
    assert loaded.pairs == MADE.pairs
    assert (loaded.pivot, loaded.encoder, loaded.dimension, loaded.both_sides) == ("en", "toy", 8, None)
    assert all(np.array_equal(loaded.vectors[tag], MADE.vectors[tag]) for tag in MADE.vectors)
    assert [p.name for p in path.parent.iterdir()] == ["v.safetensors"]


def test_everything_that_was_fitted_comes_back(tmp_path):
    path = tmp_path / "v.safetensors"
    means = {**MADE.vectors, "en": np.ones(8, np.float32)}
    whole = replace(
        MADE,
        both_sides=Recommendation(0.5, {"th": 0.25}, 0.75, shift_queries=True, preference=0.05),
        documents_only=Recommendation(0.5),
        common={"documents": means["en"], "queries": np.zeros(8, np.float32)},
        query_prefix="query: ",
        query_vectors=MADE.vectors,
        means=means,
        directions={tag: np.ones((1, 8), np.float32) for tag in means},
        maps={"th": np.eye(8, dtype=np.float32)},
        evidence={"th": {"pairs": 2}},
        tuning={"budget": 0.01},
    )
    whole.save(path)
    loaded = LanguageVectors.load(path)
    for field in fields(whole):
        saved, read = getattr(whole, field.name), getattr(loaded, field.name)
        if field.name in ("vectors", "query_vectors", "common", "means", "directions", "maps"):
            assert saved.keys() == read.keys()
            assert all(np.array_equal(saved[tag], read[tag]) for tag in saved)
        else:
            assert saved == read


def test_the_hash_follows_the_numbers_and_not_the_recommendation():
    assert replace(MADE, both_sides=Recommendation(0.6), source="other").hash == MADE.hash
    changed = {**MADE.vectors, "de": MADE.vectors["de"] + np.float32(1e-6)}
    assert replace(MADE, vectors=changed).hash != MADE.hash
    assert replace(MADE, pivot="fr").hash != MADE.hash


@pytest.mark.parametrize(
    ("language", "key"),
    [
        ("th", "th"),
        ("zh-TW", "zh-TW"),
        ("zh-HK", "zh-TW"),
        ("yue", "zh-TW"),
        ("de-AT", "de"),
        ("en", None),
        ("en-GB", None),
        ("fr", None),
    ],
)
def test_which_vector_a_document_takes(language, key):
    assert MADE.key(language) == key


def test_another_encoder_is_refused_with_both_values_named():
    MADE.require_encoder(ToyEncoder(), "v.safetensors")
    with pytest.raises(FingerprintError) as refused:
        MADE.require_encoder(open_encoder("use-m"), "v.safetensors")
    assert str(refused.value) == (
        "v.safetensors: these language vectors were fitted with encoder toy, not use-m: "
        "fit vectors for this encoder with `langshift vectors fit`."
    )
    with pytest.raises(FingerprintError, match="fitted with dimension 384, not 8"):
        replace(MADE, dimension=384).require_encoder(ToyEncoder(), "v.safetensors")
    with pytest.raises(FingerprintError) as refused:
        replace(MADE, normalised=True).require_encoder(ToyEncoder(), "v.safetensors")
    assert str(refused.value) == (
        "v.safetensors: these language vectors were fitted on embeddings of norm 1, but toy returns embeddings that "
        "are not normalised: fit vectors for this encoder with `langshift vectors fit`."
    )
    # What queries were encoded with only matters to those vectors that belong to queries.
    asked = replace(MADE, query_prefix="search: ")
    asked.require_encoder(ToyEncoder(), "v.safetensors")
    with pytest.raises(FingerprintError, match="fitted with query_prefix search: , not query: "):
        replace(asked, query_vectors=MADE.vectors).require_encoder(ToyEncoder(), "v.safetensors")


def test_missing_foreign_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "v.safetensors"
    with pytest.raises(UsageError, match=r"does not exist; create one with"):
        LanguageVectors.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(UsageError, match=r"is not a file of language vectors, or is damaged; create one with"):
        LanguageVectors.load(path)
    save_file({"de": np.zeros(8, np.float32)}, path)
    with pytest.raises(UsageError, match=r"is not a file of language vectors, or is damaged; create one with"):
        LanguageVectors.load(path)
    MADE.save(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(UsageError, match=r"is not a file of language vectors, or is damaged; create one with"):
        LanguageVectors.load(path)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "v.safetensors"
    MADE.save(path)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read anything
    with pytest.raises(UsageError) as refused:
        LanguageVectors.load(path)
    assert str(refused.value) == f"{path} is not readable: change its permissions, or use a copy that you can read."


def test_a_type_that_numpy_lacks_is_refused(tmp_path):
    header = {"__metadata__": {"langshift": "{}"}, "de": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}
    content = orjson.dumps(header)
    path = tmp_path / "v.safetensors"
    path.write_bytes(len(content).to_bytes(8, "little") + content + bytes(8))
    with pytest.raises(UsageError) as refused:
        LanguageVectors.load(path)
    assert str(refused.value) == (
        f"{path} is not a file of language vectors, or is damaged; create one with `langshift vectors fit`."
    )


def test_unsound_tensors_are_refused(tmp_path):
    path = tmp_path / "v.safetensors"
    one = replace(MADE, pairs={"de": 3})
    replace(one, vectors={"de": np.zeros(4, np.float32)}).save(path)
    with pytest.raises(UsageError, match=r"the vector of de has shape \(4,\) and type float32, not \(8,\) and float32"):
        LanguageVectors.load(path)
    replace(one, vectors={"de": np.full(8, np.nan, np.float32)}).save(path)
    with pytest.raises(UsageError, match=r"the vector of de contains values that are not numbers\.$"):
        LanguageVectors.load(path)
    replace(one, vectors={"de": np.full(8, 3e38, np.float32)}).save(path)
    with pytest.raises(UsageError, match=r"the vector of de is longer than 1e\+15: it is damaged; create one with"):
        LanguageVectors.load(path)
    replace(one, vectors={"deutsch": np.zeros(8, np.float32)}, pairs={"deutsch": 1}).save(path)
    with pytest.raises(UsageError, match=r"the tensor 'deutsch' is not named after a language\.$"):
        LanguageVectors.load(path)


def test_a_header_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "v.safetensors"
    strangers = {"fr": np.ones(8, np.float32)}
    for wrong in (
        replace(MADE, pairs={}),
        replace(MADE, pivot="de"),
        replace(MADE, vectors={}, pairs={}),
        replace(MADE, means=strangers),
        replace(MADE, both_sides=Recommendation(alphas={"fr": 0.5})),
        replace(MADE, evidence={"fr": {}}),
    ):
        wrong.save(path)
        with pytest.raises(UsageError, match=r"its header and its vectors name different languages; create one"):
            LanguageVectors.load(path)
    for damaged in (
        {"pairs": None},
        {"pairs": dict.fromkeys(MADE.pairs, -1)},
        {"both_sides": 1},
        {"evidence": {"de": "x"}},
        {"pivot": "zzz"},
        {"pivot": None},
        {"dimension": "8"},
        {"both_sides": {"alpha": "x"}},
        {"source": 1},
    ):
        header = orjson.dumps({**{f: getattr(MADE, f) for f in HEADER}, **damaged}).decode()
        save_file(dict(MADE.vectors), path, metadata={"langshift": header})
        with pytest.raises(UsageError, match=r"is not a file of language vectors, or is damaged; create one with"):
            LanguageVectors.load(path)
    replace(MADE, both_sides=Recommendation(5.0)).save(path)
    with pytest.raises(UsageError, match=r"recommends alpha 5\.0, but alpha must be between 0 and 1; create one"):
        LanguageVectors.load(path)


def test_the_shipped_vectors_are_for_all_languages_of_the_shipped_encoder():
    path = shipped("use-m")
    vectors = LanguageVectors.load(path)
    vectors.require_encoder(open_encoder("use-m"), str(path))
    assert vectors.pivot == "en"
    assert list(vectors.vectors) == "ar de es fr it ja ko nl pl pt ru th tr zh zh-TW".split()  # noqa: SIM905
    assert set(vectors.pairs.values()) == {694}
    assert shipped("no-such-encoder") is None

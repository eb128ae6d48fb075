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
from langshift.languages import text_language

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


HEADER = [field.name for field in fields(MADE) if field.name not in ("vectors", "query_directions")]
DIRECTIONS = np.eye(8, dtype=np.float32)[:3]


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "new folder" / "v.safetensors"
    MADE.save(path)
    loaded = LanguageVectors.load(path)
    assert loaded.hash == MADE.hash
    assert loaded.pairs == MADE.pairs
    assert (loaded.pivot, loaded.encoder, loaded.dimension, loaded.recommendation) == ("en", "toy", 8, None)
    assert all(np.array_equal(loaded.vectors[tag], MADE.vectors[tag]) for tag in MADE.vectors)
    assert [p.name for p in path.parent.iterdir()] == ["v.safetensors"]


def test_columns_of_a_matrix_are_saved_as_what_they_hold(tmp_path):
    columns = np.arange(24, dtype=np.float32).reshape(8, 3).T
    whole = replace(
        MADE, query_directions=np.eye(8, dtype=np.float32)[:, :3].T, vectors={**MADE.vectors, "th": columns[1]}
    )
    whole.save(tmp_path / "v.safetensors")
    loaded = LanguageVectors.load(tmp_path / "v.safetensors")
    assert np.array_equal(loaded.vectors["th"], columns[1])
    assert np.array_equal(loaded.query_directions, whole.query_directions)


def test_everything_that_was_fitted_comes_back(tmp_path):
    path = tmp_path / "v.safetensors"
    whole = replace(
        MADE,
        recommendation=Recommendation(0.5, {"th": 0.25}, 0.95),
        query_directions=DIRECTIONS,
        common={"documents": np.ones(8, np.float32), "queries": np.zeros(8, np.float32)},
        query_prefix="query: ",
        query_vectors=MADE.vectors,
        evidence={"th": {"pairs": 2}},
        tuning={"budget": 0.01},
    )
    whole.save(path)
    loaded = LanguageVectors.load(path)
    for field in fields(whole):
        saved, read = getattr(whole, field.name), getattr(loaded, field.name)
        if field.name in ("vectors", "query_vectors", "common", "own_vectors"):
            assert saved.keys() == read.keys()
            assert all(np.array_equal(saved[tag], read[tag]) for tag in saved)
        elif field.name == "query_directions":
            assert np.array_equal(saved, read)
        else:
            assert saved == read


def test_the_hash_follows_the_numbers_and_not_the_recommendation():
    assert replace(MADE, recommendation=Recommendation(0.6), source="other").hash == MADE.hash
    common = {"documents": np.ones(8, np.float32), "queries": np.ones(8, np.float32)}
    step = replace(MADE, common=common, query_directions=DIRECTIONS)
    others = [replace(step, query_directions=DIRECTIONS[:2]), replace(step, common={"documents": DIRECTIONS[0]})]
    assert len({MADE.hash, step.hash, *(one.hash for one in others)}) == 4
    assert replace(step, common={**common, "queries": DIRECTIONS[1]}).hash == step.hash
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
    with pytest.raises(UsageError, match=r"the vector of de is not of the shape that its header states, or"):
        LanguageVectors.load(path)
    replace(one, vectors={"de": np.full(8, np.nan, np.float32)}).save(path)
    with pytest.raises(UsageError, match=r"the vector of de contains values that are not numbers, or too large;"):
        LanguageVectors.load(path)
    replace(one, vectors={"de": np.full(8, 3e38, np.float32)}).save(path)
    with pytest.raises(UsageError, match=r"the vector of de contains values that are not numbers, or too large;"):
        LanguageVectors.load(path)
    replace(one, vectors={"deutsch": np.zeros(8, np.float32)}, pairs={"deutsch": 1}).save(path)
    with pytest.raises(UsageError, match=r"the tensor 'deutsch' is not named after a language; create one"):
        LanguageVectors.load(path)


def test_a_header_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "v.safetensors"
    strangers = {"fr": np.ones(8, np.float32)}
    for wrong in (
        replace(MADE, pairs={}),
        replace(MADE, pivot="de"),
        replace(MADE, vectors={}, pairs={}),
        replace(MADE, query_vectors=strangers),
        replace(MADE, recommendation=Recommendation(alphas={"fr": 0.5})),
        replace(MADE, evidence={"fr": {}}),
    ):
        wrong.save(path)
        with pytest.raises(UsageError, match=r"its header and its vectors name different languages; create one"):
            LanguageVectors.load(path)
    for damaged in (
        {"pairs": None},
        {"pairs": dict.fromkeys(MADE.pairs, -1)},
        {"recommendation": 1},
        {"evidence": {"de": "x"}},
        {"pivot": "zzz"},
        {"pivot": None},
        {"dimension": "8"},
        {"recommendation": {"alpha": "x"}},
        {"source": 1},
    ):
        header = orjson.dumps({**{f: getattr(MADE, f) for f in HEADER}, **damaged}).decode()
        save_file(dict(MADE.vectors), path, metadata={"langshift": header})
        with pytest.raises(UsageError, match=r"is not a file of language vectors, or is damaged; create one with"):
            LanguageVectors.load(path)
    replace(MADE, recommendation=Recommendation(5.0)).save(path)
    with pytest.raises(UsageError, match=r"recommends an alpha that is not between 0 and 1; create one"):
        LanguageVectors.load(path)


def test_a_file_of_a_former_gamma_is_refused(tmp_path):
    path = tmp_path / "v.safetensors"
    header = orjson.dumps({**{name: getattr(MADE, name) for name in HEADER}, "both_sides": None}).decode()
    save_file(dict(MADE.vectors), path, metadata={"langshift": header})
    with pytest.raises(UsageError) as refused:
        LanguageVectors.load(path)
    assert str(refused.value) == (
        f"{path} was fitted for queries that are shifted, too, which is no longer done: fit it anew with "
        "`langshift vectors fit`."
    )


def test_directions_that_are_none_are_refused(tmp_path):
    path = tmp_path / "v.safetensors"
    for wrong in (
        np.eye(4, dtype=np.float32),
        DIRECTIONS[0],
        DIRECTIONS[:0],
        DIRECTIONS.astype(np.float64),
        DIRECTIONS + np.float32(0.1),
        DIRECTIONS * np.float32(np.nan),
    ):
        replace(MADE, query_directions=wrong).save(path)
        with pytest.raises(UsageError) as refused:
            LanguageVectors.load(path)
        assert str(refused.value) == (
            f"{path} is damaged, because the directions of queries are not at right angles, of length 1, and of its "
            "dimension in 32 bits; create one with `langshift vectors fit`."
        )
    replace(MADE, query_directions=DIRECTIONS, recommendation=Recommendation(gamma=0.97)).save(path)
    with pytest.raises(UsageError, match=r"recommends a gamma without the mean and the directions that it takes out"):
        LanguageVectors.load(path)


def test_directions_are_those_of_the_means_of_queries_and_else_of_documents():
    random = np.random.default_rng(1)
    queries = {tag: random.standard_normal(8).astype(np.float32) for tag in MADE.vectors}
    common = {"documents": np.ones(8, np.float32), "queries": random.standard_normal(8).astype(np.float32)}
    for whole, mean, others in (
        (replace(MADE, query_vectors=queries, common=common), common["queries"], queries),
        (replace(MADE, vectors=queries, common=common), common["documents"], queries),
    ):
        means = np.stack([mean, *(mean + others[tag] for tag in others)])
        for rank in (1, 3, 5):
            found = whole.with_rank(rank).query_directions
            _, _, rows = np.linalg.svd(means.astype(np.float64))
            assert found.dtype == np.float32
            assert np.abs(np.abs((found.astype(np.float64) * rows[:rank]).sum(axis=1)) - 1).max() < 1e-6
    assert replace(MADE).with_rank(None).query_directions is None
    # One that all share, and one that is a hundredth of it.
    alike = {"de": np.float32([0.01, 0, 0, 0, 0, 0, 0, 0]), "th": np.zeros(8, np.float32)}
    few = replace(MADE, vectors=alike, common={"documents": np.float32([0, 1, 0, 0, 0, 0, 0, 0])})
    assert few.with_rank(None).query_directions.tolist() == [pytest.approx([0, 1, 0, 0, 0, 0, 0, 0], abs=0.01)]
    nothing = dict.fromkeys(alike, np.zeros(8, np.float32))
    assert replace(few, vectors=nothing, common={"documents": nothing["de"]}).with_rank(None).query_directions is None
    assert len(few.with_rank(2).query_directions) == 2
    with pytest.raises(UsageError) as refused:
        few.with_rank(3)
    assert str(refused.value) == (
        "3 directions were asked for, but the means of queries in 3 languages and 8 dimensions span only 2: ask for no "
        "more, or fit more languages, with texts that differ."
    )
    with pytest.raises(UsageError, match=r"^These language vectors hold no mean of queries"):
        MADE.with_rank(1)


def test_the_shipped_vectors_are_for_all_languages_of_the_shipped_encoder():
    path = shipped("use-m")
    vectors = LanguageVectors.load(path)
    vectors.require_encoder(open_encoder("use-m"), str(path))
    assert vectors.pivot == "en"
    assert list(vectors.vectors) == "ar de es fr it ja ko nl pl pt ru th tr zh zh-TW".split()  # noqa: SIM905
    assert set(vectors.pairs.values()) == {694}
    assert shipped("no-such-encoder") is None


@pytest.mark.parametrize(("encoder", "most_often"), [("e5-small", 0.9), ("use-m", 0.5)])
def test_what_ships_tells_the_language_of_queries(encoder, most_often):
    known = LanguageVectors.load(shipped(encoder))
    tags = [known.pivot, *sorted(known.query_vectors or known.vectors)]
    own = np.array([known.own_vectors[text_language(tag)] for tag in tags])
    responses = known.query_means @ own.T
    assert np.median(responses.diagonal()) == pytest.approx(1, abs=0.4)
    assert np.mean(responses.diagonal() >= responses.max(axis=1)) >= most_often
    # Of use-m's queries it is hardly told, so that no preference is recommended.
    recommended = [known.recommended_own(share) for share in (0, 0.5, 1)]
    assert recommended == ([0.002, 0.016, 0.029] if encoder == "e5-small" else [0, 0, 0])

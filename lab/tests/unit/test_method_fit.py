"""Fitting the methods beside the shift, and their file."""

from dataclasses import replace

import numpy as np
import pytest
from parallel_source import Texts, Vectors, given_encoder
from toy_encoder import ToyEncoder

from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift_lab.methods.debiaser import MethodDebiaser
from langshift_lab.methods.fit import fit_methods
from langshift_lab.methods.vectors import MethodVectors

TEXTS = {
    "de": ["eins", "zwei", "drei", "vier", "fünf"],
    "en": ["one", "two", "", "four", "five"],
    "th": ["", "สอง", "สาม", "", ""],
}


def made_vectors(rows, dimension=12):
    """Given vectors with an offset of each language's own."""
    random = np.random.default_rng(0)
    shared = random.standard_normal((rows, dimension))
    return {
        tag: (shared + random.standard_normal(dimension) + 0.5 * random.standard_normal((rows, dimension))).astype(
            np.float32
        )
        for tag in ("de", "en", "th")
    }


def test_each_method_gets_what_it_needs():
    vectors = made_vectors(400)
    # What no shift takes back: German has its directions in other places.
    vectors["de"] = np.roll(vectors["de"], 1, axis=1)
    vectors["th"][10:20] = np.nan
    made = fit_methods(Vectors(vectors), ["en"], given_encoder(), methods=["lir", "affine"])["en"]
    there = {tag: rows[~np.isnan(rows).any(axis=1)].astype(np.float64) for tag, rows in vectors.items()}
    assert sorted(made.directions) == sorted(made.means) == ["de", "en", "th"]
    for tag, found in made.directions.items():
        direction = np.linalg.svd(there[tag], full_matrices=False)[2][:1]
        assert abs(float(found[0] @ direction[0])) == pytest.approx(1, abs=1e-5)
        assert made.means[tag] == pytest.approx(there[tag].mean(axis=0), abs=1e-5)
    assert sorted(made.maps) == ["de", "th"]
    rows = vectors["de"]
    plain = np.square(rows - made.vectors["de"] - vectors["en"]).mean()
    mapped = MethodDebiaser(made, method="affine").documents(rows, ["de"] * len(rows))
    assert np.square(mapped - vectors["en"]).mean() < plain
    shifted = fit_methods(Vectors(vectors), ["en"], given_encoder(), methods=["shift", "centering"])["en"]
    assert (shifted.directions, shifted.maps, sorted(shifted.means)) == ({}, {}, ["de", "en", "th"])
    assert shifted.hash == made.hash
    with pytest.raises(UsageError) as refused:
        fit_methods(Vectors(vectors), ["en"], given_encoder(), methods=["procrustes"])
    assert (
        str(refused.value) == "The method 'procrustes' cannot be fitted; choose one of shift, centering, lir, affine."
    )


def test_a_language_with_too_few_pairs_is_left_out():
    made = fit_methods(Texts(TEXTS), ["de", "en"], ToyEncoder(), methods=["shift", "lir"])
    assert set(made["en"].directions) == {"de", "en"}
    assert set(made["de"].means) == {"de", "en", "th"}


def test_the_file_holds_all_of_it_and_is_read_without(tmp_path):
    path, vectors = tmp_path / "v.safetensors", made_vectors(60)
    made = fit_methods(Vectors(vectors), ["en"], given_encoder(), methods=["lir", "affine"])["en"]
    made.save(path)
    loaded = MethodVectors.load(path)
    for name in ("vectors", "means", "directions", "maps"):
        saved, read = getattr(made, name), getattr(loaded, name)
        assert saved.keys() == read.keys() != set()
        assert all(np.array_equal(saved[tag], read[tag]) for tag in saved)
    assert LanguageVectors.load(path).hash == loaded.hash == made.hash
    replace(made, maps={}, means={"fr": np.ones(12, np.float32)}).save(path)
    with pytest.raises(UsageError, match=r"its header and its vectors name different languages; create one"):
        MethodVectors.load(path)
    replace(made, means={}).save(path)
    with pytest.raises(UsageError, match=r"has a map for a language without its mean embedding; create one with"):
        MethodVectors.load(path)
    replace(made, maps={"de": np.ones((2, 12), np.float32)}).save(path)
    with pytest.raises(UsageError, match=r"the tensor affine of de is not of the shape that its header states"):
        MethodVectors.load(path)

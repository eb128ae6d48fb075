"""Language vectors and common means adapted to an index's own documents."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shifted_index import language_vectors

from langshift.debias.index_means import EmbeddingSums, adapted, measured_in_words
from langshift.debias.vectors import LanguageVectors

TAGS, DIMENSION = ("de", "th"), 6
SEEDS = st.integers(0, 2**32 - 1)


def known(seed=1, *, queries=True):
    """Vectors of documents and queries with common means."""
    rows = np.random.default_rng(seed).standard_normal((4, DIMENSION)).astype(np.float32)
    query_vectors = dict(zip(TAGS, rows[2:], strict=True)) if queries else {}
    common = {"documents": rows[0], "queries": rows[1]}
    return replace(language_vectors(seed, TAGS), query_vectors=query_vectors, common=common)


def sums(vectors, **rows):
    """Sums of embeddings that are given by language."""
    made = EmbeddingSums(vectors)
    for tag, of in rows.items():
        made.add(np.array(of, np.float32), [tag.replace("_", "-")] * len(of))
    return made


def like_parallel(vectors, noise=0.0, count=200, tags=("en", *TAGS)):
    """Documents that lie as the parallel text does."""
    spread = np.random.default_rng(3).standard_normal((count, DIMENSION))
    spread -= spread.mean(axis=0)
    mean = vectors.common["documents"]
    return {tag: mean + vectors.vectors.get(tag, 0) + noise + spread for tag in tags}


def distance(one, other):
    return max(float(np.abs(one[tag] - other[tag]).max()) for tag in one)


@given(SEEDS)
def test_documents_like_the_parallel_text_change_nothing(seed):
    vectors = known(seed)
    made = adapted(vectors, sums(vectors, **like_parallel(vectors)))
    for part in ("vectors", "query_vectors", "common"):
        assert distance(getattr(made, part), getattr(vectors, part)) < 1e-5


@given(SEEDS)
def test_what_all_languages_share_goes_to_the_common_mean_alone(seed):
    vectors = known(seed)
    made = adapted(vectors, sums(vectors, **like_parallel(vectors, noise=1.0)))
    # Beside three languages of nearly weight 1 what was fitted counts 1.
    share = 3 * (200 / 210) / (3 * (200 / 210) + 1)
    for side in ("documents", "queries"):
        np.testing.assert_allclose(made.common[side] - vectors.common[side], share, atol=1e-4)
    off = made.vectors["de"] - vectors.vectors["de"]
    np.testing.assert_allclose(off, 0, atol=1e-5)


def test_worked_out_by_hand():
    vectors = replace(known(), dimension=1, query_vectors={"de": np.float32([5])}, vectors={"de": np.float32([2])})
    vectors = replace(vectors, common={"documents": np.float32([1]), "queries": np.float32([4])})
    # Of 10 documents a mean counts .5: m = (.5 * 1 + .5 * (8 - 2) + 1 * 1) / 2, and a sixth of what is left moves.
    made = adapted(vectors, sums(vectors, en=[[1]] * 10, de=[[8]] * 10))
    mean = 4.5 / 2
    moved = (6 - mean) / 6 - (1 - mean) / 6
    assert made.vectors["de"] == pytest.approx(2 + moved)
    assert made.query_vectors["de"] == pytest.approx(5 + moved)
    now = (0.5 * 1 + 0.5 * (8 - 2 - moved) + 1) / 2
    assert made.common["documents"] == pytest.approx(now)
    assert made.common["queries"] == pytest.approx(4 + now - 1)
    assert made.measured == {
        "vectors": vectors.hash,
        "documents": 20,
        "queries": 0,
        "shares": {"de": 0.167, "en": 0.167},
    }
    assert made.hash != vectors.hash


def test_queries_tell_their_own_mean():
    vectors = replace(known(), dimension=1, query_vectors={}, vectors={"de": np.float32([2])})
    vectors = replace(vectors, common={"documents": np.float32([1]), "queries": np.float32([4])})
    made = adapted(vectors, sums(vectors), sums(vectors, de=[[10]] * 30))
    assert made.vectors["de"].tolist() == [2]
    assert made.common["documents"].tolist() == [1]
    # Without V of queries that of documents is taken; of 30 queries the mean counts .75.
    assert made.common["queries"] == pytest.approx((0.75 * (10 - 2) + 4) / 1.75)
    assert (made.measured["documents"], made.measured["queries"]) == (0, 30)


def test_nothing_counts_without_a_usable_vector_or_a_language_that_has_one():
    vectors = known()
    of = sums(vectors, und=np.ones((3, DIMENSION)), vi=np.ones((3, DIMENSION)))
    of.add(np.float32([[np.nan] * DIMENSION, [0] * DIMENSION, [np.inf] * DIMENSION]), ["de", "de", "de"])
    of.add(np.ones((1, DIMENSION), np.float32), [None])
    assert (of.counts, of.seen) == ({}, 7)
    made = adapted(vectors, of)
    assert made.hash == vectors.hash
    assert made.common["queries"].tobytes() == vectors.common["queries"].tobytes()
    assert made.measured["shares"] == {}


def test_languages_count_for_the_vector_that_they_take():
    of = sums(known(), en_GB=np.ones((1, DIMENSION)), de_AT=np.ones((2, DIMENSION)), th=np.ones((1, DIMENSION)))
    assert of.counts == {"en": 1, "de": 2, "th": 1}


def test_a_language_without_documents_moves_by_the_pivots_part_alone():
    vectors = known()
    rows = np.random.default_rng(5).standard_normal((40, DIMENSION))
    alone = adapted(vectors, sums(vectors, de=rows))
    assert alone.vectors["th"].tobytes() == vectors.vectors["th"].tobytes()
    both = adapted(vectors, sums(vectors, de=rows, en=rows + 1))
    off = both.vectors["th"] - vectors.vectors["th"]
    fitted = vectors.common["documents"].astype(np.float64)
    mean = sums(vectors, de=rows, en=rows + 1).common(vectors.vectors, fitted)
    np.testing.assert_allclose(off, -(40 / 50 / 3) * (np.float32(rows + 1).mean(axis=0) - mean), atol=1e-5)


def test_without_common_means_vectors_change_alone():
    vectors = language_vectors(1, TAGS)
    rows = np.random.default_rng(5).standard_normal((40, DIMENSION))
    made = adapted(vectors, sums(vectors, de=rows, en=rows))
    assert made.common == {}
    assert distance(made.vectors, vectors.vectors) > 0.01


def test_the_file_keeps_what_was_measured(tmp_path):
    vectors = replace(known(), means={"en": np.ones(DIMENSION, np.float32)})
    made = adapted(vectors, sums(vectors, de=np.ones((4, DIMENSION))))
    assert made.means == {}
    made.save(tmp_path / "v.safetensors")
    read = LanguageVectors.load(tmp_path / "v.safetensors")
    assert (read.hash, read.measured) == (made.hash, made.measured)


def test_in_words():
    measured = {"documents": 1000, "queries": 1, "shares": {"de": 0.24, "en": 0.3, "th": 0.241}, "vectors": ""}
    assert measured_in_words(measured) == (
        "The common mean was measured on 1,000 documents and 1 query; of the differences between languages 30% (en), "
        "24% (th, de) are the index's own."
    )
    assert measured_in_words({"documents": 0, "queries": 0, "shares": {}, "vectors": ""}) == (
        "The common mean is that of the language vectors: no document was in a language that they know."
    )

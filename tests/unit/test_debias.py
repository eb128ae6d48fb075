"""The shift as documents meet it: by language."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.debias import debiaser as module
from langshift.debias.debiaser import Debiaser, is_shifted, is_undoable, recommended, restored, shifted, undo
from langshift.debias.fitting.directions import principal_directions
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift.languages import text_language

DIMENSION = 6
TAGS = ("de", "th", "zh", "zh-TW")
NAMES = st.sampled_from(["en", "en-GB", *TAGS, "zh-HK", "arz", "pt-BR", "und", "fr"])
LANGUAGES = st.lists(NAMES, min_size=1, max_size=12)
NORMS = st.floats(1, 50)
SEEDS = st.integers(0, 2**32 - 1)
GAMMAS = st.floats(0.9, 0.98)


def known(seed=0, norm=1.0, *, queries=False):
    """Language vectors with everything that a gamma needs."""
    random = np.random.default_rng(seed)

    def rows(*shape):
        made = random.standard_normal((*shape, DIMENSION))
        return (norm * made / np.linalg.norm(made, axis=-1, keepdims=True)).astype(np.float32)

    vectors = {tag: rows() for tag in TAGS}
    return LanguageVectors(
        "en", vectors, dict.fromkeys(TAGS, 9), "toy", "1", "", DIMENSION, False, "made up",
        query_vectors={tag: rows() for tag in TAGS} if queries else {},
        common={"documents": rows(), "queries": rows()},
    ).with_rank(2)  # fmt: skip


def texts(seed, count, norm=1.0):
    random = np.random.default_rng(seed)
    made = random.standard_normal((count, DIMENSION))
    return (norm * made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


@given(SEEDS, NORMS, LANGUAGES, st.floats(0.05, 1))
def test_each_document_moves_by_its_own_language_alone(seed, norm, languages, alpha):
    file, given_ = known(seed, norm), texts(seed + 1, len(languages), norm)
    moved = Debiaser(file, alpha=alpha, alphas={"th": alpha / 2}).documents(given_, languages)
    for before, after, tag in zip(given_, moved, languages, strict=True):
        key = file.key(tag) if tag != "und" else None
        step = 0 if key is None else (alpha / 2 if key == "th" else alpha) * file.vectors[key].astype(np.float64)
        assert np.array_equal(after, (before.astype(np.float64) - step).astype(np.float32))


@given(SEEDS, NORMS, LANGUAGES)
def test_shifting_there_and_back(seed, norm, languages):
    debias, given_ = Debiaser(known(seed, norm), alpha=0.7), texts(seed + 1, len(languages), norm)
    back = Debiaser(debias.vectors, alpha=-0.7).documents(debias.documents(given_, languages), languages)
    assert (np.linalg.norm(back - given_, axis=1) <= 1e-5 * norm).all()


@given(SEEDS, NORMS, LANGUAGES)
def test_alpha_0_changes_nothing_bit_for_bit(seed, norm, languages):
    given_ = texts(seed + 1, len(languages), norm)
    assert np.array_equal(Debiaser(known(seed, norm), 0.0).documents(given_, languages), given_)


@given(SEEDS, NORMS, LANGUAGES)
def test_the_pivot_is_never_touched(seed, norm, languages):
    given_ = texts(seed + 1, len(languages), norm)
    pivot = np.array([tag in ("en", "en-GB", "und", "fr", "pt-BR") for tag in languages])
    moved = Debiaser(known(seed, norm)).documents(given_, languages)
    assert np.array_equal(moved[pivot], given_[pivot])


@given(SEEDS, NORMS, st.floats(0.05, 1))
def test_alpha_goes_part_of_the_way(seed, norm, alpha):
    file, rows, languages = known(seed, norm), texts(seed + 1, 4, norm), ["de", "zh-HK", "zh-TW", "th"]
    entire = Debiaser(file).documents(rows, languages).astype(np.float64)
    part = Debiaser(file, 0.0, dict.fromkeys(TAGS, alpha)).documents(rows, languages)
    size = np.abs(entire).max() + norm
    assert np.abs(part - (rows + alpha * (entire - rows))).max() <= 1e-6 * size
    assert (part != rows).any(axis=1).all()


def test_regional_tags_take_the_nearest_vector():
    debias = Debiaser(known())
    found = [debias.key(tag) for tag in ("zh-TW", "zh-HK", "cmn", "de-AT", "fr", "und")]
    assert found == ["zh-TW", "zh-TW", "zh", "de", None, None]
    assert debias.key("en-GB") is None


def test_many_documents_go_in_parts(monkeypatch):
    rows, languages = texts(1, 50), [*TAGS, "en"] * 10
    debias = Debiaser(known(), 0.7)
    at_once = debias.documents(rows, languages)
    monkeypatch.setattr(module, "AT_ONCE", 3)
    assert np.abs(debias.documents(rows, languages) - at_once).max() <= 1e-6


def test_vectors_on_disk_are_read_and_left_alone(tmp_path):
    rows = texts(1, 4)
    np.save(tmp_path / "rows.npy", rows)
    kept = np.load(tmp_path / "rows.npy", mmap_mode="r")
    moved = Debiaser(known()).documents(kept, ["de", "en", "th", "und"])
    assert (type(moved), moved.dtype, moved.flags.writeable) == (np.ndarray, np.float32, True)
    assert np.array_equal(kept, rows)


def test_without_language_vectors_nothing_moves():
    rows = texts(1, 2)
    assert np.array_equal(Debiaser(None).documents(rows, ["de", "th"]), rows)


@given(SEEDS, NORMS, LANGUAGES, st.floats(0, 1), GAMMAS)
def test_gamma_takes_the_directions_of_queries_out_of_every_document(seed, norm, languages, alpha, gamma):
    file, rows = known(seed, norm, queries=True), texts(seed + 1, len(languages), norm)
    moved = Debiaser(file, alpha=alpha, gamma=gamma).documents(rows, languages)
    basis, mean = file.query_directions.astype(np.float64), file.common["documents"].astype(np.float64)
    kept = np.eye(DIMENSION) - gamma * basis.T @ basis
    for before, after, tag in zip(rows, moved, languages, strict=True):
        key = file.key(tag) if tag != "und" else None
        offset = 0 if key is None else alpha * file.vectors[key].astype(np.float64)
        expected = kept @ (before - offset - mean) + (1 - gamma) * mean
        assert np.linalg.norm(after - expected) <= 1e-6 * norm


@given(SEEDS, NORMS, LANGUAGES, st.floats(0, 1), GAMMAS)
def test_what_gamma_took_comes_back(seed, norm, languages, alpha, gamma):
    file, rows = known(seed, norm), texts(seed + 1, len(languages), norm)
    there = Debiaser(file, alpha=alpha, gamma=gamma).documents(rows, languages)
    for before, after, tag in zip(rows, there, languages, strict=True):
        key = file.key(tag) if tag != "und" else None
        stamp = {"gamma": gamma, **({} if key is None else {"language": key, "alpha": alpha})}
        # Of six dimensions two hold the fiftieth part only; with hundreds, rounding is a tenth of this.
        assert np.linalg.norm(undo(after, stamp, file) - before) <= 1e-5 * norm


def preferring(seed=0, norm=1.0):
    """With a preference vector for the pivot and one language, and documents that are scattered by a tenth."""
    file, numbers = known(seed, norm, queries=True), np.random.default_rng(seed + 9)
    own = {tag: numbers.standard_normal(DIMENSION).astype(np.float32) for tag in ("de", "en")}
    return replace(file, own_vectors=own, scatter=[0.1 * norm**2, *[0.01 * norm**2] * len(file.query_directions)])


@given(SEEDS, NORMS, LANGUAGES, st.floats(0, 1), st.sampled_from([0.0, 0.9, 0.97]), st.floats(0.001, 0.1))
def test_own_adds_the_preference_vector_of_a_documents_language(seed, norm, languages, alpha, gamma, own):
    file, rows = preferring(seed, norm), texts(seed + 1, len(languages), norm)
    debias, without = (Debiaser(file, alpha, gamma=gamma, own=one) for one in (own, 0.0))
    basis, mean = file.query_directions.astype(np.float64), file.common["documents"].astype(np.float64)
    left = np.stack([np.zeros(DIMENSION), *[(1 - alpha) * one.astype(np.float64) for one in file.vectors.values()]])
    means = (mean + left) if not gamma else left @ (np.eye(DIMENSION) - gamma * basis.T @ basis) + (1 - gamma) * mean
    within = norm**2 * (0.1 - (1 - (1 - gamma) ** 2) * 0.01 * len(basis))
    weight = own * np.sqrt((means**2).sum(axis=1).mean() + within)
    assert debias.weight == pytest.approx(weight, rel=1e-9)
    moved, plain = (one.documents(rows, languages) for one in (debias, without))
    for before, after, other, tag in zip(rows, moved, plain, languages, strict=True):
        spoken, stamp = text_language(tag), debias.stamp(tag)
        step = weight * file.own_vectors[spoken].astype(np.float64) if spoken in file.own_vectors else 0
        assert np.linalg.norm(after - (other + step)) <= 1e-6 * (norm + np.linalg.norm(step))
        assert stamp["own"].get("language") == (spoken if spoken in file.own_vectors else None)
        assert np.linalg.norm(undo(after, stamp, file) - before) <= 1e-5 * norm
        assert is_shifted({"own": stamp["own"]}) == (spoken in file.own_vectors)
        assert "own" not in without.stamp(tag)


def test_there_and_back_forty_times_is_exact_to_float32():
    # As many dimensions as models have: of fewer, more would be along the directions.
    numbers, dimension = np.random.default_rng(3), 384
    means = numbers.standard_normal((13, dimension)).astype(np.float32) / 20
    file = LanguageVectors(
        *("en", {"de": means[0]}, {"de": 1}, "toy", "1", "", dimension, True, "made up"),
        common={"documents": means[1], "queries": means[1]},
        query_directions=principal_directions(means[1:].astype(np.float64), 12),
        own_vectors={"de": numbers.standard_normal(dimension).astype(np.float32) / 3},
        scatter=[0.2] * 13,
    )
    raw = numbers.standard_normal(dimension)
    raw = (raw / np.linalg.norm(raw)).astype(np.float32)
    first, other = Debiaser(file, 1.0, gamma=0.97, own=0.03), Debiaser(file, 0.5, gamma=0.9, own=0.004)
    begun = stored = first.documents(raw[None], ["de"])[0]
    for _ in range(40):
        for one, then in ((first, other), (other, first)):
            stored = shifted(restored(stored, one.stamp("de"), file), then.stamp("de"), file)
    assert np.linalg.norm(stored - begun) <= 1e-6
    assert np.linalg.norm(undo(stored, first.stamp("de"), file) - raw) <= 2e-6


@pytest.mark.parametrize(
    ("stamp", "known"),
    [
        ({"own": {"vectors": "mine", "weight": 0.1, "language": "de"}}, True),
        ({"own": {"vectors": "other", "weight": 0.1, "language": "de"}}, False),
        ({"own": {"vectors": "mine", "weight": 0.1, "language": "xx"}}, False),
        ({"own": {"vectors": "other", "weight": 0.0}}, True),
        ({"vectors": "other", "alpha": 0.0}, True),
        ({"vectors": "other", "alpha": 0.5, "language": "de"}, False),
        ({"own": "yes"}, True),
    ],
)
def test_what_a_stamp_says_can_be_taken_back_by_the_vectors_that_it_names(stamp, known):
    file = preferring()
    names = {"mine": file.own_hash}
    own = stamp.get("own")
    if isinstance(own, dict):
        stamp = stamp | {"own": {**own, "vectors": names.get(own["vectors"], own["vectors"])}}
    assert is_undoable(stamp, file) == known


def test_what_own_cannot_be():
    with pytest.raises(UsageError, match=r"^own 0\.2 cannot be used: it must be between 0 and 0\.1\.$"):
        Debiaser(preferring(), own=0.2)
    with pytest.raises(
        UsageError, match=r"^The language vectors contain no preference vectors for --own: fit them anew"
    ):
        Debiaser(known(queries=True), own=0.02)


@given(SEEDS, NORMS, LANGUAGES, st.floats(0.05, 1))
def test_gamma_0_is_the_shift_alone_bit_for_bit(seed, norm, languages, alpha):
    file, rows = known(seed, norm), texts(seed + 1, len(languages), norm)
    bare = replace(file, common={}, query_directions=None)
    shifts = (Debiaser(one, alpha=alpha).documents(rows, languages) for one in (file, bare))
    assert np.array_equal(*shifts)


def test_a_document_at_right_angles_to_queries_ranks_as_if_the_query_had_been_shifted():
    file = known(queries=True)
    query, rows = texts(2, 1)[0].astype(np.float64), texts(3, 40)
    moved = Debiaser(file, gamma=0.98).documents(rows, ["de"] * 40).astype(np.float64)
    basis = file.query_directions.astype(np.float64)
    asked = query - basis.T @ (basis @ query)
    # What is left of the mean and along the directions is a fiftieth.
    assert np.abs(moved @ query - moved @ asked).max() < 0.1


def test_refusals():
    for make, told in (
        *(
            (
                lambda gamma=gamma: recommended(known(), gamma=gamma),
                f"gamma {gamma:g} cannot be used: it must be 0, or 0.9 to 0.98. Values between find less than either, "
                "and what 1 takes out of a vector cannot be put back.",
            )
            for gamma in (0.5, 0.899, 0.981, 1.0, -0.95, float("nan"))
        ),
        *(
            (
                lambda lacks=lacks: Debiaser(replace(known(queries=True), **lacks), gamma=0.95),
                "The language vectors contain no directions of queries for a gamma: fit them anew with "
                "`langshift vectors fit`, or leave gamma at 0.",
            )
            for lacks in ({"common": {}}, {"query_directions": None})
        ),
    ):
        with pytest.raises(UsageError) as error:
            make()
        assert str(error.value) == told

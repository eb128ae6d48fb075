"""Methods as documents and queries meet them: by language, on one side or both."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from langshift.debias import debiaser as module
from langshift.debias.debiaser import shift
from langshift.errors import UsageError
from langshift_lab.methods.debiaser import METHODS, QUERY_SIDE, MethodDebiaser, soft_shift
from langshift_lab.methods.vectors import MethodVectors

DIMENSION = 6
TAGS = ("de", "th", "zh", "zh-TW")
NAMES = st.sampled_from(["en", "en-GB", *TAGS, "zh-HK", "arz", "pt-BR", "und", "fr"])
LANGUAGES = st.lists(NAMES, min_size=1, max_size=12)
NORMS = st.floats(1, 50)
SEEDS = st.integers(0, 2**32 - 1)
DOCUMENT_SIDE = ("shift", "affine")
GAMMAS = st.floats(0.9, 0.98)


def known(seed=0, norm=1.0, *, queries=False):
    """Language vectors with everything that any method needs."""
    random = np.random.default_rng(seed)

    def rows(*shape):
        made = random.standard_normal((*shape, DIMENSION))
        return (norm * made / np.linalg.norm(made, axis=-1, keepdims=True)).astype(np.float32)

    vectors = {tag: rows() for tag in TAGS}
    return MethodVectors(
        "en", vectors, dict.fromkeys(TAGS, 9), "toy", "1", "", DIMENSION, False, "made up",
        query_vectors={tag: rows() for tag in TAGS} if queries else {},
        common={"documents": rows(), "queries": rows()},
        means={tag: rows() for tag in ("en", *TAGS)},
        directions={tag: rows(1) / np.float32(norm) for tag in ("en", *TAGS)},
        maps={tag: rows(DIMENSION) for tag in TAGS},
    ).with_rank(2)  # fmt: skip


def texts(seed, count, norm=1.0):
    random = np.random.default_rng(seed)
    made = random.standard_normal((count, DIMENSION))
    return (norm * made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def test_centering_worked_out_by_hand():
    mean, rows = np.array([1, -1, 0, 0, 0, 0], np.float32), np.zeros((2, DIMENSION), np.float32)
    rows[:, :2] = [[1, 2], [3, 4]]
    file = replace(known(), means={"de": mean})
    for alpha, expected in ((1.0, [[0, 3], [2, 5]]), (0.5, [[0.5, 2.5], [2.5, 4.5]])):
        moved = MethodDebiaser(file, alpha, method="centering").documents(rows, ["de", "de"])
        assert moved[:, :2].tolist() == expected
        assert not moved[:, 2:].any()


@pytest.mark.parametrize("method", METHODS)
@given(seed=SEEDS, norm=NORMS, languages=LANGUAGES)
def test_alpha_0_changes_nothing_bit_for_bit(method, seed, norm, languages):
    debias, given_ = (
        MethodDebiaser(known(seed, norm), 0.0, method=method, shift_queries=True),
        texts(seed + 1, len(languages), norm),
    )
    assert np.array_equal(debias.documents(given_, languages), given_)
    assert np.array_equal(debias.queries(given_, languages), given_)


@pytest.mark.parametrize("method", DOCUMENT_SIDE)
@given(seed=SEEDS, norm=NORMS, languages=LANGUAGES)
def test_the_pivot_is_never_touched(method, seed, norm, languages):
    debias, given_ = (
        MethodDebiaser(known(seed, norm), method=method, shift_queries=True),
        texts(seed + 1, len(languages), norm),
    )
    pivot = np.array([tag in ("en", "en-GB", "und", "fr", "pt-BR") for tag in languages])
    for moved in (debias.documents(given_, languages), debias.queries(given_, languages)):
        assert np.array_equal(moved[pivot], given_[pivot])


@given(SEEDS, NORMS, LANGUAGES, st.floats(0, 1))
def test_a_hard_posterior_makes_the_soft_shift_the_shift_bit_for_bit(seed, norm, languages, alpha):
    debias, given_ = (
        MethodDebiaser(known(seed, norm), alpha=alpha, alphas={"de": 0.3}),
        texts(seed + 1, len(languages), norm),
    )
    soft = debias.soft(given_, [{} if tag == "und" else {tag: 1.0} for tag in languages])
    assert np.array_equal(soft, debias.documents(given_, languages))


@given(SEEDS, NORMS, st.floats(0, 1))
def test_languages_of_one_vector_share_a_posterior(seed, norm, alpha):
    debias, rows = MethodDebiaser(known(seed, norm), alpha=alpha), texts(seed + 1, 1, norm)
    soft = debias.soft(rows, [{"zh": 0.625, "zh-SG": 0.375}])
    assert np.array_equal(soft, debias.documents(rows, ["zh-SG"]))


@given(SEEDS, NORMS)
def test_what_the_pivot_and_strangers_are_probable_by_moves_nothing(seed, norm):
    debias, rows = MethodDebiaser(known(seed, norm), alphas={"th": 0.0}), texts(seed + 1, 2, norm)
    assert np.array_equal(debias.soft(rows, [{"en": 0.5, "en-GB": 0.2, "fr": 0.2, "und": 0.1}, {"th": 1.0}]), rows)


def test_an_uncertain_document_moves_by_what_is_expected():
    file, (row,) = known(), texts(1, 1)
    (moved,) = MethodDebiaser(file, alpha=0.5, alphas={"th": 1.0}).soft(
        row[np.newaxis], [{"de": 0.5, "th": 0.25, "en": 0.2}]
    )
    expected = row - 0.5 * 0.5 * file.vectors["de"] - 0.25 * file.vectors["th"]
    assert np.abs(moved - expected).max() < 1e-6


def test_queries_move_only_where_asked_and_as_documents_do():
    rows, languages = texts(1, 4), ["en", "de", "zh-HK", "zh-TW"]
    for method in DOCUMENT_SIDE:
        file = known(queries=True)
        assert np.array_equal(MethodDebiaser(file, method=method).queries(rows, [*languages[:3], None]), rows)
        debias = MethodDebiaser(file, 0.5, method=method, shift_queries=True)
        assert np.array_equal(debias.queries(rows, languages), debias.documents(rows, languages))


@pytest.mark.parametrize("method", ["centering", "lir"])
def test_methods_of_both_sides_change_the_pivot_and_queries_too(method):
    debias, rows = MethodDebiaser(known(), method=method), texts(1, 2)
    moved = debias.documents(rows, ["en", "und"])
    assert not np.array_equal(moved[0], rows[0])
    assert np.array_equal(moved[1], rows[1])
    assert np.array_equal(debias.queries(rows, ["en", None]), moved)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "none"])
@given(seed=SEEDS, norm=NORMS, alpha=st.floats(0.05, 1))
def test_alpha_goes_part_of_the_way(method, seed, norm, alpha):
    file, rows, languages = known(seed, norm), texts(seed + 1, 4, norm), ["de", "zh-HK", "zh-TW", "th"]
    entire = MethodDebiaser(file, method=method).documents(rows, languages).astype(np.float64)
    part = MethodDebiaser(file, 0.0, dict.fromkeys(TAGS, alpha), method=method).documents(rows, languages)
    size = np.abs(entire).max() + norm
    assert np.abs(part - (rows + alpha * (entire - rows))).max() <= 1e-6 * size
    assert (part != rows).any(axis=1).all()


@pytest.mark.parametrize("method", METHODS)
def test_regional_tags_take_the_nearest_vector(method):
    debias = MethodDebiaser(known(), method=method)
    found = [debias.key(tag) for tag in ("zh-TW", "zh-HK", "cmn", "de-AT", "fr", "und")]
    assert found == ([None] * 6 if method == "none" else ["zh-TW", "zh-TW", "zh", "de", None, None])
    assert debias.key("en-GB") == ("en" if method in QUERY_SIDE else None)


def test_a_language_without_a_map_stays():
    file = known()
    debias = MethodDebiaser(replace(file, maps={"de": file.maps["de"]}), method="affine")
    rows = texts(1, 2)
    moved = debias.documents(rows, ["de", "th"])
    assert not np.array_equal(moved[0], rows[0])
    assert np.array_equal(moved[1], rows[1])


def test_many_documents_go_in_parts(monkeypatch):
    rows, languages = texts(1, 50), [*TAGS, "en"] * 10
    posteriors = [{tag: 0.75, "th": 0.25} for tag in languages]
    debiases = [MethodDebiaser(known(), 0.7, method=method) for method in METHODS]
    at_once = [debias.documents(rows, languages) for debias in debiases]
    soft = MethodDebiaser(known()).soft(rows, posteriors)
    monkeypatch.setattr(module, "AT_ONCE", 3)
    for debias, expected in zip(debiases, at_once, strict=True):
        assert np.abs(debias.documents(rows, languages) - expected).max() <= 1e-6
    assert np.abs(MethodDebiaser(known()).soft(rows, posteriors) - soft).max() <= 1e-6


def test_vectors_on_disk_are_read_and_left_alone(tmp_path):
    rows = texts(1, 4)
    np.save(tmp_path / "rows.npy", rows)
    kept = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for method in METHODS:
        moved = MethodDebiaser(known(), method=method).documents(kept, ["de", "en", "th", "und"])
        assert (type(moved), moved.dtype, moved.flags.writeable) == (np.ndarray, np.float32, True)
    assert type(MethodDebiaser(None).soft(kept, [{}] * 4)) is np.ndarray
    assert np.array_equal(kept, rows)


def test_without_language_vectors_nothing_moves():
    rows = texts(1, 2)
    assert np.array_equal(MethodDebiaser(None).documents(rows, ["de", "th"]), rows)
    assert np.array_equal(MethodDebiaser(None).soft(rows, [{"de": 1.0}, {}]), rows)


@given(SEEDS, LANGUAGES, GAMMAS)
def test_gamma_leaves_queries_alone(seed, languages, gamma):
    rows = texts(seed, len(languages))
    assert np.array_equal(MethodDebiaser(known(), gamma=gamma).queries(rows, languages), rows)


@given(SEEDS, NORMS, st.floats(0, 1), st.integers(0, 4))
def test_a_hard_posterior_makes_a_soft_shift_a_shift_bit_for_bit(seed, norm, alpha, language):
    z, v = texts(seed, 8, norm), texts(seed + 1, 5, norm / 4)
    weights = np.zeros((8, 5))
    weights[:, language] = alpha
    assert soft_shift(z, weights, v).tobytes() == shift(z, v[language], alpha).tobytes()


@given(SEEDS, NORMS, hnp.arrays(np.float64, (8, 5), elements=st.floats(0, 0.2)))
def test_a_soft_shift_subtracts_what_is_expected(seed, norm, weights):
    z, v = texts(seed, 8, norm), texts(seed + 1, 5, norm / 4)
    weights[3] = 0
    moved = soft_shift(z, weights, v)
    expected = [z[row] - sum(p * v[tag].astype(np.float64) for tag, p in enumerate(weights[row])) for row in range(8)]
    assert np.abs(moved - expected).max() <= 1e-6 * norm
    assert moved[3].tobytes() == z[3].tobytes()
    assert moved.dtype == np.float32


def test_a_soft_shift_worked_out_by_hand():
    z = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    v = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    before = z.copy()
    assert soft_shift(z, np.array([[0.75, 0.25], [0.0, 0.5]]), v).tolist() == [[0.25, 1.5], [3.0, 3.0]]
    nothing = soft_shift(z, np.zeros((2, 2)), v)
    assert nothing.tobytes() == z.tobytes() == before.tobytes()
    assert not np.shares_memory(nothing, z)


def test_refusals():
    bare = MethodVectors("en", {"de": np.ones(2, np.float32)}, {"de": 9}, "toy", "1", "", 2, False, "made up")
    for make, told in (
        (
            lambda: MethodDebiaser(None, method="magic"),
            "Unknown method 'magic'; choose one of none, shift, centering, lir, affine.",
        ),
        (
            lambda: MethodDebiaser(bare, method="affine"),
            "The language vectors contain nothing for the method affine: fit them with "
            "`langshift vectors methods --methods affine`.",
        ),
        (
            lambda: MethodDebiaser(known(), method="affine").soft(texts(1, 1), [{}]),
            "Only the method shift with gamma 0 can be soft, not affine with 0.",
        ),
        (
            lambda: MethodDebiaser(known(), gamma=0.95).soft(texts(1, 1), [{}]),
            "Only the method shift with gamma 0 can be soft, not shift with 0.95.",
        ),
        (
            lambda: MethodDebiaser(known(), gamma=0.95, method="affine"),
            "Only the method shift takes a gamma, not affine.",
        ),
    ):
        with pytest.raises(UsageError) as error:
            make()
        assert str(error.value) == told

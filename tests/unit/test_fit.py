"""Fitting language vectors: one pass, bounded memory, any number of pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parallel_source import Texts, Vectors, given_encoder
from toy_encoder import ToyEncoder

from langshift.debias.fitting import sums
from langshift.debias.fitting.fit import fit
from langshift.debias.fitting.sums import BatchEncoder
from langshift.errors import LangshiftError, UsageError

TEXTS = {
    "de": ["eins", "zwei", "drei", "vier", "fünf"],
    "en": ["one", "two", "", "four", "five"],
    "th": ["หนึ่ง", "", "สาม", "สี่", "ห้า"],
}


class Counting(ToyEncoder):
    """Remembers what it encoded as a query too."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def encode_queries(self, texts):
        self.asked.extend(texts)
        return super().encode_queries(texts)


class Broken(ToyEncoder):
    """Gives no number for one text."""

    def _vector(self, text):
        return np.full(8, np.inf) if text.endswith("vier") else super()._vector(text)


def difference(language, pivot, rows, encode):
    """The mean difference of some rows of ``TEXTS``, in float64."""
    own, other = (encode([TEXTS[tag][row] for row in rows]).astype(np.float64) for tag in (language, pivot))
    return (own - other).mean(axis=0)


def made_vectors(rows, dimension=12, norm=1.0, seed=0, languages=("de", "en", "th")):
    """Given vectors with an offset of each language's own."""
    random = np.random.default_rng(seed)
    shared = random.standard_normal((rows, dimension))
    return {
        tag: (norm * (shared + random.standard_normal(dimension) + 0.5 * random.standard_normal((rows, dimension))))
        .astype(np.float32)
        for tag in languages
    }  # fmt: skip


def test_the_vector_is_the_mean_difference_of_complete_pairs():
    made = fit(Texts(TEXTS), ["en"], ToyEncoder())["en"]
    encode = ToyEncoder().encode_documents
    for tag, rows in [("de", [0, 1, 3, 4]), ("th", [0, 3, 4])]:
        assert np.abs(made.vectors[tag] - difference(tag, "en", rows, encode)).max() < 1e-6
    assert made.pairs == {"de": 4, "th": 3}
    assert {tag: one["missing"] for tag, one in made.evidence.items()} == {"de": 1, "th": 2}
    assert (made.pivot, made.encoder, made.dimension, made.source) == ("en", "toy", 8, "made")
    assert (made.document_prefix, made.query_prefix, made.normalised) == ("passage: ", "query: ", False)


@settings(max_examples=100)
@given(
    rows=st.integers(2, 400), norm=st.floats(1, 50), size=st.integers(1, 300), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_streaming_is_the_mean_over_all_at_once(rows, norm, size, seed):
    vectors = made_vectors(rows, norm=norm, seed=seed)
    source = Vectors(vectors)
    source.batches = lambda _, batches=source.batches: batches(size)
    made = fit(source, ["en"], given_encoder())["en"]
    for tag in ("de", "th"):
        mean = (vectors[tag].astype(np.float64) - vectors["en"]).mean(axis=0)
        assert np.abs(made.vectors[tag] - mean).max() <= 1e-6 * norm


@settings(max_examples=20)
@given(rows=st.integers(2, 3000), norm=st.floats(1, 50), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_pairs_does_not_matter(rows, norm, seed):
    vectors = made_vectors(rows, norm=norm, seed=seed)
    order = np.random.default_rng(seed).permutation(rows)
    before = fit(Vectors(vectors), ["en"], given_encoder())["en"]
    after = fit(Vectors({tag: of[order] for tag, of in vectors.items()}), ["en"], given_encoder())["en"]
    for tag, vector in before.vectors.items():
        assert np.abs(vector - after.vectors[tag]).max() <= 1e-6 * norm


def test_several_pivots_are_fitted_in_one_pass_from_the_same_encodings():
    encoder = Counting()
    made = fit(Texts(TEXTS), ["en", "deu", "eng"], encoder)
    assert list(made) == ["en", "de"]
    written = [text for texts in TEXTS.values() for text in texts if text]
    assert sorted(encoder.seen) == sorted(written)
    for pivot, vectors in made.items():
        alone = fit(Texts(TEXTS), [pivot], ToyEncoder())[pivot]
        assert vectors.pairs == alone.pairs
        for tag, vector in vectors.vectors.items():
            assert np.abs(vector - alone.vectors[tag]).max() < 1e-6


def test_texts_that_belong_to_no_pair_are_not_encoded():
    encoder = Counting()
    fit(Texts(TEXTS), ["en"], encoder)
    assert "drei" not in encoder.seen
    assert "สาม" not in encoder.seen


def test_queries_have_vectors_of_their_own_where_the_encoder_tells_them_apart(monkeypatch):
    encoder = Counting()
    made = fit(Texts(TEXTS), ["en"], encoder)["en"]
    for tag, rows in [("de", [0, 1, 3, 4]), ("th", [0, 3, 4])]:
        assert np.abs(made.query_vectors[tag] - difference(tag, "en", rows, ToyEncoder().encode_queries)).max() < 1e-6
    assert len(encoder.asked) == len(set(encoder.asked)) == 11
    asked = ToyEncoder().encode_queries([TEXTS["en"][row] for row in (0, 1, 3, 4, 0, 3, 4)])
    assert np.abs(made.common["queries"] - asked.mean(axis=0)).max() < 1e-6
    # Only the first pairs of each language are encoded once more: German has two of them before Thai has.
    monkeypatch.setattr(sums, "QUERY_PAIRS", 2)
    encoder = Counting()
    made = fit(Texts(TEXTS), ["en"], encoder)["en"]
    assert sorted(encoder.asked) == sorted(["eins", "zwei", "one", "two", "หนึ่ง", "สี่", "four"])
    for tag, rows in [("de", [0, 1]), ("th", [0, 3])]:
        assert np.abs(made.query_vectors[tag] - difference(tag, "en", rows, ToyEncoder().encode_queries)).max() < 1e-6
    encoder = Counting()
    encoder.query_prefix = encoder.document_prefix
    made = fit(Texts(TEXTS), ["en"], encoder)["en"]
    assert (made.query_vectors, encoder.asked) == ({}, [])


def test_given_vectors_are_taken_as_they_are_and_may_be_missing():
    vectors = made_vectors(300)
    vectors["th"][10:20] = np.nan
    vectors["en"][15:40] = np.nan
    made = fit(Vectors(vectors), ["en"], given_encoder())["en"]
    both = ~np.isnan(vectors["th"]).any(axis=1) & ~np.isnan(vectors["en"]).any(axis=1)
    mean = (vectors["th"][both].astype(np.float64) - vectors["en"][both]).mean(axis=0)
    assert np.abs(made.vectors["th"] - mean).max() < 1e-6
    assert made.pairs == {"de": 275, "th": 270}
    assert (made.dimension, made.encoder, made.query_vectors) == (12, "given", {})
    assert made.query_directions.shape == (3, 12)
    assert fit(Vectors(vectors), ["en"], given_encoder(), directions=1)["en"].query_directions.shape == (1, 12)
    with pytest.raises(UsageError, match=r"^4 directions were asked for, but the means of queries in 3 languages"):
        fit(Vectors(vectors), ["en"], given_encoder(), directions=4)


def test_rows_done_are_reported():
    seen = []
    fit(Texts(TEXTS), ["en"], ToyEncoder(), on_rows=lambda done, total: seen.append((done, total)))
    assert seen == [(5, 5)]
    seen.clear()
    texts = {tag: lines * 100 for tag, lines in TEXTS.items()}
    fit(Texts(texts), ["en"], ToyEncoder(), on_rows=lambda done, total: seen.append((done, total)))
    assert seen == [(256, 500), (500, 500)]


@pytest.mark.parametrize(
    ("texts", "pivots", "message"),
    [
        (TEXTS, ["fr"], "made has no text in the language 'fr'; it has de, en, th."),
        (TEXTS, ["en", "klingon"], "made has no text in the language 'klingon'; it has de, en, th."),
        (
            {"en": TEXTS["en"], "th": ["", "", "สาม", "", ""], "de": [""] * 5},
            ["en"],
            "made: de has no pairs with the pivot en, but a language vector needs at least two; th has no pairs with "
            "the pivot en, but a language vector needs at least two: add more.",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(texts, pivots, message):
    with pytest.raises(UsageError) as refused:
        fit(Texts(texts), pivots, ToyEncoder())
    assert str(refused.value) == message


def test_texts_and_given_vectors_are_not_mixed_up():
    with pytest.raises(UsageError) as refused:
        fit(Texts(TEXTS), ["en"], given_encoder())
    assert str(refused.value) == (
        "made contains text, but the encoder given uses vectors that come with the data; "
        "choose an encoder of text, such as e5-small."
    )
    with pytest.raises(UsageError) as refused:
        fit(Vectors(made_vectors(9)), ["en"], ToyEncoder())
    assert str(refused.value) == "made contains vectors, which toy cannot encode; fit them with --encoder given."
    with pytest.raises(UsageError) as refused:
        fit(Vectors(made_vectors(9)), ["fr"], given_encoder())
    assert str(refused.value) == "made has no vectors in the language 'fr'; it has de, en, th."


def test_an_encoder_that_gives_no_number_is_caught_at_its_place():
    for broken in (Broken(), ToyEncoder(norm=float("nan"))):
        with pytest.raises(LangshiftError) as caught:
            fit(Texts(TEXTS), ["en"], broken)
        place, language = ("line 4", "de") if isinstance(broken, Broken) else ("line 1", "de")
        assert str(caught.value) == (
            f"made, {place}: the encoder toy returned a vector with invalid numbers for the text in {language}; "
            "leave the text out, or use another encoder."
        )


def test_batches_of_vectors_are_as_large_as_a_processor_likes():
    narrow, wide = (Vectors({"de": np.ones((2, d)), "en": np.ones((2, d))}) for d in (384, 100_000))
    assert [BatchEncoder(source, given_encoder()).batch for source in (narrow, wide)] == [1344, 64]


def test_a_language_with_too_few_pairs_is_left_out():
    notes = []
    texts = {**TEXTS, "th": ["", "สอง", "สาม", "", ""]}
    made = fit(Texts(texts), ["de", "en"], ToyEncoder(), on_omitted=lambda *of: notes.append(of))
    told = "th has 1 pair with the pivot {}, but a language vector needs at least two: it is left out."
    # The third line has no English.
    assert notes == [("en", "th", told.format("en"))]
    assert (set(made["de"].vectors), set(made["en"].vectors)) == ({"en", "th"}, {"de"})


def test_preference_vectors_are_a_ridge_regression_in_which_languages_weigh_alike():
    vectors = made_vectors(90, dimension=8, languages=("de", "en", "pt", "pt-BR"))
    # Half of a language's texts are missing, which makes it weigh no less.
    vectors["de"][::2] = np.nan
    made = fit(Vectors(vectors), ["en"], given_encoder())["en"]
    held = {tag: rows[np.isfinite(rows).all(axis=1)].astype(np.float64) for tag, rows in vectors.items()}
    units = {tag: rows / np.linalg.norm(rows, axis=1, keepdims=True) for tag, rows in held.items()}
    spoken = {"de": units["de"], "en": units["en"], "pt": np.concatenate([units["pt"], units["pt-BR"]])}
    means = {tag: rows.mean(axis=0) for tag, rows in spoken.items()}
    left = np.concatenate([rows - means[tag] for tag, rows in spoken.items()])
    moments = left.T @ left / len(left) + sum(np.outer(mean, mean) for mean in means.values()) / len(means)
    ridge = moments + 0.03 * np.trace(moments) / 8 * np.eye(8)
    found = {tag: np.linalg.solve(ridge, mean) for tag, mean in means.items()}
    median = np.median([mean @ found[tag] for tag, mean in means.items()])
    for tag, one in found.items():
        assert made.own_vectors[tag] == pytest.approx(one / median, rel=1e-3, abs=1e-3)
    documents = {"de": held["de"], "en": held["en"], "pt": np.concatenate([held["pt"], held["pt-BR"]])}
    about = np.concatenate([rows - rows.mean(axis=0) for rows in documents.values()])
    assert made.scatter[0] == pytest.approx((about**2).sum(axis=1).mean(), rel=1e-3)
    for row, found in zip(made.query_directions, made.scatter[1:], strict=False):
        assert found == pytest.approx(((about @ row) ** 2).mean(), rel=1e-3, abs=1e-4)
    assert made.with_rank(1).scatter == made.scatter

"""Calibrating anchored search: what needs no cluster."""

import math
from dataclasses import replace

import numpy as np
import pytest

from langshift.commands.search import remarks
from langshift.retrieval.anchored import AnchorEvidence, AnchorModel, Candidates
from langshift.retrieval.calibration.calibrate import extract_question, lowered, masked, shares
from langshift.retrieval.calibration.fit import (
    LEAST_WORTH,
    MOST_WORTH,
    Calibration,
    CalibrationEvidence,
    FirstHits,
    LanguageCalibration,
    at_even_odds,
    chance_of_loss,
    fitted_worth,
    priors,
    spread_of,
)

SENTENCE = "The sea rises and falls twice a day because the Moon pulls at the water of it"


def test_a_question_is_ten_words_in_a_row_of_one_sentence():
    text = f"Short one. {SENTENCE}. {SENTENCE.upper()}!"
    for number in range(50):
        question = extract_question(text, "en", f"d{number}")
        assert len(question.split()) == 10
        assert question in f"{SENTENCE}." or question in f"{SENTENCE.upper()}!"
    assert len({extract_question(text, "en", f"d{number}") for number in range(50)}) > 10
    assert extract_question(text, "en", "d1") == extract_question(text, "en", "d1")


def test_a_short_sentence_is_a_question_as_a_whole_and_a_shorter_one_is_none():
    assert extract_question("Yeast makes dough rise.\nToo short.", "en", "d") == "Yeast makes dough rise."
    assert extract_question("Much too short.", "en", "d") is None
    assert extract_question("", "en", "d") is None
    assert extract_question(" \n ", "zh", "d") is None


@pytest.mark.parametrize(("language", "length"), [("zh", 18), ("ja", 18), ("th", 40)])
def test_where_words_have_no_spaces_characters_are_counted(language, length):
    sentence = "月球的引力使海水每天涨落两次" * 6
    question = extract_question(f"{sentence}。{sentence}。", language, "d")
    assert len(question) == length
    assert question in sentence
    assert extract_question("潮汐。", language, "d") is None


def test_a_question_is_never_longer_than_a_search_takes():
    assert len(extract_question(" ".join(["x" * 900] * 20), "en", "d")) == 300


def test_halves_of_characters_are_left_out():
    assert extract_question("Only words and \ud83dnothing else", "en", "d") == "Only words and nothing else"
    assert extract_question(SENTENCE, "en", "half \ud83d of a pair") is not None


def test_the_languages_of_a_sample_get_even_shares():
    assert shares({"en": 900, "de": 900, "th": 10, "la": 4}, 100) == {"de": 45, "en": 45, "th": 10}
    assert shares({"en": 900}, 100) == {"en": 100}
    assert shares({"en": 20, "de": 20}, 100) == {"de": 20, "en": 20}
    assert shares({"la": 4}, 100) == {}
    assert shares({}, 100) == {}
    assert sum(shares({f"l{n}": 50 + n for n in range(7)}, 100).values()) == 100


def test_the_spread_is_the_standard_deviation_of_cosines_whatever_the_norms():
    numbers = np.random.default_rng(1)
    vectors = (numbers.standard_normal((300, 64)) + 2) * numbers.uniform(0.1, 50, (300, 1))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(300, 1)]
    assert spread_of(vectors.astype(np.float32)) == pytest.approx(cosines.std(), rel=0.05)
    # Translations, of which each document has some, are far from the others and few.
    translated = np.concatenate([vectors, vectors, vectors])[:600]
    assert spread_of(translated.astype(np.float32)) == pytest.approx(cosines.std(), rel=0.07)


def test_the_spread_of_next_to_nothing_is_a_usual_one():
    assert spread_of(np.ones((0, 3), np.float32)) == 0.05
    assert spread_of(np.ones((4, 3), np.float32)) == 0.05
    assert spread_of(np.ones((9, 3), np.float32)) == 0.001
    assert spread_of(np.zeros((9, 3), np.float32)) == 0.001


def test_only_a_language_that_has_nearly_everything_is_given_more_than_usual():
    documents = [("en", f"g{n}") for n in range(100)] + [("de", f"g{n}") for n in range(97)]
    found = {f"g{n}": {"en", "de"} if n < 97 else {"en"} for n in range(100)}
    share = 97.5 / 101
    assert priors(documents, found, ["en", "de"]) == {
        "en": 2.0,  # ln(97.5 / .5) - 2 is above it
        "de": pytest.approx(math.log(share / (1 - share)) - 2),
    }
    half = {f"g{n}": {"en", "de"} if n < 50 else {"en"} for n in range(100)}
    assert priors([("en", f"g{n}") for n in range(100)], half, ["en", "de"]) == {"de": -0.5}
    assert priors([], {}, ["en"]) == {}


def gathered(*candidates):
    """What may answer: (id, own, words, cosine) each."""
    ids = [name for name, *_ in candidates]
    return Candidates(
        ids, [AnchorEvidence(*rest) for _, *rest in candidates], np.zeros((len(ids), 1)), np.zeros(1), 10, 1.0, 100.0
    )


def made(there, hidden):
    """Evidence of a question whose words match so well where the answer is there, and so well where it is hidden."""
    return CalibrationEvidence(
        "en",
        {"answer"},
        gathered(("answer", True, there, 0.5), ("far", False, 0.0, 0.6), ("near", False, 1.0, 0.4)),
        gathered(("wrong", True, hidden, 0.5), ("far", False, 0.0, 0.6)),
    )


def test_words_are_worth_what_tells_best_whether_the_answer_is_there():
    mixed = [made(there, hidden) for there, hidden in zip(np.linspace(3, 20, 40), np.linspace(2, 11, 40), strict=True)]
    worth = fitted_worth(mixed, 0.1, {"en": 1.0})
    assert LEAST_WORTH < worth < MOST_WORTH

    def loss(k):
        trust, there = AnchorModel(0.1, k, {"en": 1.0}), math.e / (1 + math.e)
        return -np.mean(
            [there * math.log(one.found(trust)) + (1 - there) * math.log(1 - one.deceived(trust)) for one in mixed]
        )

    assert loss(worth) <= min(loss(k) for k in np.linspace(LEAST_WORTH, MOST_WORTH, 200)) + 1e-4


def test_the_worth_of_words_stays_in_its_bounds():
    assert fitted_worth([made(12, 0)] * 5, 0.1, {}) == pytest.approx(MOST_WORTH, abs=0.1)
    assert fitted_worth([made(6, 12)] * 5, 0.1, {}) == pytest.approx(LEAST_WORTH, abs=0.1)


def test_a_question_that_gathers_nothing_is_no_evidence_of_anything():
    nothing = CalibrationEvidence("en", {"answer"}, gathered(), gathered())
    trust = AnchorModel(0.1)
    assert (nothing.found(trust), nothing.trusts_most(trust), nothing.deceived(trust)) == (0.0, False, 0.0)
    assert LEAST_WORTH <= fitted_worth([nothing], 0.1, {}) <= MOST_WORTH


def test_copies_are_answers_too():
    trust = AnchorModel(0.1)
    assert not made(0, 0).trusts_most(trust)
    copied = made(0, 0)._replace(answers={"far", "answer"})
    assert copied.trusts_most(trust)
    assert copied.found(trust) > made(0, 0).found(trust)


def test_where_answers_are_hidden_no_prior_speaks_for_them():
    assert at_even_odds(AnchorModel(0.1, 9.0, {"en": 2.0, "de": -0.5})) == AnchorModel(
        0.1, 9.0, {"en": 0.0, "de": -0.5}
    )


def test_a_loss_is_beyond_chance_or_none():
    assert chance_of_loss([True] * 10, [True] * 10) == 1.0
    assert chance_of_loss([True] * 5, [False] * 5) == pytest.approx(1 / 32)
    assert FirstHits.compared([True] * 5, [False] * 5).lost
    assert not FirstHits.compared([True] * 4, [False] * 4).lost
    assert not FirstHits.compared([False] * 90, [True] * 90).lost
    assert not FirstHits.compared([True, False] * 50, [False, True] * 50).lost


def test_hiding_leaves_the_rest_of_every_body_as_it_is():
    def exchange():
        first = yield ({"size": 1, "query": {"match_all": {}}, "suggest": {}}, {"query": {"term": {"a": 1}}})
        second = yield ({"query": {"knn": {}}},)
        return first, second

    gone = [{"terms": {"_id": ["x"]}}]
    hidden = masked(exchange(), gone)
    assert next(hidden) == (
        {"size": 1, "query": {"bool": {"must": [{"match_all": {}}], "must_not": gone}}, "suggest": {}},
        {"query": {"bool": {"must": [{"term": {"a": 1}}], "must_not": gone}}},
    )
    assert hidden.send(["one"]) == ({"query": {"bool": {"must": [{"knn": {}}], "must_not": gone}}},)
    with pytest.raises(StopIteration) as end:
        hidden.send(["two"])
    assert end.value.value == (["one"], ["two"])


@pytest.mark.parametrize(("loses_above", "kept"), [(5, 6.0), (7, 6.0), (8, 7.14), (10, 8.49), (12, 8.49)])
def test_trust_is_lowered_as_far_as_it_takes_and_no_further(loses_above, kept):
    def hidden(trust):
        return FirstHits(100, 0.5, trust.words / 100, 0.01 if trust.words > loses_above else 0.5)

    trust, first = lowered(hidden, AnchorModel(0.1, 10.1, {"en": 1.0}, calibrated=True))
    assert trust == AnchorModel(0.1, kept, {"en": 1.0}, calibrated=True)
    assert first.anchored == kept / 100
    assert first.lost == (loses_above == 5)


def test_a_person_is_told_where_trust_was_lowered():
    made = Calibration(
        AnchorModel(0.1, 6.0),
        [LanguageCalibration("de", 30, 1.0, 0.1, -0.5), LanguageCalibration("en", 10, 0.6, 0.3, 0.2)],
        FirstHits(40, 0.5, 0.9, 1.0),
        FirstHits(40, 0.5, 0.4, 0.1),
    )
    assert (made.questions, made.found, made.deceived) == (40, pytest.approx(0.9), pytest.approx(0.15))
    assert remarks("news", made) == []
    assert remarks("news", replace(made, fitted=9.0)) == [
        "With the fitted k of 9, anchored search of news would lose translations that dense search finds, so k is 6, "
        "the highest value tried at which nothing is lost."
    ]
    assert remarks("news", replace(made, fitted=9.0, hidden=FirstHits(40, 0.5, 0.4, 0.01))) == [
        "Anchored search of news loses translations that dense search finds, even with the lowest k (6; 9 was fitted): "
        "where documents often do not exist in the searcher's language, search with --mode dense."
    ]

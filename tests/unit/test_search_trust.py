"""The rule of anchored search: who is trusted how far to answer a query."""

import json
import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from langshift.debias.vectors import CommonStep
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.modes.anchoring import (
    AnchorEvidence,
    Candidates,
    QueryVector,
    anchor_probabilities,
    own_bonus,
    rarest,
    rho,
    weights,
)
from langshift.retrieval.question import AnchorModel

SPREAD = 0.05


def candidates(least=1, farthest=1.0):
    one = st.builds(AnchorEvidence, st.booleans(), st.floats(0, 40), st.floats(-farthest, farthest))
    return st.lists(one, min_size=least, max_size=13)


def told(found, spread=SPREAD, documents=1000.0, words=8):
    gathered = Candidates([], found, np.zeros((0, 1)), QueryVector(np.zeros(1), 1.0), words, 0.0, documents)
    return anchor_probabilities(gathered, spread)


def test_probabilities_are_those_of_the_equation():
    found = [
        AnchorEvidence(True, 6.0, 0.5),
        AnchorEvidence(True, 0.0, 0.55),
        AnchorEvidence(False, 3.0, 0.6),
        AnchorEvidence(False, 0, 0.4),
    ]
    rare = math.log(1 + 120.5 / 0.5)
    odds = [
        math.exp(32 * (6 / rare) ** 2 / 4 - 0.5 - 1.95 * 0.1 / 0.08),
        math.exp(-0.5 - 1.95 * 0.05 / 0.08),
        math.exp(1.43 * math.log(4)),
        math.exp(-1.95 * 0.2 / 0.08),
    ]
    given = told(found, 0.08, documents=120, words=4)
    assert given == pytest.approx([one / sum(odds) for one in odds], rel=1e-12)
    assert told([AnchorEvidence(True, 0, 0), AnchorEvidence(False, 0, 0)]) == pytest.approx(
        [math.exp(-0.5) / (1 + math.exp(-0.5)), 1 / (1 + math.exp(-0.5))]
    )


def test_a_document_with_half_of_the_question_is_worth_a_quarter_of_one_with_all_of_it():
    rare = rarest(1000)
    whole, half, none = (math.log(odds(words, 8)) for words in (8 * rare, 4 * rare, 0))
    assert half - none == pytest.approx((whole - none) / 4)


def odds(words, count):
    """Of a document with these words against one in another language that is as near."""
    mine, other = told([AnchorEvidence(True, words, 0), AnchorEvidence(False, 0, 0)], words=count)
    return mine / other


def test_a_words_worth_is_that_of_one_no_document_holds():
    assert rarest(9) == pytest.approx(math.log(20))
    assert rarest(0) == pytest.approx(math.log(2))


@given(candidates(), st.floats(0.001, 1), st.floats(0, 1e6), st.integers(1, 500))
def test_probabilities_are_a_distribution(found, spread, documents, words):
    probabilities = told(found, spread, documents=documents, words=words)
    assert probabilities.shape == (len(found),)
    assert probabilities.sum() == pytest.approx(1)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()


@given(st.booleans(), st.floats(0, 40), st.floats(-1, 1))
def test_one_alone_is_trusted_wholly(own, words, cosine):
    assert told([AnchorEvidence(own, words, cosine)]).tolist() == [1.0]


@given(candidates(2), st.data())
def test_more_words_and_a_nearer_vector_never_cost_trust(found, data):
    place = data.draw(st.integers(0, len(found) - 1))
    one = found[place]
    wordier = one._replace(words=data.draw(st.floats(one.words, 50)))
    nearer = one._replace(cosine=data.draw(st.floats(one.cosine, 1)))
    before = told(found)
    for better in (wordier, nearer):
        after = told([*found[:place], better, *found[place + 1 :]])
        assert after[place] >= before[place] - 1e-12
        for other in set(range(len(found))) - {place}:
            assert after[other] <= before[other] + 1e-12


@given(candidates(farthest=0.5), st.floats(0.1, 2), st.floats(-0.4, 0.4))
def test_how_wide_and_where_a_models_cosines_lie_changes_nothing(found, scale, shift):
    moved = [one._replace(cosine=one.cosine * scale + shift) for one in found]
    assert told(moved, 0.05 * scale) == pytest.approx(told(found, 0.05), abs=1e-9)


@given(candidates(), st.randoms())
def test_the_order_of_candidates_changes_nothing(found, chance):
    places = list(range(len(found)))
    chance.shuffle(places)
    assert told([found[place] for place in places]) == pytest.approx(told(found)[places])


@given(st.integers(0, 1000), st.integers(1, 5))
def test_rho_is_the_length_of_what_documents_have_too(seed, count):
    numbers = np.random.default_rng(seed)
    vector, rows = numbers.standard_normal(6), np.linalg.qr(numbers.standard_normal((6, count)))[0].T
    left = (np.eye(6) - rows.T @ rows) @ vector / np.linalg.norm(vector)
    shift = StoredShift(gamma=0.97, step=CommonStep(np.zeros(6, np.float32), rows.astype(np.float32)))
    assert rho(vector, shift) == pytest.approx(np.linalg.norm(left), abs=1e-6)
    assert rho(vector, None) == rho(vector, replace(shift, gamma=0.0)) == 1.0
    assert rho(rows[0], shift) > 0


@given(candidates(), st.floats(0, 1))
def test_weights_add_up_to_the_strength_at_most_and_to_the_less_the_more_are_trusted_alike(found, strength):
    probabilities = told(found)
    weighted = weights(probabilities, strength)
    assert weighted == pytest.approx(strength * probabilities * np.sqrt(probabilities))
    assert strength / math.sqrt(len(found)) - 1e-9 <= weighted.sum() <= strength + 1e-9
    alike = weights(np.full(len(found), 1 / len(found)), strength)
    assert alike.sum() == pytest.approx(strength / math.sqrt(len(found)))


def test_at_strength_0_nothing_has_a_weight():
    assert weights(np.array([0.25, 0.75]), 0.0).tolist() == [0, 0]


@given(candidates(), st.integers(0, 1000))
def test_candidates_no_farther_than_right_angles_move_the_query_by_45_degrees_at_most(found, seed):
    drawn = np.random.default_rng(seed).standard_normal((len(found) + 1, 6))
    query, *vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    vectors = np.array(vectors) * np.where(vectors @ query < 0, -1, 1)[:, None]
    moved = query + weights(told(found), 1.0) @ vectors
    assert query @ moved / np.linalg.norm(moved) >= math.sqrt(0.5) - 1e-9


@given(st.integers(2, 13), st.integers(0, 1000))
def test_where_the_nearest_alone_is_trusted_it_stays_the_nearest(count, seed):
    drawn = np.random.default_rng(seed).standard_normal((count + 1, 6))
    query, *vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    cosines = np.array(vectors) @ query
    first, second = np.sort(cosines)[::-1][:2]
    assume(first - second > 1e-6)
    found = [AnchorEvidence(False, 0.0, cosine) for cosine in cosines.tolist()]
    probabilities = told(found, (first - second) / 50)
    assert probabilities.max() == pytest.approx(1)
    moved = query + weights(probabilities, 1.0) @ np.array(vectors)
    assert (np.array(vectors) @ moved).argmax() == cosines.argmax()


def test_documents_in_the_searchers_language_are_given_what_the_equation_says():
    leads, own = np.array([0.4, 0.1, 0.2]), np.array([True, False, False])
    assert own_bonus(leads, own, 0.1, 0.0, 0.0) == pytest.approx(0.1 * 0.7 * 0.4)
    assert own_bonus(leads, own, 0.1, 0.6, 0.0) == pytest.approx(0.1 * (0.7 * 0.4 + 2 * 0.6 * 0.3))
    assert own_bonus(leads, own, 0.1, 0.6, 0.03) == pytest.approx(0.1 * (0.7 * 0.4 + 2 * 0.6 * 0.3) - 0.03 * 0.7)
    # What documents prefer already may be more than they are given.
    assert own_bonus(leads, ~own, 0.1, 0.0, 0.2) == pytest.approx(0.1 * 0.7 * 0.3 - 0.2 * 0.7)


@given(st.floats(1e-6, 1), st.floats(0, 1), st.floats(0, 1))
def test_what_is_kept_comes_back(spread, strength, counterpart):
    trust = AnchorModel(spread, strength, counterpart=counterpart)
    kept = json.loads(json.dumps(trust.to_dict()))
    assert msgspec.convert({**kept, "at": "2020-01-01"}, AnchorModel) == trust


def test_a_calibration_that_counted_no_translations_knows_of_none():
    assert msgspec.convert({"spread": 0.1, "strength": 0.5}, AnchorModel) == AnchorModel(0.1, 0.5, counterpart=0.0)


def test_without_a_calibration_the_strength_is_a_cautious_one():
    assert AnchorModel(0.05) == AnchorModel(0.05, strength=0.05, calibrated=False)


@pytest.mark.parametrize(
    "changed",
    [
        {"spread": 0.0},
        {"spread": -0.1},
        {"spread": math.nan},
        {"spread": math.inf},
        {"spread": "wide"},
        {"strength": -0.1},
        {"strength": 1.1},
        {"strength": math.nan},
        {"strength": "much"},
        {"counterpart": -0.1},
        {"counterpart": 1.1},
        {"counterpart": None},
    ],
)
def test_figures_that_cannot_be_reckoned_with_are_refused(changed):
    with pytest.raises(ValueError, match=r"Expected `float`"):
        msgspec.convert({**AnchorModel(0.05).to_dict(), **changed}, AnchorModel)


@pytest.mark.parametrize("kept", [{}, {"strength": 0.5}, {"spread": 0.1, "strength": None}, [], "x"])
def test_what_is_of_another_form_is_refused(kept):
    with pytest.raises(ValueError, match=r"Expected|missing required field"):
        msgspec.convert(kept, AnchorModel)

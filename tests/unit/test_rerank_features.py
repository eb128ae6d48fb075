"""The reranker ``features``: its figures by hand, and what it knows and does not."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.errors import UsageError
from langshift.retrieval.modes.anchoring import QueryVector, rarest
from langshift.retrieval.rerank.features import (
    FEATURES,
    CandidateNumbers,
    FeatureModel,
    FeatureReranker,
    features,
    read_model,
)
from langshift.retrieval.rerank.stage import score_behind

SPREAD = 0.1


def numbers(cosines, words, languages, own):
    """Candidates in a plane, at these cosines to the query."""
    vectors = np.array([[cosine, math.sqrt(1 - cosine**2)] for cosine in cosines])
    found = np.array(cosines)
    return CandidateNumbers(
        cosines=found,
        words=np.array(words, dtype=float),
        query_words=2,
        languages=languages,
        own=np.array(own),
        vectors=vectors,
        query=QueryVector(np.array([1.0, 0.0]), 1.0),
        documents=10.0,
        spread=SPREAD,
        near=(found - found.max()) / SPREAD,
    )


FOUR = numbers([0.9, 0.8, 0.85, 0.6], [0.0, 3.0, 1.0, 0.0], ["en", "de", "en", "th"], [False, True, False, False])


def test_features_by_hand():
    near, of_language, first, trusted = features(FOUR).T
    assert FEATURES == ("near", "of_language", "first", "trusted")
    assert near == pytest.approx([0, -1, -0.5, -3])
    assert of_language == pytest.approx([0, 0, -0.5, 0])
    assert first == pytest.approx([0, 0, -math.log(2), 0])
    rare = rarest(10.0)
    utility = [
        1.43 * math.log1p(0) - 1.95 * 0,
        32 * (3 / rare) ** 2 / 2 - 0.5 - 1.95 * 1,
        1.43 * math.log1p(1) - 1.95 * 0.5,
        1.43 * math.log1p(0) - 1.95 * 3,
    ]
    trust = np.exp(utility) / np.exp(utility).sum()
    towards = trust @ FOUR.vectors
    cosines = FOUR.vectors @ towards / np.linalg.norm(towards)
    assert trusted == pytest.approx((cosines - cosines.max()) / SPREAD)


def test_it_does_not_know_the_readers_language():
    """Where words tell nothing, it is the same whatever language the query is in."""
    quiet = FOUR._replace(words=np.zeros(4), documents=1e9)
    asked = [features(quiet._replace(own=np.array(own))) for own in ([True] * 4, [False] * 4)]
    assert np.array_equal(asked[0], asked[1])


def test_some_candidates_are_seen_as_if_there_were_no_others():
    some = FOUR.only(np.array([2, 1]))
    assert features(some) == pytest.approx(
        features(numbers([0.85, 0.8], [1.0, 3.0], ["en", "de"], [False, True])), abs=1e-9
    )


def test_strength():
    model = FeatureModel(
        weights={"near": 2.0, "of_language": 0.5, "first": 1.0, "trusted": 3.0},
        trained_on="a test",
        loss=1.0,
        queries=1,
        langshift="0",
    )
    assert model.vector(0.1) == pytest.approx([2.0, 0.05, 0.1, 0.3])
    # At 0 the order is that of the mode.
    assert np.argsort(-(features(FOUR) @ model.vector(0.0))).tolist() == [0, 2, 1, 3]
    # Every mode has its own; those of which nothing is known have that of dense.
    reranker = FeatureReranker(model, SPREAD, {"dense": 0.3, "anchored": 0.0, "hybrid": 1.0})
    assert [reranker.strength(mode) for mode in ("dense", "anchored", "hybrid", "lexical")] == [0.3, 0.0, 1.0, 0.3]
    assert reranker.scores(FOUR, "hybrid") == pytest.approx(features(FOUR) @ model.vector(1.0))


@given(st.permutations(range(6)), st.integers(0, 1000))
def test_the_order_of_candidates_has_no_part_in_it(order, seed):
    """Equal candidates apart, which stay in their order."""
    chance = np.random.default_rng(seed)
    languages = [["en", "de", "th"][i % 3] for i in range(6)]
    pool = numbers(
        np.sort(chance.uniform(-0.9, 0.9, 6)), chance.uniform(0, 5, 6), languages, [i % 3 == 0 for i in range(6)]
    )
    assert features(pool.only(np.array(order))) == pytest.approx(features(pool)[list(order)], abs=1e-9)


def test_what_was_no_candidate_is_behind_all_that_were():
    scores = [score_behind(-3.0, score) for score in (0.0, 0.5, 2.0, 100.0)]
    assert scores == sorted(scores)
    assert max(scores) < -3.0
    assert score_behind(-3.0, None) is None


def test_the_model_that_comes_with_langshift():
    model = read_model()
    assert list(model.weights) == list(FEATURES)
    assert min(model.weights.values()) > 0
    assert "CC BY-SA 4.0" in model.trained_on


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "own.json"
    with pytest.raises(UsageError, match=r"cannot be read \(No such file or directory\): name a file of rerank fit\.$"):
        read_model(f"features:{path}")
    good = {"weights": dict.fromkeys(FEATURES, 1.0), "trained_on": "x", "loss": 1.0, "queries": 2, "langshift": "1"}
    path.write_text(json.dumps(good))
    assert read_model(f"features:{path}").weights == good["weights"]
    for wrong in (
        "[",
        "{}",
        json.dumps({**good, "weights": {"near": 1.0}}),
        json.dumps({**good, "weights": {"near": "x"}}),
    ):
        path.write_text(wrong)
        with pytest.raises(UsageError) as caught:
            read_model(f"features:{path}")
        assert str(caught.value).startswith(f"{path} is no reranker of this version of langshift (")
        assert str(caught.value).endswith("): run langshift rerank fit again.")

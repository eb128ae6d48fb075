"""Training a cross-encoder: LAURA's loss by hand, what is learnt from, and a model that learns."""

import math

import numpy as np
import pytest
from tiny_model import (
    LEARNS,
    made_up_lines,
    require_transformers,
    save_tiny_causal_reranker,
    save_tiny_cross_encoder,
)

from langshift.errors import UsageError
from langshift.retrieval.rerank.rerankers import open_reranker
from langshift_lab.rerank.cross_encoder_training import (
    CrossEncoderTraining,
    TrainingQuery,
    fit_cross_encoder,
    listwise_loss,
    text_scorer,
)

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

RIGHT = [f"aaaa aaaa {line}" for line in made_up_lines(20, seed=1)]
WRONG = made_up_lines(60, seed=2)
QUERIES = [
    TrainingQuery(words, [RIGHT[number]], WRONG[3 * number : 3 * number + 3])
    for number, words in enumerate(made_up_lines(20, seed=3))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_cross_encoder(tmp_path_factory.mktemp("training") / "tiny", **LEARNS)


def test_the_loss_is_equation_1():
    """Two lists, of three passages and of two, the positive first in each."""
    import torch

    scores = [2.0, 1.0, -1.0, 0.5, 3.0]
    one = -2.0 + math.log(math.exp(2.0) + math.exp(1.0) + math.exp(-1.0))
    other = -0.5 + math.log(math.exp(0.5) + math.exp(3.0))
    found = float(listwise_loss(torch.tensor(scores, dtype=torch.float64), [3, 2]))
    assert found == pytest.approx((one + other) / 2)


def test_the_first_loss_is_that_of_the_model_it_begins_with(folder, tmp_path):
    """With a learning rate of nearly nothing, and negatives that are all drawn, it is Eq. 1 over its own logits."""
    reranker = open_reranker(f"st:{folder}")
    expected = []
    for query in QUERIES:
        scores = reranker.scores(query.words, [*query.positives, *query.negatives])
        expected.append(-scores[0] + math.log(np.exp(scores).sum()))
    how = CrossEncoderTraining(epochs=1, negatives=3, learning_rate=1e-12)
    (loss,) = fit_cross_encoder(f"st:{folder}", QUERIES, tmp_path / "out", how)
    assert loss == pytest.approx(np.mean(expected), abs=1e-4)


def margin(reranker):
    """How far the right passages of other words are before the wrong ones, in the mean."""
    right, wrong = made_up_lines(30, seed=4), made_up_lines(30, seed=5)
    scores = reranker.scores("some words", [*(f"aaaa aaaa {line}" for line in right), *wrong])
    return scores[:30].mean() - scores[30:].mean()


def test_it_learns_and_is_opened_again(folder, tmp_path):
    how, calls = CrossEncoderTraining(epochs=2, learning_rate=2e-3), []
    losses = fit_cross_encoder(f"st:{folder}", QUERIES, tmp_path / "one", how, on_list=lambda: calls.append(1))
    assert len(calls) == 2 * len(QUERIES)
    assert losses[1] < losses[0]
    before, after = open_reranker(f"st:{folder}"), open_reranker(f"st:{tmp_path / 'one'}")
    assert margin(after) > margin(before)
    # The same once more: nothing but the seed has a part in it.
    assert fit_cross_encoder(f"st:{folder}", QUERIES, tmp_path / "two", how) == losses
    again = open_reranker(f"st:{tmp_path / 'two'}").scores("some words", WRONG)
    assert np.array_equal(again, after.scores("some words", WRONG))


def test_a_causal_language_model_learns_as_well(tmp_path):
    """Its score is the logit of one token less that of another, as LAURA has it of Qwen3-Reranker (section 3.2)."""
    folder = save_tiny_causal_reranker(tmp_path / "causal")
    how = CrossEncoderTraining(epochs=3, negatives=3, learning_rate=2e-3)
    losses = fit_cross_encoder(f"st:{folder}", QUERIES, tmp_path / "out", how)
    assert losses[-1] < losses[0]
    assert margin(open_reranker(f"st:{tmp_path / 'out'}")) > margin(open_reranker(f"st:{folder}"))


def test_nothing_to_learn_from(folder, tmp_path):
    with pytest.raises(UsageError, match="No question has positive and other passages"):
        fit_cross_encoder(f"st:{folder}", [], tmp_path / "out", CrossEncoderTraining())
    assert not (tmp_path / "out").exists()


def test_each_passage_is_read_once_for_a_question():
    from types import SimpleNamespace

    asked = []

    class Counting:
        name = "counting"

        def scores(self, words, texts):
            asked.extend((words, text) for text in texts)
            return np.array([float(len(text)) for text in texts])

    scores = text_scorer(Counting(), {"a": "one", "b": "three"})

    def pool(*documents):
        return SimpleNamespace(query="q", words="?", documents=documents)

    assert scores(pool("a", "gone")).tolist() == [3.0, -math.inf]
    assert scores(pool("b", "a")).tolist() == [5.0, 3.0]
    assert asked == [("?", "one"), ("?", "three")]

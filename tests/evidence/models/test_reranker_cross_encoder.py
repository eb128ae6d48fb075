"""``st:`` as a reranker: a tiny cross-encoder with random weights, saved by the test."""

import numpy as np
import pytest
from tiny_model import edit_json, made_up_lines, require_transformers, save_tiny_cross_encoder

from langshift.errors import UsageError
from langshift.retrieval.rerank.rerankers import open_reranker

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

TEXTS = made_up_lines(40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_cross_encoder(tmp_path_factory.mktemp("rerankers") / "tiny")


def test_scores_are_the_logits_of_the_model(folder):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    reranker = open_reranker(f"st:{folder}")
    scores = reranker.scores("some words", TEXTS)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        pairs = [tokenizer("some words", text, return_tensors="pt", truncation=True, max_length=512) for text in TEXTS]
        logits = [float(model(**pair).logits[0, 0]) for pair in pairs]
    assert (scores.shape, scores.dtype, reranker.name) == ((40,), np.float64, f"st:{folder}")
    assert scores == pytest.approx(logits, abs=1e-5)
    # Not squeezed into 0 to 1.
    assert scores.min() < 0 or scores.max() > 1
    assert reranker.scores("some words", []).shape == (0,)


def test_a_long_text_is_cut(folder):
    reranker = open_reranker(f"st:{folder}")
    long = " ".join(made_up_lines(600))
    assert np.isfinite(reranker.scores("some words", [long, long + " more"])).all()


def test_models_that_are_no_rerankers(tmp_path):
    several = save_tiny_cross_encoder(tmp_path / "several", labels=3)
    with pytest.raises(UsageError) as caught:
        open_reranker(f"st:{several}")
    assert str(caught.value) == f"{several} gives 3 scores for each passage: a reranker must give one."
    with pytest.raises(UsageError, match="does not exist; give the path of a model's folder"):
        open_reranker(f"st:{tmp_path / 'nowhere'}")
    edit_json(several / "config.json", model_type="none-such")
    with pytest.raises(UsageError, match="this model is damaged, or is no cross-encoder"):
        open_reranker(f"st:{several}")

"""Late interaction: a tiny model with random weights, saved by the test; MaxSim by NumPy."""

import shutil

import numpy as np
import pytest
from tiny_model import edit_json, made_up_lines, require_transformers, save_tiny_colbert, save_tiny_model

from langshift.debias.encoders.token_vectors import max_sim, open_token_encoder
from langshift.errors import UsageError
from langshift.retrieval.rerank.rerankers import open_reranker

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

TEXTS = [line for script in range(4) for line in made_up_lines(10, script)]
WORDS = "abc def ghi"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_colbert(tmp_path_factory.mktemp("late") / "colbert")


@pytest.fixture(scope="module")
def encoder(folder):
    return open_token_encoder(f"st:{folder}")


def expected(folder, text):
    """The last hidden states, projected, of length 1."""
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    plain = folder.with_name("colbert-plain")
    model, tokenizer = AutoModel.from_pretrained(plain).eval(), AutoTokenizer.from_pretrained(plain)
    with torch.no_grad():
        states = model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=512)).last_hidden_state[0]
    (weight,) = load_file(next(folder.glob("1_*/model.safetensors"))).values()
    rows = states.numpy() @ weight.numpy().T
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_numpy(query, document):
    return float(sum(max(float(one @ other) for other in document) for one in query))


def test_vectors_of_tokens_are_those_of_the_model(folder, encoder):
    assert (encoder.id, encoder.dimension, len(encoder.revision)) == (f"st:{folder}", 16, 12)
    made = encoder.encode_documents(TEXTS)
    for text, one in zip(TEXTS, made, strict=True):
        wanted = expected(folder, text)
        assert (one.shape, one.dtype) == (wanted.shape, np.float32)
        assert np.abs(one - wanted).max() < 1e-5
    assert encoder.encode_documents([]) == []
    assert np.allclose(encoder.encode_queries(["cafe\u0301"])[0], encoder.encode_queries(["café"])[0])
    # The rest is not read: 512 tokens.
    assert encoder.encode_documents(["a " * 3000])[0].shape == (512, 16)


def test_the_reranker_scores_by_max_sim(folder, encoder):
    reranker = open_reranker(f"st:{folder}")
    scores = reranker.scores(WORDS, [*TEXTS, ""])
    query = expected(folder, WORDS)
    wanted = [by_numpy(query, expected(folder, text)) for text in [*TEXTS, ""]]
    assert (scores.shape, scores.dtype, reranker.name) == ((41,), np.float64, f"st:{folder}")
    assert np.abs(scores - wanted).max() < 1e-5
    assert reranker.scores(WORDS, []).shape == (0,)
    # A document may have no tokens: a model may leave out all that it has.
    assert max_sim(encoder.encode_queries([WORDS])[0], np.empty((0, 16), np.float32)) == 0


def test_the_prompts_of_the_model_are_used(folder, encoder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    edit_json(copied / "config_sentence_transformers.json", prompts={"query": "q ", "document": "d "})
    other = open_token_encoder(f"st:{copied}")
    assert other.revision != encoder.revision
    for mine, theirs in (
        (other.encode_queries(["abc"]), encoder.encode_queries(["q abc"])),
        (other.encode_documents(["abc"]), encoder.encode_documents(["d abc"])),
    ):
        assert np.abs(mine[0] - theirs[0]).max() < 1e-5


def test_other_models_are_refused(tmp_path):
    dense = save_tiny_model(tmp_path / "dense")
    with pytest.raises(UsageError) as refused:
        open_token_encoder(f"st:{dense}")
    assert str(refused.value) == (
        f"{dense} is an encoder, which makes one vector of a text: use it as --encoder, or use a late-interaction "
        "model, such as st:LiquidAI/LFM2-ColBERT-350M."
    )
    for name in ("e5-small", "st:", "http://localhost#m", "given"):
        with pytest.raises(UsageError) as refused:
            open_token_encoder(name)
        assert str(refused.value) == (
            f"Unknown late-interaction model {name!r}; choose st:NAME_OR_PATH (sentence-transformers)."
        )

"""``st:`` as a sparse encoder: a tiny SPLADE model with random weights, saved by the test; models of other kinds."""

import shutil
import sys

import numpy as np
import pytest
from tiny_model import (
    edit_json,
    made_up_lines,
    require_transformers,
    save_tiny_colbert,
    save_tiny_cross_encoder,
    save_tiny_model,
    save_tiny_splade,
)

from langshift.debias.encoders import open_sparse
from langshift.errors import LangshiftError, UsageError

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

TEXTS = [line for script in range(4) for line in made_up_lines(10, script)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_splade(tmp_path_factory.mktemp("sparse") / "splade")


@pytest.fixture(scope="module")
def encoder(folder):
    return open_sparse(f"st:{folder}")


def expected(folder, text):
    """SPLADE's weights: the greatest of each word over the tokens of the text, log(1 + max(0, logit))."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    plain = folder.with_name("splade-plain")
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(plain).eval(), AutoTokenizer.from_pretrained(plain)
    with torch.no_grad():
        logits = model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=512)).logits[0]
    weights = np.log1p(np.maximum(logits.numpy(), 0)).max(axis=0)
    return {str(token): float(weight) for token, weight in enumerate(weights) if weight > 0}


def test_weights_are_those_of_the_model(folder, encoder):
    coded = encoder.encode_documents(TEXTS)
    for text, one in zip(TEXTS, coded, strict=True):
        wanted = expected(folder, text)
        assert max(abs(one.get(token, 0) - wanted.get(token, 0)) for token in {*one, *wanted}) < 1e-4
    assert list(coded[0].values()) == sorted(coded[0].values(), reverse=True)
    assert encoder.encode_queries(TEXTS[:1])[0] == pytest.approx(coded[0], abs=1e-4)
    assert encoder.encode_documents([]) == []


def test_long_texts_and_other_forms_of_a_text(encoder):
    long = " ".join(made_up_lines(3000))
    # 512 tokens are read.
    assert encoder.encode_documents([long, long + " more"])[0] == pytest.approx(
        encoder.encode_documents([long[:5000]])[0]
    )
    assert encoder.encode_documents(["cafe\u0301"]) == encoder.encode_documents(["café"])


def test_the_same_model_in_another_folder_is_the_same(folder, encoder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    other = open_sparse(f"st:{copied}")
    assert (other.id, other.revision) == (f"st:{copied}", encoder.revision)
    assert len(encoder.revision) == 12
    edit_json(copied / "config_sentence_transformers.json", prompts={"query": "abc "})
    asked = open_sparse(f"st:{copied}")
    assert asked.revision != encoder.revision
    assert asked.encode_queries(["def"])[0] == pytest.approx(encoder.encode_queries(["abc def"])[0])
    assert asked.encode_documents(["def"])[0] == pytest.approx(encoder.encode_documents(["def"])[0])


def test_a_folder_that_says_nothing_is_believed(folder, encoder):
    # Where there are no modules, a SPLADE model looks as an untrained encoder does.
    plain = open_sparse(f"st:{folder.with_name('splade-plain')}")
    assert plain.encode_documents(TEXTS[:1])[0] == pytest.approx(encoder.encode_documents(TEXTS[:1])[0])


def refusal(work):
    with pytest.raises(UsageError) as caught:
        work()
    return str(caught.value)


def test_models_of_other_kinds_are_refused_as_what_they_are(tmp_path):
    wanted = "a sparse model, such as st:opensearch-project/opensearch-neural-sparse-encoding-multilingual-v1."
    dense, late = save_tiny_model(tmp_path / "dense"), save_tiny_colbert(tmp_path / "late")
    cross = save_tiny_cross_encoder(tmp_path / "cross")
    for place, what in {
        dense: "an encoder, which makes one vector of a text: use it as --encoder",
        late: "a late-interaction model (as ColBERT is), which makes a vector of every token: use it as --rerank or "
        "--tokens",
        cross: "a reranker (a cross-encoder), which scores a query beside a passage and makes no vector: use it as "
        "--rerank",
    }.items():
        assert refusal(lambda place=place: open_sparse(f"st:{place}")) == f"{place} is {what}, or use {wanted}"
    (dense / "modules.json").unlink()
    edit_json(dense / "config.json", architectures=[])
    assert refusal(lambda: open_sparse(f"st:{dense}")) == (
        f"{dense} is no sparse model by its files, so that what it makes would be that of an untrained head: use "
        f"{wanted}"
    )
    assert "does not exist; give the path" in refusal(lambda: open_sparse(f"st:{tmp_path / 'none'}"))


def test_a_damaged_model_and_a_missing_extra(folder, tmp_path, monkeypatch):
    copied = shutil.copytree(folder, tmp_path / "copy")
    edit_json(copied / "config.json", model_type="none-such")
    assert "this model is damaged, or sentence-transformers cannot load it" in refusal(
        lambda: open_sparse(f"st:{copied}")
    )
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(LangshiftError) as caught:
        open_sparse(f"st:{folder}")
    assert str(caught.value) == (
        "The sparse encoders st:NAME need an extra: pip install 'langshift[transformers]'; or use the one that comes "
        "with langshift, e5-small."
    )

"""A tiny model in the manner of XLM-R, with random weights, for tests of the encoder ``st:``; nothing is fetched."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil

import pytest

DIMENSION = 32
_LETTERS = ["abcdefghijklmnoprstuvwz", "абвгдеиклмнопрст", "กขคงจดตนบปมยรลวสห", "天地人日月山水火木金土"]


def require_transformers():
    """Skip the tests of a module where the extra is missing; fail where LANGSHIFT_REQUIRE_TRANSFORMERS=1."""
    missing = [name for name in ("torch", "sentence_transformers") if importlib.util.find_spec(name) is None]
    if not missing:
        return
    reason = f"{' and '.join(missing)} missing: pip install 'langshift[transformers]'"
    if os.environ.get("LANGSHIFT_REQUIRE_TRANSFORMERS") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def made_up_lines(count, script=0, seed=0):
    """Lines of made-up words in one of four scripts, 1 to 12 words each."""
    chance = random.Random(f"{seed} {script}")
    return [
        " ".join(
            "".join(chance.choices(_LETTERS[script], k=chance.randint(1, 8))) for _ in range(chance.randint(1, 12))
        )
        for _ in range(count)
    ]


def save_tiny_model(folder, *, seed=0, prompts=None, normalize=True):
    """Build the model and save it as sentence-transformers does; returns the folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    modules = [_tiny_transformer(folder, seed), Pooling(DIMENSION, "mean"), *([Normalize()] if normalize else [])]
    SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(folder), create_model_card=False)
    return folder


def _tiny_transformer(folder, seed=0):
    """The module that gives vectors of tokens; the model alone lies in a folder beside ``folder``."""
    import torch
    from sentence_transformers.base.modules import Transformer
    from transformers import XLMRobertaModel

    # Threads of so small a model wait for each other, and the longer the busier the machine is.
    torch.set_num_threads(1)
    plain = folder.with_name(f"{folder.name}-plain")
    tokenizer = tiny_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = XLMRobertaModel(_config(tokenizer))
    model.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    return Transformer(str(plain))


#: A cross-encoder of these learns in a few steps; that of the usual ones tells texts apart without having learnt.
LEARNS = {"initializer_range": 0.05, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def save_tiny_cross_encoder(folder, *, seed=0, labels=1, **config):
    """Build a cross-encoder with random weights and save it; returns the folder."""
    import torch
    from transformers import XLMRobertaForSequenceClassification

    torch.set_num_threads(1)
    tokenizer = tiny_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = XLMRobertaForSequenceClassification(_config(tokenizer, num_labels=labels, **config))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny_colbert(folder):
    """Build a late-interaction model, a vector for each token, as sentence-transformers saves it."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense

    transformer = _tiny_transformer(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        dense = Dense(DIMENSION, 16, bias=False, activation_function=torch.nn.Identity())
    dense.module_input_name = dense.module_output_name = "token_embeddings"
    MultiVectorEncoder(modules=[transformer, dense], device="cpu").save(str(folder), create_model_card=False)
    return folder


def save_tiny_splade(folder):
    """Build a sparse model, a weight for each word, as sentence-transformers saves it."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling
    from transformers import XLMRobertaForMaskedLM

    torch.set_num_threads(1)
    plain, tokenizer = folder.with_name(f"{folder.name}-plain"), tiny_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = XLMRobertaForMaskedLM(_config(tokenizer))
    model.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    modules = [MLMTransformer(str(plain)), SpladePooling()]
    SparseEncoder(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def save_tiny_causal_reranker(folder, *, seed=0):
    """Build a reranker of a causal language model, as Qwen3-Reranker is; the model alone lies in ``…-plain``."""
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder.modules import LogitScore, Transformer
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.set_num_threads(1)
    plain, tokenizer = folder.with_name(f"{folder.name}-plain"), tiny_tokenizer()
    tokenizer.chat_template = (
        "{% for one in messages %}<s> {{ one.role }} {{ one.content }} {% endfor %}"
        "{% if add_generation_prompt %}<unk> {% endif %}"
    )
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=DIMENSION,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        intermediate_size=64,
        max_position_embeddings=1024,
        initializer_range=0.5,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    yes, no = tokenizer.convert_tokens_to_ids(["</s>", "<mask>"])
    modules = [Transformer(str(plain), transformer_task="text-generation"), LogitScore(yes, no)]
    CrossEncoder(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def model_fixtures():
    """For a module of tests: the saved model's folder, its encoder, and a function that copies it to another name."""

    @pytest.fixture(scope="module")
    def folder(tmp_path_factory):
        return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny")

    @pytest.fixture(scope="module")
    def encoder(folder):
        from langshift.debias.encoders.sentence_transformers import open_st

        return open_st(str(folder))

    @pytest.fixture
    def copied(folder, tmp_path):
        return lambda name="copy": shutil.copytree(folder, tmp_path / name)

    return folder, encoder, copied


def _config(tokenizer, **more):
    from transformers import XLMRobertaConfig

    return XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=DIMENSION,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=1026,
        # The usual .02 would make all texts nearly the same to a model that never learned.
        **{"initializer_range": 0.5, **more},
    )


def tiny_tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer, trained.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    lines = [line for script in range(len(_LETTERS)) for line in made_up_lines(100, script)]
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False)
    trained.train_from_iterator([*lines, "query: passage: "], trainer)
    trained.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[(token, trained.token_to_id(token)) for token in ("<s>", "</s>")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=trained,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
        model_max_length=1024,
    )


def edit_json(path, **changes):
    """Change some keys of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

"""The encoder ``st:``, on a tiny model with random weights that is built and saved here: what it makes of texts, and
where models lie, what names them, and what of them is refused.
"""

import json
import socket
import sys

import numpy as np
import pytest
from command_line import langshift
from model_hub import model_hub
from tiny_model import DIMENSION, edit_json, made_up_lines, model_fixtures, require_transformers, save_tiny_model

from langshift.debias.encoders.sentence_transformers import open_st
from langshift.debias.vectors import LanguageVectors
from langshift.errors import LangshiftError, UsageError

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

folder, encoder, copied = model_fixtures()
LINES = [line for script in range(4) for line in made_up_lines(25, script, seed=1)]
FEW = made_up_lines(20)


def plain(folder, texts, **settings):
    """What sentence-transformers itself makes of texts."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").encode(texts, **settings)


def test_a_normalize_at_the_end_is_bypassed(folder, encoder):
    vectors = encoder.encode_documents(LINES)
    assert (vectors.shape, vectors.dtype) == ((len(LINES), DIMENSION), np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert norms.std() > 0.01
    assert np.abs(vectors / norms - plain(folder, LINES)).max() < 1e-6
    assert (encoder.id, encoder.dimension, encoder.normalised) == (f"st:{folder}", DIMENSION, False)
    assert encoder.encode_queries([]).shape == (0, DIMENSION)


def test_a_model_that_normalises_otherwise_is_known_by_its_vectors(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dropout

    model = SentenceTransformer(str(save_tiny_model(tmp_path / "tiny")), device="cpu")
    model.append(Dropout(0.1))
    model.save(str(tmp_path / "inside"), create_model_card=False)
    assert open_st(str(tmp_path / "inside")).normalised is True


def test_the_order_of_the_texts_is_kept_and_the_batch_makes_no_difference(encoder):
    vectors = encoder.encode_documents(LINES)
    alone = np.concatenate([encoder.encode_documents([line]) for line in LINES[::5]])
    assert len({len(line) for line in LINES[::5]}) > 10
    assert np.abs(vectors[::5] - alone).max() < 1e-5


def test_half_precision_weights_are_computed_with_in_full(folder, tmp_path):
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(folder), device="cpu").bfloat16().save(str(tmp_path / "half"), create_model_card=False)
    encoder = open_st(str(tmp_path / "half"))
    vectors = encoder.encode_documents(LINES)
    alone = np.concatenate([encoder.encode_documents([line]) for line in LINES[:10]])
    assert vectors.dtype == np.float32
    assert np.abs(vectors[:10] - alone).max() < 1e-5


@pytest.mark.parametrize(("most", "words"), [(None, 510), (64, 62)])
def test_512_tokens_are_read_or_fewer_where_the_model_has_room_for_fewer(copied, most, words):
    folder = copied()
    if most:
        edit_json(folder / "sentence_bert_config.json", max_seq_length=most)
    encoder = open_st(str(folder))
    # A letter is a token; two more stand around every text.
    within, beyond = (
        encoder.encode_documents(["a " * count + ending for ending in "bc"]) for count in (words - 1, words)
    )
    assert np.abs(within[0] - within[1]).max() > 1e-4
    assert np.abs(beyond[0] - beyond[1]).max() < 1e-6


def test_a_long_text_is_cut_before_it_is_read(encoder):
    assert encoder.longest == 20_000
    text = "a" * 19_999
    one, other = encoder.encode_documents([f"{text}bc", f"{text}bd"])
    assert np.array_equal(one, other)


def test_the_prefix_of_the_table_is_applied_by_the_name_of_the_folder(encoder, copied):
    named = open_st(str(copied("Multilingual-E5-large")))
    assert (named.query_prefix, named.document_prefix) == ("query: ", "passage: ")
    for vectors, prefix in [(named.encode_documents(LINES), "passage: "), (named.encode_queries(LINES), "query: ")]:
        assert np.abs(vectors - encoder.encode_documents([prefix + line for line in LINES])).max() < 1e-5
        assert np.abs(vectors - encoder.encode_documents(LINES)).max() > 0.1


def test_the_models_own_prompts_are_applied_once_and_on_their_side_alone(encoder, copied):
    folder = copied()
    edit_json(folder / "config_sentence_transformers.json", prompts={"query": "Frage: "}, default_prompt_name="query")
    own = open_st(str(folder))
    assert (own.query_prefix, own.document_prefix) == ("Frage: ", "")
    prefixed = encoder.encode_documents([f"Frage: {line}" for line in LINES])
    assert np.abs(own.encode_queries(LINES) - prefixed).max() < 1e-5
    assert np.abs(own.encode_documents(LINES) - encoder.encode_documents(LINES)).max() < 1e-5


def test_the_origin_of_a_model_gives_its_prefixes(copied):
    folder = copied("mine")
    edit_json(folder / "config.json", _name_or_path="intfloat/multilingual-e5-large")
    assert open_st(str(folder)).document_prefix == "passage: "


def test_language_vectors_are_fitted_with_it(copied, tmp_path):
    from langshift.debias.fitting.fit import fit
    from langshift.debias.parallel import open_parallel

    pairs = tmp_path / "pairs"
    pairs.mkdir()
    texts = {tag: made_up_lines(40, script, seed=2) for script, tag in enumerate(["en", "ru", "th"])}
    for tag, lines in texts.items():
        (pairs / f"{tag}.txt").write_text("\n".join(lines), encoding="utf-8")
    encoder = open_st(str(copied("multilingual-e5-large")))
    made = fit(open_parallel(pairs), ["en"], encoder)["en"]
    for tag in ("ru", "th"):
        difference = encoder.encode_documents(texts[tag]) - encoder.encode_documents(texts["en"])
        assert np.abs(made.vectors[tag] - difference.mean(axis=0)).max() < 1e-5
        difference = encoder.encode_queries(texts[tag]) - encoder.encode_queries(texts["en"])
        assert np.abs(made.query_vectors[tag] - difference.mean(axis=0)).max() < 1e-5
    assert (made.document_prefix, made.query_prefix, made.normalised) == ("passage: ", "query: ", False)
    made.require_encoder(encoder, "here")


def test_published_language_vectors_are_imported_for_it(copied, tmp_path):
    import torch

    vectors = {"v_de": torch.ones(DIMENSION), "v_zh": torch.zeros(1, DIMENSION)}
    published, output = tmp_path / "published.pt", tmp_path / "e5.safetensors"
    torch.save({"model_name": "intfloat/multilingual-e5-large", "source_lang": "en", **vectors}, published)
    command = ["vectors", "import", published, "--output", output, "--encoder", f"st:{copied('multilingual-e5-large')}"]
    document = json.loads(langshift(*command, "--json").stdout)
    made = LanguageVectors.load(output)
    assert document["hash"] == made.hash
    assert (document["file"], document["encoder"], document["pivot"]) == (str(output), command[-1], "en")
    made_by = ("query_prefix", "document_prefix", "dimension", "normalised")
    assert [document[name] for name in made_by] == ["query: ", "passage: ", DIMENSION, False]
    assert document["languages"]["de"] == {"norm": pytest.approx(DIMENSION**0.5)}
    assert np.array_equal(made.vectors["de"], np.ones(DIMENSION))
    assert f"{output}: 2 language vectors towards en, hash {made.hash}" in langshift(*command).stdout


def test_the_revision_is_that_of_all_that_makes_the_vectors(encoder, copied):
    same = copied("same")
    (same / "README.md").write_text("# A model")
    (same / "onnx").mkdir()
    (same / "onnx" / "model.onnx").write_bytes(b"another runtime's")
    (same / "pytorch_model.bin").write_bytes(b"not read beside model.safetensors")
    edit_json(same / "config_sentence_transformers.json", similarity_fn_name="dot")
    assert open_st(str(same)).revision == encoder.revision
    assert len(encoder.revision) == 12

    weights = copied("weights") / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    pooling, tokenizer, length = copied("pooling"), copied("tokenizer"), copied("length")
    edit_json(pooling / "1_Pooling" / "config.json", pooling_mode="cls")
    edit_json(tokenizer / "tokenizer_config.json", model_max_length=100)
    edit_json(length / "sentence_bert_config.json", max_seq_length=100)
    changed = [open_st(str(folder)).revision for folder in (weights.parent, pooling, tokenizer, length)]
    assert len({encoder.revision, *changed}) == 5


def test_a_model_whose_modules_are_routed(tmp_path, folder):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Router

    sides = [list(SentenceTransformer(str(folder), device="cpu")) for _ in range(2)]
    router = Router.for_query_document(sides[0][:2], sides[1][:2])
    SentenceTransformer(modules=[router], device="cpu").save(str(tmp_path / "routed"), create_model_card=False)
    routed = open_st(str(tmp_path / "routed"))
    assert np.abs(routed.encode_queries(FEW) - open_st(str(folder)).encode_documents(FEW)).max() < 1e-5
    (weights,) = (tmp_path / "routed").glob("query_0_*/model.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert open_st(str(tmp_path / "routed")).revision != routed.revision


CODE = """
from sentence_transformers.sentence_transformer.modules import Pooling

class Doubled(Pooling):
    def forward(self, features, **kwargs):
        features = super().forward(features, **kwargs)
        features["sentence_embedding"] = 2 * features["sentence_embedding"]
        return features
"""


def test_code_that_comes_with_a_model_is_run_only_where_the_model_is_trusted(encoder, copied, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = copied()
    (folder / "doubled.py").write_text(CODE)
    modules = folder / "modules.json"
    modules.write_text(
        modules.read_text().replace(
            "sentence_transformers.sentence_transformer.modules.pooling.Pooling", "doubled.Doubled"
        )
    )
    refusal = (
        f"{folder}: this model runs code that comes with it: read that code, and if you trust it, add "
        f"{folder} to LANGSHIFT_TRUSTED_MODELS."
    )
    monkeypatch.setenv("LANGSHIFT_TRUSTED_MODELS", f"someone/doubled,{tmp_path}")
    with pytest.raises(UsageError) as refused:
        open_st(str(folder))
    assert str(refused.value) == refusal
    monkeypatch.setenv("LANGSHIFT_TRUSTED_MODELS", f"someone/other, {folder}")
    doubled = open_st(str(folder))
    assert np.abs(doubled.encode_documents(FEW) - 2 * encoder.encode_documents(FEW)).max() < 1e-5
    (folder / "doubled.py").write_text(CODE.replace("2 *", "3 *"))
    assert open_st(str(folder)).revision != doubled.revision

    unknown = copied("unknown")
    edit_json(unknown / "config.json", model_type="made-up", auto_map={"AutoConfig": "m.C", "AutoModel": "m.M"})
    with pytest.raises(UsageError) as refused:
        open_st(str(unknown))
    assert str(refused.value) == refusal.replace(str(folder), str(unknown))


def test_missing_folders_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for written in (f"{tmp_path}/nowhere", "./nowhere", f"../{tmp_path.name}/nowhere"):
        with pytest.raises(UsageError, match=r"nowhere does not exist; give the path of a model's folder, or a name "):
            open_st(written)
    with pytest.raises(UsageError) as refused:
        open_st(str(tmp_path))
    assert str(refused.value) == (
        f"{tmp_path} contains neither modules.json nor config.json, so it is not a model; give the folder that "
        "sentence-transformers saved."
    )
    with pytest.raises(UsageError) as refused:
        open_st("no name")
    assert str(refused.value) == (
        "'sentence-transformers/no name' is not a valid model name on Hugging Face, such as BAAI/bge-m3."
    )


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "modules.json", "1_Pooling/config.json"])
@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(path.read_bytes()[:-9]), lambda path: path.unlink()])
def test_damaged_models_are_refused_in_one_sentence(copied, file, damage):
    folder = copied()
    damage(folder / file)
    if file == "modules.json" and not (folder / file).exists():
        # Then it is a plain transformer, whose tokens' mean is taken.
        assert open_st(str(folder)).normalised is False
        return
    with pytest.raises(UsageError) as refused:
        open_st(str(folder))
    (sentence,) = str(refused.value).splitlines()
    assert sentence.startswith(f"{folder}: this model is damaged, or sentence-transformers cannot load it (")
    assert sentence.endswith("): copy or download it again.")


def test_a_folder_never_touches_the_network(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: asked.append(address))
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
    open_st(str(folder)).encode_queries(FEW[:3])
    assert asked == []


def test_models_of_the_hub_are_fetched_once_and_are_the_same_as_a_copy(encoder, copied, tmp_path, monkeypatch, capfd):
    import torch
    from huggingface_hub import constants
    from safetensors.torch import load_file

    both, old = copied("both"), copied("old")
    (both / "pytorch_model.bin").write_bytes(b"not fetched beside model.safetensors")
    (both / "README.md").write_text("# A model")
    torch.save(load_file(old / "model.safetensors"), old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()

    def told(name):
        try:
            opened = open_st(name)
        except LangshiftError as error:
            return str(error)
        opened.encode_documents(["a text", "another"])
        return f"{opened.id} {opened.revision} {opened.document_prefix}"

    names = ["intfloat/multilingual-e5-large", "someone/old", "no/such", "no/answer"]
    with model_hub({"intfloat/multilingual-e5-large": both, "someone/old": old}) as (url, asked):
        # What HF_ENDPOINT and HF_HOME say, which are read when the library is loaded.
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        capfd.readouterr()
        e5, old_too, missing, unreachable = map(told, names)
        assert [told(name) for name in ("multilingual-e5-large", "someone/old")] == [e5, old_too]
        out, err = capfd.readouterr()
    assert e5 == f"st:intfloat/multilingual-e5-large {encoder.revision} passage: "
    assert told(str(both)) == f"st:{both} {encoder.revision} "
    assert old_too == f"st:someone/old {open_st(str(old)).revision} "
    assert missing == (
        "Hugging Face has no model no/such that you can access: check the name, accept the model's terms on its page, "
        "and log in with `hf auth login` if required."
    )
    assert unreachable.startswith(
        "The model no/answer is not on this machine and cannot be downloaded from Hugging Face ("
    )
    assert unreachable.endswith(
        "): check that huggingface.co can be reached, or give a folder with the model as st:FOLDER."
    )
    # What is in the cache is not asked for again, and the libraries say nothing of their own.
    assert asked.count("/api/models/intfloat/multilingual-e5-large/revision/main") == 1
    assert not [path for path in asked if path.endswith(".md") or (path.endswith(".bin") and "multilingual" in path)]
    downloading = [f"Downloading the model {name} from Hugging Face (only needed once) ..." for name in names]
    no_prefix = "There is no prefix known for st:someone/old: none is used (--query-prefix, --document-prefix)."
    assert (out, err.splitlines()) == ("", [*downloading[:2], no_prefix, *downloading[2:]])


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(LangshiftError) as refused:
        open_st("any/model")
    assert str(refused.value) == (
        "The encoders st:NAME need an extra: pip install 'langshift[transformers]'; "
        "or use an encoder that comes with langshift."
    )


def test_tokens_are_counted_with_the_prefix_and_never_cut(encoder, copied):
    assert encoder.window == 512
    # A letter is a token; two more stand around every text.
    assert encoder.count_tokens(["", "a", "a" + " a" * 999]) == [2, 3, 1002]
    named = open_st(str(copied("multilingual-e5-large")))
    assert named.count_tokens(["a"])[0] == len("passage:") + 3

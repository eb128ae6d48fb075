"""Models of the encoder ``st:``: where they lie, what names them, and what of them is refused."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from model_hub import model_hub
from tiny_model import edit_json, made_up_lines, model_fixtures, require_transformers

from langshift.errors import UsageError
from langshift.ingest.encoders.st import open_st

require_transformers()

folder, encoder, copied = model_fixtures()
LINES = made_up_lines(20)


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
    assert np.abs(routed.encode_queries(LINES) - open_st(str(folder)).encode_documents(LINES)).max() < 1e-5
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


def test_code_that_comes_with_a_model_is_run_only_when_asked_for(encoder, copied, tmp_path, monkeypatch):
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
        f"{folder}: this model runs code that comes with it: read that code, and if you trust it give "
        "--trust-remote-code."
    )
    with pytest.raises(UsageError) as refused:
        open_st(str(folder))
    assert str(refused.value) == refusal
    doubled = open_st(str(folder), trust_remote_code=True)
    assert np.abs(doubled.encode_documents(LINES) - 2 * encoder.encode_documents(LINES)).max() < 1e-5
    (folder / "doubled.py").write_text(CODE.replace("2 *", "3 *"))
    assert open_st(str(folder), trust_remote_code=True).revision != doubled.revision

    unknown = copied("unknown")
    edit_json(unknown / "config.json", model_type="made-up", auto_map={"AutoConfig": "m.C", "AutoModel": "m.M"})
    with pytest.raises(UsageError) as refused:
        open_st(str(unknown))
    assert str(refused.value) == refusal.replace(str(folder), str(unknown))


def test_missing_folders_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for written in (f"{tmp_path}/nowhere", "./nowhere", f"../{tmp_path.name}/nowhere"):
        with pytest.raises(
            UsageError, match=r"nowhere: there is no such folder with a model; give its path, or a name "
        ):
            open_st(written)
    with pytest.raises(UsageError) as refused:
        open_st(str(tmp_path))
    assert str(refused.value) == (
        f"{tmp_path}: holds neither modules.json nor config.json, and so no model; name the folder that "
        "sentence-transformers saved."
    )
    with pytest.raises(UsageError) as refused:
        open_st("no name")
    assert str(refused.value) == (
        "'sentence-transformers/no name' is no name of a model on Hugging Face, which look like BAAI/bge-m3."
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
    assert sentence.endswith("): copy or fetch it again.")


def test_a_folder_never_touches_the_network(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: asked.append(address))
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
    open_st(str(folder)).encode_queries(LINES[:3])
    assert asked == []


_OPENED = """
import sys
from langshift.errors import LangshiftError
from langshift.ingest.encoders.st import open_st
for name in sys.argv[1:]:
    try:
        encoder = open_st(name)
        encoder.encode_documents(["a text", "another"])
        print(encoder.id, encoder.revision, encoder.document_prefix)
    except LangshiftError as error:
        print(error)
"""


def test_models_of_the_hub_are_fetched_once_and_are_the_same_as_a_copy(encoder, copied, tmp_path):
    import torch
    from safetensors.torch import load_file

    both, old = copied("both"), copied("old")
    (both / "pytorch_model.bin").write_bytes(b"not fetched beside model.safetensors")
    (both / "README.md").write_text("# A model")
    torch.save(load_file(old / "model.safetensors"), old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    with model_hub({"intfloat/multilingual-e5-large": both, "someone/old": old}) as (url, asked):
        env = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "OMP_NUM_THREADS": "1"}
        names = ["intfloat/multilingual-e5-large", "someone/old", "no/such", "no/answer"]
        run = [sys.executable, "-c", _OPENED, *names, "multilingual-e5-large", "someone/old", str(both)]
        done = subprocess.run(run, env=os.environ | env, capture_output=True, text=True, check=True, timeout=120)
    e5 = f"st:intfloat/multilingual-e5-large {encoder.revision} passage: "
    old_too = f"st:someone/old {open_st(str(old)).revision} "
    *told, unreachable, e5_again, old_again, local = done.stdout.splitlines()
    assert told == [
        e5,
        old_too,
        "Hugging Face has no model no/such that is open to you: see that the name is right, accept the model's terms "
        "on its page, and log in with `hf auth login` where it asks for that.",
    ]
    assert (e5_again, old_again, local) == (e5, old_too, f"st:{both} {encoder.revision} ")
    assert unreachable.startswith(
        "The model no/answer is not on this machine and cannot be fetched from Hugging Face ("
    )
    assert unreachable.endswith(
        "): see that huggingface.co can be reached, or give a folder with the model as st:FOLDER."
    )
    # What is in the cache is not asked for again, and the libraries say nothing of their own.
    assert asked.count("/api/models/intfloat/multilingual-e5-large/revision/main") == 1
    assert not [path for path in asked if path.endswith(".md") or (path.endswith(".bin") and "multilingual" in path)]
    assert done.stderr.splitlines() == [f"Fetching the model {name} from Hugging Face (once) ..." for name in names]


def test_a_missing_extra_is_named():
    script = "import sys; sys.modules['sentence_transformers'] = None\n" + _OPENED
    done = subprocess.run([sys.executable, "-c", script, "any/model"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (
        "The encoders st:NAME need an extra: pip install 'langshift[transformers]'; "
        "or take --encoder use-m, which comes with langshift.\n",
        "",
    )

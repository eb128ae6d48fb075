"""How models of sentence-transformers read texts: their own prompts, pooling and tokens that a person names, what is
said of what was assumed; and which folders are no encoders or no rerankers. tests/unit has what needs no such model.
"""

import json
import shutil

import numpy as np
import pytest
from command_line import langshift
from offline_data import small_dataset
from tiny_model import (
    edit_json,
    made_up_lines,
    model_fixtures,
    require_transformers,
    save_tiny_causal_reranker,
    save_tiny_colbert,
    save_tiny_cross_encoder,
    save_tiny_model,
    save_tiny_splade,
)

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import Reading, identity
from langshift.debias.encoders.sentence_transformers import open_st
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import FingerprintError, UsageError
from langshift.ingest.config import PipelineOptions
from langshift.retrieval.rerank.rerankers import open_reranker

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

folder, encoder, copied = model_fixtures()
LINES = made_up_lines(12)


def test_what_is_assumed_is_said_once(copied, capsys):
    bare = copied("mine")
    for part in ("modules.json", "config_sentence_transformers.json"):
        (bare / part).unlink()
    open_st(str(bare)).encode_queries(LINES)
    assert capsys.readouterr().err.splitlines() == [
        f"There is no prefix known for st:{bare}: none is used (--query-prefix, --document-prefix).",
        f"st:{bare} has no modules.json: mean pooling is used (--pooling).",
    ]
    open_st(str(bare), reading=Reading(query_prefix="", pooling="cls"))
    open_st(str(copied("multilingual-e5-base")))
    open_st(str(bare), reading=Reading().of(fingerprint(open_st(str(bare))), "st:mine"))
    assert capsys.readouterr().err == ""


def fingerprint(encoder):
    none = {"pivot": None, "alpha": 0.0, "vectors": None, "detector": "d", "langshift": "1"}
    return Fingerprint.from_dict(Fingerprint(**identity(encoder), **none).to_dict())


def by_hand(folder, texts, pooling):
    """What transformers itself makes of texts, one at a time."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy() for text in texts]
    return np.stack([{"mean": one.mean(axis=0), "cls": one[0], "last": one[-1]}[pooling] for one in states])


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize("bare", [True, False])
def test_three_poolings(folder, copied, pooling, bare):
    place = copied("mine")
    if bare:
        (place / "modules.json").unlink()
    made = open_encoder(f"st:{place}", reading=Reading(pooling=pooling))
    assert np.abs(made.encode_documents(LINES) - by_hand(folder, LINES, pooling)).max() < 1e-5
    # What the model does anyway makes no other fingerprint.
    assert made.pooling == (None if pooling == "mean" else pooling)
    # A search opens the encoder by what the index's fingerprint names.
    again = open_encoder(f"st:{place}", reading=Reading().of(fingerprint(made), f"st:{place}"))
    assert identity(again) == identity(made)
    assert np.abs(again.encode_queries(LINES) - made.encode_queries(LINES)).max() < 1e-6


def test_prefixes_that_a_person_names(encoder, copied):
    place = copied("multilingual-e5-base")
    edit_json(place / "config_sentence_transformers.json", prompts={"query": "Frage: "})
    made = open_st(str(place), reading=Reading(query_prefix="q: ", document_prefix=""))
    assert (made.query_prefix, made.document_prefix) == ("q: ", "")
    assert np.abs(made.encode_queries(LINES) - encoder.encode_documents([f"q: {one}" for one in LINES])).max() < 1e-5
    one_side = open_st(str(copied("e5-small")), reading=Reading(query_prefix="q: "))
    assert (one_side.query_prefix, one_side.document_prefix) == ("q: ", "passage: ")


def test_an_index_made_before_keeps_its_prefixes(copied):
    place = copied("multilingual-e5-base")
    stored = fingerprint(open_st(str(place))).to_dict() | {"query_prefix": "", "document_prefix": ""}
    del stored["pooling"], stored["max_tokens"]
    before = Fingerprint.from_dict(stored)
    opened = open_encoder(f"st:{place}", reading=Reading().of(before, f"st:{place}"))
    assert fingerprint(opened).differences(before) == []
    assert [name for name, *_ in fingerprint(open_st(str(place))).differences(before)] == [
        "query_prefix",
        "document_prefix",
    ]


@pytest.mark.parametrize(("asked", "read"), [(None, 512), (512, 512), (40, 40), (1000, 1000), (1024, 1024)])
def test_tokens(encoder, folder, asked, read):
    made = open_st(str(folder), reading=Reading(max_tokens=asked))
    # A letter is a token; two more stand around every text.
    within, beyond = (
        made.encode_documents(["a " * count + ending for ending in "bc"]) for count in (read - 3, read - 2)
    )
    assert np.abs(within[0] - within[1]).max() > 1e-4
    assert np.abs(beyond[0] - beyond[1]).max() < 1e-6
    assert (made.window, made.max_tokens) == (read, asked if read != 512 else None)
    assert made.revision == encoder.revision
    assert made.longest >= 20_000


def test_more_tokens_than_a_model_has_room_for_are_refused(copied):
    # Its positions are counted from 2.
    place = copied("mine")
    edit_json(place / "tokenizer_config.json", model_max_length=10**30)
    with pytest.raises(UsageError) as refused:
        open_st(str(place), reading=Reading(max_tokens=1025))
    assert str(refused.value) == (
        f"The model st:{place} reads at most 1,024 tokens, so --max-tokens 1025 cannot be met: leave it out."
    )
    open_st(str(place), reading=Reading(max_tokens=1024)).encode_documents(["a " * 2000])


def test_a_model_without_pooling_takes_none(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tiny_model import tiny_tokenizer

    static = StaticEmbedding(tiny_tokenizer().backend_tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path / "static"), create_model_card=False)
    name = f"st:{tmp_path / 'static'}"
    open_encoder(name)
    for reading, sentence in [
        (Reading(pooling="cls"), "has no pooling that --pooling cls could replace: leave it out."),
        (Reading(max_tokens=100), "reads texts whole, so --max-tokens 100 cannot be met: leave it out."),
    ]:
        with pytest.raises(UsageError) as refused:
            open_encoder(name, reading=reading)
        assert str(refused.value) == f"The model {name} {sentence}"


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Folders that are no encoders."""
    place = tmp_path_factory.mktemp("others")
    save_tiny_causal_reranker(place / "causal")
    found = {
        "colbert": save_tiny_colbert(place / "colbert"),
        "pylate": save_tiny_colbert(place / "pylate"),
        "stanford": shutil.copytree(save_tiny_model(place / "dense"), place / "stanford"),
        "splade": save_tiny_splade(place / "splade"),
        "sparse": save_tiny_splade(place / "sparse"),
        "cross": save_tiny_cross_encoder(place / "cross"),
        "causal": place / "causal",
        "dense": place / "dense",
        "language": place / "causal-plain",
    }
    # As PyLate saves it; and the folder of a SPLADE model that does not say its type.
    types = [f"pylate.models.{name}" for name in ("Transformer", "Dense.Dense")]
    for name, more in (("pylate", types), ("sparse", None)):
        modules = json.loads((found[name] / "modules.json").read_text())
        for module, kind in zip(modules, more or [module["type"] for module in modules], strict=False):
            module["type"] = kind
        (found[name] / "modules.json").write_text(json.dumps(modules[: len(more or modules)]))
        (found[name] / "config_sentence_transformers.json").unlink()
    (found["stanford"] / "artifact.metadata").write_text("{}")
    return found


LATE = (
    "is a late-interaction model (as ColBERT is), which makes a vector of every token: use it as --rerank or "
    "--tokens, or use a model that makes one vector of a text, such as st:intfloat/multilingual-e5-large."
)
SPARSE = (
    "is a sparse model (as SPLADE is), which weights words and makes no dense vector: use it as --sparse, or use a "
    "model that makes one vector of a text, such as st:intfloat/multilingual-e5-large."
)
RERANKER = (
    "is a reranker (a cross-encoder), which scores a query beside a passage and makes no vector: use it as --rerank, "
    "or use a model that makes one vector of a text, such as st:intfloat/multilingual-e5-large."
)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("colbert", LATE),
        ("pylate", LATE),
        ("stanford", LATE),
        ("splade", SPARSE),
        ("sparse", SPARSE),
        ("cross", RERANKER),
        ("causal", RERANKER),
    ],
)
def test_what_is_no_encoder_is_refused_as_what_it_is(others, name, sentence):
    with pytest.raises(UsageError) as refused:
        open_encoder(f"st:{others[name]}")
    assert str(refused.value) == f"{others[name]} {sentence}"


CROSS = "use a cross-encoder, such as st:BAAI/bge-reranker-v2-m3."
HEAD = "so that its scores would be those of an untrained head"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dense", "is an encoder, which makes one vector of a text: use it as --encoder, or"),
        ("splade", SPARSE.partition(" use a")[0]),
        (
            "language",
            "is a causal language model without sentence-transformers' score module (LogitScore in modules.json), "
            f"{HEAD}:",
        ),
    ],
)
def test_what_is_no_reranker_is_refused_as_what_it_is(others, name, sentence):
    with pytest.raises(UsageError) as refused:
        open_reranker(f"st:{others[name]}")
    assert str(refused.value) == f"{others[name]} {sentence} {CROSS}"


def test_a_reranker_of_a_causal_language_model(others):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    reranker = open_reranker(f"st:{others['causal']}")
    texts = [*LINES, "a " * 2000]
    scores = reranker.scores("bread and salt", texts)
    assert (scores.shape, scores.dtype) == ((len(texts),), np.float64)
    assert len(set(scores)) == len(texts)
    alone = np.concatenate([reranker.scores("bread and salt", [text]) for text in texts])
    assert np.abs(scores - alone).max() < 1e-4
    # The score is by how much the word that means yes is likelier than the one that means no.
    plain = others["language"]
    tokenizer, model = AutoTokenizer.from_pretrained(plain), AutoModelForCausalLM.from_pretrained(plain).eval()
    yes, no = tokenizer.convert_tokens_to_ids(["</s>", "<mask>"])
    inputs = reranker.model.preprocess([("bread and salt", LINES[0])])
    with torch.no_grad():
        logits = model(inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[0, -1]
    assert scores[0] == pytest.approx(float(logits[yes] - logits[no]), abs=1e-4)


def test_a_file_of_language_vectors_says_how_its_encoder_reads(copied, tmp_path):
    place, pairs, file = copied("mine"), tmp_path / "pairs", tmp_path / "mine.safetensors"
    pairs.mkdir()
    for script, tag in enumerate(["en", "ru"]):
        (pairs / f"{tag}.txt").write_text("\n".join(made_up_lines(40, script, seed=2)), encoding="utf-8")
    options = {"query_prefix": "q: ", "document_prefix": "d: ", "pooling": "cls", "max_tokens": 40}
    told = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    fit = langshift("vectors", "fit", "--pairs", pairs, "--encoder", f"st:{place}", *told, "--output", file)
    assert fit.returncode == 0, fit

    def opened(reading):
        made = PipelineOptions(f"st:{place}", file, reading=reading).open(None).encoder
        return {name: getattr(made, name) for name in options}

    assert opened(Reading()) == options
    assert opened(Reading(pooling="cls")) == options
    with pytest.raises(FingerprintError, match="fitted with document_prefix d: , not other: "):
        opened(Reading(document_prefix="other: "))
    again = langshift("vectors", "check", file, "--pairs", pairs, "--json")
    assert json.loads(again.stdout)["languages"]["ru"]["agreement"] == pytest.approx(1, abs=1e-5)
    data = small_dataset(tmp_path / "data")
    offline = langshift("evaluate", "offline", data, "--encoder", f"st:{place}", "--vectors", file, "--json")
    assert offline.returncode == 0, offline

"""The encoder ``st:``, on a tiny model with random weights that is built and saved here."""

import numpy as np
import pytest
from tiny_model import DIMENSION, edit_json, made_up_lines, model_fixtures, require_transformers, save_tiny_model

from langshift.ingest.encoders.prefixes import full_name, prefixes
from langshift.ingest.encoders.st import open_st

require_transformers()

folder, encoder, copied = model_fixtures()
LINES = [line for script in range(4) for line in made_up_lines(25, script, seed=1)]


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


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("google/embeddinggemma-300m", "task: search result | query: ", "title: none | text: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("BAAI/bge-m3", "", ""),
        (
            "Qwen/Qwen3-Embedding-0.6B",
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
            "",
        ),
        ("nvidia/llama-nemotron-embed-1b-v2", "query: ", "passage: "),
        (
            "Alibaba-NLP/gte-Qwen2-1.5B-instruct",
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
            "",
        ),
    ],
)
def test_the_table_of_the_paper(model, query, document):
    own = model.partition("/")[2]
    for name in (model, own, own.upper(), f"someone/{own}"):
        assert prefixes(name, {"query": "another: "}, "") == (query, document)
    assert prefixes("mine", {"query": "", "document": ""}, model) == (query, document)
    for written in (own, own.upper(), f"/models/{own}/", f"./{own}", f"C:\\models\\{own}"):
        assert full_name(written) == model
    assert full_name(f"someone/{own}") == f"someone/{own}"


def test_prompts_of_a_model_that_the_table_does_not_know():
    assert prefixes("mine", {"query": "q: ", "passage": "p: "}, "intfloat/multilingual-e5-large") == ("q: ", "p: ")
    assert prefixes("mine", {"document": "d: ", "passage": "p: ", "clustering": "c: "}, "") == ("", "d: ")
    assert prefixes("mine", {}, "xlm-roberta-large") == ("", "")


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
    from langshift.ingest.fit import fit
    from langshift.ingest.parallel import open_parallel

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

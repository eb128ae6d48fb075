"""Indices of Faiss, in each way that langshift has it keep vectors, searched by the plugin's query and by langshift."""

import uuid
from dataclasses import replace

import numpy as np
from native_agreement import Agreement
from native_plugin import metadata_of
from plain_index import PLAIN
from searched_index import DIMENSION, LANGUAGES, TRUST, WORDS, ChunkCorpus, Corpus, asked

from langshift.debias.vectors import CommonStep
from langshift.plugin.stored_shift import StoredShift

_TOY = replace(PLAIN, encoder="given", revision="", dimension=DIMENSION)
_NUMBERS = np.random.default_rng(7)
_BASIS = np.linalg.qr(_NUMBERS.standard_normal((DIMENSION, 2)))[0].T.astype(np.float32)
_GAMMA = StoredShift("made up", "en", gamma=0.7, step=CommonStep(np.zeros(DIMENSION, np.float32), _BASIS))
_OWN = {tag: _NUMBERS.standard_normal(DIMENSION).astype(np.float32) for tag in LANGUAGES}
# Faiss keeps vectors at length 1: of what was added to them then counts its share, and not its weight.
_PREFERRING = replace(_GAMMA, own=0.1, own_vectors=_OWN, scatter=[1.0, 0.0, 0.0])
_COSINE = {"name": "hnsw", "engine": "faiss", "space_type": "cosinesimil"}
#: How an index may keep the vectors, as `langshift ingest --engine` has it; the last as another client may.
KEPT = {
    "faiss": {"method": _COSINE, "compression_level": "1x"},
    "faiss-fp16": {"method": _COSINE, "compression_level": "2x"},
    "faiss-on-disk": {"method": _COSINE, "compression_level": "32x"},
    "no engine": {"space_type": "cosinesimil"},
}
_SCALAR = {"encoder": {"name": "sq", "parameters": {"type": "fp16", "bits": 16}}}
#: Ways of mappings that langshift does not write, and that of the other engine.
OTHERS = {
    "mode on_disk": {"mode": "on_disk", "space_type": "cosinesimil"},
    "encoder sq": {"method": {**_COSINE, "parameters": _SCALAR}},
    "lucene": {"method": {**_COSINE, "engine": "lucene"}},
}
#: What is in it.
KINDS = {"documents": (Corpus, None), "own": (Corpus, _PREFERRING), "chunks": (ChunkCorpus, _GAMMA)}


def written(client, kept, kind, shards):
    """An index of two segments a shard, with deleted documents; its name."""
    (make, shift), name = KINDS[kind], f"langshift-test-faiss-{uuid.uuid4().hex[:8]}"
    corpus = make()
    corpus.kept = (KEPT | OTHERS)[kept]
    corpus.write(client, name, shards)
    of_a_year = {"query": {"term": {"year": 2001}}}
    assert client.update_by_query(index=name, body=of_a_year, params={"refresh": "true"})["updated"]
    then = {"alpha": 0.0, "alphas": {}, "gamma": 0.0, "vectors": None, "documents": len(corpus.vectors)}
    then |= {} if shift is None else {"gamma": shift.gamma, "vectors": shift.hash}
    found = {"spread": TRUST.spread, "strength": TRUST.strength, "mode": "anchored", "counterpart": 0.6}
    calibration = found | {"lexical_weight": None, "rerank": {}, "measured_with": then}
    meta = metadata_of(_TOY, corpus.fields, shift=shift, calibration=calibration)
    client.indices.put_mapping(index=name, body={"_meta": meta})
    return name


def agreement(client, index, kept, kind, seed=0):
    """What compares searches of such an index."""
    # Numbers of two bytes or whole vectors: the server goes by either, as few or many are looked at.
    digits = 3 if kept in ("faiss-fp16", "encoder sq") else 5
    numbers, tags = np.random.default_rng(seed), [*LANGUAGES, "und"]
    words = [*WORDS, "comet", "twin"]
    questions = [
        asked(place, str(numbers.choice(tags)), " ".join(numbers.choice(words, 3, replace=False)))
        for place in range(100)
    ]
    # Of chunks langshift's own search takes whatever the segments bring, also behind the k nearest.
    return Agreement(client, index, questions, _filters, seed=seed, digits=digits, nearer=kind == "chunks")


def _filters(numbers):
    return [({"language": ["de", "en"]}, []), ({"year": 2001}, []), ({}, [{"range": {"year": {"gte": 2001}}}])][
        numbers.integers(3)
    ]

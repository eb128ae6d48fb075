"""Late interaction as reranking: 50 candidates from vectors that the index keeps, beside the same encoded on the fly.

``LANGSHIFT_LATE_DOCUMENTS`` says how many documents (20,000), ``LANGSHIFT_LATE_MODEL`` which model, such as
``st:/models/colbert``; without it a tiny one with random weights, whose encoding costs next to nothing: look at what is
kept, not at the ratio. Every question is searched in all ways in turn, and what else the machine does is in all.
"""

import os
from dataclasses import replace
from time import perf_counter

import msgspec
import numpy as np
import orjson
import pytest
from given_data import run
from large_corpus import LargeCorpus
from tiny_model import require_transformers, save_tiny_colbert

from langshift.debias.encoders.token_vectors import open_token_encoder, pack, unpack
from langshift.plugin import metadata
from langshift.plugin.representations import TOKENS, TOKENS_FIELD, TokenVectors
from langshift.plugin.versions import live
from langshift.retrieval.plans import execute
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

from .bench_search import quartiles

require_transformers()
DOCUMENTS = int(os.environ.get("LANGSHIFT_LATE_DOCUMENTS", "20000"))
QUESTIONS, ROUNDS, CANDIDATES, BLOCK = 40, 3, 50, 500


@pytest.mark.usefixtures("cluster_env")
def test_reranking_from_kept_vectors(client, index_name, tmp_path):
    corpus, file = LargeCorpus(), tmp_path / "corpus.jsonl"
    corpus.write(file)
    lines = file.read_bytes().splitlines(keepends=True)[:DOCUMENTS]
    file.write_bytes(b"".join(lines))
    done = run("ingest", file, "--index", index_name, "--encoder", "given", "--alpha", 0)
    assert done.exit_code == 0, (done.output, done.exception)
    index = live(client, index_name).index
    before = stored(client, index)
    model = open_token_encoder(os.environ.get("LANGSHIFT_LATE_MODEL") or f"st:{save_tiny_colbert(tmp_path / 'late')}")
    counts, packed, seconds = keep(client, index, model, lines)
    after, keeping = stored(client, index), Searcher(client, index_name)
    left = np.mean([len(unpack(one)) for one in packed])
    print(
        f"\n{len(lines):,} documents of {np.mean(counts):.0f} tokens, {left:.0f} of them kept, {model.dimension} "
        f"dimensions: encoded, packed and written in {seconds:.0f} s; {np.mean([*map(len, packed)]):,.0f} bytes a "
        f"document, {(after - before) / len(lines):,.0f} on disk"
    )
    compare(client, keeping, Searcher(client, replace(keeping.index, tokens=None)), model, corpus.questions(QUESTIONS))


def keep(client, index, model, lines):
    """Give every document its tokens: how many each has, some of them packed, and the seconds that it took."""
    tokens = TokenVectors(encoder=model.id, revision=model.revision, dimension=model.dimension)
    client.indices.put_mapping(index=index, body={"properties": {TOKENS_FIELD: tokens.mapping}})
    counts, packed, began = [], [], perf_counter()
    for start in range(0, len(lines), BLOCK):
        documents = [orjson.loads(line) for line in lines[start : start + BLOCK]]
        vectors = model.encode_documents([one["text"] for one in documents])
        packed = [pack(rows) for rows in vectors]
        body = []
        for one, kept in zip(documents, packed, strict=True):
            body += [{"update": {"_id": one["_id"]}}, {"doc": {TOKENS_FIELD: kept}}]
        assert not client.bulk(index=index, body=body)["errors"]
        counts += map(len, vectors)
    metadata.change(client, index, {TOKENS: msgspec.to_builtins(tokens)})
    return counts, packed, perf_counter() - began


def compare(client, keeping, encoding, model, questions):
    reranked = SearchSettings("dense", rerank=model.id, rerank_depth=CANDIDATES, rerank_per_language=0)
    ways = {
        "dense": (keeping, SearchSettings("dense")),
        "dense, kept vectors": (keeping, reranked),
        "dense, on the fly": (encoding, reranked),
    }
    times = {way: np.empty((ROUNDS, len(questions))) for way in ways}
    for number in range(-1, ROUNDS):
        for place, question in enumerate(questions):
            first, found = (place + number) % len(ways), {}
            for way in [*ways][first:] + [*ways][:first]:
                searcher, setting = ways[way]
                began = perf_counter()
                plan = searcher.plan(question, setting, size=CANDIDATES, source=False)
                found[way] = execute(client, searcher.index.index, plan)
                if number >= 0:
                    times[way][number, place] = (perf_counter() - began) * 1000
            assert {hit.id for hit in found["dense"].hits} == {hit.id for hit in found["dense, kept vectors"].hits}
    plain = np.median(times["dense"], axis=0)
    print(f"{len(questions)} questions, {CANDIDATES} candidates, model {model.id}")
    for way, took in times.items():
        ours = np.median(took, axis=0)
        print(f"{way:22}{quartiles(ours, '.1f'):>26} ms, {quartiles(ours - plain, '.1f')} more than dense")
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


def stored(client, index):
    """The bytes of an index on disk."""
    client.indices.forcemerge(index=index, params={"max_num_segments": 1, "timeout": 600})
    client.indices.refresh(index=index)
    return client.indices.stats(index=index)["_all"]["primaries"]["store"]["size_in_bytes"]

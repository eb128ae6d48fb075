"""Weights of tokens beside vectors: what mode sparse and a third leg of hybrid take, and what weights take up.

20,000 made-up documents of 256 tokens each, out of a vocabulary of 16,384 of which some are in many texts, as the
sparse head of e5-small makes them; queries of 64. Every query is asked in all ways in turn, several times.
"""

import os
from time import perf_counter

import numpy as np
import orjson
import pytest
from given_data import run
from large_corpus import LargeCorpus

from langshift.retrieval.plans import execute
from langshift.retrieval.request import SearchSettings

from .bench_search import opened, quartiles

QUESTIONS, ROUNDS, SIZE = 160, 3, 20
VOCABULARY, TOKENS, ASKED = 16_384, 256, 64
WAYS = {
    "dense": SearchSettings("dense"),
    "lexical": SearchSettings("lexical"),
    "sparse": SearchSettings("sparse"),
    "hybrid": SearchSettings("hybrid"),
    "dense and sparse": SearchSettings("hybrid", lexical_weight=0.0, sparse_weight=0.5),
    "three legs": SearchSettings("hybrid", lexical_weight=0.1, sparse_weight=0.5),
}


def drawn(numbers, count):
    """Weights of as many tokens; how common one is falls with its number, as words do."""
    tokens = np.unique((VOCABULARY * numbers.power(0.4, size=2 * count)).astype(int))[:count]
    return dict(zip(map(str, tokens.tolist()), numbers.gamma(2, 0.3, len(tokens)).round(4).tolist(), strict=True))


@pytest.mark.usefixtures("cluster_env")
def test_searches_by_weights_of_tokens(client, index_name, tmp_path):
    corpus, numbers, file = LargeCorpus(), np.random.default_rng(7), tmp_path / "corpus.jsonl"
    corpus.write(file)
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    for name, more in ((f"{index_name}-plain", ()), (index_name, ("--sparse", "given"))):
        if more:
            lines = [line | {"sparse_embedding": drawn(numbers, TOKENS)} for line in lines]
            file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        began = perf_counter()
        done = run("ingest", file, "--index", name, "--encoder", "given", "--alpha", 0, *more)
        assert done.exit_code == 0, (done.output, done.exception)
        seconds, searcher = perf_counter() - began, opened(client, name)
        stored = client.indices.stats(index=searcher.index.index, metric="store")["_all"]["primaries"]["store"]
        size = stored["size_in_bytes"] / len(lines)
        print(f"\n{'with' if more else 'without'} weights: loaded in {seconds:.0f} s, {size:,.0f} bytes a document")
    questions = [one._replace(weights=drawn(numbers, ASKED)) for one in corpus.questions(QUESTIONS)]
    times = {way: np.empty((ROUNDS, QUESTIONS)) for way in WAYS}
    for number in range(-1, ROUNDS):
        for place, question in enumerate(questions):
            first = (place + number) % len(WAYS)
            for way in [*WAYS][first:] + [*WAYS][:first]:
                began = perf_counter()
                plan = searcher.plan(question, WAYS[way], size=SIZE, source=False)
                found = execute(client, searcher.index.index, plan)
                if number >= 0:
                    times[way][number, place] = 1000 * (perf_counter() - began)
                assert len(found.hits) == SIZE
    plain = np.median(times["dense"], axis=0)
    print(f"\n{len(lines):,} documents of {TOKENS} tokens, {QUESTIONS} queries of {ASKED}, {SIZE} hits")
    for way, took in times.items():
        ours = np.median(took, axis=0)
        print(f"{way:18}{quartiles(ours, '.2f'):>26} ms {quartiles(ours / plain, '.2f'):>22} times dense")
    print(f"load of the machine {os.getloadavg()[0]:.1f}")

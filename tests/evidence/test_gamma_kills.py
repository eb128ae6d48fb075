"""A gamma and a β for 100,000 documents and back, killed on both ways: vectors come back to 1e-6 of their norm."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from command_line import langshift
from retuned_index import Process, note, require_tidy
from shifted_index import language_vectors, saved, shortened, with_directions

DOCUMENTS, DIMENSION, RANK = 100_000, 384, 16
LANGUAGES = ("en", "de", "th", "zh-TW", "vi")
AT_ONCE, LONGEST = 2000, 3600


def raw(numbers):
    """Vectors of norms 1 to 50, shape (AT_ONCE, DIMENSION), float32."""
    made = numbers.standard_normal((AT_ONCE, DIMENSION))
    norms = np.geomspace(1, 50, AT_ONCE)[:, None]
    return (norms * made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def stored(client, index):
    """All vectors in the order of their ids, shape (DOCUMENTS, DIMENSION), float32, and the gammas of the stamps."""
    found, gammas, after = np.zeros((DOCUMENTS, DIMENSION), np.float32), set(), None
    while True:
        body = {"size": AT_ONCE, "sort": ["_doc"], "_source": ["embedding", "shift.gamma"]}
        hits = client.search(index=index, body=body | ({"search_after": after} if after else {}))["hits"]["hits"]
        if not hits:
            return found, gammas
        found[[int(hit["_id"]) for hit in hits]] = [hit["_source"]["embedding"] for hit in hits]
        gammas |= {hit["_source"].get("shift", {}).get("gamma", 0.0) for hit in hits}
        after = hits[-1]["sort"]


@pytest.mark.usefixtures("cluster_env")
def test_there_and_back_killed_on_both_ways(client, cluster_url, index_name, tmp_path):
    numbers = np.random.default_rng(3)
    known = shortened(with_directions(language_vectors(dimension=DIMENSION), RANK))
    own = numbers.standard_normal((4, DIMENSION)).astype(np.float32) / 2
    own_vectors = dict(zip(("de", "en", "th", "zh"), own, strict=True))
    known = replace(known, own_vectors=own_vectors, scatter=[0.5, *(0.001 for _ in range(RANK))])
    vectors, corpus = np.zeros((DOCUMENTS, DIMENSION), np.float32), tmp_path / "corpus.jsonl"
    with corpus.open("w", encoding="utf-8") as file:
        for first in range(0, DOCUMENTS, AT_ONCE):
            vectors[first : first + AT_ONCE] = raw(numbers)
            for place in range(first, first + AT_ONCE):
                row = {"_id": str(place), "text": "x", "language": LANGUAGES[place % len(LANGUAGES)]}
                file.write(json.dumps(row | {"embedding": vectors[place].tolist()}) + "\n")
    options = ("--encoder", "given", "--vectors", saved(tmp_path, known), "--alpha", 1, "--gamma", 0)
    done = langshift("ingest", corpus, "--index", index_name, *options, url=cluster_url)
    assert done.returncode == 0, done.stderr
    before, gammas = stored(client, index_name)
    assert gammas == {0.0}
    for gamma, own in ((0.97, 0.05), (0.0, 0.0)):
        command = ("retune", index_name, "--gamma", gamma, "--own", own)
        killed = Process(cluster_url, tmp_path / "home", *command)
        deadline = time.monotonic() + LONGEST
        while note(client, index_name) is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2)
        assert killed.kill()
        told = Process(cluster_url, tmp_path / "home", *command).done(LONGEST)
        assert (told["gamma"], told["own"]) == (gamma, own)
        after, gammas = stored(client, index_name)
        assert gammas == {gamma}
    require_tidy(client, index_name)
    far = np.abs(after.astype(np.float64) - before).max(axis=1) / np.linalg.norm(vectors, axis=1)
    print(f"\n{DOCUMENTS:,} documents of {DIMENSION} dimensions: back within {far.max():.1e} of a vector's norm")
    assert far.max() <= 1e-6

"""The query ``langshift`` of the plugin finds what langshift's own searches find, and refuses what they refuse."""

import random
import uuid
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from native_plugin import has_plugin, hits_of, metadata_of
from opensearchpy.exceptions import RequestError
from plain_index import PLAIN
from searched_index import DIMENSION, LANGUAGES, TRUST, ChunkCorpus, Corpus, asked, found

from langshift.plugin.metadata import USUAL
from langshift.retrieval.settings import SearchSettings

TOY = replace(PLAIN, dimension=DIMENSION)
#: Orthonormal rows, of which documents would hold a part only.
DIRECTIONS = np.linalg.qr(np.random.default_rng(7).standard_normal((DIMENSION, 2)))[0].T.astype(np.float32)
CALIBRATION = {
    "spread": TRUST.spread,
    "strength": TRUST.strength,
    "mode": "anchored",
    "lexical_weight": None,
    "rerank": {},
}
SETTINGS = [
    SearchSettings(mode, preference=beta, one_per_group=grouped)
    for mode in ("dense", "balanced", "anchored")
    for beta in (0.0, 0.1, -0.3)
    for grouped in (False, True)
]


def told(setting):
    return f"{setting.mode}{setting.preference:+g}{'-grouped' if setting.one_per_group else ''}"


@pytest.fixture(scope="module", autouse=True)
def _plugin(client):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")


def written(client, corpus, shards, **more):
    """An index of a corpus of which every ninth entry was deleted, as it is searched."""
    name = f"langshift-test-native-{uuid.uuid4().hex[:8]}"
    target = corpus.write(client, name, shards)
    gone = list(corpus.vectors)[4::9]
    client.bulk(index=name, body=[{"delete": {"_id": one}} for one in gone], refresh=True)
    directions = more.get("directions")
    client.indices.put_mapping(index=name, body={"_meta": metadata_of(TOY, corpus.fields, **more)})
    left = {one: tag for one, tag in corpus.languages.items() if one not in gone}
    counts = Counter(tag for tag in left.values() if tag)
    languages = tuple(sorted(counts, key=lambda tag: (-counts[tag], tag)))
    index = replace(target.index, counts=counts, languages=languages, documents=len(left))
    return replace(target, index=index, directions=directions)


@pytest.fixture(scope="module")
def targets(client):
    made = {
        (kind, shards): written(client, corpus, shards, **more)
        for kind, corpus, more in (
            ("documents", Corpus(), {"calibration": calibration(len(Corpus().vectors))}),
            ("gamma", Corpus(), {"calibration": calibration(1), "directions": DIRECTIONS}),
            ("chunks", ChunkCorpus(), {"calibration": calibration(1)}),
        )
        for shards in (1, 3)
    }
    yield made
    client.indices.delete(index=",".join(target.index.index for target in made.values()))


def calibration(documents):
    """That of an index with as many documents."""
    then = {"alpha": 0.0, "alphas": {}, "gamma": 0.0, "vectors": None, "documents": documents}
    return CALIBRATION | {"measured_with": then}


def asking(question, setting, filters=None, **more):
    """The query of a search."""
    query = {"mode": setting.mode, "vector": question.vector.tolist(), "text": question.words, "language": question.language}
    query["spread" if setting.preference < 0 else "prefer_language"] = abs(setting.preference)
    if filters:
        query["filter"] = {"bool": {"filter": [{"terms": {name: values}} for name, values in filters.items()]}}
    return {"langshift": query | {"one_per_group": setting.one_per_group} | more}


def native(client, target, question, setting, size=20, filters=None, **more):
    """What the plugin finds."""
    body = {"size": size, "query": asking(question, setting, filters), "_source": False, **more}
    return hits_of(client.search(index=target.index.index, body=body))


def require_same(hits, wanted):
    """The same documents in the same order; of equals the order may be another."""
    assert [score for _, score in hits] == pytest.approx([one.score for one in wanted], abs=1e-6)
    if [name for name, _ in hits] != [one.id for one in wanted]:
        by_score = Counter(round(one.score, 5) for one in wanted)
        apart = [(name, one.id) for (name, score), one in zip(hits, wanted, strict=True) if by_score[round(score, 5)] == 1]
        assert all(mine == theirs for mine, theirs in apart)


@pytest.mark.parametrize("setting", SETTINGS, ids=told)
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", ["documents", "gamma", "chunks"])
def test_it_finds_what_langshift_finds(client, targets, kind, shards, setting):
    target = targets[kind, shards]
    numbers = random.Random(f"{kind} {shards} {setting}")
    for seed, filters in enumerate([{}, {"year": ["2001"]}, {"language": ["de", "en"]}]):
        words = " ".join(numbers.sample(["sun", "moon", "tide", "comet", "twin", "bread", "rain"], 3))
        question = asked(seed, numbers.choice([*LANGUAGES, "und"]), words)
        size = numbers.choice([5, 20, 120])
        wanted = found(client, target, question, setting, size=size, filters=filters).hits
        require_same(native(client, target, question, setting, size, filters), wanted)

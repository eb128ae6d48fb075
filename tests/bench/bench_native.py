"""What the plugin's query takes beside a bare ``knn`` request, and its processor beside Painless and no pipeline.

Run with ``make bench-search``. 20,000 made-up documents with one shard and with three; every question is asked in all
ways in turn, several times, for the ids of ten hits, and so are the parts that the modes are made of; a ratio is of the
same question's times. Of bulk requests the processor time of the server is told. Machines differ and are shared: look
at the ratios, not at the times.
"""

import json
import os
from itertools import cycle
from time import perf_counter

import numpy as np
import orjson
import pytest
from given_data import run
from large_corpus import GROUPS, LANGUAGES, LargeCorpus
from native_agreement import query_of
from native_plugin import has_plugin, install_processor
from piped_index import make_index

from langshift.debias.fitting.directions import principal_directions
from langshift.debias.vectors import CommonStep
from langshift.evaluate.demo import FOLDER
from langshift.plugin import pipelines, versions
from langshift.plugin.metadata import USUAL
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.calibration.stored import measured_spread, store_calibration
from langshift.retrieval.dsl import matching
from langshift.retrieval.question import LEAST_CANDIDATES
from langshift.retrieval.request import SearchSettings

from .bench_bulk import spread
from .bench_search import quartiles

QUESTIONS, WARM_UP, ROUNDS = 120, 2, 5
PLAIN, IN_LANGUAGE, FEW, WORDS = "knn", "knn, in the language", "knn, of 5 %", "words"
# What the query's modes are put together of, each a request of its own.
PARTS = (PLAIN, IN_LANGUAGE, FEW, WORDS, "knn, collapsed")
WAYS = {
    "dense": SearchSettings("dense"),
    "dense, one per group": SearchSettings("dense", one_per_group=True),
    "dense, preference": SearchSettings("dense", prefer_language=0.02),
    "dense, spread": SearchSettings("dense", spread=0.02),
    "anchored": SearchSettings("anchored"),
    "anchored, one per group": SearchSettings("anchored", one_per_group=True),
    # What the server itself makes of hits, and what few documents pass.
    "dense, collapsed": SearchSettings("dense"),
    "anchored, collapsed": SearchSettings("anchored"),
    "dense, of 5 %": SearchSettings("dense"),
    "anchored, of 5 %": SearchSettings("anchored"),
}
GOALS = {"dense": (1.05, 1.05), "anchored": (1.6, 2.0)}
SELECTED = {"terms": {"group": [str(one) for one in np.random.default_rng(5).choice(GROUPS, GROUPS // 20, False)]}}
WRITTEN, AT_ONCE, REPETITIONS, DIMENSION = 2_000, 500, 5, 384


@pytest.fixture(autouse=True)
def _plugin(client):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The file of 20,000 documents, and questions."""
    made, path = LargeCorpus(), tmp_path_factory.mktemp("native") / "corpus.jsonl"
    made.write(path)
    return path, made.questions(QUESTIONS)


@pytest.fixture(params=["lucene", "faiss"])
def searched(request, monkeypatch):
    """The engine, and a client of a server that has it."""
    server = request.getfixturevalue("cluster_env" if request.param == "lucene" else "faiss_server")
    url = server if request.param == "lucene" else server.url
    monkeypatch.setenv("OPENSEARCH_URL", url)
    return request.param, request.getfixturevalue("client" if request.param == "lucene" else "faiss")


@pytest.mark.parametrize("shards", [1, 3])
def test_searching(searched, index_name, corpus, tmp_path, shards):
    (engine, client), (path, questions) = searched, corpus
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"settings": {"number_of_shards": shards}}))
    options = ("--encoder", "given", "--alpha", 0, "--engine", engine, "--template", template)
    done = run("ingest", path, "--index", index_name, *options)
    assert done.exit_code == 0, (done.output, done.exception)
    client.indices.forcemerge(index=index_name, params={"max_num_segments": 1, "timeout": 600})
    client.indices.refresh(index=index_name)
    index = versions.live(client, index_name)
    found = {"spread": measured_spread(client, index, None, 200), "strength": 0.5, "mode": "anchored"}
    store_calibration(client, index, found | {"lexical_weight": None, "rerank": {}})
    ways = [*PARTS, *WAYS]
    # As docs/clients.md has other clients ask.
    view = {"method_parameters": {"ef_search": 2 * LEAST_CANDIDATES}} if engine == "faiss" else {}
    bodies = [[body(way, question, index.languages, view) for way in ways] for question in questions]
    times = np.empty((ROUNDS, len(questions), len(ways)))
    before = os.getloadavg()[0]
    for number in range(-WARM_UP, ROUNDS):
        for place, asked in enumerate(bodies):
            # Who comes first goes round, so that none has always the same one before it.
            for way in np.roll(np.arange(len(ways)), -(place + number)):
                began = perf_counter()
                found = client.search(index=index.index, body=asked[way])
                if number >= 0:
                    times[number, place, way] = (perf_counter() - began) * 1000
                assert len(found["hits"]["hits"]) == 10
    print(
        f"\n{engine}, {index.documents:,} documents, {shards} shards, {len(questions)} questions, {ROUNDS} times; ",
        end="",
    )
    print(f"load of the machine {before:.1f} before and {os.getloadavg()[0]:.1f} after")
    middle = np.median(times, axis=0)
    for way, took in zip(ways, middle.T, strict=True):
        goal = GOALS.get(way, (None, None))[shards == 3]
        told = f"   goal {goal}" if goal else ""
        plain = middle[:, ways.index(FEW if way.endswith("%") else PLAIN)]
        print(f"{way:24}{quartiles(took, '.2f'):>26} ms{quartiles(took / plain, '.2f'):>24}{told}")
    client.indices.delete(index=index.index)


def body(way, question, languages, view):
    """The body of a search for ten ids."""
    neighbours = {"vector": question.vector.tolist(), "k": LEAST_CANDIDATES, **view}
    more = {"collapse": {"field": "group"}} if way.endswith("collapsed") else {}
    if way in (PLAIN, FEW, "knn, collapsed"):
        query = {"knn": {"embedding": neighbours | ({"filter": SELECTED} if way == FEW else {})}}
    elif way == IN_LANGUAGE:
        query = {"knn": {"embedding": neighbours | {"filter": {"term": {"language": question.language}}}}}
    elif way == WORDS:
        query = matching(question.words, question.language, [one for one in languages if one != question.language])
    else:
        query = query_of(question, WAYS[way], [SELECTED] if way.endswith("%") else ())
    # As the client would write it each time.
    return orjson.dumps({"size": 10, "query": query, "_source": False, **more})


def test_bulk(client, index_name, processor):
    """Documents with a vector, a text and a language; detecting, without the language."""
    numbers = np.random.default_rng(3)
    shift = made_shift(numbers)
    preferring = made_shift(numbers, own=0.03)
    made = list(documents(numbers))
    # Whose language is not told goes to that language's fields by the processor, too.
    bare = [{"text": next(iter(one["text"].values())), "embedding": one["embedding"]} for one in made]
    lines, unnamed = ([orjson.dumps(one, option=orjson.OPT_SERIALIZE_NUMPY) for one in all_] for all_ in (made, bare))
    ways = {
        "none": (None, shift, lines),
        "Painless": (pipelines.install, shift, lines),
        "Painless, own": (pipelines.install, preferring, lines),
        "processor": (install_processor, shift, lines),
        "processor, own": (install_processor, preferring, lines),
        "processor, detecting": (install_processor, shift, unnamed),
    }
    used = {way: [] for way in ways}
    for number in range(-1, REPETITIONS):
        for way, (install, moved, sent) in ways.items():
            index = make_index(client, f"{index_name}-{len(used[way])}-{number}", moved)
            if install is not None:
                install(client, index, moved, USUAL, None)
            before = processor()
            for start in range(0, WRITTEN, AT_ONCE):
                content = b"".join(b'{"index": {}}\n' + one + b"\n" for one in sent[start : start + AT_ONCE])
                assert not client.bulk(index=index, body=content)["errors"]
            client.indices.refresh(index=index)
            if number >= 0:
                used[way].append(processor() - before)
            client.indices.delete(index=index)
    print(
        f"\n{WRITTEN:,} documents of {DIMENSION} dimensions, {REPETITIONS} times in turn; processor time of the server"
    )
    for way, seconds in used.items():
        ratios = [mine / plain for mine, plain in zip(seconds, used["none"], strict=True)]
        print(f"{way:22}{spread(seconds, '.2f'):>24} s{spread(ratios, '.2f'):>24}")
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


def made_shift(numbers, own=0.0):
    """A shift of every language with a gamma, as vectors that are fitted recommend one."""
    vectors = {tag: row for tag, row in zip(LANGUAGES, rows(numbers, len(LANGUAGES)), strict=True) if tag != "en"}
    common = CommonStep(rows(numbers, 1)[0], principal_directions(rows(numbers, 8), 4))
    preferring = dict(zip(LANGUAGES, rows(numbers, len(LANGUAGES)) / 20, strict=True))
    scatter = [0.5, *(0.001 for _ in range(4))]
    return StoredShift("0123456789abcdef", "en", vectors, 0.75, {}, 0.95, common, own, preferring, scatter)


def rows(numbers, count):
    return numbers.standard_normal((count, DIMENSION), dtype=np.float32)


def documents(numbers):
    """Passages of the demo in all its languages, each with a vector of its own."""
    demo = [orjson.loads(line) for line in (FOLDER / "corpus.jsonl").read_bytes().splitlines()]
    for one, vector in zip(cycle(demo), rows(numbers, WRITTEN), strict=False):
        tag = one["_id"].rpartition("-")[2]
        yield {"text": {tag: one["text"]}, "language": tag, "group": one["_id"], "embedding": vector}

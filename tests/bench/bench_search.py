"""What a search takes in each mode, beside plain dense on the same index: the client's time and the server's.

Run with ``make bench-search``. XQuAD in eight languages where it is there (LANGSHIFT_DATA), else the demo's corpus;
the reranker ``features`` on the same texts by e5-small; 20,000 made-up documents; 200,000 chunks, beside the same
vectors as documents; 100,000 documents with filters and facets. Every query is asked in all modes in turn, several
times; a ratio is of the same query's times. Encoding is a part of it for the reranker alone. Machines differ and are
shared: look at the ratios, not at the times.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from time import perf_counter, process_time

import numpy as np
import orjson
import pytest
from given_data import run
from large_corpus import DIMENSION, LANGUAGES, LargeCorpus
from plain_index import PLAIN as PLAIN_FINGERPRINT
from search_request import preferring

from langshift.client import make_client
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import VectorSpec, identity
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.plugin.version_writer import open_for_writing, publish
from langshift.plugin.versions import live
from langshift.retrieval.calibration.stored import store_calibration
from langshift.retrieval.plans import Exchange, execute, recorded
from langshift.retrieval.question import SearchContext, SearchQuery, SearchRequest
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.search import search
from langshift.retrieval.searcher import Searcher
from langshift.settings import Settings

QUESTIONS, WARM_UP, ROUNDS = 160, 16, 3
SIZES = (20, 100)
BETA = 0.02
PLAIN = "dense"
STILL = "anchored, strength 0"
# Way -> setting, and whether the legs are put together by the client.
WAYS = {
    PLAIN: (SearchSettings("dense"), False),
    "dense, preference": (SearchSettings("dense", **preferring(BETA)), False),
    "dense, spread": (SearchSettings("dense", **preferring(-BETA)), False),
    "lexical": (SearchSettings("lexical"), False),
    "hybrid, plugin": (SearchSettings("hybrid"), False),
    "hybrid, client": (SearchSettings("hybrid"), True),
    "balanced": (SearchSettings("balanced"), False),
    "anchored": (SearchSettings("anchored"), False),
    STILL: (SearchSettings("anchored"), False),
    "one per group": (SearchSettings("dense", one_per_group=True), False),
}
GOALS = {"dense, preference": 1.2, "anchored": 2.5, STILL: 1.03}
CHUNKS, CHUNKS_OF_EACH = 200_000, 10
FILTERED, KEPT, CLIENTS = 100_000, (0.5, 0.05, 0.001), 4
CLOCKS = {"wall": "client's", "took": "server's"}


def test_xquad(client, index_name, dataset):
    making = build_pipeline(open_encoder("use-m"), open_detector(), None, 1.0)
    load(client, str(dataset.folder / "corpus.jsonl"), index_name, making)
    searcher = opened(client, index_name)
    questions = ReplayPlan.of([searcher], dataset, ReplayOptions()).targets[0].questions
    step = max(1, len(questions) // QUESTIONS)
    compare(client, searcher, questions[::step][:QUESTIONS])


@pytest.mark.usefixtures("cluster_env")
def test_larger(client, index_name, tmp_path):
    corpus = LargeCorpus()
    corpus.write(tmp_path / "corpus.jsonl")
    done = run("ingest", tmp_path / "corpus.jsonl", "--index", index_name, "--encoder", "given", "--alpha", 0)
    assert done.exit_code == 0, (done.output, done.exception)
    compare(client, opened(client, index_name), corpus.questions(QUESTIONS))


def test_reranking(client, index_name, dataset):
    """The reranker ``features`` at full strength and depth 50, beside the search without it; both encode the query."""
    load(
        client,
        str(dataset.folder / "corpus.jsonl"),
        index_name,
        build_pipeline(open_encoder("e5-small"), open_detector(), None, None),
    )
    index = opened(client, index_name).index
    store_calibration(client, index, of_no_strength(Searcher(client, index)) | {"rerank": {"dense": 1.0}})
    searcher = Searcher(client, index.name)
    words = list(dict.fromkeys(query.text for query in dataset.queries))
    words = words[:: max(1, len(words) // QUESTIONS)][:QUESTIONS]
    ways = {"dense": SearchSettings("dense"), "dense, features": SearchSettings("dense", rerank="features")}
    clocks = {"client's": perf_counter, "client's CPU": process_time}
    times = {clock: {way: np.empty((ROUNDS, len(words))) for way in ways} for clock in clocks}
    # A server that has only just started compiles what it runs for some thousand searches.
    for number in range(-ROUNDS, ROUNDS):
        for place, one in enumerate(words):
            for way in [*ways][:: 1 if (number + place) % 2 else -1]:
                began = [clock() for clock in clocks.values()]
                result = searcher.search(one, ways[way], size=10)
                took = [1000 * (clock() - start) for clock, start in zip(clocks.values(), began, strict=True)]
                assert len(result.hits) == 10
                if number >= 0:
                    for clock, milliseconds in zip(clocks, took, strict=True):
                        times[clock][way][number, place] = milliseconds
    print(f"\n{index.documents:,} documents, {len(words)} questions, encoded by e5-small each time, 10 hits")
    for clock, by_way in times.items():
        ours, plain = (np.median(by_way[way], axis=0) for way in ("dense, features", "dense"))
        print(
            f"{clock:14}{quartiles(plain, '.1f'):>24} ms dense {quartiles(ours, '.1f'):>24} ms with features, "
            f"{quartiles(ours - plain, '.1f'):>20} ms more, ratio {quartiles(ours / plain, '.2f')}"
        )
    print(f"load of the machine {os.getloadavg()[0]:.1f}; goals: client's ratio 1.5; client's CPU 5 ms more")


def test_documents_by_their_chunks(client, index_name):
    numbers = np.random.default_rng(0)
    sizes = numbers.integers(1, 2 * CHUNKS_OF_EACH, size=CHUNKS // CHUNKS_OF_EACH)
    parents = np.repeat(np.arange(len(sizes)), sizes)
    themes, documents = directions(numbers, 150), directions(numbers, len(sizes))
    vectors = 0.8 * themes[parents % 150] + 0.7 * documents[parents] + 0.7 * directions(numbers, len(parents))
    asked = vectors[numbers.integers(len(parents), size=QUESTIONS)] + 0.5 * directions(numbers, QUESTIONS)
    ways = {}
    for kind, fields in {"documents": USUAL, "chunks": FieldNames(parent="parent", chunking="paragraphs")}.items():
        name, fingerprint = f"{index_name}-{kind}", replace(PLAIN_FINGERPRINT, dimension=DIMENSION)
        target = open_for_writing(client, name, fingerprint, fields=fields)
        write_chunks(client, target.index, parents, vectors)
        publish(client, target)
        client.indices.forcemerge(index=name, params={"max_num_segments": 1, "timeout": 1800})
        client.indices.refresh(index=name)
        found = SearchContext(live(client, name))
        ways |= {f"{kind}, dense": (found, SearchSettings("dense"))}
        ways |= {
            f"{kind}, preference": (
                found,
                SearchSettings("dense", **preferring(BETA)),
            )
        }
    questions = [SearchQuery("any", LANGUAGES[n % 8], vector) for n, vector in enumerate(asked.astype("f4"))]
    print(
        f"\n{len(parents):,} chunks of {len(sizes):,} documents, {DIMENSION} dimensions, {QUESTIONS} questions, 10 hits"
    )
    times = {way: np.empty((ROUNDS, QUESTIONS)) for way in ways}
    steps = dict.fromkeys(ways, 0)
    for number in range(-1, ROUNDS):
        for place, question in enumerate(questions):
            first = (place + number) % len(ways)
            for way in [*ways][first:] + [*ways][:first]:
                context, setting = ways[way]
                requests, began = [], perf_counter()
                plan = search(SearchRequest(question, setting, context, 10))
                found = execute(client, context.index.index, recorded(plan, context.index.index, requests))
                if number >= 0:
                    times[way][number, place] = (perf_counter() - began) * 1000
                steps[way] += len(requests) > 1
                assert len({hit.document for hit in found.hits}) == 10
    for way, took in times.items():
        ours, plain = np.median(took, axis=0), np.median(times["documents, dense"], axis=0)
        deepened = steps[way] / (ROUNDS + 1) / QUESTIONS
        print(f"{way:24}{quartiles(ours, '.2f'):>26} ms {quartiles(ours / plain, '.2f'):>22}, deepened {deepened:.0%}")
    print(f"load of the machine {os.getloadavg()[0]:.1f}; goal: chunks, dense, p50 at most 1.5 times documents, dense")


def test_filters_and_facets(client, cluster_url, index_name):
    """Four clients at once over 100,000 documents; each query in all ways in turn."""
    numbers = np.random.default_rng(1)
    themes = directions(numbers, 150)
    places = np.arange(FILTERED)
    vectors = 0.8 * themes[places % 150] + directions(numbers, FILTERED)
    # Vectors that came with the documents: no encoder has to fit.
    spec = VectorSpec(DIMENSION, normalised=PLAIN_FINGERPRINT.normalised)
    given = identity(open_encoder("given", vector_spec=spec))
    target = open_for_writing(client, index_name, replace(PLAIN_FINGERPRINT, **given))
    fields = [
        {"language": LANGUAGES[place % 8], "number": number, "section": f"s{place % 40}", "embedding": vectors[place]}
        for place, number in zip(places.tolist(), numbers.permutation(FILTERED).tolist(), strict=True)
    ]
    write_all(client, target.index, ((str(place), one) for place, one in enumerate(fields)))
    publish(client, target)
    opened(client, index_name)
    asked = (vectors[numbers.integers(FILTERED, size=QUESTIONS)] + 0.5 * directions(numbers, QUESTIONS)).astype("f4")
    ways = {"without": {}}
    ways |= {f"keeps {share:.1%}": {"filters": {"number": {"lt": round(share * FILTERED)}}} for share in KEPT}
    ways |= {"facets": {"facets": ["language", "section"]}}
    times = {way: np.empty((ROUNDS, QUESTIONS)) for way in ways}

    def ask_all(which):
        searcher = Searcher(make_client(Settings.from_env(), cluster_url), index_name)
        for number in range(-1, ROUNDS):
            for place in range(which, QUESTIONS, CLIENTS):
                # What is compared is searching, not encoding.
                searcher.encode = lambda _, place=place: asked[place : place + 1]
                first = (place + number) % len(ways)
                for way in [*ways][first:] + [*ways][:first]:
                    began = perf_counter()
                    found = searcher.search("any", SearchSettings("dense"), language=LANGUAGES[place % 8], **ways[way])
                    if number >= 0:
                        times[way][number, place] = (perf_counter() - began) * 1000
                    assert len(found.hits) == 10

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(ask_all, range(CLIENTS)))
    print(
        f"\n{FILTERED:,} documents, {DIMENSION} dimensions, {QUESTIONS} questions, {CLIENTS} clients at once, 10 hits"
    )
    plain = np.median(times["without"], axis=0)
    for way, took in times.items():
        ours = np.median(took, axis=0)
        p50 = f"p50 {np.median(took):.2f} ms, {np.median(took) / np.median(times['without']):.2f} times without"
        print(f"{way:14}{quartiles(ours, '.2f'):>26} ms {quartiles(ours / plain, '.2f'):>22}, {p50}")
    print(f"load of the machine {os.getloadavg()[0]:.1f}; goals, p50: filters at most 1.5, facets 2.5 times without")


def directions(numbers, count):
    made = numbers.standard_normal((count, DIMENSION), dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def write_chunks(client, index, parents, vectors):
    ordinals = np.arange(len(parents)) - np.searchsorted(parents, parents)

    def entries():
        for place, (parent, ordinal) in enumerate(zip(parents.tolist(), ordinals.tolist(), strict=True)):
            chunk = {"ordinal": ordinal, "start": 100 * ordinal, "end": 100 * ordinal + 99, "count": 1}
            line = {"embedding": vectors[place], "language": LANGUAGES[place % 8], "parent": str(parent)}
            yield f"{parent}#{ordinal:04d}", line | {"chunk": chunk}

    write_all(client, index, entries())


def write_all(client, index, entries):
    """Write entries, given by id, as they are."""
    entries = iter(entries)
    while some := list(islice(entries, 1000)):
        lines = bytearray()
        for name, line in some:
            lines += orjson.dumps({"index": {"_id": name}}) + b"\n"
            lines += orjson.dumps(line, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
        assert not client.bulk(index=index, body=bytes(lines))["errors"]


def opened(client, name):
    """The index with one segment, as it is when nothing has been written to it for long."""
    client.indices.forcemerge(index=name, params={"max_num_segments": 1, "timeout": 600})
    client.indices.refresh(index=name)
    return Searcher(client, name)


def of_no_strength(searcher):
    """A calibration by which ``anchored`` finds what ``dense`` finds."""
    return {**searcher.trust.to_dict(), "strength": 0.0, "mode": "dense", "lexical_weight": None, "rerank": {}}


def compare(client, searcher, questions):
    index = searcher.index
    # The one that is open goes on as it was opened, in an index without a calibration.
    store_calibration(client, index, of_no_strength(searcher))
    searchers = dict.fromkeys(WAYS, searcher) | {STILL: Searcher(client, index.name)}
    print(f"\n{index.documents:,} documents of {index.fingerprint.dimension} dimensions, {len(questions)} questions")
    for size in SIZES:
        before = os.getloadavg()[0]
        found = measured(client, searchers, questions, size)
        print(f"\nsize {size}, load of the machine {before:.1f} before and {os.getloadavg()[0]:.1f} after")
        show(found)


def measured(client, searchers, questions, size):
    """Clock -> way -> each question's milliseconds: the median of the rounds by the client, the mean by the server."""
    times = {clock: {way: np.empty((ROUNDS, len(questions))) for way in WAYS} for clock in CLOCKS}
    ways = list(WAYS)
    for question in questions[:WARM_UP]:
        for way in ways:
            ask(client, searchers[way], question, way, size)
    for number in range(ROUNDS):
        for place, question in enumerate(questions):
            # Who comes first goes round, so that none has always the same one before it.
            first = (place + number) % len(ways)
            for way in ways[first:] + ways[:first]:
                wall, took = ask(client, searchers[way], question, way, size)
                times["wall"][way][number, place], times["took"][way][number, place] = wall, took
    # The server tells whole milliseconds, of which a median would be none the finer.
    return {
        "wall": {way: np.median(found, axis=0) for way, found in times["wall"].items()},
        "took": {way: np.mean(found, axis=0) for way, found in times["took"].items()},
    }


def ask(client, searcher, question, way, size):
    setting, by_client = WAYS[way]
    began = perf_counter()
    plan, exchange = searcher.plan(question, setting, size=size, source=False, legs=by_client), Exchange()
    execute(client, searcher.index.index, recorded(plan, searcher.index.index, exchange))
    return (perf_counter() - began) * 1000, exchange.took


def show(found):
    print(f"{'':20}" + "".join(f"{f'{whose} ms':>26}{'ratio to dense':>24}" for whose in CLOCKS.values()))
    for way in WAYS:
        cells = ""
        for clock in CLOCKS:
            ours, plain = found[clock][way], found[clock][PLAIN]
            # A search that takes no millisecond each time has no ratio.
            ratios = ours[plain > 0] / plain[plain > 0]
            cells += f"{quartiles(ours, '.2f'):>26}{quartiles(ratios, '.2f'):>24}"
        goal = f"   goal {GOALS[way]}" if way in GOALS else ""
        print(f"{way:20}{cells}{goal}")


def quartiles(figures, form):
    if not len(figures):
        return "-"
    low, middle, high = np.quantile(figures, [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"

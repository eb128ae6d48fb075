"""What a plain `knn` request finds in an index of a load without options: readers' answers, pages, and what it costs.

XQuAD with all translations of each passage, whose groups are known, and with one of each, without groups; captions of
pictures with one of each; the demo. Each is asked as any client asks, and beside the same index with ``--own 0``.
"""

import json
from functools import partial
from http.client import HTTPConnection
from statistics import fmean
from urllib.parse import urlsplit

import pytest
from command_line import langshift
from documents import DATA
from loses_nothing import require_nothing_lost
from searched import drop

from langshift.debias.encoders.e5_small import E5Small
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER
from langshift.evaluate.measures.standard import calculate

NAME, WITHOUT = "langshift-evidence-readers", "langshift-evidence-without"
LANGUAGES = ("--languages", "ar,de,en,es,ru,th,tr,zh", "--multilingual-queries")
# More than twenty pages in twelve languages.
K = 300


@pytest.fixture(scope="module")
def done(cluster_url, e5_small):  # noqa: ARG001 - which knows the texts
    """Runs a command that must succeed; gives what it prints."""

    def run(*arguments):
        finished = langshift(*arguments, url=cluster_url)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run


@pytest.fixture(scope="module")
def indices(client):
    """Removes both indices, now and at the end."""

    def remove():
        for name in (NAME, WITHOUT):
            drop(client, name)

    remove()
    yield remove
    remove()


def converted(done, folder, kept, *options):
    """XQuAD with so many translations of each passage."""
    done("dataset", "convert", "xquad", DATA / "xquad", folder, *LANGUAGES, "--keep", kept, *options)
    return folder


def without_groups(corpus):
    rows = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    kept = [{name: value for name, value in row.items() if name != "group"} for row in rows]
    made = corpus.with_name("ungrouped.jsonl")
    made.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    return made


def loaded(done, corpus, name, *options):
    said = json.loads(done("ingest", corpus, "--index", name, *options, "--json"))
    return said["own"], said.get("translations")


def asked(url, name, dataset, **more):
    """What plain requests bring: of each query the hits, as ids with their languages and scores."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname, parts.port)
    vectors = E5Small().encode_queries([query.text for query in dataset.queries])
    found = {}
    for query, vector in zip(dataset.queries, vectors, strict=True):
        body = {
            "size": 20,
            "_source": ["language"],
            "query": {"knn": {"embedding": {"vector": vector.tolist(), "k": K}}},
        }
        head = {"Content-Type": "application/json"}
        connection.request("POST", f"/{name}/_search", json.dumps({**body, **more}), head)
        hits = json.loads(connection.getresponse().read())["hits"]["hits"]
        found[query.id] = [(hit["_id"], hit["_source"]["language"], hit["_score"]) for hit in hits]
    connection.close()
    return found


def own_answers(dataset):
    """The queries that have an answer in their own language."""
    of = {name: document.language for name, document in dataset.documents.items()}
    return {
        query.id
        for query in dataset.queries
        if any(grade and of[name] == query.language for name, grade in dataset.qrels.get(query.id, {}).items())
    }


def own_at_3(dataset, found):
    spoken = {query.id: query.language for query in dataset.queries}
    return fmean(
        any(dataset.qrels[name].get(hit, 0) > 0 and tag == spoken[name] for hit, tag, _ in found[name][:3])
        for name in own_answers(dataset)
    )


def pages(dataset, found):
    """For how many the right page is first, and for how many it is shown in their own language, wherever it stands."""
    spoken = {query.id: query.language for query in dataset.queries}
    first, readers = [], []
    for name, hits in found.items():
        right = [tag for hit, tag, _ in hits if dataset.qrels[name].get(hit, 0) > 0]
        first.append(bool(hits) and dataset.qrels[name].get(hits[0][0], 0) > 0)
        if right:
            readers.append(right[0] == spoken[name])
    return fmean(first), fmean(readers)


def ndcg(dataset, found, queries):
    import ir_measures

    run = {name: {hit: score for hit, _, score in found[name]} for name in queries}
    return fmean(calculate(ir_measures.nDCG @ 20, {name: dataset.qrels[name] for name in queries}, run).values())


@pytest.mark.parametrize(
    ("which", "least"),
    [
        ("XQuAD", {"own@3": 0.94, "first": 0.88, "readers": 0.94}),
        ("demo", {"own@3": 0.4, "first": 0.385, "readers": 0.56}),
    ],
)
def test_readers_find_their_answer_where_pages_are_translated(done, indices, cluster_url, tmp_path, which, least):
    indices()
    folder = FOLDER if which == "demo" else converted(done, tmp_path / "xquad", 8)
    dataset = load_dataset(folder)
    own, translations = loaded(done, folder / "corpus.jsonl", NAME)
    each = 12 if which == "demo" else 8
    assert translations["per_page"] == pytest.approx(each, rel=0.01)
    search = partial(asked, cluster_url, NAME, dataset)
    third = own_at_3(dataset, search())
    first, readers = pages(dataset, search(collapse={"field": translations["field"]}))
    print(f"\n{which}: own {own:g}, own@3 {third:.3f}, page first {first:.3f}, in the reader's language {readers:.3f}")
    assert third >= least["own@3"]
    assert first >= least["first"]
    assert readers >= least["readers"]


@pytest.mark.parametrize("which", ["XQuAD", "captions"])
def test_others_lose_little_where_nothing_is_known(done, indices, cluster_url, tmp_path, which):
    indices()
    folder = DATA / "multi30k" / "one" if which == "captions" else converted(done, tmp_path / "xquad", 1)
    dataset = load_dataset(folder)
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes((folder / "corpus.jsonl").read_bytes())
    corpus = without_groups(corpus)
    own, translations = loaded(done, corpus, NAME)
    assert translations is None
    loaded(done, corpus, WITHOUT, "--own", "0", "--alpha", "1", "--gamma", ".97")
    others = {query.id for query in dataset.queries} - own_answers(dataset)
    before, after = (asked(cluster_url, name, dataset) for name in (WITHOUT, NAME))
    lost = ndcg(dataset, after, others) - ndcg(dataset, before, others)
    gained = [own_at_3(dataset, found) for found in (before, after)]
    print(f"\n{which}, one: own {own:g}, nDCG@20 of others {lost:+.4f}, own@3 {gained[0]:.3f} to {gained[1]:.3f}")
    assert lost >= -0.005


# What a search does with the index's β, and with the same from the search alone.
WAYS = {
    "anchored": "anchored",
    "features": "dense --rerank features",
    "preference": "dense --prefer-language .01",
    "balanced": "balanced",
    "one per group": "dense --one-per-group",
    "hybrid": "hybrid",
}


@pytest.mark.parametrize("kept", [8, 2, 1])
@pytest.mark.parametrize("chunk", ["off", "auto"])
def test_no_way_to_search_loses_by_the_index_instead_of_the_search(done, indices, tmp_path, kept, chunk):
    indices()
    own = {8: 0.029, 2: 0.006, 1: 0.002}[kept]
    split = converted(done, tmp_path / "xquad", kept, "--split-by-article") / "test"
    for name, weight in ((NAME, own), (WITHOUT, 0)):
        scales = ("--alpha", "1", "--gamma", ".97", "--own", weight)
        done("ingest", split / "corpus.jsonl", "--index", name, *scales, "--chunk", chunk)
    # Neither is calibrated: what one calibration finds and another does not is no matter of where the preference is.
    lost = []
    for way, setting in WAYS.items() if chunk == "off" else [("chunks", "dense")]:
        before = _with(setting, own)
        print(f"\n{kept} kept, {way}: {before} without, {setting} with own {own:g}")
        for name, asked_as, place in ((WITHOUT, before, "before"), (NAME, setting, "after")):
            done(
                "evaluate", "replay", split, "--index", name, "--setting", asked_as, "--output", tmp_path / way / place
            )
        try:
            require_nothing_lost(done, tmp_path / way / "before", tmp_path / way / "after")
        except AssertionError:
            # Of the others, people want to know, too.
            lost.append(way)
    assert not lost


def _with(setting, own):
    """The same with the preference from the search."""
    words = setting.split()
    if "--prefer-language" in words:
        place = words.index("--prefer-language") + 1
        words[place] = f"{float(words[place]) + own:g}"
        return " ".join(words)
    return f"{setting} --prefer-language {own:g}"

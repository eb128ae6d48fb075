"""Reranked searches on a real cluster: every mode, the order and the scores, what stands behind, and what fails."""

import json
import uuid
from dataclasses import replace

import numpy as np
import pytest
from anchored_corpus import corpus
from anchored_reference import rho, without
from given_data import run
from model_http import reply
from reranking_server import reranking_server
from search_request import preferring
from searched import drop, make_index
from searched_index import ChunkCorpus, Corpus, asked, found, scored
from shifted_index import printed

import langshift
from langshift.errors import LangshiftError, UsageError
from langshift.model_server import PATIENT
from langshift.plugin import metadata, versions
from langshift.retrieval.calibration.questions import draw_passages, make_questions
from langshift.retrieval.question import AnchorModel
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.rerank.features import FeatureReranker, read_model
from langshift.retrieval.rerank.rerankers import open_reranker
from langshift.retrieval.searcher import Searcher

CORPUS = Corpus()
MODEL = read_model()
FULL = {"dense": 1.0, "anchored": 1.0}
GROUPS = 22
MODES = ("dense", "lexical", "hybrid", "balanced", "anchored")


class Lengths:
    """A reranker for which a passage is worth its number of characters."""

    name = "lengths"

    def scores(self, _words, texts):
        return np.array([float(len(text)) for text in texts])


@pytest.fixture(scope="module")
def target(client):
    name = f"langshift-test-rerank-{uuid.uuid4().hex[:8]}"
    yield CORPUS.write(client, name, 1)
    client.indices.delete(index=name)


def reranked(client, target, question, setting=None, *, by=None, depth=50, each=5, **more):
    """What a search finds that is reranked by the lengths of texts, or by another reranker."""
    by = by or Lengths()
    name = "features" if isinstance(by, FeatureReranker) else "st:lengths"
    setting = (setting or SearchSettings("dense")).but(rerank=name, rerank_depth=depth, rerank_per_language=each)
    return found(client, target, question, setting, reranker=by, **more)


@pytest.mark.parametrize("mode", MODES)
def test_the_best_of_a_mode_in_the_order_of_the_reranker(client, target, mode):
    """Those of each language are candidates, too; what was none follows in the order of the mode."""
    question, setting = asked(), SearchSettings(mode)
    plain = found(client, target, question, setting, size=40, source=False)
    run = reranked(client, target, question, setting, depth=10, each=2, size=40)
    first = [hit.id for hit in plain.hits[:10]]
    cosines = CORPUS.cosines(question.vector)
    nearest = {
        name
        for tag in ("en", "de", "th")
        for name in sorted((n for n, t in CORPUS.languages.items() if t == tag), key=lambda n: -cosines[n])[:2]
    }
    pool = {*first, *nearest}
    assert {hit.id for hit in run.hits[: len(pool)]} == pool
    lengths = [len(CORPUS.texts[hit.id]) for hit in run.hits[: len(pool)]]
    assert lengths == sorted(lengths, reverse=True)
    assert [hit.score for hit in run.hits[: len(pool)]] == lengths
    behind = [hit.id for hit in plain.hits[10:] if hit.id not in pool]
    assert [hit.id for hit in run.hits[len(pool) :]] == behind[: 40 - len(pool)]
    scores = [hit.score for hit in run.hits]
    assert scores == sorted(scores, reverse=True)
    # The fields of hits came with them, and what each side said of them.
    assert all(hit.source["text"] for hit in run.hits)
    by_mode = {hit.id: (hit.score, rank) for rank, hit in enumerate(plain.hits, 1)}
    for hit in run.hits[: len(pool)]:
        assert hit.legs["rerank"].score == hit.score
        if hit.id in first:
            leg = hit.legs["retrieval"]
            assert (leg.score, leg.rank) == (pytest.approx(by_mode[hit.id][0], abs=1e-6), by_mode[hit.id][1])


@pytest.mark.parametrize("mode", MODES)
def test_documents_are_given_what_the_search_gave_them(client, target, mode):
    question, setting = asked(), SearchSettings(mode, rerank="st:lengths", rerank_depth=10)
    run = found(client, target, question, setting, size=60, reranker=Lengths())
    given = scored(client, target, question, setting, run.how, [*CORPUS.texts][:200])
    assert {hit.id: given[hit.id] for hit in run.hits if hit.id in given} == {
        hit.id: pytest.approx(hit.score, abs=1e-6) for hit in run.hits if hit.id in given
    }
    if mode == "balanced":
        # Of a language it leaves out what is nearer than much that it shows.
        return
    others = [score for name, score in given.items() if name not in {hit.id for hit in run.hits} and score is not None]
    assert max(others) <= min(hit.score for hit in run.hits) + 1e-6


def test_the_preference_comes_after_it_in_units_of_its_range(client, target):
    question = asked()
    plain = reranked(client, target, question, size=200)
    known = plain.how.reranked
    assert plain.how.bonus == 0
    for beta in (0.5, -0.25):
        run = reranked(
            client,
            target,
            question,
            SearchSettings("dense", **preferring(beta)),
            size=len(known),
        )
        bonus = beta * (max(known.values()) - min(known.values()))
        assert run.how.bonus == pytest.approx(bonus)
        assert run.how.reranked == {
            name: pytest.approx(score + abs(bonus) * ((CORPUS.languages[name] == "de") == (beta > 0)))
            for name, score in known.items()
        }


@pytest.mark.parametrize("count", [0, 5])
@pytest.mark.parametrize("mode", ["dense", "balanced", "anchored", "lexical"])
def test_features_are_what_the_equations_say(client, target, mode, count):
    """At strength 0 the order is that of the mode; at 1 it is that of features worked out from all documents."""
    question, rows = asked(words="comet sun"), np.random.default_rng(3).standard_normal((len(asked().vector), count))
    shift = without(np.linalg.qr(rows)[0].T) if count else None
    target = replace(target, shift=shift, trust=AnchorModel(0.1, 1.0))
    still = FeatureReranker(MODEL, 0.1, {"dense": 0.0, "anchored": 0.0})
    plain = found(client, target, question, SearchSettings(mode), size=20)
    kept = reranked(client, target, question, SearchSettings(mode), by=still, depth=20, each=0, size=20)
    assert [hit.id for hit in kept.hits] == [hit.id for hit in plain.hits]
    if mode == "lexical":
        return
    by = FeatureReranker(MODEL, 0.1, FULL)
    run = reranked(client, target, question, SearchSettings(mode), by=by, depth=20, each=0, size=20)
    names, scores = [hit.id for hit in plain.hits], np.array([hit.score for hit in plain.hits])
    outside = rho(question.vector / np.linalg.norm(question.vector), shift)
    searched = outside if plain.how.moved is None else rho(plain.how.moved, shift)
    unit = {name: v.astype(float) / np.linalg.norm(v) for name, v in CORPUS.vectors.items()}
    cosines = np.array([CORPUS.cosines(question.vector)[name] for name in names]) / outside
    best = {}
    for name, cosine in zip(names, cosines, strict=True):
        best.setdefault(CORPUS.languages[name] or "und", []).append(cosine)
    expected = {}
    trust = found_trust(client, target, question, names, cosines)
    towards = sum(p * unit[name] for p, name in zip(trust, names, strict=True))
    alike = np.array([unit[name] @ towards / np.linalg.norm(towards) for name in names])
    for name, cosine, like, score in zip(names, cosines, alike, scores, strict=True):
        group = best[CORPUS.languages[name] or "und"]
        columns = [
            2 * (score - scores.max()) / (searched * 0.1),
            (cosine - max(group)) / 0.1,
            -np.log1p(sum(one > cosine for one in group)),
            (like - alike.max()) / 0.1,
        ]
        expected[name] = float(np.dot(columns, list(MODEL.weights.values())))
    assert {hit.id: hit.score for hit in run.hits} == {
        name: pytest.approx(one, abs=1e-4) for name, one in expected.items()
    }


def found_trust(client, target, question, names, cosines):
    """The trust of candidates, from BM25 as the cluster gives it."""
    words = {
        "multi_match": {
            "query": question.words,
            "type": "most_fields",
            "fields": ["text.en", "text.de", "text.th", "text.und"],
        }
    }
    body = {"size": 500, "query": words, "_source": False}
    bm25 = {hit["_id"]: hit["_score"] for hit in client.search(index=target.index.index, body=body)["hits"]["hits"]}
    rare = np.log(1 + (target.index.counts["de"] + 0.5) / 0.5)
    utility = []
    for name, cosine in zip(names, cosines, strict=True):
        score = bm25.get(name, 0.0)
        own = CORPUS.languages[name] == "de"
        of_words = 32 * (score / rare) ** 2 / 2 - 0.5 if own else 1.43 * np.log1p(score)
        utility.append(of_words - 1.95 * (cosines.max() - cosine) / 0.1)
    odds = np.exp(np.array(utility) - max(utility))
    return odds / odds.sum()


def test_filters_hold_for_all_candidates(client, target):
    run = reranked(client, target, asked(), depth=5, each=3, size=30, filters={"year": ["2001"]})
    assert run.hits
    assert {CORPUS.years[hit.id] for hit in run.hits} == {2001}
    german = reranked(client, target, asked(), depth=5, each=3, size=30, filters={"language": ["de"]})
    assert {hit.language for hit in german.hits} == {"de"}
    # A language that no document is in.
    assert reranked(client, target, asked(), filters={"language": ["fr"]}).hits == ()


def test_a_group_is_reranked_by_the_document_that_is_shown(client, target):
    setting = SearchSettings("dense", one_per_group=True)
    plain = found(client, target, asked(), setting, size=8)
    run = reranked(client, target, asked(), setting, depth=8, size=8)
    assert {hit.id for hit in run.hits} == {hit.id for hit in plain.hits}
    lengths = [len(CORPUS.texts[hit.id]) for hit in run.hits]
    assert lengths == sorted(lengths, reverse=True)
    inside = {hit.id: {one.id for one in hit.others} for hit in plain.hits}
    assert {hit.id: {one.id for one in hit.others} for hit in run.hits} == inside
    assert all(one.source for hit in run.hits for one in hit.others)


def test_documents_are_reranked_by_their_best_chunks(client):
    name, chunks = f"langshift-test-rerank-{uuid.uuid4().hex[:8]}", ChunkCorpus()
    target = chunks.write(client, name, 1)
    try:
        plain = found(client, target, asked(), size=12)
        run = reranked(client, target, asked(), depth=12, each=0, size=12, passages=2)
        assert {(hit.document, hit.id) for hit in run.hits} == {(hit.document, hit.id) for hit in plain.hits}
        lengths = [len(chunks.texts[hit.id]) for hit in run.hits]
        assert lengths == sorted(lengths, reverse=True)
        assert any(hit.passages for hit in run.hits)
        each = reranked(client, target, asked(), by=FeatureReranker(MODEL, 0.1, FULL), depth=5, each=4, size=12)
        assert len({hit.document for hit in each.hits}) == len(each.hits) == 12
    finally:
        client.indices.delete(index=name)


def test_a_reranker_that_fails(client, target, monkeypatch):
    monkeypatch.setattr("langshift.retrieval.rerank.api.PATIENT", PATIENT.new(total=0))
    with reranking_server() as server:
        by, failing = open_reranker(server.name), [reply(500, {"error": "out of memory"})]
        server.faults = failing * 2
        with pytest.raises(LangshiftError, match=r"failed \(500: out of memory\): see its log\.$"):
            reranked(client, target, asked(), by=by)
        server.faults = failing * 2
        plain = found(client, target, asked(), size=10)
        kept = reranked(client, target, asked(), SearchSettings("dense", rerank_fallback="keep"), by=by, size=10)
        assert [(hit.id, hit.score) for hit in kept.hits] == [(hit.id, hit.score) for hit in plain.hits]
        said = f"The reranking server at {server.url} failed (500: out of memory): see its log."
        assert kept.notes == (f"The hits are not reranked: {said}",)
        assert all(hit.source for hit in kept.hits)


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = f"langshift-test-rerank-{uuid.uuid4().hex[:8]}"
    make_index(client, tmp_path_factory.mktemp("rerank") / "corpus.jsonl", name, lines=corpus(groups=GROUPS))
    yield name
    drop(client, name)


@pytest.fixture(autouse=True)
def _cluster(cluster_env):
    """Commands find it."""


QUERY = "how do bees find their way"


def test_commands_and_python_rerank_alike(client, name):
    """Also where the index is not calibrated, which is told, and by a server."""
    metadata.change(client, versions.live(client, name).index, {metadata.ANCHORS: None})
    told = printed(run("search", name, QUERY, "--mode", "dense", "--rerank", "features", "--json"))
    remark = (
        f"The reranker features is not calibrated for {name}, so it changes the order a little only: run "
        f"`langshift anchors calibrate {name}`."
    )
    assert remark in told["notes"]
    assert (told["rerank"], told["rerank_depth"]) == ("features", 50)
    with langshift.open_index(name) as index:
        result = index.search(QUERY, mode="dense", rerank="features")
        assert [(hit.id, hit.score) for hit in result.hits] == [(hit["id"], hit["score"]) for hit in told["hits"]]
        with reranking_server(tei=True) as server:
            by_server = index.search(QUERY, rerank=server.name, rerank_depth=20, rerank_per_language=0)
            said = server.asked[0]
            assert said["query"] == QUERY
            assert len(said["texts"]) == 20
            scores = {text: server.score(QUERY, text) for text in said["texts"]}
            assert [hit.score for hit in by_server.hits] == sorted(scores.values(), reverse=True)[:10]
            asked = run(
                "search", name, QUERY, "--rerank", server.name, "--rerank-depth", "20", "--rerank-per-language", "0"
            )
            assert by_server.hits[0].id in asked.stdout
    wrong = run("search", name, QUERY, "--rerank", "cohere")
    assert isinstance(wrong.exception, UsageError)
    assert str(wrong.exception) == (
        "Unknown reranker 'cohere'; choose features, features:FILE (trained by langshift rerank fit), st:NAME_OR_PATH "
        "(a cross-encoder or late-interaction model of sentence-transformers) or http:URL#MODEL (a reranking server)."
    )


async def _asked(name):
    async with await langshift.open_index_async(name) as index:
        return await index.search(QUERY, mode="dense", rerank="features")


def test_asynchronous_searches_rerank_alike(name):
    import asyncio

    with langshift.open_index(name) as index:
        expected = index.search(QUERY, mode="dense", rerank="features")
    assert [hit.id for hit in asyncio.run(_asked(name)).hits] == [hit.id for hit in expected.hits]


def test_where_no_translation_is_known_questions_are_asked_in_another_language(client, name, index_name, tmp_path):
    lines = [{key: value for key, value in one.items() if key != "group"} for one in corpus(groups=GROUPS)]
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=lines)
    for index, translated in ((name, True), (index_name, False)):
        searcher = Searcher(client, index)
        passages = draw_passages(searcher, 30, 1000, 0)
        elsewhere = [one for one in make_questions(searcher, passages, 0) if one.elsewhere]
        # Where translations are hidden, by each vector in all shares of words; else in one.
        assert len(elsewhere) == (270 if translated else 90)
        assert {bool(one.hides) for one in elsewhere} == {translated}
        assert {one.query.language == passages[one.document].language for one in elsewhere} == {translated}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A dataset of the corpus: questions in the words of titles, of which all translations are the answers."""
    folder = tmp_path_factory.mktemp("judged") / "small"
    (folder / "qrels").mkdir(parents=True)
    documents = corpus(groups=GROUPS)
    members = {}
    for one in documents:
        members.setdefault(one["group"], []).append(one["_id"])
    queries = [
        {"_id": f"q-{one['_id']}", "text": one["title"], "language": one["language"], "group": one["group"]}
        for one in documents
        if one["language"] != "zh"
    ]
    rows = [f"{query['_id']}\t{member}\t1" for query in queries for member in members[query["group"]]]
    for file, lines in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(rows) + "\n")
    return folder


def test_replays_compare_reranked_settings(judged, name, tmp_path):
    measures = ["--measures", "nDCG@20 TLR@20 LPR"]
    rows = [*measures, "--setting", "dense", "--setting", "dense --rerank features", "--output", tmp_path / "out"]
    told = printed(run("evaluate", "replay", judged, "--index", name, *rows, "--json"))
    assert [one["setting"]["rerank"] for one in told["runs"].values()] == [None, None, "features"]
    folder = tmp_path / "out" / "dense-rerank-features"
    figures = json.loads((folder / "result.json").read_bytes())["measures"]
    run(
        "evaluate",
        "replay",
        judged,
        "--index",
        name,
        "--setting",
        "dense --rerank features",
        "--output",
        tmp_path / "again",
        *measures,
    )
    again = json.loads((tmp_path / "again" / "result.json").read_bytes())
    assert again["setting"]["rerank"] == "features"
    assert again["measures"] == pytest.approx(figures, abs=1e-9)
    # LPR needs the scores of whole groups, of documents that were no candidates, too.
    assert again["measures"]["LPR"] is not None


def test_fitting_a_model(judged, name, tmp_path):
    """It is fitted on candidates of the live index, shown on articles that were not learnt from, and searched with."""
    path = tmp_path / "own.json"
    done = run("rerank", "fit", judged, "--index", name, "--output", path, "--json")
    told = printed(done)
    assert json.loads(path.read_bytes()) == told["model"]
    assert set(told["model"]["weights"]) == {"near", "of_language", "first", "trusted"}
    assert min(told["model"]["weights"].values()) >= 0
    assert {(one["translations"], one["strength"]) for one in told["slices"]} == {
        (kept, strength) for kept in (None, 2, 1) for strength in (1.0, 0.3, 0.1, 0.03)
    }
    assert not any(one["lost"] for one in told["slices"] if one["strength"] == 0.1)
    again = tmp_path / "again.json"
    shown = run("rerank", "fit", judged, "--index", name, "--output", again)
    assert again.read_bytes() == path.read_bytes()
    assert "Strength 0.3, on articles that were not learnt from" in shown.stdout
    found = printed(run("search", name, QUERY, "--mode", "dense", "--rerank", f"features:{path}", "--json"))
    assert len(found["hits"]) == 10

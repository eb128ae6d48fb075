"""XQuAD in eight languages, searched exactly in NumPy and scored as any other run, against measured figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
import pytrec_eval
from command_line import langshift

from langshift.debias.encoders import open_encoder
from langshift.evaluate.convert.pool import PoolOptions, build
from langshift.evaluate.runs import format_run
from langshift_lab.convert.squad import read_xquad

LANGUAGES = ["ar", "de", "en", "es", "ru", "th", "tr", "zh"]
MEASURES = "nDCG@20 R@20 TLR@20 SLR@20 LPR Lang_nDCG@20 TR@20 Share@20 PEER RR"


@pytest.fixture(scope="module")
def searched(tmp_path_factory, encoded_xquad):
    """The folder of dataset and run, passages, questions, the scores of all passages, and the rankings."""
    folder = tmp_path_factory.mktemp("xquad")
    build(folder / "data", lambda: read_xquad(encoded_xquad, LANGUAGES), PoolOptions())
    corpus = [json.loads(line) for line in (folder / "data" / "corpus.jsonl").read_text().splitlines()]
    queries = [json.loads(line) for line in (folder / "data" / "queries.jsonl").read_text().splitlines()]
    encoder = open_encoder("use-m")
    documents = encoder.encode_documents([record["text"] for record in corpus]).astype(np.float64)
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    scores = encoder.encode_queries([record["text"] for record in queries]).astype(np.float64) @ documents.T
    names = [record["_id"] for record in corpus]
    out = folder / "out"
    out.mkdir()
    best = np.argsort(-scores, axis=1)[:, :100]
    rankings = {
        query["_id"]: [(names[i], float(row[i])) for i in order]
        for query, row, order in zip(queries, scores, best, strict=True)
    }
    (out / "run.trec").write_text(format_run(rankings, "exact"))
    with (out / "group-scores.jsonl").open("w") as file:
        for query, row in zip(queries, scores, strict=True):
            group = {
                record["_id"]: float(row[i]) for i, record in enumerate(corpus) if record["group"] == query["group"]
            }
            file.write(json.dumps({"query": query["_id"], "scores": group}) + "\n")
    return folder, corpus, queries, scores, rankings


@pytest.fixture(scope="module")
def document(searched):
    folder = searched[0]
    done = langshift(
        *("evaluate", "compare", folder / "out" / "run.trec", "--dataset", folder / "data"),
        *("--measures", MEASURES, "--json"),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def figures(document):
    """Measure -> what is said of it; a measure of several sections is that over all relevant documents."""
    return {name: one for section in reversed(document["sections"].values()) for name, one in section.items()}


@pytest.fixture(scope="module")
def means(figures):
    return {name: one["means"]["a"] for name, one in figures.items()}


def test_the_figures_are_those_that_were_measured(document, figures, means):
    measured = {"nDCG@20": 0.7802, "TLR@20": 0.8132, "LPR": 0.472}
    for name, figure in measured.items():
        assert means[name] == pytest.approx(figure, abs=0.002)
        assert figures[name]["queries"]["a"] == 1190
    # One passage a language: PEER says nothing, and says so.
    assert means["PEER"] is None
    assert figures["PEER"]["queries"]["a"] == 0
    assert document["warnings"][0].startswith("a (out), PEER: undefined, because no query has two ")


def test_standard_figures_are_those_of_pytrec_eval(searched, means):
    rankings, queries = searched[4], searched[2]
    qrels = {query["_id"]: {f"{query['group']}-{tag}": 1 for tag in LANGUAGES} for query in queries}
    theirs = {"nDCG@20": "ndcg_cut_20", "R@20": "recall_20", "RR": "recip_rank"}
    run = {query: dict(hits) for query, hits in rankings.items()}
    found = pytrec_eval.RelevanceEvaluator(qrels, set(theirs.values())).evaluate(run)
    for ours, name in theirs.items():
        mean = float(np.mean([figures[name] for figures in found.values()]))
        assert means[ours] == pytest.approx(mean, abs=1e-9)


def test_the_others_are_those_of_formulas_in_numpy(searched, figures, means):
    _, corpus, queries, scores, _ = searched
    tags = np.array([record["language"] for record in corpus])
    groups = np.array([record["group"] for record in corpus])
    discount = 1 / np.log2(np.arange(2, 22))
    ideal = np.array([3.0] + [1.0] * 7) @ discount[:8]
    lang_ndcg, preferred, recalls, shares = [], [], [], []
    for query, row in zip(queries, scores, strict=True):
        order = np.argsort(-row)[:20]
        right, own = groups[order] == query["group"], tags[order] == "en"
        lang_ndcg.append((right * np.where(own, 3.0, 1.0)) @ discount / ideal)
        group = np.flatnonzero(groups == query["group"])
        preferred.append(tags[group[np.argmax(row[group])]] == "en")
        recalls.append([(right & (tags[order] == tag)).sum() for tag in LANGUAGES])
        shares.append([(tags[order] == tag).mean() for tag in LANGUAGES])
    assert means["Lang_nDCG@20"] == pytest.approx(np.mean(lang_ndcg), abs=1e-9)
    assert means["LPR"] == pytest.approx(np.mean(preferred), abs=1e-9)
    recall, share = (np.mean(rows, axis=0) for rows in (recalls, shares))
    for name, expected in (("TR@20", recall), ("Share@20", share)):
        cells = figures[name]["tables"]["a"]["cells"]
        assert list(cells) == ["en"]
        assert [cells["en"][tag]["mean"] for tag in LANGUAGES] == pytest.approx(expected.tolist(), abs=1e-9)
    english = LANGUAGES.index("en")
    assert means["SLR@20"] == pytest.approx(recall[english], abs=1e-9)
    assert means["TLR@20"] == pytest.approx(np.delete(recall, english).mean(), abs=1e-9)
    assert means["R@20"] == means["TR@20"] == pytest.approx(recall.mean(), abs=1e-9)

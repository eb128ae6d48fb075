"""Training ``features`` on XQuAD's even articles once more: the figures that ship, and what makes a reranker unfair."""

import json

import numpy as np
import pytest
from documents import DATA
from searched import drop

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material
from langshift.evaluate.rerank.feature_training import QUESTIONS, fit_weights
from langshift.evaluate.rerank.pools import collect_pools, drawn_queries, first, judged_positive, labelled_lists
from langshift.retrieval.rerank.features import features, read_model
from langshift.retrieval.searcher import Searcher

NAMES = {"use-m": "langshift-evidence-use-m", "e5-small": "langshift-evidence-e5-small"}

pytestmark = pytest.mark.skipif(
    not (DATA / "xquad").is_dir(), reason=f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place"
)


@pytest.fixture(scope="module")
def even(client, done, tmp_path_factory):
    """XQuAD's even articles in eight languages, in an index of each encoder."""
    folder = tmp_path_factory.mktemp("rerank") / "xquad"
    languages = ["--languages", "ar,de,en,es,ru,th,tr,zh", "--multilingual-queries"]
    done("dataset", "convert", "xquad", DATA / "xquad", folder, *languages, "--split-by-article")
    for encoder, name in NAMES.items():
        drop(client, name)
        done("ingest", folder / "dev" / "corpus.jsonl", "--index", name, "--encoder", encoder)
    yield folder / "dev"
    for name in NAMES.values():
        drop(client, name)


def test_training_once_more_gives_what_ships(even, done, tmp_path):
    indices = [one for name in NAMES.values() for one in ("--index", name)]
    found = json.loads(done("rerank", "fit", even, *indices, "--output", tmp_path / "own.json", "--json"))
    shipped = read_model()
    print(found["model"])
    assert found["model"]["weights"] == pytest.approx(shipped.weights, abs=0.005)
    assert found["model"]["loss"] == pytest.approx(shipped.loss, abs=0.005)
    assert found["model"]["queries"] == pytest.approx(shipped.queries, abs=5)
    assert not [one for one in found["slices"] if one["strength"] == 0.1 and one["lost"]]


def test_full_pools_and_the_language_match_teach_a_favourite(even, client):
    """Judged by what stands first among candidates of even articles: the measures must see what was learnt."""
    dataset, searcher = load_dataset(even), Searcher(client, NAMES["use-m"])
    pools = collect_pools(searcher, dataset, drawn_queries(dataset, QUESTIONS))

    def matrix(pool):
        return np.column_stack([features(pool.numbers), pool.numbers.own])

    lists = labelled_lists(pools, dataset, judged_positive(dataset), (None,))
    weights, _ = fit_weights([(matrix(pool), which) for pool, which in lists], least=None)
    learnt = {pool.query: matrix(pool) @ weights for pool in pools}
    languages = {name: one.language for name, one in dataset.documents.items()}
    groups = {name: one.group for name, one in dataset.documents.items()}
    figures = {}
    for order in ("dense", "learnt"):
        scores = {pool.query: learnt[pool.query] if order == "learnt" else pool.numbers.cosines for pool in pools}
        whole = {pool.query: dict(zip(pool.documents, scores[pool.query].tolist(), strict=True)) for pool in pools}
        run = {
            pool.query: {name: whole[pool.query][name] for name in first(pool, scores[pool.query])} for pool in pools
        }
        target = {
            pool.query: {
                name: whole[pool.query][name] for name in dataset.relevant(pool.query) if name in whole[pool.query]
            }
            for pool in pools
        }
        material = Material(
            qrels={pool.query: dataset.qrels[pool.query] for pool in pools},
            run=run,
            queries={pool.query: pool.language for pool in pools},
            documents=languages,
            groups=groups,
            group_scores=target,
        )
        figures[order] = {name: one.mean for name, one in score(("nDCG@20", "LPR"), material).items()}
    print(
        dict(zip([*["near", "of_language", "first", "trusted", "own"]], weights.round(3).tolist(), strict=True)),
        figures,
    )
    assert figures["learnt"]["nDCG@20"] > figures["dense"]["nDCG@20"] + 0.1
    assert weights[-1] < 0
    assert figures["learnt"]["LPR"] < figures["dense"]["LPR"] - 0.15

"""Halves of the data, and sweeps whose best setting is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from encoded_data import encoded, vectors

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetDocument, DatasetQuery, clusters
from langshift.evaluate.offline.sweep import Sweeper, depth, halves, sweep
from langshift.evaluate.report.run_tables import bars

AROUND = [0.0, 0.5, 1.0]


def test_halves_share_no_article_and_are_as_large():
    of = {f"q{number}": f"article {number % 11}" for number in range(50)}
    found = halves(of, "article")
    assert found.units == (6, 5)
    assert sorted([*found.development, *found.test]) == sorted(of)
    one, other = ({of[query] for query in part} for part in (found.development, found.test))
    assert (len(one), len(other), one & other) == (6, 5, set())
    # Neither the order of the queries nor what else is there moves an article: hashes decide.
    again = halves(dict(reversed(of.items())), "article")
    assert sorted(again.development) == sorted(found.development)
    with pytest.raises(UsageError) as caught:
        halves(dict.fromkeys(of, "one"), "group")
    assert str(caught.value) == (
        "All queries belong to one group, so they cannot be split into two halves: "
        "use a dataset with at least two, or leave the group out of queries.jsonl."
    )


def test_what_queries_are_kept_together_by():
    documents = {
        "a-en": DatasetDocument("en", "a"),
        "a-de": DatasetDocument("de", "a"),
        "b-en": DatasetDocument("en", "b"),
        "c": DatasetDocument("en", None),
    }
    qrels = {"q1": {"a-en": 1, "a-de": 1, "b-en": 0}, "q2": {"b-en": 1}}

    def by(*queries, judged=qrels):
        return clusters(Dataset(Path("data"), documents, queries, judged))

    one, two = DatasetQuery("q1", "?", "en", "a", "Moon"), DatasetQuery("q2", "?", "en", None, "Sun")
    assert by(one, two) == ({"q1": "Moon", "q2": "Sun"}, "article")
    # Not every query has an article: groups, of the query or of all its answers.
    assert by(one, two._replace(article=None)) == ({"q1": "a", "q2": "b"}, "group")
    # q2 has answers of two groups, or one without any.
    several = {**qrels, "q2": {"b-en": 1, "a-en": 1}}
    for judged in (several, {"q2": {"c": 1}}, {}):
        assert by(one, two._replace(article=None), judged=judged) == ({"q1": "q1", "q2": "q2"}, "query")


def known_case():
    """Six questions; German passages stand at [1, 1], so alpha 1 moves them onto the questions at [1, 0].

    Thai ones stand right already: what moves them, harms.
    """
    documents, tags, groups, qrels, asked = [], [], [], {}, []
    for number in range(6):
        place = np.zeros((2, 14))
        place[:, number] = 1
        place[0, 6 + number % 2] = 1.2  # German, off by the vector
        documents += [*place, np.eye(14)[8 + number]]
        tags += ["de", "th", "en"]
        groups += [f"g{number}"] * 3
        qrels[f"q{number}"] = {f"d{3 * number}": 1, f"d{3 * number + 1}": 1}
        question = np.zeros(14)
        question[number], question[8:] = 1, 0.8
        asked.append(question)
    german = np.zeros(14)
    german[6:8] = 0.6
    thai = np.zeros(14)
    thai[8:] = -2.0
    return encoded(documents, asked, tags, ["en"] * 6, groups, qrels), vectors({"de": german, "th": -thai})


def test_each_language_gets_the_alpha_that_serves_it():
    data, known = known_case()
    steps = []
    names = ["nDCG@2", "LPR"]
    sweeper = Sweeper(data, known, names, steps.append)
    assert sweeper.shiftable() == ["de", "th"]
    parts = halves(*clusters(data.dataset))
    assert parts.units == (3, 3)
    found = sweep(sweeper, parts, "nDCG@2", AROUND, [0.0, 0.5])
    assert [point.alpha for point in found.alphas] == AROUND
    # Whatever is best for all alike, each curve holds the best point where its own setting is the same.
    for key, points in found.languages.items():
        assert [point.alphas.get(key, point.alpha) for point in points] == AROUND
        assert found.best in points
        figures = [point.mean("nDCG@2", parts.development) for point in points]
        own = found.own.alphas.get(key, found.best.alpha)
        assert figures[AROUND.index(own)] == max(figures)
        # A figure of the curve is that of a search with that setting alone.
        again = Sweeper(data, known, names).point(found.best.alpha, {key: 0.5})
        assert again.scores == points[1].scores
    assert found.own.alphas.get("th", found.best.alpha) == 0.0
    assert found.own.mean("nDCG@2", parts.test) >= found.best.mean("nDCG@2", parts.test)
    # Language preference: no query has a passage of its group in English among the relevant, but the third is.
    assert list(found.betas) == [0.0, 0.5]
    assert [point.alpha for point in found.betas[0.5]] == sorted({0.0, found.best.alpha, 1.0})
    for plain, preferred in zip(found.betas[0.0], found.betas[0.5], strict=True):
        assert preferred.beta == 0.5
        assert preferred.scores["LPR"].mean >= plain.scores["LPR"].mean
    assert found.betas[0.0][0] is found.alphas[0]


def test_gammas_are_tried_with_every_alpha():
    data, known = known_case()
    mean = np.full(14, 0.1, np.float32)
    known = replace(known, common={"documents": mean, "queries": mean}).with_rank(1)
    sweeper = Sweeper(data, known, ["nDCG@2"])
    parts = halves(*clusters(data.dataset))
    found = sweep(sweeper, parts, "nDCG@2", AROUND, [], [0.0, 0.97])
    assert [(point.alpha, point.gamma) for point in found.grid] == [
        (alpha, gamma) for alpha in AROUND for gamma in (0.0, 0.97)
    ]
    assert list(found.grid[::2]) == list(found.alphas)
    assert found.grid[-1].scores == sweeper.point(1.0, gamma=0.97).scores
    assert sweep(sweeper, parts, "nDCG@2", AROUND, []).grid == []


def test_among_equals_the_nearest_and_smaller_alpha_is_chosen():
    # Nothing can be gained: every alpha gives the same.
    data = encoded(np.eye(4), np.eye(4), ["en"] * 4, ["en"] * 4, None, {f"q{i}": {f"d{i}": 1} for i in range(4)})
    sweeper = Sweeper(data, vectors({"de": np.ones(4)}), ["nDCG@20"])
    found = sweep(sweeper, halves(*clusters(data.dataset)), "nDCG@20", AROUND, [])
    assert (found.best.alpha, found.own, found.languages, found.betas) == (0.0, found.best, {}, {})


def test_how_deep_the_measures_look():
    assert depth(["nDCG@20", "R@5"]) == 20
    assert depth(["nDCG@20", "AP"]) == 100
    assert depth(["R@250", "LPR"]) == 250


def test_bars():
    assert bars([0.2, 0.4, 0.25, None]) == ["█", "█" * 30, "█" * 8, ""]
    assert bars([0.5, 0.5]) == ["█" * 30, "█" * 30]
    assert bars([None]) == [""]

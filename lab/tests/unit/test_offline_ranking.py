"""Exact rankings against brute force and cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from encoded_data import encoded, vectors

from langshift.errors import LangshiftError
from langshift_lab.methods.debiaser import MethodDebiaser
from langshift_lab.offline import ranking
from langshift_lab.offline.encoding import DocumentLanguages
from langshift_lab.offline.ranking import debias_vectors, rank, top

TAGS = ("en", "de", "zh-TW", "th", "und")


AS_THEY_ARE = MethodDebiaser(None, method="none")


def random_case(seed):
    draw = np.random.default_rng(seed)
    count, asked = 60, 13
    documents, queries = draw.normal(size=(count, 6)), draw.normal(size=(asked, 6))
    # Some passages are there twice or three times, so that there are ties.
    documents[draw.integers(0, count, 30)] = documents[draw.integers(0, count, 30)]
    tags = draw.choice(TAGS, count).tolist()
    of = {tag: draw.normal(size=6) / 2 for tag in ("de", "zh-TW")}
    return encoded(documents, queries, tags, draw.choice(["en", "de", "zh"], asked).tolist()), vectors(of), draw


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("beta", [0.0, 0.07])
@pytest.mark.parametrize(("depth", "both_sides"), [(1, False), (20, True), (100, False)])
def test_against_brute_force_in_any_size_of_blocks(seed, beta, depth, both_sides, monkeypatch):
    data, known, draw = random_case(seed)
    alpha, alphas = float(draw.random()), {"de": 0.25}
    expected = {}
    for query, asked in zip(data.dataset.queries, np.float64(data.queries), strict=True):
        scored = []
        if both_sides and query.language == "de":  # there is a vector of zh-TW, and none of zh
            asked = asked - 0.25 * np.float64(known.vectors["de"])
        for name, document in zip(data.ids, np.float64(data.documents), strict=True):
            tag = data.languages.tags[name]
            if tag in known.vectors:
                document = document - alphas.get(tag, alpha) * np.float64(known.vectors[tag])
            cosine = asked @ document / np.linalg.norm(asked) / np.linalg.norm(document)
            scored.append((cosine + (beta if data.languages.documents[name] == query.language else 0.0), name))
        expected[query.id] = scored
    for scores_at_once, rows_at_once in ((1 << 20, 1 << 14), (70, 7), (1, 1)):
        monkeypatch.setattr(ranking, "_SCORES_AT_ONCE", scores_at_once)
        monkeypatch.setattr(ranking, "_ROWS_AT_ONCE", rows_at_once)
        done = []
        placed = debias_vectors(data, MethodDebiaser(known, alpha, alphas, shift_queries=both_sides))
        found = rank(data, placed, beta=beta, depth=depth, on_queries=done.append).rankings
        assert sum(done) == len(expected)
        for side in placed:
            assert np.linalg.norm(side, axis=1) == pytest.approx(np.ones(len(side)))
        for query, scored in expected.items():
            # Equal vectors are equal to the last digit, whatever block they fell into: the greater id comes first.
            order = sorted(scored, key=lambda hit: (round(hit[0], 6), hit[1]), reverse=True)[:depth]
            assert [name for name, _ in found[query]] == [name for _, name in order]
            assert [score for _, score in found[query]] == pytest.approx([score for score, _ in order], abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_top_among_many_ties(seed):
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, 4, draw.integers(1, 40)).astype(np.float32)
    for depth in (1, 3, 10, 50):
        expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:depth]
        assert top(scores, depth).tolist() == expected


def test_by_hand():
    # Documents at 0, 90 and 45 degrees; the German one is shifted from 45 degrees onto the x axis.
    data = encoded([[2, 0], [0, 3], [1, 1]], [[1, 0]], ["en", "en", "de"], ["de"])
    known = vectors({"de": [0, 1]})
    plain = rank(data, debias_vectors(data, MethodDebiaser(known, alpha=0.0))).rankings["q0"]
    assert [name for name, _ in plain] == ["d0", "d2", "d1"]
    assert [score for _, score in plain] == pytest.approx([1, 0.5**0.5, 0])
    shifted = rank(data, debias_vectors(data, MethodDebiaser(known))).rankings["q0"]
    assert shifted == [("d2", 1.0), ("d0", 1.0), ("d1", 0.0)]
    half = rank(data, debias_vectors(data, MethodDebiaser(known, alphas={"de": 0.5})), beta=0.25).rankings["q0"]
    assert dict(half) == pytest.approx({"d2": 2 / 5**0.5 + 0.25, "d0": 1, "d1": 0})
    # Without language vectors nothing moves, and only the direction of a vector counts.
    assert rank(data, debias_vectors(data, AS_THEY_ARE)).rankings["q0"] == plain


def test_both_sides_by_hand():
    # The German question stands where the German document does: shifted alike, both lie on the x axis.
    data = encoded([[1, 0], [1, 1]], [[1, 1], [0, 2]], ["en", "de"], ["de", "en"])
    known = vectors({"de": [0, 1]}, means={"en": [0, 0.5], "de": [0, 2]}, directions={"en": [[0, 1]], "de": [[1, 0]]})
    assert debias_vectors(data, MethodDebiaser(known)).queries == pytest.approx(np.array([[0.5, 0.5], [0, 1]]) ** 0.5)
    moved = debias_vectors(data, MethodDebiaser(known, shift_queries=True))
    assert moved.queries.tolist() == [[1, 0], [0, 1]]
    assert moved.documents.tolist() == [[1, 0], [1, 0]]
    # Centering and LIR move the pivot language, and queries, whatever is asked for.
    centred = debias_vectors(data, MethodDebiaser(known, method="centering"))
    assert centred.documents == pytest.approx(np.array([[2, -1], [1, -1]]) / np.sqrt([[5], [2]]))
    assert centred.queries == pytest.approx(np.array([[1, -1], [0, 1]]) / np.sqrt([[2], [1]]))
    # Languages told by somebody else move documents alone.
    told = DocumentLanguages(["de", "und"])
    assert debias_vectors(data, MethodDebiaser(known, shift_queries=True), told).documents == pytest.approx(
        np.array([[0.5, -0.5], [0.5, 0.5]]) * 2**0.5
    )
    soft = DocumentLanguages(["und", "und"], [{"de": 0.25}, {"de": 0.5, "fr": 0.5}])
    assert debias_vectors(data, MethodDebiaser(known), soft).documents == pytest.approx(
        np.array([[1, -0.25], [1, 0.5]]) / np.sqrt([[1.0625], [1.25]])
    )


def test_a_vector_of_which_nothing_is_left_is_named():
    data = encoded([[1, 0], [0, 2]], [[1, 0], [0, 1]], ["en", "de"], ["en", "de"])
    known = vectors({"de": [0, 1]}, directions={"en": [[0, 1]], "de": [[0, 1]]})
    with pytest.raises(LangshiftError) as caught:
        debias_vectors(data, MethodDebiaser(known, method="lir"))
    assert str(caught.value) == (
        "Document 'd1': nothing of its vector is left without the language, so it cannot be compared: "
        "remove it from the dataset, or choose another --method."
    )
    with pytest.raises(LangshiftError) as caught:
        debias_vectors(data, MethodDebiaser(known, shift_queries=True))
    assert str(caught.value).startswith("Query 'q1': nothing of its vector is left without the language")


def test_scores_of_the_whole_target_group():
    qrels = {"q0": {"d0": 1, "d3": 0}, "q1": {"d3": 2}, "q2": {"d1": 0}}
    data = encoded(
        [[1, 0], [0, 1], [1, 1], [3, 4]],
        [[1, 0]] * 3,
        ["en", "de", "th", "en"],
        ["en"] * 3,
        ["a", "b", "a", None],
        qrels,
    )
    groups = {query.id: data.dataset.target_group(query.id) for query in data.dataset.queries}
    assert groups == {"q0": ["d0", "d2"], "q1": ["d3"], "q2": []}
    found = rank(data, debias_vectors(data, AS_THEY_ARE), beta=0.125, depth=1)
    assert found.rankings["q0"] == [("d0", 1.125)]
    assert found.group_scores.keys() == {"q0", "q1"}
    assert found.group_scores["q0"] == pytest.approx({"d0": 1.125, "d2": 0.5**0.5})
    assert found.group_scores["q1"] == pytest.approx({"d3": 0.6 + 0.125})

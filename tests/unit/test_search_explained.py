"""What explaining prints of anchors, of a bonus, and of what cannot be known."""

from dataclasses import replace

import numpy as np
import pytest
from search_request import preferring

from langshift.commands import search
from langshift.debias.vectors import CommonStep
from langshift.plugin.metadata import USUAL
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.filters import NO_FILTER
from langshift.retrieval.hits import Anchor, Leg
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.result import Hit, SearchResult, ShiftEffect
from langshift.retrieval.shift_effects import effects, known_shift

LEGS = {"dense": Leg(0.75, 1), "lexical": Leg(3.5, 12)}


def result(hits, **given):
    usual = {
        "index": "news-v0001", "setting": SearchSettings("anchored", prefer_language=0.02), "language": "de",
        "mode_from": "asked", "mode_reason": "Mode anchored, as requested.",
        "bonus": 0.01, "anchors": (), "compared": 100, "notes": (),
        "took": 3.0, "requests": (),
    }  # fmt: skip
    return SearchResult(hits=tuple(hits), **(usual | given))


def hit(name, language, shift=None, legs=LEGS):
    return Hit(name, 0.5, language, "", "", None, legs, shift=shift)


def test_the_table_has_what_is_known_and_a_mark_for_what_is_not(capsys, monkeypatch):
    monkeypatch.setattr("langshift.output.out.width", 120)
    hits = [
        hit("[red]a", "de", ShiftEffect("de", 1.0, 0.97, 0.00972, 0.25, 0.5, 3, 1)),
        hit("b", "th", ShiftEffect("th", 0.5, 0.0, 0.0, None, 0.125, None, 2)),
        hit("c", "und", None, {"lexical": Leg(1.0, None)}),
    ]
    anchors = (Anchor("d", 0.875, 0.5, {"words": 0.25}), Anchor("e", 0.0625, 0.0, {"cosine": 2.0}))
    found = result(hits, anchors=anchors)
    search.show(found)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "",
        "rank  language       dense      lexical    bonus       similarity  by vector  _id     removed",
        "   1  de        0.7500 (1)  3.5000 (12)  +0.0100  0.2500 → 0.5000      3 → 1  [red]a  "
        "de 1, gamma 0.97, own 0.0097",
        "   2  th        0.7500 (1)  3.5000 (12)  +0.0000       ? → 0.1250      ? → 2  b       th 0.5",
        "   3  und                -       1.0000  +0.0000                -          -  c       -",
        "dense, lexical: the score from this leg of the search, and the rank in it, if there is one.",
        "similarity: the cosine of query and document, before → after the shift; by vector: the rank by it among 100 "
        "documents,",
        "the hits and the nearest after the shift.",
        "removed: how much of which language vector was subtracted from the document's vector; gamma: how much of "
        "what all",
        "queries have in common was taken out of it.",
        "own: how much of the preference vector of the document's language was added to it.",
        "Mode anchored, as requested.",
        "",
        "Anchors, which the query was moved towards:",
        "_id  trust  weight  words  cosine",
        "d    0.875   0.500   0.25       -",
        "e    0.062   0.000      -       2",
        "trust: how likely the document is to answer the query, judged by words (their BM25), by its cosine with the "
        "query's own",
        "vector, and by whether it is in the query's language; weight: how much of its vector was added to the "
        "query's.",
    ]  # fmt: skip
    told = found.to_dict()
    assert told["preference"] == 0.02
    shift = {
        "language": "de",
        "alpha": 1.0,
        "gamma": 0.97,
        "own": 0.00972,
        "similarity_before": 0.25,
        "similarity_after": 0.5,
    }
    assert told["hits"][0]["shift"] == {**shift, "rank_before": 3, "rank_after": 1}
    assert told["anchors"][0] == {"id": "d", "trust": 0.875, "weight": 0.5, "evidence": {"words": 0.25}}
    assert told["hits"][0]["legs"]["lexical"] == {"score": 3.5, "rank": 12}


def test_the_legs_of_an_anchored_search_are_told_as_what_they_are(capsys, monkeypatch):
    monkeypatch.setattr("langshift.output.out.width", 120)
    legs = {"dense": Leg(0.75, 2), "moved": Leg(0.875, 1), "lexical": Leg(3.5, 1)}
    search.show(result([hit("a", "de", legs=legs)], setting=SearchSettings("anchored"), bonus=0.25, compared=0))
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "",
        "rank  language       dense       moved     lexical    bonus  similarity  by vector  _id",
        "   1  de        0.7500 (2)  0.8750 (1)  3.5000 (1)  +0.2500           -          -  a",
        "dense: by the query's own vector; moved: by the vector that the anchors moved it to; lexical: by words; each "
        "with the",
        "rank among the hits. The score is that of moved, plus the bonus and what words in other languages add.",
        "Mode anchored, as requested.",
    ]


def test_the_bonus_of_a_preference_and_of_spreading():
    mine, other = hit("a", "de"), hit("b", "th")
    assert [result([]).bonus_of(one) for one in (mine, other)] == [0.01, 0.0]
    spread = result([], setting=SearchSettings("dense", spread=0.02), bonus=-0.01)
    assert [spread.bonus_of(one) for one in (mine, other)] == [0.0, 0.01]
    # Anchored gives one of its own accord; a preference against the query's language may be less than that.
    for preference in (0.0, -0.02):
        anchored = result([], setting=SearchSettings("anchored", **preferring(preference)))
        assert [anchored.bonus_of(one) for one in (mine, other)] == [0.01, 0.0]


def told(answers, shift, query=(1.0, 0.0), ids=("a",)):
    exchange = effects(np.float32(query), ids, shift, USUAL, NO_FILTER)
    assert len(next(exchange)) == 2
    with pytest.raises(StopIteration) as end:
        exchange.send([{"hits": {"hits": [{"_id": n, "_source": s} for n, s in hits.items()]}} for hits in answers])
    return end.value.value


def test_nothing_divides_by_a_norm_of_zero_and_stamps_of_anybody_do_no_harm():
    shift = StoredShift("h", "en", {"de": np.float32([0, 1])}, 1.0)
    documents = {
        "zero": {"embedding": [0.0, 0.0]},
        "strange": {"embedding": [1.0, 0.0], "shift": {"vectors": "h", "language": "xx", "alpha": 1.0}},
        "empty": {"embedding": [1.0, 0.0], "shift": None},
        "none": {"embedding": None},
        "still": {"embedding": [1.0, 1.0], "shift": {"vectors": "other", "language": "de", "alpha": 0}},
    }
    found = told([documents, {}], shift)
    assert len(found) == 4
    assert (found["zero"].similarity_before, found["zero"].similarity_after) == (0.0, 0.0)
    assert found["strange"].similarity_before is None
    assert found["empty"].similarity_before == 1.0
    assert (found["still"].language, found["still"].alpha, found["still"].gamma) == (None, 0.0, 0.0)
    assert "none" not in found
    assert {effect.rank_before for effect in found.values()} == {None}
    assert sorted(effect.rank_after for effect in found.values()) == [1, 2, 3, 4]


def test_an_index_of_something_else_cannot_be_taken_back():
    assert known_shift({}, "news-v0001") == (
        None,
        "The similarity before the shift is not available: news-v0001 does not store what is needed to reverse its "
        "shift exactly.",
    )


def test_a_gamma_is_taken_back_with_the_language_vector():
    step = CommonStep(np.float32([0.5, 0.5]), np.float32([[0.6, 0.8]]))
    shift = StoredShift("h", "en", {"de": np.float32([0, 1])}, 1.0, {}, 0.9, step)
    stamp = {"vectors": "h", "language": "de", "alpha": 1.0, "gamma": 0.9}
    raw, query = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    stored = (np.eye(2) - 0.9 * step.directions.T @ step.directions) @ (raw - [0, 1] - step.mean) + 0.1 * step.mean
    documents = {"a": {"embedding": stored.tolist(), "shift": stamp}}
    (effect,) = told([documents, {}], shift, query=query).values()
    assert (effect.language, effect.alpha, effect.gamma) == ("de", 1.0, 0.9)
    assert effect.similarity_before == pytest.approx(4 / 5, abs=1e-6)
    assert effect.similarity_after == pytest.approx(stored @ query / np.linalg.norm(stored) / np.sqrt(5))
    (unknown,) = told([documents, {}], replace(shift, step=None)).values()
    assert unknown.similarity_before is None

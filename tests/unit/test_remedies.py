"""What gives back answers in the searcher's language: the verdict names what an exhaustive comparison finds best."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import to_builtins

from langshift.evaluate.compare.gate import judge_live
from langshift.evaluate.compare.remedies import (
    HALF,
    LEAST_SHARE,
    PREFERENCES,
    preferred_runs,
    sample_of,
    untried_search,
)
from langshift.evaluate.compare.verdict import MOST_LOSS, PairedFigures, judge_pair
from langshift.evaluate.datasets.dataset import Dataset, DatasetDocument, DatasetQuery
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.replay.requests import LoadProfile
from langshift.retrieval.calibration.stored import ModeChoice
from langshift.retrieval.request import RECOMMENDED, USUAL, SearchSettings
from langshift.wording import format_score

QUESTIONS = 120
DEPTH = 20
TAGS = ("de", "en")
OTHERS = {"de": "en", "en": "de"}


def documents():
    """Each question has an answer in its own language and one in the other; the rest of both answers nothing."""
    found = {}
    for number in range(QUESTIONS):
        tag = TAGS[number % 2]
        found |= {f"own{number}": tag, f"far{number}": OTHERS[tag]}
    return found | {f"{tag}{number}": tag for tag in TAGS for number in range(DEPTH)}


DOCUMENTS = documents()
LANGUAGES = {f"q{number}": TAGS[number % 2] for number in range(QUESTIONS)}
DATASET = Dataset(
    Path("judged"),
    {name: DatasetDocument(tag, None) for name, tag in DOCUMENTS.items()},
    tuple(DatasetQuery(name, name, tag, None) for name, tag in LANGUAGES.items()),
    {f"q{number}": {f"own{number}": 1, f"far{number}": 1} for number in range(QUESTIONS)},
)


def run(own, far, crowd=0.0):
    """Of each question the scores: those that answer nothing, in the other language, at cosine .5.

    ``own`` and ``far`` tell the cosine of the answers by the number of the question; ``crowd`` is the cosine of those
    that answer nothing in the question's own language.
    """
    found = {}
    for number in range(QUESTIONS):
        tag = TAGS[number % 2]
        cosines = {f"{OTHERS[tag]}{one}": 0.5 for one in range(DEPTH)}
        cosines |= {f"{tag}{one}": crowd for one in range(DEPTH)}
        cosines |= {f"own{number}": own(number), f"far{number}": far(number)}
        found[f"q{number}"] = {name: (1 + cosine) / 2 for name, cosine in cosines.items()}
    return found


def below(*margins):
    """Answers that are so far below what answers nothing, in turn; None is above it."""
    return lambda number: 0.8 if margins[number % len(margins)] is None else 0.5 - margins[number % len(margins)]


BEFORE = run(below(None), below(0.3))
FOUND, LATER = below(None), "search by default, in mode auto"
CALIBRATE = "run `langshift anchors calibrate news` for mode anchored"
CASES = {
    "a small preference": (run(below(0.004, None), FOUND), {}),
    "a larger one": (run(below(0.004, 0.015, None, None), FOUND), {}),
    "auto": (run(below(0.1, None), FOUND), {LATER: run(FOUND, FOUND)}),
    "a calibration": (run(below(0.004, 0.1, 0.1, None, None), FOUND), {CALIBRATE: run(below(None, 0.1), FOUND)}),
    "nothing": (run(below(0.1, None), FOUND), {LATER: run(below(0.1, None), FOUND)}),
    # What brings back an answer in the own language drives one in another out.
    "a price": (run(below(0.002, None), lambda _: 0.502, crowd=0.4975), {}),
    # What brings back the last answers in the own language drives those in others out.
    "not too large a preference": (run(below(0.004, 0.015, None, None), lambda _: 0.51, crowd=0.495), {}),
}


def exhaustive(after, given):
    """What gives back most of what SLR@20 lost at no cost, by ranking all anew, and the share; else at what price."""
    tried = dict(given)
    for beta in PREFERENCES:
        tried[f"search with --prefer-language {beta:g}"] = {
            query: {name: 2 * score - 1 + beta * (DOCUMENTS[name] == LANGUAGES[query]) for name, score in hits.items()}
            for query, hits in after.items()
        }
    measured = {what: figures(of) for what, of in tried.items()}
    old, new = figures(BEFORE), figures(after)
    shares = {what: (of["own"] - new["own"]) / (old["own"] - new["own"]) for what, of in measured.items()}
    prices = {what: max(new[kind] - of[kind] for kind in ("ndcg", "far")) for what, of in measured.items()}
    some = [what for what, share in shares.items() if share >= LEAST_SHARE]
    if free := [what for what in some if prices[what] <= MOST_LOSS]:
        best = max(free, key=shares.get)
        return best, shares[best], None
    if half := [what for what in some if shares[what] >= HALF]:
        best = min(half, key=prices.get)
        return best, shares[best], {kind: (measured[best][kind], new[kind]) for kind in ("ndcg", "far")}
    assert not some
    return None, 0, None


def figures(of):
    """Means of nDCG@20, and of the recall of both answers."""
    found = {"ndcg": [], "own": [], "far": []}
    for number in range(QUESTIONS):
        hits = of[f"q{number}"]
        # As measures do: of equal scores the higher id first.
        first = sorted(hits, key=lambda name: (hits[name], name), reverse=True)[:DEPTH]
        places = {kind: first.index(f"{kind}{number}") if f"{kind}{number}" in first else None for kind in found}
        for kind in ("own", "far"):
            found[kind].append(places[kind] is not None)
        gains = sum(1 / np.log2(places[kind] + 2) for kind in ("own", "far") if places[kind] is not None)
        found["ndcg"].append(gains / (1 + 1 / np.log2(3)))
    return {kind: float(np.mean(each)) for kind, each in found.items()}


@pytest.mark.parametrize("case", CASES)
def test_the_remedy_is_the_one_that_an_exhaustive_comparison_finds_best(case):
    after, given = CASES[case]
    languages = DatasetLanguages({}, DOCUMENTS, LANGUAGES, ())
    tried = {**given, **preferred_runs(after, to_builtins(USUAL), DOCUMENTS, LANGUAGES)}
    verdict = judge_pair(PairedFigures.of(DATASET, languages, BEFORE, after, tried))
    assert verdict.kind == "at a cost"
    best, share, price = exhaustive(after, given)
    assert (best is None) == (case == "nothing")
    assert (price is not None) == (case == "a price")
    nothing = "so weigh one against the other: no language preference up to .04 and nothing else that was tried gives "
    if best is None:
        assert f"{nothing}a tenth of those back." in verdict.sentence
    elif price is None:
        assert f"so {best}, which gives back {share:.0%} of what is lost in SLR@20 (nDCG@20 " in verdict.sentence
    else:
        ndcg, far = (" instead of ".join(format_score(one, 3) for one in price[kind]) for kind in ("ndcg", "far"))
        assert (
            f"{nothing}a tenth of those back at no cost to nDCG@20 and TLR@20; for {share:.0%} of what is lost in "
            f"SLR@20, {best}, at nDCG@20 {ndcg} and TLR@20 {far}."
        ) in verdict.sentence


def test_remedies_are_tried_on_the_same_few_questions_which_is_told():
    sample = sample_of(LANGUAGES, 60)
    assert len(sample) == 60
    assert sample_of(reversed([*LANGUAGES]), 60) == sample
    assert sample_of(LANGUAGES) == LANGUAGES.keys()
    languages = DatasetLanguages({}, DOCUMENTS, LANGUAGES, ())
    after, given = CASES["auto"]
    # What was searched for the sample alone is not taken for answers that are missing.
    given = {what: {query: hits for query, hits in of.items() if query in sample} for what, of in given.items()}
    paired = PairedFigures.of(DATASET, languages, BEFORE, after, given, sample=sample)
    assert {*paired.remedies[0].figures["SLR@20"]} == sample
    assert (
        f"so {LATER}, which gives back 100% of what is lost in SLR@20 (nDCG@20 1.000; tried on 60 of the 120 "
        "questions)."
    ) in judge_pair(paired).sentence
    after, given = CASES["nothing"]
    paired = PairedFigures.of(DATASET, languages, BEFORE, after, given, sample=sample)
    assert "nothing else that was tried on 60 of the 120 questions gives a tenth of those back." in (
        judge_pair(paired).sentence
    )
    # Where the sample is all that was asked, nothing is said of it, and of one that loses nothing no remedy is.
    paired = PairedFigures.of(DATASET, languages, BEFORE, after, given, sample=LANGUAGES.keys())
    assert "tried on" not in judge_pair(paired).sentence
    spared = [query for query in LANGUAGES if int(query[1:]) % 2]
    paired = PairedFigures.of(DATASET, languages, BEFORE, after, given, sample=spared)
    assert "nothing else that was tried on 60 of the 120 questions gives a tenth of those back." in (
        judge_pair(paired).sentence
    )


def test_a_second_replay_asks_no_more_questions_than_the_sample(monkeypatch):
    many = {f"q{number}": "de" for number in range(1200)}
    data = replace(DATASET, queries=tuple(DatasetQuery(name, name, tag, None) for name, tag in many.items()))
    replays, judged = [], []

    def judge(*sides, **_):
        judged.append(sides[3:])
        return SimpleNamespace(kind="at a cost", loses_own=True)

    def replayed(*given):
        replays.append((given[2], given[3].settings))
        return ["tried"]

    monkeypatch.setattr("langshift.evaluate.compare.gate.judge_replays", judge)
    monkeypatch.setattr("langshift.evaluate.compare.gate.untried_search", lambda *_: (LATER, RECOMMENDED))
    after = SimpleNamespace(dataset=data, setting=USUAL, load=LoadProfile())
    judge_live(None, SimpleNamespace(index=None), None, after, None, replayed)
    ((asked, settings),) = replays
    assert settings == [RECOMMENDED]
    assert {query.id for query in asked.queries} == sample_of(many)
    assert len(asked.queries) == 300
    assert judged == [(), ({LATER: "tried"}, sample_of(many))]


def test_a_preference_is_reckoned_where_scores_are_cosines_only():
    hits = run(FOUND, FOUND)
    for setting in (
        SearchSettings("hybrid"),
        SearchSettings("dense", prefer_language=0.01),
        SearchSettings("dense", rerank="features"),
    ):
        assert preferred_runs(hits, to_builtins(setting), DOCUMENTS, LANGUAGES) == {}
    assert preferred_runs(hits, {}, DOCUMENTS, LANGUAGES) == {}
    assert len(preferred_runs(hits, to_builtins(USUAL), DOCUMENTS, LANGUAGES)) == len(PREFERENCES)


ANCHORED = SearchSettings("anchored")


@pytest.mark.parametrize(
    ("auto", "origin", "searched", "expected"),
    [
        (USUAL, "default", RECOMMENDED, (CALIBRATE, ANCHORED)),
        (USUAL, "default", USUAL, (CALIBRATE, ANCHORED)),
        (USUAL, "default", ANCHORED, None),
        (ANCHORED, "calibration", RECOMMENDED, None),
        (ANCHORED, "calibration", USUAL, (LATER, RECOMMENDED)),
        (USUAL, "calibration", USUAL, None),
        (ANCHORED, "calibration", SearchSettings("dense", prefer_language=0.1), None),
    ],
)
def test_what_was_not_tried_is_a_calibration_or_what_it_found(monkeypatch, auto, origin, searched, expected):
    choice = ModeChoice(auto, origin, "")
    monkeypatch.setattr("langshift.evaluate.compare.remedies.resolve_auto", lambda _: choice)
    assert untried_search(SimpleNamespace(name="news", calibratable=True), searched) == expected
    if origin == "default":
        assert untried_search(SimpleNamespace(name="news", calibratable=False), searched) is None

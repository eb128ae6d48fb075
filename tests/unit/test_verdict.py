"""Should I shift this index? The sentence, by figures made up for each case."""

from __future__ import annotations

import numpy as np

from langshift.evaluate.compare.verdict import (
    Choice,
    PairedFigures,
    judge,
    own_language,
    unjudged,
)

TAGS = ("de", "en", "th")


def paired(questions, *, own=True, by=None, clusters=None, **figures):
    """Figures of questions in German, English and Thai in turn.

    ``figures``: ``ndcg``, ``tlr`` and ``slr``, each the mean before, and the change; ``by`` gives other nDCGs by
    language; both sides and all questions differ by noise whose mean is nought.
    """
    numbers = np.random.default_rng(7)
    names = [f"q{number}" for number in range(questions)]
    languages = {name: TAGS[number % len(TAGS)] for number, name in enumerate(names)}
    before, after = {}, {}
    for measure, key in (("nDCG@20", "ndcg"), ("TLR@20", "tlr"), ("SLR@20", "slr")):
        if key not in figures or (key == "slr" and not own):
            continue
        mean, change = figures[key]
        noise = numbers.choice([-0.05, 0.05], questions)
        # A pair of questions in each language, one up and one down.
        for start in range(0, questions, 2 * len(TAGS)):
            part = noise[start : start + 2 * len(TAGS)]
            part[len(TAGS) :] = -part[: len(part) - len(TAGS)]
        sides = {
            name: (by or {}).get(languages[name], (mean, change)) if key == "ndcg" else (mean, change) for name in names
        }
        before[measure] = {name: sides[name][0] for name in names}
        after[measure] = {name: sum(sides[name]) + noise[number] for number, name in enumerate(names)}
    return PairedFigures(before, after, languages, clusters or {name: name for name in names})


GAINED = {"ndcg": (0.7, 0.1), "tlr": (0.6, 0.2)}


def test_a_clear_gain():
    found = judge(paired(900, **GAINED, slr=(0.95, 0.001)))
    print(found.sentence)


def test_a_clear_loss():
    found = judge(paired(900, ndcg=(0.8, -0.05), tlr=(0.7, -0.03), slr=(0.98, -0.06)))
    print(found.sentence)


def test_a_cost():
    found = judge(paired(900, **GAINED, slr=(0.98, -0.035)))
    print(found.sentence)
    found = judge(paired(900, **GAINED, slr=(0.98, 0), by={"th": (0.7, -0.05)}))
    print(found.sentence)
    found = judge(
        paired(900, **GAINED, slr=(0.98, 0), by={"th": (0.7, -0.05)}),
        Choice("Use b (x) rather than a", "Keep a rather than b", " a and b apart"),
    )
    print(found.sentence)


def test_unread():
    found = judge(paired(900, **GAINED, slr=(0.95, 0.001), by={"th": (0.02, 0.002)}))
    print(found.sentence)


def test_few():
    found = judge(paired(40, ndcg=(0.7, 0.01), tlr=(0.6, 0.02), slr=(0.98, -0.01)))
    print(found.sentence)
    found = judge(
        paired(
            42,
            ndcg=(0.7, 0.01),
            tlr=(0.6, 0.02),
            slr=(0.98, -0.01),
            clusters=dict.fromkeys([f"q{n}" for n in range(42)], "a"),
        )
    )
    print(found.sentence)


def test_same():
    found = judge(paired(1800, ndcg=(0.7, 0.0002), tlr=(0.6, 0.00), slr=(0.98, 0)))
    print(found.sentence)
    found = judge(paired(1800, ndcg=(0.7, -0.0003), tlr=(0.6, -0.002), slr=(0.98, -0.0052)))
    print(found.sentence)


def test_none():
    print(
        unjudged(
            500,
            ["of the documents that either finds among its first 20, 61% are found by both", own_language(0.77, 0.36)],
        )
    )
    print(unjudged(50))
    print(judge(paired(0)))

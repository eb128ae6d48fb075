"""Share, entropy, JS and KL: averaged per query language first, by hand and against formulas of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langshift.evaluate.measures import FAMILIES, score
from langshift.evaluate.measures.base import Material, Scores

TAGS = ["de", "en", "th"]
DOCUMENTS = {f"{tag}{number}": tag for tag in TAGS for number in range(4)} | {"x": None}
# English queries find three English and two German passages, or one of unknown language alone; the German
# one finds only German. The last three have no answer, no language, and no relevant passage.
RUN = {
    "q1": {"en0": 5.0, "de0": 4.0, "en1": 3.0, "de1": 2.0, "en2": 1.0, "th0": 0.5},
    "q2": {"x": 1.0},
    "q3": {"de0": 2.0, "de1": 1.0},
    "q5": {"en0": 1.0},
    "q6": {"th0": 1.0},
}
QUERIES = {"q1": "en", "q2": "en", "q3": "de", "q4": "en", "q5": None, "q6": "de"}
QRELS = {
    "q1": {"en0": 1, "de0": 1, "de1": 1},
    "q2": {"en0": 2},
    "q3": {"de0": 1, "en0": 1},
    "q4": {"en0": 1},
    "q5": {"en0": 1},
    "q6": {"de0": 0},
}


def one(name: str, **changed) -> Scores:
    given = {"qrels": QRELS, "run": RUN, "queries": QUERIES, "documents": DOCUMENTS} | changed
    return score([name], Material(**given))[name]


def nats(*shares: float) -> float:
    return -sum(share * math.log(share) for share in shares if share)


def test_shares_are_averaged_per_query_language_first():
    found = one("Share@5")
    # q1's first five: three English and two German, the Thai one is the sixth.
    assert found.per_query == {"q1": 0.6, "q2": 0.0, "q3": 1.0, "q6": 0.0}
    assert found.table is not None
    assert {row: {tag: cell.mean for tag, cell in cells.items()} for row, cells in found.table.cells.items()} == {
        "de": {"de": 0.5, "th": 0.5},
        "en": {"de": 0.2, "en": 0.3, "und": 0.5},
    }
    assert {cell.queries for cells in found.table.cells.values() for cell in cells.values()} == {2}
    # German queries .5, English ones .3; q4 has no answer and q5 no language.
    assert found.mean == pytest.approx((0.5 + 0.3) / 2)
    assert (found.queries, found.left_out) == (4, 2)


def test_every_query_language_has_the_same_say():
    # Three English queries without a share of theirs, and one German query with all: not 1 / 4.
    queries = {"q1": "en", "q2": "en", "q3": "en", "q4": "de"}
    run = {query: {"de0": 1.0} for query in queries}
    assert one("Share@5", run=run, queries=queries).mean == 0.5


def test_entropy_by_hand():
    found = one("Entropy@5")
    german, english = nats(0.5, 0.5), nats(0.2, 0.3, 0.5)
    assert found.mean == pytest.approx((german + english) / 2)
    assert (found.queries, found.left_out) == (4, 2)
    assert found.over(["q3", "q6"]).mean == pytest.approx(math.log(2))
    assert one("Entropy(base=2)@5").over(["q3", "q6"]).mean == pytest.approx(1.0)  # a bit


def divergence(p: dict[str, float], q: dict[str, float]) -> float:
    return sum(share * math.log(share / q[tag]) for tag, share in p.items() if share)


def jensen_shannon(p: dict[str, float], q: dict[str, float]) -> float:
    tags = p.keys() | q.keys()
    p, q = ({tag: part.get(tag, 0.0) for tag in tags} for part in (p, q))
    middle = {tag: (p[tag] + q[tag]) / 2 for tag in tags}
    return (divergence(p, middle) + divergence(q, middle)) / 2


def test_js_by_hand():
    # English: found as above; the relevant passages' languages are half English and half German for q1,
    # though two of its three are German, and English for q2. German: q3 alone has a relevant passage.
    english = jensen_shannon({"de": 0.2, "en": 0.3, "und": 0.5}, {"de": 0.25, "en": 0.75})
    german = jensen_shannon({"de": 1.0}, {"de": 0.5, "en": 0.5})
    found = one("JS@5")
    assert found.mean == pytest.approx((math.sqrt(english) + math.sqrt(german)) / 2)
    assert (found.queries, found.left_out) == (3, 3)
    assert found.per_query == {}
    assert found.over(["q3"]).mean == pytest.approx(math.sqrt(german))
    assert one("JS(root=False)@5").mean == pytest.approx((english + german) / 2)
    assert one("JS(root=False,base=2)@5").mean == pytest.approx((english + german) / 2 / math.log(2))
    assert one("JS(base=2)@5").over(["q3"]).mean == pytest.approx(math.sqrt(german / math.log(2)))


def test_kl_by_hand():
    # Smoothed with .1 over de, en and th, of which the corpus knows: (1, 0, 0) becomes (1.1, .1, .1) / 1.3,
    # and (.5, .5, 0) becomes (.6, .6, .1) / 1.3.
    expected = (1.1 * math.log(1.1 / 0.6) + 0.1 * math.log(0.1 / 0.6) + 0.1 * math.log(0.1 / 0.1)) / 1.3
    found = one("KL(smoothing=.1)@5").over(["q3"])
    assert found.mean == pytest.approx(expected)
    assert (found.queries, found.left_out) == (1, 0)
    # Without much smoothing all of q3's German is log 2 away from a half.
    assert one("KL@5").over(["q3"]).mean == pytest.approx(math.log(2), abs=1e-4)
    assert one("KL(base=2)@5").over(["q3"]).mean == pytest.approx(1.0, abs=1e-4)


def test_kl_stays_finite_where_a_language_holds_no_answer():
    # All that is found is Thai, and Thai holds no answer: log(1 / 1e-6), nearly.
    found = one("KL@5", run={"q3": {"th0": 1.0}}, queries={"q3": "de"})
    assert found.mean == pytest.approx(math.log(1e6), rel=1e-3)


def test_the_languages_found_can_be_those_of_the_answers():
    run = {"q3": {"de0": 1.0, "en1": 0.5}}
    for name in ("JS@5", "KL@5"):
        assert one(name, run=run, queries={"q3": "de"}).mean == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["Share@5", "Entropy@5", "JS@5", "KL@5"])
def test_without_an_answer_there_is_none(name):
    found = one(name, run={"q1": {}})
    assert (found.mean, found.queries, found.left_out) == (None, 0, 6)


@pytest.mark.parametrize("name", ["JS", "KL"])
def test_the_stand_in_for_the_oracle_is_told(name):
    assert "stand-in" in FAMILIES[name].compute.__doc__


NAMES = [name for name in DOCUMENTS if name != "x"]


@settings(max_examples=100)
@given(
    run=st.dictionaries(
        st.sampled_from(list("abcdef")),
        st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5).map(lambda n: n / 2)),
    ),
    asked=st.lists(st.sampled_from(TAGS), min_size=6, max_size=6),
    answers=st.lists(st.sets(st.sampled_from(NAMES)), min_size=6, max_size=6),
)
def test_against_independent_formulas(run, asked, answers):
    queries = dict(zip("abcdef", asked, strict=True))
    qrels = {query: dict.fromkeys(names, 1) for query, names in zip("abcdef", answers, strict=True)}
    wanted = ["Share@3", "Entropy@3", "JS@3", "KL(smoothing=.01)@3"]
    found = score(wanted, Material(qrels, run, queries, DOCUMENTS))
    own, entropies, distances, divergences = [], [], [], []
    for tag in TAGS:
        answered = [query for query in "abcdef" if queries[query] == tag and run.get(query)]
        rows = np.array([_row(_top(run[query])) for query in answered]).reshape(-1, len(TAGS))
        if answered:
            share = rows.mean(axis=0)
            own.append(share[TAGS.index(tag)])
            entropies.append(nats(*share))
        judged = [place for place, query in enumerate(answered) if qrels[query]]
        if judged:
            share = rows[judged].mean(axis=0)
            oracle = np.mean([_row(sorted({n[:2] for n in qrels[answered[place]]})) for place in judged], axis=0)
            middle = (share + oracle) / 2
            distances.append(math.sqrt(max(nats(*middle) - (nats(*share) + nats(*oracle)) / 2, 0)))
            p, q = ((part + 0.01) / (1 + 0.01 * len(TAGS)) for part in (share, oracle))
            divergences.append(float(np.sum(p * np.log(p / q))))
    expected = dict(zip(wanted, (own, entropies, distances, divergences), strict=True))
    for name, figures in expected.items():
        # The square root of a difference that rounding makes is up to 1e-8.
        assert found[name].mean == (pytest.approx(np.mean(figures), abs=1e-7) if figures else None)


def _top(hits):
    return [name[:2] for _, name in sorted(((score, name) for name, score in hits.items()), reverse=True)[:3]]


def _row(tags):
    return [tags.count(tag) / len(tags) for tag in TAGS]


def test_distributions_that_are_alike_but_for_rounding_have_a_distance_of_0():
    found = {"q1": "en1 en2 de3", "q2": "en3 en2 de3", "q3": "de0 th3 en1", "q4": "en1 th0 th3"}
    relevant = {"q1": "th3 en1", "q2": "en0", "q3": "th2 de0 th0", "q4": "en1 en0 de3"}
    run = {query: {name: 1 / rank for rank, name in enumerate(names.split(), 1)} for query, names in found.items()}
    qrels = {query: dict.fromkeys(names.split(), 1) for query, names in relevant.items()}
    scored = score(["JS@3"], Material(qrels, run, dict.fromkeys(run, "en"), DOCUMENTS))
    assert scored["JS@3"].mean == 0

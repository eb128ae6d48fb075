"""Measures by language: small cases by hand, and formulas of their own on random runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, kruskal, rankdata

from langshift.errors import UsageError
from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material, MeasureCell, Scores

TAGS = ["en", "de", "th"]
# Two topics of three translations each, and a passage in a language that nobody knows.
DOCUMENTS = {f"{topic}-{tag}": tag for topic in ("a", "b") for tag in TAGS} | {"x": None}
GROUPS = {name: name[0] for name in DOCUMENTS if name != "x"}
A, B = ({f"{topic}-{tag}": 1 for tag in TAGS} for topic in ("a", "b"))


def ranked(*names: str) -> dict[str, float]:
    """An answer with these documents, best first."""
    return {name: float(len(names) - place) for place, name in enumerate(names)}


def one(name: str, qrels, run, queries, documents=DOCUMENTS, **more) -> Scores:
    return score([name], Material(qrels, run, queries, documents, **more))[name]


class TestLangNdcg:
    def test_by_hand(self):
        # Gains 2^2 - 1 = 3 for English and 2^1 - 1 = 1 for the others.
        run = {"q": ranked("a-de", "b-en", "a-en")}
        gain = 1 / math.log2(2) + 0 / math.log2(3) + 3 / math.log2(4)
        ideal = 3 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
        assert one("Lang_nDCG@20", {"q": A}, run, {"q": "en"}).mean == pytest.approx(gain / ideal, abs=1e-12)

    def test_grades_are_options(self):
        # Gains 2^3 - 1 = 7 and 2^0 - 1 = 0: only the query's language counts.
        run = {"q": ranked("a-de", "a-en")}
        name = "Lang_nDCG(same=3,other=0)@20"
        assert one(name, {"q": A}, run, {"q": "en"}).mean == pytest.approx(1 / math.log2(3), abs=1e-12)
        # Without a passage in the query's language no gain is to be had.
        assert one(name, {"q": A}, run, {"q": "fr"}) == Scores({}, left_out=1)

    def test_equal_grades_are_plain_ndcg(self):
        run = {"q": ranked("b-de", "a-de", "x", "a-en")}
        plain = one("nDCG@3", {"q": A}, run, {"q": "en"})
        assert one("Lang_nDCG(same=1,other=1)@3", {"q": A}, run, {"q": "en"}) == plain

    def test_gaps(self):
        qrels = {"q1": A, "q2": A, "q3": {"x": 1}, "q4": {"a-en": 0}}
        found = one("Lang_nDCG@20", qrels, {"q2": ranked("a-en")}, {"q1": "en", "q2": None, "q3": "en", "q4": "en"})
        # q1 has no answer; q2 is of unknown language, q3's document is; q4 has no relevant document.
        assert found == Scores({"q1": 0.0}, left_out=3)


class TestLpr:
    def test_by_hand(self):
        groups = {
            "q1": {"a-en": 0.2, "a-de": 0.1, "a-th": 0.15},  # English is best
            "q2": {"a-en": 0.2, "a-de": 0.3, "a-th": 0.1},  # German is best, English was asked
            "q3": {"b-en": 0.5, "b-de": 0.5, "b-th": 0.1},  # German is one of two best
        }
        queries = {"q1": "en", "q2": "en", "q3": "de"}
        found = one("LPR", {"q1": A, "q2": A, "q3": B}, {}, queries, groups=GROUPS, group_scores=groups)
        assert found == Scores({"q1": 1.0, "q2": 0.0, "q3": 0.5}, left_out=0)
        assert found.mean == (1 + 0 + 0.5) / 3

    def test_the_run_has_no_say(self):
        run = {"q": ranked("b-de", "a-de")}
        groups = {"q": {"a-en": 0.01, "a-de": 0.0, "b-de": 0.9}}  # what is not of the group does not count
        assert one("LPR", {"q": A}, run, {"q": "en"}, groups=GROUPS, group_scores=groups).mean == 1.0

    def test_the_group_is_wider_than_the_judgements(self):
        groups = {"q": {"a-en": 0.1, "a-de": 0.5}}
        queries = {"q": "en"}
        # Only the German passage was judged, yet the English one is of its group.
        found = one("LPR", {"q": {"a-de": 1}}, {}, queries, groups=GROUPS, group_scores=groups)
        assert found == Scores({"q": 0.0}, left_out=0)
        # Without groups there is no English passage to prefer.
        assert one("LPR", {"q": {"a-de": 1}}, {}, queries, group_scores=groups) == Scores({}, left_out=1)

    def test_ties_are_those_of_32_bits(self):
        groups = {"q": {"a-en": 0.5, "a-de": 0.5 + 1e-12, "a-th": 0.5 - 1e-12}}
        assert one("LPR", {"q": A}, {}, {"q": "en"}, groups=GROUPS, group_scores=groups).mean == 1 / 3

    def test_passages_that_do_not_match(self):
        groups = {
            "q1": {"a-en": -3.0},  # the others do not match: any score is before none
            "q2": {"a-de": 0.1},
            "q3": {},  # scored, and nothing matches
        }
        found = one("LPR", {"q1": A, "q2": A, "q3": A}, {}, dict.fromkeys(groups, "en"), group_scores=groups)
        assert found == Scores({"q1": 1.0, "q2": 0.0, "q3": 0.0}, left_out=0)

    def test_what_is_left_out(self):
        qrels = {"q1": A, "q2": A, "q3": {"a-de": 1}, "q4": A, "q5": {"a-en": 0}}
        queries = {"q1": "en", "q2": None, "q3": "en", "q4": "en", "q5": "en"}
        groups = {name: {"a-en": 0.3, "a-de": 0.2} for name in ("q1", "q2", "q3", "q5")}
        found = one("LPR", qrels, {}, queries, group_scores=groups)
        # q2 is of unknown language, q3 has no English passage, q4 was not scored, q5 has nothing relevant.
        assert found == Scores({"q1": 1.0}, 4, "queries left out because their target group was not scored: 1.")

    def test_without_scores_it_is_undefined_and_says_so(self):
        assert one("LPR", {"q": A}, {"q": ranked("a-en")}, {"q": "en"}, groups=GROUPS) == Scores(
            {},
            1,
            "undefined without the scores of the whole target group, including those below the cutoff: "
            "group-scores.jsonl beside the run, which `langshift evaluate replay --output` and `offline "
            "--output` write.",
        )


FIRST = {
    "q1": ranked("a-en", "a-de"),
    "q2": ranked("a-de", "a-en"),
    "q3": ranked("b-en", "a-en"),
    "q4": ranked("b-de", "a-de"),
    "q5": ranked("x"),
}
ASKED = {"q1": "en", "q2": "en", "q3": "en", "q4": "en", "q5": "de", "q6": "de", "q7": None, "q8": "en"}


class TestTop1:
    def test_four_ways(self):
        qrels = {query: A for query in ASKED if query != "q8"}
        found = one("Top1", qrels, FIRST, ASKED)
        # q5's passage is in no known language, q6 has no answer; q7 and q8 are left out.
        assert found.per_query == {"q1": 1, "q2": 0, "q3": 0, "q4": 0, "q5": 0, "q6": 0}
        assert (found.mean, found.queries, found.left_out) == (1 / 6, 6, 2)
        assert found.table is not None
        assert found.table.cells == {
            "de": {"perfect": (0, 2), "lang_fail": (0, 2), "sem_fail": (0, 2), "both_fail": (1, 2)},
            "en": {"perfect": (0.25, 4), "lang_fail": (0.25, 4), "sem_fail": (0.25, 4), "both_fail": (0.25, 4)},
            "all": {"perfect": (1 / 6, 6), "lang_fail": (1 / 6, 6), "sem_fail": (1 / 6, 6), "both_fail": (0.5, 6)},
        }

    def test_over_some_of_the_queries(self):
        part = one("Top1", dict.fromkeys(ASKED, A), FIRST, ASKED).over(["q1", "q2", "q7"])
        assert (part.mean, part.queries, part.left_out) == (0.5, 2, 1)
        assert part.table is not None
        assert part.table.cells["all"]["lang_fail"] == MeasureCell(0.5, 2)


JUDGED = {"q1": {"a-en": 1, "b-en": 1, "a-de": 1, "x": 1}, "q2": {"a-en": 1}, "q3": A, "q4": A}
FOUND = {"q1": ranked("a-en", "a-de"), "q2": ranked("b-en"), "q3": ranked("a-th", "a-de", "a-en")}
ASKING = {"q1": "en", "q2": "en", "q3": "de", "q4": None}


class TestTargetRecall:
    def test_by_hand(self):
        found = one("TR@2", JUDGED, FOUND, ASKING)
        # q1: one of two English, one of one German; q2: none; q3: German and Thai, English at rank three.
        assert found.per_query == {"q1": (0.5 + 1) / 2, "q2": 0.0, "q3": pytest.approx(2 / 3)}
        assert found.table is not None
        assert found.table.cells == {
            "de": {"de": (1.0, 1), "en": (0.0, 1), "th": (1.0, 1)},
            "en": {"de": (1.0, 1), "en": ((0.5 + 0) / 2, 2)},
        }
        assert (found.queries, found.left_out) == (3, 1)
        assert found.mean == pytest.approx((0.75 + 0 + 2 / 3) / 3)

    def test_the_row_of_a_language_is_that_of_its_queries_alone(self):
        found = one("TR@2", JUDGED, FOUND, ASKING)
        part = found.over(["q1", "q2"])
        assert part.table is not None
        assert part.table.cells == {"en": found.table.cells["en"]}
        assert (part.mean, part.queries, part.left_out) == (0.375, 2, 0)

    def test_of_one_language(self):
        found = one("TR(language='de')@2", JUDGED, FOUND, ASKING)
        assert found.per_query == {"q1": 1.0, "q3": 1.0}
        assert (found.mean, found.queries, found.left_out) == (1.0, 2, 2)
        assert one("TR(language='en')@2", JUDGED, FOUND, ASKING).per_query == {"q1": 0.5, "q2": 0.0, "q3": 0.0}
        with pytest.raises(UsageError) as refused:
            one("TR(language='zh-TW')@2", JUDGED, FOUND, ASKING)
        assert str(refused.value) == (
            "\"TR(language='zh-TW')@2\" sets language to 'zh-TW': give a language without region or script, "
            "such as 'zh'."
        )

    def test_one_passage_a_language_is_recall(self):
        run = {"q3": ranked("a-th", "b-de", "a-en")}
        found = score(["TR@3", "R@3"], Material({"q3": A}, run, {"q3": "de"}, DOCUMENTS))
        assert found["TR@3"].per_query == found["R@3"].per_query == {"q3": pytest.approx(2 / 3)}


# Three English and two German passages that are relevant, one Thai.
SPOKEN = {"e1": "en", "e2": "en", "e3": "en", "d1": "de", "d2": "de", "t1": "th"} | {
    f"n{number}": "en" for number in range(5)
}
RELEVANT = {name: 1 for name in SPOKEN if name[0] != "n"}


class TestPeer:
    def one(self, *names: str, name: str = "PEER") -> Scores:
        return one(name, {"q": RELEVANT}, {"q": ranked(*names)}, {"q": "en"}, SPOKEN)

    def test_by_hand(self):
        # English at ranks 1 and 2, German at 3 and 5, an irrelevant one between: the ranks among the four
        # are 1, 2 and 3, 4. H = 12 / (4 · 5) · ((1 + 2)² / 2 + (3 + 4)² / 2) - 3 · 5 = 2.4, chi² with 1 degree.
        h = 12 / (4 * 5) * (3**2 / 2 + 7**2 / 2) - 3 * 5
        assert h == pytest.approx(2.4)
        found = self.one("e1", "e2", "d1", "n1", "d2")
        assert found.per_query == {"q": pytest.approx(chi2.sf(2.4, 1))}
        assert found.mean == pytest.approx(0.1213, abs=1e-4)
        assert found.note is None

    def test_no_language_apart(self):
        # Ranks 1, 4 and 2, 3: both sums are 5, H = 12 / 20 · (25 / 2 + 25 / 2) - 15 = 0.
        assert self.one("e1", "d1", "d2", "e2").mean == pytest.approx(1.0)

    def test_a_language_with_a_single_passage_takes_part(self):
        # Ranks 1, 2 | 3, 4 | 5: H = 12 / (5 · 6) · (9 / 2 + 49 / 2 + 25) - 18 = 3.6 with 2 degrees.
        assert self.one("e1", "e2", "d1", "d2", "t1").mean == pytest.approx(chi2.sf(3.6, 2))

    def test_undefined_with_one_passage_a_language(self):
        # Whatever the order, p is the same.
        assert kruskal(*([rank] for rank in range(1, 9))).pvalue == pytest.approx(0.42888, abs=1e-5)
        documents = {f"a-{number}": f"l{number}" for number in range(8)}
        found = one("PEER", {"q": dict.fromkeys(documents, 1)}, {"q": ranked(*documents)}, {"q": "l0"}, documents)
        assert found == Scores(
            {},
            1,
            "undefined, because no query has two retrieved relevant documents in each of two languages; "
            "with one per language, the test gives the same p for every order.",
        )

    @pytest.mark.parametrize("names", [("e1", "e2", "e3", "d1"), ("e1", "e2", "n1", "n2"), ()])
    def test_what_does_not_count(self, names):
        # What is not found has no rank, and two languages with two passages found each are needed.
        assert self.one(*names).queries == 0

    def test_queries_that_count_are_counted(self):
        run = {"q1": ranked("e1", "d1", "d2", "e2"), "q2": ranked("e1")}
        qrels = dict.fromkeys(("q1", "q2", "q3"), RELEVANT)
        found = one("PEER", qrels, run, {"q1": "en", "q2": "en", "q3": None}, SPOKEN)
        assert (found.mean, found.queries, found.left_out) == (pytest.approx(1.0), 1, 2)
        assert found.note == (
            "over 1 of 3 queries; the others are left out, because no two languages have two retrieved relevant "
            "documents each (PEER(queries='all') counts them)."
        )

    def test_all_queries_of_the_paper(self):
        run = {
            "apart": ranked("e1", "e2", "d1", "d2"),
            "one each": ranked("d1", "n1", "e1"),
            "one language": ranked("e1", "e2"),
            "nothing": ranked("n1"),
            "unjudged": ranked("e1", "d1"),
        }
        qrels = dict.fromkeys([*run][:4], RELEVANT) | {"unanswered": RELEVANT, "unjudged": {"e1": 0}}
        queries = dict.fromkeys([*run, "unanswered"], "en")
        found = one("PEER(queries='all')", qrels, run, queries, SPOKEN)
        # Ranks 1 and 2 of one language each: H = 12 / (2 · 3) · (1 + 4) - 9 = 1 with 1 degree.
        assert found.per_query == {
            "apart": pytest.approx(chi2.sf(2.4, 1)),
            "one each": pytest.approx(chi2.sf(1, 1)),
            "one language": 1.0,
            "nothing": 1.0,
            "unanswered": 1.0,
        }
        assert (found.left_out, found.note) == (1, None)

    def test_other_values_of_the_option_are_refused(self):
        with pytest.raises(UsageError) as caught:
            self.one("e1", name="PEER(queries='some')")
        assert str(caught.value) == "\"PEER(queries='some')\" sets queries to 'some': give 'two' or 'all'."


NAMES = [f"d{number:02d}" for number in range(30)]
languages = st.sampled_from([*TAGS, None])
cases = st.fixed_dictionaries(
    {
        "documents": st.lists(languages, min_size=30, max_size=30).map(
            lambda tags: dict(zip(NAMES, tags, strict=True))
        ),
        "language": languages,
        "grades": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3), max_size=15),
        "hits": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9).map(lambda n: n / 4), max_size=25),
        "group": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3).map(lambda n: n / 4), max_size=15),
    }
)


@settings(max_examples=200)
@given(case=cases)
def test_against_independent_formulas(case):
    documents, language, hits, group = case["documents"], case["language"], case["hits"], case["group"]
    material = Material(
        {"q": case["grades"]}, {"q": hits}, {"q": language}, documents, group_scores={"q": group, "other": {}}
    )
    found = {
        name.partition("@")[0]: scores.per_query.get("q")
        for name, scores in score(["Lang_nDCG(same=3,other=2)@10", "LPR", "Top1", "TR@10", "PEER"], material).items()
    }
    order = [name for _, name in sorted(((score, name) for name, score in hits.items()), reverse=True)]
    relevant = [name for name, grade in case["grades"].items() if grade > 0]
    assert found["Lang_nDCG(same=3,other=2)"] == pytest.approx(_lang_ndcg(order, relevant, documents, language))
    assert found["LPR"] == pytest.approx(_lpr(group, relevant, documents, language))
    assert found["Top1"] == _perfect(order, relevant, documents, language)
    assert found["TR"] == pytest.approx(_target_recall(order, relevant, documents, language))
    assert found["PEER"] == pytest.approx(_peer(order, relevant, documents))


def _lang_ndcg(order, relevant, documents, language):
    gains = {name: 7.0 if documents[name] == language else 3.0 for name in relevant if documents[name]}
    if language is None or not gains:
        return None
    discounts = 1 / np.log2(np.arange(2, 12))
    found = np.array([gains.get(name, 0.0) for name in order[:10]] + [0.0] * 10)[:10]
    best = np.array(sorted(gains.values(), reverse=True) + [0.0] * 10)[:10]
    return (found @ discounts) / (best @ discounts)


def _lpr(group, relevant, documents, language):
    if language is None or language not in [documents[name] for name in relevant]:
        return None
    if all(documents[name] == language for name in relevant):
        return None
    scores = np.array([group.get(name, -np.inf) for name in relevant])
    own = np.array([documents[name] == language for name in relevant])
    return float(own[scores == scores.max()].mean()) if np.isfinite(scores.max()) else 0.0


def _perfect(order, relevant, documents, language):
    if language is None or not relevant:
        return None
    return float(bool(order) and order[0] in relevant and documents[order[0]] == language)


def _target_recall(order, relevant, documents, language):
    parts = {tag: {name for name in relevant if documents[name] == tag} for tag in TAGS}
    recalls = [len(part & set(order[:10])) / len(part) for part in parts.values() if part]
    return float(np.mean(recalls)) if recalls and language else None


def _peer(order, relevant, documents):
    found = [(rank, documents[name]) for rank, name in enumerate(order, 1) if name in relevant and documents[name]]
    groups = [[rank for rank, tag in found if tag == own] for own in TAGS]
    if sum(len(group) >= 2 for group in groups) < 2:
        return None
    ranks = rankdata([rank for rank, _ in found])
    sums = {own: sum(ranks[i] for i, (_, tag) in enumerate(found) if tag == own) for own in TAGS}
    n = len(found)
    h = 12 / (n * (n + 1)) * sum(sums[own] ** 2 / len(g) for own, g in zip(TAGS, groups, strict=True) if g) - 3 * (
        n + 1
    )
    return float(chi2.sf(h, sum(bool(group) for group in groups) - 1))

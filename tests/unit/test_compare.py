"""A comparison worked by hand: figures, parts, matrix, winners, and what is said of them."""

from __future__ import annotations

import json
import math

import pytest
from data_folder import write_dataset, write_run

from langshift.evaluate.compare.breakdowns import example_queries, matrices
from langshift.evaluate.compare.comparison import (
    ALL,
    CROSS,
    NONE,
    OWN,
    SAME,
    Column,
    column_of,
    columns,
    compare,
    load,
    slices,
)
from langshift.evaluate.compare.findings import ComparisonFindings, describe_test, findings
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.report.tables import probability

# Twenty topics in English, German and Thai, each asked about in English and in Thai.
TOPICS = [f"t{number:02d}" for number in range(20)]
TAGS = ("en", "de", "th")
DOCUMENTS = {f"{topic}-{tag}": (tag, topic, f"On {topic} in {tag}.") for topic in TOPICS for tag in TAGS}
QUERIES = {f"{topic}-q{tag}": (tag, topic, None, f"What of {topic}?") for topic in TOPICS for tag in ("en", "th")}
QRELS = {query: {f"{topic}-{tag}": 1 for tag in TAGS} for query, (_, topic, *_) in QUERIES.items()}


def other(topic, tag):
    """A wrong answer: a passage of another topic."""
    return f"{TOPICS[(TOPICS.index(topic) + 1) % len(TOPICS)]}-{tag}"


def answers(en, th):
    """Rankings in which every English question finds ``en`` and every Thai one ``th``; ``x`` stands for a wrong one."""
    return {
        query: [other(topic, "de") if tag == "x" else f"{topic}-{tag}" for tag in (en if language == "en" else th)]
        for query, (language, topic, *_) in QUERIES.items()
    }


# The later run finds the German passage for English questions, and loses the Thai one for Thai questions.
BEFORE = answers(en=["en", "x"], th=["th", "en"])
AFTER = answers(en=["en", "de"], th=["x", "en"])


@pytest.fixture
def folder(tmp_path):
    return write_dataset(tmp_path / "data", DOCUMENTS, QUERIES, QRELS)


def compared(folder, *runs, names=("nDCG@2", "R@2", "TLR@2", "SLR@2")):
    places = [write_run(folder.parent / f"run{number}.trec", rankings) for number, rankings in enumerate(runs)]
    dataset, candidates = load(places, folder)
    return compare(dataset, DatasetLanguages.of(dataset, {}), candidates, columns(names))


def test_measures_stand_apart_by_the_documents_language():
    names = ["nDCG@20", "R@20", "TLR@20", "SLR@5", "own@3", "LPR", "Judged@10", "R(rel=2)@20", "Lang_nDCG@20"]
    assert columns(names) == [
        *(Column(ALL, name) for name in ("nDCG@20", "R@20", "LPR", "Judged@10", "R(rel=2)@20", "Lang_nDCG@20")),
        *(Column(SAME, name) for name in ("nDCG@20", "SLR@20", "SLR@5", "own@3", "R(rel=2)@20")),
        *(Column(CROSS, name) for name in ("nDCG@20", "TLR@20", "R(rel=2)@20")),
    ]
    assert {column.section for column in columns(names, cross=False)} == {ALL, SAME}
    assert [column_of(name) for name in ("nDCG@20", "SLR@5", "own@3", "TLR@5")] == [
        Column(ALL, "nDCG@20"),
        Column(SAME, "SLR@5"),
        Column(SAME, "own@3"),
        Column(CROSS, "TLR@5"),
    ]


def test_figures_by_hand(folder):
    found = compared(folder, BEFORE, AFTER)
    second = 1 / math.log2(3)
    expected = {
        # English: 1 of 3 and then 2 of 3; Thai: 2 of 3 and then 1 of 3.
        (ALL, "R@2"): (0.5, 0.5),
        (ALL, "nDCG@2"): ((1 + (1 + second)) / 2 / (1 + second), ((1 + second) + second) / 2 / (1 + second)),
        # Same-language: the English passage always, the Thai one at first only; nDCG has one answer to find.
        (SAME, "SLR@2"): (1.0, 0.5),
        (SAME, "nDCG@2"): (1.0, 0.5),
        # Cross-language: German and Thai for English questions, of which one is found in the end.
        (CROSS, "TLR@2"): (0.25, 0.5),
        (CROSS, "nDCG@2"): (second / (1 + second) / 2, second / (1 + second)),
    }
    assert set(found.columns) == {Column(*key) for key in expected}
    for key, pair in expected.items():
        assert (found.mean("a", Column(*key)), found.mean("b", Column(*key))) == pytest.approx(pair)
    tested = found.whole.tested(Column(SAME, "SLR@2"), ("a", "b"))
    assert (tested.difference, tested.queries, tested.clusters) == (-0.5, 40, 20)
    assert tested.significant
    # Over all queries, the gain of one language hides the loss of the other; by language it does not.
    recall = Column(ALL, "R@2")
    assert not found.whole.tested(recall, ("a", "b")).significant
    tests = [found.by_language[tag].tested(recall, ("a", "b")) for tag in ("en", "th")]
    assert [round(test.difference, 6) for test in tests] == [0.333333, -0.333333]
    assert all(test.significant for test in tests)


def test_the_matrix_of_a_run_and_what_is_said_of_the_tests(folder):
    found = compared(folder, BEFORE, AFTER, BEFORE)
    first, second = matrices(found)
    assert (first.pair, second.pair, first.measure) == (("a", "b"), ("a", "c"), "R@2")
    cell = first.cells["th"]["th"]
    assert (cell.before, cell.after, cell.tested.queries) == (1.0, 0.0, 20)
    assert describe_test(found.clusters) == (
        "Significant: p below 0.05 in a paired randomisation test that flips the signs of whole clusters (20 by "
        "group; 100,000 random flips, seed 20260), corrected for multiple tests after Holm."
    )


def test_winners_and_losers_by_name(folder):
    after = {**BEFORE, "t03-qen": ["t03-en", "t03-de"], "t05-qth": [], "t07-qth": ["t07-en", "t09-th"]}
    found = example_queries(compared(folder, BEFORE, after), Column(ALL, "nDCG@2"), many=2)[0]
    assert (found.better, found.worse, found.same) == (1, 2, 37)
    assert [example.query.id for example in found.winners] == ["t03-qen"]
    # From 1 to 0, and from 1 to one answer of two places: the largest loss first.
    assert [example.query.id for example in found.losers] == ["t05-qth", "t07-qth"]
    assert found.losers[0].hits[1] == []
    lost = found.losers[1]
    assert (lost.language, lost.before, lost.after) == ("th", 1.0, pytest.approx(1 / (1 + 1 / math.log2(3))))
    assert [tuple(hit) for hit in lost.hits[0]] == [
        ("t07-th", "th", True, "On t07 in th."),
        ("t07-en", "en", True, "On t07 in en."),
    ]
    assert [hit.relevant for hit in lost.hits[1]] == [True, False]


def test_every_later_run_is_judged_against_the_first(folder):
    found = findings(compared(folder, BEFORE, AFTER, BEFORE))
    # The usual measures, whatever else was asked for.
    assert found.summary == [
        "Readers find the answer in their own language less often: within the first three hits for 50% of the "
        "questions that have one, 100% before (own@3). Keep a (run0) rather than b (run1): over 40 questions, nDCG@20 "
        "falls from .617 to .531 (by more than chance for questions in th) and answers in the searcher's own language "
        "are found less often (SLR@20 1.000 to .500), "
        "even though answers in other languages are found more often (TLR@20 .250 to .500) and questions in en do "
        "better (nDCG@20 +.296); chance alone would hardly do that (corrected p below .001).",
        "Too few questions to tell a (run0) and c (run2) apart: over 40 questions, nDCG@20 stays at .617, and it takes "
        "about 300 to see a change of .01, so judge more of them first.",
    ]
    assert [(letter, verdict.kind) for letter, verdict in found.verdicts.items()] == [
        ("b", "do not shift"),
        ("c", "too few"),
    ]
    assert findings(compared(folder, BEFORE)).summary == ["a (run0) over 40 queries: nDCG@2 .8066."]


def test_the_document_holds_everything(folder):
    found = compared(folder, BEFORE, AFTER)
    verdicts = findings(found).verdicts
    examples = example_queries(found, found.primary)
    made = json.loads(json.dumps(ComparisonFindings(found, matrices(found), examples, verdicts, ["one"]).to_dict()))
    (verdict,) = made["verdicts"]
    assert (verdict["before"], verdict["after"], verdict["kind"]) == ("a", "b", "do not shift")
    assert [run["name"] for run in made["runs"]] == ["run0", "run1"]
    assert made["test"]["clustered_by"] == "group"
    (tested,) = made["sections"][SAME]["SLR@2"]["tests"]
    assert (tested["before"], tested["after"], tested["difference"], tested["significant"]) == ("a", "b", -0.5, True)
    assert made["by_language"]["th"]["sections"][ALL]["R@2"]["means"] == pytest.approx({"a": 2 / 3, "b": 1 / 3})
    assert made["matrices"][0]["cells"]["en"]["de"]["after"] == 1.0
    assert len(made["examples"][0]["winners"]) == 5
    assert made["examples"][0]["losers"][0]["hits"]["after"][0]["text"].startswith("On t")
    assert (made["warnings"], made["conditions"]) == (["one"], [])


def test_probabilities_have_the_digits_that_matter():
    assert [probability(p) for p in (None, 0.00001, 0.0312, 1.0)] == ["-", "<.0001", ".0312", "1.0000"]


def test_queries_with_and_without_an_answer_in_their_language_stand_apart(folder):
    # No Thai passage answers any more.
    fewer = {query: {name: 1 for name in judged if not name.endswith("-th")} for query, judged in QRELS.items()}
    found = compared(write_dataset(folder.parent / "fewer", DOCUMENTS, QUERIES, fewer), BEFORE, AFTER)
    thai = [query for query, (language, *_) in QUERIES.items() if language == "th"]
    assert {name: len(part.queries) for name, part in found.slices.items()} == {OWN: 20, NONE: 20}
    assert sorted(found.slices[NONE].queries) == sorted(thai)
    told = ComparisonFindings(found, [], [], {}, []).to_dict()["slices"]
    # The later run finds the German passage, too, for English questions; for Thai ones the second place is as before.
    (english,) = told[OWN]["sections"]["all"]["R@2"]["tests"]
    assert (english["difference"], english["significant"]) == (0.5, True)
    assert told[NONE]["sections"]["all"]["R@2"]["means"] == {"a": 0.5, "b": 0.5}
    # Recall of answers in one's own language and in others is tested there, too.
    assert {name: set(section) for name, section in told[OWN]["sections"].items()} == {
        "all": {"nDCG@2", "R@2"},
        "same-language": {"SLR@2"},
        "cross-language": {"TLR@2"},
    }
    # Where every query has an answer in its language there is nothing to tell apart.
    assert compared(folder, BEFORE, AFTER).slices == {}


def test_what_is_unknown_is_in_no_slice():
    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}, "q3": {"d1": 1}, "q4": {"d1": 0}}
    asked = {"q1": "en", "q2": "en", "q3": None, "q4": "en", "q5": "en"}
    assert slices(qrels, asked, {"d1": "en", "d2": None}) == {OWN: ["q1"], NONE: ["q2"]}


def test_where_every_query_has_an_answer_in_its_language_there_are_no_slices():
    assert slices({"q1": {"d1": 1}}, {"q1": "en", "q2": None}, {"d1": "en"}) == {}
    assert slices({"q1": {"d1": 1}}, {"q1": "en"}, {"d1": "de"}) == {NONE: ["q1"]}

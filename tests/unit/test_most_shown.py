"""The language that is shown most, beside its share of what is relevant, by hand."""

import pytest

from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material
from langshift.evaluate.measures.most_shown import LanguageShare, crowding, format_figure, language_shares, most_shown

NAME = "MostShown@2"
LANGUAGES = {"a-en": "en", "a-de": "de", "b-en": "en", "b-de": "de", "b-zh": "zh", "c-zh": "zh", "x": None}
RELEVANT, HITS = "what is relevant", "the first 2 hits"
QUERIES = {"q1": "en", "q2": "de", "q3": "en"}


def measured(run, qrels, documents=LANGUAGES, **more):
    return score([NAME], Material(qrels, run, QUERIES, documents, **more))[NAME]


QRELS = {"q1": {"a-en": 1, "a-de": 1, "b-zh": 0}, "q2": {"b-de": 1, "c-zh": 2}}
RUN = {"q1": {"b-zh": 0.9, "a-en": 0.8, "a-de": 0.7}, "q2": {"c-zh": 0.9, "x": 0.8}}


def test_by_hand():
    found = measured(RUN, QRELS)
    # Four hits: two Chinese, one English, one of unknown language; q3 has no answer.
    assert (found.mean, found.queries, found.left_out, dict(found.per_query)) == (0.5, 2, 1, {})
    assert language_shares(found) == [
        LanguageShare("zh", 0.5, 0.25, RELEVANT, HITS),
        LanguageShare("en", 0.25, 0.25, RELEVANT, HITS),
        LanguageShare("de", 0.0, 0.5, RELEVANT, HITS),
    ]
    assert format_figure(found) == "zh .5000"
    assert most_shown(found).sentence == "zh has 50% of the first 2 hits and 25% of what is relevant"
    # Over some of the queries, both shares are theirs.
    assert most_shown(found.over(["q2"])) == LanguageShare("zh", 0.5, 0.5, RELEVANT, HITS)


def test_without_judgements_it_stands_beside_the_share_of_the_documents():
    found = most_shown(measured(RUN, {}))
    assert (found.language, found.fair, found.beside) == ("zh", pytest.approx(1 / 3), "the documents")
    # Where the documents are not all known, those that the index holds count.
    found = measured(RUN, {}, held={"zh": 1, "en": 9})
    assert most_shown(found) == LanguageShare("zh", 0.5, 0.1, "the documents", HITS)


def test_an_index_of_one_language_crowds_nothing_out():
    run = {query: dict.fromkeys(("a-en", "b-en"), 1.0) for query in QUERIES}
    found = most_shown(measured(run, {query: {"a-en": 1} for query in QUERIES}))
    assert found == LanguageShare("en", 1.0, 1.0, RELEVANT, HITS)
    # Nor does one that only has these, of a dataset that has more, against another that has no others either.
    alike = measured(run, QRELS)
    assert crowding(alike, alike) == ""


def test_without_a_language_there_is_no_figure():
    for found in (measured({"q1": {"x": 1.0}}, QRELS), measured({}, QRELS), measured(RUN, QRELS, {})):
        assert (found.mean, most_shown(found), format_figure(found)) == (None, None, "-")

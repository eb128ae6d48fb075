"""Rules of a made test set that need no index: what is drawn, which third, where the span is, what a reranker reads."""

import json
import random
from collections import Counter
from types import SimpleNamespace

import pytest

from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.evaluate.convert.snapshot import IndexedDocument
from langshift_lab.construct.construct import draw_passages
from langshift_lab.construct.contrast import windows, without_span
from langshift_lab.construct.passages import Candidate, candidates, draw, passage
from langshift_lab.construct.questions import (
    DraftQuestion,
    QuestionReply,
    find_span,
    longest_span,
    question_prompt,
    read_draft,
    read_translation,
    translation_prompt,
    without_repeats,
)
from langshift_lab.generation.generators import Answer

SENTENCES = [f"Sentence number {number} speaks of the thing {chr(97 + number)}." for number in range(12)]
DOCUMENT = IndexedDocument("d", "en", "Things", " ".join(SENTENCES), None)
QUESTION = "What does the fifth sentence of it speak of?"


@pytest.fixture(scope="module")
def detector():
    return open_detector()


def test_documents_are_drawn_evenly_whatever_their_order():
    found = [Candidate(f"{tag}{n}", tag, 300 + 10 * n) for tag, many in (("de", 90), ("en", 60)) for n in range(many)]
    found += [Candidate(f"th{n}", "th", 300) for n in range(4)] + [Candidate(f"sw{n}", "sw", 400) for n in range(6)]
    drawn = draw(found, 60, 1)
    random.Random(1).shuffle(found)
    assert draw(found, 60, 1) == drawn
    assert len({one.id for one in drawn}) == len(drawn) == 60
    assert Counter(one.id[:2] for one in drawn) == {"de": 27, "en": 27, "sw": 6}
    assert Counter(one.third for one in drawn) == {0: 20, 1: 20, 2: 20}
    # Short, medium and long documents alike: German ones have 30 of each.
    assert Counter(int(one.id[2:]) // 30 for one in drawn if one.id.startswith("de")) == {0: 9, 1: 9, 2: 9}
    assert {one.id for one in draw(found, 60, 2)} != {one.id for one in drawn}
    assert draw(found[:0], 60, 1) == []


def test_a_document_needs_a_language_and_three_thirds():
    def named(language, length):
        return IndexedDocument("x", language, "", "x" * length, None)

    assert candidates([named(None, 999), named("de", 299), named("th", 99)]) == []
    assert [one.length for one in candidates([named("de", 300), named("th", 100)])] == [300, 100]


def test_an_index_of_short_documents_has_no_thirds():
    few = SimpleNamespace(documents=lambda: [DOCUMENT._replace(id=f"{number}") for number in range(4)])
    with pytest.raises(UsageError) as refused:
        draw_passages(few, "news", 10, 0)
    assert str(refused.value) == (
        "news has no language with five documents of 300 characters or more (100 in scripts without spaces), so no "
        "test set can be made of it: write questions by hand, or name an index of longer documents."
    )


def test_a_third_is_whole_sentences():
    for third in range(3):
        assert passage(DOCUMENT, third, 0).text == " ".join(SENTENCES[4 * third : 4 * third + 4])
    whole = DOCUMENT._replace(text="x" * 300)
    assert [(one.start, one.end) for one in (passage(whole, third, 0) for third in (0, 2))] == [(0, 100), (200, 300)]
    long = passage(DOCUMENT._replace(text=DOCUMENT.text * 100), 1, 0)
    assert 5990 <= len(long.text) <= 6000
    assert len(DOCUMENT.text) * 100 / 3 <= long.start < long.end <= len(DOCUMENT.text) * 200 / 3 + 100


def test_a_span_is_once_word_for_word_in_its_third():
    middle = passage(DOCUMENT, 1, 0)
    start, end = find_span(f"  {SENTENCES[5]}\n".replace(" number", "\nnumber"), middle)
    assert DOCUMENT.text[start:end] == SENTENCES[5]
    assert find_span("Sentence number", middle) is None  # everywhere
    assert find_span(SENTENCES[0], middle) is None  # in another third
    assert find_span(SENTENCES[5].lower(), middle) is None
    assert find_span(" ", middle) is None
    assert find_span("a.*b", middle) is None
    short = DOCUMENT._replace(text=f" {SENTENCES[0]} ")
    assert find_span(SENTENCES[0], passage(short, 1, 0)._replace(start=0, end=len(short.text))) is None  # all of it
    long = DOCUMENT._replace(text=f"{'a b ' * 151}. {SENTENCES[0]}")
    assert find_span("a b " * 151, passage(long, 0, 0)._replace(start=0, end=len(long.text))) is None
    # In the form in which indices hold texts.
    swiss = DOCUMENT._replace(text=f"Z\u00fcrich. {SENTENCES[0]}")
    assert find_span("Zu\u0308rich.", passage(swiss, 0, 0)._replace(start=0, end=len(swiss.text))) == (0, 7)


def test_what_is_read_of_an_answer(detector):
    middle = passage(DOCUMENT, 1, 0)

    def read(text, finish="stop"):
        return read_draft(Answer(text, finish), middle, detector)

    good = json.dumps({"question": QUESTION, "answer": SENTENCES[5]})
    draft = DraftQuestion(middle, QUESTION, find_span(SENTENCES[5], middle))
    assert read(good) == draft
    assert read(f"Sure {{see below}}:\n```json\n{good}\n``` Is that {{fine}}?") == draft
    assert read(good.replace(" fifth", "\n  fifth")) == draft
    assert read(good, "refusal") == read("") == read('{"question": null}') == "refused"
    for unreadable in (
        "No.",
        "{",
        '["question"]',
        '{"answer": "x"}',
        '{"question": 7}',
        '{"question": "?"}',
        "{" * 9999,
    ):
        assert read(unreadable) == "unreadable"
    assert read('{"a":' * 5000) == "unreadable"
    assert read(json.dumps({"question": "why " * 600, "answer": SENTENCES[5]})) == "unreadable"
    assert read(json.dumps({"question": QUESTION})) == "unreadable"
    assert read(json.dumps({"question": QUESTION, "answer": SENTENCES[1]})) == "span_not_found"
    german = "Wovon handelt der f\u00fcnfte Satz in diesem langen Text?"
    assert read(json.dumps({"question": german, "answer": SENTENCES[5]})) == "wrong_language"

    def translated(text):
        return read_translation(Answer(json.dumps({"question": text}), "stop"), QUESTION, "de", detector)

    assert translated(german) == QuestionReply(german, {"question": german})
    assert translated(QUESTION) == translated(f" {QUESTION.upper()} ") == "wrong_language"
    assert [one.text for one in without_repeats([draft, draft._replace(text="Who?"), draft._replace(text="who?")])] == [
        QUESTION
    ]


def test_prompts_say_what_is_wanted():
    prompt = question_prompt(passage(DOCUMENT, 1, 0))
    assert prompt.endswith(f"Title: Things\n\nPassage:\n{' '.join(SENTENCES[4:8])}")
    assert "(en)" in prompt
    assert "Title:" not in question_prompt(passage(DOCUMENT._replace(title=""), 1, 0))
    assert "the tag th," in translation_prompt(QUESTION, "th")


@pytest.mark.parametrize("language", ["en", "th"])
def test_every_span_is_whole_in_a_window(language):
    longest = longest_span(language)
    for length in (1, longest - 1, longest, longest + 1, 2 * longest, 5 * longest + 7):
        parts = windows(length, language)
        assert (parts[0][0], parts[-1][1]) == (0, length)
        for start in range(max(length - longest, 0) + 1):
            end = min(start + longest, length)
            assert any(first <= start and end <= last for first, last in parts)


def test_a_window_loses_what_it_holds_of_a_span():
    text = "0123456789"
    cuts = {(0, 4): "0123", (0, 6): "0123", (5, 10): "6789", (7, 10): "789", (2, 9): "23678"}
    assert {window: without_span(text, window, (4, 6)) for window in cuts} == cuts

"""Measures of one answer, worked out by hand."""

import pytest

from langshift.debias.detector import open_detector
from langshift.languages import primary
from langshift_lab.generation.scoring import coherence, contains, exact_match, normalise, token_f1


@pytest.fixture(scope="module")
def detector():
    return open_detector()


@pytest.mark.parametrize(
    ("text", "language", "normalised"),
    [
        ("  The Norman  CONQUEST, of 1066! ", "en", "norman conquest of 1066"),
        ("Die Straße", "de", "strasse"),
        ("La  Ｔorre", "es", "torre"),
        ("the end", "fr", "the end"),  # only the question's own articles
        ("the end", None, "the end"),
        ("The", "en", "the"),
        ("+", "en", "+"),
        ("", "en", ""),
        ("«1066»", "ru", "1066"),
    ],
)
def test_normalised_as_mlqa_does_it(text, language, normalised):
    assert normalise(text, language) == normalised


def test_tokens_are_characters_where_words_have_no_spaces():
    assert normalise("公元 1066年。", "zh") == normalise("公元1066 年", "zh") == "公 元 1066 年"
    assert contains("那是公元 1066年的事。", ("公元1066年",), "zh")


def test_containment_and_exact_match():
    references = ("Norman Conquest", "1066")
    assert contains("It was the Norman conquest.", references, "en")
    assert not exact_match("It was the Norman conquest.", references, "en")
    assert exact_match("The Norman Conquest!", references, "en")
    assert exact_match("1066", references, "en")
    assert not contains("It was the Roman conquest.", references, "en")


def test_an_empty_answer_equals_and_holds_nothing_even_where_a_reference_is_empty_once_normalised():
    assert not contains("", ("The", "+"), "en")
    assert not exact_match("", ("The", "+", ""), "en")
    assert not contains("Some answer", ("", "+"), "en")
    assert token_f1("", ("The", ""), "en") == 0
    assert token_f1("any", (), "en") == 0


def test_f1_takes_multisets_and_the_best_reference():
    # A = {norman, conquest, of, england}, R = {norman, conquest}: 2 * 2 / (4 + 2).
    assert token_f1("the Norman conquest of England", ("Norman Conquest",), "en") == pytest.approx(4 / 6)
    # A = {york, york}, R = {new, york}: one york in common, 2 * 1 / (2 + 2).
    assert token_f1("York, York", ("New York",), "en") == pytest.approx(0.5)
    assert token_f1("York, York", ("New York", "york york"), "en") == 1
    # 公元1066年 and 1066年: two tokens of four and two in common, 2 * 2 / (4 + 2).
    assert token_f1("公元1066年", ("1066年",), "zh") == pytest.approx(4 / 6)
    assert token_f1("Rome", ("New York",), "en") == 0


GERMAN = "Die normannische Eroberung Englands begann im Herbst des Jahres 1066."


@pytest.mark.parametrize(
    ("answer", "language", "coherent"),
    [
        (GERMAN, "de", True),
        (GERMAN, "en", False),
        (GERMAN, None, None),
        (GERMAN, "und", None),
        ("", "de", None),
        ("Im Herbst 1066.", "de", None),
        ("1066 1066 1066 1066 1066 1066", "de", None),
        ("Xqzt Bvkrw Plmqz Wkjhx Zzqrt", "de", None),
        ("1066年,诺曼底公爵威廉率领军队渡海征服了英格兰王国全境并加冕为王。", "zh", True),
    ],
)
def test_coherence_of_whole_sentences_alone(detector, answer, language, coherent):
    assert coherence(answer, language, detector) is coherent


def test_nineteen_letters_are_undecided_and_twenty_are_not(detector):
    twenty = "Das war im Winter danach"  # 3 + 3 + 2 + 6 + 6 letters
    assert sum(map(str.isalpha, twenty)) == 20
    assert coherence(twenty, "de", detector) is True
    assert coherence(twenty[:-1], "de", detector) is None


def test_languages_that_are_hard_to_tell_apart_are_undecided(detector):
    croatian = "Normansko osvajanje Engleske počelo je u jesen te godine i trajalo je vrlo dugo."
    found = detector.detect(croatian)
    other = {"hr": "sr", "sr": "hr", "bs": "hr"}[primary(found.language)]
    assert coherence(croatian, other, detector) is None

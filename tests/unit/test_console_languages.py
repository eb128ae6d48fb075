"""The language map's computing: what is asked, how near it is, and where documents lie."""

import threading

import numpy as np
import pytest

from langshift.debias.similarity import with_norm_1
from langshift.web.language_map.measure import (
    DrawnDocument,
    EncodedQuestions,
    answer_mask,
    comparable,
    fit_axes,
    in_rounds,
    mean_similarities,
    measure_nearness,
    most_frequent,
    own_language_lead,
    pictured,
    placed,
)


def drawn(name, language="en", group=None, words="some words", stored=(1, 0), made=(1, 0)):
    made = None if made is None else np.array(made, np.float32)
    return DrawnDocument(name, language, group, words, np.array(stored, np.float32), made)


def test_the_languages_with_the_most_documents_are_shown_the_first_by_tag_of_equals():
    assert most_frequent({"th": 2, "en": 9, "de": 2, "fr": 1}, 3) == ("en", "de", "th")
    assert most_frequent({}) == ()


def test_rows_are_brought_to_length_1_and_zeros_stay_zeros():
    assert with_norm_1(np.array([[3, 4], [0, 0]], np.float32)).tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_a_question_is_not_compared_with_its_own_document_nor_with_translations_of_it():
    documents = [drawn("a", group="g"), drawn("b", group="g"), drawn("c"), drawn("d")]
    assert answer_mask([documents[0], documents[2]], documents).tolist() == [
        [True, True, False, False],
        [False, False, True, False],
    ]
    assert answer_mask([], documents).shape == (0, 4)


def test_similarities_are_the_mean_cosine_of_every_pair_of_languages():
    questions = np.array([[1, 0], [0, 2]], np.float32)
    documents = np.array([[5, 0], [0, 1], [3, 4]], np.float32)
    left_out = np.array([[True, False, False], [False, False, False]])
    found = mean_similarities(questions, documents, ["en", "de"], ["en", "en", "de"], ["en", "de", "th"], left_out)
    assert found[:2, :2] == pytest.approx(np.array([[0.0, 0.6], [0.5, 0.8]]))
    assert np.isnan(found[2]).all()
    assert np.isnan(found[:, 2]).all()


def test_a_language_of_which_every_pair_is_left_out_has_no_similarity():
    vectors = np.eye(2)
    found = mean_similarities(vectors[:1], vectors, ["en"], ["en", "de"], ["en", "de"], np.array([[True, False]]))
    assert np.isnan(found[0, 0])
    assert found[0, 1] == 0


def test_the_lead_of_a_language_is_over_all_others_that_are_known():
    known = np.array([[0.9, 0.5, 0.3], [0.2, 0.8, np.nan], [np.nan, np.nan, np.nan]])
    assert own_language_lead(known) == pytest.approx(((0.9 - 0.4) + (0.8 - 0.2)) / 2)
    assert own_language_lead(np.array([[0.9]])) is None
    assert own_language_lead(np.full((2, 2), np.nan)) is None


def test_questions_are_asked_in_rounds_of_a_few_of_every_language():
    documents = [drawn(f"{tag}{n}", tag) for tag in ("en", "de") for n in range(3)]
    documents[1] = documents[1]._replace(words=None)
    names = [[one.id for one in together] for together in in_rounds(documents, most=3, at_once=2)]
    assert names == [["en0", "en2", "de0", "de1"], ["de2"]]
    assert [len(one) for one in in_rounds(documents, most=1, at_once=2)] == [2]
    assert list(in_rounds([])) == []


def test_the_axes_are_the_directions_in_which_vectors_differ_most():
    vectors = np.array([[2.0, 0, 5], [-2.0, 0, 5], [0, 1, 5], [0, -1, 5]])
    axes = fit_axes(vectors)
    assert axes.centre.tolist() == [0, 0, 5]
    assert axes.directions == pytest.approx(np.array([[1, 0, 0], [0, 1, 0]]))
    assert axes.share == pytest.approx((0.8, 0.2))
    assert placed(vectors, axes) == pytest.approx(vectors[:, :2])
    assert placed(vectors + np.array([1, 0, 9]), axes) == pytest.approx(vectors[:, :2] + np.array([1, 0]))


def test_the_same_vectors_the_other_way_round_have_the_same_axes():
    vectors = np.random.default_rng(1).standard_normal((9, 5))
    assert fit_axes(vectors[::-1]).directions == pytest.approx(fit_axes(vectors).directions)


@pytest.mark.parametrize("vectors", [np.ones((1, 3)), np.ones((4, 3)), np.zeros((2, 3))])
def test_vectors_that_do_not_differ_lie_in_one_point(vectors):
    axes = fit_axes(vectors)
    assert axes.share == (0, 0)
    assert not placed(vectors, axes).any()


def test_vectors_on_a_line_have_one_direction():
    axes = fit_axes(np.array([[1.0, 1], [2, 2], [3, 3]]))
    assert axes.share == pytest.approx((1, 0))
    assert not axes.directions[1].any()


def test_documents_that_cannot_be_taken_back_are_left_out_and_counted():
    documents = [drawn("a"), drawn("b", made=None), drawn("c")]
    kept, remarks = comparable("news-v0001", documents, held=True)
    assert [one.id for one in kept] == ["a", "c"]
    assert remarks == ["For 1 of the 3 documents drawn, the shift cannot be reversed exactly: they are left out here."]
    assert comparable("news-v0001", documents[:1], held=False) == (documents[:1], [])


@pytest.mark.parametrize(("made", "held"), [(None, True), ((1, 0), False)])
def test_where_the_shift_is_not_known_all_are_shown_as_they_are(made, held):
    documents = [drawn("a", made=None), drawn("b", made=made)]
    assert comparable("news-v0001", documents, held=held) == (
        documents,
        ["Vectors before the shift are not shown: news-v0001 does not store what is needed to reverse it exactly."],
    )
    assert pictured(documents).before is None
    assert measure_nearness(asked(documents), documents, ["en"]).before is None


def test_an_index_without_documents_says_so():
    assert comparable("news-v0001", [], held=True) == (
        [],
        ["news-v0001 has no document with a language and a vector, so there is nothing to show."],
    )


def asked(documents, vectors=None):
    stored = np.array([one.stored for one in documents])
    return EncodedQuestions(documents, stored if vectors is None else np.array(vectors), True)


def test_before_is_of_vectors_as_the_encoder_made_them_and_after_of_those_searched():
    documents = [drawn("a", "en"), drawn("b", "de", stored=(3, 0), made=(0, 2))]
    found = measure_nearness(asked(documents, [[1.0, 0], [1, 0]]), documents, ["en", "de"])
    assert found.before[0, 1] == 0
    assert found.after[0, 1] == 1
    assert found.questions == {"en": 1, "de": 1}
    seen = pictured(documents)
    assert seen.languages == ["en", "de"]
    assert seen.before[0] != pytest.approx(seen.before[1])
    assert seen.after[0] == pytest.approx(seen.after[1])


def test_where_nothing_was_moved_there_is_no_before():
    documents = [drawn("a"), drawn("b", "de")]
    assert measure_nearness(asked(documents), documents, ["en", "de"]).before is None
    assert pictured(documents).before is None


class TestMaps:
    """Maps are measured once, in the background."""

    @pytest.fixture
    def maps(self):
        return pytest.importorskip("langshift.web.language_map.view").LanguageMapJobs()

    def test_a_map_is_measured_in_the_background_and_kept(self, maps):
        go, done, calls = threading.Event(), threading.Event(), []

        def measuring(tell):
            calls.append(tell("Encoding"))
            go.wait(60)
            return "map"

        work = maps.of("u", 3, measuring)
        assert work.done is None
        go.set()
        until(lambda: work.done == "map", done)
        assert work.progress == "Encoding"
        assert maps.of("u", 3, measuring) is work
        # Documents come all the time: a map is not measured again at once.
        assert maps.of("u", 4, measuring) is work
        assert len(calls) == 1

    def test_why_there_is_none_is_told_once_and_the_next_one_begins_again(self, maps):
        go = threading.Event()

        def failing(_):
            go.wait(60)
            raise ValueError("no")

        work = maps.of("u", 3, failing)
        go.set()
        until(lambda: work.done is not None, threading.Event())
        with pytest.raises(ValueError, match="no"):
            maps.of("u", 3, failing)
        assert maps.of("u", 3, lambda _: "map") is not work

    def test_a_map_of_other_documents_is_measured_again_after_a_while(self, maps, monkeypatch):
        monkeypatch.setattr("langshift.web.language_map.view._LASTS", 0.0)
        work = maps.of("u", 3, lambda _: "map")
        until(lambda: work.done is not None, threading.Event())
        assert maps.of("u", 3, lambda _: "map") is work
        assert maps.of("u", 4, lambda _: "map") is not work


def until(true, waiting):
    """Wait until it is true."""
    for _ in range(6000):
        if true():
            return
        waiting.wait(0.01)
    raise AssertionError("it never was")

"""Calibrating an index: its questions, and what is made of what was found for them; what needs no cluster."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from langshift.commands.anchors import read_log, reason
from langshift.errors import UsageError
from langshift.evaluate.datasets.logs import QueryLog
from langshift.plugin.metadata import USUAL
from langshift.retrieval.calibration.calibrate import (
    ALL_TRANSLATED,
    RERANK_STRENGTHS,
    TOLERATED,
    WORTH_WHILE,
    Calibration,
    CalibrationCost,
    _strength,
    counted,
    levels_around,
    rerank_strength,
)
from langshift.retrieval.calibration.changes import (
    Prediction,
    SliceChange,
    gain,
    loss,
    part_changes,
    readers_lose,
    score_rankings,
)
from langshift.retrieval.calibration.questions import (
    OVERLAPS,
    VAGUENESS,
    CalibrationPassage,
    CalibrationQuestion,
    cut_out,
    make_questions,
    masked,
    shares,
)
from langshift.retrieval.calibration.stored import NoAnswer, spread_of
from langshift.retrieval.question import AnchorModel, SearchQuery

SENTENCE = "The sea rises and falls twice a day because the Moon pulls at the water of it"


def chance(seed=1):
    return np.random.default_rng(seed)


def cut(text, language="en", seed=1):
    """The words that are cut out; None where there are none."""
    found = cut_out(text, language, chance(seed))
    return None if found is None else str(found)


def test_a_question_is_sixteen_words_in_a_row_of_one_sentence():
    text = f"Short one. {SENTENCE}. {SENTENCE.upper()}!"
    for number in range(50):
        question = cut(text, seed=number)
        assert len(question.split()) == 16
        assert question in f"{SENTENCE}." or question in f"{SENTENCE.upper()}!"
    assert len({cut(text, seed=number) for number in range(50)}) == 4
    assert cut(text) == cut(text)


def test_a_short_sentence_is_a_question_as_a_whole_and_a_shorter_one_is_none():
    assert cut("Yeast makes dough rise.\nToo short.") == "Yeast makes dough rise."
    assert cut("Much too short.") is None
    assert cut("") is None
    assert cut(" \n ", "zh") is None


@pytest.mark.parametrize(("language", "length"), [("zh", 32), ("ja", 32), ("th", 64)])
def test_where_words_have_no_spaces_some_characters_stand_for_a_word(language, length):
    sentence = "月球的引力使海水每天涨落两次" * 6
    found = cut_out(f"{sentence}。{sentence}。", language, chance())
    assert len(found.parts) == 16
    assert len(str(found)) == length
    assert str(found) in sentence
    assert cut_out("潮汐。", language, chance()) is None


def test_a_question_is_never_longer_than_a_search_takes():
    assert len(cut(" ".join(["x" * 900] * 20))) == 300


def test_halves_of_characters_are_left_out():
    assert cut("Only words and \ud83dnothing else") == "Only words and nothing else"


def test_the_languages_of_a_sample_get_even_shares():
    assert shares({"en": 900, "de": 900, "th": 10, "la": 4}, 100) == {"de": 45, "en": 45, "th": 10}
    assert shares({"en": 900}, 100) == {"en": 100}
    assert shares({"en": 20, "de": 20}, 100) == {"de": 20, "en": 20}
    assert shares({"la": 4}, 100) == {}
    assert shares({}, 100) == {}
    assert sum(shares({f"l{n}": 50 + n for n in range(7)}, 100).values()) == 100


class Encoding:
    """In place of a searcher: encodes and moves, and no answers are found but the passages themselves."""

    def __init__(self):
        self.heard = []
        self.index = SimpleNamespace(
            index="news-v0001", fields=SimpleNamespace(language="language", vector="embedding", texts=())
        )
        self.client = None

    def encode(self, texts):
        self.heard.append(list(texts))
        return np.full((len(texts), 2), len(self.heard), np.float32)


def passage(name, language, text, seed=1):
    cut = cut_out(text, language, chance(seed))
    return CalibrationPassage(name, name, language, text, cut, None, np.float32([1, 0]))


PASSAGES = [
    passage("sea", "en", SENTENCE),
    passage("dough", "en", "yeast bubbles lift every loaf while heat sets crumb around them slowly"),
    passage("yue", "zh", "月球的引力使海水每天涨落两次而太阳也有作用"),
]


@pytest.fixture
def asked(monkeypatch):
    """Makes questions of the passages; gives them with what was encoded."""
    hides = {"x"}

    def answered(_, plans):
        near = "the tide turns when water of the sea is pulled by moon and sun"
        return [
            ({one.id: False, "other": True}, {"other": True}, hides, near, {one.language, "en"})
            for one in PASSAGES
            if plans
        ]

    monkeypatch.setattr("langshift.retrieval.calibration.questions.execute_all", answered)

    def made(seed=0):
        searcher = Encoding()
        return make_questions(searcher, PASSAGES, seed), searcher.heard

    return made


def test_each_document_is_asked_for_in_words_of_which_all_half_or_none_are_its_own(asked):
    questions, heard = asked()
    assert len(questions) == len(PASSAGES) * len(VAGUENESS) * len(OVERLAPS) * 2
    of_sea = [one.query.words.split() for one in questions if one.document == 0 and not one.hides]
    own = PASSAGES[0].cut_out.parts
    kept = [sum(word == ours for word, ours in zip(words, own, strict=True)) for words in of_sea]
    # Of the vaguer ones' words, as many as their vectors are made of; a word may come back by chance.
    for found, least in zip(kept, [16, 8, 0, 8, 4, 0, 4, 2, 0], strict=True):
        assert least <= found <= least + 4
    others = set(f"{PASSAGES[0].text} {PASSAGES[1].text}".split())
    assert all(set(words) <= others for words in of_sea)
    # A vector is made of what is left of the cut-out, in its order.
    assert [len(heard[level][0].split()) for level in range(len(VAGUENESS))] == [16, 8, 4]
    assert heard[0] == [str(one.cut_out) for one in PASSAGES]
    assert [len(heard[level][2]) for level in range(len(VAGUENESS))] == [len(heard[0][2]), 12, 6]
    for one in questions:
        assert one.query.language == PASSAGES[one.document].language
        if one.query.language == "zh":
            assert " " not in one.query.words
            assert set(one.query.words) <= set(PASSAGES[2].text)
    assert {one.query.vector.tolist()[0] for one in questions} == {1.0, 2.0, 3.0}


def test_without_known_translations_a_question_is_asked_in_another_language_in_words_that_mislead(monkeypatch):
    near = "tide turns when water of sea is pulled by moon and sun every single day"
    monkeypatch.setattr(
        "langshift.retrieval.calibration.questions.execute_all",
        lambda _, plans: [({one.id: False}, {}, (), near, set()) for one in PASSAGES if plans],
    )
    questions = make_questions(Encoding(), PASSAGES, 0)
    there, elsewhere = ([one for one in questions if one.elsewhere == other] for other in (False, True))
    # One for each vector, of each document with another share of words.
    asked = {(one.document, one.vagueness): one for one in elsewhere}
    assert (len(there), len(elsewhere), len(asked)) == (27, 9, 9)
    assert all(len({asked[number, level].overlap for level in VAGUENESS}) == 3 for number in range(3))
    for one in there:
        other = asked[one.document, one.vagueness]
        assert not other.hides
        assert other.query.language != one.query.language
        assert other.query.vector.tolist() == one.query.vector.tolist()
    assert not any(one.translated for one in questions)
    assert {name for one in elsewhere for name, other in one.answers.items() if other} == {"sea", "dough", "yue"}
    # Of the words, half of what vagueness and overlap say is the misleading document's.
    for one in elsewhere:
        if one.query.language == "en":
            share = {"all": 1, "half": 0.5, "none": 0}[one.overlap] * one.vagueness / 2
            assert sum(word in near.split() for word in one.query.words.split()) >= int(16 * share) - 1


def test_each_question_is_asked_with_its_document_and_without(asked):
    questions, _ = asked()
    there, hidden = questions[::2], questions[1::2]
    assert [one.query for one in there] == [one.query for one in hidden]
    assert all(one.answers == {PASSAGES[one.document].id: False, "other": True} for one in there)
    assert all(one.answers == {"other": True} and one.hides for one in hidden)
    assert not any(one.hides for one in there)


def test_each_question_tells_in_how_many_of_the_languages_asked_in_its_answer_is(asked):
    questions, _ = asked()
    assert [PASSAGES[one.document].language for one in questions[::18]] == ["en", "en", "zh"]
    assert [one.translated for one in questions[::18]] == [pytest.approx(2 / 3), pytest.approx(2 / 3), 1.0]


def test_the_same_seed_asks_the_same_and_another_one_in_other_words(asked):
    first, again, other = ([one.query.words for one in asked(seed)[0]] for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_hiding_leaves_the_rest_of_every_body_as_it_is():
    def exchange():
        first = yield ({"size": 1, "query": {"match_all": {}}, "suggest": {}}, {"query": {"term": {"a": 1}}})
        second = yield ({"query": {"knn": {}}},)
        return first, second

    gone = [{"terms": {"_id": ["x"]}}]
    hidden = masked(exchange(), gone)
    assert next(hidden) == (
        {"size": 1, "query": {"bool": {"must": [{"match_all": {}}], "must_not": gone}}, "suggest": {}},
        {"query": {"bool": {"must": [{"term": {"a": 1}}], "must_not": gone}}},
    )
    assert hidden.send(["one"]) == ({"query": {"bool": {"must": [{"knn": {}}], "must_not": gone}}},)
    with pytest.raises(StopIteration) as end:
        hidden.send(["two"])
    assert end.value.value == (["one"], ["two"])


def test_the_spread_is_the_standard_deviation_of_cosines_whatever_the_norms():
    numbers = np.random.default_rng(1)
    vectors = (numbers.standard_normal((300, 64)) + 2) * numbers.uniform(0.1, 50, (300, 1))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(300, 1)]
    assert spread_of(vectors.astype(np.float32)) == pytest.approx(cosines.std(), rel=0.05)
    # Translations, of which each document has some, are far from the others and few.
    translated = np.concatenate([vectors, vectors, vectors])[:600]
    assert spread_of(translated.astype(np.float32)) == pytest.approx(cosines.std(), rel=0.07)


def test_the_spread_of_next_to_nothing_is_a_usual_one():
    assert spread_of(np.ones((0, 3), np.float32)) == 0.05
    assert spread_of(np.ones((4, 3), np.float32)) == 0.05
    assert spread_of(np.ones((9, 3), np.float32)) == 0.001
    assert spread_of(np.zeros((9, 3), np.float32)) == 0.001


def question(answers, overlap="all", hides=()):
    return CalibrationQuestion(0, SearchQuery("x", "en"), overlap, answers, hides)


def test_figures_are_ndcg_and_the_recall_of_answers_in_other_languages():
    asked = [question({"own": False, "far": True}), question({"own": False}), question({"far": True})]
    figures = score_rankings([one.answers for one in asked], [["own", "x", "far"], [], ["x", "far"]])
    ideal = 1 + 1 / np.log2(3)
    assert figures == pytest.approx(
        np.array([[(1 + 1 / np.log2(4)) / ideal, 1, 1], [0, np.nan, 0], [1 / np.log2(3), 1, np.nan]]), nan_ok=True
    )
    assert score_rankings([{"own": False}], [["own"]]) == pytest.approx(np.array([[1, np.nan, 1]]), nan_ok=True)
    assert score_rankings([{"far": True}], [[]]) == pytest.approx(np.array([[0, 0, np.nan]]), nan_ok=True)


@pytest.mark.parametrize(("rank", "found"), [(1, 1), (3, 1), (4, 0)])
def test_a_reader_looks_at_the_first_three_hits(rank, found):
    ranked = [f"other-{number}" for number in range(9)]
    ranked[rank - 1] = "own"
    assert score_rankings([{"own": False, "far": True}], [ranked])[0, 2] == found


@pytest.mark.parametrize(("rank", "recall"), [(1, 1), (15, 1), (16, 10 / 11), (20, 6 / 11), (25, 1 / 11), (26, 0)])
def test_the_recall_of_answers_in_other_languages_is_the_mean_over_depths_from_15_to_25(rank, recall):
    ranked = [f"other-{number}" for number in range(40)]
    ranked[rank - 1] = "far"
    ((_, found, _),) = score_rankings([{"far": True}], [ranked])
    assert found == pytest.approx(recall)


HIDDEN = {"d"}
ASKED = [
    *(question({"d": False, "t": True}, overlap) for overlap in OVERLAPS),
    *(question({"t": True}, overlap, HIDDEN) for overlap in OVERLAPS),
]
BEFORE = np.array([[0.5, 0.5, 1]] * 3 + [[0.5, 0.5, np.nan]] * 3)
AFTER = np.array(
    [[0.9, 0.6, 1], [0.7, 0.5, 0], [0.5, 0.4, 1], [0.4, 0.5, np.nan], [0.5, 0.5, np.nan], [0.3, 0.2, np.nan]]
)


def test_what_a_mode_changes_is_told_by_answer_and_by_overlap_or_vagueness():
    asked = [*ASKED[:-1], ASKED[-1]._replace(vagueness=0.25)]
    changes = part_changes(asked, BEFORE, AFTER)
    assert [(one.answer, one.overlap, one.vagueness, one.questions, one.dense) for one in changes] == [
        ("own", "all", None, 1, 0.5), ("own", "half", None, 1, 0.5), ("own", "none", None, 1, 0.5),
        ("other", "any", 1.0, 2, 0.5), ("other", "any", 0.25, 1, 0.5),
    ]  # fmt: skip
    assert [one.ndcg for one in changes] == pytest.approx([0.4, 0.2, 0, -0.05, -0.2])
    assert [one.tlr for one in changes] == pytest.approx([0.1, 0, -0.1, 0, -0.3])
    assert (gain(changes), loss(changes)) == pytest.approx((0.2, 0.3))
    assert [one.own for one in changes] == [0, -1, 0, None, None]
    assert readers_lose(changes, 0.3)
    assert not readers_lose(changes, 0.34)
    assert not readers_lose(changes[3:], 0)
    together = part_changes(asked, BEFORE, AFTER, by_vagueness=False)
    assert [(one.answer, one.questions, one.ndcg) for one in together[3:]] == [("other", 3, pytest.approx(-0.1))]


def test_questions_of_one_translation_group_share_their_luck():
    apart = [question({"d": False})._replace(cluster=number) for number in range(4)]
    before, after = np.zeros((4, 3)), np.array([[one, 0, 0] for one in (0.1, 0.1, 0.3, 0.3)])
    errors = [
        part_changes([one._replace(cluster=one.cluster // size) for one in apart], before, after)[0].error
        for size in (1, 2)
    ]
    assert errors == pytest.approx([0.1 / 2, 0.1 / np.sqrt(2)])


def test_what_is_predicted_lies_between_the_outermost_ends_of_the_intervals_of_the_parts():
    parts = [
        SliceChange("other", "any", level, 90, 0.5, change, None, 0.01) for level, change in ((1, -0.02), (0.5, 0))
    ]
    predicted = Prediction.of("other", None, parts)
    assert predicted == ("other", None, 180, pytest.approx(-0.0396), pytest.approx(0.0196))


def test_a_recall_that_is_undefined_is_not_told():
    before, after = (np.array([[figure, np.nan, 1]]) for figure in (0.5, 0.6))
    (one,) = part_changes([question({"d": False})], before, after)
    assert (one.ndcg, one.tlr) == (pytest.approx(0.1), None)
    assert loss([one]) == 0


@pytest.mark.parametrize(
    ("figure", "expected"),
    [(0.0, [2]), (0.1, [2]), (0.2, [1, 2]), (0.3, [1]), (0.6, [0, 1]), (1.0, [0])],
)
def test_what_a_log_is_like_lies_between_two_levels_of_the_questions(figure, expected):
    assert levels_around([0.9, 0.3, 0.1], figure) == expected


def test_a_log_is_like_some_questions_whatever_these_are_like():
    for levels in ([0.5, 0.5, 0.5], [0.1, 0.3, 0.9], [0.0, 0.0, 0.0]):
        for figure in (0.0, 0.5, 1.0):
            assert levels_around(levels, figure)


def changed(found, hidden=0.0, tlr=0.0):
    own = [SliceChange("own", overlap, None, 90, 0.6, found, tlr) for overlap in OVERLAPS]
    return [*own, SliceChange("other", "any", 1.0, 270, 0.5, hidden, tlr)]


def test_nothing_lost_is_full_strength():
    assert _strength(changed(0.1)) == 1.0
    assert _strength(changed(0.1, hidden=-TOLERATED)) == 1.0
    assert _strength(changed(0.1, hidden=0.2)) == 1.0


def test_the_more_is_lost_the_less_the_strength():
    assert _strength(changed(0.1, hidden=-2 * TOLERATED)) == 0.12
    assert _strength(changed(0.1, hidden=-10 * TOLERATED)) == 0.1
    assert _strength(changed(0.1, tlr=-4 * TOLERATED)) == 0.12
    # Where few queries have an answer in their language, the others lose less: a half where it is a tenth of them.
    assert _strength(changed(0.1, hidden=-10 * TOLERATED), 0.1) == 0.05
    assert _strength(changed(0.1, hidden=-10 * TOLERATED), 0.2) == 0.1
    # They are not sure of full strength then, either.
    assert _strength(changed(0.1, hidden=-0.75 * TOLERATED), 0.1) == 0.12
    assert _strength(changed(0.1, hidden=-0.75 * TOLERATED), 0.2) == 1.0
    # So little moves nothing.
    assert _strength(changed(0.5, hidden=-100 * TOLERATED)) == 0.0


def test_what_questions_without_an_answer_in_their_language_lose_counts_unless_all_is_translated():
    lost = changed(0.1, hidden=-0.1)
    assert counted(lost, 0.0) == counted(lost, ALL_TRANSLATED - 0.01) == lost
    assert counted(lost, 1.0) == counted(lost, ALL_TRANSLATED) == lost[:-1]
    assert _strength(lost, 1.0) == 1.0


def test_what_readers_lose_is_never_full_strength():
    for lost, strength in ((TOLERATED, 1.0), (2 * TOLERATED, 0.12)):
        assert _strength([one._replace(own=-lost) for one in changed(0.1)], 1.0) == strength


def test_words_that_tell_too_little_lead_nothing():
    assert _strength(changed(WORTH_WHILE)) == 1.0
    assert _strength(changed(WORTH_WHILE - 0.001)) == 0.0
    assert _strength(changed(-0.1)) == 0.0


def reranked(changes, error=0.0, *, translated=(True, True, True), lost=(), own=None):
    """The strength of the reranker where it changes nDCG@20 so much at each of the strengths, strongest first."""
    questions = [question({"a": True}, hides={"b"} if one else ()) for one in translated]
    parts = {
        strength: [SliceChange("own", "none", None, 90, 0.6, change, None, error, own=own and own * strength)]
        for strength, change in zip(RERANK_STRENGTHS, changes, strict=True)
    }
    strength, changed = rerank_strength(parts.__getitem__, questions, lost)
    assert changed == parts[strength or RERANK_STRENGTHS[-1]]
    return strength


def test_features_go_far_only_where_that_is_sure_to_lose_nothing():
    rising, falling = (0.02, 0.01, 0.004, 0.001), (-0.02, -0.003, -0.002, -0.001)
    assert reranked(rising, 0.004) == 1.0
    # .02 - 1.645 · .015 may be a loss; at .1 the mean is enough.
    assert reranked(rising, 0.015) == 0.1
    assert reranked(falling) == 0.1
    # What the mode itself loses is no longer there to be lost.
    assert reranked(falling, lost=[SliceChange("own", "none", None, 90, 0.6, -0.0014, None)]) == 0.03
    assert reranked((-0.01,) * 4) == 0.0
    # Nor may readers find an answer in their language among the first three less often.
    assert reranked(rising, own=-0.01) == 0.1


def test_features_go_a_little_only_where_most_documents_have_no_known_translation():
    rising = (0.02, 0.01, 0.004, 0.001)
    assert reranked(rising, translated=(False, True, True)) == 1.0
    assert reranked(rising, translated=(False, False, True)) == 0.1


def calibration(mode, strength=0.0, full=(), **values):
    reranked = {"rerank": {"dense": 0.3}, "reranked": {"dense": changed(0.05)}}
    given = {
        "lexical_weight": None,
        "sparse_weight": None,
        "changes": changed(0.06),
        "hybrid": changed(0.04),
        "tokens": (),
        "no_answer": NoAnswer(0.84, 0.07),
        **reranked,
        **values,
    }
    return Calibration(
        AnchorModel(0.08, strength, calibrated=True),
        mode,
        cost=CalibrationCost(40, 120, 2880),
        full_strength=full or changed(0.08, hidden=-0.01),
        **given,
    )


def test_a_calibration_is_told_with_what_it_was_measured_by():
    made = calibration("anchored", 0.25, changes=changed(0.06, hidden=-0.002))
    document = made.to_dict()
    assert (document["spread"], document["strength"], document["mode"], document["overlap"]) == (
        0.08, 0.25, "anchored", None
    )  # fmt: skip
    assert (document["documents"], document["questions"], document["gain"], document["loss"]) == (40, 540, 0.06, 0.002)
    assert document["no_answer"] == {"below": 0.84, "caught": 0.07}
    assert document["full_strength"][-1] == {
        "answer": "other", "overlap": "any", "vagueness": 1.0, "questions": 270, "dense": 0.5, "ndcg": -0.01,
        "tlr": 0.0, "error": 0.0, "tlr_error": 0.0, "own": None
    }  # fmt: skip


PREDICTED = (Prediction("own", None, 270, -0.001, 0.05), Prediction("other", None, 270, -0.003, 0.001))


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            calibration("anchored", 0.25, predicted=PREDICTED),
            "With queries made of 40 documents, from clear to vague, it changes nDCG@20 by something between -.0010 "
            "and +.0500 where an answer is in the query's language and between -.0030 and +.0010 where none is (the "
            "outermost ends of their 95% intervals, by document or group).",
        ),
        (
            calibration("hybrid", 0.25, lexical_weight=0.1, overlap=0.4, predicted=PREDICTED[:1]),
            "With queries made of 40 documents, about as hard as those of the log, it changes nDCG@20 by something "
            "between -.0010 and +.0500 where an answer is in the query's language (the outermost ends of their 95% "
            "intervals, by document or group).",
        ),
        (
            calibration("dense", full=changed(0.01)),
            "Words tell too little here (nDCG@20 +.0100 at full strength) for a search led by them.",
        ),
        (
            calibration("dense", full=changed(0.2, hidden=-0.3)),
            "Words may cost too much here: up to .3000 at full strength.",
        ),
    ],
)
def test_the_mode_has_a_reason(made, sentence):
    assert reason(made) == sentence


DETECTING = SimpleNamespace(
    language=lambda words: SimpleNamespace(language=f"of {words}"), index=SimpleNamespace(fields=USUAL)
)


def test_a_log_is_read_with_languages_or_without(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"text": "why tides", "language": "en-GB", "_id": 7}\n\n{"text": "Flut", "clicks": 3}\n')
    assert read_log(QueryLog(path), DETECTING) == [("why tides", "en-GB", "7"), ("Flut", "of Flut", None)]
    path.write_text('{"text": "tide", "language": "en"}\n' * 2_001)
    assert len(read_log(QueryLog(path), DETECTING)) == 2_000
    path.write_text('{"text": "' + "x" * 20_000 + '", "language": "en"}\n')
    assert [len(one.words) for one in read_log(QueryLog(path), DETECTING)] == [10_000]


def test_a_logged_query_of_too_many_words_is_named_and_left_out(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    path.write_text('{"text": "tide", "language": "en"}\n{"text": "' + "word " * 600 + '", "language": "en"}\n')
    assert [one.words for one in read_log(QueryLog(path), DETECTING)] == ["tide"]
    told = " ".join(capsys.readouterr().err.split())
    assert told == f"{path}, line 2, is left out: The query has too many words for a lexical search: the limit is 500."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "There is no file {}: give a log, which is "),
        ("", "{} is empty: give a log, which is "),
        ('{"text": "a"}\n{"language": "en"}\n', "{}, line 2"),
        ('{"text": "a", "language": "tlhx"}\n', "{}, line 1"),
        ('{"text": 7}\n', "{}, line 1"),
        ("why tides\n", "{}, line 1"),
    ],
)
def test_a_log_that_cannot_be_read_is_refused_by_its_line(tmp_path, content, sentence):
    path = tmp_path / "log.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=f"^{re.escape(sentence.format(path))}"):
        read_log(QueryLog(path), DETECTING)


def test_full_strength_is_only_for_what_is_sure_to_lose_nothing():
    unsure = [one._replace(error=0.02) for one in changed(0.1)]
    assert _strength(unsure) == 0.12
    assert _strength([one._replace(error=0.001) for one in unsure]) == 1.0

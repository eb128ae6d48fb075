"""Should I shift this index? The whole sentence, by figures made up for each case."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from langshift.evaluate.compare.next_commands import next_commands
from langshift.evaluate.compare.verdict import (
    SHIFT,
    Choice,
    PairedFigures,
    Verdict,
    choice,
    judge_pair,
    judge_replays,
    own_language,
)
from langshift.evaluate.measures import score
from langshift.evaluate.measures.base import Material
from langshift.evaluate.replay.overlap import Drift, Overlap

TAGS = ("de", "en", "th")
GAINED = {"ndcg": (0.7, 0.1), "tlr": (0.6, 0.2)}
BETWEEN = Choice(
    "Use b (new) rather than a (old)", "Keep a (old) rather than b (new)", " a (old) and b (new) apart", uncrowd=""
)


def paired(questions, *, languages=TAGS, by=(), answers=lambda _: True, clusters=None, noise=0.05, **given):
    """Figures of questions in some languages in turn.

    ``given``: ``ndcg``, ``tlr``, ``slr`` and, where it was measured, ``first`` (own@3), each the mean before and the
    change; ``by`` gives other nDCGs to a language. Which question gains and which loses is noise, whose mean is nought
    in every language. ``answers`` tells which numbers of questions have an answer in their language.
    """
    names = [f"q{number}" for number in range(questions)]
    tags = {name: languages[number % len(languages)] for number, name in enumerate(names)}
    rounds = np.arange(questions) // len(languages)
    before, after = {}, {}
    keys = {"nDCG@20": "ndcg", "TLR@20": "tlr", "SLR@20": "slr", **({"own@3": "first"} if "first" in given else {})}
    for measure, key in keys.items():
        some = [number for number in range(questions) if key not in ("slr", "first") or answers(number)]
        means = [dict(by).get(tags[names[number]], given[key]) if key == "ndcg" else given[key] for number in some]
        before[measure] = {names[number]: mean for number, (mean, _) in zip(some, means, strict=True)}
        after[measure] = {
            names[number]: mean + change + noise * (-1) ** int(rounds[number])
            for number, (mean, change) in zip(some, means, strict=True)
        }
    return PairedFigures(before, after, tags, clusters or {name: name for name in names})


def said(*given, between=SHIFT, **more):
    """Kind and sentence."""
    found = judge_pair(paired(*given, **more), between)
    return found.kind, found.sentence


SURE = "chance alone would hardly do that (corrected p below .001)"
EVERYWHERE = (
    "over 900 questions, nDCG@20 rises from .700 to .800 in every query language (de, en and th) and answers in other "
    "languages are found more often (TLR@20 .600 to .800)"
)


def test_a_clear_gain():
    assert said(900, **GAINED, slr=(0.95, 0.002)) == (
        "shift",
        f"Shift it: {EVERYWHERE}, at no measurable cost to answers in the searcher's own language (SLR@20 .950 to "
        f".952); {SURE}.",
    )


def test_a_gain_over_too_few_questions_to_rule_out_a_cost():
    kind, sentence = said(180, **GAINED, slr=(0.98, -0.004))
    assert kind == "shift"
    assert (
        ", with too few questions to rule out a cost to answers in the searcher's own language (SLR@20 .980 to .976); "
    ) in sentence


def test_a_clear_loss():
    lost = (
        "over 900 questions, nDCG@20 falls from .800 to .750 in every query language (de, en and th) and answers in "
        "the searcher's own language are found less often (SLR@20 .980 to .920)"
    )
    assert said(900, ndcg=(0.8, -0.05), tlr=(0.7, 0), slr=(0.98, -0.06)) == (
        "do not shift",
        f"Do not shift it: {lost}; {SURE}, so leave the documents as they are.",
    )
    # Where answers in other languages are worth less than what is lost, that is said, and nothing else is advised.
    assert said(900, ndcg=(0.8, -0.05), tlr=(0.7, 0.03), slr=(0.98, -0.06), between=BETWEEN) == (
        "do not shift",
        f"Keep a (old) rather than b (new): {lost}, even though answers in other languages are found more often "
        f"(TLR@20 .700 to .730); {SURE}.",
    )


def test_a_gain_at_the_cost_of_answers_in_the_searchers_own_language():
    assert said(900, **GAINED, slr=(0.98, -0.035)) == (
        "at a cost",
        f"Shift it: {EVERYWHERE}, but answers in the searcher's own language are found less often (SLR@20 .980 to "
        f".945); {SURE}, so measure by langshift evaluate replay what gives those back: a calibration, or "
        "a language preference.",
    )


READERS = (
    "Readers find the answer in their own language less often: within the first three hits for {} of the questions "
    "that have one, {} before (own@3). "
)


def test_a_loss_among_the_first_three_hits_is_the_first_sentence():
    kind, sentence = said(900, **GAINED, slr=(0.98, -0.035), first=(0.91, -0.19))
    assert (kind, sentence) == (
        "at a cost",
        f"{READERS.format('72%', '91%')}Shift it: {EVERYWHERE}, but answers in the searcher's own language are found "
        f"less often (SLR@20 .980 to .945); {SURE}, so measure by langshift evaluate replay what gives those back: a "
        "calibration, or a language preference.",
    )
    # That nothing is lost among the first twenty hits makes it no smaller.
    kind, sentence = said(900, **GAINED, slr=(0.98, 0), first=(0.91, -0.19), between=BETWEEN)
    assert (kind, sentence.partition(", but ")[2].partition(";")[0]) == (
        "at a cost",
        "answers in the searcher's own language are among the first three hits less often (own@3 .910 to .720)",
    )
    assert sentence.startswith(f"{READERS.format('72%', '91%')}Use b (new) rather than a (old): over 900 questions, ")
    same = {"ndcg": (0.7, 0), "tlr": (0.6, 0), "slr": (0.98, 0), "noise": 0.001}
    kind, sentence = said(900, **same, first=(0.91, -0.004))
    assert kind == "do not shift"
    assert sentence.startswith(f"{READERS.format('90.6%', '91.0%')}Do not shift it: over 900 questions, answers in ")


def test_a_gain_among_the_first_three_hits_is_said_where_gains_are():
    assert said(900, ndcg=(0.7, 0), tlr=(0.6, 0), slr=(0.95, 0.02), first=(0.72, 0.19), between=BETWEEN) == (
        "shift",
        "Use b (new) rather than a (old): over 900 questions, answers in the searcher's own language are found more "
        f"often (SLR@20 .950 to .970) and are among the first three hits more often (own@3 .720 to .910); {SURE}.",
    )
    assert not said(900, **GAINED, slr=(0.95, 0), first=(0.91, 0))[1].startswith("Readers")
    # Too few questions to be sure of anything.
    assert said(42, **GAINED, slr=(0.95, 0), first=(0.91, -0.01), noise=0.2)[1].startswith("Shift it: ")


@pytest.mark.parametrize(
    ("between", "take", "advice"),
    [
        (SHIFT, "Shift it", "leave documents in th as they are (--alpha-for th=0)"),
        (BETWEEN, "Use b (new) rather than a (old)", "keep the other for questions in th"),
    ],
)
def test_a_gain_at_the_cost_of_one_language(between, take, advice):
    assert said(900, **GAINED, slr=(0.98, 0), by={"th": (0.7, -0.05)}, between=between) == (
        "at a cost",
        f"{take}: over 900 questions, nDCG@20 rises from .700 to .750 (by more than chance for questions in de and "
        "en) and answers in other languages are found more often (TLR@20 .600 to .800), but questions in th do worse "
        f"(nDCG@20 -.050); {SURE}, so {advice}.",
    )


def test_a_language_that_the_encoder_cannot_read():
    assert said(900, **GAINED, slr=(0.95, 0), by={"th": (0.02, 0.002)}, noise=0.01) == (
        "shift",
        "Shift it: over 900 questions, nDCG@20 rises from .473 to .541 (by more than chance for questions in de and "
        "en) and answers in other languages are found more often (TLR@20 .600 to .800), at no measurable cost to "
        f"answers in the searcher's own language (SLR@20 .950 to .950); {SURE}; nothing helps questions in th, because "
        "the encoder cannot read it (nDCG@20 at most .022, before and after), so choose another encoder for it.",
    )


def test_too_few_questions():
    few = {"ndcg": (0.7, 0.02), "tlr": (0.6, 0.02), "slr": (0.98, -0.01), "noise": 0.2}
    takes = "over 42 questions, nDCG@20 goes from .700 to .720, give or take .063, and it takes about 3,500 to see a "
    assert said(42, **few) == (
        "too few",
        f"Too few questions to tell: {takes}change of .01, so judge more of them first.",
    )
    assert said(42, **few, between=BETWEEN)[1].startswith("Too few questions to tell a (old) and b (new) apart: over")
    # As many as are usual, but all share their luck.
    together = {f"q{number}": "one article" for number in range(900)}
    assert said(900, **few, clusters=together)[1] == (
        "Too few questions to tell: over 900 questions, nDCG@20 goes from .700 to .720, but all are about one article "
        "or group, so ask about others."
    )
    # Nor do a few that give the same say that others would.
    still = dict.fromkeys(("ndcg", "tlr", "slr"), (0.7, 0))
    assert said(42, **still, noise=0) == (
        "too few",
        "Too few questions to tell: over 42 questions, nDCG@20 stays at .700, and it takes about 300 to see a change "
        "of .01, so judge more of them first.",
    )
    assert said(400, **still, noise=0) == (
        "no difference",
        "Do not shift it: over 400 questions, nDCG@20 stays at .700 and nothing is gained or lost, though a change of "
        ".01 would have shown.",
    )


def test_no_judgements():
    nothing = judge_pair(PairedFigures({}, {}, {"q1": "de"}, {}))
    assert (nothing.kind, nothing.figures) == ("no judgements", ())
    assert nothing.lines == ["No judgements to tell by: nobody has said which answers are right."]
    # What a log shows: how alike the answers are, and in which languages.
    parts = {
        tag: Drift(250, 0.5, 0.61, {tag: share, "en": 1 - share}, {tag: 0.36})
        for tag, share in (("de", 0.7), ("th", 0.8))
    }
    overlap = Overlap("plain", "shifted", Drift(500, 0.5, 0.61, {}, {}), parts, 0)
    replay = SimpleNamespace(dataset=None, failed=[], scores={}, languages=dict.fromkeys(map(str, range(500)), "de"))
    assert judge_replays(replay, replay, overlap).sentence == (
        "No judgements to tell by: of the documents that either finds among its first 20, 61% are found by both, and "
        "the searcher's language has about 15 of the first 20 hits before and about 7 after (75% to 36%), which is "
        "neither good nor bad by itself: it makes room for answers in other languages and takes it from those in the "
        "searcher's own language, whether there are any or not."
    )
    replays = [SimpleNamespace(**{**vars(replay), "scores": {"MostShown@20": shown}}) for shown in (EVEN, CROWDED)]
    assert judge_replays(*replays).sentence.endswith(f"answers are right. But {CROWDS}.")


@pytest.mark.parametrize(
    ("before", "after", "meaning"),
    [
        (
            0.46,
            0.1,
            "about 9 of the first 20 hits before and about 2 after (46% to 10%), which is neither good nor bad by "
            "itself: it makes room for answers in other languages and takes it from those in the searcher's own "
            "language, whether there are any or not",
        ),
        (
            0.1,
            0.46,
            "about 2 of the first 20 hits before and about 9 after (10% to 46%), which is neither good nor bad by "
            "itself: it makes room for answers in the searcher's own language and takes it from those in other "
            "languages, whether there are any or not",
        ),
        (
            0.333,
            0.334,
            "about 7 of the first 20 hits, before and after (33%), which is neither good nor bad by itself: it does "
            "not say whether these hits answer",
        ),
        (
            0.103,
            0.084,
            "about 2 of the first 20 hits, before and after (10% to 8%), which is neither good nor bad by itself: it "
            "does not say whether these hits answer",
        ),
    ],
)
def test_what_a_share_of_the_searchers_language_means(before, after, meaning):
    assert own_language(before, after) == f"the searcher's language has {meaning}"


BOTH = "--index plain --index shifted"
TITLES = "langshift dataset make shifted titles && langshift evaluate replay titles"


def test_without_judgements_the_next_commands_are_named_the_least_effort_first():
    steps = next_commands(["plain", "shifted"], ["default"], 40, "langshift serve --results runs")
    assert Verdict("no judgements", "So it is.", next=steps).lines == [
        "So it is.",
        "Next, the least effort first:",
        f"1. Minutes, and nobody judges: titles of the documents ask: {TITLES} {BOTH}",
        f"2. Minutes, where you have questions with their answers, or clicks: langshift evaluate replay DATASET {BOTH}",
        "3. Hours: a person judges 40 queries in the browser, list against list: langshift serve --results runs",
    ]
    # As the log was asked, so are the titles.
    (titles, _) = next_commands(["plain", "shifted"], ["hybrid --spread 0.1"], 40, None, "http:http://h/v1#m")
    assert titles.command == f"{TITLES} {BOTH} --setting 'hybrid --spread 0.1' --encoder 'http:http://h/v1#m'"
    (titles, _) = next_commands(["shifted", "shifted"], ["default", "dense"], 1, None)
    assert titles.command == f"{TITLES} --index shifted --setting default --setting dense --output judged"


def shown(**hits):
    """MostShown@20 of one question whose hits are in these languages, and whose answers are in four."""
    names = [f"{tag}{number}" for tag, count in hits.items() for number in range(count)]
    relevant = dict.fromkeys(("de", "en", "th", "zh"), 1)
    documents = {**{name: name[:2] for name in names}, **{tag: tag for tag in relevant}}
    material = Material({"q": relevant}, {"q": dict.fromkeys(names, 1.0)}, {"q": "en"}, documents)
    return score(["MostShown@20"], material)["MostShown@20"]


EVEN, CROWDED = shown(de=5, en=5, th=5, zh=5), shown(de=2, en=2, th=2, zh=14)
CROWDS = (
    "zh crowds the other languages out: zh has 70% of the first 20 hits and 25% of what is relevant, where it had 25% "
    "of the hits"
)


def test_a_language_that_crowds_the_others_out():
    gained = paired(900, **GAINED, slr=(0.95, 0.002))

    def ends(before, after, between=SHIFT):
        return judge_pair(gained._replace(shown=(before, after)), between).sentence.partition(
            "(corrected p below .001)."
        )[2]

    assert ends(EVEN, CROWDED) == f" But {CROWDS}, which --gamma .97 prevents."
    assert ends(EVEN, CROWDED, BETWEEN) == f" But {CROWDS}."
    # What is no worse than before, or twice as much but few, is not said.
    assert ends(CROWDED, EVEN) == ends(CROWDED, CROWDED) == ends(EVEN, shown(de=4, en=4, th=4, zh=8)) == ""


def test_a_small_loss_counts_where_there_are_enough_questions_to_see_it():
    same = {"ndcg": (0.7, 0), "tlr": (0.6, 0)}
    assert said(1800, **same, slr=(0.98, -0.006), noise=0.2) == (
        "do not shift",
        "Do not shift it: over 1,800 questions, answers in the searcher's own language are found less often (SLR@20 "
        ".980 to .974); that may be chance (corrected p 1.000), but more than .005 is too much to risk, so leave the "
        "documents as they are.",
    )
    assert said(1800, **same, slr=(0.98, -0.004), noise=0.2)[0] == "no difference"
    # The interval of a sixth as many reaches too far.
    assert said(300, **same, slr=(0.98, -0.006), noise=0.2)[0] == "too few"


def test_every_slice_and_language_is_a_condition():
    found = judge_pair(
        paired(
            900,
            **GAINED,
            slr=(0.98, -0.02),
            first=(0.91, -0.2),
            languages=("de", "en"),
            answers=lambda number: number % 3,
        )
    )
    assert [(one.measure, one.slice, one.language, one.test.queries) for one in found.figures] == [
        ("nDCG@20", "all", None, 900),
        ("TLR@20", "all", None, 900),
        ("SLR@20", "own", None, 600),
        ("own@3", "own", None, 600),
        ("nDCG@20", "own", None, 600),
        ("nDCG@20", "none", None, 300),
        ("nDCG@20", "all", "de", 450),
        ("nDCG@20", "all", "en", 450),
    ]
    assert [one.sentence for one in found.lost] == [
        "SLR@20 falls from .980 to .960 (corrected p below .001)",
        "own@3 falls from .910 to .710 (corrected p below .001)",
    ]
    told = found.to_dict()
    assert (told["kind"], told["figures"][2]["lost"], told["figures"][2]["test"]["significant"]) == (
        "at a cost",
        True,
        True,
    )
    # A language that nobody knows, and measures that are not there, are no condition.
    unknown = judge_pair(PairedFigures({"nDCG@20": {"q": 0.5}}, {"nDCG@20": {"q": 0.7}}, {"q": None}, {}))
    assert [(one.measure, one.slice) for one in unknown.figures] == [("nDCG@20", "all")]


MADE = {"encoder": "use-m", "alpha": 0.0, "alphas": {}, "gamma": 0.0, "vectors": "abc", "pivot": "en"}


@pytest.mark.parametrize(
    ("before", "after", "shifts"),
    [
        ({}, {"alpha": 1.0}, True),
        ({"vectors": None, "pivot": None}, {"gamma": 0.97}, True),
        ({}, {"alphas": {"th": 0.3}}, True),
        ({"alpha": 0.6}, {"alpha": 1.0}, False),
        ({"alpha": 1.0}, {}, False),
        ({}, {"alpha": 1.0, "encoder": "e5-small"}, False),
    ],
)
def test_a_shift_is_told_from_other_changes(before, after, shifts):
    sides = [{"fingerprint": {**MADE, **changes}, "mode": "dense"} for changes in (before, after)]
    shift = SHIFT._replace(uncrowd="") if after.get("gamma") else SHIFT
    assert choice(*sides, ["a (old)", "b (new)"]) == (shift if shifts else BETWEEN)
    assert choice(sides[0], {**sides[1], "mode": "hybrid"}, ["a (old)", "b (new)"]) == BETWEEN
    assert choice({}, {}, ["a (old)", "b (new)"]) == BETWEEN

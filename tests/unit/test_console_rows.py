"""What the console lists of hits, and which indices it puts side by side."""

from dataclasses import replace

import pytest
from plain_index import PLAIN

from langshift.errors import UsageError
from langshift.evaluate.console.search.brief import brief_hit, brief_sources
from langshift.evaluate.console.search.rows import cut, excerpt, ordinal, places, rows, shares, snippet
from langshift.evaluate.console.search.sides import Choice, settled
from langshift.evaluate.console.search.state import Side, State
from langshift.evaluate.console.search.why import beginning
from langshift.ingest.hit import Hit, Other
from langshift.plugin.fields import Fields


def hit(name, language="en", others=()):
    inside = tuple(Other(one, None, "de", "", "") for one in others)
    return Hit(name, 0.5, language, "", "text", None, others=inside)


def choice(name, alpha, documents=9, live=True):
    made = replace(PLAIN, alpha=alpha, vectors="v")
    return Choice(name, f"{name}-v0001" if live else name, name, live, made, documents)


def test_the_place_on_the_other_side_is_told_in_words():
    here = [hit("a"), hit("b"), hit("c"), hit("d")]
    there = places([hit("b"), hit("a"), hit("c")])
    assert [(row.movement, row.moved) for row in rows(here, "q", "de", there)] == [
        ("up", "up 1, there 2nd"),
        ("down", "down 1, there 1st"),
        ("same", "same place"),
        ("absent", "not among the first 100 there"),
    ]


def test_a_document_inside_a_hit_stands_where_the_hit_does():
    there = places([hit("x"), hit("y", others=("a",))])
    assert rows([hit("a")], "q", "de", there)[0].moved == "up 1, there 2nd"
    assert rows([hit("z", others=("x",))], "q", "de", there)[0].moved == "same place"


def test_ordinals():
    assert [ordinal(rank) for rank in (1, 2, 3, 4, 11, 12, 13, 21, 100, 101, 112)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "100th", "101st", "112th")
    ]


def test_shares_count_languages():
    assert shares([hit("a"), hit("b", "und"), hit("c", "th"), hit("d", "th")]) == [("th", 2), ("en", 1), ("und", 1)]


def test_a_snippet_is_around_the_first_of_the_querys_words():
    text = f"{'word ' * 200}the River floods {'more ' * 200}"
    found = snippet(text, "a river")
    assert found.startswith("…word")
    assert "the River floods" in found
    assert found.endswith("more…")
    assert len(found) <= 242


def test_a_snippet_is_the_beginning_where_the_words_are_there_or_nowhere():
    text = "river " * 100
    assert snippet(text, "river") == snippet(text, "nothing") == cut(text, 240)


@pytest.mark.parametrize(
    "text",
    [
        "river",
        f"{'word ' * 5_000}the RIVER floods {'more ' * 5_000}",
        f"{'word ' * 5_000}the river",
        f"the river {'word ' * 5_000} the river",
        f"{'İstanbul ' * 3_000}river {'ß' * 3_000}",
        "แม่น้ำ" * 2_000 + "river" + "แม่น้ำ" * 2_000,
    ],
)
def test_of_what_is_kept_of_a_text_lists_make_the_same_as_of_the_whole(text):
    kept = excerpt(text, "the river")
    assert len(kept) <= 2_000
    assert snippet(kept, "the river") == snippet(text, "the river")
    assert cut(excerpt(text), 160) == cut(text, 160)


def test_of_documents_nothing_is_kept_that_lists_do_not_show():
    long = "the river floods " * 60_000
    source = {"title": long, "text": {"en": long}, "group": ["a", "b"], "body": {"main": long}, "more": long}
    (kept,) = brief_sources({"1": source}, Fields(), "river").values()
    assert kept == {"title": long[:2_000], "text": long[:2_000], "group": "a"}
    (kept,) = brief_sources({"1": source}, Fields(texts=("body.main",)), "river").values()
    assert kept == {"body.main": long[:2_000], "group": "a"}
    other = Other("2", None, "de", long, long, source)
    found = brief_hit(Hit("1", 0.5, "en", long, long, "a", others=(other,), source=source), "river")
    assert found == Hit("1", 0.5, "en", long[:2_000], long[:2_000], "a", others=found.others)
    assert found.others == (Other("2", None, "de", long[:2_000], long[:2_000]),)


def test_what_is_cut_keeps_a_character_with_its_marks():
    assert cut("e\u0301" * 200, 241) == "e\u0301" * 121 + "…"


@pytest.mark.parametrize(
    ("known", "left", "right"),
    [
        ([choice("a-plain", 0), choice("a-shifted", 1), choice("b", 1)], Side("a-plain"), Side("a-shifted")),
        ([choice("few", 0, 3), choice("b", 1), choice("b-v0001", 0, live=False)], Side("b-v0001"), Side("b")),
        ([choice("b", 1)], Side("b", alpha=0.0), Side("b")),
        ([choice("b", 0)], Side("b"), Side("b")),
    ],
)
def test_what_belongs_together_is_put_side_by_side(known, left, right):
    state = settled(State(), known)
    assert (state.left, state.right) == (left, right)


def test_a_side_that_is_open_is_filled_with_what_fits_the_other():
    known = [choice("plain", 0), choice("shifted", 1), choice("other", 1, 3)]
    assert settled(State(left=Side("plain")), known).right == Side("shifted")
    assert settled(State(right=Side("other")), known).left == Side("other", alpha=0.0)


def test_the_alpha_of_the_index_itself_is_as_indexed():
    known = [choice("plain", 0), choice("shifted", 0.6)]
    state = settled(State(left=Side("plain", alpha=0.0), right=Side("shifted", alpha=0.6)), known)
    assert (state.left.alpha, state.right.alpha) == (None, None)


def test_a_version_that_has_become_the_live_one_is_found_by_its_own_name():
    known = [choice("news", 1)]
    assert settled(State(left=Side("news-v0001"), right=Side("news")), known).left == Side("news")


def test_of_a_very_long_text_the_beginning_is_shown_whole():
    assert beginning("x" * 50_000) == "x" * 50_000
    assert beginning("x" * 1_050_000) == "x" * 50_000 + "… (1,000,000 more characters)"


def test_marks_upon_one_character_have_an_end():
    piled = "z" + "\u0301" * 100_000
    assert len(cut(piled, 160)) < 200
    assert len(snippet(f"{'a' * 300} {piled} river", "river")) < 300


def test_an_index_that_is_not_there_is_named():
    with pytest.raises(UsageError) as caught:
        settled(State(right=Side("gone")), [choice("plain", 0)])
    assert str(caught.value) == (
        "right is 'gone', but there is no such index or version on the cluster: choose one from the list at /search, "
        "or make it with `langshift ingest`."
    )

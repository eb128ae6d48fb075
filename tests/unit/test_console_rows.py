"""What the console lists of hits, and which indices it puts side by side."""

from dataclasses import replace

import pytest
from plain_index import PLAIN

from langshift.errors import UsageError
from langshift.evaluate.console.search.rows import cut, ordinal, places, rows, shares, snippet
from langshift.evaluate.console.search.sides import Choice, settled
from langshift.evaluate.console.search.state import Side, State
from langshift.ingest.hit import Hit, Other


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


def test_an_index_that_is_not_there_is_named():
    with pytest.raises(UsageError) as caught:
        settled(State(right=Side("gone")), [choice("plain", 0)])
    assert str(caught.value) == (
        "right is 'gone', but there is no such index or version on the cluster: choose one from the list at /search, "
        "or make it with `langshift ingest`."
    )

"""The console's search pages: state and address, lists of hits, sides, and what is kept between requests."""

from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_index import PLAIN
from search_request import preferring

from langshift.errors import UsageError
from langshift.plugin.metadata import ChunkPlace, FieldNames
from langshift.retrieval.facets import Facet, FacetValue
from langshift.retrieval.request import ARGUMENTS, MODES, SearchSettings
from langshift.retrieval.result import Hit, Other, Passage
from langshift.retrieval.snippets import Snippet
from langshift.web.context import LruCache
from langshift.web.search.searching import CachedShortlist, SideFacets, SideResult, truncated_hit, truncated_sources
from langshift.web.search.state import IndexChoice, SearchSide, SearchState, parse_state, resolve_state, shows_once
from langshift.web.search.view import facet_links, ordinal, places, rows, shares, snippet, truncate
from langshift.web.search.why import beginning

TAGS = st.sampled_from(["ar", "de", "en", "he", "th", "und", "zh"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
PREFERENCES = st.floats(-0.2, 0.2).map(lambda value: value + 0.0)
SCALES = st.none() | st.floats(0, 1).map(lambda value: value + 0.0)
SIDES = st.builds(
    SearchSide,
    index=st.none() | st.sampled_from(["news", "langshift-demo-plain", "rp8-v0001", "no-such-index"]),
    setting=st.one_of(
        st.builds(
            lambda beta, **how: SearchSettings(**preferring(beta), **how),
            mode=st.sampled_from([mode for mode in MODES if mode != "hybrid"]),
            beta=PREFERENCES,
            one_per_group=st.booleans(),
        ),
        st.builds(
            lambda beta, **how: SearchSettings(**preferring(beta), **how),
            mode=st.just("hybrid"),
            beta=PREFERENCES,
            fusion=st.sampled_from(ARGUMENTS["fusion"].choices),
            lexical_weight=st.floats(0, 1).map(lambda value: value + 0.0),
            one_per_group=st.booleans(),
        ),
    ),
    alpha=SCALES,
    gamma=st.none() | st.sampled_from([0.0, 0.9, 0.95, 0.98]),
)
STATES = st.builds(
    SearchState,
    words=TEXTS.map(lambda words: words if words.strip() else ""),
    language=st.none() | TAGS,
    size=st.integers(1, 100),
    filter_texts=st.lists(
        st.sampled_from(["language=th,de", 'section="a, b"', "year>=1990", "isbn!=*", '{"prefix": {"a": "b"}}']),
        unique=True,
    ).map(tuple),
    facet=st.sampled_from(["", "section", "price & more"]),
    sort=st.sampled_from([(), ("year:desc",), ("year", "title:desc")]),
    once=st.none() | st.booleans(),
    left=SIDES,
    right=SIDES,
)
# Pages, the right one of which is at a point in time.
STATES |= st.builds(
    lambda state, start: replace(state, start=start, right=replace(state.right, point_in_time="o463QQEPbXktaW5k")),
    STATES,
    st.integers(0, 999),
)


def read(address: str) -> SearchState:
    return parse_state(parse_qsl(urlsplit(address).query, keep_blank_values=True))


@given(STATES)
def test_a_link_gives_back_the_state_it_was_written_from(state: SearchState) -> None:
    assert read(state.address()) == state


@given(STATES)
def test_every_state_has_one_link(state: SearchState) -> None:
    assert read(state.address()).address() == state.address()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["q", "lang", "size", "filter", "from", "left", "left.alpha", "left.gamma", "right.mode"]),
            TEXTS,
        )
    )
)
def test_whatever_stands_in_an_address_is_a_state_or_told_in_one_sentence(pairs: list[tuple[str, str]]) -> None:
    try:
        state = parse_state(pairs)
    except UsageError as error:
        told = str(error)
        assert told.endswith(".")
        assert told.split(" ")[0] in {*(name for name, _ in pairs), "A", "The"}
    else:
        assert read(state.address()) == state


def test_what_is_usual_is_left_out_of_a_link() -> None:
    assert SearchState().address() == "/search"
    assert (
        SearchState(words="rivers & lakes", left=SearchSide("news")).address() == "/search?q=rivers+%26+lakes&left=news"
    )


def test_a_link_names_all_that_differs_from_what_is_usual() -> None:
    hybrid = SearchSettings(mode="hybrid", spread=0.05, fusion="rrf", lexical_weight=0.25)
    state = SearchState(
        "river",
        "de",
        20,
        ("language=de,th", "year<2000"),
        "section",
        ("year:desc", "title"),
        40,
        False,
        SearchSide("news", hybrid, 0.5, 0.95, "abc"),
        SearchSide("news", SearchSettings("dense", one_per_group=True)),
    )
    assert state.address() == (
        "/search?q=river&lang=de&size=20&filter=language%3Dde%2Cth&filter=year%3C2000&facet=section&sort=year%3Adesc%2Ctitle"
        "&from=40&once=0&left=news&left.mode=hybrid&left.alpha=0.5&left.gamma=0.95&left.prefer=-0.05&left.weight=0.25"
        "&left.fusion=rrf&left.pit=abc&right=news&right.mode=dense&right.one=1"
    )


REMEDY = ": correct it in the address, or leave it out to use the default."


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "left.alpha=abc",
            "left.alpha is 'abc', but it must be a number from 0 to 1: correct it in the address, or leave it out to "
            "use the default.",
        ),
        (
            "right.alpha=nan",
            "right.alpha is 'nan', but it must be a number from 0 to 1: correct it in the address, or leave it out "
            "to use the default.",
        ),
        (
            "left.prefer=0.3",
            "left.prefer is '0.3', but it must be a number from -0.2 to 0.2: correct it in the address, or leave it "
            "out to use the default.",
        ),
        (
            "right.weight=" + "9" * 1000,
            f"right.weight is '{'9' * 60}…', but it must be a number from 0 to 1: correct it in the address, or "
            "leave it out to use the default.",
        ),
        (
            "left.gamma=0.5",
            "left.gamma is '0.5', but it must be 0, or a number from 0.9 to 0.98" + REMEDY,
        ),
        ("size=2.5", "size is '2.5', but it must be a whole number from 1 to 100" + REMEDY),
        (
            "left.mode=evil",
            "left.mode is 'evil', but it must be one of auto, dense, lexical, sparse, hybrid, balanced, anchored"
            + REMEDY,
        ),
        ("left.fusion=sum", "left.fusion is 'sum', but it must be one of min-max, rrf" + REMEDY),
        ("left.one=yes", "left.one is 'yes', but it must be 1 or 0" + REMEDY),
        ("lang=<b>", "lang is '<b>', but it must be a BCP 47 tag such as th" + REMEDY),
        ("from=2.5", "from is '2.5', but it must be a whole number from 0 to 999" + REMEDY),
    ],
)
def test_a_value_that_cannot_be_used_is_named(query: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(f"/search?{query}")
    assert str(caught.value) == told


def test_empty_values_are_not_given() -> None:
    assert read("/search?q=&lang=&left=&left.alpha=&filter=&size=") == SearchState()


def test_the_scales_of_an_index_that_is_no_longer_chosen_are_dropped() -> None:
    assert read("/search?left=news&left.for=old&left.alpha=0.3&left.gamma=0.9").left == SearchSide("news")
    assert read("/search?left=news&left.for=news&left.alpha=0.3").left == SearchSide("news", alpha=0.3)


def test_what_hybrid_alone_has_is_kept_in_hybrid_alone() -> None:
    assert read("/search?left.weight=0.5&left.fusion=rrf").left == SearchSide()
    assert read("/search?left.weight=0.5&left.mode=hybrid").left.setting.lexical_weight == 0.5


def hit(name, language="en", others=()):
    inside = tuple(Other(one, None, "de", "", "") for one in others)
    return Hit(name, 0.5, language, "", "text", None, others=inside)


def choice(name, alpha, documents=9, live=True, gamma=0.0, translated=0.0):
    made = replace(PLAIN, alpha=alpha, vectors="v", gamma=gamma)
    version = SimpleNamespace(
        version=f"{name}-v0001" if live else name,
        state="live" if live else "kept",
        fingerprint=made,
        documents=documents,
        translated=translated,
    )
    return IndexChoice(name, version)


@pytest.mark.parametrize(("shares", "usual"), [((0.9, 0.8), True), ((1.0, 0.7), False), ((0.0, 0.0), False)])
def test_pages_show_once_where_both_indices_are_translated(shares, usual):
    known = [choice(name, 0.5, translated=share) for name, share in zip(("a", "b"), shares, strict=True)]
    asked = SearchState(left=SearchSide("a"), right=SearchSide("b"))
    for once in (None, True, False):
        state = resolve_state(replace(asked, once=once), known)
        # What is usual is not in the address.
        assert state.once == (None if once == usual else once)
        assert shows_once(state.left, state.right, known) == usual


def test_the_place_on_the_other_side_is_told_in_words():
    here = [hit("a"), hit("b"), hit("c"), hit("d")]
    there = places([hit("b"), hit("a"), hit("c")])
    assert [(row.movement, row.moved) for row in rows(here, there, 0, among="among the first 100")] == [
        ("up", "up 1, 2nd on the other side"),
        ("down", "down 1, 1st on the other side"),
        ("same", "same rank"),
        ("absent", "not among the first 100 on the other side"),
    ]


def test_a_document_inside_a_hit_stands_where_the_hit_does():
    there = places([hit("x"), hit("y", others=("a",))])
    assert rows([hit("a")], there, 0, among="here")[0].moved == "up 1, 2nd on the other side"
    assert rows([hit("z", others=("x",))], there, 0, among="here")[0].moved == "same rank"


@pytest.mark.parametrize(
    ("place", "said", "more"),
    [
        (ChunkPlace(2, 90, 1200, 12), "Passage 3 of 12", True),
        (ChunkPlace(0, 0, 9, 1), "", False),
        # Chunks that somebody else has made may not tell where they are.
        (None, "", True),
    ],
)
def test_a_hit_names_its_passage_and_whether_there_may_be_more(place, said, more):
    (row,) = rows([replace(hit("a"), passage=Passage("a#0002", 0.5, "en", "words", place))], {}, 0, among="here")
    assert (row.passage, row.more) == (said, more)
    (whole,) = rows([hit("a")], {}, 0, among="here")
    assert (whole.passage, whole.more) == ("", False)


def test_ordinals():
    assert [ordinal(rank) for rank in (1, 2, 3, 4, 11, 12, 13, 21, 100, 101, 112)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "100th", "101st", "112th")
    ]


def test_shares_count_languages():
    assert shares([hit("a"), hit("b", "und"), hit("c", "th"), hit("d", "th")]) == [("th", 2), ("en", 1), ("und", 1)]


@pytest.mark.parametrize(
    ("text", "shown", "parts"),
    [
        ("a river.", Snippet("a river.", ((2, 7),), "words"), [("a ", False), ("river", True), (".", False)]),
        ("One. A river. Two.", Snippet("A river."), [("…", False), ("A river.", False), ("…", False)]),
        (" One. A <b> ", Snippet("One. A <b>"), [("One. A <b>", False)]),
        ("", None, []),
    ],
)
def test_a_snippet_is_parts_of_text_with_what_was_left_out(text, shown, parts):
    assert snippet(replace(hit("a"), text=text, snippet=shown)) == parts


@pytest.mark.parametrize("value", ["th", "a, b", 'a "b" c', "*", " a ", "a\nb", "=", "", "a,b", "'"])
@pytest.mark.parametrize("name", ["section", "a.b", "odd=name"])
def test_a_value_of_a_facet_is_a_link_to_its_filter_and_back(name, value):
    state = SearchState("q", filter_texts=("year>=1990", "section=x,y"), left=SearchSide("news"))
    outcome = SideResult(choice("news", 1), state.left, facets=SideFacets({name: Facet((FacetValue(value, 3),), 0)}))
    (_, links, _), *_ = facet_links(state, outcome)
    if value in {"a\nb", ""} or name == "odd=name":
        assert links[0].address is None
        return
    there = read(links[0].address)
    assert value in there.filters.filters[name]["in"]
    (_, links, _), *_ = facet_links(there, outcome)
    (link,) = (one for one in links if one.value == truncate(value, 160) and one.chosen)
    assert read(link.address) == state


def test_of_documents_nothing_is_kept_that_lists_do_not_show():
    long = "the river floods " * 60_000
    source = {"title": long, "text": {"en": long}, "group": ["a", "b"], "body": {"main": long}, "more": long}
    (kept,) = truncated_sources({"1": source}, FieldNames()).values()
    assert kept == {"title": long[:4_000], "text": long[:4_000], "group": "a"}
    (kept,) = truncated_sources({"1": source}, FieldNames(texts=("body.main",))).values()
    assert kept == {"body.main": long[:4_000], "group": "a"}
    split = FieldNames(texts=("title", "body.main", "more"), title="title", by_language=True, group="text.en")
    (kept,) = truncated_sources({"1": {**source, "more": "", "text": {"en": "g"}}}, split).values()
    assert kept == {"title": long[:4_000], "body.main": long[:4_000], "text.en": "g"}
    other = Other("2", None, "de", long, long, source)
    found = truncated_hit(Hit("1", 0.5, "en", long, long, "a", others=(other,), source=source))
    assert found == Hit("1", 0.5, "en", long[:4_000], long[:4_000], "a", others=found.others)
    assert found.others == (Other("2", None, "de", long[:4_000], long[:4_000]),)


def test_what_is_cut_keeps_a_character_with_its_marks():
    assert truncate("e\u0301" * 200, 241) == "e\u0301" * 121 + "…"


@pytest.mark.parametrize(
    ("known", "left", "right"),
    [
        (
            [choice("a-plain", 0), choice("a-shifted", 1), choice("b", 1)],
            SearchSide("a-plain"),
            SearchSide("a-shifted"),
        ),
        (
            [choice("few", 0, 3), choice("b", 1), choice("b-v0001", 0, live=False)],
            SearchSide("b-v0001"),
            SearchSide("b"),
        ),
        ([choice("b", 1)], SearchSide("b", alpha=0.0), SearchSide("b")),
        ([choice("b", 0)], SearchSide("b"), SearchSide("b")),
        (
            [choice("b", 1, gamma=0.97)],
            SearchSide("b", alpha=0.0, gamma=0.0),
            SearchSide("b"),
        ),
    ],
)
def test_what_belongs_together_is_put_side_by_side(known, left, right):
    state = resolve_state(SearchState(), known)
    assert (state.left, state.right) == (left, right)


def test_a_side_that_is_open_is_filled_with_what_fits_the_other():
    known = [choice("plain", 0), choice("shifted", 1), choice("other", 1, 3)]
    assert resolve_state(SearchState(left=SearchSide("plain")), known).right == SearchSide("shifted")
    assert resolve_state(SearchState(right=SearchSide("other")), known).left == SearchSide("other", alpha=0.0)


def test_the_alpha_of_the_index_itself_is_as_indexed():
    known = [choice("plain", 0), choice("shifted", 0.6)]
    state = resolve_state(
        SearchState(left=SearchSide("plain", alpha=0.0), right=SearchSide("shifted", alpha=0.6)), known
    )
    assert (state.left.alpha, state.right.alpha) == (None, None)


def test_the_gamma_of_the_index_itself_is_as_indexed():
    known = [choice("news", 1, gamma=0.97)]
    found = {
        gamma: resolve_state(SearchState(left=SearchSide("news", gamma=gamma)), known).left for gamma in (0.97, 0.0)
    }
    assert {gamma: side.gamma for gamma, side in found.items()} == {0.97: None, 0.0: 0.0}
    assert found[0.0].scales_in_words == "gamma 0"
    assert known[0].gammas == [0.0, *(at / 100 for at in range(90, 99))]
    assert choice("news", 1, gamma=0.975).gammas[-2:] == [0.975, 0.98]


def test_a_version_that_has_become_the_live_one_is_found_by_its_own_name():
    known = [choice("news", 1)]
    assert resolve_state(
        SearchState(left=SearchSide("news-v0001"), right=SearchSide("news")), known
    ).left == SearchSide("news")


def test_of_a_very_long_text_the_beginning_is_shown_whole():
    assert beginning("x" * 50_000) == "x" * 50_000
    assert beginning("x" * 1_050_000) == "x" * 50_000 + "… (1,000,000 more characters)"


def test_marks_upon_one_character_have_an_end():
    piled = "z" + "\u0301" * 100_000
    assert len(truncate(piled, 160)) < 200


def test_an_index_that_is_not_there_is_named():
    with pytest.raises(UsageError) as caught:
        resolve_state(SearchState(right=SearchSide("gone")), [choice("plain", 0)])
    assert str(caught.value) == (
        "right is 'gone', but there is no such index or version on the cluster: choose one from the list at /search, "
        "or create it with `langshift ingest`."
    )


def test_what_was_used_longest_ago_is_kept_no_longer():
    kept = LruCache(2)
    made = [kept.of(key, lambda key=key: key.upper()) for key in ("a", "b", "a", "c")]
    assert made == ["A", "B", "A", "C"]
    assert [kept.get(key) for key in ("a", "b", "c")] == ["A", None, "C"]


def test_what_is_to_be_fresh_is_made_again():
    kept = LruCache(2)
    assert [kept.of("a", lambda: 1), kept.of("a", lambda: 2), kept.of("a", lambda: 3, fresh=True)] == [1, 1, 3]
    assert kept.get("a") == 3


@pytest.mark.parametrize(
    ("shiftable", "lacks", "fixed"),
    [
        (None, {}, None),
        (None, {"lexical": "Too many words."}, None),
        (None, {"dense": "There is no encoder."}, "There is no encoder."),
        ("It keeps no vectors.", {"dense": "There is no encoder."}, "It keeps no vectors."),
    ],
)
def test_alpha_stays_where_the_index_or_the_query_has_nothing_to_move(shiftable, lacks, fixed):
    assert CachedShortlist(SimpleNamespace(shiftable=shiftable), SimpleNamespace(lacks=lacks), {}).fixed == fixed

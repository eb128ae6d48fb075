"""The search page's state and the address bar."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.errors import UsageError
from langshift.evaluate.console.search.state import Side, State, state_of
from langshift.plugin.search.wanted import FUSIONS, MODES, Setting

TAGS = st.sampled_from(["ar", "de", "en", "he", "th", "und", "zh"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SIDES = st.builds(
    Side,
    index=st.none() | st.sampled_from(["news", "langshift-demo-plain", "rp8-v0001", "no-such-index"]),
    setting=st.one_of(
        st.builds(
            Setting,
            mode=st.sampled_from([mode for mode in MODES if mode != "hybrid"]),
            preference=st.floats(-0.2, 0.2).map(lambda value: value + 0.0),
            one_per_group=st.booleans(),
        ),
        st.builds(
            Setting,
            mode=st.just("hybrid"),
            preference=st.floats(-0.2, 0.2).map(lambda value: value + 0.0),
            fusion=st.sampled_from(FUSIONS),
            lexical_weight=st.floats(0, 1).map(lambda value: value + 0.0),
            one_per_group=st.booleans(),
        ),
    ),
    alpha=st.none() | st.floats(0, 1).map(lambda value: value + 0.0),
)
STATES = st.builds(
    State,
    words=TEXTS.map(lambda words: words if words.strip() else ""),
    language=st.none() | TAGS,
    size=st.integers(1, 100),
    languages=st.sets(TAGS, max_size=4).map(lambda tags: tuple(sorted(tags))),
    left=SIDES,
    right=SIDES,
)


def read(address: str) -> State:
    return state_of(parse_qsl(urlsplit(address).query, keep_blank_values=True))


@given(STATES)
def test_a_link_gives_back_the_state_it_was_written_from(state: State) -> None:
    assert read(state.address()) == state


@given(STATES)
def test_every_state_has_one_link(state: State) -> None:
    assert read(state.address()).address() == state.address()


@given(st.lists(st.tuples(st.sampled_from(["q", "lang", "size", "filter", "left", "left.alpha", "right.mode"]), TEXTS)))
def test_whatever_stands_in_an_address_is_a_state_or_told_in_one_sentence(pairs: list[tuple[str, str]]) -> None:
    try:
        state = state_of(pairs)
    except UsageError as error:
        told = str(error)
        assert told.endswith(".")
        assert told.split(" ")[0] in {name for name, _ in pairs}
    else:
        assert read(state.address()) == state


def test_what_is_usual_is_left_out_of_a_link() -> None:
    assert State().address() == "/search"
    assert State(words="rivers & lakes", left=Side("news")).address() == "/search?q=rivers+%26+lakes&left=news"


def test_a_link_names_all_that_differs_from_what_is_usual() -> None:
    hybrid = Setting(mode="hybrid", preference=-0.05, fusion="rrf", lexical_weight=0.25)
    state = State("river", "de", 20, ("de", "th"), Side("news", hybrid, 0.5), Side("news", Setting(one_per_group=True)))
    assert state.address() == (
        "/search?q=river&lang=de&size=20&filter=de&filter=th&left=news&left.mode=hybrid&left.alpha=0.5"
        "&left.prefer=-0.05&left.weight=0.25&left.fusion=rrf&right=news&right.one=1"
    )


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "left.alpha=abc",
            "left.alpha is 'abc', but it must be a number from 0 to 1: correct it in the address, or leave it out for "
            "what is usual.",
        ),
        (
            "right.alpha=nan",
            "right.alpha is 'nan', but it must be a number from 0 to 1: correct it in the address, or leave it out for "
            "what is usual.",
        ),
        (
            "left.prefer=0.3",
            "left.prefer is '0.3', but it must be a number from -0.2 to 0.2: correct it in the address, or leave it "
            "out for what is usual.",
        ),
        (
            "right.weight=" + "9" * 1000,
            f"right.weight is '{'9' * 40}…', but it must be a number from 0 to 1: correct it in the address, or leave "
            "it out for what is usual.",
        ),
        ("size=2.5", "size is '2.5', but it must be a whole number from 1 to 100."),
        ("left.mode=evil", "left.mode is 'evil', but it must be one of dense, lexical, hybrid, balanced, anchored."),
        ("left.fusion=sum", "left.fusion is 'sum', but it must be one of min-max, rrf."),
        ("left.one=yes", "left.one is 'yes', but it must be 1, or left out."),
        ("lang=<b>", "lang is '<b>', which is no language: use a BCP 47 tag such as th, or leave it out."),
        ("filter=q1", "filter is 'q1', which is no language: use a BCP 47 tag such as th, or leave it out."),
        ("filter=de&" * 65, "filter is given 65 times, but at most 64 languages can be chosen."),
    ],
)
def test_a_value_that_cannot_be_used_is_named(query: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(f"/search?{query}")
    assert str(caught.value) == told


def test_empty_values_are_not_given() -> None:
    assert read("/search?q=&lang=&left=&left.alpha=&filter=&size=") == State()


def test_the_alpha_of_an_index_that_is_no_longer_chosen_is_dropped() -> None:
    assert read("/search?left=news&left.for=old&left.alpha=0.3").left == Side("news")
    assert read("/search?left=news&left.for=news&left.alpha=0.3").left == Side("news", alpha=0.3)


def test_what_hybrid_alone_has_is_kept_in_hybrid_alone() -> None:
    assert read("/search?left.weight=0.5&left.fusion=rrf").left == Side()
    assert read("/search?left.weight=0.5&left.mode=hybrid").left.setting.lexical_weight == 0.5

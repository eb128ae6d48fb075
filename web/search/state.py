"""The whole state of the search page as the address bar holds it: parsed, checked and written in one place."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlencode

from langshift.debias.debiaser import LEAST_GAMMA, MOST_GAMMA, require_gamma
from langshift.errors import UsageError
from langshift.languages import require_tag, text_language
from langshift.plugin.inventory import Version
from langshift.plugin.representations import SparseWeights
from langshift.retrieval.filters import ClientFilters, ReadFilters, read_filters
from langshift.retrieval.request import (
    ARGUMENTS,
    MOST_RANKED,
    RECOMMENDED,
    SearchArguments,
    SearchSettings,
    read_arguments,
)
from langshift.wording import beginning

R = TypeVar("R")
Place = Literal["left", "right"]
PLACES: Final[tuple[Place, Place]] = ("left", "right")

USUAL_SIZE: Final = 10
# The shortlist ranks so many; more are for a command.
MOST_SIZE: Final = 100
MOST_PREFERENCE: Final = 0.2
GAMMAS: Final = (0.0, *(at / 100 for at in range(round(LEAST_GAMMA * 100), round(MOST_GAMMA * 100) + 1)))
_GAMMA = f"0, or a number from {LEAST_GAMMA:g} to {MOST_GAMMA:g}"
_LONGEST = 40
# From here on, of ten hits most are translations of others.
_TRANSLATED = 0.8


@dataclass(frozen=True)
class SearchSide:
    """One of the two searches.

    Attributes:
        index: a live index or a version, by its name; None where none was chosen yet.
        setting: how it is searched.
        alpha: the one scale at which all languages are looked at, 0 to 1; None as indexed.
        gamma: how much of what all queries have in common is out of the documents that are looked at; None as indexed.
        point_in_time: of which another page is looked at; None for no page, and for the first.
    """

    index: str | None = None
    setting: SearchSettings = RECOMMENDED
    alpha: float | None = None
    gamma: float | None = None
    point_in_time: str | None = None

    @property
    def scales(self) -> dict[str, float]:
        """What is not looked at as indexed: ``alpha``, ``gamma`` or both."""
        given = {"alpha": self.alpha, "gamma": self.gamma}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def scales_in_words(self) -> str:
        """``alpha 0.5, gamma 0``; empty where all is looked at as indexed."""
        return ", ".join(f"{name} {number(value)}" for name, value in self.scales.items())


@dataclass(frozen=True)
class SearchState:
    """What a view of the search page depends on, beside the cluster.

    Attributes:
        words: the query; empty where nothing is asked yet.
        language: of the query, a tag; None for detected.
        size: how many hits a side shows.
        filter_texts: what documents that are searched must match, each as ``langshift search --filter`` takes it.
        facet: the field, beside the language, whose values are counted; empty for none.
        sort: by what hits are sorted, each as ``--sort`` takes it; empty for by score.
        start: the place of the first hit that is shown, counted from 0, in a ranking at one point in time; None for
            no pages.
        once: whether of translations of each other the best is shown; None where that goes by the indices, see
            ``resolve_state``.
        left: the left search.
        right: the right search.
    """

    words: str = ""
    language: str | None = None
    size: int = USUAL_SIZE
    filter_texts: tuple[str, ...] = ()
    facet: str = ""
    sort: tuple[str, ...] = ()
    start: int | None = None
    once: bool | None = None
    left: SearchSide = field(default_factory=SearchSide)
    right: SearchSide = field(default_factory=SearchSide)

    def side(self, place: Place) -> SearchSide:
        """One of the two."""
        return self.left if place == "left" else self.right

    def items(self) -> list[tuple[str, str]]:
        """Names and values of an address, without what is usual."""
        size = "" if self.size == USUAL_SIZE else str(self.size)
        start = "" if self.start is None else str(self.start)
        filters = [("filter", text) for text in self.filter_texts]
        given = [("q", self.words), ("lang", self.language), ("size", size), *filters]
        given += [("facet", self.facet), ("sort", ",".join(self.sort)), ("from", start)]
        given += [("once", "" if self.once is None else str(int(self.once)))]
        found = [(name, value) for name, value in given if value]
        usual = _side_values(SearchSide())
        for place in PLACES:
            values_there = _side_values(self.side(place)).items()
            found += [(f"{place}{name}", value) for name, value in values_there if value != usual[name]]
        return found

    @property
    def filters(self) -> ReadFilters:
        """The documents that are searched, as a search takes it."""
        return read_filters(self.filter_texts)

    @property
    def arguments(self) -> SearchArguments:
        """What is asked of both sides alike, without how."""
        filters, dsl_filter = self.filters
        return SearchArguments(
            language=self.language, filters=filters, dsl_filter=dsl_filter, sort=self.sort, from_=self.start
        )

    @property
    def by_score(self) -> "SearchState":
        """The same by score and without pages."""
        left, right = (replace(side, point_in_time=None) for side in (self.left, self.right))
        return replace(self, sort=(), start=None, left=left, right=right)

    def address(self, path: str = "/search", **more: str) -> str:
        """The link to a page of this state."""
        written = urlencode([*self.items(), *more.items()])
        return f"{path}?{written}" if written else path


def parse_state(given: Iterable[tuple[str, str]]) -> SearchState:
    """The state that the names and values of an address give; names that mean nothing here are left aside.

    Of a name that comes twice the last counts, but of ``filter`` all, and every line of them. An empty value is one
    that was not given.

    Raises:
        UsageError: a value cannot be used; the sentence names it and what it may be.
    """
    pairs = [(name, value) for name, value in given if value]
    values = dict(pairs)
    # A text field has one on each line.
    texts = [text.strip() for name, value in pairs if name == "filter" for text in re.split(r"[\r\n]+", value)]
    words, size = values.get("q", ""), _whole("size", values, 1, MOST_SIZE)
    start = _whole("from", values, 0, MOST_RANKED - 1)
    state = SearchState(
        words=words if words.strip() else "",
        language=_read("lang", values, lambda tag: text_language(require_tag(tag)), "a BCP 47 tag such as th"),
        size=USUAL_SIZE if size is None else size,
        filter_texts=tuple(dict.fromkeys(filter(None, texts))),
        facet=values.get("facet", "").strip(),
        sort=tuple(filter(None, map(str.strip, values.get("sort", "").split(",")))),
        start=start,
        once=_is_on("once", values) if "once" in values else None,
        left=_side("left", values),
        right=_side("right", values),
    )
    ClientFilters(*state.filters)
    return state


def _side(place: Place, values: Mapping[str, str]) -> SearchSide:
    index = values.get(place)
    alpha = _number(f"{place}.alpha", values, 0, 1)
    gamma = _read(f"{place}.gamma", values, lambda given: require_gamma(_between(float(given), 0, 1)), _GAMMA)
    # A form whose index was just changed still holds the scales of the one before.
    if values.get(f"{place}.for", index) != index:
        alpha = gamma = None
    preference = _number(f"{place}.prefer", values, -MOST_PREFERENCE, MOST_PREFERENCE) or 0.0
    # What only hybrid has is checked in every mode, and kept in none but hybrid.
    of_hybrid = {
        "fusion": _one_of(f"{place}.fusion", values, ARGUMENTS["fusion"].choices),
        "lexical_weight": _number(f"{place}.weight", values, *ARGUMENTS["lexical_weight"].range),
    }
    mode = _one_of(f"{place}.mode", values, ARGUMENTS["mode"].choices)
    setting = read_arguments(
        SearchSettings,
        mode=mode,
        prefer_language=preference if preference > 0 else None,
        spread=-preference if preference < 0 else None,
        one_per_group=_is_on(f"{place}.one", values),
        # Not any reranker: an address must not make the server fetch what it names.
        rerank="features" if _is_on(f"{place}.rerank", values) else None,
        **(of_hybrid if mode == "hybrid" else {}),
    )
    # Without the place of a page it means nothing.
    return SearchSide(index, setting, alpha, gamma, values.get(f"{place}.pit") if "from" in values else None)


def _side_values(side: SearchSide) -> dict[str, str]:
    """All of a side by the ends of the names that it has in an address; empty is what was not chosen."""
    setting = side.setting
    return {
        "": side.index or "",
        ".mode": setting.mode,
        ".alpha": "" if side.alpha is None else number(side.alpha),
        ".gamma": "" if side.gamma is None else number(side.gamma),
        ".prefer": number(setting.preference),
        ".weight": number(setting.lexical_weight),
        ".fusion": setting.fusion,
        ".one": "1" if setting.one_per_group else "",
        ".rerank": "1" if setting.rerank else "",
        ".pit": side.point_in_time or "",
    }


def number(value: float) -> str:
    """The shortest way to write a number that is read as the same."""
    return str(int(value)) if value == int(value) else repr(value)


def _read(name: str, values: Mapping[str, str], read: Callable[[str], R], allowed: str) -> R | None:
    """What ``read`` makes of a value; None where it was not given."""
    given = values.get(name)
    if given is None:
        return None
    try:
        # What is longer is nothing that a form gives, and slow to read.
        if len(given) <= _LONGEST:
            return read(given)
    except (LookupError, UsageError, ValueError):
        pass
    raise UsageError(
        f"{name} is {beginning(given)!r}, but it must be {allowed}: correct it in the address, or leave it out "
        "to use the default."
    )


def _number(name: str, values: Mapping[str, str], least: float, most: float) -> float | None:
    allowed = f"a number from {least:g} to {most:g}"
    return _read(name, values, lambda given: _between(float(given), least, most), allowed)


def _whole(name: str, values: Mapping[str, str], least: int, most: int) -> int | None:
    known = {str(value): value for value in range(least, most + 1)}
    return _read(name, values, known.__getitem__, f"a whole number from {least} to {most}")


def _between(value: float, least: float, most: float) -> float:
    if not least <= value <= most:
        raise ValueError
    # No minus before a zero.
    return value + 0.0


def _one_of(name: str, values: Mapping[str, str], known: Sequence[str]) -> str | None:
    return _read(name, values, {one: one for one in known}.__getitem__, f"one of {', '.join(known)}")


def _is_on(name: str, values: Mapping[str, str]) -> bool:
    return _read(name, values, {"0": False, "1": True}.__getitem__, "1 or 0") or False


class IndexChoice(NamedTuple):
    """One index that a side can search.

    Attributes:
        name: by which it is opened: the alias of a live index, a kept version's own name.
        version: what is opened.
    """

    name: str
    version: Version

    @property
    def translated(self) -> bool:
        """Whether most of its pages are there in most of its languages."""
        return self.version.translated >= _TRANSLATED

    @property
    def live(self) -> bool:
        """Whether its alias stands for it."""
        return self.version.state == "live"

    @property
    def weighed(self) -> bool:
        """Whether it keeps weights of tokens, by which ``sparse`` searches."""
        return any(isinstance(one, SparseWeights) for one in self.version.beside)

    @property
    def moves(self) -> bool:
        """Whether any document of it is moved."""
        return self.version.fingerprint.moves

    @property
    def alpha(self) -> float:
        """The scale of its shift; 0 where nothing was moved."""
        return self.version.fingerprint.alpha if self.moves else 0.0

    @property
    def gamma(self) -> float:
        """How much of what all queries have in common its documents lost; 0 where nothing was moved."""
        return self.version.fingerprint.gamma if self.moves else 0.0

    @property
    def own(self) -> float:
        """How much nearer its documents were moved to queries in their own language."""
        return self.version.fingerprint.own if self.moves else 0.0

    @property
    def gammas(self) -> list[float]:
        """Those at which it can be looked at: its own, 0, and .9 to .98."""
        return sorted({self.gamma, *GAMMAS})

    @property
    def encoder(self) -> tuple[str, str]:
        """What made its vectors before they were moved: an encoder, of one revision."""
        return self.version.fingerprint.encoder, self.version.fingerprint.revision

    @property
    def alpha_in_words(self) -> str:
        """``1 (th 0.3), gamma 0.7``."""
        return self.version.fingerprint.scales.removeprefix("alpha ") if self.moves else "0"


def choices(versions: Iterable[Version]) -> list[IndexChoice]:
    """All that can be searched, by name; a live index comes before the versions that are kept of it."""
    found = [
        IndexChoice(one.name if one.state == "live" else one.version, one)
        for one in versions
        if one.state != "unfinished"
    ]
    return sorted(found, key=lambda one: one.name)


def resolve_state(state: SearchState, known: Sequence[IndexChoice]) -> SearchState:
    """The state with an index on both sides, and without what is usual for them: scales, and whether pages show once.

    Raises:
        UsageError: there is no index, or not the one that is named.
    """
    if not known:
        raise UsageError("There is no index on the cluster yet: create one, for example with `langshift demo`.")
    left, right = (_by_its_name(place, state.side(place), known) for place in PLACES)
    if left.index is None and right.index is None:
        left, right = _pair(left, right, known)
    elif left.index is None:
        left = _beside(left, choice_of(right, known), known)
    elif right.index is None:
        right = _beside(right, choice_of(left, known), known)
    once = None if state.once == shows_once(left, right, known) else state.once
    return replace(state, once=once, left=_as_indexed(left, known), right=_as_indexed(right, known))


def shows_once(left: SearchSide, right: SearchSide, known: Sequence[IndexChoice]) -> bool:
    """Whether each page is shown once where nobody has chosen: where both indices are translated."""
    return all(choice_of(side, known).translated for side in (left, right))


def choice_of(side: SearchSide, known: Sequence[IndexChoice]) -> IndexChoice:
    """What a side of a settled state searches."""
    return next(one for one in known if one.name == side.index)


def _by_its_name(place: Place, side: SearchSide, known: Sequence[IndexChoice]) -> SearchSide:
    """The side with the name by which its index is opened: a version that was kept may have become the live one."""
    if side.index is None or any(one.name == side.index for one in known):
        return side
    for one in known:
        if one.version.version == side.index:
            return replace(side, index=one.name)
    raise UsageError(
        f"{place} is {beginning(side.index)!r}, but there is no such index or version on the cluster: choose one from "
        "the list at /search, or create it with `langshift ingest`."
    )


def _pair(left: SearchSide, right: SearchSide, known: Sequence[IndexChoice]) -> tuple[SearchSide, SearchSide]:
    """The plain and the shifted index that belong together best; where none do, the first index against itself."""
    pairs = [
        (plain, shifted)
        for plain in known
        for shifted in known
        if not plain.moves and shifted.moves and plain.encoder == shifted.encoder
    ]
    if pairs:
        # Of equals the first by name.
        plain, shifted = max(pairs, key=lambda pair: _kinship(*pair))
        return replace(left, index=plain.name), replace(right, index=shifted.name)
    alone = next((one for one in known if one.live), known[0])
    return _against_itself(left, alone), replace(right, index=alone.name)


def _beside(side: SearchSide, other: IndexChoice, known: Sequence[IndexChoice]) -> SearchSide:
    """A side that was left open, with what is best seen beside the other one."""
    fitting = [
        one for one in known if one.name != other.name and one.encoder == other.encoder and one.moves != other.moves
    ]
    if fitting:
        best = max(fitting, key=lambda one: _kinship(one, other))
        if best.version.documents == other.version.documents:
            return replace(side, index=best.name)
    return _against_itself(side, other)


def _against_itself(side: SearchSide, choice: IndexChoice) -> SearchSide:
    """The side over the index, as it would be without a shift."""
    if side.scales:
        return replace(side, index=choice.name)
    return replace(side, index=choice.name, alpha=0.0, gamma=0.0)


def _kinship(one: IndexChoice, other: IndexChoice) -> tuple[bool, bool, int]:
    """How well two indices can be compared: by their documents, and by their names."""
    return (
        one.version.documents == other.version.documents,
        one.live and other.live,
        len(os.path.commonprefix([one.name, other.name])),
    )


def _as_indexed(side: SearchSide, known: Sequence[IndexChoice]) -> SearchSide:
    choice = choice_of(side, known)
    return replace(
        side,
        alpha=None if side.alpha == choice.alpha else side.alpha,
        gamma=None if side.gamma == choice.gamma else side.gamma,
    )

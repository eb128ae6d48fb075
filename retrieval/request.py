"""What a search is asked: every argument declared once, with its limits and one line for people.

From this come the keyword arguments of Python, the options of ``langshift search``, the body of the service and its
description, the arguments of agents, what the console reads of an address, and settings as text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct, UnsetType, field

from langshift.errors import UsageError
from langshift.files import is_text
from langshift.normal_form import normal_form
from langshift.wording import beginning

# What is longer is no query; encoders read a few hundred words.
MOST_CHARACTERS: Final = 10_000
MOST_HITS: Final = 1000
MOST_PASSAGES: Final = 100
#: Pages are cut from as many hits.
MOST_RANKED: Final = 1000

Mode = Literal["auto", "dense", "lexical", "sparse", "hybrid", "balanced", "anchored"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
#: Modes of scores that are no cosines, of words or of tokens.
ONE_LEG: Final = frozenset({"lexical", "sparse"})
Fusion = Literal["min-max", "rrf"]
#: What becomes of a search whose reranker fails: the order of the mode is kept, or it fails.
RerankFallback = Literal["keep", "fail"]

S = TypeVar("S", bound="SearchSettings")


def require_query(words: object) -> None:
    """Refuse words that cannot be searched for.

    Raises:
        UsageError: saying what is wrong.
    """
    # From Python anything may come.
    if not isinstance(words, str):
        raise UsageError(f"The query is {words!r}, but it must be a string.")
    if not normal_form(words).strip():
        raise UsageError("The query is empty: give the words to search for.")
    if not is_text(words):
        raise UsageError("The query is not UTF-8 text.")
    if len(words) > MOST_CHARACTERS:
        raise UsageError(
            f"The query has {len(words):,} characters, but at most {MOST_CHARACTERS:,} can be searched for."
        )


def _names(given: object) -> list[str] | None:
    """The names in an argument that takes none, one or several; None where it is not that."""
    several = [given] if isinstance(given, str) and given else given or ()
    if not isinstance(several, list | tuple) or not all(isinstance(one, str) and one for one in several):
        return None
    return list(several) if len(several) <= 100 else None


def _fields(given: object) -> list[str] | None:
    """Names of fields, not too many: all of it is compared with all of a hit; None where it is not that."""
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and is_text(one) for one in given):
        return None
    most = len(given) <= 100 and sum(map(len, given)) <= 2000
    return list(given) if most and all(one.count("*") <= 1 for one in given) else None


def _matching(pattern: str) -> Callable[[object], str | None]:
    return lambda given: given if isinstance(given, str) and re.fullmatch(pattern, given) else None


def _number(given: Any) -> float | None:  # noqa: ANN401 - what a user gave
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def _count(given: object, *, text: bool = False) -> int | None:
    if text and isinstance(given, str) and given.isdecimal():
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _place(given: object) -> int | None:
    """The place of a page's first hit."""
    count = _count(given)
    return count if count is not None and 0 <= count < MOST_RANKED else None


#: How an argument is written where it was given, alone or with a value.
Spelling = Callable[..., str]


def in_python(name: str, value: object = None) -> str:
    """``fusion``, ``mode='hybrid'``."""
    return name if value is None else f"{name}={value!r}"


def in_command(name: str, value: object = None) -> str:
    """``--fusion``, ``--mode hybrid``."""
    option = f"--{name.strip('_').replace('_', '-')}"
    return option if value is None else f"{option} {value}"


@dataclass(frozen=True)
class Argument:
    """One argument of a search, as its declaration has it.

    Attributes:
        help: one line on it.
        option: that of ``langshift search`` with what stands for its value, ``--spread B``; empty for none.
        noun: what a message calls one of its choices.
        form: what a value must be, for messages.
        read: makes a value of what was given, None where it cannot be one; None for what its type says.
        needs: the argument that must be given beside it, and the value that it must have; None for any.
        rare: whether few people need it.
        repeated: whether it takes several values, and its option may be given as often.
        nullable: whether JSON may have null for it, which is as if it was left out.
        of_replays: whether replays alone have it, which know more of a query than its words.
        name: as a keyword argument.
        kind: of its values, without what limits them.
        limits: what does, for msgspec.
        usual: the value where none is given.
    """

    help: str
    option: str = ""
    noun: str = ""
    form: str = ""
    read: Callable[[Any], Any] | None = None
    needs: tuple[str, str | None] | None = None
    rare: bool = False
    repeated: bool = False
    nullable: bool = False
    of_replays: bool = False
    name: str = ""
    kind: Any = str
    limits: tuple[Any, ...] = ()
    usual: Any = None

    def __repr__(self) -> str:
        """Its line alone, for signatures."""
        return repr(self.help)

    @property
    def choices(self) -> tuple[str, ...]:
        """What the value may be; empty for any."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest number."""
        return self.limits[0].ge, self.limits[0].le

    @property
    def in_json(self) -> Any:  # noqa: ANN401 - a type
        """Its type as a field of a body in JSON, which is ``UNSET`` where it is left out."""
        kind = self.kind
        for limit in self.limits:
            kind = Annotated[kind, limit]
        usual = None if self.usual in (None, ()) else {"default": self.usual}
        kind = kind | None if self.nullable else kind
        return Annotated[kind | UnsetType, Meta(description=self.help, extra_json_schema=usual)]

    def value(self, given: Any, spelt: Spelling) -> Any:  # noqa: ANN401 - what a user gave
        """Return a value as a search holds it; a number of a setting may be given as text.

        Args:
            given: the value.
            spelt: how the message names the argument.

        Raises:
            UsageError: it cannot be one.
        """
        if self.choices:
            if given not in self.choices:
                raise UsageError(f"There is no {self.noun} {given!r}: choose one of {', '.join(self.choices)}.")
            return given
        value, must = given, self.form
        if self.read is not None:
            value = self.read(given)
        elif self.kind is bool:
            value, must = given if isinstance(given, bool) else None, "True or False"
        elif self.limits:
            least, most = self.range
            value = _number(given) if self.kind is float else _count(given, text=self.needs is not None)
            value = value if value is not None and least <= value <= most else None
            must = f"{'a number' if self.kind is float else 'a whole number'} from {least} to {most:,}"
        else:
            return given
        if value is None:
            raise UsageError(f"{spelt(self.name)} is {beginning(repr(given))}, but it must be {must}.")
        return value


_Cosine = Annotated[float, Meta(ge=0, le=2)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_Passages = Annotated[int, Meta(ge=0, le=MOST_PASSAGES)]
_Hits = Annotated[int, Meta(ge=1, le=MOST_HITS)]
_Place = Annotated[int, Meta(ge=0, le=MOST_RANKED - 1)]
_HYBRID: Final = {"needs": ("mode", "hybrid"), "rare": True, "nullable": True}
_RERANK: Final = {"needs": ("rerank", None), "rare": True, "nullable": True}
_TEXT: Final = {"read": _matching("(?s).*"), "nullable": True}
_NAMES: Final = {"repeated": True, "read": _names, "form": "the name of a field, or a list of at most 100 names"}


class SearchSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How to search: what a mode looks at, and what replays compare."""

    mode: Annotated[
        Mode, Argument("How to search; auto is what calibration found best.", "--mode MODE", "search mode")
    ] = "auto"
    prefer_language: Annotated[
        _Cosine,
        Argument(
            "How much documents in the query's language are preferred; .02 is little.",
            "--prefer-language B",
            nullable=True,
        ),
    ] = 0.0
    spread: Annotated[
        _Cosine, Argument("The same for documents in other languages instead.", "--spread B", nullable=True, rare=True)
    ] = 0.0
    fusion: Annotated[
        Fusion, Argument("Fuse the legs of hybrid by scores or by ranks.", "--fusion NAME", "fusion", **_HYBRID)
    ] = "min-max"
    lexical_weight: Annotated[_Share, Argument("The words' weight in hybrid.", "--lexical-weight W", **_HYBRID)] = 0.3
    sparse_weight: Annotated[
        _Share, Argument("The weight of learned sparse weights in hybrid.", "--sparse-weight W", **_HYBRID)
    ] = 0.0
    one_per_group: Annotated[
        bool, Argument("Show one of several translations, in the query's language if possible.", "--one-per-group")
    ] = False
    rerank: Annotated[
        str | None,
        Argument(
            "Rerank the best hits: features, st:NAME_OR_PATH or http:URL#MODEL.",
            "--rerank NAME",
            form="the name of a reranker, such as 'features'",
            **_TEXT,
        ),
    ] = None
    rerank_depth: Annotated[
        _Hits, Argument("How many of the best hits are reranked.", "--rerank-depth N", **_RERANK)
    ] = 50
    rerank_per_language: Annotated[
        _Passages, Argument("How many of each language beside them.", "--rerank-per-language N", **_RERANK)
    ] = 5
    rerank_fallback: Annotated[
        RerankFallback,
        Argument("If it fails: keep the order, or fail.", "--rerank-fallback WHAT", "fallback", **_RERANK),
    ] = "fail"
    within: Annotated[
        str | None,
        Argument(
            "Search only documents with the query's value of FIELD; language=en: with this one.",
            "--within FIELD",
            form="a field, such as language, or a field with one value, such as language=en",
            read=_matching(r"[^\s=]+(=\S.*)?"),
            of_replays=True,
        ),
    ] = None

    @property
    def preference(self) -> float:
        """The language preference beta, in units of cosine, or of the range of a reranker's scores.

        What a document in the searcher's language is given more than others; below 0 the others are given more.
        """
        return self.prefer_language - self.spread

    @property
    def needs_vector(self) -> bool:
        """Whether the question's vector is needed: by words or tokens alone only for a preference of cosines."""
        if self.rerank is not None:
            return self.mode not in ONE_LEG or by_features(self.rerank)
        return self.mode not in ONE_LEG or bool(self.preference)

    @property
    def needs_weights(self) -> bool:
        """Whether the question's weights of tokens are needed."""
        return self.mode == "sparse" or (self.mode == "hybrid" and self.sparse_weight > 0)

    @property
    def retrieval(self) -> SearchSettings:
        """How candidates are searched for that are reranked; the setting itself without a reranker."""
        if self.rerank is None:
            return self
        usual = {"prefer_language": 0.0, "spread": 0.0}
        return self.but(**usual, **{name: one.usual for name, one in ARGUMENTS.items() if name.startswith("rerank")})

    def but(self: S, **values: Any) -> S:  # noqa: ANN401 - of any of them
        """The same with other values."""
        return msgspec.structs.replace(self, **values)


class SearchArguments(SearchSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a search takes beside its words: how to search, in what, and what hits bring."""

    language: Annotated[
        str | None,
        Argument(
            "The query's language as a BCP 47 tag, else detected.",
            "--language TAG",
            form="a BCP 47 tag such as 'th', or None",
            **_TEXT,
        ),
    ] = None
    vector: Annotated[Sequence[float] | None, Argument("The query's vector, else encoded here.", nullable=True)] = None
    sparse_embedding: Annotated[
        Mapping[str, float] | None, Argument("The query's tokens and weights, else encoded here.", nullable=True)
    ] = None
    size: Annotated[_Hits, Argument("How many hits.", "--size N")] = 10
    filters: Annotated[
        Mapping[str, Any],
        Argument(
            'Field -> a value, several, or conditions (gte, gt, lte, lt, in, not, exists): {"year": {"gte": 1990}}. '
            "All must hold."
        ),
    ] = field(default_factory=dict)
    dsl_filter: Annotated[
        Mapping[str, Any] | Sequence[Mapping[str, Any]],
        Argument("Queries in OpenSearch's own DSL that hits must match, too."),
    ] = ()
    sort: Annotated[
        str | Sequence[str], Argument("Sort by a field, such as year:desc.", "--sort FIELD[:desc]", **_NAMES)
    ] = ()
    from_: Annotated[
        _Place | None,
        Argument(
            "A page that begins with hit N, counted from 0.",
            "--from N",
            form=f"a whole number from 0 to {MOST_RANKED - 1}: pages are cut from the best {MOST_RANKED:,} hits, so "
            "filter, or use other words, to find what is below",
            read=_place,
            nullable=True,
        ),
    ] = None
    point_in_time: Annotated[
        str | None,
        Argument(
            "For a page after the first: what that gave.",
            "--point-in-time ID",
            form="the text that an earlier page gave",
            read=_matching("(?s).+"),
            needs=("from_", None),
            nullable=True,
        ),
    ] = None
    facets: Annotated[str | Sequence[str], Argument("Count the values of a field.", "--facet FIELD", **_NAMES)] = ()
    explain: Annotated[bool, Argument("Show where scores come from, and what the shift did.", "--explain")] = False
    passages: Annotated[_Passages, Argument("Further passages of each hit to show.", "--passages N")] = 0
    fields: Annotated[
        Sequence[str] | None,
        Argument(
            "The documents' own fields to bring, else all.",
            "--fields A,B",
            form="a list of at most 100 names such as ['title', 'year'], of 2,000 characters together, each with one * "
            "at most, or None",
            read=_fields,
            nullable=True,
        ),
    ] = None
    snippets: Annotated[bool, Argument("Whether hits bring a snippet of what matched.")] = False


def by_features(reranker: str) -> bool:
    """Whether a reranker reads numbers that a search knows anyway, not texts."""
    return reranker.partition(":")[0] == "features"


def _declared() -> Iterator[Argument]:
    hints = get_type_hints(SearchArguments, include_extras=True)
    for one in msgspec.structs.fields(SearchArguments):
        kind, *limits, argument = get_args(hints[one.name])
        usual = None if one.default is NODEFAULT else one.default
        yield replace(argument, name=one.name, kind=kind, limits=tuple(limits), usual=usual)


#: The arguments of a search by name, in the order in which they are written.
ARGUMENTS: Final = {one.name: one for one in _declared()}
# What ``help`` shows: one line on each.
_LINES: Final = (f"    {name}: {one.help}" for name, one in ARGUMENTS.items())
SearchArguments.__doc__ = "\n".join([f"{SearchArguments.__doc__}\n\nAttributes:", *_LINES])
#: Those of them that are a setting.
SETTING: Final = tuple(ARGUMENTS[name] for name in SearchSettings.__struct_fields__)
#: What evaluations compare with.
USUAL: Final = SearchSettings("dense")
#: What a search does that nobody says more of: the mode that is best for the index, as far as it tells, and no
#: preference.
RECOMMENDED: Final = SearchSettings()
#: The same with all that is usual beside it.
DEFAULT: Final = SearchArguments()


def read_arguments(kind: type[S], spelt: Spelling = in_python, /, **given: object) -> S:
    """The arguments of a search, or its setting, of what was given; where a value may be None, that is what is usual.

    Args:
        kind: ``SearchArguments`` or ``SearchSettings``.
        spelt: how the sentences of a refusal name an argument.
        **given: their fields.

    Raises:
        UsageError: there is no such mode or fusion, a number is none or out of range, or two things exclude each other.
        TypeError: there is no such argument.
    """
    optional = {name for name, one in ARGUMENTS.items() if one.nullable} | set(SearchSettings.__struct_fields__)
    known = {name: value for name, value in given.items() if value is not None or name not in optional}
    values: dict[str, Any] = {
        name: ARGUMENTS[name].value(one, spelt) if name in ARGUMENTS else one for name, one in known.items()
    }
    found = kind(**values)
    for one in (ARGUMENTS[name] for name in values):
        if one.needs is not None:
            other, needed = one.needs
            if other not in values or needed not in (None, values[other]):
                raise UsageError(f"{spelt(one.name)} needs {spelt(other, needed)}.")
    if {"prefer_language", "spread"} <= values.keys():
        raise UsageError(f"{spelt('prefer_language')} and {spelt('spread')} are mutually exclusive: give one of them.")
    if found.lexical_weight + found.sparse_weight > 1:
        raise UsageError(
            f"{spelt('lexical_weight')} {found.lexical_weight:g} and {spelt('sparse_weight')} {found.sparse_weight:g} "
            "are more than 1 together: vectors have what is left of 1."
        )
    return found


#: What evaluations call a search without options.
_DEFAULT: Final = "default"


def read_setting(text: str) -> SearchSettings:
    """``hybrid --prefer-language .02`` as a setting; what begins with an option is of the mode ``dense``.

    ``default`` is what a search does without options.

    Raises:
        UsageError: it is none.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError(f"The setting {text!r} is not complete: a quotation mark is missing.") from None
    if words == [_DEFAULT]:
        return RECOMMENDED
    if words and not words[0].startswith("-"):
        words = ["--mode", *words]
    try:
        return read_arguments(SearchSettings, in_command, **_arguments(words))
    except UsageError as error:
        raise UsageError(f"The setting {text!r} cannot be used: {error}") from error


def _arguments(words: Sequence[str]) -> dict[str, Any]:
    """The arguments that options stand for: ``--spread .1`` or ``--spread=.1``."""
    known = {in_command(one.name): one for one in SETTING}
    given: dict[str, Any] = {"mode": USUAL.mode}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option not in known or (equals and known[option].kind is bool):
            raise UsageError(f"There is no option {word}: choose from {', '.join(known)}.")
        if known[option].kind is bool:
            given[known[option].name] = True
            continue
        value = value if equals else next(rest, "")
        if not value:
            raise UsageError(f"{option} needs a value.")
        given[known[option].name] = value
    return given


def format_settings(setting: SearchSettings) -> str:
    """A setting as ``read_setting`` reads it, without what is usual."""
    if setting == RECOMMENDED:
        return _DEFAULT
    words: list[str] = [setting.mode]
    for one in SETTING[1:]:
        value = getattr(setting, one.name)
        if value != one.usual:
            # Of a number the fewest digits that are read as the very same.
            written = repr(value).removesuffix(".0") if isinstance(value, float) else shlex.quote(str(value))
            words.append(in_command(one.name, None if one.kind is bool else written))
    return " ".join(words)

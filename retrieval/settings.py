"""What is asked and how: the query, the setting, also as arguments and as text, the index it is asked of."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypedDict, get_args

import msgspec

from langshift.errors import UsageError
from langshift.files import is_text
from langshift.languages import UNDETERMINED
from langshift.normal_form import normal_form
from langshift.plugin.metadata import FieldNames
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.filters import NO_FILTER, DslFilter, Filters, IndexFilter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from langshift.debias.encoders.sparse import TokenWeights
    from langshift.plugin.stored_shift import StoredShift

# What is longer is no query; encoders read a few hundred words.
MOST_CHARACTERS = 10_000
MOST_HITS = 1000
MOST_PASSAGES = 100


def require_query(words: object, size: object) -> None:
    """Refuse words that cannot be searched for, and a number of hits that cannot be given.

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
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MOST_HITS:
        raise UsageError(f"The size is {size!r}, but it must be a number of hits from 1 to {MOST_HITS:,}.")


def require_passages(passages: object, index: IndexInfo) -> None:
    """Refuse a number of further passages that a search of an index cannot bring.

    Raises:
        UsageError: it is none from 0 to 100, or more than 0 of an index of whole documents.
    """
    if not isinstance(passages, int) or isinstance(passages, bool) or not 0 <= passages <= MOST_PASSAGES:
        raise UsageError(f"passages is {passages!r}, but it must be a number from 0 to {MOST_PASSAGES}.")
    if passages and index.fields.parent is None:
        raise UsageError(
            f"Index {index.name} holds whole documents, so there are no further passages to show: documents are cut "
            "into chunks when they are loaded with --chunk."
        )


# So little that nothing is lost on any text that was tried, captions asked for in other words among them.
USUAL_STRENGTH: Final = 0.05


@dataclass(frozen=True)
class AnchorModel:
    """What mode ``anchored`` needs to know of an index; kept in its mapping under ``_meta.langshift_anchors``.

    Attributes:
        spread: standard deviation of the cosine of unrelated documents.
        strength: how strongly the query is moved and candidates are given more, from 0, which is exactly dense, to 1.
        calibrated: whether the strength was measured on questions of the index.
        counterpart: how likely it is that a document in another language is there in the searcher's language, too, by
            the index's known translations, 0 to 1; 0 where none are known.
    """

    spread: Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)]
    strength: Annotated[float, msgspec.Meta(ge=0, le=1)] = USUAL_STRENGTH
    calibrated: bool = False
    counterpart: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As it is kept."""
        return {"spread": self.spread, "strength": self.strength, "counterpart": self.counterpart}


@dataclass(frozen=True)
class SearchContext:
    """What is searched.

    Attributes:
        index: the index.
        fuses: whether the cluster has neural-search, whose ``hybrid`` query puts two legs together; where not, or
            where the scores of the legs are wanted, the client does it, with the same result.
        trust: what ``anchored`` needs to know of the index; needed by that mode alone.
        shift: of the index; None where it has neither gamma nor own. Needed by ``anchored`` and by ``features``.
        legs: whether ``anchored`` is to tell what each leg says of the hits, which costs it a step.
        native: whether the cluster has our plugin, whose query carries out ``dense`` with a preference in one search;
            where not, that is two searches, with the same result.
    """

    index: IndexInfo
    fuses: bool = False
    trust: AnchorModel | None = None
    shift: StoredShift | None = None
    legs: bool = False
    native: bool = False


Mode = Literal["auto", "dense", "lexical", "sparse", "hybrid", "balanced", "anchored"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
#: Modes of scores that are no cosines, of words or of tokens.
ONE_LEG: Final = frozenset({"lexical", "sparse"})
#: Where the mode of a search comes from.
ModeOrigin = Literal["asked", "calibration", "default"]
Fusion = Literal["min-max", "rrf"]
FUSIONS: Final[tuple[Fusion, ...]] = get_args(Fusion)
#: What becomes of a search whose reranker fails: the order of the mode is kept, or it fails.
RerankFallback = Literal["keep", "fail"]
FALLBACKS: Final[tuple[RerankFallback, ...]] = get_args(RerankFallback)


class SettingArguments(TypedDict, total=False):
    """A setting as keyword arguments, see ``SearchArguments``; None is what is usual."""

    mode: Mode
    prefer_language: float | None
    spread: float | None
    fusion: Fusion | None
    lexical_weight: float | None
    sparse_weight: float | None
    one_per_group: bool
    rerank: str | None
    rerank_depth: int | None
    rerank_per_language: int | None
    rerank_fallback: RerankFallback | None
    within: str | None


class ResultArguments(TypedDict, total=False):
    """The keyword arguments of a search beside its setting, see ``SearchArguments``."""

    language: str | None
    vector: Sequence[float] | None
    sparse_embedding: TokenWeights | None
    size: int
    filters: Filters
    dsl_filter: DslFilter
    sort: str | Sequence[str]
    from_: int | None
    point_in_time: str | None
    facets: str | Sequence[str]
    explain: bool
    passages: int
    fields: Sequence[str] | None
    snippets: bool


class SearchArguments(SettingArguments, ResultArguments, total=False):
    """The keyword arguments of a search; all may be left out.

    Attributes:
        mode: ``auto`` (the usual one: what calibration found to be best for the index, else ``dense``), ``dense``,
            ``lexical``, ``sparse``, ``hybrid``, ``balanced`` or ``anchored``.
        prefer_language: what documents in the query's language are given more, in units of cosine, 0 to 2.
        spread: what documents in other languages are given more; excludes ``prefer_language``.
        fusion: how ``hybrid`` puts vectors and words together, ``min-max`` (usual) or ``rrf``.
        lexical_weight: the share of the words in ``hybrid``, 0 to 1; .3 is usual.
        sparse_weight: the share of learned sparse weights in ``hybrid``, 0 to 1; 0 is usual.
        one_per_group: whether of documents that are translations of each other one is shown, the one in the query's
            language where there is one, with the others inside it.
        rerank: puts the best hits in a better order: ``features``, ``features:FILE``, ``st:NAME_OR_PATH`` or
            ``http:URL#MODEL``; a language preference is in units of the range of its scores then.
        rerank_depth: how many of the best hits, 1 to 1,000; 50 is usual.
        rerank_per_language: how many of each language's nearest documents beside them, 0 to 100; 5 is usual.
        rerank_fallback: ``fail`` (usual) where the reranker fails, or ``keep`` the order without it.
        within: of replays alone, which know more of a query than its words; a single search takes ``filters``.
        language: of the query, a BCP 47 tag; detected if None.
        vector: of the query, as the index's encoder makes it, where somebody else has encoded it; with vectors that
            came with the data nobody here can. None for one that is encoded here.
        sparse_embedding: token -> weight, the query's weights as the index's sparse encoder makes them; likewise.
        size: how many hits, 1 to 1,000; 10 is usual.
        filters: field of the index -> what a hit must have there: a value, several of which any will do, or conditions
            that all must hold: ``gte``, ``gt``, ``lte`` and ``lt`` (of a date also date arithmetic such as
            ``now-7d/d``), ``in``, ``not`` (a value or several) and ``exists`` (True or False). ``language`` is by
            language; a text is filtered by its view of type keyword.
        dsl_filter: a query in OpenSearch's own DSL, or several, which a hit must match, too.
        sort: a field with ``:asc`` (usual) or ``:desc``, or several; what lacks the field comes last. In ``lexical``
            without preference, reranker and groups all that match are sorted, else the hits that were found.
        from_: the place of the first hit, counted from 0, in a ranking of 1,000 hits at most, from which pages are
            cut at a point in time; None for a search without pages.
        point_in_time: that of the first page, for those after it; None opens one, which lasts five minutes after
            each page.
        facets: fields whose most frequent values are counted, over what matches the filters.
        explain: whether to tell what the shift did to each hit, which costs one request more.
        passages: in an index of chunks, how many further passages of each hit are wanted, 0 to 100, which costs two
            requests more; 0 is usual.
        fields: which of the documents' own fields hits bring as ``source``; None for all. An object's name stands for
            all inside it, and a name may have ``*`` in it.
        snippets: whether hits bring a ``snippet`` of their text: where words of the query stand, else the sentences
            nearest to the query. That costs one request more, and the encoding of 3,000 bytes of text at most.
    """


class SearchQuery(NamedTuple):
    """One query.

    Attributes:
        words: as the searcher wrote them.
        language: primary language tag, ``und`` where unknown.
        vector: the vector to search with, shape (dimension,), float32; None where the setting needs none.
        weights: the weights of tokens to search with; likewise.
    """

    words: str
    language: str = UNDETERMINED
    vector: NDArray[np.float32] | None = None
    weights: TokenWeights | None = None


# Characters of a query, in a sentence about it.
_SHOWN_CHARACTERS: Final = 100


def vector_of(question: SearchQuery) -> NDArray[np.float32]:
    """The question's vector.

    Raises:
        UsageError: it has none, or one of zeros, which is near to nothing.
    """
    if question.vector is None:
        raise UsageError("The query has no vector, but this search mode needs one: encode the query.")
    if not question.vector.any():
        raise UsageError(
            f"The vector of the query {question.words[:_SHOWN_CHARACTERS]!r} is all zeros, so no document is near it: "
            "use other words, or mode lexical."
        )
    return question.vector


def weights_of(question: SearchQuery) -> TokenWeights:
    """The question's weights of tokens.

    Raises:
        UsageError: it has none, so that it matches nothing.
    """
    if question.weights is None:
        raise UsageError("The query has no weights of tokens, but this search mode needs them: encode the query.")
    if not question.weights:
        raise UsageError(
            f"The sparse encoder gives no weights for the query {question.words[:_SHOWN_CHARACTERS]!r}, so no document "
            "matches it: use other words, or mode dense."
        )
    return question.weights


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Attributes:
        mode: ``dense``, ``lexical``, ``sparse``, ``hybrid``, ``balanced`` or ``anchored``; or ``auto``, what
            calibration found to be best for the index, which ``Searcher.resolve`` makes one of these.
        preference: the language preference beta, in units of cosine: what a document in the searcher's language
            is given more than others. Below 0 the others are given more (``--spread``).
        fusion: how ``hybrid`` puts its legs together.
        lexical_weight: the share of the words in ``hybrid``, 0 to 1; that of the vectors is the rest.
        sparse_weight: the share of learned sparse weights in ``hybrid``, likewise; at 0 they are not asked for.
        one_per_group: whether of a translation group one document is shown, the one in the searcher's language
            where there is one, with the others inside it.
        rerank: the reranker, ``features``, ``features:FILE``, ``st:NAME_OR_PATH`` or ``http:URL#MODEL``; None for
            none. With one, the preference is in units of the range of its scores, and comes after it.
        rerank_depth: how many of the best hits of the mode it puts in another order.
        rerank_per_language: how many of the nearest documents of each language it looks at beside these.
        rerank_fallback: what becomes of a search whose reranker fails.
        within: which documents a replay searches for each query: ``FIELD``, those that have the query's own value of
            that field, or ``FIELD=VALUE``, those that have this value; None for all.
    """

    mode: Mode = "dense"
    preference: float = 0.0
    fusion: Fusion = "min-max"
    lexical_weight: float = 0.3
    sparse_weight: float = 0.0
    one_per_group: bool = False
    rerank: str | None = None
    rerank_depth: int = 50
    rerank_per_language: int = 5
    rerank_fallback: RerankFallback = "fail"
    within: str | None = None

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
        usual = {name: getattr(USUAL, name) for name in vars(self) if name.startswith("rerank") or name == "preference"}
        return replace(self, **usual)


def by_features(reranker: str) -> bool:
    """Whether a reranker reads numbers that a search knows anyway, not texts."""
    return reranker.partition(":")[0] == "features"


#: What evaluations compare with.
USUAL: Final = SearchSettings()
#: What a search does that nobody says more of: the mode that is best for the index, as far as it tells, and no
#: preference.
RECOMMENDED: Final = SearchSettings("auto")


class ModeChoice(NamedTuple):
    """How an index is searched in a setting, and why.

    Attributes:
        setting: with the mode that is searched in, not ``auto``.
        origin: whether that mode was ``asked`` for, is what the ``calibration`` of the index found to be best, or is
            the ``default`` of ``auto``, where no calibration can be used.
        reason: the same as a sentence.
    """

    setting: SearchSettings
    origin: ModeOrigin
    reason: str

    @classmethod
    def requested(cls, setting: SearchSettings) -> ModeChoice:
        """That of a setting in any mode but ``auto``."""
        return cls(setting, "asked", f"Mode {setting.mode}, as requested.")


# The approximate search looks at no fewer candidates than this: fewer cost recall, not time.
LEAST_CANDIDATES: Final = 100

#: Which fields hits bring: all but the vector, none, or those named.
Source = bool | Sequence[str]


@dataclass(frozen=True)
class SearchRequest:
    """One search: what is asked, how, of what, and what it is to bring.

    Attributes:
        question: what is asked; it has a vector where ``setting.needs_vector``.
        setting: how to search; in any mode but ``auto``, which stands for one of the others.
        target: what is searched.
        size: how many hits, 1 to 10,000.
        depth: how many documents each leg brings, or each shard chooses the hits from; ``search.search`` makes it
            ``size`` where that is more.
        filters: what hits must match.
        source: which fields hits bring: True for all but the vector, False for none.
        passages: in an index of chunks, how many further chunks of each hit are wanted.
        collapses: whether, in an index of chunks, the cluster brings the best chunk of each document alone. Of chunks
            that name no document it brings only one.
        sort: clauses by which ``lexical`` sorts all that match, instead of by score.
        fields: the index's names of fields.
        preference: the language preference, in units of cosine: none where the question's language is not known.
        favoured: the part of the documents that the preference favours: ``own`` or ``others``; None where it favours
            none.
    """

    question: SearchQuery
    setting: SearchSettings
    target: SearchContext
    size: int = 10
    depth: int = LEAST_CANDIDATES
    filters: IndexFilter = NO_FILTER
    source: Source = True
    passages: int = 0
    collapses: bool = True
    sort: tuple[Mapping[str, Any], ...] = ()
    fields: FieldNames = field(init=False, repr=False, compare=False)
    preference: float = field(init=False, repr=False, compare=False)
    favoured: str | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Ask for words in the form in which documents are indexed and encoded, and work out what follows once."""
        words = normal_form(self.question.words)
        preference = 0.0 if self.question.language == UNDETERMINED else self.setting.preference
        object.__setattr__(self, "question", self.question._replace(words=words))
        object.__setattr__(self, "fields", self.target.index.fields)
        object.__setattr__(self, "preference", preference)
        object.__setattr__(self, "favoured", ("own" if preference > 0 else "others") if preference else None)


#: How an argument is written where it was given, alone or with a value.
Spelling = Callable[..., str]


def in_python(name: str, value: object = None) -> str:
    """``fusion``, ``mode='hybrid'``."""
    return name if value is None else f"{name}={value!r}"


def in_command(name: str, value: object = None) -> str:
    """``--fusion``, ``--mode hybrid``."""
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"


class Parameter(NamedTuple):
    """A parameter of a setting: what options, texts and checks know of it.

    Attributes:
        name: as an argument (``lexical_weight``); an option has dashes instead.
        metavar: what stands for the value in the help of the option; empty where it takes none.
        help: what the help of the option says.
        choices: what the value may be; empty for any.
        noun: what a message calls one of the choices.
        kind: what the value is; ``bool`` is an option without a value.
        least: the lowest number.
        most: the highest number; 0 where the value is no number.
        needs: the parameter that must be given beside it, and the value that it must have; None for any.
        rare: whether few people need it.
        form: what a text without choices must be, for messages.
        pattern: what it matches.
    """

    name: str
    metavar: str
    help: str
    choices: tuple[str, ...] = ()
    noun: str = ""
    kind: type[Any] = str
    least: int = 0
    most: int = 0
    needs: tuple[str, str | None] | None = None
    rare: bool = False
    form: str = ""
    pattern: str = ""

    @property
    def usual(self) -> Any:  # noqa: ANN401 - as the setting holds it
        """The value where none is given; None without a preference, a reranker or groups."""
        return getattr(USUAL, self.name, None) or None

    def read(self, given: Any, spelt: Spelling) -> Any:  # noqa: ANN401 - what a user gave
        """Return a value as a setting holds it; a number may be given as text.

        Args:
            given: the value.
            spelt: how the message names the parameter.

        Raises:
            UsageError: it cannot be one.
        """
        if self.choices:
            if given not in self.choices:
                raise UsageError(f"There is no {self.noun} {given!r}: choose one of {', '.join(self.choices)}.")
            return given
        value: Any = given if isinstance(given, self.kind) else None
        must = "True or False" if self.kind is bool else self.form
        if self.kind is float:
            value, must = _number(given), f"a number from {self.least} to {self.most}"
        elif self.kind is int:
            value, must = _count(given), f"a whole number from {self.least} to {self.most:,}"
        if self.pattern and not re.fullmatch(self.pattern, value or ""):
            value = None
        if value is None or (self.most and not self.least <= value <= self.most):
            raise UsageError(f"{spelt(self.name)} is {given!r}, but it must be {must}.")
        return value


def _number(given: Any) -> float | None:  # noqa: ANN401 - what a user gave
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def _count(given: object) -> int | None:
    if isinstance(given, str) and given.isdecimal():
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


_RERANK: Final = ("rerank", None)
#: The parameters of a setting, in the order in which they are written. Two cosines differ by 2 at most.
PARAMETERS: Final = (
    Parameter("mode", "MODE", f"How to search: {', '.join(MODES[:-1])} or {MODES[-1]}.", MODES, "search mode"),
    Parameter(
        "prefer_language",
        "B",
        "Add B to the cosine of documents in the query's language; .02 is a small value.",
        kind=float,
        most=2,
    ),
    Parameter("spread", "B", "Prefer other languages than the query's by B.", kind=float, most=2, rare=True),
    Parameter("fusion", "NAME", "Fuse by scores or by ranks.", FUSIONS, "fusion", needs=("mode", "hybrid"), rare=True),
    Parameter(
        "lexical_weight", "W", "The words' weight in hybrid.", kind=float, most=1, needs=("mode", "hybrid"), rare=True
    ),
    Parameter(
        "sparse_weight", "W", "The tokens' weight there.", kind=float, most=1, needs=("mode", "hybrid"), rare=True
    ),
    Parameter("one_per_group", "", "Show one of several translations, in the query's language if possible.", kind=bool),
    Parameter(
        "rerank",
        "NAME",
        "Rerank the best hits: features, st:NAME_OR_PATH or http:URL#MODEL.",
        form="the name of a reranker, such as 'features'",
    ),
    Parameter(
        "rerank_depth", "N", "How many of the best hits.", kind=int, least=1, most=MOST_HITS, needs=_RERANK, rare=True
    ),
    Parameter(
        "rerank_per_language", "N", "… and of each language.", kind=int, most=MOST_PASSAGES, needs=_RERANK, rare=True
    ),
    Parameter(
        "rerank_fallback",
        "WHAT",
        "If it fails: keep the order, or fail.",
        FALLBACKS,
        "fallback",
        needs=_RERANK,
        rare=True,
    ),
)
#: The same and those of a replay alone, which knows more of a query than its words.
REPLAY_PARAMETERS: Final = (
    *PARAMETERS,
    Parameter(
        "within",
        "FIELD",
        "Search only documents with the query's value of FIELD; language=en: with this one.",
        form="a field, such as language, or a field with one value, such as language=en",
        pattern=r"[^\s=]+(=\S.*)?",
    ),
)


def setting_of(spelt: Spelling = in_python, **given: Unpack[SettingArguments]) -> SearchSettings:
    """A setting; None is what is usual, and the mode ``auto``.

    Args:
        spelt: how the sentences of a refusal name an argument.
        **given: see ``SearchArguments``.

    Raises:
        UsageError: there is no such mode or fusion, a number is none or out of range, or two things exclude each other.
    """
    values: dict[str, Any] = {"mode": RECOMMENDED.mode}
    for one in REPLAY_PARAMETERS:
        if (value := given.get(one.name)) is not None:
            values[one.name] = one.read(value, spelt)
    for one in PARAMETERS:
        if one.name in values and one.needs is not None:
            other, needed = one.needs
            if values.get(other) is None or needed not in (None, values[other]):
                raise UsageError(f"{spelt(one.name)} needs {spelt(other, needed)}.")
    if {"prefer_language", "spread"} <= values.keys():
        raise UsageError(f"{spelt('prefer_language')} and {spelt('spread')} are mutually exclusive: give one of them.")
    preference = values.pop("prefer_language", 0.0) - values.pop("spread", 0.0)
    found = SearchSettings(preference=preference, **values)
    if found.lexical_weight + found.sparse_weight > 1:
        raise UsageError(
            f"{spelt('lexical_weight')} {found.lexical_weight:g} and {spelt('sparse_weight')} {found.sparse_weight:g} "
            "are more than 1 together: vectors have what is left of 1."
        )
    return found


class SearchOptions(NamedTuple):
    """How an index is opened for searching.

    Attributes:
        encoder: where the index's encoder is now; None for where it was when the index was made.
    """

    encoder: str | None = None


USUAL_OPTIONS = SearchOptions()

"""What is asked and how: the query, the setting, also as options, the index it is asked of."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict, get_args

import click

from langshift.errors import UsageError
from langshift.files import is_text
from langshift.languages import UNDETERMINED
from langshift.normal_form import normal_form
from langshift.parameters import INDEX_ENCODER, REMOTE_CODE, SHARE, Decorator, FiniteRange, flag, option, option_group
from langshift.plugin.metadata import FieldNames
from langshift.plugin.versions import IndexInfo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from langshift.retrieval.anchored import AnchorModel
    from langshift.retrieval.rerank.rerankers import Reranker

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


@dataclass(frozen=True)
class SearchContext:
    """What is searched.

    Attributes:
        index: the index.
        fuses: whether the cluster has neural-search, whose ``hybrid`` query puts two legs together; where not, or
            where the scores of the legs are wanted, the client does it, with the same result.
        trust: what of the rule of ``anchored`` is the index's own; needed by that mode alone.
        directions: B, orthonormal rows of which documents hold only the part 1 - gamma, shape (k, dimension), float32;
            None where gamma is 0. Needed by ``anchored`` and by the reranker ``features``.
        legs: whether ``anchored`` is to tell what each leg says of the hits, which costs it a step.
        reranker: what puts candidates in a better order; needed by settings with one alone.
    """

    index: IndexInfo
    fuses: bool = False
    trust: AnchorModel | None = None
    directions: NDArray[np.float32] | None = None
    legs: bool = False
    reranker: Reranker | None = None


Mode = Literal["auto", "dense", "lexical", "hybrid", "balanced", "anchored"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
#: Where the mode of a search comes from.
ModeOrigin = Literal["asked", "calibration", "default"]
Fusion = Literal["min-max", "rrf"]
FUSIONS: Final[tuple[Fusion, ...]] = get_args(Fusion)
#: What becomes of a search whose reranker fails: the order of the mode is kept, or it fails.
RerankFallback = Literal["keep", "fail"]
FALLBACKS: Final[tuple[RerankFallback, ...]] = get_args(RerankFallback)

Filters = Mapping[str, Sequence[str]]
NO_FILTERS: Filters = {}


class ResultArguments(TypedDict, total=False):
    """The keyword arguments of a search beside its setting; all may be left out.

    Attributes:
        language: of the query, a BCP 47 tag; detected if None.
        size: how many hits, 1 to 1,000; 10 is usual.
        filters: field of the index -> values, any of which a hit must have; ``language`` is by language.
        explain: whether to tell what the shift did to each hit, which costs one request more.
        passages: in an index of chunks, how many further passages of each hit are wanted, 0 to 100, which costs two
            requests more; 0 is usual.
    """

    language: str | None
    size: int
    filters: Filters
    explain: bool
    passages: int


class SearchQuery(NamedTuple):
    """One query.

    Attributes:
        words: as the searcher wrote them.
        language: primary language tag, ``und`` where unknown.
        vector: the vector to search with, shape (dimension,), float32; None where the setting needs none.
    """

    words: str
    language: str = UNDETERMINED
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Attributes:
        mode: ``dense``, ``lexical``, ``hybrid``, ``balanced`` or ``anchored``; or ``auto``, what calibration found to
            be best for the index, which ``Searcher.resolve`` makes one of these.
        preference: the language preference beta, in units of cosine: what a document in the searcher's language
            is given more than others. Below 0 the others are given more (``--spread``).
        fusion: how ``hybrid`` puts its two legs together.
        lexical_weight: the share of the words in ``hybrid``, 0 to 1; that of the vectors is the rest.
        one_per_group: whether of a translation group one document is shown, the one in the searcher's language
            where there is one, with the others inside it.
        rerank: the reranker, ``features``, ``features:FILE``, ``st:NAME_OR_PATH`` or ``http:URL#MODEL``; None for
            none. With one, the preference is in units of the range of its scores, and comes after it.
        rerank_depth: how many of the best hits of the mode it puts in another order.
        rerank_per_language: how many of the nearest documents of each language it looks at beside these.
        rerank_fallback: what becomes of a search whose reranker fails.
    """

    mode: Mode = "dense"
    preference: float = 0.0
    fusion: Fusion = "min-max"
    lexical_weight: float = 0.3
    one_per_group: bool = False
    rerank: str | None = None
    rerank_depth: int = 50
    rerank_per_language: int = 5
    rerank_fallback: RerankFallback = "fail"

    @property
    def needs_vector(self) -> bool:
        """Whether the question's vector is needed: in all modes but lexical without a preference of cosines."""
        if self.rerank is not None:
            return self.mode != "lexical" or by_features(self.rerank)
        return self.mode != "lexical" or bool(self.preference)

    @property
    def retrieval(self) -> SearchSettings:
        """How candidates are searched for that are reranked; the setting itself without a reranker."""
        if self.rerank is None:
            return self
        usual = USUAL
        return replace(
            self,
            preference=0.0,
            rerank=None,
            rerank_depth=usual.rerank_depth,
            rerank_per_language=usual.rerank_per_language,
            rerank_fallback=usual.rerank_fallback,
        )


def by_features(reranker: str) -> bool:
    """Whether a reranker reads numbers that a search knows anyway, not texts."""
    return reranker.partition(":")[0] == "features"


#: What evaluations compare with.
USUAL: Final = SearchSettings()
#: The mode that is best for the index, as far as it tells.
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
        depth: how many documents each leg brings, or each shard chooses the hits from; ``modes.search`` makes it
            ``size`` where that is more.
        filters: field of the index -> values, any of which a hit must have.
        source: which fields hits bring: True for all but the vector, False for none.
        passages: in an index of chunks, how many further chunks of each hit are wanted.
        collapses: whether, in an index of chunks, the cluster brings the best chunk of each document alone. Of chunks
            that name no document it brings only one.
    """

    question: SearchQuery
    setting: SearchSettings
    target: SearchContext
    size: int = 10
    depth: int = LEAST_CANDIDATES
    filters: Filters = field(default_factory=dict)
    source: Source = True
    passages: int = 0
    collapses: bool = True

    def __post_init__(self) -> None:
        """Ask for words in the form in which documents are indexed and encoded."""
        words = normal_form(self.question.words)
        object.__setattr__(self, "question", self.question._replace(words=words))

    @property
    def fields(self) -> FieldNames:
        """The index's names of fields."""
        return self.target.index.fields

    @property
    def preference(self) -> float:
        """The language preference, in units of cosine: none where the question's language is not known."""
        return 0.0 if self.question.language == UNDETERMINED else self.setting.preference

    @property
    def favoured(self) -> str | None:
        """The part of the documents that the preference favours: ``own`` or ``others``; None where it favours none."""
        return ("own" if self.preference > 0 else "others") if self.preference else None

    def prefers(self, language: str) -> bool:
        """Whether a document in a language is given the bonus."""
        return self.preference != 0 and (language == self.question.language) == (self.preference > 0)


# Two cosines differ by no more than this.
MOST_PREFERENCE = 2.0

#: How an argument is written where it was given, alone or with a value.
Spelling = Callable[..., str]


def in_python(name: str, value: object = None) -> str:
    """``fusion``, ``mode='hybrid'``."""
    return name if value is None else f"{name}={value!r}"


def in_command(name: str, value: object = None) -> str:
    """``--fusion``, ``--mode hybrid``."""
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"


def setting_of(
    mode: Mode = RECOMMENDED.mode,
    prefer_language: float | None = None,
    spread: float | None = None,
    fusion: Fusion | None = None,
    lexical_weight: float | None = None,
    one_per_group: bool = False,
    rerank: str | None = None,
    rerank_depth: int | None = None,
    rerank_per_language: int | None = None,
    rerank_fallback: RerankFallback | None = None,
    spelt: Spelling = in_python,
) -> SearchSettings:
    """A setting; None is what is usual.

    Args:
        mode: one of ``MODES``.
        prefer_language: beta, in units of cosine, 0 to 2: what a document in the searcher's language is given more.
        spread: beta of the opposite: what a document in another language is given more.
        fusion: how ``hybrid`` puts its legs together.
        lexical_weight: the share of the words in ``hybrid``, 0 to 1.
        one_per_group: whether of a translation group one document is shown.
        rerank: the reranker, by its name.
        rerank_depth: how many of the best it puts in another order, 1 to 1,000.
        rerank_per_language: how many of each language's nearest it looks at beside them, 0 to 100.
        rerank_fallback: ``keep`` the order of the mode where it fails, or ``fail``.
        spelt: how the sentences of a refusal name an argument.

    Raises:
        UsageError: there is no such mode or fusion, a number is none or out of range, or two things exclude each other.
    """
    _require_one_of("search mode", mode, MODES)
    beta = _number(prefer_language, "prefer_language", MOST_PREFERENCE, spelt)
    away = _number(spread, "spread", MOST_PREFERENCE, spelt)
    weight = _number(lexical_weight, "lexical_weight", 1.0, spelt)
    if beta is not None and away is not None:
        raise UsageError(f"{spelt('prefer_language')} and {spelt('spread')} are mutually exclusive: give one of them.")
    for name, value in (("fusion", fusion), ("lexical_weight", weight)):
        if value is not None and mode != "hybrid":
            raise UsageError(f"{spelt(name)} needs {spelt('mode', 'hybrid')}.")
    if fusion is not None:
        _require_one_of("fusion", fusion, FUSIONS)
    for name, given in (
        ("rerank_depth", rerank_depth),
        ("rerank_per_language", rerank_per_language),
        ("rerank_fallback", rerank_fallback),
    ):
        if given is not None and rerank is None:
            raise UsageError(f"{spelt(name)} needs {spelt('rerank')}.")
    if rerank is not None and not isinstance(rerank, str):
        raise UsageError(f"{spelt('rerank')} is {rerank!r}, but it must be the name of a reranker, such as 'features'.")
    if rerank_fallback is not None:
        _require_one_of("fallback", rerank_fallback, FALLBACKS)
    return SearchSettings(
        mode=mode,
        preference=(beta or 0.0) - (away or 0.0),
        fusion=fusion or USUAL.fusion,
        lexical_weight=USUAL.lexical_weight if weight is None else weight,
        one_per_group=one_per_group,
        rerank=rerank,
        rerank_depth=_count(rerank_depth, "rerank_depth", 1, MOST_HITS, USUAL.rerank_depth, spelt),
        rerank_per_language=_count(
            rerank_per_language, "rerank_per_language", 0, MOST_PASSAGES, USUAL.rerank_per_language, spelt
        ),
        rerank_fallback=rerank_fallback or USUAL.rerank_fallback,
    )


def _require_one_of(kind: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UsageError(f"There is no {kind} {given!r}: choose one of {', '.join(known)}.")


def _number(given: Any, name: str, most: float, spelt: Spelling) -> float | None:  # noqa: ANN401 - what a user gave
    if given is None:
        return None
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= most:
        raise UsageError(f"{spelt(name)} is {given!r}, but it must be a number from 0 to {most:g}.")
    return number


def _count(given: object, name: str, least: int, most: int, usual: int, spelt: Spelling) -> int:
    if given is None:
        return usual
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise UsageError(f"{spelt(name)} is {given!r}, but it must be a whole number from {least} to {most:,}.")
    return given


class SearchOptions(NamedTuple):
    """How an index is opened for searching.

    Attributes:
        encoder: where the index's encoder is now; None for where it was when the index was made.
        trust_remote_code: whether to run code that comes with a model.
    """

    encoder: str | None = None
    trust_remote_code: bool = False


USUAL_OPTIONS = SearchOptions()


def setting_options(mode: Mode) -> Decorator:
    """The options of a setting; the command is given them as one argument ``setting``.

    Args:
        mode: that of the command without ``--mode``.
    """
    return option_group(
        "setting",
        partial(setting_of, spelt=in_command),
        option(
            "--mode MODE", f"How to search: {', '.join(MODES[:-1])} or {MODES[-1]}.", click.Choice(MODES), default=mode
        ),
        option(
            "--prefer-language B",
            "Add B to the cosine of documents in the query's language; .02 is a small value.",
            FiniteRange(0, MOST_PREFERENCE),
        ),
        flag("--one-per-group", "Show one of several translations, in the query's language if possible."),
        option(
            "--spread B",
            "Prefer other languages than the query's by B.",
            FiniteRange(0, MOST_PREFERENCE),
            rare=True,
        ),
        option(
            "--fusion NAME",
            f"Fuse by scores or by ranks. [default: {USUAL.fusion}]",
            click.Choice(FUSIONS),
            rare=True,
        ),
        option(
            "--lexical-weight W",
            f"The words' weight in hybrid. [default: {USUAL.lexical_weight:g}]",
            SHARE,
            rare=True,
        ),
        option(
            "--rerank NAME",
            "Rerank the best hits: features, st:NAME_OR_PATH or http:URL#MODEL.",
        ),
        option(
            "--rerank-depth N",
            f"How many of the best hits. [default: {USUAL.rerank_depth}]",
            click.IntRange(1, MOST_HITS),
            rare=True,
        ),
        option(
            "--rerank-per-language N",
            f"… and of each language. [default: {USUAL.rerank_per_language}]",
            click.IntRange(0, MOST_PASSAGES),
            rare=True,
        ),
        option(
            "--rerank-fallback WHAT",
            "If it fails: keep the order, or fail. [default: fail]",
            click.Choice(FALLBACKS),
            rare=True,
        ),
    )


#: The options of a command that needs the encoder of an index; it is given them as ``search``.
search_options = option_group("search", SearchOptions, INDEX_ENCODER, REMOTE_CODE)


def read_setting(text: str) -> SearchSettings:
    """``hybrid --prefer-language .02`` as a setting; what begins with an option is of the mode ``dense``.

    Raises:
        UsageError: it is none.
    """
    command = click.command(add_help_option=False)(setting_options(USUAL.mode)(lambda setting: setting))
    try:
        words = shlex.split(text)
        if words and not words[0].startswith("-"):
            words = ["--mode", *words]
        given: SearchSettings = command.main(words, prog_name="--setting", standalone_mode=False)
    except ValueError:
        raise UsageError(f"The setting {text!r} is not complete: a quotation mark is missing.") from None
    except click.ClickException as error:
        raise UsageError(f"The setting {text!r} cannot be used: {error.format_message().rstrip('.')}.") from error
    except UsageError as error:
        raise UsageError(f"The setting {text!r} cannot be used: {error}") from error
    return given


def format_settings(setting: SearchSettings) -> str:
    """A setting as ``read_setting`` reads it, without what is usual."""
    words: list[str] = [setting.mode]
    if setting.preference:
        option = "prefer_language" if setting.preference > 0 else "spread"
        words.append(in_command(option, _shortest(abs(setting.preference))))
    if setting.fusion != USUAL.fusion:
        words.append(in_command("fusion", setting.fusion))
    if setting.lexical_weight != USUAL.lexical_weight:
        words.append(in_command("lexical_weight", _shortest(setting.lexical_weight)))
    if setting.one_per_group:
        words.append(in_command("one_per_group"))
    for name in ("rerank", "rerank_depth", "rerank_per_language", "rerank_fallback"):
        if (value := getattr(setting, name)) != getattr(USUAL, name):
            words.append(in_command(name, shlex.quote(str(value))))
    return " ".join(words)


def _shortest(number: float) -> str:
    """The fewest digits that are read as the very same number."""
    return repr(float(number)).removesuffix(".0")

"""What the interface takes and answers, by which it is described, and requests are read."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from langshift.plugin.metadata import ChunkPlace
from langshift.retrieval.facets import FacetValue
from langshift.retrieval.hits import Anchor
from langshift.retrieval.request import ARGUMENTS, Fusion, Mode, RerankFallback, in_python
from langshift.retrieval.request import MOST_CHARACTERS as MOST_QUERY
from langshift.retrieval.result import ShiftEffect
from langshift.retrieval.settings import ModeOrigin
from langshift.retrieval.snippets import Snippet

#: Texts of one request for embeddings or reranking, and characters of them together.
MOST_TEXTS: Final = 256
MOST_CHARACTERS: Final = 1_000_000


# What langshift's own sentences refuse better than the reader of JSON does.
_NOT_BLANK: Final = {"pattern": r"\S"}
_Text = Annotated[str, Meta(extra_json_schema=_NOT_BLANK)]


def described(text: str, **said: Any) -> Meta:  # noqa: ANN401 - of JSON Schema
    """What the description says of a field, and of its values beside what is read."""
    return Meta(description=text, extra_json_schema=said or None)


def body_of(name: str, text: str, names: Iterable[str], own: Mapping[str, Any]) -> type[Struct]:
    """The type of a request's body that takes arguments of a search.

    Args:
        name: of the type.
        text: what the description says of it.
        names: of its fields.
        own: field -> type, of those that are no arguments or differ; with a default, where it has one.
    """
    fields = [(one, *own[one]) if one in own else (one, ARGUMENTS[one].in_json, UNSET) for one in names]
    options: dict[str, Any] = {"rename": {"from_": "from"}, "forbid_unknown_fields": True, "kw_only": True}
    return msgspec.defstruct(name, fields, namespace={"__doc__": text}, module=__name__, **options)


def given_in(body: Struct) -> dict[str, Any]:
    """What a request gave, without what it left out or said null for."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value not in (UNSET, None)}


def in_json(name: str, value: object = None) -> str:
    """How a body has an argument: ``from``, ``mode='hybrid'``."""
    return in_python(name.strip("_"), value)


_WORDS = described("What is searched for, in any language.", maxLength=MOST_QUERY, **_NOT_BLANK)
SearchBody = body_of(
    "SearchBody",
    "A search; all but `index` and `query` may be left out.",
    ("index", "query", *(name for name, one in ARGUMENTS.items() if not one.of_replays)),
    {
        "index": (Annotated[str, described("The index, an alias or a version.")],),
        "query": (Annotated[str, _WORDS],),
    },
)


class FoundPassage(Struct, forbid_unknown_fields=True):
    """A part of a document, in an index of chunks."""

    id: str
    score: float | None
    language: str
    text: str
    place: ChunkPlace | None


class FoundOther(Struct, forbid_unknown_fields=True):
    """Another document of a hit's group of translations."""

    id: str
    score: float | None
    language: str
    title: str
    text: str
    source: dict[str, Any]
    passage: FoundPassage | None


class FoundLeg(Struct, forbid_unknown_fields=True):
    """What one leg of a search says of a hit."""

    score: float
    rank: int | None


class FoundHit(FoundOther, forbid_unknown_fields=True):
    """A document that was found."""

    score: float
    snippet: Snippet | None
    group: str | None
    legs: dict[str, FoundLeg]
    others: list[FoundOther]
    shift: ShiftEffect | None
    passages: list[FoundPassage]


class CountedField(Struct, forbid_unknown_fields=True):
    """The most frequent values of a field, and how often documents have another."""

    values: list[FacetValue]
    other: int


class SearchAnswer(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was found, as `langshift search --json` prints it."""

    index: Annotated[str, described("The version that was searched.")]
    mode: Mode
    preference: float
    fusion: Fusion
    lexical_weight: float
    sparse_weight: float
    one_per_group: bool
    rerank: str | None
    rerank_depth: int
    rerank_per_language: int
    rerank_fallback: RerankFallback
    mode_from: ModeOrigin
    mode_reason: str
    language: Annotated[str, described("The query's; `und` where unknown.")]
    hits: list[FoundHit]
    bonus: Annotated[float, described("What the preference added to the scores of documents that it favours.")]
    anchors: list[Anchor]
    compared: int
    notes: Annotated[list[str], described("What somebody who searches should know.")]
    took: Annotated[float, described("Milliseconds.")]
    from_: int | None = field(name="from")
    depth: int
    point_in_time: str | None
    sorted: str | None
    sorted_count: int | None
    facets: dict[str, CountedField]
    nothing_fits: Annotated[bool | None, described("Whether the nearest document is too far to answer the query.")]


class KnownIndex(Struct, kw_only=True, forbid_unknown_fields=True):
    """An index that can be searched."""

    name: str
    version: str
    documents: int | None
    encoder: str
    dimension: int
    alpha: float
    gamma: float
    own: float
    languages: Annotated[dict[str, int], described("Language -> how many documents are in it.")]


class IndicesAnswer(Struct, forbid_unknown_fields=True):
    """The indices whose live version can be searched."""

    indices: list[KnownIndex]


class EmbeddingsBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts to be encoded, in the form of OpenAI's interface."""

    model: Annotated[str, described("An encoder (`e5-small`, `use-m`), or an index, whose encoder is taken.")]
    input: Annotated[_Text | Annotated[list[_Text], Meta(min_length=1, max_length=MOST_TEXTS)], described("The texts.")]
    input_type: Annotated[
        Literal["query", "document"], described("Which of the encoder's prefixes is put before each text.")
    ] = "query"
    encoding_format: Annotated[
        Literal["float", "base64"], described("Numbers, or the bytes of 32-bit floats, little-endian.")
    ] = "float"
    dimensions: Annotated[int | None, described("Refused where it is not the encoder's own.")] = None
    user: Annotated[str | None, described("Ignored.")] = None


class Embedding(Struct, kw_only=True, forbid_unknown_fields=True):
    """The vector of one text, not shifted."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(Struct, kw_only=True, forbid_unknown_fields=True):
    """How much was read."""

    prompt_tokens: Annotated[int, described("Tokens; bytes where the encoder does not tell.")]
    total_tokens: int


class EmbeddingsAnswer(Struct, kw_only=True, forbid_unknown_fields=True):
    """The vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class RerankText(Struct, forbid_unknown_fields=True):
    """A document as an object."""

    text: _Text


class RerankBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts to be put in order for a query."""

    model: Annotated[str, described("A reranker that the service was started with.")]
    query: _Text
    documents: Annotated[list[_Text | RerankText], Meta(min_length=1, max_length=MOST_TEXTS)]
    top_n: Annotated[Annotated[int, Meta(ge=1)] | None, described("How many results; all without it.")] = None
    return_documents: bool = False


class RerankResult(Struct, kw_only=True, forbid_unknown_fields=True):
    """The place of a text in the request, and its score."""

    index: int
    relevance_score: float
    document: RerankText | UnsetType = UNSET


class RerankAnswer(Struct, kw_only=True, forbid_unknown_fields=True):
    """The texts, best first."""

    model: str
    results: list[RerankResult]


class HealthAnswer(Struct, forbid_unknown_fields=True):
    """Whether the service answers, and whether it can search."""

    live: bool
    ready: bool


class ErrorDetail(Struct, kw_only=True, forbid_unknown_fields=True):
    """Why there is no answer."""

    code: str
    message: Annotated[str, described("A sentence for a person.")]
    request_id: str


class ErrorAnswer(Struct, forbid_unknown_fields=True):
    """An error."""

    error: ErrorDetail

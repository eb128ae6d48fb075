"""What the interface takes and answers, by which it is described, and requests are read."""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from langshift.plugin.metadata import ChunkPlace
from langshift.retrieval import settings
from langshift.retrieval.facets import FacetValue
from langshift.retrieval.hits import Anchor
from langshift.retrieval.pages import MOST_RANKED
from langshift.retrieval.result import ShiftEffect
from langshift.retrieval.settings import MOST_HITS, MOST_PASSAGES, Fusion, Mode, ModeOrigin, RerankFallback
from langshift.retrieval.snippets import Snippet

#: Texts of one request for embeddings or reranking, and characters of them together.
MOST_TEXTS: Final = 256
MOST_CHARACTERS: Final = 1_000_000


_Cosine = Annotated[float, Meta(ge=0, le=2)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_Hits = Annotated[int, Meta(ge=1, le=MOST_HITS)]
_Passages = Annotated[int, Meta(ge=0, le=MOST_PASSAGES)]
_Names = list[str]
# What langshift's own sentences refuse better than the reader of JSON does.
_NOT_BLANK: Final = {"pattern": r"\S"}
_Text = Annotated[str, Meta(extra_json_schema=_NOT_BLANK)]


def described(text: str, **said: Any) -> Meta:  # noqa: ANN401 - of JSON Schema
    """What the description says of a field, and of its values beside what is read."""
    return Meta(description=text, extra_json_schema=said or None)


class SearchBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """A search; all but `index` and `query` may be left out."""

    index: Annotated[str, described("The index, an alias or a version.")]
    query: Annotated[
        str, described("What is searched for, in any language.", maxLength=settings.MOST_CHARACTERS, **_NOT_BLANK)
    ]
    mode: Annotated[Mode, described("How to search; `auto` is what a calibration found to be best for the index.")] = (
        "auto"
    )
    prefer_language: Annotated[
        _Cosine | None, described("What documents in the query's language are given more, in units of cosine.")
    ] = None
    spread: Annotated[
        _Cosine | None, described("What documents in other languages are given more; excludes `prefer_language`.")
    ] = None
    fusion: Annotated[Fusion | None, described("How `hybrid` puts its legs together.")] = None
    lexical_weight: Annotated[_Share | None, described("The share of the words in `hybrid`.")] = None
    sparse_weight: Annotated[_Share | None, described("The share of learned sparse weights in `hybrid`.")] = None
    one_per_group: Annotated[bool, described("Whether of translations of each other one is shown.")] = False
    rerank: Annotated[str | None, described("A reranker: `features`, or one that the service was started with.")] = None
    rerank_depth: Annotated[_Hits | None, described("How many hits it puts in order.")] = None
    rerank_per_language: Annotated[_Passages | None, described("How many of each language beside them.")] = None
    rerank_fallback: Annotated[RerankFallback | None, described("What becomes of a search whose reranker fails.")] = (
        None
    )
    language: Annotated[str | None, described("Of the query, a BCP 47 tag; detected where none is given.")] = None
    vector: Annotated[
        list[float] | None, described("The query's, as the index's encoder makes it; encoded here where none is given.")
    ] = None
    sparse_embedding: Annotated[
        dict[str, float] | None,
        described("Token -> weight, as the index's sparse encoder makes them; encoded here where none are given."),
    ] = None
    size: Annotated[_Hits, described("How many hits.")] = 10
    filters: Annotated[
        dict[str, Any],
        described(
            "Field -> a value, several, or conditions: `gte`, `gt`, `lte`, `lt`, `in`, `not`, `exists`. What does not "
            "match all of them is not found."
        ),
    ] = field(default_factory=dict)
    dsl_filter: Annotated[
        dict[str, Any] | list[dict[str, Any]],
        described("Queries in OpenSearch's DSL, of some kinds, that hits must match, too."),
    ] = field(default_factory=list)
    sort: Annotated[str | list[str], described("Fields, with `:desc` for the highest first.")] = field(
        default_factory=_Names
    )
    from_: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_RANKED - 1)] | None,
        described("The place of a page's first hit, counted from 0."),
    ] = field(default=None, name="from")
    point_in_time: Annotated[str | None, described("For a page after the first: what that answered.")] = None
    facets: Annotated[str | list[str], described("Fields whose values are counted.")] = field(default_factory=_Names)
    explain: Annotated[bool, described("Whether to tell what the shift did to each hit.")] = False
    passages: Annotated[_Passages, described("In an index of chunks: how many further passages of each hit.")] = 0
    fields: Annotated[list[str] | None, described("The documents' own fields to bring; all without it.")] = None
    snippets: Annotated[bool, described("Whether hits bring a snippet of what matched.")] = False


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

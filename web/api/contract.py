"""What the interface takes and answers, by which it is described, and requests are read."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from langshift.retrieval.request import ARGUMENTS, in_python
from langshift.retrieval.request import MOST_CHARACTERS as MOST_QUERY
from langshift.retrieval.result import SETTING_IN_JSON, SearchResult

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


def in_json(name: str, value: object = None) -> str:
    """How a body has an argument: ``from``, ``mode='hybrid'``."""
    return in_python(name.strip("_"), value)


_WORDS = described("What is searched for, in any language.", maxLength=MOST_QUERY, **_NOT_BLANK)
SearchBody = body_of(
    "SearchBody",
    "A search; all but `index` and `query` may be left out.",
    ("index", "query", *(name for name, one in ARGUMENTS.items() if not one.of_replays)),
    {"index": (Annotated[str, described("The index, an alias or a version.")],), "query": (Annotated[str, _WORDS],)},
)


def _answered() -> Iterator[tuple[str, Any]]:
    """Field -> type of ``SearchResult.to_dict``."""
    for name, kind in get_type_hints(SearchResult, include_extras=True).items():
        if name == "setting":
            yield from ((one, float if one == "preference" else ARGUMENTS[one].kind) for one in SETTING_IN_JSON)
        elif name != "requests":
            yield name, kind


SearchAnswer = msgspec.defstruct(
    "SearchAnswer",
    list(_answered()),
    namespace={"__doc__": "What was found, as `langshift search --json` prints it."},
    module=__name__,
    rename={"from_": "from"},
    forbid_unknown_fields=True,
    kw_only=True,
)


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

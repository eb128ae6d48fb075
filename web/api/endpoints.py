"""The addresses of the interface, each with what it takes, answers and refuses, and their description as OpenAPI."""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from langshift.settings import VERSION
from langshift.web.api import contract
from langshift.web.api.errors import JSON, STATUS
from langshift.web.api.service import SearchService

# All but what is said of another method than an address has.
_REFUSED: Final = [code for code in STATUS if code != "method_not_allowed"]


class Endpoint(NamedTuple):
    """One address.

    Attributes:
        method: of HTTP.
        path: its address.
        summary: what it does.
        run: does it, given the request's body; in a thread.
        answer: what it answers.
        body: what it takes; None where there is no body.
    """

    method: str
    path: str
    summary: str
    run: Callable[[SearchService, Any], Any]
    answer: type
    body: type[msgspec.Struct] | None = None


ENDPOINTS: Final = (
    Endpoint(
        "POST", "/api/search", "Search an index.", SearchService.search, contract.SearchAnswer, contract.SearchBody
    ),
    Endpoint("GET", "/api/indices", "The indices that can be searched.", SearchService.indices, contract.IndicesAnswer),
    Endpoint(
        "POST",
        "/v1/embeddings",
        "Encode texts with an encoder, or with an index's.",
        SearchService.embeddings,
        contract.EmbeddingsAnswer,
        contract.EmbeddingsBody,
    ),
    Endpoint(
        "POST",
        "/v1/rerank",
        "Put texts in the order of their relevance to a query.",
        SearchService.rerank,
        contract.RerankAnswer,
        contract.RerankBody,
    ),
)

_REF = "#/components/schemas/{name}"


def description(*, guarded: bool = False) -> dict[str, Any]:
    """The document, OpenAPI 3.1, made of what requests are read by.

    Args:
        guarded: whether a token is needed.
    """
    types = [kind for one in ENDPOINTS for kind in (one.body, one.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, contract.ErrorAnswer], ref_template=_REF)
    of = dict(zip([*types, contract.ErrorAnswer], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        operation: dict[str, Any] = {
            "operationId": re.sub(r"\W+", "_", f"{one.method.lower()} {one.path.strip('/')}"),
            "summary": one.summary,
            "responses": {"200": _content("What was asked for.", of[one.answer])},
        }
        for code in _REFUSED:
            status, what = str(STATUS[code]), code.replace("_", " ")
            if status in operation["responses"]:
                what = f"{operation['responses'][status]['description']}, or {what}"
            operation["responses"][status] = _content(what, of[contract.ErrorAnswer])
        if one.body is not None:
            operation["requestBody"] = {"required": True, "content": {JSON: {"schema": of[one.body]}}}
        if guarded:
            operation["security"] = [{"token": []}]
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if guarded else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "langshift", "version": VERSION, "summary": "Search that is fair to every language."},
        "paths": paths,
        "components": {"schemas": _readable(components), **schemes},
    }


def _content(what: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": what, "content": {JSON: {"schema": schema}}}


def _readable(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """The schema without `items: false`, which generators of clients cannot read; `maxItems` says the same."""
    if isinstance(schema, dict):
        return {name: _readable(one) for name, one in schema.items() if (name, one) != ("items", False)}
    return [_readable(one) for one in schema] if isinstance(schema, list) else schema

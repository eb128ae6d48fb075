"""The addresses of the interface, each with what it takes, answers and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from langshift.web.api import contract
from langshift.web.api.service import SearchService

_REFUSED: Final = (
    *("invalid_request", "unauthorized", "forbidden", "not_found", "too_large", "not_json", "misdirected", "busy"),
    *("internal", "cluster_refused", "model_failed", "unavailable"),
)


class Endpoint(NamedTuple):
    """One address.

    Attributes:
        method: of HTTP.
        path: its address.
        summary: what it does.
        run: does it, given the request's body; in a thread.
        answer: what it answers.
        body: what it takes; None where there is no body.
        codes: of the errors that it may answer.
    """

    method: str
    path: str
    summary: str
    run: Callable[[SearchService, Any], Any]
    answer: type
    body: type | None = None
    codes: tuple[str, ...] = _REFUSED


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/api/search",
        "Search an index.",
        lambda service, body: service.search(body),
        contract.SearchAnswer,
        contract.SearchBody,
    ),
    Endpoint(
        "GET",
        "/api/indices",
        "The indices that can be searched.",
        lambda service, _: service.indices(),
        contract.IndicesAnswer,
    ),
    Endpoint(
        "POST",
        "/v1/embeddings",
        "Encode texts with an encoder, or with an index's.",
        lambda service, body: service.embeddings(body),
        contract.EmbeddingsAnswer,
        contract.EmbeddingsBody,
    ),
    Endpoint(
        "POST",
        "/v1/rerank",
        "Put texts in the order of their relevance to a query.",
        lambda service, body: service.rerank(body),
        contract.RerankAnswer,
        contract.RerankBody,
    ),
)

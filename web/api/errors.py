"""Errors of the interface: a code for programs, and a sentence for persons."""

from typing import Final

import msgspec
from opensearchpy.exceptions import OpenSearchException
from starlette.responses import Response

from langshift.errors import (
    ClusterError,
    FingerprintError,
    LangshiftError,
    MissingIndexError,
    UnavailableError,
    UsageError,
)
from langshift.web.api.contract import ErrorAnswer, ErrorDetail
from langshift.web.context import AppContext

JSON: Final = "application/json"
#: Code -> the status of HTTP.
STATUS: Final = {
    "invalid_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_large": 413,
    "not_json": 415,
    "misdirected": 421,
    "busy": 429,
    "internal": 500,
    "cluster_refused": 502,
    "model_failed": 502,
    "unavailable": 503,
}


class ApiError(Exception):
    """A request that is not answered.

    Attributes:
        code: one of ``STATUS``.
        message: a sentence.
        headers: of the answer, beside the usual ones.
    """

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.headers = code, message, headers or {}


def of_failure(console: AppContext, error: LangshiftError | OpenSearchException) -> ApiError:
    """What failed below, as an error of the interface."""
    failed = console.failure(error)
    if isinstance(failed, UnavailableError):
        console.lost()
        return ApiError("unavailable", str(failed), {"retry-after": "3"})
    if isinstance(failed, MissingIndexError):
        return ApiError("not_found", str(failed))
    if isinstance(failed, UsageError):
        return ApiError("invalid_request", str(failed))
    if isinstance(failed, ClusterError | FingerprintError):
        return ApiError("cluster_refused", str(failed))
    # What is left is of encoders and rerankers, or of the servers that these ask.
    return ApiError("model_failed", str(failed))


def answer(error: ApiError, request_id: str) -> Response:
    """The answer that says so."""
    problem = ErrorDetail(code=error.code, message=error.message, request_id=request_id)
    body = msgspec.json.encode(ErrorAnswer(problem))
    return Response(body, STATUS[error.code], headers=error.headers, media_type=JSON)

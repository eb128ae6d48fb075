"""Errors of the interface: a code for programs, and a sentence for persons."""

import re
from typing import Final

import msgspec
from opensearchpy.exceptions import OpenSearchException
from starlette.exceptions import HTTPException
from starlette.responses import Response

from langshift import errors
from langshift.web.api.contract import ErrorAnswer, ErrorDetail
from langshift.web.context import AppContext, note_unexpected

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


# How msgspec says so.
_ABSENT: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_SHOWN: Final = 80  # characters of a name


def of_argument(error: msgspec.ValidationError, kind: type) -> ApiError:
    """What is wrong with the arguments of a request, which has those of ``kind``."""
    said, _, place = str(error).partition(" - at `$.")
    if not place and (found := _ABSENT.fullmatch(said)):
        name, known = found[2][:_SHOWN], ", ".join(getattr(kind, "__struct_encode_fields__", ()))
        if found[1].startswith("missing"):
            return ApiError("invalid_request", f"The argument `{name}` is missing.")
        there = f"use {known}" if known else "leave it out"
        return ApiError("invalid_request", f"There is no argument `{name}`: {there}.")
    where = f"The argument `{place}" if place else "The request"
    return ApiError("invalid_request", f"{where} cannot be taken: {said[0].lower()}{said[1:]}.")


def as_api_error(console: AppContext, error: Exception) -> ApiError:
    """Whatever was raised, as an error of the interface."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException) and error.status_code == 405:
        said = "This address does not take requests of this kind."
        return ApiError("method_not_allowed", said, dict(error.headers or {}))
    if isinstance(error, HTTPException):
        return ApiError("not_found", "There is nothing at this address: see /api/openapi.json.")
    if not isinstance(error, errors.LangshiftError | OpenSearchException):
        note_unexpected(error)
        kind = type(error).__name__
        return ApiError("internal", f"An unexpected error occurred ({kind}): the service's output has the details.")
    failed = console.failure(error)
    if isinstance(failed, errors.UnavailableError):
        console.lost()
        return ApiError("unavailable", str(failed), {"retry-after": "3"})
    if isinstance(failed, errors.MissingIndexError):
        return ApiError("not_found", failed.for_clients)
    if isinstance(failed, errors.UsageError):
        return ApiError("invalid_request", str(failed))
    of_cluster = isinstance(failed, errors.ClusterError | errors.FingerprintError)
    # What is left is of encoders and rerankers, or of the servers that these ask.
    return ApiError("cluster_refused" if of_cluster else "model_failed", str(failed))


def answer(error: ApiError, request_id: str) -> Response:
    """The answer that says so."""
    problem = ErrorDetail(code=error.code, message=error.message, request_id=request_id)
    body = msgspec.json.encode(ErrorAnswer(problem))
    return Response(body, STATUS[error.code], headers=error.headers, media_type=JSON)

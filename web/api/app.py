"""The interface as an application: who may ask, what of a request is read, how it is answered and logged."""

import hmac
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import anyio
import msgspec
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langshift.files import load_json
from langshift.reporting import note
from langshift.web.api import contract
from langshift.web.api.endpoints import ENDPOINTS, Endpoint, description
from langshift.web.api.errors import JSON, ApiError, answer, as_api_error, of_argument
from langshift.web.api.metrics import Metrics
from langshift.web.api.options import ALLOWED, ApiOptions
from langshift.web.api.service import AT_ONCE, SearchService, Turns
from langshift.web.context import AppContext
from langshift.web.security import Access

# Told to anybody: that the service lives, and whether the cluster does.
_HEALTH: Final = ("/health", "/health/ready")
_BESIDE: Final = (*_HEALTH, "/metrics", "/mcp")
# Addresses that are counted by name.
_COUNTED: Final = frozenset((*_BESIDE, "/api/openapi.json", *(one.path for one in ENDPOINTS)))
#: Bytes of a request's body: a million characters of any script, written with escapes.
MOST_BODY: Final = 8 << 20
# What a client may call its request.
_ID = re.compile(r"[\w.:-]{1,64}")
# Where a request's scope holds what is told of it.
_TOLD: Final = "langshift.told"
_HEADERS: Final = {"x-content-type-options": "nosniff", "cache-control": "no-store"}


class Api(NamedTuple):
    """The interface.

    Attributes:
        app: the application for the addresses of the interface.
        running: gives the context in which that works.
    """

    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[None]]


def make_api(console: AppContext, access: Access, options: ApiOptions) -> Api:
    """The interface, as it is served.

    Args:
        console: the cluster, and what is open on it.
        access: where the service listens.
        options: how it is served.
    """
    metrics = Metrics()
    turns = Turns(options.seconds, metrics.waiting.inc)
    service = SearchService(console, options.rerankers, metrics)
    threads = anyio.CapacityLimiter(AT_ONCE)

    def refused(request: Request, error: Exception) -> Response:
        made = as_api_error(console, error)
        told = request.scope[_TOLD]
        told["code"] = made.code
        metrics.failed(made.code)
        return answer(made, told["request_id"])

    def route(one: Endpoint) -> Route:
        async def handle(request: Request) -> Response:
            try:
                body = None if one.body is None else _decoded(await _body(request), one.body)
                async with turns.taken():
                    found = await anyio.to_thread.run_sync(one.run, service, body, limiter=threads)
                return Response(msgspec.json.encode(found), media_type=JSON)
            except ClientDisconnect:
                raise
            except Exception as error:
                return refused(request, error)

        return Route(one.path, handle, methods=[one.method])

    routes: list[BaseRoute] = [*map(route, ENDPOINTS), *_beside(service, metrics, access, options)]
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    if options.mcp:
        from mcp.server.fastmcp.server import StreamableHTTPASGIApp
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from langshift.web.api.agents import make_mcp

        manager = StreamableHTTPSessionManager(make_mcp(service, turns), json_response=True, stateless=True)
        routes.append(Route("/mcp", StreamableHTTPASGIApp(manager)))
        running = manager.run
    inner = Starlette(routes=routes, exception_handlers={HTTPException: refused})
    # It would lead to whatever Host the client sent.
    inner.router.redirect_slashes = False
    guarded = Guard(_checked(inner), access, options, metrics, refused)
    if not options.origins:
        return Api(guarded, running)
    allowing = CORSMiddleware(
        guarded,
        allow_origins=options.origins,
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type", "x-request-id"],
        expose_headers=["x-request-id", "retry-after"],
    )
    return Api(allowing, running)


def _beside(service: SearchService, metrics: Metrics, access: Access, options: ApiOptions) -> Iterator[Route]:
    """What is told of the service itself, and waits for no turn."""
    guarded = bool(options.tokens) or access.token is not None
    # Health is asked for while all threads of the searches are taken.
    threads = anyio.CapacityLimiter(2)

    async def health(request: Request) -> Response:
        ready = await anyio.to_thread.run_sync(service.ready, limiter=threads)
        status = 200 if ready or request.scope["path"] == "/health" else 503
        return Response(msgspec.json.encode(contract.HealthAnswer(True, ready)), status, media_type=JSON)

    async def described(_: Request) -> Response:
        return Response(json.dumps(description(guarded=guarded)), media_type=JSON)

    async def measured(_: Request) -> Response:
        content, kind = metrics.exposed()
        return Response(content, media_type=kind)

    yield from (Route("/health", health), Route("/health/ready", health), Route("/api/openapi.json", described))
    if options.metrics:
        yield Route("/metrics", measured)


async def _body(request: Request) -> bytes:
    """The body of a request.

    Raises:
        ApiError: it is too large, or not said to be JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise ApiError("not_json", f"Send the request's body as {JSON} (Content-Type).")
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MOST_BODY:
            raise ApiError("too_large", f"The request is larger than {MOST_BODY >> 20} MiB.")
    return bytes(read)


def _decoded(body: bytes, kind: type) -> Any:  # noqa: ANN401 - of that type
    try:
        load_json(body)
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise of_argument(error, kind) from None
    except orjson.JSONDecodeError as error:
        raise ApiError("invalid_request", f"The request's body is not JSON: {error.msg}.") from None


class _AgentRequest(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | None = None
    params: dict[str, Any] | None = None


def _checked(app: ASGIApp) -> ASGIApp:
    """The application, which gets what agents send only where it is a request, not too large and not nested too deeply.

    It checks what programs send itself.
    """

    async def hand_on(scope: Scope, receive: Receive, send: Send) -> None:
        parts: list[Message] = []

        async def again() -> Message:
            return parts.pop() if parts else await receive()

        if scope["path"] == "/mcp" and scope["method"] == "POST":
            body = await _body(Request(scope, receive))
            _decoded(body, _AgentRequest)
            parts.append({"type": "http.request", "body": body, "more_body": False})
        await app(scope, again, send)

    return hand_on


@dataclass(frozen=True)
class Guard:
    """Answers what must not reach the interface, and tells of each request.

    Attributes:
        app: that it stands before.
        access: where the service listens.
        options: how it is served.
        metrics: where requests are counted.
        refused: makes the answer of an error.
    """

    app: ASGIApp
    access: Access
    options: ApiOptions
    metrics: Metrics
    refused: Callable[[Request, Exception], Response]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request, began = Request(scope, receive), time.perf_counter()
        given = request.headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else uuid.uuid4().hex
        told: dict[str, Any] = {"request_id": request_id, "method": request.method, "path": scope["path"]}
        scope[_TOLD] = told

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                told["status"] = message["status"]
                extra = {**_HEADERS, "x-request-id": request_id}
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in extra.items())]
            await send(message)

        try:
            told["client"] = self._client(request)
            if scope["query_string"] and scope["path"] not in _HEALTH:
                said = "Arguments are taken from the body alone: leave out the question mark and what follows it."
                raise ApiError("invalid_request", said)
            await self.app(scope, receive, answered)
        except ApiError as error:
            await self.refused(request, error)(scope, receive, answered)
        except ClientDisconnect:
            # As others log it: nobody is there any more to be told.
            told["status"] = 499
        finally:
            told["milliseconds"] = round(1000 * (time.perf_counter() - began), 1)
            path = told["path"] if told["path"] in _COUNTED else "other"
            self.metrics.answered(path, told.get("status", 0), time.perf_counter() - began)
            if self.options.json_log:
                note(json.dumps({"time": time.time(), **told}))

    def _client(self, request: Request) -> str | None:
        """The client that asks, where clients have tokens.

        Raises:
            ApiError: it may not.
        """
        headers, tokens = request.headers, self.options.tokens
        origin = headers.get("origin")
        if origin is not None and origin not in self.options.origins:
            raise ApiError("forbidden", "Scripts of this site may not ask: name it with --allow-origin.")
        # What Starlette makes of it as an URL begins with the Host that the client sent.
        if request.scope["path"] in _HEALTH:
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        if tokens:
            shown = token.encode()
            found = [name for name, one in tokens.items() if hmac.compare_digest(one.token.encode(), shown)]
            if not found:
                raise _unauthorized()
            ALLOWED.set(tokens[found[0]].indices)
            return found[0]
        if not self.access.serves(headers.get("host", "")):
            raise ApiError("misdirected", f"This service is available only at {self.access.url}.")
        if self.access.token is not None and not self.access.admits(token):
            raise _unauthorized()
        return None


def _unauthorized() -> ApiError:
    said = "This service needs a token: send it as `Authorization: Bearer TOKEN`."
    return ApiError("unauthorized", said, {"www-authenticate": "Bearer"})


class Divided:
    """Two applications at one address: the interface, and the pages for all else."""

    def __init__(self, api: ASGIApp, pages: ASGIApp) -> None:
        """Give addresses of the interface to the one, and all others to the other."""
        self._api, self._pages = api, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope.get("path", "")
        ours = scope["type"] == "http" and (path in _BESIDE or path.startswith(("/api/", "/v1/")))
        await (self._api if ours else self._pages)(scope, receive, send)

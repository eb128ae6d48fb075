"""What reaches the pages at all: the right Host, origin and token, and no monstrous address."""

import functools
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langshift.settings import in_address
from langshift.web.context import error_page

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Access(NamedTuple):
    """Who may ask the console.

    Attributes:
        host: where it listens, a name or an IP address.
        port: likewise.
        token: what a browser has to show first; None where whoever reaches the console may ask.
        bound: the IP address that the host is.
    """

    host: str
    port: int
    token: str | None = None
    bound: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The address to open, without the token."""
        name = _everywhere(self.host) or in_address(self.host)
        return f"http://{name}:{self.port}/"

    @property
    def cookie(self) -> str:
        """The cookie's name; cookies know no ports, and several consoles may run."""
        return f"langshift-{self.port}"

    def serves(self, authority: str) -> bool:
        """Whether a Host header names this console.

        A page of anybody's may be made to have this machine's address, but only under its own name.
        """
        name, _, port = authority.lower().rpartition(":")
        if not port.isdigit() or authority.endswith("]"):
            name, port = authority.lower(), "80"
        if port != str(self.port):
            return False
        # A browser writes 127.1 as 127.0.0.1, and who listens at a name is found by its address, too.
        here = {in_address(self.host.lower()), in_address(self.bound)}
        if ipaddress.ip_address(self.bound).is_loopback:
            return name in here.union(_LOOPBACK)
        if _everywhere(self.host) is None:
            return name in here
        return name in here.union(_LOOPBACK, _names()) or _is_ip(name.strip("[]"))

    def admits(self, token: str) -> bool:
        """Whether that is the token."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())


def access(host: str, port: int, *, bound: str, guarded: bool = False) -> Access:
    """Who may ask a console that listens at ``host``.

    Args:
        host: as it was given.
        port: where it listens.
        bound: the IP address that the host is; a name may stand for any.
        guarded: whether nobody may ask without a token, on this machine neither.
    """
    address = ipaddress.ip_address(bound)
    token = secrets.token_urlsafe() if guarded or not address.is_loopback else None
    # "0" is every address, too.
    return Access(bound if address.is_unspecified else host, port, token, bound)


def _everywhere(host: str) -> str | None:
    """The name of this machine where a host stands for all its addresses."""
    return socket.gethostname() if _is_ip(host) and ipaddress.ip_address(host).is_unspecified else None


@functools.cache
def _names() -> tuple[str, ...]:
    """This machine's own names; a name server may be asked for them."""
    return socket.gethostname().lower(), socket.getfqdn().lower()


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Of a report, which brings its own style sheet and no script.
REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# With `no-referrer` a browser would send "Origin: null" with the console's own forms.
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# The longest query that can be searched for fits, in any script.
MOST_ADDRESS: Final = 1 << 17
# What the page of somebody without the token needs.
_WITHOUT_TOKEN: Final = ("/static/style.css", "/static/icon.svg")


class SecurityMiddleware:
    """Answers what must not reach the pages, and adds to every answer the headers that tell a browser what it may."""

    def __init__(self, app: ASGIApp, access: Access, unforeseen: Callable[[Request, Exception], Response]) -> None:
        """Stand before ``app``; ``unforeseen`` makes the page of an error that nobody handles."""
        self._app, self._access, self._unforeseen = app, access, unforeseen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, started = Request(scope, receive), False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await (self._refusal(request) or self._app)(scope, receive, answer)
        except Exception as error:
            if started:
                raise
            await self._unforeseen(request, error)(scope, receive, answer)

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a request that goes no further; None where it may."""
        if not self._access.serves(request.headers.get("host", "")):
            said = f"This console is available only at {self._access.url}, not under another name."
            return _bare(request, 421, said, "Wrong address")
        if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > MOST_ADDRESS:
            return _bare(request, 414, "The address is too long: the limit is 128 KiB.", "Too long")
        if not _from_here(request):
            said = "This request came from another site: the console accepts only its own pages and direct visits."
            return _bare(request, 403, said, "Refused")
        return self._without_token(request)

    def _without_token(self, request: Request) -> Response | None:
        access = self._access
        if access.token is None or request.scope["path"] in _WITHOUT_TOKEN:
            return None
        given = request.query_params.get("token")
        if given is not None and access.admits(given):
            redirect = RedirectResponse(_address_without_token(request.scope), 303)
            redirect.set_cookie(access.cookie, access.token, httponly=True, samesite="strict", path="/")
            return redirect
        if given is None and access.admits(request.cookies.get(access.cookie, "")):
            return None
        said = "This console requires its token: open the address that `langshift serve` printed, which contains it."
        return _bare(request, 401, said, "Token required")


def _from_here(request: Request) -> bool:
    """Whether a request was made by a page of the console, or by a person who opens one of them.

    Another port of this machine is another origin, but the same site: it is refused too. What writes must come from a
    page of the console, as the browser says itself: by Sec-Fetch-Site, or, where it does not send that, by Origin.
    """
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = origin is not None and origin.lower() == f"{request.scope['scheme']}://{headers['host'].lower()}"
    if request.method not in ("GET", "HEAD"):
        # Behind a proxy Origin has the proxy's name.
        return own if site is None else site == "same-origin"
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return (opened or site in (None, "none", "same-origin")) and (own or origin is None)


def _address_without_token(scope: Scope) -> str:
    path = "/" + scope["raw_path"].decode("ascii", "replace").lstrip("/\\")
    pairs = parse_qsl(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
    remaining = [(name, value) for name, value in pairs if name != "token"]
    return f"{path}?{urlencode(remaining)}" if remaining else path


def _bare(request: Request, status: int, said: str, heading: str) -> Response:
    return error_page(request, status, said, heading=heading, bare=True)

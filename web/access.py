"""Who may ask the console, and under which names it answers."""

from __future__ import annotations

import functools
import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass
from typing import Final

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Access:
    """Who may ask the console.

    Attributes:
        host: where it listens, a name or an IP address.
        port: likewise.
        token: what a browser has to show first; None where the console listens to this machine alone.
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
        if self.token is None:
            return name in here.union(_LOOPBACK)
        if _everywhere(self.host) is None:
            return name in here
        return name in here.union(_LOOPBACK, _names()) or _is_ip(name.strip("[]"))

    def admits(self, token: str) -> bool:
        """Whether that is the token."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())


def access(host: str, port: int, *, bound: str) -> Access:
    """Who may ask a console that listens at ``host``.

    Args:
        host: as it was given.
        port: where it listens.
        bound: the IP address that the host is; a name may stand for any.
    """
    address = ipaddress.ip_address(bound)
    token = None if address.is_loopback else secrets.token_urlsafe()
    # "0" is every address, too.
    return Access(bound if address.is_unspecified else host, port, token, bound)


def in_address(host: str) -> str:
    """A host as an address has it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


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

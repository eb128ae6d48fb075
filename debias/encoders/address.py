"""How a model on a server of embeddings is asked for: ``http:URL#MODEL``."""

from __future__ import annotations

from typing import NamedTuple

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from langshift.debias.encoders.server import KEY
from langshift.errors import UsageError

EMBEDDINGS = "/v1/embeddings"
_PORTS = {"http": 80, "https": 443}
_EXAMPLE = "such as http:http://localhost:8080#BAAI/bge-m3"


class Address(NamedTuple):
    """A server and one of its models.

    Attributes:
        root: the server's address without ``/v1/embeddings``, such as ``http://localhost:8080``.
        model: the model's name; None to take the only one that the server has.
    """

    root: str
    model: str | None


def parse_address(name: str) -> Address:
    """The address in an encoder's name: ``http:https://host/v1#MODEL``, ``https://host#MODEL`` and the like.

    However it is written, the same model of the same server gives the same address.

    Raises:
        UsageError: there is no address in it, or it holds what does not belong there.
    """
    written, _, model = name.partition("#")
    if not written.startswith(("http://", "https://")):
        written = written.partition(":")[2]
    if "@" in written or "?" in written:
        # Not shown: this may be a secret.
        raise UsageError(
            "The address of a server of embeddings is kept with every index, and must hold no password and no query: "
            f"put the key into {KEY}, and write http:URL#MODEL, {_EXAMPLE}."
        )
    try:
        url = parse_url(written)
    except LocationParseError:
        url = None
    if url is None or url.scheme not in _PORTS or not url.host:
        raise UsageError(f"{name!r} names no server of embeddings: write http:URL#MODEL, {_EXAMPLE}.")
    port = f":{url.port}" if url.port and url.port != _PORTS[url.scheme] else ""
    path = (url.path or "").rstrip("/")
    path = path.removesuffix("/embeddings") if path.endswith(EMBEDDINGS) else path
    return Address(f"{url.scheme}://{url.host}{port}{path.removesuffix('/v1')}", model or None)

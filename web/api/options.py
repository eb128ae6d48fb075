"""How the interface is served, and the file of its clients' tokens."""

import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from langshift.errors import UsageError, special_file
from langshift.plugin.versions import check_name

_CLIENT = re.compile(r"[\w.-]{1,64}")
#: The aliases of the indices that the client of this request may ask for; None for all.
ALLOWED: ContextVar[frozenset[str] | None] = ContextVar("indices of a client", default=None)
_LEAST: Final = 16  # characters of a token


class ClientToken(NamedTuple):
    """What a client shows, and what it may ask for.

    Attributes:
        token: that it shows.
        indices: aliases of the indices that it may ask for; None for all.
    """

    token: str
    indices: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class ApiOptions:
    """How the interface is served.

    Attributes:
        tokens: client -> its token and indices; empty where whoever reaches the service may ask.
        origins: of web pages whose scripts may ask.
        rerankers: that may be asked for.
        seconds: how long a request waits for its turn.
        metrics: whether ``/metrics`` is there.
        mcp: whether ``/mcp`` is there, for agents.
        json_log: whether each request is told, as a line of JSON.
    """

    tokens: Mapping[str, ClientToken] = field(default_factory=dict)
    origins: Sequence[str] = ()
    rerankers: Sequence[str] = ()
    seconds: float = 5.0
    metrics: bool = False
    mcp: bool = False
    json_log: bool = False


def read_tokens(path: Path) -> dict[str, ClientToken]:
    """The tokens of a file: on each line a client's name, its token, and the indices that it may ask for, if not all.

    Lines that begin with # are left out.

    Raises:
        UsageError: the file cannot be read, or a line is not that.
    """
    if special := special_file(path):
        raise UsageError(f"{special}: write the tokens to a file.")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"The tokens in {path} cannot be read: {why}.") from None
    found: dict[str, ClientToken] = {}
    for number, line in enumerate(lines, start=1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        if len(parts) < 2 or not _CLIENT.fullmatch(parts[0]) or len(parts[1]) < _LEAST:
            what = f"must hold a client's name and its token of at least {_LEAST} characters, with a space between them"
            raise UsageError(f"{path}, line {number}: each line {what}, and may hold the names of indices after that.")
        client, token, *indices = parts
        if client in found or token in (one.token for one in found.values()):
            raise UsageError(f"{path}, line {number}: that client or token is there already.")
        for index in indices:
            check_name(index)
        found[client] = ClientToken(token, frozenset(indices) or None)
    if not found:
        raise UsageError(f"{path} holds no token: write a client's name and its token on a line.")
    return found

"""Passwords of this process, which are never shown: a server's own words may repeat the request that it got."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import quote

_secrets: dict[str, None] = {}


def remember(username: str, password: str | None) -> str:
    """Keep a password out of everything that ``hide`` is asked about.

    Returns:
        The credentials as Basic authentication sends them.
    """
    pair = b64encode(f"{username}:{password or ''}".encode()).decode()
    for secret in (pair, password, quote(password or "", safe=""), quote(password or "")):
        if secret:
            _secrets[secret] = None
    return pair


def hide(text: str) -> str:
    """The text with ``***`` for each password, in whatever form one was sent.

    Only where it stands alone: a password such as ``admin`` must not spoil ``administrator``.
    """
    for secret in sorted(_secrets, key=len, reverse=True):
        if secret in text:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text

"""Languages as a searcher names them."""

from __future__ import annotations

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED, parse_tag, text_language


def require_language(language: str) -> str:
    """Which text fields a query of this language looks into first.

    Raises:
        UsageError: it names no language.
    """
    return text_language(require_tag(language))


def require_tag(language: str) -> str:
    """The tag, written as usual.

    Raises:
        UsageError: it names no language.
    """
    tag = parse_tag(language)
    if tag is None and language != UNDETERMINED:
        raise UsageError(f"{language!r} is no language: use a BCP 47 tag such as th or zh-TW.")
    return tag or UNDETERMINED

"""Half surrogate pairs in JSON, such as ``\\ud83d``: what is left of an emoji where a text was cut in its middle.

OpenSearch takes them and gives them back, but strict readers of JSON refuse the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# Every escape is looked at in its turn: whole pairs and an escaped backslash are none.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


def is_text(given: str) -> bool:
    """Whether it can be sent; Python hides bytes that are not UTF-8 in halves of surrogate pairs."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_halves(text: str, instead: Callable[[str], str]) -> str:
    """Replace half surrogate pairs.

    Args:
        text: JSON.
        instead: gives what stands in JSON's string instead of a half, by its four hexadecimal digits.
    """
    return _ESCAPE.sub(lambda found: instead(found["half"]) if found["half"] else found[0], text)

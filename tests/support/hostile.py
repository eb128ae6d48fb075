"""Texts that would command a terminal or style themselves, and what may reach a terminal."""

import io
import re
from contextlib import contextmanager

import pytest
from rich.console import ColorSystem

from langshift import output

#: Name -> a text. Magenta is a background that langshift never uses.
HOSTILE = {
    "clear the screen": "a\x1b[2Jb",
    "magenta": "a\x1b[45mb\x1b[0m",
    "a link": "a\x1b]8;;http://evil.example\x1b\\b\x1b]8;;\x1b\\",
    "the clipboard": "a\x1b]52;c;ZXZpbA==\x07b",
    "the title": "a\x1b]0;evil\x07b",
    "C1": "a\x9b2Jb\x9d52;c;ZXZpbA==\x9cb\x85c",
    "back to the start": "a\rError: b\x08\x08c",
    "another line": "a\nError: b",
    "null, vertical tab, form feed, delete": "a\x00b\x0bc\x0cd\x7fe",
    "another direction": "a\u202eb\u2066c\u2069",
    "separators of lines": "a\u2028b\u2029c",
    "half a character": "a\udc9bb",
    "markup": "[red]a[/red] [/] [/foo] [link=http://evil.example]b[/link] \\[c]",
    "an emoji": ":warning: a",
}
# Styles, and what draws a bar over itself.
_OURS = re.compile(r"\x1b\[[0-9;]*m|\r?\x1b\[(?:\?25[lh]|1A|2K)")
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def require_harmless(shown, *, styled=False):
    """No command to a terminal is in what was shown, but for our own styles where ``styled``."""
    assert "\x1b[45m" not in shown, repr(shown)
    found = _FORBIDDEN.search(_OURS.sub("", shown) if styled else shown)
    assert found is None, repr(shown)


@contextmanager
def terminal(width=100, *, styled=True):
    """Both streams as a terminal of so many columns, or as a pipe; yields what is written there."""
    written = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        # In one that is called dumb no progress is drawn.
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", str(width))
        for one in (output.out, output.err):
            patch.setattr(one, "_file", written)
            patch.setattr(one, "_width", width)
            patch.setattr(one, "is_interactive", styled)
            patch.setattr(one, "_force_terminal", styled)
            patch.setattr(one, "_color_system", ColorSystem.STANDARD if styled else None)
        yield written

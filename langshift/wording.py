"""How langshift words what a person reads: plurals, figures, joined words, and text that commands no terminal."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

# What a terminal takes for a command (the controls of ASCII and Latin-1), for the end of a line, or for an order to
# show text in another direction than it is read; and halves of characters, which have no encoding. Joiners and
# directional marks, which Persian, Hindi or Hebrew are written with, are none of these.
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escaped(text: str) -> str:
    """On one line, with escapes such as ``\\x1b`` for what a terminal would take for a command."""
    return UNSAFE.sub(escape, text)


def printable(text: str) -> str:
    """On one line, with spaces for what a terminal would take for a command."""
    return UNSAFE.sub(" ", text)


def escape(found: re.Match[str]) -> str:
    """What was found, as ``\\x1b``: for ``UNSAFE.sub``."""
    return found[0].encode("unicode_escape").decode()


def utc_time(milliseconds: int) -> str:
    """A time in milliseconds since 1970, such as ``2026-11-25 11:31:02 UTC``."""
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def iso_time(seconds: float | None = None) -> str:
    """A time in seconds since 1970, or now, such as ``2026-11-25T11:31:02+00:00``."""
    at = datetime.now(timezone.utc) if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
    return at.isoformat(timespec="seconds")


def beginning(text: str, most: int = 60) -> str:
    """A text, or its first ``most`` characters and ``…`` where it is longer."""
    return text if len(text) <= most else f"{text[:most]}…"


def pluralize(number: int, noun: str) -> str:
    """``1 document``, ``1,200 documents``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def program() -> str:
    """How the person can call langshift again from here: by name where that finds it, else by path."""
    called = Path(sys.argv[0])
    found = shutil.which("langshift")
    if called.name != "langshift" or (found and Path(found).samefile(called)):
        return "langshift"
    return shlex.quote(os.path.relpath(called))


def format_score(value: float | None, digits: int = 4) -> str:
    """A figure between -1 and 1 as ``.7802`` or ``-.1200``; ``-`` where there is none."""
    if value is None:
        return "-"
    # No minus before a zero.
    text = f"{round(float(value), digits) + 0.0:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def format_change(change: float | None, digits: int = 4, *, same: str = "0") -> str:
    """A change as ``+.0290`` or ``-.0040``; ``same`` where it does not show, ``-`` where there is none."""
    if change is None:
        return "-"
    shown = round(change, digits)
    if not shown:
        return same
    return ("+" if shown > 0 else "") + format_score(shown, digits)


def join_words(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

"""Texts as they come, for the detector: without what is no language, in the letters that its model knows.

The model learnt from plain prose. Capitals, letters in parts, styled or full-width ones, invisible characters, markup
and addresses are all taken for other languages, and often surely.
"""

import html
import re
import unicodedata
from string import ascii_uppercase

# What is looked at of a text that begins with markup or the like: what is left of it is enough.
_MOST = 20_000

# Without one of these there is no markup and no address.
_MARKS = ("<", "&", "@", "://", "www.")
_ENTITY = re.compile(r"&#?\w{1,32};")
# Whole scripts and style sheets, and comments, which end where the text does at the latest; then tags: `a < b` is none.
_TAG = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|</?[a-z!?][^<>]*>", re.DOTALL | re.IGNORECASE)
# Of ASCII alone, as Chinese and Japanese go on without a space; mail addresses and names of users likewise.
_ADDRESS = re.compile(r"(?:\b[a-z]{2,12}://|\bwww\.)[!-~]+|(?<![!-~])[!-~]*@[!-~]+", re.IGNORECASE)

# Characters of the category Cf, and variation selectors; beyond the first 65,536 characters there are more. The joiners
# go, too: of NTREX-128's 967 lines in Persian with some, 964 are detected with them and without.
_INVISIBLE = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
_FORMAT = re.compile(rf"[{_INVISIBLE}\U000e0000-\U000e01ef]")
# Letters and digits that NFKC makes plain ones of: in circles, full-width and half-width, ligatures, radicals and the
# forms that Arabic letters take. No more than these: NFKC takes Thai's SARA AM apart, and the comma of Chinese, which
# stays unless it stands beside a full-width letter.
_LATIN = r"\uff21-\uff3a\uff41-\uff5a"
_STYLES = (
    r"\u2102-\u2115\u2119-\u211d\u2124-\u2134\u2460-\u24ff\u2e80-\u2fd5\ufb00-\ufdff\ufe70-\ufefc\uff10-\uff19"
    rf"{_LATIN}\uff66-\uffdc"
)
_WIDE = r"[\uff01-\uff5e]"
_STYLED = re.compile(
    rf"[{_STYLES}\U0001d400-\U0001d7ff\U0001f130-\U0001f149]+"
    rf"|(?<=[{_LATIN}]){_WIDE}|(?<=[{_LATIN}]\s){_WIDE}|{_WIDE}(?=[{_LATIN}])"
)
# One range there, with emoji, is searched in half the time.
_UNUSUAL = re.compile(rf"[{_INVISIBLE}{_STYLES}\U0001d400-\U000e01ef]")

# Prose has capitals in at most one place of ten, German too; a title in one of eight, and more.
_CAPITAL = re.compile("[A-ZÀ-ÖØ-ÞΆ-ΫЀ-ЯԱ-Ֆ\u1c90-\u1cbf]")
_CAPITALS, _MOSTLY = 0.11, 0.4
_ASCII_CAPITALS = ascii_uppercase.encode()


def needs_preparing(beginning: str, line: str) -> bool:
    """Whether ``plain`` makes another text of one; most need nothing, which costs a twentieth of their detection.

    Args:
        beginning: of the text, where markup and addresses are looked for.
        line: what is read of it, where unusual characters are.
    """
    marked = any(mark in beginning for mark in _MARKS)
    return marked or (not line.isascii() and _UNUSUAL.search(line) is not None)


def plain(text: str) -> str:
    """A text without markup, addresses and invisible characters, its letters in their usual form."""
    line = text[:_MOST]
    if any(mark in line for mark in _MARKS):
        # Entities first, as tags are escaped in feeds.
        line = _ENTITY.sub(lambda found: html.unescape(found[0]), line)
        line = " ".join(_ADDRESS.sub(" ", _TAG.sub(" ", line)).split())
    return _STYLED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), _FORMAT.sub("", line))


def in_lower_case(line: str) -> str:
    """A line in lower case where it is in capitals or a title; else as it is: names and nouns keep their capitals."""
    # Counted in bytes first, with all that is not ASCII as if it were capitals: a tenth of the time, and mostly enough.
    small = len(line.encode("ascii", "ignore").translate(None, _ASCII_CAPITALS))
    most = _CAPITALS * len(line)
    if len(line) - small <= most or len(_CAPITAL.findall(line)) <= most:
        return line
    if 2 * line.count("İ") > line.count("I"):
        # In Turkish the other letter is no capital of i.
        line = line.replace("I", "ı")
    # In Unicode's lower case a dot of its own is left of it.
    return line.replace("İ", "i").lower()


def is_in_capitals(line: str) -> bool:
    """Whether most letters are capitals, so that the line as it is tells nothing."""
    return len(_CAPITAL.findall(line)) > _MOSTLY * len(line)


def patterns() -> dict[str, str]:
    """The expressions that are looked for here, by name, as Java's ``Pattern`` has them."""
    every = {
        "entity": _ENTITY,
        "tag": _TAG,
        "address": _ADDRESS,
        "format": _FORMAT,
        "styled": _STYLED,
        "unusual": _UNUSUAL,
        "capital": _CAPITAL,
    }
    return {name: _in_java(one) for name, one in every.items()}


def _in_java(expression: re.Pattern[str]) -> str:
    flags = "".join(name for flag, name in ((re.DOTALL, "s"), (re.IGNORECASE, "iu")) if expression.flags & flag)
    return rf"(?U{flags})" + re.sub(r"\\U([0-9a-f]{8})", r"\\x{\1}", expression.pattern).replace(r"\Z", r"\z")


def references() -> dict[str, str]:
    """Number of a character reference of HTML -> what it stands for, where that is another character or none.

    Numbers of surrogates, and those above 65,535, are left out.
    """
    codes = (code for code in range(0x10000) if not 0xD800 <= code <= 0xDFFF)
    return {str(code): meant for code in codes if (meant := html.unescape(f"&#{code};")) != chr(code)}

"""In which script a text is written, of those that its language has."""

import re
from functools import cache, lru_cache

from langshift.languages import UNDETERMINED, macrolanguage, scripts_of, with_script

# How much is read of a text: a third of Chinese characters differ.
_BEGINNING = 200
# The letters of the scripts that living languages with several are written in: the blocks that most of a text is in.
_LETTERS = {
    "Adlm": re.compile("[\U0001e900-\U0001e95f]"),
    "Arab": re.compile("[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]"),
    "Cyrl": re.compile("[\u0400-\u052f]"),
    "Deva": re.compile("[\u0900-\u097f]"),
    "Guru": re.compile("[\u0a00-\u0a7f]"),
    "Latn": re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]"),
    "Mong": re.compile("[\u1800-\u18af]"),
    "Nkoo": re.compile("[\u07c0-\u07ff]"),
    "Tfng": re.compile("[\u2d30-\u2d7f]"),
}
_HAN = ("Hans", "Hant")
_NO_HAN = re.compile("[^\u4e00-\u9fff]+")


def with_script_of(tag: str, text: str) -> str:
    """The tag of a text's language with the script of the text, where the language is written in several.

    ``zh`` of a text in Traditional characters gives ``zh-TW``, the tag of Traditional Chinese; ``sr`` of one in Latin
    letters gives ``sr-Latn``.

    Args:
        tag: a primary tag, such as a detector gives.
        text: of it the first 200 characters are read.
    """
    several = _several(tag)
    if not several:
        return tag
    beginning = text[:_BEGINNING]
    script = _han(beginning) if several == _HAN else _letters(beginning, several)
    return with_script(tag, script) if script in several else tag


@cache
def _several(tag: str) -> tuple[str, ...]:
    """The scripts of a language, by CLDR, that are told apart here; empty where it is one."""
    if tag == UNDETERMINED:
        return ()
    scripts = scripts_of(tag) | scripts_of(macrolanguage(tag) or tag)
    if scripts >= set(_HAN):
        return _HAN
    found = tuple(sorted(scripts & _LETTERS.keys()))
    return found if len(found) > 1 else ()


@lru_cache(1)
def _han(text: str) -> str | None:
    """Which Chinese characters are in the majority, of those that Traditional or Simplified Chinese alone has.

    What both have counts for both: GB 2312 is a standard of Simplified characters, Big5 of Traditional ones.
    """
    characters = _NO_HAN.sub("", text)
    simplified, traditional = (len(characters.encode(code, "ignore")) for code in ("gb2312", "big5"))
    if simplified == traditional:
        return None
    return "Hans" if simplified > traditional else "Hant"


@lru_cache(1)
def _letters(text: str, scripts: tuple[str, ...]) -> str | None:
    """Which of some scripts most letters are in; None where none is in any."""
    most, script = max((len(_LETTERS[script].findall(text)), script) for script in scripts)
    return script if most else None

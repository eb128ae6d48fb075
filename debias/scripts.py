"""In which script a text is written, of those that its language has."""

import unicodedata
from collections import Counter
from functools import cache, lru_cache

from langshift.languages import UNDETERMINED, macrolanguage, scripts_of, with_script

# How much is read of a text: a third of Chinese characters differ.
_BEGINNING = 200
# How Unicode's names of letters begin, for the scripts that living languages with several are written in.
_SCRIPTS = {
    "ADLAM": "Adlm",
    "ARABIC": "Arab",
    "CYRILLIC": "Cyrl",
    "DEVANAGARI": "Deva",
    "GURMUKHI": "Guru",
    "LATIN": "Latn",
    "MONGOLIAN": "Mong",
    "NKO": "Nkoo",
    "TIFINAGH": "Tfng",
}
_HAN = ("Hans", "Hant")


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
    script = (_han if several == _HAN else _letters)(text[:_BEGINNING])
    return with_script(tag, script) if script in several else tag


@cache
def _several(tag: str) -> tuple[str, ...]:
    """The scripts of a language, by CLDR, that are told apart here; empty where it is one."""
    if tag == UNDETERMINED:
        return ()
    scripts = scripts_of(tag) | scripts_of(macrolanguage(tag) or tag)
    if scripts >= set(_HAN):
        return _HAN
    found = tuple(sorted(scripts & set(_SCRIPTS.values())))
    return found if len(found) > 1 else ()


@lru_cache(1)
def _han(text: str) -> str | None:
    """Which Chinese characters are in the majority, of those that Traditional or Simplified Chinese alone has.

    What both have counts for both: GB 2312 is a standard of Simplified characters, Big5 of Traditional ones.
    """
    characters = "".join(filter(_is_han, text))
    simplified, traditional = (len(characters.encode(code, "ignore")) for code in ("gb2312", "big5"))
    if simplified == traditional:
        return None
    return "Hans" if simplified > traditional else "Hant"


def _is_han(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff"


@lru_cache(1)
def _letters(text: str) -> str | None:
    """The script of most letters; None where there is none, or it is not among those that are told apart."""
    names = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha())
    return _SCRIPTS.get(names.most_common(1)[0][0]) if names else None

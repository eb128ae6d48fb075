"""The form in which texts are encoded, indexed for words and asked: one for all that are canonically equal."""

import re
import unicodedata

# What no word is looked for with: soft hyphens, marks of direction, word joiners and byte order marks. Analyzers keep
# them within a word, so that it is another one.
_INVISIBLE = "\u00ad\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
_LIGATURES = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
}
#: Character -> what stands for it in normal form, beside NFC; plugin/normal_form.painless is given this.
SPELLINGS = {**dict.fromkeys(_INVISIBLE, ""), **_LIGATURES}
_SPELT = re.compile(f"[{''.join(SPELLINGS)}]")


def normal_form(text: str) -> str:
    """A text in NFC, without invisible characters within words, and with Latin ligatures spelt out.

    A text that is in this form already, as most are, is the same; so is what was made of one.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _SPELT.sub(lambda found: SPELLINGS[found[0]], text))


def canonical_forms(text: str) -> list[str]:
    """A text as it is, in NFC and in NFD: what is canonically equal to it, as far as people and programs write it."""
    return list(dict.fromkeys([text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)]))

"""The form in which texts are encoded, indexed for words and asked: one for all that are canonically equal."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")

#: What stands in normal form for certain characters, beside NFC. Nothing stands for those that nobody sees: soft
#: hyphens, marks of direction, word joiners and byte order marks, with which analyzers make another word of one.
#: Letters stand for the Latin ligatures of old typesetting.
SPELLINGS = {
    "": "\u00ad\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff",
    "ff": "\ufb00",
    "fi": "\ufb01",
    "fl": "\ufb02",
    "ffi": "\ufb03",
    "ffl": "\ufb04",
    "st": "\ufb05\ufb06",
}
_SPELT = {character: spelling for spelling, characters in SPELLINGS.items() for character in characters}
_RESPELT = re.compile(f"[{''.join(_SPELT)}]")


def normal_form(text: str) -> str:
    """A text in NFC, without invisible characters within words, and with Latin ligatures spelt out.

    A text that is in this form already, as most are, is the same; so is what was made of one.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _RESPELT.sub(lambda found: _SPELT[found[0]], text))


def canonical_forms(text: str) -> list[str]:
    """A text as it is, in NFC and in NFD: what is canonically equal to it, as far as people and programs write it."""
    return list(dict.fromkeys([text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)]))


def normal_texts(source: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """A stored document with its texts in normal form: all strings at some fields, also within lists and by language.

    Args:
        source: its fields, with others within them.
        paths: fields, as paths with dots.
    """
    made = dict(source)
    for path in paths:
        made = _normal_at(made, path)
    return made


def _normal_at(value: Any, path: str) -> Any:  # noqa: ANN401 - any JSON
    """A value with the strings at a field in normal form, also those within lists and by language."""
    if isinstance(value, list):
        return [_normal_at(each, path) for each in value]
    if not isinstance(value, Mapping):
        return normal_form(value) if isinstance(value, str) and not path else value
    made = dict(value)
    for name, each in value.items():
        if path in ("", name):
            made[name] = _normal_at(each, "")
        elif path.startswith(f"{name}."):
            made[name] = _normal_at(each, path[len(name) + 1 :])
    return made


def of_normal_form(read: Callable[[Any, Sequence[str]], T]) -> Callable[[Any, Sequence[str]], T]:
    """A method of an encoder that is given texts in normal form, whatever the caller gives."""

    @wraps(read)
    def read_normal_form(self: Any, texts: Sequence[str]) -> T:  # noqa: ANN401 - an encoder
        return read(self, [normal_form(text) for text in texts])

    return read_normal_form

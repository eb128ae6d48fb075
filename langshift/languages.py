"""Language tags: BCP 47, as documents, files and people write them."""

import json
from functools import cache
from importlib import resources
from itertools import chain, product
from string import ascii_lowercase
from typing import Literal

import langcodes
from langcodes import data_dicts
from langcodes.tag_parser import LanguageTagError

from langshift.errors import UsageError

UNDETERMINED = "und"
# ISO 15924: the scripts that are written from right to left and that a living language uses.
_RIGHT_TO_LEFT = {"Adlm", "Arab", "Aran", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"}


def parse_tag(text: str) -> str | None:
    """The canonical BCP 47 tag of ``text`` without its script, or None where it names no language.

    ``eng_Latn``, ``eng`` and ``EN`` give ``en``; ``arb`` gives ``ar`` and ``cmn`` gives ``zh``; ``iw``
    gives ``he``; ``zho-TW``, ``zh-Hant`` and ``zh-Hant-TW`` give ``zh-TW`` (a script that is not the
    language's usual one stands for its region).
    """
    try:
        language = langcodes.Language.get(text.strip().replace("_", "-")).prefer_macrolanguage()
    except LanguageTagError:
        return None
    if not language.language or not language.is_valid():
        return None
    territory = language.territory
    if language.script and territory is None and language.script != langcodes.get(language.language).maximize().script:
        territory = language.maximize().territory
    return langcodes.Language.make(language=language.language, territory=territory).to_tag()


def primary(tag: str) -> str:
    """The primary subtag of a tag: ``zh`` of ``zh-TW``."""
    return tag.partition("-")[0]


def macrolanguage(tag: str) -> str | None:
    """The macrolanguage that ISO 639-3 counts a language to: ``ar`` for ``arz``, ``no`` for ``nn``."""
    return data_dicts.MACROLANGUAGES.get(primary(tag))


def direction(tag: str | None) -> Literal["ltr", "rtl", "auto"]:
    """How text in a language runs, as HTML's ``dir`` says it; ``auto`` where the language is not known."""
    if tag is None or tag == UNDETERMINED or not langcodes.tag_is_valid(tag):
        return "auto"
    script = langcodes.get(tag).maximize().script
    if script is None:
        return "auto"
    return "rtl" if script in _RIGHT_TO_LEFT else "ltr"


@cache
def analyzers() -> dict[str, str]:
    """Primary language tag -> the built-in analyzer of its text fields; others take ``standard``."""
    analyzers: dict[str, str] = json.loads(resources.files("langshift").joinpath("analyzers.json").read_bytes())
    return analyzers


def text_language(tag: str) -> str:
    """Which text fields a document or query of a language goes to, by primary tag.

    Its own where it has an analyzer, else its macrolanguage's (``no`` for ``nn``, ``ar`` for ``arz``), else
    its own with the standard analyzer. This is also what the field ``language`` holds.
    """
    own, wider = primary(tag), macrolanguage(tag)
    return wider if own not in analyzers() and wider is not None and wider in analyzers() else own


def require_tag(language: str) -> str:
    """The tag, written as usual.

    Raises:
        UsageError: it names no language.
    """
    tag = parse_tag(language)
    if tag is None and language != UNDETERMINED:
        raise UsageError(f"{language!r} is not a valid language: use a BCP 47 tag such as th or zh-TW.")
    return tag or UNDETERMINED


def document_language(value: object) -> str:
    """The tag that a document's own word for its language stands for; ``und`` where it stands for none.

    A list of one word is that word, as it is for searches.
    """
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    return (parse_tag(value) if isinstance(value, str) else None) or UNDETERMINED


@cache
def codes() -> dict[str, str]:
    """Lower-case language code, or code with one more subtag -> its canonical tag, where that is another.

    Codes of two letters that no language has are ``und``.
    """
    pairs = ("".join(letters) for letters in product(ascii_lowercase, repeat=2))
    scripts = (tag for tag in data_dicts.LIKELY_SUBTAGS if tag.count("-") == 1 and len(tag.partition("-")[2]) == 4)
    others = [data_dicts.LANGUAGE_ALPHA3.values(), data_dicts.LANGUAGE_ALPHA3_BIBLIOGRAPHIC.values()]
    replaced = [*data_dicts.NORMALIZED_MACROLANGUAGES, *data_dicts.LANGUAGE_REPLACEMENTS]
    found = {tag.lower(): document_language(tag) for tag in (*pairs, *chain(*others), *replaced, *scripts)}
    return {tag: canonical for tag, canonical in found.items() if canonical != tag and tag.count("-") < 2}


@cache
def folds() -> dict[str, str]:
    """Primary tag -> what the field ``language`` holds, where that is another: ``no`` for ``nn``."""
    return {tag: text_language(tag) for tag in data_dicts.MACROLANGUAGES if text_language(tag) != primary(tag)}

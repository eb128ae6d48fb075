"""How other clients may name a language: alpha-3 and deprecated codes, scripts; what the cluster's script looks up."""

from __future__ import annotations

from functools import cache
from itertools import product
from string import ascii_lowercase

from langcodes.data_dicts import (
    LANGUAGE_ALPHA3,
    LANGUAGE_ALPHA3_BIBLIOGRAPHIC,
    LANGUAGE_REPLACEMENTS,
    LIKELY_SUBTAGS,
    MACROLANGUAGES,
    NORMALIZED_MACROLANGUAGES,
)

from langshift.languages import UNDETERMINED, parse_tag, primary, text_language


def told_language(told: object) -> str:
    """The tag that a document's own word for its language stands for; ``und`` where it stands for none.

    A list of one word is that word, as it is for searches.
    """
    if isinstance(told, list) and len(told) == 1:
        (told,) = told
    return (parse_tag(told) if isinstance(told, str) else None) or UNDETERMINED


@cache
def codes() -> dict[str, str]:
    """Lower-case language code, or code with one more subtag -> its canonical tag, where that is another.

    Codes of two letters that no language has are ``und``.
    """
    pairs = ("".join(letters) for letters in product(ascii_lowercase, repeat=2))
    scripts = (tag for tag in LIKELY_SUBTAGS if tag.count("-") == 1 and len(tag.partition("-")[2]) == 4)
    others = [*LANGUAGE_ALPHA3.values(), *LANGUAGE_ALPHA3_BIBLIOGRAPHIC.values(), *NORMALIZED_MACROLANGUAGES]
    found = {tag.lower(): told_language(tag) for tag in (*pairs, *others, *LANGUAGE_REPLACEMENTS, *scripts)}
    return {tag: canonical for tag, canonical in found.items() if canonical != tag and tag.count("-") < 2}


@cache
def folds() -> dict[str, str]:
    """Primary tag -> what the field ``language`` holds, where that is another: ``no`` for ``nn``."""
    return {tag: text_language(tag) for tag in MACROLANGUAGES if text_language(tag) != primary(tag)}

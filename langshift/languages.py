"""Language tags: BCP 47, as documents, files and people write them."""

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from itertools import product
from string import ascii_lowercase
from typing import Any, Final, Literal, NamedTuple

import langcodes
from langcodes.data_dicts import (
    ALL_SCRIPTS,
    LANGUAGE_REPLACEMENTS,
    LIKELY_SUBTAGS,
    MACROLANGUAGES,
    NORMALIZED_MACROLANGUAGES,
    TERRITORY_REPLACEMENTS,
    VALIDITY,
)
from langcodes.tag_parser import LanguageTagError

from langshift.errors import UsageError

UNDETERMINED = "und"
#: Primary tag of a language without spaces between words -> about how many characters a word has.
UNSPACED_WORD_LENGTHS: Final = {"zh": 2, "yue": 2, "wuu": 2, "ja": 2, "th": 4, "lo": 4, "km": 4, "my": 4, "bo": 4}
# ISO 15924: the scripts that are written from right to left and that a living language uses.
_RIGHT_TO_LEFT = {"Adlm", "Arab", "Aran", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"}
# White space and control characters, as Java's ``trim`` has them.
_BLANK = "".join(map(chr, range(33)))
# Ways of writing a script that ISO 15924 gives codes of their own.
_VARIANTS = {"Aran": "Arab", "Hanb": "Hant", "Latf": "Latn", "Latg": "Latn"}


# Tags that say of no language in particular, or for whom alone; und says that a language is not known.
_OF_NONE = re.compile("(x(?=-)|root|mis|mul|zxx|q[a-t][a-z])(-[a-z0-9]{1,8})*")


def names_none(text: str) -> bool:
    """Whether ``text`` is a tag that says nothing of a language: ``mul``, ``mis``, ``zxx``, of private use.

    Where one stands (``x-default``), the language is as unknown as where none stands; what is no tag is an error.
    """
    return _OF_NONE.fullmatch(text.strip(_BLANK).replace("_", "-").lower()) is not None


class Subtags(NamedTuple):
    """The parts of a language tag that say what a text is in; None where there is none.

    Attributes:
        language: in lower case, as CLDR prefers it: ``zh`` for ``cmn``.
        script: as ISO 15924 writes it: ``Hant``.
        territory: in upper case, or three digits.
    """

    language: str
    script: str | None = None
    territory: str | None = None

    def __str__(self) -> str:
        return "-".join(filter(None, self))


def parse_tag(text: str) -> str | None:
    """The canonical BCP 47 tag of ``text`` with its script where that is not the usual one, or None.

    ``eng_Latn``, ``eng`` and ``EN`` give ``en``; ``arb`` gives ``ar`` and ``cmn`` gives ``zh``; ``iw`` gives ``he``.
    A script that the language with its region implies is left out: ``zho-TW``, ``zh-Hant`` and ``zh-Hant-TW`` give
    ``zh-TW``, ``zh-Hant-HK`` gives ``zh-HK``, ``sr-Latn`` stays. None is given for what names no language (private
    use, ``mul``, ``zxx``, ``mis``), and for tags with a part that no registry knows.
    """
    found = read_subtags(text)
    return None if found is None else str(_shortened(found))


def read_subtags(text: str) -> Subtags | None:
    """What ``text`` says as a tag, nothing left out; None where it names no language."""
    tag = text.strip(_BLANK).replace("_", "-")
    if not tag.isascii():
        return None
    head, _, rest = tag.lower().partition("-")
    second, _, others = rest.partition("-")
    if len(second) == 3 and second.isalpha() and tag.lower() not in LANGUAGE_REPLACEMENTS:
        base = read_subtags(head)
        if base is None:
            return None
        # A part of a language as it was once written, or, as ISO 3166 has them too, a region of three letters.
        known, region = _extended().get(f"{base.language}-{second}"), TERRITORY_REPLACEMENTS.get(second, "")
        # Its table has codes of languages, too, in lower case.
        if known is None and not region.isupper():
            return None
        tag = "-".join(filter(None, (*((head, region) if known is None else (known,)), others)))
    try:
        parsed = langcodes.Language.get(tag).prefer_macrolanguage()
    except LanguageTagError:
        return None
    language = parsed.language or ""
    if not language.isalpha() or language == UNDETERMINED or names_none(language):
        return None
    if parsed.extlangs or not parsed.is_valid():
        return None
    script = parsed.script
    return Subtags(language, _VARIANTS.get(script, script) if script else None, parsed.territory)


def _shortened(tag: Subtags) -> Subtags:
    """Without a script that goes without saying; one that stands for a region gives way to that."""
    without = tag._replace(script=None)
    if tag.script is None or _usual_script(without) in (None, tag.script):
        return without
    region = None if tag.territory else _regions_of_scripts().get(str(tag))
    return without._replace(territory=region) if region else tag


def _usual_script(tag: Subtags) -> str | None:
    return usual_scripts().get(str(tag)) or usual_scripts().get(tag.language)


@lru_cache(4096)
def with_script(tag: str, script: str) -> str:
    """The canonical tag of a language that is written in this script: ``zh-TW`` of ``zh`` and ``Hant``."""
    found = read_subtags(tag)
    return tag if found is None else str(_shortened(found._replace(script=script)))


@lru_cache(4096)
def script_of(tag: str) -> str | None:
    """The script that a canonical tag names or implies by CLDR; None where that is not known."""
    found = read_subtags(tag)
    if found is None:
        return None
    return found.script or _usual_script(found)


@cache
def usual_scripts() -> dict[str, str]:
    """Language, or language with a region of another script -> its usual script.

    Of languages of a macrolanguage, what that says stands where they say nothing: ``hak-TW`` is written as ``zh-TW``.
    """
    likely = {tag: langcodes.get(whole).script or "" for tag, whole in LIKELY_SUBTAGS.items() if _has_no_script(tag)}
    for member, wider in MACROLANGUAGES.items():
        for tag in [tag for tag in likely if primary(tag) == wider]:
            likely.setdefault(member + tag.removeprefix(wider), likely[tag])
    return {tag: script for tag, script in likely.items() if likely.get(primary(tag)) != script or "-" not in tag}


@cache
def scripts_of(language: str) -> frozenset[str]:
    """The scripts that CLDR knows a language to be written in, by its primary tag."""
    likely = (whole for tag, whole in LIKELY_SUBTAGS.items() if primary(tag) == language)
    return frozenset(script for whole in likely if (script := langcodes.get(whole).script))


def _has_no_script(tag: str) -> bool:
    """``zh`` and ``zh-TW``, but not ``zh-Hant``."""
    return primary(tag) != UNDETERMINED and all(len(part) < 4 for part in tag.split("-")[1:])


@cache
def _regions_of_scripts() -> dict[str, str]:
    """Language with an unusual script -> the region that it stands for, if that implies it: ``zh-Hant`` -> ``TW``."""
    found = {
        tag: langcodes.get(whole) for tag, whole in LIKELY_SUBTAGS.items() if re.fullmatch("[a-z]+-[A-Z].{3}", tag)
    }
    return {
        tag: likely.territory
        for tag, likely in found.items()
        if likely.territory and usual_scripts().get(f"{primary(tag)}-{likely.territory}") == likely.script
    }


@cache
def _extended() -> dict[str, str]:
    """Language with a second part of three letters -> what it means: ``zh-yue`` -> ``yue``."""
    members = {f"{wider}-{member}": member for member, wider in MACROLANGUAGES.items() if len(member) == 3}
    older = {
        tag: known.partition("-x-")[0]
        for tag, known in LANGUAGE_REPLACEMENTS.items()
        if re.fullmatch("[a-z]+-[a-z]{3}", tag)
    }
    # Microsoft's, from before there were tags for scripts.
    return {**members, **older, "zh-chs": "zh-Hans", "zh-cht": "zh-Hant"}


def primary(tag: str) -> str:
    """The primary subtag of a tag: ``zh`` of ``zh-TW``."""
    return tag.partition("-")[0]


def macrolanguage(tag: str) -> str | None:
    """The macrolanguage that ISO 639-3 counts a language to: ``ar`` for ``arz``, ``no`` for ``nn``."""
    return MACROLANGUAGES.get(primary(tag))


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
def tag_tables() -> dict[str, Any]:
    """What a program that has no CLDR needs to read tags as ``parse_tag`` does; all keys are in lower case.

    Returns:
        ``codes``: code, or code with more parts -> its tag, script included, where that is another; ``und`` for those
        that name no language. ``languages``: all but the last letter of the codes that stand for themselves -> their
        last letters. ``scripts``, ``regions``: a part -> as it is written. ``variants``: a list of parts.
        ``usual``: language, or language with a region -> its usual script. ``of_scripts``: language with a script
        -> the region that it stands for.
    """
    letters = ["".join(of) for length in (2, 3) for of in product(ascii_lowercase, repeat=length)]
    subtags = [one for part in VALIDITY.pattern[2:-2].split("|") for one in _spelled_out(part)]
    languages: dict[str, str] = {}
    replaced = {*LANGUAGE_REPLACEMENTS, *NORMALIZED_MACROLANGUAGES, *_extended()}
    codes = {tag: str(read_subtags(tag) or UNDETERMINED) for tag in sorted(replaced)}
    for code in letters:
        if code not in codes and str(read_subtags(code)) == code:
            languages[code[:-1]] = languages.get(code[:-1], "") + code[-1]
    regions = {part.lower(): part for part in subtags if re.fullmatch("[A-Z]{2}|[0-9]{3}", part)}
    return {
        "codes": codes,
        "languages": languages,
        "scripts": {
            part.lower(): _VARIANTS.get(part, part)
            for part in sorted({*ALL_SCRIPTS, *(part for part in subtags if re.fullmatch("[A-Z][a-z]{3}", part))})
        },
        "regions": regions | {part: now for part, now in TERRITORY_REPLACEMENTS.items() if now in regions.values()},
        "variants": [part for part in subtags if re.fullmatch("[0-9a-z]{5,8}|[0-9][0-9a-z]{3}", part)],
        "usual": {tag.lower(): script for tag, script in usual_scripts().items()},
        "of_scripts": {tag.lower(): region for tag, region in _regions_of_scripts().items()},
    }


def _spelled_out(part: str) -> Iterator[str]:
    """``aaa``, ``aab`` and ``aac`` of ``aa[a-c]``."""
    before, bracket, span = part.partition("[")
    if not bracket:
        yield part
        return
    for code in range(ord(span[0]), ord(span[2]) + 1):
        yield before + chr(code)


@cache
def folds() -> dict[str, str]:
    """Primary tag -> what the field ``language`` holds, where that is another: ``no`` for ``nn``."""
    return {tag: text_language(tag) for tag in MACROLANGUAGES if text_language(tag) != primary(tag)}

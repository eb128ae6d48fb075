"""Which languages there are, told by the names of files or columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import langcodes

from langshift.errors import UsageError
from langshift.languages import parse_tag, primary

_COMPRESSED = (".gz", ".zst")
#: The languages of mMARCO (Bonifacio et al., 2021), as its files name them.
_MMARCO = {
    "arabic": "ar",
    "chinese": "zh",
    "dutch": "nl",
    "english": "en",
    "french": "fr",
    "german": "de",
    "hindi": "hi",
    "indonesian": "id",
    "italian": "it",
    "japanese": "ja",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
    "vietnamese": "vi",
}


def by_language(named: Iterable[tuple[str, str]], place: str) -> dict[str, str]:
    """Files or columns by the tag of their language, sorted.

    A regional text (``zho-CN``) stands for its primary language where no other does and the region is that
    language's usual one; else it keeps its region (``zh-TW``). What names no language is left aside.

    Args:
        named: the language as written, in any form of its tag, and the name of the file or column.
        place: where they are, which begins a message.

    Raises:
        UsageError: two are of one language.
    """
    found: dict[str, str] = {}
    for written, name in named:
        tag = parse_tag(written)
        if tag is None:
            continue
        if tag in found:
            raise UsageError(f"{place}: {found[tag]} and {name} are both {tag}; keep one of them.")
        found[tag] = name
    for tag in [tag for tag in found if "-" in tag]:
        if primary(tag) not in found and _usual_region(tag):
            found[primary(tag)] = found.pop(tag)
    return dict(sorted(found.items()))


def chosen(found: Mapping[str, str], languages: Sequence[str] | None, shown: str, holds: str) -> dict[str, str]:
    """Those of the files or columns that are to be read.

    Args:
        found: what ``by_language`` gave.
        languages: the languages to read, in any form of their tags; None reads all.
        shown: how messages name the parallel text.
        holds: what it holds: ``text`` or ``vectors``.

    Raises:
        UsageError: a language that is not there, or fewer than two to read.
    """
    if languages is not None:
        wanted = {_require(written, found, shown, holds) for written in languages}
        found = {tag: name for tag, name in found.items() if tag in wanted}
    if len(found) < 2:
        there = "is text" if holds == "text" else f"are {holds}"
        raise UsageError(f"{shown}: there {there} in {', '.join(found)} alone; a second language is needed.")
    return dict(found)


def _require(written: str, found: Mapping[str, str], shown: str, holds: str) -> str:
    tag = parse_tag(written)
    if tag is None or tag not in found:
        raise UsageError(f"{shown}: has no {holds} in the language {written!r}; it has {', '.join(found)}.")
    return tag


def _usual_region(tag: str) -> bool:
    return langcodes.get(primary(tag)).maximize().territory == langcodes.get(tag).territory


def file_kind(path: Path) -> str:
    """The suffix that tells a file's format: ``.txt`` of ``th.txt.gz``."""
    return _unpacked_name(path).suffix.lower()


def written_language(path: Path) -> str:
    """The part of a file's name that names a language, or ``""``.

    That is the name, or its end after a dot: ``th.txt``, ``tha_Thai.txt.gz`` and ``newstest2019-ref.tha.txt`` are
    Thai. mMARCO begins the names of its tables with the language's: ``portuguese_collection.tsv``.
    """
    name = _unpacked_name(path)
    named = _MMARCO.get(name.stem.partition("_")[0].lower()) if name.suffix.lower() == ".tsv" else None
    written = named or name.stem.rpartition(".")[2]
    return written if parse_tag(written) else ""


def _unpacked_name(path: Path) -> Path:
    return Path(path.stem if path.suffix.lower() in _COMPRESSED else path.name)

"""Rows of parallel text, and which columns or files of it are languages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

import langcodes
import numpy as np
from langcodes.data_dicts import LIKELY_SUBTAGS
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.languages import parse_tag, primary

_COMPRESSED = (".gz", ".zst")


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
            raise UsageError(f"{place}: {found[tag]} and {name} are both {tag}; remove one of them.")
        found[tag] = name
    for tag in [tag for tag in found if "-" in tag]:
        usual = langcodes.get(primary(tag)).maximize().territory
        if primary(tag) not in found and langcodes.get(tag).territory == usual:
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
        wanted = {require_held(written, list(found), shown, holds) for written in languages}
        found = {tag: name for tag, name in found.items() if tag in wanted}
    if len(found) < 2:
        raise UsageError(f"{shown} contains {holds} in {', '.join(found)} only; a second language is needed.")
    return dict(found)


def require_held(written: str, found: Sequence[str], shown: str, holds: str) -> str:
    """Return the tag of a language that parallel text has.

    Args:
        written: the language, in any form of its tag.
        found: the languages that it has.
        shown: how messages name it.
        holds: what it holds: ``text`` or ``vectors``.

    Raises:
        UsageError: it does not have that one.
    """
    tag = parse_tag(written)
    if tag is None or tag not in found:
        raise UsageError(f"{shown} has no {holds} in the language {written!r}; it has {', '.join(found)}.")
    return tag


def file_kind(path: Path) -> str:
    """The suffix that tells a file's format: ``.txt`` of ``th.txt.gz``."""
    return _unpacked_name(path).suffix.lower()


def written_language(path: Path) -> str:
    """The part of a file's name that names a language, or ``""``.

    That is the name, or its end after a dot: ``th.txt``, ``tha_Thai.txt.gz`` and ``newstest2019-ref.tha.txt`` are
    Thai.
    """
    written = _unpacked_name(path).stem.rpartition(".")[2]
    return written if parse_tag(written) else ""


def _unpacked_name(path: Path) -> Path:
    return Path(path.stem if path.suffix.lower() in _COMPRESSED else path.name)


#: How many rows are looked at before reading.
PEEKED = 1000


def language_columns(
    names: Sequence[str], ids: Sequence[object], languages: Sequence[str] | None, shown: str
) -> tuple[dict[str, str], str | None]:
    """Tell languages, names of rows and all else apart.

    A column ``_id`` names the rows. A column ``id`` is looked into, since ``id`` is the tag of Indonesian: numbers
    and words with a digit in them (``doc-17``) name the rows, texts of several words and lists of numbers are
    Indonesian. A column whose name is an ISO 639-3 code by chance (``url``, ``doc``) is none of a language:
    languages that CLDR does not know are taken where they are asked for, or written with their script (``url_Latn``).

    Args:
        names: of all columns.
        ids: what the column ``id`` holds in the first rows.
        languages: the languages asked for, in any form of their tags, or None.
        shown: how messages name the table.

    Returns:
        The columns by language tag, sorted; and the column that names the rows, if there is one.

    Raises:
        UsageError: no column is a language, two are the same one, or ``id`` may be either.
    """
    special = {name.lower(): name for name in names if name.lower() in ("id", "_id")}
    requested = None if languages is None else {parse_tag(language) for language in languages}
    named = [name for name in names if name.lower() not in special and is_language(name, requested)]
    row_id = special.get("_id")
    if "id" in special:
        has_indonesian = any(primary(parse_tag(name) or "") == "id" for name in named)
        holds = _holds(ids)
        if requested is None and not has_indonesian and holds is None:
            raise UsageError(
                f"{shown}: {special['id']!r} may be Indonesian or the rows' ids: rename it to 'ind' or to '_id'."
            )
        if not has_indonesian and (holds == "language" if requested is None else "id" in requested):
            named.append(special["id"])
        elif holds == "names":
            row_id = row_id or special["id"]
    found = by_language(((name, name) for name in named), shown)
    if not found:
        raise UsageError(f"{shown}: none of {', '.join(map(repr, names))} is named after a language, such as 'th'.")
    return found, row_id


def is_language(name: str, requested: set[str | None] | None = None) -> bool:
    """Whether a column's name means a language: one that CLDR knows, or is asked for, or with script or region."""
    if (tag := parse_tag(name)) is None:
        return False
    return primary(tag) in LIKELY_SUBTAGS or "_" in name or "-" in name or tag in (requested or ())


def _holds(ids: Sequence[object]) -> str | None:
    """What a column ``id`` holds: a ``language``, ``names`` of rows, or None where neither is plain."""
    given = [value for value in ids if value is not None and value != ""]
    if given and all(map(_is_name, given)):
        return "names"
    return "language" if given and 2 * sum(map(_is_said, given)) >= len(given) else None


def _is_name(value: object) -> bool:
    if isinstance(value, str):
        return len(value.split()) == 1 and any(character.isdigit() for character in value)
    return isinstance(value, int | float)


def _is_said(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and len(value.split()) > 1)


class ParallelRows(NamedTuple):
    """A batch of n rows; what stands in one row says the same in every language.

    Attributes:
        places: names each row for a person: ``line 12``, ``id 7067032``, ``row 3``.
        texts: n texts by language tag, ``""`` where a row has none in that language; empty for given vectors.
        vectors: given vectors by language tag, (n, d) float32, perhaps not writable, a row of NaN where there is
            none in that language; empty for texts.
        openings: of joined rows the first row's text, by language tag; empty where texts are not joined.
    """

    places: Sequence[str]
    texts: Mapping[str, Sequence[str]]
    vectors: Mapping[str, NDArray[np.float32]]
    openings: Mapping[str, Sequence[str]] = {}


@dataclass
class LeftOut:
    """What was left out of a language's texts because it is no translation.

    Attributes:
        identical: texts that are the pivot's.
        detected: texts in another language, by that.
    """

    identical: int = 0
    detected: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> str:
        """``14 identical to the pivot and 3 in another language (2 fr, 1 it)``; empty where there is nothing."""
        languages = ", ".join(f"{count:,} {tag}" for tag, count in self.detected.most_common())
        other = f"{self.detected.total():,} in another language ({languages})" if languages else ""
        return " and ".join(filter(None, (f"{self.identical:,} identical to the pivot" * bool(self.identical), other)))

    def clear(self) -> None:
        """Begin anew."""
        self.identical = 0
        self.detected.clear()


class ParallelText(Protocol):
    """Parallel text of any format: texts, or vectors that were made elsewhere.

    Attributes:
        shown: how messages name it.
        languages: the tags of its languages, sorted, at least two.
        total: how many rows it has, where that is known before reading.
        dimension: the dimension of given vectors; None for texts.
        left_out: language -> what the last reading left out; empty where nothing is looked at.
    """

    shown: str
    languages: Sequence[str]
    total: int | None = None
    dimension: int | None = None
    left_out: Mapping[str, LeftOut] = MappingProxyType({})

    def batches(self, size: int) -> Iterator[ParallelRows]:
        """Read the rows anew, in order, at most ``size`` at a time.

        Raises:
            UsageError: what cannot be used, named by file and place.
        """

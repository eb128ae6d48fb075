"""Which columns of a table are languages, and which one names the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langcodes.data_dicts import LIKELY_SUBTAGS

from langshift.debias.parallel.naming import by_language
from langshift.errors import UsageError
from langshift.languages import parse_tag, primary

#: How many rows are looked at before reading.
PEEKED = 1000
_INDONESIAN = "id"


@dataclass(frozen=True)
class Columns:
    """The columns that are read.

    Attributes:
        languages: columns by language tag, sorted.
        row_id: the column that names the rows, if there is one.
    """

    languages: dict[str, str]
    row_id: str | None


def language_columns(
    names: Sequence[str], ids: Sequence[object], languages: Sequence[str] | None, shown: str
) -> Columns:
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

    Raises:
        UsageError: no column is a language, two are the same one, or ``id`` may be either.
    """
    special = {name.lower(): name for name in names if name.lower() in ("id", "_id")}
    asked = None if languages is None else {parse_tag(language) for language in languages}
    named = [name for name in names if name.lower() not in special and is_language(name, asked)]
    row_id = special.get("_id")
    if "id" in special:
        told = any(primary(parse_tag(name) or "") == _INDONESIAN for name in named)
        holds = _holds(ids)
        if asked is None and not told and holds is None:
            raise UsageError(
                f"{shown}: {special['id']!r} may be Indonesian or name the rows: rename it to 'ind' or to '_id'."
            )
        if not told and (holds == "language" if asked is None else _INDONESIAN in asked):
            named.append(special["id"])
        elif holds == "names":
            row_id = row_id or special["id"]
    found = by_language(((name, name) for name in named), shown)
    if not found:
        raise UsageError(f"{shown}: none of {', '.join(map(repr, names))} names a language, as 'th' does.")
    return Columns(found, row_id)


def is_language(name: str, asked: set[str | None] | None = None) -> bool:
    """Whether a column's name means a language: one that CLDR knows, or is asked for, or with script or region."""
    tag = parse_tag(name)
    if tag is None:
        return False
    return primary(tag) in LIKELY_SUBTAGS or "_" in name or "-" in name or tag in (asked or ())


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


def row_places(ids: Sequence[object], otherwise: Sequence[str]) -> list[str]:
    """``id 7067032`` for each row that has an id, else ``line 12`` or ``row 12``."""
    return [
        place if value is None or value == "" else f"id {value}" for value, place in zip(ids, otherwise, strict=True)
    ]

"""The languages of a published collection, which its files are named by, and those of them that a person chooses."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from langshift.errors import UsageError
from langshift.evaluate.convert.common import Chosen, pick, require_folder
from langshift.languages import parse_tag


def find_by_code(
    folder: Path, places: Sequence[str], pattern: re.Pattern[str], remedy: str, lacking: str
) -> dict[str, Path]:
    """Find what a collection has of each language.

    Args:
        folder: where to look.
        places: folders in it, "" for itself; the first that has anything counts.
        pattern: of names; its group is the language's code.
        remedy: what the message ends with where there is no folder.
        lacking: what a folder has not that has nothing, for its message.

    Returns:
        Code -> path, sorted by name.

    Raises:
        UsageError: there is no folder, or it has nothing.
    """
    require_folder(folder, remedy)
    for home in (folder / place for place in places):
        paths = sorted(home.iterdir()) if home.is_dir() else []
        if found := {match[1]: path for path in paths if (match := pattern.fullmatch(path.name))}:
            return found
    raise UsageError(f"{folder} contains no {lacking}.")


def tagged(codes: Iterable[str]) -> dict[str, str]:
    """Code -> tag of those codes that name a language: ``zh`` of ``zho_Hans``, ``zh-TW`` of ``zho_Hant``."""
    return {code: tag for code in codes if (tag := parse_tag(code))}


def choose(available: Mapping[str, str], wanted: Chosen, where: Path, lacking: str = "no file for") -> dict[str, str]:
    """The languages of a pool.

    Args:
        available: the collection's code -> tag.
        wanted: languages as a person names them; None takes all.
        where: the folder, for messages.
        lacking: what it has not of a language that it lacks, for messages.

    Returns:
        Code -> tag, in the order of ``wanted``, else in that of ``available``.

    Raises:
        UsageError: a language that the collection lacks.
    """
    chosen: dict[str, str] = {}
    for language in wanted or available:
        code = pick(available, language)
        if code is None:
            names = ", ".join(sorted(available))
            raise UsageError(f"{where} has {lacking} the language {language!r}: it has {names}.")
        chosen[code] = available[code]
    return chosen

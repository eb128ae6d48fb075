"""Which of a collection's languages are meant: by its own code (``zho_Hans``) or by tag (``zh``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from langshift.errors import UsageError
from langshift.languages import macrolanguage, parse_tag, primary


def tag_of(code: str) -> str | None:
    """The tag of a collection's language code: ``zh`` of ``zho_Hans``, ``zh-TW`` of ``zho_Hant``."""
    return parse_tag(code)


def tagged(codes: Iterable[str]) -> dict[str, str]:
    """Code -> tag of those codes that name a language."""
    return {code: tag for code in codes if (tag := tag_of(code))}


def pick(available: Mapping[str, str], wanted: str) -> str | None:
    """The code that ``wanted`` means, or None.

    A code as the collection writes it comes first, then the tag (``zh`` is ``zho_Hans``, since
    ``zho_Hant`` is ``zh-TW``), then the only code of that language or macrolanguage.
    """
    if wanted in available:
        return wanted
    tag = parse_tag(wanted)
    if tag is None:
        return None
    for code, other in available.items():
        if other == tag:
            return code
    for similar in (primary, macrolanguage):
        found = [code for code, other in available.items() if similar(other) == tag]
        if len(found) == 1:
            return found[0]
    return None


def choose(
    available: Mapping[str, str],
    wanted: Sequence[str] | None,
    pivots: Sequence[str] | None,
    where: Path,
    lacking: str = "no file for",
) -> dict[str, str]:
    """The languages of a pool.

    Args:
        available: the collection's code -> tag.
        wanted: languages as a person names them; None takes all.
        pivots: the languages of the questions, which must be among them; None where there are none.
        where: the folder, for messages.
        lacking: what it has not of a language that it lacks, for messages.

    Returns:
        Code -> tag, in the order of ``wanted``, else in that of ``available``.

    Raises:
        UsageError: a language that the collection lacks, or a pivot that is not among ``wanted``.
    """
    chosen: dict[str, str] = {}
    for language in wanted or available:
        code = _known(available, language, where, lacking)
        chosen[code] = available[code]
    for pivot in pivots or ():
        if _known(available, pivot, where, lacking) not in chosen:
            raise UsageError(
                f"The pivot {pivot!r} is not among the languages {', '.join(wanted or available)}: "
                "add it, or name another --pivot."
            )
    return chosen


def _known(available: Mapping[str, str], language: str, where: Path, lacking: str) -> str:
    code = pick(available, language)
    if code is None:
        names = ", ".join(sorted(available))
        raise UsageError(f"{where} has {lacking} the language {language!r}: it has {names}.")
    return code

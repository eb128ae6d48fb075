"""Arguments as they come from Python, where anything may come: a wrong type is refused in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from langshift.errors import UsageError
from langshift.plugin.query_shift import ShiftQueries
from langshift.plugin.versions import check_name
from langshift.retrieval.opening import SearchOptions

if TYPE_CHECKING:
    from langshift.retrieval.wanted import Filters


def require_types(*, one_per_group: object, explain: object, language: object, filters: Filters) -> None:
    """Refuse arguments of a search that are not of their type; the numbers are checked with the setting.

    Raises:
        UsageError: naming the argument.
    """
    for name, given in (("one_per_group", one_per_group), ("explain", explain)):
        _require_bool(name, given)
    if not isinstance(language, str | None):
        raise UsageError(f"language is {language!r}, but it must be a BCP 47 tag such as 'th', or None.")
    if not isinstance(filters, Mapping) or not all(isinstance(field, str) for field in filters):
        raise UsageError("filters must be a dictionary from a field to a list of strings, such as {'year': ['1990']}.")


def opening(name: object, encoder: object, trust_remote_code: bool, shift_queries: ShiftQueries) -> SearchOptions:
    """The options to open an index with.

    Raises:
        UsageError: the name of the index cannot be one, or an option is not what it may be.
    """
    if not isinstance(name, str):
        raise UsageError(f"The name of the index is {name!r}, and not text.")
    check_name(name)
    if encoder is not None and not (isinstance(encoder, str) and encoder):
        raise UsageError(f"encoder is {encoder!r}, but it must be the name of an encoder, or None.")
    _require_bool("trust_remote_code", trust_remote_code)
    if shift_queries not in get_args(ShiftQueries):
        raise UsageError(
            f"shift_queries is {shift_queries!r}, but it must be one of: {', '.join(get_args(ShiftQueries))}."
        )
    return SearchOptions(encoder, trust_remote_code, shift_queries)


def _require_bool(name: str, given: object) -> None:
    if not isinstance(given, bool):
        raise UsageError(f"{name} is {given!r}, but it must be True or False.")

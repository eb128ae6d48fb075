"""What a person asks for in the form that starts a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from anyio import from_thread
from starlette.requests import Request

from langshift.retrieval.settings import setting_of
from langshift.retrieval.wanted import Fusion, Mode, Setting

_LABELS = {
    "mode": "Mode",
    "prefer_language": "Language preference",
    "spread": "Language preference",
    "fusion": "Fusion",
    "lexical_weight": "Share of the words",
}
MOST_FIELDS = 20


def fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent; files are left out. Only for functions that run in a thread."""

    async def read() -> dict[str, str]:
        async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
            return {name: value.strip() for name, value in form.items() if isinstance(value, str)}

    return from_thread.run(read)


def setting(form: Mapping[str, str]) -> Setting:
    """How to search: ``mode``, ``prefer`` (below 0 spreads), ``fusion``, ``weight``, ``one``; empty is what is usual.

    Raises:
        UsageError: a number is none or out of range, or things do not belong together.
    """
    hybrid = form.get("mode") == "hybrid"
    preference = form.get("prefer") or None
    away = preference is not None and preference.startswith("-")
    return setting_of(
        mode=cast(Mode, form.get("mode") or "dense"),
        prefer_language=None if away else cast(Any, preference),
        spread=cast(Any, preference.removeprefix("-")) if preference is not None and away else None,
        # The form shows both for every mode.
        fusion=cast(Fusion, form.get("fusion") or None) if hybrid else None,
        lexical_weight=cast(Any, form.get("weight") or None) if hybrid else None,
        one_per_group=bool(form.get("one")),
        spelt=_label,
    )


def _label(name: str, value: object = None) -> str:
    return _LABELS[name] if value is None else f"{_LABELS[name]} {value}"

"""What a report needs beyond the base install: the extra ``report``."""

from __future__ import annotations

from importlib.util import find_spec

from langshift.errors import LangshiftError

_NEEDED = ("jinja2", "matplotlib", "tabulate")


def installed() -> bool:
    """Whether all of the extra is there."""
    return all(find_spec(name) is not None for name in _NEEDED)


def require() -> None:
    """Refuse, before any work, to make a report without the extra.

    Raises:
        LangshiftError: it is not installed.
    """
    if not installed():
        raise LangshiftError("A report needs an extra: pip install 'langshift[report]'.")

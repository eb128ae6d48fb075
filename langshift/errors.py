"""Errors that a person can act on: one sentence that says what, where, and what to do."""

from __future__ import annotations

from importlib.util import find_spec


class LangshiftError(Exception):
    """The work could not be done; the message is one sentence for the user.

    The command line prints it without a traceback and exits with ``exit_code``.
    """

    exit_code = 1


class UsageError(LangshiftError):
    """What was given cannot be used: a missing file, a bad line, an unknown language."""

    exit_code = 2


class ClusterError(LangshiftError):
    """The cluster cannot be reached, refuses, or lacks something."""


class UnavailableError(ClusterError):
    """The cluster cannot be reached, or cannot answer for now: the same may work a moment later."""


class FingerprintError(LangshiftError):
    """An index, vector file and encoder that do not belong together."""


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

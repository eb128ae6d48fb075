"""Errors that a person can act on: one sentence that says what, where, and what to do."""


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

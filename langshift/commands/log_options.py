"""The options of commands that read a log of queries: which file, and which of its fields."""

from collections.abc import Collection
from pathlib import Path

from langshift.errors import UsageError
from langshift.evaluate.datasets.logs import LogFields, QueryLog
from langshift.parameters import Decorator, option, option_group

_QUERY_FIELD = option("--query-field NAME", "The log's field with the query. [default: text]", rare=True)
_TIMES_AND_PRIVACY = (
    option("--time-field NAME", "The log's field with the time. [default: timestamp]", rare=True),
    option(
        "--redact FIELD",
        "Read the log as if it had no such field; of queries themselves, write nothing. Can be repeated.",
        multiple=True,
        rare=True,
    ),
)


def _log(
    queries: Path | None, query_field: str | None, time_field: str | None = None, redact: Collection[str] = ()
) -> QueryLog | None:
    """The log; None where none is given, and no field of one.

    Raises:
        UsageError: fields of no log.
    """
    if queries is not None:
        return QueryLog(queries, LogFields(query_field, time_field, redact))
    fields = (("--query-field", query_field), ("--time-field", time_field), ("--redact", redact))
    for name, given in fields:
        if given:
            raise UsageError(f"{name} is about a log: give one with --queries.")
    return None


def log_options(help_: str, *, times: bool = False) -> Decorator:
    """Return the options of a log; the command is given it as one argument ``log``.

    Args:
        help_: of ``--queries``.
        times: whether the command goes by times, and writes what it reads.
    """
    return option_group(
        "log", _log, option("--queries FILE", help_), _QUERY_FIELD, *(_TIMES_AND_PRIVACY if times else ())
    )

"""A log of queries: what was asked, and when.

One JSON object a line: ``timestamp`` (ISO 8601, or seconds since 1970) and ``text``; optional ``language``
and ``_id``. A line without an ``_id`` gets its number. A log need not be in the order of its times; a time
without an offset is UTC.
"""

from __future__ import annotations

import math
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Query
from langshift.languages import UNDETERMINED, parse_tag, primary
from langshift.reading import identifier, records, string

MOST_QUERIES = 100_000


class Logged(NamedTuple):
    """One query of a log.

    Attributes:
        time: when it came, in seconds since 1970.
        query: what was asked.
    """

    time: float
    query: Query


def read_log(path: Path) -> list[Logged]:
    """Read a log, in the order of its times.

    Raises:
        UsageError: no file, no query, too many, or a line that cannot be used; named by file and line.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {path}: --log names a file with timestamp and text on each line.")
    found: dict[str, Logged] = {}
    for number, record in records(path):
        where = f"{path}, line {number}"
        name = identifier(record.get("_id", number), where)
        if name in found:
            raise UsageError(f"{where}, has the _id {name!r} of an earlier line: every query needs one of its own.")
        if len(found) == MOST_QUERIES:
            raise UsageError(f"{path} has more than {MOST_QUERIES:,} queries: split it, and replay the parts in turn.")
        text = string(record, "text", where, "give the query one, or remove the line")
        found[name] = Logged(
            _time(record.get("timestamp"), where), Query(name, text, _language(record.get("language"), where), None)
        )
    if not found:
        raise UsageError(f"{path} holds no query: put one JSON object with timestamp and text on each line.")
    return sorted(found.values(), key=lambda logged: logged.time)


def _time(value: object, where: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    try:
        # Python 3.10 reads no Z.
        read = datetime.fromisoformat(str(value).strip().replace("Z", "+00:00"))
        return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{where}, has the timestamp {value!r}: give one such as 2026-03-01T08:30:00.250Z, or seconds since 1970."
        ) from None


def _language(value: object, where: str) -> str | None:
    if value is None or value in ("", UNDETERMINED):
        return None
    tag = parse_tag(value) if isinstance(value, str) else None
    if tag is None:
        raise UsageError(f"{where}, has the language {value!r}, which is no language tag: give one such as en or zh.")
    return primary(tag)

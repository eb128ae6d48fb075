"""The log of a load: a file of bounded size, for its owner alone."""

import io
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from logging.handlers import RotatingFileHandler
from pathlib import Path

from langshift.errors import LangshiftError
from langshift.wording import escaped

_MOST_BYTES = 5_000_000
_LONGEST_EVENT = 10_000
_OWNER_ALONE = 0o600


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Send what the logger ``langshift`` is told, from INFO on, to a file and nowhere else.

    Events are appended, one line each, with the time in UTC. The file and its one backup (``.1``) hold 5 MB each and
    are for their owner alone. An event that cannot be written, as on a full disk, is lost without a word.

    Args:
        path: the file; its folder must exist.

    Raises:
        LangshiftError: the file cannot be opened.
    """
    try:
        handler = _QuietHandler(path, maxBytes=_MOST_BYTES, backupCount=1, encoding="utf-8")
    except OSError as error:
        raise LangshiftError(f"The log {path} cannot be opened ({error.strerror}): make it a writable file.") from error
    handler.setFormatter(_OneLineFormatter("%(asctime)s %(levelname)s %(message)s"))
    handler.setLevel(logging.INFO)
    logger = logging.getLogger("langshift")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    # Handlers of the root logger, such as a library's, would print.
    logger.propagate = False
    try:
        yield
    finally:
        level, logger.propagate = before
        logger.setLevel(level)
        logger.removeHandler(handler)
        handler.close()


class _QuietHandler(RotatingFileHandler):
    """A file of bounded size for its owner alone, whose troubles stop nothing and print nothing."""

    def _open(self) -> io.TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWNER_ALONE)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            # Also where there was one already, of a looser mode.
            Path(self.baseFilename).chmod(_OWNER_ALONE)
        return os.fdopen(descriptor, "a", encoding=self.encoding)

    def handleError(self, record: logging.LogRecord) -> None:
        """Let it pass: a load is worth more than its log."""

    def close(self) -> None:
        """Close it; what a full disk did not take is lost."""
        with suppress(OSError):
            super().close()


class _OneLineFormatter(logging.Formatter):
    """One line an event, of bounded length, without what a terminal would take for a command."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002 - logging's
        """Such as ``2026-01-02T03:04:05.678+00:00``."""
        return datetime.fromtimestamp(record.created, tz=timezone.utc).isoformat(timespec="milliseconds")

    def format(self, record: logging.LogRecord) -> str:
        """The event with its traceback, where there is one."""
        text = super().format(record)
        if len(text) > _LONGEST_EVENT:
            text = f"{text[:_LONGEST_EVENT]} ..."
        return escaped(text)

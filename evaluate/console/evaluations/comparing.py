"""Reports of runs that are chosen on the page, made when they are asked for and kept while the files stay."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from langshift.errors import LangshiftError
from langshift.evaluate.dataset import CORPUS, QRELS, QUERIES
from langshift.evaluate.group_scores import GROUP_SCORES
from langshift.evaluate.load.journal import PER_QUERY, RESULT
from langshift.evaluate.result import RUN

_KEPT = 8
_PATIENCE_SECONDS = 60.0
_FILES = (RESULT, RUN, GROUP_SCORES, PER_QUERY)


class Reports:
    """Makes one report at a time, for a large one takes seconds and much memory."""

    def __init__(self) -> None:
        self._making = Lock()
        self._made: OrderedDict[object, str] = OrderedDict()

    def html(self, places: Sequence[Path], dataset: Path | None) -> str:
        """The page of these runs.

        Args:
            places: their folders, first the one that the others are compared with.
            dataset: the folder that the runs name, whose files are watched, too.

        Raises:
            UsageError: the runs cannot be compared, with the reason.
            LangshiftError: another report is being made for so long.
        """
        if not self._making.acquire(timeout=_PATIENCE_SECONDS):
            raise LangshiftError("Another report is being made, one at a time: load this page again in a minute.")
        try:
            key = _state(places, dataset)
            if key not in self._made:
                from langshift.evaluate.report.building import build
                from langshift.evaluate.report.html import html

                self._made[key] = html(build(places))
            self._made.move_to_end(key)
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            return self._made[key]
        finally:
            self._making.release()


def _state(places: Sequence[Path], dataset: Path | None) -> object:
    """What a report was made of: other files, other contents or another order are another report."""
    files = [place / name for place in places for name in _FILES]
    files += [dataset / name for name in (CORPUS, QUERIES, QRELS)] if dataset else []
    return tuple((str(path), *_stamp(path)) for path in files)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size

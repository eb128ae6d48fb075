"""Reports of runs that are chosen on the page, made when they are asked for and kept while the files stay."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from threading import Lock

from langshift.errors import LangshiftError
from langshift.evaluate.datasets.dataset import CORPUS, QRELS, QUERIES
from langshift.evaluate.group_scores import GROUP_SCORES
from langshift.evaluate.replay.journal import PER_QUERY, RESULT
from langshift.evaluate.replay.result import RUN
from langshift.web.kept import Kept

_KEPT = 8
_PATIENCE_SECONDS = 60.0
_FILES = (RESULT, RUN, GROUP_SCORES, PER_QUERY)


class Reports:
    """Makes one report at a time, for a large one takes seconds and much memory."""

    def __init__(self) -> None:
        self._making = Lock()
        self._made: Kept[str] = Kept(_KEPT)

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
            return self._made.of(_state(places, dataset), lambda: _page(places))
        finally:
            self._making.release()


def _page(places: Sequence[Path]) -> str:
    from langshift.evaluate.report.building import build
    from langshift.evaluate.report.html import html

    return html(build(places))


def _state(places: Sequence[Path], dataset: Path | None) -> Hashable:
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

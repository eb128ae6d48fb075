"""What a person sees of a load while it runs, and what of it is kept: its log, and how its documents are made."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from langshift.console import note, out
from langshift.errors import LangshiftError
from langshift.ingest.bulk.place import LoadPlace
from langshift.ingest.load_progress import LoadProgress
from langshift.ingest.making import Making
from langshift.ingest.making_options import MakingOptions
from langshift.ingest.remarks import remarks
from langshift.ingest.summary import Summary
from langshift.log_file import log_to
from langshift.settings import VERSION

_log = logging.getLogger(__name__)


class ShownLoad:
    """Shows how far the load is, and logs it; ``with`` ends both."""

    def __init__(self, corpus: str, making: MakingOptions, place: LoadPlace) -> None:
        """Make one.

        Args:
            corpus: what is loaded, for the log.
            making: how its documents are made; kept for dead letters that are sent again.
            place: where the load keeps its files.
        """
        self._corpus, self._making, self._place = corpus, making, place
        self._before = 0
        self._stack = ExitStack()
        self._progress: LoadProgress | None = None

    def __enter__(self) -> ShownLoad:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if kind is not None:
            _log.error("%s", error if isinstance(error, LangshiftError) else kind.__name__)
        self._stack.close()

    def begin(self, total: int | None, handled: int) -> None:
        """The load begins."""
        self._stack.enter_context(log_to(self._place.log))
        _log.info("langshift %s: %s into %s", VERSION, self._corpus, self._place.name)
        self._making.keep(self._place.making)
        self._before = handled
        self._progress = self._stack.enter_context(LoadProgress(total, handled))

    def update(self, *, handled: int, documents: int, retries: int, dead: int, at_once: int) -> None:
        """It has come further."""
        if self._progress is not None:
            self._progress.update(self._before + handled, documents, retries, dead, at_once)


def tell_end(summary: Summary, making: Making, last: str, *, as_json: bool) -> int:
    """What is told of a load after its figures: what a person should know of it, and the last line.

    Args:
        summary: what it did.
        making: how its documents were made.
        last: the last line.
        as_json: whether standard output holds JSON, and nothing else.

    Returns:
        The exit code: 0, or 3 where documents went to dead letters.
    """
    for sentence in remarks(summary, making):
        note(sentence)
    if as_json:
        note(last)
    else:
        out.print(last, markup=False, soft_wrap=True)
    return 3 if summary.dead else 0

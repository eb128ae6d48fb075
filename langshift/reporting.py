"""What any room tells whoever runs a command; a terminal shows it, and where langshift is a library, the log has it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

_log = logging.getLogger(__name__)


class Reporter:
    """What is told goes to the logger ``langshift.reporting``; a terminal shows it in its own way."""

    def note(self, sentence: str) -> None:
        """Tell a sentence."""
        _log.info("%s", sentence)

    def wait(self, sentence: str) -> AbstractContextManager[object]:
        """Tell a sentence, and show until the context ends that something is awaited."""
        self.note(sentence)
        return nullcontext()

    def download(self, name: str, size: int) -> AbstractContextManager[Callable[[int], None]]:  # noqa: ARG002 - shown
        """Show how much of ``size`` bytes is there; the context gives a function that is told of more, or fewer."""
        return nullcontext(lambda _: None)


_reporter = Reporter()


@contextmanager
def report_to(reporter: Reporter) -> Iterator[None]:
    """Within it, what any thread of this process tells goes to ``reporter``."""
    global _reporter
    before, _reporter = _reporter, reporter
    try:
        yield
    finally:
        _reporter = before


def reporter() -> Reporter:
    """Where what is told goes now."""
    return _reporter


def note(sentence: str) -> None:
    """Tell whoever runs this a sentence."""
    _reporter.note(sentence)


def wait(sentence: str) -> AbstractContextManager[object]:
    """Tell a sentence, and show until the context ends that something is awaited."""
    return _reporter.wait(sentence)


def download(name: str, size: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show a download of so many bytes; the context gives a function that is told how many more have come."""
    return _reporter.download(name, size)

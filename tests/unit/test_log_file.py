"""The file that langshift logs to."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from langshift import log_file
from langshift.errors import LangshiftError
from langshift.log_file import log_to

LOG = logging.getLogger("langshift.ingest.anything")
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "load.log"


@pytest.fixture(autouse=True)
def silence(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Whatever a test does, nothing is printed."""
    yield
    assert capfd.readouterr() == ("", "")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_event_is_a_line_with_its_time_in_utc(path: Path) -> None:
    with log_to(path):
        LOG.info("sent %d documents", 3)
        LOG.warning("the cluster is busy")
        LOG.debug("not this")
    first, second = path.read_text().splitlines()
    assert re.fullmatch(f"{STAMP} INFO sent 3 documents", first)
    assert re.fullmatch(f"{STAMP} WARNING the cluster is busy", second)


def test_the_time_has_milliseconds_and_its_zone(path: Path) -> None:
    with log_to(path):
        record = LOG.makeRecord(LOG.name, logging.INFO, "", 0, "an event", (), None)
        record.created = 1_767_323_045.678
        LOG.handle(record)
    assert path.read_text() == "2026-01-02T03:04:05.678+00:00 INFO an event\n"


def test_line_breaks_tracebacks_and_commands_to_the_terminal_stay_in_the_line(path: Path) -> None:
    with log_to(path):
        LOG.info("first\nsecond\r\x1b[2Jthird\u2028fourth \udc80 é")
        try:
            raise ValueError("a\nb")
        except ValueError:
            LOG.exception("failed")
    first, second = path.read_text(encoding="utf-8").split("\n")[:-1]
    assert first.endswith(r" INFO first\nsecond\r\x1b[2Jthird\u2028fourth \udc80 é")
    assert re.search(r" ERROR failed\\nTraceback .*ValueError: a\\nb$", second)


def test_a_very_long_event_is_cut(path: Path) -> None:
    with log_to(path):
        LOG.info("x" * 1_000_000)
    assert path.stat().st_size < 10_100
    assert path.read_text().endswith("xxx ...\n")


def test_another_load_is_appended(path: Path) -> None:
    for text in ("first", "second"):
        with log_to(path):
            LOG.info(text)
    assert [line.split()[-1] for line in path.read_text().splitlines()] == ["first", "second"]


def test_file_and_backup_are_bounded_and_for_their_owner_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "_MOST_BYTES", 5000)
    path.touch(0o644)
    before = os.umask(0)
    try:
        with log_to(path):
            for number in range(500):
                LOG.info("event %d", number)
    finally:
        os.umask(before)
    backup = path.with_name("load.log.1")
    assert sorted(path.parent.iterdir()) == [path, backup]
    for file in (path, backup):
        assert mode(file) == 0o600
        assert 0 < file.stat().st_size <= 5000
    assert path.read_text().endswith("event 499\n")


def test_afterwards_logging_is_as_it_was(path: Path) -> None:
    logger = logging.getLogger("langshift")
    before = list(logger.handlers), logger.level, logger.propagate
    with pytest.raises(ZeroDivisionError), log_to(path):
        raise ZeroDivisionError
    assert (logger.handlers, logger.level, logger.propagate) == before
    size = path.stat().st_size
    LOG.info("not in the file")
    assert path.stat().st_size == size


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_stops_nothing() -> None:
    before = logging.getLogger("langshift").handlers[:]
    with log_to(Path("/dev/full")):
        for _ in range(1000):
            LOG.info("x" * 100)
    assert logging.getLogger("langshift").handlers == before


def test_a_log_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LangshiftError) as caught, log_to(tmp_path):
        pass
    said = f"The log {tmp_path} cannot be opened (Is a directory): make it a writable file."
    assert str(caught.value) == said

"""The line that a person sees while a load runs."""

from __future__ import annotations

import io
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from piped_index import fingerprint_of, made_shift
from rich.console import Console

from langshift import output, progress_display
from langshift.commands.load_display import LoadDisplay
from langshift.ingest.progress import LoadSummary, last_line


def test_the_last_line_accounts_for_lines_that_leave_no_document_of_their_own() -> None:
    made = fingerprint_of(made_shift())
    summary = LoadSummary("news", "news-v0001", made, "c.jsonl")
    summary.count({"language en": 3, "result created": 2, "result updated": 1, "result not_found": 2, "result dead": 1})
    summary.present = 3
    assert summary.to_dict()["not_found"] == 2
    assert last_line(summary) == (
        "All 6 lines of c.jsonl are accounted for: 3 documents on the server, checked, "
        "1 replaced an earlier one with the same _id, 2 deletes of documents that were not there, "
        "1 dead letter (langshift dead-letters list --index news shows why)."
    )


class Terminal:
    """A terminal on standard error of a chosen width, with a clock of its own."""

    def __init__(self, width: int, *, terminal: bool = True) -> None:
        self.now = 100.0
        self.written = io.StringIO()
        self.console = Console(
            file=self.written, force_terminal=terminal, width=width, height=24, color_system=None, highlight=False,
            get_time=lambda: self.now,
        )  # fmt: skip

    def line(self, progress: LoadDisplay) -> str:
        """What is shown now; its bar and the picture of its spinner taken out."""
        beside = Console(file=io.StringIO(), width=self.console.width, color_system=None, highlight=False)
        with beside.capture() as capture:
            beside.print(progress._shown.get_renderable())
        lines = capture.get().splitlines()
        assert len(lines) == 1
        assert len(lines[0]) <= self.console.width
        return " ".join(re.sub("[━╸╺\u2800-\u28ff]", " ", lines[0]).split())


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(width: int = 120, *, terminal: bool = True) -> Terminal:
        made = Terminal(width, terminal=terminal)
        monkeypatch.setattr(output, "err", made.console)
        return made

    return make


def test_one_line_tells_how_far_how_fast_and_what_went_wrong(on_terminal: Any) -> None:
    terminal = on_terminal()
    with LoadDisplay(20_000) as progress:
        assert terminal.line(progress) == "0/20,000 -/s -:--:-- dead letters 0 retries 0 concurrency 0"
        for second in range(1, 6):
            terminal.now += 1
            progress.update(1000 * second, 3, 2, 8)
        terminal.now += 1
        assert terminal.line(progress) == "5,000/20,000 1,000/s 0:00:15 dead letters 2 retries 3 concurrency 8"


def test_without_a_total_lines_are_counted(on_terminal: Any) -> None:
    terminal = on_terminal()
    with LoadDisplay(None) as progress:
        for second in range(1, 4):
            terminal.now += 1
            progress.update(1000 * second, 0, 0, 4)
        assert terminal.line(progress) == "3,000 lines 1,000/s dead letters 0 retries 0 concurrency 4"


def test_speed_is_that_of_the_last_ten_seconds(on_terminal: Any) -> None:
    terminal = on_terminal()
    with LoadDisplay(1_000_000) as progress:
        handled = 0
        for speed in [5000] * 30 + [100] * 12:
            terminal.now += 1
            handled += speed
            progress.update(handled, 0, 0, 4)
        assert "151,200/1,000,000 100/s 2:21:28" in terminal.line(progress)


def test_a_load_that_stands_still_has_no_speed(on_terminal: Any) -> None:
    terminal = on_terminal()
    with LoadDisplay(1_000_000) as progress:
        for second in range(1, 4):
            terminal.now += 1
            progress.update(1000 * second, 0, 0, 4)
        terminal.now += 11
        assert "3,000/1,000,000 -/s -:--:--" in terminal.line(progress)


def test_what_an_earlier_run_did_is_done_but_no_speed(on_terminal: Any) -> None:
    terminal = on_terminal()
    with LoadDisplay(1_000_000, 600_000) as progress:
        assert "600,000/1,000,000 -/s" in terminal.line(progress)
        for second in range(1, 4):
            terminal.now += 1
            progress.update(600_000 + 500 * second, 0, 0, 4)
        assert "601,500/1,000,000 500/s 0:13:17" in terminal.line(progress)


def test_an_answer_that_comes_late_counts_nothing_twice(on_terminal: Any) -> None:
    terminal = on_terminal()
    with LoadDisplay(10_000) as progress:
        for handled in (1000, 3000, 2000, 4000):
            terminal.now += 1
            progress.update(handled, 0, 0, 4)
        assert "4,000/10,000 1,000/s" in terminal.line(progress)


def test_how_long_encoding_takes_is_said_once_at_the_start_where_that_is_minutes(on_terminal: Any) -> None:
    def said(total: int | None, *batches: tuple[int, float], handled: int = 0) -> str:
        terminal = on_terminal(200, terminal=False)
        with LoadDisplay(total, handled) as progress:
            for documents, seconds in batches:
                progress.add_encoded(documents, seconds)
        return str(terminal.written.getvalue())

    # (20,000 - 2,000 - 256) lines · 20 s / 256 documents
    estimate = "Encoding the corpus takes about 0:23:06 more, at 12.8 documents a second, as the first 256.\n"
    assert said(20_000, (0, 0.0), (256, 20.0), (256, 90.0), handled=2_000) == estimate
    assert said(1_024, (256, 19.9)) == ""
    assert said(256, (256, 300.0)) == ""
    assert said(None, (256, 300.0)) == ""


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (100, "4,000,000/10,000,000 1,000,000/s 0:00:06 dead letters 3 retries 12 concurrency 8"),
        (70, "4,000,000/10,000,000 1,000,000/s 0:00:06 dead letters 3"),
        (40, "4,000,000/10,000,000 1,000,000/s"),
        (20, "4,000,000"),
    ],
)
def test_a_narrow_terminal_keeps_one_line_with_what_matters_most(on_terminal: Any, width: int, shown: str) -> None:
    terminal = on_terminal(width)
    with LoadDisplay(10_000_000) as progress:
        for second in range(1, 5):
            terminal.now += 1
            progress.update(1_000_000 * second, 12, 3, 8)
        assert terminal.line(progress).startswith(shown)


def test_the_usual_load_shows_speed_and_time_left_on_40_columns(on_terminal: Any) -> None:
    terminal = on_terminal(40)
    with LoadDisplay(1_000_000) as progress:
        for second in range(1, 5):
            terminal.now += 1
            progress.update(9000 * second, 0, 0, 8)
        assert terminal.line(progress).startswith("36,000/1,000,000 9,000/s 0:01:4")


def test_notes_stand_above_the_line_and_leave_it_whole(on_terminal: Any) -> None:
    terminal = on_terminal(60)
    told = "The cluster is busy [429]: waiting until it has room again, which may take a while, then going on."

    def work(first: int) -> None:
        for handled in range(first, 1000, 4):
            progress.update(handled, 0, 0, 4)
            if handled % 100 == first:
                output.note(told)

    with LoadDisplay(1000) as progress, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    # What stands in a line of the screen is what was written after it was last cleared.
    lines = [line.rpartition("\x1b[2K")[2] for line in terminal.written.getvalue().split("\n")]
    lines = [re.sub("\x1b\\[[?0-9;]*[A-Za-z]|\r", "", line) for line in lines]
    assert lines.count(told) == 40
    assert set(lines) - {told, ""} == {line for line in lines if "/1,000" in line}
    assert lines[-1] == ""


def test_off_a_terminal_lines_say_how_far_how_fast_and_how_long(on_terminal: Any) -> None:
    terminal = on_terminal(terminal=False)
    with LoadDisplay(20_000) as progress:
        said = []
        for handled, retries, dead in ((5_000, 0, 0), (12_000, 2, 1), (12_000, 2, 1)):
            terminal.now += 10
            progress.update(handled, retries, dead, 4)
            said += progress._shown.sentences()
    assert said == [
        "5,000 of 20,000 lines, 500/s, about 0:00:30 left",
        "12,000 of 20,000 lines, 700/s, about 0:00:11 left, 1 dead letter, 2 requests sent again",
        "12,000 of 20,000 lines, nothing more since the last line, 1 dead letter, 2 requests sent again",
    ]
    # Nothing is said of what takes less than ten seconds.
    assert terminal.written.getvalue() == ""


def test_off_a_terminal_what_is_done_by_the_hundred_is_not_done_at_once(on_terminal: Any) -> None:
    terminal = on_terminal(terminal=False)
    with output.progress() as shown:
        task = shown.add_task("Encoding", total=600, rate="")
        said = []
        for completed in (0, 0, 300, 300, 300, 500):
            terminal.now += 10
            shown.update(task, completed=completed)
            said += shown.sentences()
    assert said == [
        "Encoding: 0 of 600, nothing yet",
        "Encoding: 0 of 600, nothing yet",
        "Encoding: 300 of 600, 10/s, about 0:00:30 left",
        "Encoding: 300 of 600, nothing more since the last line",
        "Encoding: 300 of 600, nothing more since the last line",
        "Encoding: 500 of 600, 6.7/s, about 0:00:15 left",
    ]


def test_off_a_terminal_a_task_after_the_other_is_told_of(on_terminal: Any) -> None:
    terminal = on_terminal(terminal=False)
    with output.progress() as shown:
        encoding = shown.add_task("Encoding \x1b[31mqueries", total=40, rate="")
        searching = shown.add_task("Searching", total=None, rate="")
        terminal.now += 10
        shown.advance(encoding, 4)
        said = [*shown.sentences()]
        shown.update(encoding, completed=40)
        terminal.now += 10
        said += shown.sentences()
        shown.reset(searching, description="Drawing", total=100)
        terminal.now += 10
        shown.advance(searching, 30)
        said += shown.sentences()
    assert said == [
        "Encoding \x1b[31mqueries: 4 of 40, 0.4/s, about 0:01:30 left",
        "Searching: 0:00:20 so far",
        "Drawing: 30 of 100, 3.0/s, about 0:00:23 left",
    ]


def test_off_a_terminal_the_lines_are_written_until_the_end(on_terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(terminal=False)
    monkeypatch.setattr(progress_display, "EVERY", 0.01)
    with output.progress() as shown:
        shown.add_task("Encoding \x1b[31mqueries", total=40, rate="")
        while "queries" not in terminal.written.getvalue():
            time.sleep(0.01)
    written = terminal.written.getvalue()
    assert "Encoding \\x1b[31mqueries: 0 of 40, nothing yet\n" in written
    time.sleep(0.05)
    assert terminal.written.getvalue() == written


def test_whoever_reads_along_may_go_while_the_work_goes_on(on_terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(terminal=False)
    monkeypatch.setattr(progress_display, "EVERY", 0.01)
    tries = []

    def gone(*_: object, **__: object) -> None:
        tries.append(1)
        raise BrokenPipeError

    monkeypatch.setattr(terminal.console, "print", gone)
    with output.progress() as shown:
        shown.add_task("Encoding", total=40, rate="")
        while len(tries) < 3:
            time.sleep(0.01)

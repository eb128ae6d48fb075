"""Reading a dataset's files to the end, whatever their lines are like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.datasets.check_findings import Findings
from langshift.reading import parse_record, raw_lines


class Reading:
    """The files of a dataset folder; lines that cannot be read are told to ``found`` and passed over."""

    def __init__(self, folder: Path, found: Findings) -> None:
        self.folder, self.found = folder, found

    def columns(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """Place and tab-parted columns of each line of a file, if it is there."""
        for place, line in self.lines(name):
            try:
                yield place, line.decode("utf-8").split("\t")
            except UnicodeDecodeError:
                self.found.add("line that cannot be read", name, f"{place}: not UTF-8")

    def records(self, name: str, *, quiet: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
        """Place and JSON object of each line; ``quiet`` tells nothing, for a second pass."""
        for place, line in self.lines(name, quiet=quiet):
            try:
                record = parse_record(line, place)
            except UsageError:
                if not quiet:
                    self.found.add("line that is no JSON object", name, place)
                continue
            yield place, record

    def lines(self, name: str, *, quiet: bool = False) -> Iterator[tuple[str, bytes]]:
        """Place and bytes of each line."""
        if not (self.folder / name).is_file():
            return
        try:
            for number, line in raw_lines(self.folder / name):
                yield f"line {number}", line
        except UsageError as error:
            if not quiet:
                self.found.add("cannot be read", name, str(error))

"""Parallel text as one file a language, aligned by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path

from langshift.debias.parallel.naming import chosen
from langshift.debias.parallel.rows import Places, Rows
from langshift.errors import UsageError
from langshift.lines import count_lines, text_lines


class AlignedLines:
    """Files ``<lang>.txt`` of a folder: the same line says the same in every one."""

    dimension = None

    def __init__(self, folder: Path, found: dict[str, str], languages: Sequence[str] | None) -> None:
        """Count the lines, so that files which are not aligned are refused before anything is done with them.

        Args:
            folder: where the files are.
            found: their names by language tag.
            languages: those to read; None reads all.

        Raises:
            UsageError: the files differ in length or are empty, or a language is not there.
        """
        self.shown = str(folder)
        self._files = {tag: folder / name for tag, name in chosen(found, languages, self.shown, "text").items()}
        self.languages = list(self._files)
        first, *others = self._files.values()
        self.total = count_lines(first)
        for path in others:
            lines = count_lines(path)
            if lines != self.total:
                raise UsageError(
                    f"{path} has {lines:,} lines but {first} has {self.total:,}: "
                    "parallel files must be aligned line by line."
                )
        if not self.total:
            raise UsageError(f"{folder}: its files {', '.join(p.name for p in self._files.values())} are empty.")

    def batches(self, size: int) -> Iterator[Rows]:
        """Read the files in step; see ``ParallelText``."""
        with ExitStack() as opened:
            readers = {tag: opened.enter_context(closing(text_lines(path))) for tag, path in self._files.items()}
            done = 0
            while True:
                texts = {tag: [line.strip() for line in islice(reader, size)] for tag, reader in readers.items()}
                count = len(texts[self.languages[0]])
                if not count:
                    return
                yield Rows(Places("line", done + 1, count), texts, {})
                done += count

"""Consecutive rows joined to passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice, repeat
from pathlib import Path

from langshift.debias.parallel.rows import ParallelText, Rows
from langshift.errors import UsageError
from langshift.lines import text_lines

_BATCH = 1024  # rows of the source held at a time
_Row = tuple[str, tuple[str, ...]]  # its place, and its text in each language


class Passages:
    """Passages of some rows each, never across documents; the last of a document may be shorter.

    Language vectors are best fitted on texts as long as those in the index; public parallel text is
    aligned by sentence. A passage that lacks a row in a language is empty there: half a translation is none.
    """

    dimension = None

    def __init__(self, source: ParallelText, rows: int, documents: Path | None) -> None:
        """Count the passages, where the rows are known.

        Args:
            source: parallel text, no vectors.
            rows: how many make a passage.
            documents: file with a document id a line, one for each row; None takes all rows for one document.

        Raises:
            UsageError: the source holds vectors, or the file of ids has another number of lines than it rows.
        """
        if source.dimension is not None:
            raise UsageError(f"{source.shown}: holds vectors, which cannot be joined to passages: drop --join-lines.")
        self.shown, self.languages = source.shown, source.languages
        self._source, self._rows, self._documents, self._lines = source, rows, documents, 0
        self.total = None if source.total is None else -(-source.total // rows)
        if documents is not None:
            if not documents.is_file():
                raise UsageError(f"{documents}: there is no such file of document ids.")
            lengths = [sum(1 for _ in lines) for _, lines in groupby(_ids(documents))]
            self._lines = sum(lengths)
            self.total = sum(-(-length // rows) for length in lengths)
            if source.total not in (None, self._lines):
                raise self._unequal(f"{source.total:,}")

    def batches(self, size: int) -> Iterator[Rows]:
        """Read the source and join; see ``ParallelText``. Places name the first and the last row."""
        passages = self._passages()
        while group := list(islice(passages, size)):
            columns = zip(*(texts for _, texts in group), strict=True)
            texts = {tag: list(column) for tag, column in zip(self.languages, columns, strict=True)}
            yield Rows([place for place, _ in group], texts, {})

    def _passages(self) -> Iterator[_Row]:
        for _, of_document in groupby(self._with_document(), key=lambda pair: pair[0]):
            remaining = (row for _, row in of_document)
            while rows := list(islice(remaining, self._rows)):
                places, texts = zip(*rows, strict=True)
                yield _span(places), tuple(map(_whole, zip(*texts, strict=True)))

    def _with_document(self) -> Iterator[tuple[str, _Row]]:
        """Each row of the source and the document that it belongs to."""
        ids = repeat("") if self._documents is None else _ids(self._documents)
        read = 0
        for row in self._single_rows():
            document = next(ids, None)
            if document is None:
                raise self._unequal("more")
            yield document, row
            read += 1
        if read < self._lines:
            raise self._unequal(f"{read:,}")

    def _single_rows(self) -> Iterator[_Row]:
        for batch in self._source.batches(_BATCH):
            columns = (batch.texts[tag] for tag in self.languages)
            yield from zip(batch.places, zip(*columns, strict=True), strict=True)

    def _unequal(self, rows: str) -> UsageError:
        return UsageError(
            f"{self._documents} has {self._lines:,} lines but the parallel text has {rows}: one id a line is needed."
        )


def _ids(documents: Path) -> Iterator[str]:
    return (line.strip() for line in text_lines(documents))


def _whole(texts: Sequence[str]) -> str:
    return " ".join(texts) if all(texts) else ""


def _span(places: Sequence[str]) -> str:
    """``line 10-12`` of the places of a passage's rows."""
    if len(places) == 1:
        return places[0]
    word, _, last = places[-1].rpartition(" ")
    return f"{places[0]}-{last}" if places[0].rpartition(" ")[0] == word else f"{places[0]} to {places[-1]}"

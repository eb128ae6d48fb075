"""Parallel text in plain files: aligned lines, TSV, lines joined to passages."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice, repeat, zip_longest
from pathlib import Path

from langshift.debias.parallel.columns import PEEKED, ParallelRows, ParallelText, chosen, language_columns
from langshift.errors import UsageError, no_file
from langshift.files import batched, lines_of, text_lines

_Placed = tuple[str, Sequence[str]] | tuple[str, Sequence[str], Sequence[str]]


class _PlacedTexts(ParallelText):
    """Texts that are read row by row."""

    def batches(self, size: int) -> Iterator[ParallelRows]:
        """Read the rows; see ``ParallelText``."""
        for group in batched(self._placed(), size):
            places, texts, *openings = zip(*group, strict=True)
            yield ParallelRows(list(places), self._by_language(texts), {}, *map(self._by_language, openings))

    def _by_language(self, rows: Sequence[Sequence[str]]) -> dict[str, list[str]]:
        columns = zip(self.languages, zip(*rows, strict=True), strict=True)
        return {tag: list(column) for tag, column in columns}

    def _placed(self) -> Iterator[_Placed]:
        """The place of each row, and its texts in the order of the languages; of joined rows also the first of each."""
        raise NotImplementedError


class AlignedLines(_PlacedTexts):
    """Files ``<lang>.txt`` of a folder: the same line says the same in every one."""

    def __init__(self, folder: Path, files: dict[str, Path]) -> None:
        """Count the lines, so that files which are not aligned are refused before anything is done with them.

        Args:
            folder: where the files are.
            files: those to read, by language tag.

        Raises:
            UsageError: the files differ in length or are empty.
        """
        self.shown, self.languages, self._files = str(folder), list(files), files
        first, *others = files.values()
        self.total = sum(1 for _ in lines_of(first, blank=True))
        for path in others:
            if (lines := sum(1 for _ in lines_of(path, blank=True))) != self.total:
                raise UsageError(
                    f"{path} has {lines:,} lines, but {first} has {self.total:,}: "
                    "parallel files must be aligned line by line."
                )
        if not self.total:
            raise UsageError(f"{folder}: its files {', '.join(path.name for path in files.values())} are empty.")

    def _placed(self) -> Iterator[tuple[str, list[str]]]:
        """Read the files in step."""
        for number, texts in enumerate(zip_longest(*map(text_lines, self._files.values())), start=1):
            if None in texts:
                raise UsageError(f"{self.shown}: its files changed while they were read and now differ in length.")
            yield f"line {number}", [text.strip() for text in texts]


_BATCH = 1024  # rows of the source held at a time
_Row = tuple[str, tuple[str, ...]]  # its place, and its text in each language


class Passages(_PlacedTexts):
    """Passages of some rows each, never across documents; the last of a document may be shorter.

    Language vectors are best fitted on texts as long as those in the index; public parallel text is
    aligned by sentence. A passage that lacks a row in a language is empty there.
    """

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
            raise UsageError(f"{source.shown} contains vectors, which cannot be joined: omit --join-lines.")
        self.shown, self.languages, self.left_out = source.shown, source.languages, source.left_out
        self._source, self._rows, self._documents, self._lines = source, rows, documents, 0
        self.total = None if source.total is None else -(-source.total // rows)
        if documents is not None:
            if not documents.is_file():
                raise UsageError(no_file(documents, f"The file of document ids {documents} does not exist") + ".")
            lengths = [sum(1 for _ in lines) for _, lines in groupby(_ids(documents))]
            self._lines = sum(lengths)
            self.total = sum(-(-length // rows) for length in lengths)
            if source.total not in (None, self._lines):
                raise self._unequal(f"{source.total:,}")

    def _placed(self) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
        """Place, which names the first and the last row, texts and first rows of each passage."""
        for _, of_document in groupby(self._with_document(), key=lambda pair: pair[0]):
            for rows in batched((row for _, row in of_document), self._rows):
                places, texts = zip(*rows, strict=True)
                # Half a translation is none.
                whole = tuple(" ".join(of) if all(of) else "" for of in zip(*texts, strict=True))
                yield _span(places), whole, texts[0]

    def _with_document(self) -> Iterator[tuple[str, _Row]]:
        """Each row of the source and the document that it belongs to."""
        ids = repeat("") if self._documents is None else _ids(self._documents)
        read = 0
        for batch in self._source.batches(_BATCH):
            columns = (batch.texts[tag] for tag in self.languages)
            for row in zip(batch.places, zip(*columns, strict=True), strict=True):
                document = next(ids, None)
                if document is None:
                    raise self._unequal("more")
                yield document, row
                read += 1
        if read < self._lines:
            raise self._unequal(f"{read:,}")

    def _unequal(self, rows: str) -> UsageError:
        return UsageError(
            f"{self._documents} has {self._lines:,} lines, but the parallel text has {rows}: one id per line is needed."
        )


def _ids(documents: Path) -> Iterator[str]:
    return (line.strip() for line in text_lines(documents))


def _span(places: Sequence[str]) -> str:
    """``line 10-12`` of the places of a passage's rows."""
    if len(places) == 1:
        return places[0]
    word, _, last = places[-1].rpartition(" ")
    return f"{places[0]}-{last}" if places[0].rpartition(" ")[0] == word else f"{places[0]} to {places[-1]}"


class ParallelTsv(_PlacedTexts):
    """A file ``.tsv``, plain or compressed.

    Fields are parted by tabs and nothing else: a quotation mark is a character of the text as any other, and
    neither a tab nor a line break can stand in a text. Columns that are no language are left aside; ``_id``
    or ``id`` names the rows.
    """

    def __init__(self, path: Path, languages: Sequence[str] | None) -> None:
        """Read the header.

        Args:
            path: the file.
            languages: those to read; None reads all.

        Raises:
            UsageError: the file is empty, or its header cannot be used.
        """
        self._path, self.shown = path, str(path)
        header = next(text_lines(path), None)
        if header is None:
            raise UsageError(f"{path} is empty; its first line must name the columns.")
        self._header = [name.strip() for name in header.split("\t")]
        first = list(islice(self._rows(), PEEKED))
        if not first:
            raise UsageError(f"{path} has no lines after its header.")
        ids = [row[i] for row in first for i, name in enumerate(self._header) if name.lower() == "id"]
        found, row_id = language_columns(self._header, ids, languages, f"{path}, line 1")
        picked = chosen(found, languages, self.shown, "text")
        self.languages = list(picked)
        self._columns = {tag: self._header.index(name) for tag, name in picked.items()}
        self._row_id = None if row_id is None else self._header.index(row_id)

    def _placed(self) -> Iterator[tuple[str, Sequence[str]]]:
        for number, row in enumerate(self._rows(), start=2):
            id = "" if self._row_id is None else row[self._row_id]
            yield f"id {id}" if id else f"line {number}", [row[i] for i in self._columns.values()]

    def _rows(self) -> Iterator[list[str]]:
        width = len(self._header)
        for number, line in enumerate(islice(text_lines(self._path), 1, None), start=2):
            row = [field.strip() for field in line.split("\t")]
            if len(row) != width:
                raise UsageError(
                    f"{self._path}, line {number}, has {len(row) - 1} tabs, but the header has {width - 1}."
                )
            yield row

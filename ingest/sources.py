"""Corpora as they are read for indexing: JSON lines, several files, pipes; a bad line is told, not fatal."""

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import accumulate, islice, takewhile
from operator import attrgetter
from typing import NamedTuple, TypeVar
from zlib import crc32

import orjson

from langshift.corpus_file import ChangedError, CorpusFile, FileState, Start, state_of
from langshift.errors import LangshiftError, UsageError
from langshift.files import LONGEST_LINE, PARQUET, LineNumbers
from langshift.ingest.documents import Document, DocumentSource, Original, SourceRow, Update
from langshift.ingest.parsing import SNIFFED_LINES, Parser, Sniffer
from langshift.plugin.inventory import TranslatedPages
from langshift.plugin.metadata import value_at

#: At most so many bytes of the first lines are looked at, since those of a pipe are kept meanwhile.
SNIFFED_BYTES = 64 << 20
# Of each file, however many there are; and of how many files all lines that were drawn are looked at.
_LEAST_OF_A_FILE, _FILES_DRAWN_FROM = 16, 4
# Lines of pages that are kept, and their bytes.
_KEPT_LINES, _KEPT_BYTES = 1024, 8 << 20
_ALL_HASHES = 1 << 32
T = TypeVar("T")


def content_bytes(document: Document) -> int:
    """How many bytes a document's texts and other fields have, as JSON."""
    return len(orjson.dumps([document.title, document.text, document.other], option=orjson.OPT_SERIALIZE_NUMPY))


def first_of(rows: Iterable[T], size_of: Callable[[T], int] = attrgetter("size")) -> Iterator[T]:
    """The first rows of an input, or lines, as far as one looks before anything is begun."""
    size = 0
    for count, row in enumerate(rows, start=1):
        yield row
        size += size_of(row)
        if count == SNIFFED_LINES or size > SNIFFED_BYTES:
            return


class Rows(ABC):
    """The lines of a file, or its rows, which can be read again and again.

    Attributes:
        unit: what messages call one.
        shown: how messages name the file.
        total: how many it has, blank ones included, once it was measured.
        content: SHA-256 of its bytes before compression, or of what its store says of it, in hexadecimal, once it was
            measured.
    """

    unit = "line"
    total: int
    content: str

    def __init__(self, file: CorpusFile, parser: Parser) -> None:
        """Take an open file, and what makes documents of what it holds."""
        self._file, self._parser, self.shown = file, parser, file.shown

    @property
    def state(self) -> FileState | None:
        """What every change of the file changes, as it was when it was opened."""
        return self._file.state

    @abstractmethod
    def first(self) -> Generator[SourceRow]:
        """The first ones, as far as one looks before anything is begun."""

    @abstractmethod
    def measure(self, look: Callable[[bytes], None]) -> None:
        """Read it all, so that it is known what the file holds.

        Args:
            look: is shown what is read, block by block, where that is lines.

        Raises:
            UsageError: it is damaged.
        """

    @abstractmethod
    def drawn(self) -> Iterable[SourceRow]:
        """Some from all over the file, whose numbers mean nothing."""

    @abstractmethod
    def read(self, skip: LineNumbers, before: int) -> Generator[SourceRow]:
        """All in their order, numbered from one more than ``before``; see ``DocumentSource.read``."""

    @property
    @abstractmethod
    def starts(self) -> Sequence[Start]:
        """Places from which it can be read, once it was measured."""

    @abstractmethod
    def part(self, start: Start, last: int, skip: LineNumbers, before: int) -> Generator[SourceRow]:
        """Those from one of ``starts`` to the one numbered ``last`` in this file, which need not have been measured."""

    def require_unchanged(self) -> None:
        """Refuse a file that has changed; see ``DocumentSource.require_unchanged``."""
        self._file.require_unchanged()


class Later(NamedTuple):
    """Numbers of lines of one file, as those of all files tell them.

    Attributes:
        lines: numbers over all files.
        before: how many lines the files before it have.
    """

    lines: LineNumbers
    before: int

    def __contains__(self, line: object) -> bool:
        return isinstance(line, int) and line + self.before in self.lines


class JsonLines(Rows):
    """A file of JSON lines."""

    def first(self) -> Generator[SourceRow]:
        """The first lines."""
        with closing(self._file.first_lines()) as lines:
            yield from first_of(map(self._parser.line, lines))

    def measure(self, look: Callable[[bytes], None]) -> None:
        """Count the lines; see ``Rows.measure``."""
        self.total, self.content = self._file.measure(look).lines, self._file.content

    def drawn(self) -> Iterable[SourceRow]:
        """Lines from all over the file."""
        return map(self._parser.line, enumerate(self._file.drawn))

    def read(self, skip: LineNumbers, before: int) -> Generator[SourceRow]:
        """The lines in their order; see ``Rows.read``."""
        with closing(self._file.lines(Later(skip, before) if before else skip)) as lines:
            yield from map(self._parser.line, ((before + number, line) for number, line in lines) if before else lines)

    @property
    def starts(self) -> Sequence[Start]:
        """Where lines begin; see ``Rows.starts``."""
        return self._file.starts

    def part(self, start: Start, last: int, skip: LineNumbers, before: int) -> Generator[SourceRow]:
        """Some lines; see ``Rows.part``."""
        with closing(self._file.lines_from(start, Later(skip, before))) as lines:
            for number, line in takewhile(lambda one: one[0] <= last, lines):
                yield self._parser.line((before + number, line))


class PageSample:
    """Some pages with all their translations, drawn while files are measured, so that they are read no more often.

    These are the lines of groups whose name has a small hash: of a group all, in whichever file and place they are.

    Args:
        parser: makes documents of lines.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        name = parser.fields.group.rpartition(".")[2].encode()
        value = rb'("(?:[^"\\]|\\.)*"|-?[0-9][^,}\]\s]*)'
        self._named = re.compile(rb'"%s"\s*:\s*%s' % (re.escape(name), value))
        self._below, self._seen, self._size = _ALL_HASHES, 0, 0
        self._kept: list[tuple[int, bytes]] = []
        self._rest = b""

    def look(self, block: bytes) -> None:
        """Take the next bytes of a file."""
        whole, line_break, rest = block.rpartition(b"\n")
        if line_break:
            self._take(self._rest + whole)
            self._rest = rest
        elif len(self._rest) < LONGEST_LINE:
            self._rest += rest

    def end(self) -> None:
        """The file is at its end."""
        self._take(self._rest)
        self._rest = b""

    def _take(self, lines: bytes) -> None:
        for found in self._named.finditer(lines):
            self._seen += 1
            if (number := crc32(found[1])) < self._below:
                end = lines.find(b"\n", found.end())
                self._keep(number, lines[lines.rfind(b"\n", 0, found.start()) + 1 : end if end >= 0 else len(lines)])

    def _keep(self, number: int, line: bytes) -> None:
        self._kept.append((number, line))
        self._size += len(line)
        while len(self._kept) > _KEPT_LINES or self._size > _KEPT_BYTES:
            self._below //= 2
            self._kept = [one for one in self._kept if one[0] < self._below]
            self._size = sum(len(line) for _, line in self._kept)

    def translations(self, language_of: Callable[[Document], str], total: int) -> TranslatedPages | None:
        """What the corpus has, as far as these tell.

        Args:
            language_of: gives a document's language, as the field ``language`` has it.
            total: how many lines the corpus has.

        Returns:
            None where no group is there in several languages.
        """
        pages: dict[int, set[str]] = {}
        held, group = Counter[str](), self._parser.fields.group
        for number, line in self._kept:
            document = self._parser.line((0, line)).content
            # What is named alike may be elsewhere in a line.
            if isinstance(document, Document) and value_at(document.other, group) is not None:
                language = language_of(document)
                held[language] += 1
                pages.setdefault(number, set()).add(language)
        if not held:
            return None
        # Each stands for so many lines; those without a group are pages of their own.
        grouped = min(self._seen * held.total() / len(self._kept), total)
        each, alone = grouped / held.total(), total - grouped
        sizes = Counter(language for languages in pages.values() for language in languages)
        shares = {tag: count / held.total() for tag, count in held.items()}
        return TranslatedPages.of(
            each * len(pages) + alone, [each * sizes[tag] + alone * share for tag, share in shares.items()]
        )


class Split(NamedTuple):
    """Lines in a row, which can be read alone.

    Attributes:
        file: the number of their file, from 0.
        start: where they begin there.
        first: the number of the first one over all files.
        last: that of the last one.
    """

    file: int
    start: Start
    first: int
    last: int


class NumberedFiles(DocumentSource):
    """Files whose lines are numbered over all of them.

    Args:
        parser: makes their documents.
        names: how messages name them.
    """

    def __init__(self, parser: Parser, names: Sequence[str]) -> None:
        self.parser, self._names = parser, names
        self.shown = names[0] if len(names) == 1 else f"{len(names):,} files ({names[0]} to {names[-1]})"

    @abstractmethod
    def read(self, skip: LineNumbers) -> Generator[SourceRow]:
        """The lines in their order; see ``DocumentSource.read``."""

    def _number(self, totals: Iterable[int]) -> None:
        """Number the lines, of which each file has so many."""
        *self._before, self.total = accumulate(totals, initial=0)

    def parsed(self, line: int, original: Original) -> SourceRow:
        """A line that was read, once more."""
        return self.parser.line((line, original)) if isinstance(original, bytes) else self.parser.row(line, original)

    def place(self, line: int) -> tuple[str, int]:
        """The file that has a line, and the line's number there; see ``DocumentSource.place``."""
        number = bisect_left(self._before, line) - 1
        return self._names[number], line - self._before[number]


class Files(NumberedFiles):
    """Files that are read one after the other, as one corpus whose lines are numbered over all of them.

    Args:
        files: the files, at least one.
        parser: makes their documents.
        named: fields that a document must have, each with the option that names it.

    Raises:
        UsageError: none of the first lines of one is a document, or it is damaged.
    """

    resumable = True

    def __init__(self, files: Sequence[Rows], parser: Parser, named: Mapping[str, str]) -> None:
        super().__init__(parser, [file.shown for file in files])
        self.files, self.field_types = files, parser.field_types
        sniffer, each = Sniffer(parser, named), max(_LEAST_OF_A_FILE, SNIFFED_LINES // len(files))
        for file in files:
            with closing(file.first()) as rows:
                sniffer.look(rows, file.shown, file.unit, each)
        self.vector_spec, self.hint = sniffer.conclude(self.shown, "contains" if len(files) == 1 else "contain")
        sizes = []
        self._pages = PageSample(parser)
        for file in files:
            file.measure(self._pages.look)
            self._pages.end()
            # What is in order, by language or by time, tells by its first lines only of what comes first.
            for _, content, _ in islice(file.drawn(), 0, None, -(-len(files) // _FILES_DRAWN_FROM)):
                if isinstance(content, Document | Update):
                    parser.field_types.add(content.other)
                if isinstance(content, Document):
                    sizes.append(content_bytes(content))
        self.document_bytes = sum(sizes) / len(sizes) if sizes else None
        self._number(file.total for file in files)
        self.content = files[0].content
        if len(files) > 1:
            self.content = sha256(" ".join(f"{file.total} {file.content}" for file in files).encode()).hexdigest()

    def translations(self, language_of: Callable[[Document], str]) -> TranslatedPages | None:
        """As some of the groups of its lines tell; see ``DocumentSource.translations``."""
        return self._pages.translations(language_of, self.total or 0)

    def read(self, skip: LineNumbers) -> Generator[SourceRow]:
        """The lines in their order; see ``DocumentSource.read``."""
        for file, before in zip(self.files, self._before, strict=True):
            yield from file.read(skip, before)

    def splits(self, lines: int) -> list[Split]:
        """All lines in splits of about so many; more where the files cannot be read from as many places."""
        found = []
        for number, (file, before) in enumerate(zip(self.files, self._before, strict=True)):
            starts = [file.starts[0]]
            for start in file.starts[1:]:
                if start.line - starts[-1].line >= lines:
                    starts.append(start)
            ends = [*(start.line - 1 for start in starts[1:]), file.total]
            found += [
                Split(number, start, before + start.line, before + end) for start, end in zip(starts, ends, strict=True)
            ]
        return [split for split in found if split.first <= split.last]

    def require_unchanged(self) -> None:
        """Refuse a file that has changed; see ``DocumentSource.require_unchanged``."""
        for file in self.files:
            file.require_unchanged()


class Pipe(DocumentSource):
    """Lines that come once.

    Args:
        lines: the lines with their numbers, without blank ones.
        stream: where they come from.
        shown: how messages name it.
        parser: makes documents of them.
        named: fields that a document must have, each with the option that names it.

    Raises:
        UsageError: none of the first lines is a document.
    """

    def __init__(
        self, lines: Iterator[tuple[int, bytes]], stream: object, shown: str, parser: Parser, named: Mapping[str, str]
    ) -> None:
        self.shown = shown
        # Standard input may be a file, of which nobody knows how it began.
        self._stream, self._state = stream, state_of(stream)
        self._first = deque(first_of(lines, lambda line: len(line[1])))
        if self._first and self._first[0][1].startswith(PARQUET):
            raise UsageError(f"{shown} contains Parquet, which can only be read from a file: name the file.")
        self._lines = lines
        self._was_read = False
        self._parser = parser
        self.field_types = self._parser.field_types
        sniffer = Sniffer(self._parser, named)
        sniffer.look(map(self._parser.line, self._first), shown)
        self.vector_spec, self.hint = sniffer.conclude(shown)

    def read(self, skip: LineNumbers) -> Iterator[SourceRow]:
        """The lines in their order, once; see ``DocumentSource.read``."""
        if self._was_read:
            raise LangshiftError(f"{self.shown} can be read only once: save the corpus to a file.")
        self._was_read = True
        return map(self._parser.line, ((number, line) for number, line in self._all() if number not in skip))

    def require_unchanged(self) -> None:
        """Refuse a file that has changed; see ``DocumentSource.require_unchanged``."""
        if state_of(self._stream) != self._state:
            raise ChangedError.of(self.shown)

    def _all(self) -> Iterator[tuple[int, bytes]]:
        while self._first:
            yield self._first.popleft()
        yield from self._lines

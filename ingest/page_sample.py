"""Some pages of a corpus with all their translations, drawn while it is measured, so that it is read no more often."""

import re
from collections import Counter
from collections.abc import Callable
from zlib import crc32

from langshift.files import LONGEST_LINE
from langshift.ingest.documents import Document
from langshift.ingest.parsing import Parser
from langshift.plugin.metadata import value_at
from langshift.plugin.translated_pages import TranslatedPages

# Lines that are kept, and their bytes.
_LINES, _BYTES = 1024, 8 << 20
_ALL = 1 << 32


class PageSample:
    """Lines of those groups whose name has a small hash: of a group all, in whichever file and place they are.

    Args:
        parser: makes documents of lines.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        name = parser.fields.group.rpartition(".")[2].encode()
        value = rb'("(?:[^"\\]|\\.)*"|-?[0-9][^,}\]\s]*)'
        self._named = re.compile(rb'"%s"\s*:\s*%s' % (re.escape(name), value))
        self._below, self._seen, self._size = _ALL, 0, 0
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
        while len(self._kept) > _LINES or self._size > _BYTES:
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

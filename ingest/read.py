"""What reading a corpus gives, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from langshift.debias.encoders import Brought
from langshift.ingest.bulk.item import Original
from langshift.ingest.documents import Delete, Document
from langshift.numbered import LineNumbers


class Bad(NamedTuple):
    """A line that cannot be used.

    Attributes:
        type: one word for programs: ``invalid_json``, ``invalid_document`` or ``invalid_embedding``.
        reason: a sentence that says what is wrong and what should be there, but not where.
    """

    type: str
    reason: str


class Read(NamedTuple):
    """One line of a corpus, or one row.

    Attributes:
        line: where it is, counted from 1.
        content: what it holds.
        original: the line without its line break; or the fields of the row, which orjson writes as JSON with
            ``OPT_SERIALIZE_NUMPY``.
    """

    line: int
    content: Document | Delete | Bad
    original: Original


class Source(Protocol):
    """A corpus that is open for reading; its first lines were found to hold a document.

    Attributes:
        shown: how messages name it.
        resumable: whether it can be read again, and is then the same; not so for standard input and pipes.
        total: how many lines or rows it has, blank lines included; None where only reading it tells.
        content: SHA-256 of its bytes before compression, in hexadecimal; None where only reading it tells.
        brought: what its first lines tell of the vectors that it brings; None where it brings none.
    """

    @property
    def shown(self) -> str: ...  # noqa: D102
    @property
    def resumable(self) -> bool: ...  # noqa: D102
    @property
    def total(self) -> int | None: ...  # noqa: D102
    @property
    def content(self) -> str | None: ...  # noqa: D102
    @property
    def brought(self) -> Brought | None: ...  # noqa: D102

    def read(self, skip: LineNumbers) -> Iterator[Read]:
        """The lines in their order; blank ones are passed over.

        Args:
            skip: numbers of lines that are passed over without a look at what they hold.

        Raises:
            UsageError: the input is damaged, so that nothing more can be read from it.
            LangshiftError: it was read before, and can be read only once.
        """

"""Long documents as chunks: whole sentences, each chunk an entry of the index with a vector of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from langshift.errors import UsageError
from langshift.plugin.metadata import CHUNK, PARENT, ChunkPlace, chunk_id

if TYPE_CHECKING:
    from langshift.debias.encoders import Encoder
    from langshift.ingest.documents import Document

Method = Literal["auto", "paragraphs", "sentences", "words"]
_METHODS: Final[tuple[Method, ...]] = get_args(Method)


class Chunking(NamedTuple):
    """How documents are cut into chunks.

    Attributes:
        method: ``auto`` and ``paragraphs`` go by the text alone.
        size: how many ``sentences`` or ``words`` a chunk has at most; None for the other methods.
    """

    method: Method
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> Chunking:
        """Read ``auto``, ``paragraphs``, ``sentences:5`` or ``words:120``.

        Raises:
            UsageError: it is none of these.
        """
        method, colon, size = text.partition(":")
        if method in _METHODS and bool(colon) == (method in ("sentences", "words")):
            if not colon:
                return cls(method)
            if size.isdecimal() and int(size) > 0:
                return cls(method, int(size))
        raise UsageError(f"--chunk {text!r} is not auto, paragraphs, sentences:N, words:N or off.")

    def __str__(self) -> str:
        return self.method if self.size is None else f"{self.method}:{self.size}"


_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the chunks of a text begin and end, in code points; none of them is blank."""
    begin = 0
    for blank in [*_BLANK_LINE.finditer(text), None]:
        end = len(text) if blank is None else blank.start()
        piece = text[begin:end]
        if stripped := piece.strip():
            first = begin + piece.index(stripped[0])
            yield first, first + len(stripped)
        begin = end if blank is None else blank.end()


def chunks_of(document: Document, language: str, chunking: Chunking, encoder: Encoder) -> list[Document]:  # noqa: ARG001
    """The chunks of a document, each as a document of its own with the fields ``parent`` and ``chunk``."""
    found = list(spans(document.text)) or [(0, len(document.text))]
    made = []
    for ordinal, (start, end) in enumerate(found):
        place = ChunkPlace(ordinal, start, end, len(found))
        other = {**document.other, PARENT: document.id, CHUNK: place.to_dict()}
        made.append(replace(document, id=chunk_id(document.id, ordinal), text=document.text[start:end], other=other))
    return made

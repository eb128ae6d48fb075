"""Read a corpus: BEIR ``corpus.jsonl``, plain, ``.gz`` or ``.zst``, or standard input."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.ingest.compressed import DAMAGED, open_unpacked
from langshift.ingest.encoders import Brought
from langshift.ingest.encoders.given import LookedAt
from langshift.ingest.fields import (
    EMBEDDING,
    KNOWN_FIELDS,
    check_name,
    id_field,
    kind,
    language_field,
    parse_embedding,
    require_dimension,
    string_field,
)

STANDARD_INPUT = "-"
_TELL_EVERY = 1000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What becomes of a document's own vector: an error, taken (and an error where there is none), or left aside unread.
Embeddings = Literal["refused", "needed", "ignored"]


@dataclass(frozen=True)
class Document:
    """One document of a corpus.

    Attributes:
        id: its own ``_id``, or a hash of its content.
        title: may be empty.
        text: may be empty where there is a title.
        language: BCP 47 tag that the document brought (``zh-TW``), ``und``, or None where it brought none.
        other: every other field, as it came.
        embedding: the vector that came with it, shape (dimension,), float32; None where none is wanted.
    """

    id: str
    title: str
    text: str
    language: str | None
    other: Mapping[str, Any]
    embedding: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Corpus:
    """A corpus that was read through once and found sound.

    Attributes:
        path: a file that can be read again.
        shown: how messages name it.
        documents: how many it holds.
        embeddings: what becomes of vectors that come with documents.
        brought: what is known of these; None where none are wanted.
    """

    path: Path
    shown: str
    documents: int
    embeddings: Embeddings
    brought: Brought | None

    def read(self) -> Iterator[Document]:
        """Read it again."""
        return read_corpus(self.path, self.shown, self.embeddings)


@contextmanager
def open_corpus(
    given: str, on_checked: Callable[[int], None] | None = None, *, embeddings: Embeddings = "refused"
) -> Iterator[Corpus]:
    """Open a corpus, and read it through once.

    Args:
        given: path of a file, or ``-`` for standard input, which is kept in a temporary file meanwhile.
        on_checked: called now and then with the number of documents found sound.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: there is no such file, it holds no document, or a line cannot be used.
    """
    with _as_file(given) as path:
        shown = "standard input" if given == STANDARD_INPUT else given
        documents, looked_at = 0, LookedAt()
        for documents, document in enumerate(read_corpus(path, shown, embeddings), start=1):
            looked_at.add(document.embedding)
            if on_checked and documents % _TELL_EVERY == 0:
                on_checked(documents)
        if not documents:
            raise UsageError(f"{shown} holds no document.")
        yield Corpus(path, shown, documents, embeddings, looked_at.brought())


@contextmanager
def _as_file(given: str) -> Iterator[Path]:
    path = Path(given)
    if given != STANDARD_INPUT:
        if path.is_dir():
            raise UsageError(f"{given} is a folder: name a file, such as {path / 'corpus.jsonl'}.")
        if not path.exists():
            raise UsageError(f"{given}: there is no such file.")
        if path.is_file():
            yield path
            return
    # A pipe gives its bytes once.
    with tempfile.NamedTemporaryFile(prefix="langshift-", suffix=".jsonl") as kept:
        with sys.stdin.buffer if given == STANDARD_INPUT else path.open("rb") as stream:
            shutil.copyfileobj(stream, kept)
        kept.flush()
        yield Path(kept.name)


def read_corpus(path: Path, shown: str, embeddings: Embeddings = "refused") -> Iterator[Document]:
    """Read the documents of a corpus, in order; blank lines are passed over.

    Args:
        path: the file; its first bytes tell how it is compressed.
        shown: how messages name it.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: a line that is no document, named by file and line with what is wrong.
    """
    number, dimension = 0, None
    try:
        with open_unpacked(path) as lines:
            for number, line in enumerate(lines, start=1):
                line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if not line.strip():
                    continue
                place = f"{shown}, line {number}"
                document = parse_document(line, place, embeddings)
                if document.embedding is not None:
                    dimension = dimension or len(document.embedding)
                    require_dimension(document.embedding, dimension, place)
                yield document
    except DAMAGED as error:
        raise UsageError(
            f"{shown}: the compressed data break off or are damaged after line {number} ({error})."
        ) from error


def parse_document(line: bytes, place: str, embeddings: Embeddings = "refused") -> Document:
    """One line of a corpus as a document.

    Args:
        line: the line.
        place: file and line, which begin a message.
        embeddings: what becomes of a vector that comes with it.

    Raises:
        UsageError: beginning with ``place``, what is wrong and what should be there.
    """
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{place}: not valid JSON ({error.msg} at character {error.pos + 1}).") from None
    if not isinstance(fields, dict):
        raise UsageError(f"{place}: must be a JSON object with a text, but is {kind(fields)}.")
    for name in fields:
        check_name(name, place)
    group = fields.get("group")
    if not isinstance(group, str | int | None):
        raise UsageError(f"{place}: the field 'group' must be a string, but is {kind(group)}.")
    title, text = (string_field(fields, name, place) for name in ("title", "text"))
    if not title.strip() and not text.strip():
        raise UsageError(f"{place}: has neither a text nor a title.")
    return Document(
        id=id_field(fields, place),
        title=title,
        text=text,
        language=language_field(fields, place),
        other={name: value for name, value in fields.items() if name not in KNOWN_FIELDS},
        embedding=_embedding(fields, place, embeddings),
    )


def _embedding(fields: dict[str, Any], place: str, embeddings: Embeddings) -> NDArray[np.float32] | None:
    there = fields.get(EMBEDDING) is not None
    if embeddings == "ignored" or (embeddings == "refused" and not there):
        return None
    if embeddings == "refused":
        raise UsageError(
            f"{place}: the document brings an 'embedding', which only --encoder given takes; "
            "choose that, or leave the field out."
        )
    if not there:
        raise UsageError(f"{place}: the document brings no 'embedding', which --encoder given needs; give it one.")
    return parse_embedding(fields[EMBEDDING], place)

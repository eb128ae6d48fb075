"""Lines of the input made to operations: detect, encode, shift."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from langshift.ingest.bulk.dead_letter import Stage
from langshift.ingest.bulk.item import Item, Original
from langshift.ingest.documents import Delete, Document
from langshift.ingest.encoding import document_vectors, full_text
from langshift.ingest.entry import body, entry
from langshift.ingest.making import Making
from langshift.ingest.moving import Stamp, Told, move, tell
from langshift.ingest.read import Bad, Read
from langshift.ingest.summary import OnStage, unwatched
from langshift.ingest.tallies import Tallies
from langshift.languages import text_language

Matrix = NDArray[np.float32]


class Refusing(Protocol):
    """Takes lines that never become a document, as a ledger does."""

    def refuse(self, line: int, identifier: str | None, kind: str, why: str, original: Original, stage: Stage) -> None:
        """Take a line, its document's ``_id`` where that is known, the error's type and words, and where it failed."""

    def flush(self) -> None:
        """Nothing more is refused of this batch."""


class Maker:
    """Makes operations of lines; those that can be none go to the ledger."""

    def __init__(
        self,
        making: Making,
        ledger: Refusing,
        base: int,
        wants: Callable[[int], bool],
        on_stage: OnStage = unwatched,
    ) -> None:
        """Make a maker.

        Args:
            making: encoder, method, language vectors and detector.
            ledger: takes what cannot be used.
            base: the version that line 0 would have.
            wants: whether the final check compares the vector of a line.
            on_stage: called after each stage of each batch with its documents and seconds.
        """
        self._making, self._ledger, self._base, self._wants = making, ledger, base, wants
        self._on_stage = on_stage
        self._tallies = Tallies(making)

    def items(self, batch: Sequence[Read]) -> list[Item]:
        """The operations of a batch of lines, in their order.

        Raises:
            LangshiftError: the encoder fails.
        """
        documents = [read.content for read in batch if isinstance(read.content, Document)]
        made = iter(self._entries(documents))
        items = []
        for read in batch:
            content = read.content
            if isinstance(content, Bad):
                self._ledger.refuse(read.line, None, content.type, content.reason, read.original, "read")
            elif isinstance(content, Delete):
                version = self._base + read.line
                items.append(Item(read.line, content.id, "delete", body("delete", content.id, version), read.original))
            elif (item := self._item(read, content, *next(made))) is not None:
                items.append(item)
        self._ledger.flush()
        return items

    def _entries(self, documents: list[Document]) -> list[tuple[Matrix, Matrix, Told, Stamp]]:
        """Each document's vector as the encoder makes it, the moved one, its language, and its stamp."""
        if not documents:
            return []
        size, making = len(documents), self._making
        times = [time.perf_counter()]
        told = [tell(document, making) for document in documents]
        times.append(time.perf_counter())
        vectors = document_vectors(making.encoder, documents)
        times.append(time.perf_counter())
        moved, stamps = move(vectors, told, making)
        times.append(time.perf_counter())
        for stage, begun, ended in zip(("detect", "encode", "shift"), times, times[1:], strict=False):
            self._on_stage(stage, size, ended - begun)
        return list(zip(vectors, moved, told, stamps, strict=True))

    def _item(
        self, read: Read, document: Document, plain: Matrix, moved: Matrix, told: Told, stamp: Stamp
    ) -> Item | None:
        line = read.line
        if not _usable(plain, moved):
            why = f"the encoder {self._making.encoder.id} gives no usable vector for its text"
            self._ledger.refuse(line, document.id, "unusable_vector", why, read.original, "encode")
            return None
        language = text_language(told.language)
        source = entry(document.title, document.text, language, told.confidence, moved, stamp, dict(document.other))
        return Item(
            line,
            document.id,
            "index",
            body("index", document.id, self._base + line, source),
            read.original,
            moved.tobytes() if self._wants(line) else None,
            self._counts(document, told, stamp),
        )

    def _counts(self, document: Document, told: Told, stamp: Stamp) -> tuple[str, ...]:
        longest = self._making.encoder.longest
        cut = longest and len(full_text(document.title, document.text)) > longest
        return (*self._tallies.of(told, stamp), *(["cut"] if cut else []))


def _usable(plain: Matrix, moved: Matrix) -> bool:
    """Whether a vector has a cosine with others: no number that is none, not all zeros, no length that overflows."""
    with np.errstate(all="ignore"):
        length = float(plain @ plain)
    return 0 < length < float("inf") and bool(np.isfinite(moved).all())

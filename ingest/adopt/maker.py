"""Documents of another index made to operations: told, shifted, and else as they were."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.taken_back import is_shifted
from langshift.ingest.adopt.stored import changed, stored_of
from langshift.ingest.bulk.item import Item
from langshift.ingest.documents import Document
from langshift.ingest.entry import action
from langshift.ingest.items import Refusing
from langshift.ingest.making import Making
from langshift.ingest.moving import Stamp, Told, move, tell
from langshift.ingest.read import Bad, Read
from langshift.ingest.summary import OnStage, unwatched
from langshift.ingest.tallies import Tallies
from langshift.languages import text_language
from langshift.plugin.fields import Fields

Moved = tuple[NDArray[np.float32], Stamp]

#: What a document without a vector counts under.
VECTORLESS = "vectorless"


class DocumentMaker:
    """Makes operations of documents as a search gives them; those that can be none go to the ledger.

    Each keeps its ``_id``, routing, version and every byte of its fields but the vector's, where that moves.
    """

    def __init__(
        self,
        fields: Fields,
        making: Making,
        ledger: Refusing,
        base: int,  # noqa: ARG002 - documents have versions of their own
        wants: Callable[[int], bool],
        on_stage: OnStage = unwatched,
    ) -> None:
        """Make a maker.

        Args:
            fields: the names of the documents' fields, and of those that they get.
            making: as for ``items.Maker``, as are the others.
            ledger: takes what cannot be used.
            base: not needed.
            wants: whether the final check compares the vector of a line.
            on_stage: called after each stage of each batch.
        """
        self._fields, self._making, self._ledger = fields, making, ledger
        self._wants, self._on_stage = wants, on_stage
        self._tallies = Tallies(making)

    def items(self, batch: Sequence[Read]) -> list[Item]:
        """The operations of a batch of documents, in their order."""
        documents = [read.content for read in batch if isinstance(read.content, Document)]
        begun = time.perf_counter()
        told = [tell(document, self._making) for document in documents]
        detected = time.perf_counter()
        moved = self._moved(documents, told)
        self._on_stage("detect", len(documents), detected - begun)
        self._on_stage("shift", len(documents), time.perf_counter() - detected)
        made = iter(zip(documents, told, strict=True))
        items = []
        for read in batch:
            if isinstance(read.content, Bad):
                bad = read.content
                self._ledger.refuse(read.line, stored_of(_hit(read)).id, bad.type, bad.reason, read.original, "read")
            elif isinstance(read.content, Document):
                document, language = next(made)
                items.append(self._item(read, document, language, moved))
        self._ledger.flush()
        return items

    def _moved(self, documents: Sequence[Document], told: Sequence[Told]) -> Iterator[Moved]:
        """The vectors of those documents that have one."""
        rows = [(doc.embedding, one) for doc, one in zip(documents, told, strict=True) if doc.embedding is not None]
        if not rows:
            return iter(())
        vectors, stamps = move(np.stack([vector for vector, _ in rows]), [one for _, one in rows], self._making)
        return iter(list(zip(vectors, stamps, strict=True)))

    def _item(self, read: Read, document: Document, told: Told, moved: Iterator[Moved]) -> Item:
        stored, fields = stored_of(_hit(read)), self._fields
        language = text_language(told.language)
        added = {fields.language: orjson.dumps(language), fields.confidence: orjson.dumps(told.confidence)}
        vector, sent, tallies = None, None, [f"language {language}", VECTORLESS]
        if document.embedding is not None:
            sent, stamp = next(moved)
            added[fields.stamp] = orjson.dumps(stamp)
            tallies = self._tallies.of(told, stamp)
            if is_shifted(stamp):
                vector = orjson.dumps(sent, option=orjson.OPT_SERIALIZE_NUMPY)
        elif not document.text.strip() and document.language is None:
            # Nothing tells its language, and nothing asks for it.
            added = {}
        source = changed(stored.source, fields.vector, vector, added)
        return Item(
            read.line,
            stored.id,
            "index",
            action("index", stored.id, stored.version, stored.routing) + source + b"\n",
            read.original,
            sent.tobytes() if sent is not None and self._wants(read.line) else None,
            tuple(tallies),
        )


def _hit(read: Read) -> bytes:
    assert isinstance(read.original, bytes)  # noqa: S101 - as ``Documents`` gives them
    return read.original

"""Documents of another index as operations: detected, shifted, and else as they were."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders import Brought
from langshift.debias.stamps import is_shifted
from langshift.errors import LangshiftError
from langshift.files import LineNumbers
from langshift.ingest.adopt.reader import Reader, changed, loaded, stored_of
from langshift.ingest.bulk.chunks import Item
from langshift.ingest.config import Making
from langshift.ingest.documents import Bad, Document, Read, action
from langshift.ingest.progress import OnStage, unwatched
from langshift.ingest.transform import Refusing, Stamp, Tallies, Told, move, tell
from langshift.languages import UNDETERMINED, parse_tag, text_language
from langshift.plugin.metadata import Fields, value_at


def document_of(hit: bytes, fields: Fields, dimension: int) -> Document | Bad:
    """Look at a document.

    Args:
        hit: as a search gives it.
        fields: the names of its fields, and of those that it is to get.
        dimension: the length of its vector.

    Returns:
        The document, its texts joined as ``text``; or why it cannot be adopted.
    """
    stored = stored_of(hit)
    source = loaded(stored.source)
    for name in (fields.language, fields.confidence, fields.stamp):
        if name in source:
            return Bad("field_taken", f"has a field {name!r} that the mapping does not know, and that langshift needs.")
    value, vector = value_at(source, fields.vector), None
    if value is not None:
        vector = _vector(value, dimension)
        if vector is None:
            return Bad("invalid_embedding", f"the field {fields.vector!r} is not one list of {dimension} numbers.")
    texts = [text for name in fields.texts for text in strings_at(source, name)]
    return Document(
        id=stored.id,
        title="",
        text="\n".join(texts),
        language=_language(source, fields.told),
        other={},
        embedding=vector,
    )


def strings_at(source: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """All strings at a field, also within lists, in the document's order."""
    if isinstance(source, list):
        for each in source:
            yield from strings_at(each, path)
    elif not path and isinstance(source, str):
        yield source
    elif path and isinstance(source, Mapping):
        for name, inner in source.items():
            if name == path:
                yield from strings_at(inner, "")
            elif path.startswith(f"{name}."):
                yield from strings_at(inner, path[len(name) + 1 :])


def _vector(value: Any, dimension: int) -> NDArray[np.float32] | None:  # noqa: ANN401 - any JSON
    if not isinstance(value, list) or len(value) != dimension:
        return None
    try:
        return np.array(value, np.float32)
    except (TypeError, ValueError):
        return None


def _language(source: Mapping[str, Any], name: str | None) -> str | None:
    """The tag that a document names; None where it names none, or several."""
    told = set(strings_at(source, name)) if name else set()
    if len(told) != 1:
        return None
    (given,) = told
    return UNDETERMINED if given.strip().lower() == UNDETERMINED else parse_tag(given)


class Documents:
    """The documents of an index at one point in time; see ``Source``.

    Another point in time gives another order: nothing can be gone on with.

    Args:
        reader: reads the index.
        fields: the names of the documents' fields, and of those that they are to get.
        brought: what is known of their vectors.
    """

    resumable = False
    content: str | None = None

    def __init__(self, reader: Reader, fields: Fields, brought: Brought) -> None:
        self.shown, self.total = reader.old.name, reader.total
        self.brought: Brought | None = brought
        self._reader, self._fields, self._dimension = reader, fields, brought.dimension

    def read(self, skip: LineNumbers) -> Iterator[Read]:
        """The documents, numbered as they come; the original of each is what a search gives.

        Raises:
            ClusterError: they cannot all be read.
            LangshiftError: the cluster finds vectors in more documents than are found here.
        """
        bearing = 0
        for number, hit in enumerate(self._reader.documents(), 1):
            content = document_of(hit, self._fields, self._dimension)
            bearing += not isinstance(content, Document) or content.embedding is not None
            if number not in skip:
                yield Read(number, content, hit)
        if bearing < self._reader.bearing:
            lacking = self._reader.bearing - bearing
            raise LangshiftError(
                f"{lacking:,} of {self._reader.bearing:,} documents with a vector hold it in a list of objects, where "
                f"it cannot be shifted: write {self._fields.vector!r} of each document as one list of numbers."
            )


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

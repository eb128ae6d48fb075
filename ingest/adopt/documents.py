"""The documents of an index as a source of a load."""

from __future__ import annotations

from collections.abc import Iterator

from langshift.debias.encoders import Brought
from langshift.errors import LangshiftError
from langshift.ingest.adopt.document import document_of
from langshift.ingest.adopt.reading import Reader
from langshift.ingest.documents import Document
from langshift.ingest.read import Read
from langshift.numbered import LineNumbers
from langshift.plugin.fields import Fields


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

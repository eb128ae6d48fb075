"""The documents of an index as they are now, each whole: those of an index of chunks are put together again."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby, islice
from typing import NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.errors import UsageError
from langshift.evaluate.convert.pool import PoolPassage
from langshift.ingest.adopt.reader import OldIndex, open_reader
from langshift.languages import UNDETERMINED
from langshift.normal_form import normal_form
from langshift.plugin.metadata import CHUNK, FieldNames, read_mappings_and_settings, value_at
from langshift.plugin.raw_documents import decode_hit, parse_source
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.calibration.questions import has_groups
from langshift.retrieval.result import group_of, title_and_text
from langshift.retry import PATIENCE
from langshift.server_errors import failure

_AT_ONCE = 1000


class IndexedDocument(NamedTuple):
    """A whole document.

    Attributes:
        id: its id.
        language: primary tag; of a document in chunks, that of most of them; None where it is not known.
        title: in normal form; may be empty.
        text: likewise. Between chunks stands as much white space as the document had there.
        group: its translation group; None where it names none.
    """

    id: str
    language: str | None
    title: str
    text: str
    group: str | None


class _Entry(NamedTuple):
    """A document, or one chunk of it, as the file keeps it."""

    document: str
    ordinal: int
    language: str
    title: str
    text: str
    translation_group: str | None
    start: int
    field: str


_TABLE = f"CREATE TABLE entries ({', '.join(_Entry._fields)}, PRIMARY KEY (document, ordinal)) WITHOUT ROWID"
_INSERT = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class IndexSnapshot:
    """Documents in the order of their ids, whatever order the server gives them in; on disk, not in memory."""

    def __init__(self) -> None:
        # Without a name it is SQLite's own temporary file, which nobody else can open and which goes with the process.
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(_TABLE)

    @classmethod
    def of(cls, client: OpenSearch, index: IndexInfo, on_read: Callable[[int], None] = lambda _: None) -> IndexSnapshot:
        """Read an index; nothing is written to it.

        Args:
            client: the cluster.
            index: one version.
            on_read: called with the number of entries read since the last call.

        Raises:
            UsageError: its chunks do not say where in their document they stand.
            ClusterError: it cannot be read to its end.
        """
        fields = index.fields
        if fields.parent is not None and fields.chunking is None:
            raise UsageError(
                f"Index {index.name} holds chunks that do not say where in their document they stand, so the documents "
                "cannot be put together: load them from their source with `langshift ingest --chunk auto`."
            )
        snapshot = cls()
        try:
            grouped = has_groups(client, index)
            mappings, settings = read_mappings_and_settings(client, index.index)
            there = OldIndex(index.name, index.index, settings["index.uuid"], mappings, settings)
            with open_reader(client, there, fields.vector, PATIENCE) as reader:
                entries = (_entry(hit, fields, grouped=grouped) for hit in reader.documents())
                while batch := list(islice(entries, _AT_ONCE)):
                    snapshot._file.executemany(_INSERT, batch)
                    on_read(len(batch))
        except OpenSearchException as error:
            raise failure(error) from error
        return snapshot

    def documents(self) -> Iterator[IndexedDocument]:
        """Every document, in the order of the ids."""
        with closing(self._file.execute("SELECT * FROM entries ORDER BY document, ordinal")) as rows:
            for _, entries in groupby(map(_Entry._make, rows), key=lambda one: one.document):
                yield _whole(list(entries))

    def passages(self) -> Iterator[PoolPassage]:
        """The same, as those of a collection."""
        for one in self.documents():
            yield PoolPassage(one.id, one.text, one.language, one.group, None, one.title)

    def document(self, name: str) -> IndexedDocument:
        """The document of an id that ``documents`` gave."""
        rows = self._file.execute("SELECT * FROM entries WHERE document = ? ORDER BY ordinal", (name,))
        return _whole([_Entry._make(row) for row in rows])


def _entry(hit: bytes, fields: FieldNames, *, grouped: bool) -> _Entry:
    stored = decode_hit(hit)
    source = parse_source(stored.source)
    title, text = title_and_text(source, fields)
    language = value_at(source, fields.language)
    place = value_at(source, CHUNK) if fields.parent is not None else None
    place = place if isinstance(place, dict) else {}
    return _Entry(
        stored.id if fields.parent is None else str(value_at(source, fields.parent)),
        int(place.get("ordinal", 0)),
        language if isinstance(language, str) else UNDETERMINED,
        normal_form(title),
        normal_form(text),
        group_of(source, fields) if grouped else None,
        int(place.get("start", 0)),
        str(place.get("field", "")),
    )


def _whole(entries: Sequence[_Entry]) -> IndexedDocument:
    """A document of its chunks in order; of one entry where it has no chunks."""
    texts: dict[str, str] = {}
    for one in entries:
        before = texts.get(one.field, "")
        # Chunks leave out the white space between them: a space, or line breaks.
        gap = one.start - len(before)
        texts[one.field] = before + (" " if gap == 1 else "\n" * gap) + one.text
    ((language, _),) = Counter(one.language for one in entries).most_common(1)
    first = entries[0]
    text = " ".join(filter(None, texts.values()))
    known = None if language == UNDETERMINED else language
    return IndexedDocument(first.document, known, first.title, text, first.translation_group)

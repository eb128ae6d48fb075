"""Documents changed in part: each is read as it is, merged, and encoded again only where its text is another."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import orjson
from opensearchpy import OpenSearch

from langshift.client import address
from langshift.debias.debiaser import is_shifted, is_undoable, undo
from langshift.debias.encoders.base import Matrix, is_given
from langshift.ingest.bulk.writer import ActionResult, BulkAction, action_line, bulk_lines
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Document, InvalidDocument, Update
from langshift.ingest.transform import (
    DocumentLanguage,
    beside_vectors,
    chunked,
    debias_batch,
    detect_language,
    document_vectors,
    full_text,
    is_usable,
    unusable_vector,
)
from langshift.languages import UNDETERMINED, text_language
from langshift.plugin import stored_shift
from langshift.plugin.index_body import vectors_come_back_normalised
from langshift.plugin.metadata import CHUNK, USUAL, FieldNames, chunk_id, replaced_at, value_at
from langshift.plugin.raw_documents import FoundDocument, FoundDocuments, edit_source, open_raw, parse_source
from langshift.plugin.stored_vector import vector_at
from langshift.server_errors import Retryable, not_permitted
from langshift.wording import join_words

Source = Mapping[str, Any]


def texts_of(source: Source, fields: FieldNames) -> dict[str, str]:
    """The texts of a stored document by the names of their fields, as they are encoded; "" where it has none."""
    language = value_at(source, fields.language)
    return {name: in_language(value_at(source, name), language) for name in fields.text_fields}


def in_language(value: Any, language: object) -> str:  # noqa: ANN401 - any JSON
    """The text of a field that has one in each language; empty where there is none."""
    if isinstance(value, Mapping):
        # A document whose language was updated may have kept its former text, too.
        value = value[language] if language in value else list(value.values())
    return " ".join(text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))


def stored_tag(source: Source, fields: FieldNames) -> str:
    """The language of a stored document, with its region where the stamp tells that."""
    stamp = value_at(source, fields.stamp)
    if isinstance(stamp, Mapping) and stamp.get("alpha") is not None:
        return stored_shift.own_tag(source, stamp, fields, same=False)
    language = value_at(source, fields.language)
    return language if isinstance(language, str) else UNDETERMINED


@dataclass
class _Merging:
    """An update on its way to a document.

    Attributes:
        item: the update.
        update: what it changes.
        stored: the document as it is.
        source: its fields, where its texts, its language or its vector are to change; else empty.
        document: the document as it is to be, likewise.
        detection: its language.
        vector: its vector before it is shifted, shape (dimension,), float32; None where the text is to be encoded.
        rewritten: whether its text is to be another.
    """

    item: BulkAction
    update: Update
    stored: FoundDocument
    source: Source
    document: Document | None = None
    detection: DocumentLanguage | None = None
    vector: Matrix | None = None
    rewritten: bool = False


@dataclass
class Updater:
    """Merges updates with the documents that they change; several threads may call it at once.

    Attributes:
        client: the cluster.
        index: the version.
        pipeline: how the index's documents are made.
        base: the version that line 0 would have.
        stack: closes what is opened here.
        fields: the names of the documents' fields.
    """

    client: OpenSearch
    index: str
    pipeline: EmbeddingPipeline
    base: int
    stack: ExitStack
    fields: FieldNames = USUAL

    @cached_property
    def _reading(self) -> OpenSearch:
        reading: OpenSearch = self.stack.enter_context(open_raw(self.client, FoundDocuments))
        return reading

    @cached_property
    def _comes_back_normalised(self) -> bool:
        return vectors_come_back_normalised(self.client, self.index, self.fields.vector)

    def merge(self, items: Sequence[BulkAction]) -> list[BulkAction | ActionResult]:
        """Make of updates what is to be written; see ``Merge``.

        Raises:
            Retryable: a document cannot be read at this moment.
            LangshiftError: one may not be read, or the encoder fails.
            OpenSearchException: the cluster does not do its part.
        """
        wanted = {"ids": [item.target or item.id for item in items]}
        found: FoundDocuments = self._reading.mget(index=self.index, body=wanted)
        made: dict[tuple[int, str], BulkAction | ActionResult] = {}
        changing: list[_Merging] = []
        for item, stored in zip(items, found.docs, strict=True):
            try:
                begun = self._begun(item, stored)
                if isinstance(begun, _Merging) and begun.document is not None:
                    changing.append(begun)
                else:
                    made[_key(item)] = _written(begun, self._page(begun)) if isinstance(begun, _Merging) else begun
            except InvalidDocument as error:
                made[_key(item)] = ActionResult(item, "dead", "", error.type, error.reason)
        made.update(self._shifted(changing))
        return [made[_key(item)] for item in items]

    def _begun(self, item: BulkAction, stored: FoundDocument) -> _Merging | ActionResult:
        update = item.update
        assert update is not None  # noqa: S101 - nothing else is merged
        # A chunk that is gone went with an earlier form of its document.
        if self._is_superseded(item, stored) or (item.target and not stored.found):
            return ActionResult(item, "superseded", there=stored.version)
        if not stored.found:
            raise InvalidDocument(missing_document(update.id), "missing_document")
        merging = _Merging(item, update, stored, {})
        regroups = self.fields.group.partition(".")[0] in update.other
        if update.texts or update.told or update.embedding is not None or regroups:
            merging.source = parse_source(stored.source)
            self._look(merging)
        return merging

    def _page(self, merging: _Merging) -> dict[str, Any]:
        """The stamp of a document that goes to another group, and stays as it is else."""
        stamp = value_at(merging.source, self.fields.stamp)
        made = self._paged(stamp, merging.source, merging.update) if isinstance(stamp, Mapping) else stamp
        return {} if made == stamp else {self.fields.stamp: made}

    def _paged(self, stamp: Mapping[str, Any], source: Source, update: Update) -> dict[str, Any]:
        return {**stamp, "page": stored_shift.page_of({**source, **update.other}, self.fields, update.id)}

    def _is_superseded(self, item: BulkAction, stored: FoundDocument) -> bool:
        """Whether somebody has written a document later; raises where it cannot be read."""
        if stored.error is not None:
            why = str(stored.error.get("reason", "no reason given"))
            raise not_permitted(why, address(self.client)) or Retryable(why)
        return stored.found and stored.version > self.base + item.line

    def _look(self, merging: _Merging) -> None:
        """Find out whether the texts, the language or the vector are to be others, and what that takes."""
        update, source, fields = merging.update, merging.source, self.fields
        before, confidence = texts_of(source, fields), value_at(source, fields.confidence)
        texts, tag = {**before, **update.texts}, stored_tag(source, fields)
        rewritten = texts != before
        if not (rewritten or update.told or update.embedding is not None):
            return
        merging.vector = update.embedding if rewritten or update.embedding is not None else self._raw(source)
        if (rewritten or merging.vector is None) and not any(text.strip() for text in texts.values()):
            raise InvalidDocument("would have neither a text nor a title")
        if merging.vector is None and is_given(self.pipeline.encoder.id):
            what = "title or text" if rewritten else "language"
            why = f"its {what} changes, for which --encoder given needs its 'embedding'; add that"
            raise InvalidDocument(why, "invalid_embedding")
        merging.rewritten = rewritten
        for one in self.pipeline.beside if rewritten else ():
            if one.is_given and one.kept.field not in update.other:
                why = f"its title or text changes, for which --sparse given needs its {one.kept.field!r}; add that"
                raise InvalidDocument(why, "invalid_weights")
        if merging.vector is not None and len(merging.vector) != self.pipeline.encoder.dimension:
            why = f"its vector has {len(merging.vector)} numbers, but {self.pipeline.encoder.dimension} are needed"
            raise InvalidDocument(why, "invalid_embedding")
        # With this confidence it named its language.
        own = update.language if update.told else tag if confidence == 1 else None
        merging.document = self._document(update, texts, own)
        # A chunk whose title changes is in the language that it was.
        if (rewritten and not merging.item.target) or update.told or own is not None:
            merging.detection = detect_language(merging.document, self.pipeline)
        else:
            merging.detection = DocumentLanguage(tag, confidence or 0.0)

    def _document(self, update: Update, texts: Mapping[str, str], language: str | None) -> Document:
        """The document as it is to be encoded, the title first."""
        title = self.fields.title_field
        text = " ".join(text for name, text in texts.items() if text and name != title)
        return Document(update.id, texts.get(title or "", ""), text, language, {}, update.embedding)

    def _raw(self, source: Source) -> Matrix | None:
        """The vector of a stored document before it was shifted; None where that is not known."""
        vector, stamp = vector_at(source, self.fields.vector), value_at(source, self.fields.stamp)
        if vector is None or not isinstance(stamp, Mapping) or stamp.get("alpha") is None:
            return None
        if not is_shifted(stamp):
            return vector
        vectors = self.pipeline.debias.vectors
        if vectors is None or self._comes_back_normalised or not is_undoable(stamp, vectors):
            return None
        return undo(vector, stamp, vectors)

    def _shifted(self, changing: Sequence[_Merging]) -> Iterator[tuple[tuple[int, str], BulkAction | ActionResult]]:
        """What is to be written of documents whose texts, language or vector change."""
        if not changing:
            return
        encoder = self.pipeline.encoder
        documents = [one.document for one in changing if one.document is not None and one.vector is None]
        encoded = iter(document_vectors(encoder, documents))
        detections = [one.detection for one in changing if one.detection is not None]
        beside = iter(
            beside_vectors(self.pipeline, [one.document for one in changing if one.document and one.rewritten])
        )
        vectors = np.stack([next(encoded) if one.vector is None else one.vector for one in changing])
        shifted, stamps = debias_batch(vectors, detections, self.pipeline)
        for one, vector, moved, stamp, detection in zip(changing, vectors, shifted, stamps, detections, strict=True):
            assert one.document is not None  # noqa: S101 - whatever changes has one
            more = next(beside) if one.rewritten else {}
            if not is_usable(vector, moved):
                yield _key(one.item), unusable_vector(one.item, encoder)
                continue
            renewed = one.vector is None or one.update.embedding is not None
            tallies = ["encoded"] if renewed else []
            longest = None if one.item.target else encoder.longest
            if renewed and longest and len(full_text(one.document.title, one.document.text)) > longest:
                tallies.append("cut")
            # Weights that a line brings are among its other fields.
            brought = one.update.other.keys()
            changes = {name: value for name, value in more.items() if name not in brought}
            changes |= self._changes(one, detection)
            changes[self.fields.stamp] = stamp = self._paged(stamp, one.source, one.update)
            there = value_at(one.source, self.fields.stamp)
            if renewed or not isinstance(there, Mapping) or stamp != {**there, "page": stamp["page"]}:
                changes[self.fields.vector] = moved
            yield _key(one.item), _written(one, changes, tuple(tallies))

    def _changes(self, merging: _Merging, detection: DocumentLanguage) -> dict[str, Any]:
        """The new texts and the language, by the names of their fields; None of a text that goes."""
        fields, language = self.fields, text_language(detection.language)
        texts = merging.update.texts
        if language != value_at(merging.source, fields.language):
            # All of them go to the fields of the new one.
            texts = {**texts_of(merging.source, fields), **texts}
        changes: dict[str, Any] = {name: {language: text} if text else None for name, text in texts.items()}
        return {**changes, fields.language: language, fields.confidence: detection.confidence}


def _written(merging: _Merging, changes: Mapping[str, Any], tallies: tuple[str, ...] = ()) -> BulkAction | ActionResult:
    """The operation that writes a document, if nobody has written it since; or what became of it where it is so."""
    stored = merging.stored
    source = _changed(stored, merging.update, changes)
    if source == bytes(stored.source):
        # Sent before, and the answer lost; or always so.
        return ActionResult(merging.item, "done", "update")
    action = {"_id": stored.id, "if_seq_no": stored.seq_no, "if_primary_term": stored.primary_term}
    body = orjson.dumps({"index": action}, option=orjson.OPT_APPEND_NEWLINE) + source + b"\n"
    return merging.item._replace(body=body, tallies=tallies)


def _changed(stored: FoundDocument, update: Update, changes: Mapping[str, Any]) -> bytes:
    """The fields of a stored document with what an update changes, and what else follows from it."""
    wanted = dict(update.other)
    for name, value in changes.items():
        inside = name not in wanted and name.partition(".")[0] in wanted
        wanted = replaced_at(wanted, name, value) if inside else {**wanted, name: value}
    return edit_source(stored.source, wanted)


def _key(item: BulkAction) -> tuple[int, str]:
    return item.line, item.target


def missing_document(name: str) -> str:
    """Why an update is none, whose document is not there."""
    return f"there is no document {name!r} to update: leave '_op' out to add it"


_COUNT = f"{CHUNK}.count"
_READ = 500  # chunks at once


class _Cut(NamedTuple):
    """A document that is cut anew.

    Attributes:
        item: the update.
        update: what it changes.
        head: the document's first chunk as it is.
        document: the document as it is to be.
    """

    item: BulkAction
    update: Update
    head: FoundDocument
    document: Document


class ChunkUpdater(Updater):
    """Merges updates, and deletes, with documents that are cut into chunks.

    The first chunk tells how many there are. Each is changed by itself; but a new text makes all of them anew, under
    the version of its line.
    """

    def merge(self, items: Sequence[BulkAction]) -> list[BulkAction | ActionResult]:
        """Make of updates and deletes what is to be written; see ``Merge`` and ``Updater.merge``."""
        # Those that somebody has written meanwhile are a chunk each.
        parts = [item for item in items if item.target]
        fresh = [item for item in items if not item.target]
        made: list[BulkAction | ActionResult] = []
        cuts: list[_Cut] = []
        for item, head in zip(fresh, self._heads(fresh), strict=True):
            try:
                if self._is_superseded(item, head):
                    made.append(ActionResult(item, "superseded", there=head.version))
                elif item.update is None:
                    made += self._deletes(item, head)
                elif not head.found:
                    raise InvalidDocument(missing_document(item.id), "missing_document")
                elif item.update.texts.keys() - {self.fields.title_field}:
                    cuts.append(self._cut(item, item.update, head))
                else:
                    parts += _each(item, head)
            except InvalidDocument as error:
                made.append(ActionResult(item, "dead", "", error.type, error.reason))
        for start in range(0, len(parts), _READ):
            made += super().merge(parts[start : start + _READ])
        return [*made, *self._written_anew(cuts)]

    def _heads(self, items: Sequence[BulkAction]) -> list[FoundDocument]:
        """The first chunk of each document; of one that is deleted only how many there are."""
        if not items:
            return []
        wanted = [{"_id": chunk_id(one.id, 0), "_source": True if one.update else [_COUNT]} for one in items]
        found: FoundDocuments = self._reading.mget(index=self.index, body={"docs": wanted})
        return found.docs

    def _deletes(self, item: BulkAction, head: FoundDocument) -> Iterator[BulkAction]:
        for part in _each(item, head):
            yield part._replace(body=bulk_lines("delete", part.target, self.base + item.line))

    def _cut(self, item: BulkAction, update: Update, head: FoundDocument) -> _Cut:
        title, source = self.fields.title_field, parse_source(head.source)
        if absent := [name for name in self.fields.text_fields if name != title and name not in update.texts]:
            why = f"its text is cut anew, for which it needs all its texts: add {join_words(absent)}"
            raise InvalidDocument(why)
        texts = {name: update.texts.get(name, text) for name, text in texts_of(source, self.fields).items()}
        if not any(text.strip() for text in texts.values()):
            raise InvalidDocument("would have neither a text nor a title")
        own = stored_tag(source, self.fields) if value_at(source, self.fields.confidence) == 1 else None
        document = self._document(update, texts, update.language if update.told else own)
        return _Cut(item, update, head, replace(document, texts=texts) if self.fields.texts else document)

    def _written_anew(self, cuts: Sequence[_Cut]) -> Iterator[BulkAction | ActionResult]:
        """The operations that write all chunks of documents."""
        if not cuts:
            return
        pipeline, fields = self.pipeline, self.fields
        documents = [one.document for one in cuts]
        chunks, detections = chunked(documents, [detect_language(one, pipeline) for one in documents], pipeline)
        all_pieces = [chunk for some in chunks for chunk in some]
        vectors, beside = document_vectors(pipeline.encoder, all_pieces), beside_vectors(pipeline, all_pieces)
        shifted, stamps = debias_batch(vectors, detections, pipeline)
        encoded = iter(zip(vectors, shifted, detections, stamps, beside, strict=True))
        for one, pieces in zip(cuts, chunks, strict=True):
            made: list[BulkAction] = []
            usable = True
            for piece, (vector, moved, detection, stamp, more) in zip(pieces, encoded, strict=False):
                usable &= is_usable(vector, moved)
                language = text_language(detection.language)
                texts = {"title": piece.title, "text": piece.text} if piece.texts is None else piece.texts
                changes: dict[str, Any] = {name: {language: text} if text else None for name, text in texts.items()}
                changes |= {fields.language: language, fields.confidence: detection.confidence}
                stamp = self._paged(stamp, parse_source(one.head.source), one.update)
                changes |= {**more, fields.vector: moved, fields.stamp: stamp, CHUNK: piece.other[CHUNK]}
                lines = action_line("index", piece.id, self.base + one.item.line)
                body = lines + _changed(one.head, one.update, changes) + b"\n"
                made.append(
                    one.item._replace(
                        operation="index", body=body, tallies=("encoded",), target=piece.id, parts=len(pieces)
                    )
                )
            if usable:
                yield from made
            else:
                yield unusable_vector(one.item, pipeline.encoder)


def _each(item: BulkAction, head: FoundDocument) -> list[BulkAction]:
    """A line as one operation for each chunk of its document."""
    count = (value_at(parse_source(head.source), _COUNT) or 1) if head.found else 1
    return [item._replace(target=chunk_id(item.id, ordinal), parts=count) for ordinal in range(count)]

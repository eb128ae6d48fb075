"""How a document of one version becomes one of another by its text, where the two are made with other encoders."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from langshift.debias.encoders.base import Matrix
from langshift.ingest.adopt.transform import strings_at, texts_in_normal_form
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.representations import Representation
from langshift.ingest.transform import DocumentLanguage, Stamp, debias_batch, is_usable
from langshift.ingest.updates import stored_tag, texts_of
from langshift.normal_form import normal_form
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.raw_documents import StoredDocument, edit_source, parse_source
from langshift.plugin.stored_shift import page_of
from langshift.plugin.stored_vector import vector_at
from langshift.plugin.transfer.state import ClientTransform

Source = Mapping[str, Any]


class _Encoded(NamedTuple):
    """What a text becomes; both None where it is empty, or its encoder makes no vector of it that has a cosine."""

    vector: Matrix | None = None
    stamp: Stamp | None = None


@dataclass
class DocumentEncoder:
    """Makes documents of a version out of those of another, by their texts.

    Attributes:
        fields: the names of the documents' fields.
        open: opens encoder and shift, when the first text is to be encoded; None where vectors stay as they are.
        vectors: hash of the language vectors, as stamps name them; None where there are none.
        beside: what is made of texts beside their vectors.
        same: the fields of ``beside`` in which both versions have the same: what a document has there stays.
        removed: the fields that documents lose.
    """

    fields: FieldNames
    open: Callable[[], EmbeddingPipeline] | None
    vectors: str | None
    beside: Sequence[Representation] = ()
    same: Collection[str] = ()
    removed: tuple[str, ...] = ()

    @cached_property
    def _pipeline(self) -> EmbeddingPipeline:
        assert self.open is not None  # noqa: S101 - or nothing is encoded
        return self.open()

    def transform(self) -> ClientTransform:
        """The way of a document, for a transfer."""
        encoded = () if self.open is None else (self.fields.vector, self.fields.stamp)
        changes = (*encoded, *(one.kept.field for one in self.beside), *self.removed)
        return ClientTransform(self.convert, changes, self.fields.text_fields, self.removed)

    def convert(self, documents: Sequence[StoredDocument], counterparts: Sequence[Source | None]) -> list[bytes]:
        """Documents with what is made of their text; without it where there is no text.

        Args:
            documents: as one version has them.
            counterparts: as the other has them by now: where text and language are the same, its vector and stamp stay,
                and where the text is, what it has beside the vector.

        Raises:
            LangshiftError: an encoder cannot be opened, or fails.
        """
        sources = [parse_source(document.source) for document in documents]
        changes: list[dict[str, Any]] = [dict.fromkeys(self.removed) for _ in sources]
        if self.open is not None:
            made = [self._reused(source, there) for source, there in zip(sources, counterparts, strict=True)]
            todo = [number for number, one in enumerate(made) if one is None]
            for number, encoded in zip(todo, self.encode([sources[number] for number in todo]), strict=True):
                made[number] = encoded
            for changed, one, source, document in zip(changes, made, sources, documents, strict=True):
                assert one is not None  # noqa: S101 - what was not reused has been encoded
                stamp = one.stamp and {**one.stamp, "page": page_of(source, self.fields, document.id)}
                changed |= {self.fields.vector: one.vector, self.fields.stamp: stamp}
        for representation in self.beside:
            self._add(representation, sources, counterparts, changes)
        return [
            edit_source(document.source, {**texts_in_normal_form(source, self.fields), **changed})
            for document, source, changed in zip(documents, sources, changes, strict=True)
        ]

    def _add(
        self,
        representation: Representation,
        sources: Sequence[Source],
        counterparts: Sequence[Source | None],
        changes: Sequence[dict[str, Any]],
    ) -> None:
        """Add to the changes of documents what is to be kept of them beside the vector."""
        name, todo = representation.kept.field, dict[int, str]()
        for number, (source, there) in enumerate(zip(sources, counterparts, strict=True)):
            if name in self.same and value_at(source, name) is not None:
                continue
            text, value = self.text(source), None
            if there is not None and text == self.text(there):
                value = value_at(there, name)
            changes[number][name] = value
            if value is None:
                todo[number] = text
        for number, value in zip(todo, representation.of(list(todo.values())), strict=True):
            changes[number][name] = value

    def encode(self, sources: Sequence[Source]) -> list[_Encoded]:
        """Vector and stamp of each document.

        Raises:
            LangshiftError: the encoder cannot be opened, or fails.
        """
        made = [_Encoded()] * len(sources)
        texts = {number: text for number, source in enumerate(sources) if (text := self.text(source))}
        if not texts:
            return made
        pipeline = self._pipeline
        vectors = pipeline.encoder.encode_documents(list(texts.values()))
        shifted, stamps = debias_batch(vectors, [self._language(sources[number]) for number in texts], pipeline)
        for number, vector, moved, stamp in zip(texts, vectors, shifted, stamps, strict=True):
            if is_usable(vector, moved):
                # Of vectors that an index keeps, the hash may be that of a file with another address of the encoder.
                made[number] = _Encoded(moved, {**stamp, "vectors": self.vectors})
        return made

    def text(self, source: Source) -> str:
        """What is encoded of a document: all of its text fields, the title first."""
        return normal_form(" ".join(filter(None, self._texts(source).values())).strip())

    def _texts(self, source: Source) -> dict[str, str]:
        """Text field -> what it holds in the document's language."""
        if not self.fields.split:
            return {name: " ".join(strings_at(source, name)) for name in self.fields.texts}
        return texts_of(source, self.fields)

    def _language(self, source: Source) -> DocumentLanguage:
        """The language that the document has."""
        confidence = value_at(source, self.fields.confidence)
        certainty = confidence if isinstance(confidence, float | int) else 0.0
        return DocumentLanguage(stored_tag(source, self.fields), certainty)

    def _reused(self, source: Source, there: Source | None) -> _Encoded | None:
        """Vector and stamp that the other version has of the same text; None where it has none of that."""
        if there is None or self.text(source) != self.text(there):
            return None
        if stored_tag(source, self.fields) != stored_tag(there, self.fields):
            return None
        return _Encoded(vector_at(there, self.fields.vector), value_at(there, self.fields.stamp))

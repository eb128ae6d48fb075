"""A new version of an index out of the texts that it holds, encoded by another model; and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import orjson
from opensearchpy import OpenSearch

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import AS_KNOWN, Matrix, identity, is_given
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.readable import unread_in_words
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.ingest.adopt.adopt import keep_norms
from langshift.ingest.adopt.transform import strings_at, texts_in_normal_form
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.publication import MAX_REFUSED
from langshift.ingest.transform import DocumentLanguage, Stamp, debias_batch, is_usable
from langshift.ingest.updates import stored_tag, texts_of
from langshift.normal_form import normal_form
from langshift.plugin import metadata, pipelines, stored_shift
from langshift.plugin.index_body import copied_body, engine_of, mapped, require_engine
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.raw_documents import StoredDocument, edit_source, parse_source
from langshift.plugin.retune import require_blockable
from langshift.plugin.stored_vector import WHOLE, distance, is_left_out, left_out, vector_at
from langshift.plugin.transfer import run
from langshift.plugin.transfer.state import ClientTransform, TransferListener, TransferPlan, TransferResult
from langshift.plugin.unread import look
from langshift.plugin.versions import IndexInfo, fingerprint_of, live
from langshift.wording import pluralize

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
        open: opens encoder and shift, when the first text is to be encoded.
        vectors: hash of the language vectors, as stamps name them; None where there are none.
    """

    fields: FieldNames
    open: Callable[[], EmbeddingPipeline]
    vectors: str | None

    @cached_property
    def _pipeline(self) -> EmbeddingPipeline:
        return self.open()

    def transform(self) -> ClientTransform:
        """The way of a document, for a transfer."""
        return ClientTransform(self.convert, self.fields.vector, self.fields.stamp, self.fields.text_fields)

    def convert(self, documents: Sequence[StoredDocument], counterparts: Sequence[Source | None]) -> list[bytes]:
        """Documents with the vector of their text, and its stamp; without either where there is no text.

        Args:
            documents: as one version has them.
            counterparts: as the other has them by now: where text and language are the same, its vector and stamp stay.

        Raises:
            LangshiftError: the encoder cannot be opened, or fails.
        """
        sources = [parse_source(document.source) for document in documents]
        made = [self._reused(source, there) for source, there in zip(sources, counterparts, strict=True)]
        todo = [number for number, one in enumerate(made) if one is None]
        for number, encoded in zip(todo, self.encode([sources[number] for number in todo]), strict=True):
            made[number] = encoded
        vector, stamp = self.fields.vector, self.fields.stamp
        return [
            edit_source(
                document.source,
                {**texts_in_normal_form(source, self.fields), vector: _json(one.vector), stamp: _json(one.stamp)},
            )
            for document, source, one in zip(documents, sources, made, strict=True)
            if one is not None
        ]

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


def _json(value: object) -> bytes | None:
    return None if value is None else orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


class ReencodeResult(NamedTuple):
    """A version with vectors of another encoder.

    Attributes:
        done: what the transfer did.
        without_vector: documents of the live version that have none.
        notes: what is left to do, in sentences.
    """

    done: TransferResult
    without_vector: int
    notes: Sequence[str] = ()


def reencode(
    client: OpenSearch,
    name: str,
    wanted: PipelineOptions,
    *,
    max_refused: float = MAX_REFUSED,
    patience: float = 300,
    watch: TransferListener = lambda _: None,
) -> ReencodeResult:
    """Make a version with the vectors of another encoder from the live one, and let the alias stand for it.

    Killed at any moment, it leaves the version before live and complete, and goes on when it is run again.

    Args:
        client: the cluster.
        name: the alias.
        wanted: encoder, language vectors and scales; languages are limited as the index limits them.
        max_refused: the largest share of the documents that may be left without the vector that they have.
        patience: seconds to wait for a cluster that takes nothing.
        watch: told how far it is.

    Raises:
        UsageError: what is asked for cannot be used together.
        FingerprintError: the vectors were fitted with another encoder.
        ClusterError: there is no such index, or the cluster does not do its part.
        LangshiftError: the encoder fails.
    """
    # A version that is named by itself is refused: others stand behind the alias by and by.
    left = run.finish_abandoned(client, name)
    index = live(client, name)
    if is_given(wanted.encoder):
        raise UsageError(
            f"The encoder {wanted.encoder} encodes no texts: name the one that the new version is to have, such as "
            "e5-small, st:NAME_OR_PATH or http:URL#MODEL."
        )
    pipeline = replace(wanted, languages=index.fingerprint.languages).open(None)
    # Languages are not detected anew.
    fingerprint = replace(pipeline.fingerprint(), detector=index.fingerprint.detector)
    # By what a later run knows a version that it may go on with; which langshift begins does not matter.
    requested = {field: value for field, value in fingerprint.to_dict().items() if field != "langshift"}
    if not index.fingerprint.differences(fingerprint):
        run.clear_abandoned(client, name)
        # One that was killed right after the swap has just been finished: that is what was asked for.
        finished = left is not None and left.requested == requested
        done = left if left is not None and finished else TransferResult(name, index.index, index.index, requested)
        return ReencodeResult(replace(done, documents=index.documents), _without_vector(client, index.index, index))
    require_blockable(index.index, metadata.read_settings(client, index.index), "reencode")
    body, notes = _body(client, index, pipeline, fingerprint)
    hash_ = pipeline.debias.vectors.hash if pipeline.debias.vectors else None
    document_encoder = DocumentEncoder(index.fields, lambda: pipeline, hash_)

    def gate(version: str) -> None:
        # Asked only now, as somebody may have put it there meanwhile.
        shift = stored_shift.of_debias(pipeline.debias)
        pipelines.inherit_pipeline(client, index.index, version, shift, index.fields)
        _require_vectors(client, index, version, document_encoder, pipeline.encoder.id)
        _require_as_many_vectors(client, index, version, wanted.encoder, max_refused)

    plan = TransferPlan(name, body, requested, document_encoder.transform(), "reencode")
    done = run.transfer(client, plan, watch=watch, gate=gate, patience=patience)
    notes += unread_in_words(fingerprint.encoder, look(client, done.index, index.languages), index.fields.entry)
    return ReencodeResult(done, _without_vector(client, done.index, index), notes)


def _without_vector(client: OpenSearch, version: str, index: IndexInfo) -> int:
    query = {"bool": {"must_not": [{"exists": {"field": index.fields.vector}}]}}
    return int(client.count(index=version, body={"query": query})["count"])


def _body(
    client: OpenSearch, index: IndexInfo, pipeline: EmbeddingPipeline, fingerprint: Fingerprint
) -> tuple[dict[str, Any], list[str]]:
    """The new version's body, and what people have to know of it."""
    body = copied_body(client, index.index)
    mappings, settings = body["mappings"], body["settings"]["index"]
    meta, notes = mappings["_meta"], []
    field = mapped(mappings, index.fields.vector)
    assert isinstance(field, dict)  # noqa: S101 - it is a part of the body
    field["dimension"] = fingerprint.dimension
    _, now = metadata.read_mappings_and_settings(client, index.index)
    keep_norms(settings, engine_of(mappings, now, index.fields.vector))
    for part in (metadata.VECTORS, metadata.UNREAD, metadata.ANCHORS):
        meta.pop(part, None)
    meta |= {metadata.FINGERPRINT: fingerprint.to_dict(), **stored_shift.to_metadata(pipeline.debias)}
    if (there := pipelines.installed(client, index.index)) is not None:
        # The new version gets one of its own, when it is complete.
        del settings["default_pipeline"]
        first = f", and so must the pipeline {there.first.name}" if there.first else ""
        notes.append(f"Clients that write vectors to {index.name} must now send those of {fingerprint.encoder}{first}.")
    require_engine(client, body)
    return body, notes


def _require_as_many_vectors(
    client: OpenSearch, index: IndexInfo, version: str, encoder: str, max_refused: float
) -> None:
    """Refuse a version in which searches would miss what they find now.

    Raises:
        ClusterError: too many documents have no vector there, and have one in the live version.
    """
    lost = _without_vector(client, version, index) - _without_vector(client, index.index, index)
    documents = int(client.count(index=version)["count"])
    if documents and lost / documents > max_refused:
        raise ClusterError(
            f"{lost:,} of {pluralize(documents, index.fields.entry)} would be left without a vector, because they have "
            f"no text or {encoder} makes no usable vector of it, so {index.name} still points to {index.index}: "
            f"that is more than the share of {max_refused:g} that --max-refused allows."
        )


# Each is encoded again; batches and numeric precision of a server change a vector by far less than this part of its
# norm, and another text by far more.
_SAMPLED, _TOLERANCE = 16, 0.02


def _require_vectors(
    client: OpenSearch, index: IndexInfo, version: str, document_encoder: DocumentEncoder, encoder: str
) -> None:
    """Encode a sample of the new version's documents again, before writers wait, and compare.

    Raises:
        ClusterError: a vector is another.
    """
    body = {"size": _SAMPLED, "query": metadata.random_order(), **WHOLE}
    hits = client.search(index=version, body=body)["hits"]["hits"]
    for hit, made in zip(hits, document_encoder.encode([hit["_source"] for hit in hits]), strict=True):
        stored = vector_at(hit["_source"], index.fields.vector)
        if stored is None and made.vector is not None and is_left_out(client, version, index.fields.vector, hit["_id"]):
            raise ClusterError(left_out(version, index.fields.vector))
        norm = 0.0 if made.vector is None else np.linalg.norm(made.vector)
        if not distance(stored, made.vector) <= _TOLERANCE * norm:
            raise ClusterError(
                f"The vector of document {hit['_id']} in {version} is not the one that {encoder} gives for its text, "
                f"so {index.name} still points to {index.index}: check that the encoder always gives the same vector "
                "for the same text, then run the command again."
            )


def reencoded_back(
    client: OpenSearch, index: str, before: str, *, encoder: str | None = None, trust_remote_code: bool = False
) -> ClientTransform:
    """How documents that were written since a reencode become documents of the version before.

    Its encoder is opened only if a text is to be encoded: what a document's update leaves as it was keeps its vector.

    Args:
        client: the cluster.
        index: the live version.
        before: the version before.
        encoder: where its encoder is now; None for where it was when the version was made.
        trust_remote_code: whether to run code that comes with its model.
    """
    meta = metadata.read_metadata(client, before)
    made, fields = fingerprint_of(before, meta), FieldNames.from_meta(meta)
    if pipelines.installed(client, index) is not None:
        # Clients go on writing through the alias, also where the live one alone has got a pipeline.
        pipelines.inherit_pipeline(client, index, before, stored_shift.from_metadata(meta, before), fields)

    def open_pipeline() -> EmbeddingPipeline:
        begin = f"What was written to {index} must be encoded with {made.encoder} for {before}"
        if is_given(made.encoder):
            raise UsageError(
                f"{begin}, but these vectors came with the data, and nothing here can make them: use "
                "`langshift reencode` with an encoder that can."
            )
        try:
            debias = stored_shift.of_documents(meta, before)
            opened = open_encoder(
                name := encoder or made.encoder,
                trust_remote_code=trust_remote_code,
                named_by="" if encoder else f"The index {before}",
                reading=AS_KNOWN.of(made, name),
            )
            installed = replace(made, **identity(opened))
            made.require_same(installed, before, "make the same encoder available again")
        except LangshiftError as error:
            raise error.reworded(f"{begin}, so nothing was changed: {error.sentence}") from error
        return EmbeddingPipeline(opened, debias, open_detector().limited(made.languages))

    return DocumentEncoder(fields, open_pipeline, made.vectors).transform()

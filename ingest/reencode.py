"""A new version of an index out of the texts that it holds, encoded by another model; and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from opensearchpy import OpenSearch

from langshift.debias.detector import open_detector
from langshift.debias.encoder_languages import unread_in_words
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import AS_KNOWN, identity, is_given
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.ingest.adopt.adopt import keep_norms
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.document_encoder import DocumentEncoder
from langshift.ingest.publication import MAX_REFUSED
from langshift.ingest.representations import OFF, Representation, representation_of
from langshift.plugin import metadata, pipelines, representations, stored_shift
from langshift.plugin.index_body import copied_body, engine_of, map_page, mapped, require_engine
from langshift.plugin.index_sample import any_lacking, lacking_in_sample, random_order, unread_of
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.representations import SPARSE, TOKENS, Kept, SparseWeights, TokenVectors
from langshift.plugin.retune import require_blockable
from langshift.plugin.stored_vector import WHOLE, distance, is_left_out, left_out, vector_at
from langshift.plugin.transfer import run
from langshift.plugin.transfer.state import ClientTransform, TransferListener, TransferPlan, TransferResult
from langshift.plugin.versions import IndexInfo, fingerprint_of, live
from langshift.plugin.whole_view import require_whole_view
from langshift.wording import pluralize


class ReencodeResult(NamedTuple):
    """A version with vectors of another encoder, or with something else beside them.

    Attributes:
        done: what the transfer did.
        without_vector: documents of the live version that have none.
        encoded: whether vectors are others than before.
        beside: what was asked for beside vectors, in words, such as ``no vectors of tokens``.
        notes: what is left to do, in sentences.
    """

    done: TransferResult
    without_vector: int
    encoded: bool = True
    beside: Sequence[str] = ()
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

    Or one with the same vectors, and with something else beside them. Killed at any moment, it leaves the version
    before live and complete, and goes on when it is run again.

    Args:
        client: the cluster.
        name: the alias.
        wanted: encoder, language vectors and scales; an empty encoder leaves vectors as they are. Languages are limited
            as the index limits them. And what is to be kept beside vectors: what is not named stays as it is, and
            ``off`` removes it.
        max_refused: the largest share of the documents that may be left without the vector that they have, or without
            what is kept beside it.
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
    for encoder in (wanted.encoder, wanted.sparse, wanted.tokens):
        if encoder and is_given(encoder):
            raise UsageError(
                f"The encoder {encoder} encodes no texts: name the one that the new version is to have, such as "
                "e5-small, st:NAME_OR_PATH or http:URL#MODEL."
            )
    pipeline, fingerprint = None, index.fingerprint
    if wanted.encoder:
        pipeline = replace(wanted, languages=fingerprint.languages, sparse=None, tokens=None).open(None)
        # Languages are not detected anew.
        fingerprint = replace(pipeline.fingerprint(), detector=fingerprint.detector)
        if not index.fingerprint.differences(fingerprint):
            pipeline = None
    beside = _Beside.planned(client, index, wanted)
    # By what a later run knows a version that it may go on with; which langshift begins does not matter.
    requested = {field: value for field, value in fingerprint.to_dict().items() if field != "langshift"}
    requested |= {kept.option[2:]: representations.to_metadata([kept])[kept.key] for kept in beside.kept.values()}
    said: dict[str, Any] = {"encoded": pipeline is not None, "beside": beside.in_words}
    if pipeline is None and not beside.is_another(client, index):
        run.clear_abandoned(client, name)
        # One that was killed right after the swap has just been finished: that is what was asked for.
        finished = left is not None and left.requested == requested
        done = left if left is not None and finished else TransferResult(name, index.index, index.index, requested)
        without = _without_vector(client, index.index, index)
        return ReencodeResult(replace(done, documents=index.documents), without, **said)
    require_blockable(index.index, metadata.read_settings(client, index.index), "reencode")
    require_whole_view(client, index.index, "a reencode")
    body, notes = _body(client, index, pipeline, fingerprint, beside)
    encoder_ = DocumentEncoder(
        index.fields,
        None if pipeline is None else lambda: pipeline,
        fingerprint.vectors,
        beside.made,
        beside.same,
        beside.removed,
    )

    def gate(version: str) -> None:
        # Asked only now, as somebody may have put it there meanwhile.
        shift = stored_shift.read(client, version)
        pipelines.inherit_pipeline(client, index.index, version, shift, index.fields)
        _require_sample(client, index, version, encoder_, fingerprint.encoder)
        _require_as_many(client, index, version, encoder_, fingerprint.encoder, max_refused)

    plan = TransferPlan(name, body, requested, encoder_.transform(), "reencode")
    done = run.transfer(client, plan, watch=watch, gate=gate, patience=patience)
    if pipeline is not None:
        notes += unread_in_words(
            fingerprint.encoder, unread_of(client, done.index, index.languages), index.fields.entry
        )
    return ReencodeResult(done, _without_vector(client, done.index, index), notes=notes, **said)


class _Beside(NamedTuple):
    """What a new version keeps of its texts beside their vectors.

    Attributes:
        kept: all of it, by its keys under ``_meta``.
        made: what was asked for.
        same: the fields of ``made`` in which the live version has the same.
        removed: fields of the live version that the new one lacks.
        in_words: what was asked for.
    """

    kept: dict[str, Kept]
    made: list[Representation]
    same: list[str]
    removed: tuple[str, ...]
    in_words: list[str]

    @classmethod
    def planned(cls, client: OpenSearch, index: IndexInfo, wanted: PipelineOptions) -> _Beside:
        """Put together what is asked for.

        Raises:
            UsageError: an encoder cannot be used, or a field of the index is in the way.
            LangshiftError: an encoder's model cannot be loaded, or its server does not answer as it should.
        """
        before: dict[str, Kept] = {one.key: one for one in index.beside}
        found, _ = metadata.read_mappings_and_settings(client, index.index)
        kept, made, same = dict(before), [], []
        for one in wanted.open_beside():
            there = before.get(one.kept.key)
            if there is not None:
                one = one.at(there.field)
                same += [there.field] if representations.is_same(there, one.kept) else []
            elif mapped(found, one.kept.field):
                raise UsageError(
                    f"Index {index.index} has a field {one.kept.field!r} of its own, where {one.kept.what} would be "
                    "kept: rename it in the corpus, and load that again."
                )
            kept[one.kept.key] = one.kept
            made.append(one)
        off = [kind for kind, name in ((SparseWeights, wanted.sparse), (TokenVectors, wanted.tokens)) if name == OFF]
        removed = tuple(kept.pop(kind.key).field for kind in off if kind.key in kept)
        words = [representations.in_words(one.kept) for one in made] + [f"no {kind.what}" for kind in off]
        return cls(kept, made, same, removed, words)

    def is_another(self, client: OpenSearch, index: IndexInfo) -> bool:
        """Whether the live version has something else beside its vectors, or not in all documents."""
        if self.removed or len(self.same) < len(self.made):
            return True
        client.indices.refresh(index=index.index)
        return any(any_lacking(client, index.index, field, index.fields.vector) for field in self.same)


def _without_vector(client: OpenSearch, version: str, index: IndexInfo) -> int:
    query = {"bool": {"must_not": [{"exists": {"field": index.fields.vector}}]}}
    return int(client.count(index=version, body={"query": query})["count"])


def _body(
    client: OpenSearch, index: IndexInfo, pipeline: EmbeddingPipeline | None, fingerprint: Fingerprint, beside: _Beside
) -> tuple[dict[str, Any], list[str]]:
    """The new version's body, and what people have to know of it; the pipeline is None where vectors stay."""
    body = copied_body(client, index.index)
    mappings, settings = body["mappings"], body["settings"]["index"]
    meta, notes = mappings["_meta"], list[str]()
    installed = pipelines.installed(client, index.index)
    if installed is not None:
        # The new version gets one of its own, when it is complete.
        del settings["default_pipeline"]
    for key in (SPARSE, TOKENS):
        meta.pop(key, None)
    meta |= representations.to_metadata(beside.kept.values())
    for path in beside.removed:
        metadata.remove_at(mappings, f"properties.{path.replace('.', '.properties.')}")
    for one in beside.kept.values():
        if not mapped(mappings, one.field):
            metadata.put_at(mappings, f"properties.{one.field}", {"type": one.field_type})
    if pipeline is None:
        return body, notes
    field = mapped(mappings, index.fields.vector)
    assert isinstance(field, dict)  # noqa: S101 - it is a part of the body
    field["dimension"] = fingerprint.dimension
    _, now = metadata.read_mappings_and_settings(client, index.index)
    keep_norms(settings, engine_of(mappings, now, index.fields.vector))
    for part in (metadata.VECTORS, metadata.UNREAD, metadata.ANCHORS):
        meta.pop(part, None)
    meta |= {metadata.FINGERPRINT: fingerprint.to_dict(), **stored_shift.to_metadata(pipeline.debias)}
    if installed is not None:
        first = f", and so must the pipeline {installed.first.name}" if installed.first else ""
        notes.append(f"Clients that write vectors to {index.name} must now send those of {fingerprint.encoder}{first}.")
    require_engine(client, body)
    return body, notes


def _require_as_many(
    client: OpenSearch,
    index: IndexInfo,
    version: str,
    document_encoder: DocumentEncoder,
    encoder: str,
    max_refused: float,
) -> None:
    """Refuse a version in which searches would miss what they find now, or could find.

    Raises:
        ClusterError: too many documents have no vector there, and have one in the live version; or lack what is kept
            beside it.
    """
    documents = int(client.count(index=version)["count"])
    # What is missing, and why -> in how many, of how many.
    lost = {}
    if document_encoder.open is not None:
        count = _without_vector(client, version, index) - _without_vector(client, index.index, index)
        lost["a vector", f"{encoder} makes no usable vector of it"] = count, documents
    for one in document_encoder.beside:
        sampled, lacking = lacking_in_sample(client, version, one.kept.field, index.fields.vector)
        lost[one.kept.what, f"{one.kept.encoder} makes none of it"] = lacking, sampled
    for (what, why), (count, total) in lost.items():
        if total and count / total > max_refused:
            sample = "a sample of " if total < documents else ""
            raise ClusterError(
                f"{count:,} of {sample}{pluralize(total, index.fields.entry)} would be left without {what}, because "
                f"they have no text or {why}, so {index.name} still points to {index.index}: that is more than the "
                f"share of {max_refused:g} that --max-refused allows."
            )


# Each is encoded again; batches and numeric precision of a server change a vector by far less than this part of its
# norm, and another text by far more.
_SAMPLED, _TOLERANCE = 16, 0.02


def _require_sample(
    client: OpenSearch, index: IndexInfo, version: str, document_encoder: DocumentEncoder, encoder: str
) -> None:
    """Encode a sample of the new version's documents again, before writers wait, and compare.

    Raises:
        ClusterError: a vector is another, or what is kept beside it.
    """
    body = {"size": _SAMPLED, "query": random_order(), **WHOLE}
    hits = client.search(index=version, body=body)["hits"]["hits"]
    sources = [hit["_source"] for hit in hits]

    def differs(what: str, by: str, document: str) -> ClusterError:
        return ClusterError(
            f"The {what} of document {document} in {version} is not the one that {by} gives for its text, "
            f"so {index.name} still points to {index.index}: check that the encoder always gives the same {what} "
            "for the same text, then run the command again."
        )

    for hit, made in zip(hits, document_encoder.encode(sources), strict=True) if document_encoder.open else ():
        stored = vector_at(hit["_source"], index.fields.vector)
        if stored is None and made.vector is not None and is_left_out(client, version, index.fields.vector, hit["_id"]):
            raise ClusterError(left_out(version, index.fields.vector))
        norm = 0.0 if made.vector is None else np.linalg.norm(made.vector)
        if not distance(stored, made.vector) <= _TOLERANCE * norm:
            raise differs("vector", encoder, hit["_id"])
    # What documents had before may be of a former text of theirs, where clients have changed it: as vectors may be.
    for one in (each for each in document_encoder.beside if each.kept.field not in document_encoder.same):
        values = one.of([document_encoder.text(source) for source in sources])
        for hit, value in zip(hits, values, strict=True):
            if not one.difference(value_at(hit["_source"], one.kept.field), value) <= _TOLERANCE:
                raise differs(f"value in {one.kept.field!r}", one.kept.encoder, hit["_id"])


def reencoded_back(client: OpenSearch, index: str, before: str, *, encoder: str | None = None) -> ClientTransform:
    """How documents that were written since a reencode become documents of the version before.

    Its encoder is opened only if a text is to be encoded: what a document's update leaves as it was keeps its vector.

    Args:
        client: the cluster.
        index: the live version.
        before: the version before.
        encoder: where its encoder is now; None for where it was when the version was made.
    """
    meta, now = metadata.read_metadata(client, before), metadata.read_metadata(client, index)
    made, fields = fingerprint_of(before, meta), FieldNames.from_meta(meta)
    there, here = representations.stored_beside(meta), representations.stored_beside(now)
    map_page(client, before, fields)
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
                named_by="" if encoder else f"The index {before}",
                reading=AS_KNOWN.of(made, name),
            )
            installed = replace(made, **identity(opened))
            made.require_same(installed, before, "make the same encoder available again")
        except LangshiftError as error:
            raise error.reworded(f"{begin}, so nothing was changed: {error.sentence}") from error
        return EmbeddingPipeline(opened, debias, open_detector().limited(made.languages))

    beside = [
        representation_of(kept, named_by=f"The index {before}")
        for key, kept in there.items()
        if not representations.is_same(kept, here.get(key)) or kept.field != here[key].field
    ]
    fields_there = {kept.field for kept in there.values()}
    removed = tuple(kept.field for kept in here.values() if kept.field not in fields_there)
    # Where a reencode has only changed what is kept beside vectors, these are the same.
    opener = open_pipeline if made.differences(fingerprint_of(index, now)) else None
    return DocumentEncoder(fields, opener, made.vectors, beside, removed=removed).transform()

"""Adopting an index: all that stands against it is asked before anything is written; then it is loaded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.debias.encoders.base import NORM_TOLERANCE, Matrix, VectorSpec, have_norm_1
from langshift.debias.encoders.precomputed import NORM_SAMPLE
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.ingest.adopt.fields import (
    add_views,
    analyzed_languages,
    checked_fields,
    free_fields,
    one_vector_each,
    require_used,
    sampled_languages,
)
from langshift.ingest.adopt.reader import IndexReader, OldIndex, find_index, open_reader
from langshift.ingest.adopt.transform import (
    IndexDocuments,
    Norms,
    StoredDocumentBuilder,
    document_of,
    is_in_list,
    strings_at,
)
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.documents import Document
from langshift.ingest.load import load_source
from langshift.ingest.progress import LoadObserver, LoadSummary, no_progress
from langshift.ingest.publication import LoadNotPublished
from langshift.ingest.resume import LoadOptions, LoadStrategy
from langshift.plugin import index_body, live_writes, metadata
from langshift.plugin.metadata import USUAL, FieldNames, value_at
from langshift.plugin.raw_documents import decode_hit, parse_source
from langshift.plugin.stored_vector import left_out, masked
from langshift.plugin.versions import version_behind
from langshift.plugin.whole_view import require_whole_view
from langshift.reporting import note
from langshift.server_errors import Unreadable
from langshift.wording import pluralize

_FINAL = "final_pipeline"


def body_of(client: OpenSearch, old: OldIndex, fields: FieldNames, pipeline: EmbeddingPipeline) -> dict[str, Any]:
    """The body of the new version, complete; see ``open_for_writing``."""
    body = index_body.copied_body(client, old.index)
    mappings, own = body["mappings"], index_body.own_mappings()["properties"]
    names = {fields.language: USUAL.language, fields.confidence: USUAL.confidence, fields.stamp: USUAL.stamp}
    add_views(mappings, fields)
    mappings.setdefault("properties", {}).update({name: own[usual] for name, usual in names.items()})
    mappings["_meta"] |= {
        metadata.FINGERPRINT: pipeline.fingerprint().to_dict(),
        metadata.FIELDS: fields.to_dict(),
        metadata.ORIGIN: metadata.new_origin("adopt", old.index, old.uuid).to_dict(),
        **pipeline.to_metadata(),
    }
    vector_field = index_body.engine_of(old.mappings, old.settings, fields.vector)
    keep_norms(body["settings"]["index"], vector_field)
    field = index_body.mapped(mappings, fields.vector)
    assert isinstance(field, dict)  # noqa: S101 - it is a part of the body
    # Shifted vectors have no common length, and their components are no whole numbers.
    field.pop("data_type", None)
    index_body.state_compression(field)
    if vector_field is not None and vector_field.space != index_body.COSINE:
        field.pop("space_type", None)
        field.get("method", field)["space_type"] = index_body.COSINE
    return body


def keep_norms(settings: dict[str, Any], vector_field: index_body.VectorField | None) -> None:
    """Have vectors come back from the new version as they are written, by switching derived source off where needed.

    What faiss returns would have norm 1 otherwise, and a later change of alpha would be wrong without a word; of a
    field with capital letters in its name, nothing would come back.

    Args:
        settings: of the new version, the part ``index``; changed in place.
        vector_field: how the old index keeps its vectors.
    """
    if vector_field is not None and (vector_field.engine != index_body.LUCENE or vector_field.mixed_case):
        settings.pop(index_body.DERIVED.rpartition(".")[0], None)
        settings[index_body.DERIVED] = False


class AdoptableIndex(NamedTuple):
    """An index that can be adopted, open for reading.

    Attributes:
        old: the index.
        reader: reads it.
        fields: the names of its fields, and of those that its documents are to get.
        pipeline: how its vectors were made, and are moved.
        vector_spec: what a sample of its vectors tells.
        norms: those that its vectors may have; None for any.
    """

    old: OldIndex
    reader: IndexReader
    fields: FieldNames
    pipeline: EmbeddingPipeline
    vector_spec: VectorSpec
    norms: Norms | None = None


@contextmanager
def open_for_adoption(
    client: OpenSearch,
    name: str,
    there: FieldNames,
    pipeline_options: PipelineOptions,
    patience: float,
    *,
    analyze: bool = False,
) -> Iterator[AdoptableIndex]:
    """Open an index for reading, and see that it can be adopted; nothing is written.

    Args:
        client: the cluster.
        name: an index, or an alias over one.
        there: the names of its fields: of vectors, of text (at least one), and of a document's language and of weights
            of tokens if it has any; ``group`` is empty where none is named.
        pipeline_options: the encoder that made the vectors, and how they are moved; and that of the weights.
        patience: seconds for which a cluster that does not answer is waited for.
        analyze: whether its texts are to get the analyzers of the languages that a sample of its documents is in.

    Raises:
        UsageError: it cannot be adopted; saying why and what to do.
        FingerprintError: the language vectors were fitted with another encoder.
    """
    old = find_index(client, name)
    if metadata.FINGERPRINT in old.mappings.get("_meta", {}):
        raise UsageError(
            f"Index {old.index} is already managed by langshift: change its shift with `langshift retune`."
        )
    there = checked_fields(old, there)
    with open_reader(client, old, there.vector, patience) as reader:
        sample = reader.sample(NORM_SAMPLE, {"exists": {"field": there.vector}})
        if not sample:
            raise UsageError(f"No document of {old.index} has a vector in {there.vector!r}: there is nothing to shift.")
        unmapped = {name for hit in sample for name in parse_source(decode_hit(hit).source)}
        fields = free_fields(old, there, unmapped)
        vector_spec, norms = _sampled_vector_spec(old, sample, fields)
        pipeline = pipeline_options.open(vector_spec)
        if fields.sparse is not None:
            pipeline = replace(pipeline, beside=tuple(one.at(fields.sparse) for one in pipeline.beside))
        _require_encoder(old, there.vector, pipeline, vector_spec)
        require_used(old, sample, fields)
        _require_sparse_encoder(old, sample, fields, pipeline)
        if analyze or fields.declared_language is not None:
            languages = sampled_languages(old, sample, fields, pipeline)
            if analyze:
                fields = analyzed_languages(old, fields, languages)
        yield AdoptableIndex(old, reader, fields, pipeline, vector_spec, norms)


_COMPARED = 16  # documents


def _require_sparse_encoder(
    old: OldIndex, sample: Sequence[bytes], fields: FieldNames, pipeline: EmbeddingPipeline
) -> None:
    """Refuse an encoder of weights that makes other tokens of the texts of a sample than the index has there."""
    for one in pipeline.beside:
        documents = [] if one.is_given else [parse_source(decode_hit(hit).source) for hit in sample]
        some = [source for source in documents if value_at(source, one.kept.field)][:_COMPARED]
        texts = [" ".join(text for name in fields.texts for text in strings_at(source, name)) for source in some]
        made = zip(some, one.of(texts), strict=True)
        if some and not any({*value_at(source, one.kept.field)} & {*(weights or ())} for source, weights in made):
            raise UsageError(
                f"{one.kept.encoder} makes none of the tokens that {old.index} has in {one.kept.field!r}: name the "
                "encoder that made them with --sparse, or --sparse given if it is not available here."
            )


def require_name(client: OpenSearch, old: OldIndex, name: str, options: LoadOptions) -> None:
    """Refuse a name that is taken, unless a new version is to be put there.

    Raises:
        UsageError: it is.
        ClusterError: what is there is not an alias over versions.
    """
    live = version_behind(client, name)
    if live == old.index:
        raise UsageError(f"{name} points to {live}, the index to be adopted: choose another --name.")
    if live is not None and options.if_exists == "fail":
        held = pluralize(client.count(index=live)["count"], "document")
        raise UsageError(
            f"Index {name} already exists ({live}, {held}): replace it with --if-exists replace, or create a new "
            "version of it with --if-exists new-version."
        )


def adopt(
    client: OpenSearch, opened: AdoptableIndex, name: str, options: LoadOptions, watch: LoadObserver | None = None
) -> LoadSummary:
    """Write the documents of an index to a new version.

    Args:
        client: the cluster.
        opened: the index.
        name: the new version's alias.
        options: how the load is done.
        watch: looks on.

    Raises:
        LoadNotPublished: what was written is complete, but not live: too much was refused.
        LangshiftError: it broke off; nothing of the new version is left, and the old index is as it was.
    """
    old, fields, pipeline = opened.old, opened.fields, opened.pipeline
    try:
        require_whole_view(client, old.index, "adopting it")
        body = body_of(client, old, fields, pipeline)
        # Until it is loaded: its documents have been through the pipeline once.
        during = {_FINAL: "_none"} if _FINAL in body["settings"]["index"] else {}
        kind = LoadStrategy(partial(StoredDocumentBuilder, fields=fields), body, during, keeps_versions=True)
        source = IndexDocuments(opened.reader, fields, opened.vector_spec, opened.norms)
        summary = load_source(client, source, name, pipeline, no_progress, options, watch, kind)
    except (UsageError, LoadNotPublished):
        raise
    except LangshiftError as error:
        raise error.reworded(f"{error.sentence} Index {old.index} is unchanged: run the command again.") from error
    except KeyboardInterrupt:
        note(f"Index {old.index} is unchanged: run the same command again.")
        raise
    _note_late_writes(client, opened.reader, name)
    return summary


def _note_late_writes(client: OpenSearch, reader: IndexReader, name: str) -> None:
    """Say that the old index was written to since it was read."""
    old = reader.old.index
    with suppress(OpenSearchException, Unreadable):
        if writes := live_writes.writes_since(client, old, reader.checkpoint):
            note(
                f"{old} has had {pluralize(writes, 'write')} since it was read, which {name} lacks: let nobody write "
                f"to {old} any more, and adopt it again with --if-exists replace."
            )


def _sampled_vector_spec(old: OldIndex, sample: Sequence[bytes], fields: FieldNames) -> tuple[VectorSpec, Norms | None]:
    dimension = int(index_body.mapped(old.mappings, fields.vector)["dimension"])
    found = [document_of(hit, fields, dimension) for hit in sample]
    vectors = [one.embedding for one in found if isinstance(one, Document) and one.embedding is not None]
    if not vectors:
        if any(is_in_list(hit, fields.vector) for hit in sample):
            raise UsageError(
                f"The documents of {old.index} hold {fields.vector!r} in a list of objects, so one may have several: "
                f"{one_vector_each(fields.vector.rpartition('.')[0])}."
            )
        values = [value_at(parse_source(decode_hit(hit).source), fields.vector) for hit in sample]
        if all(value is None for value in values):
            raise ClusterError(left_out(old.index, fields.vector))
        why = next(filter(None, (masked(fields.vector, value) for value in values)), "")
        raise UsageError(
            f"The documents of {old.index} do not hold {fields.vector!r} as one list of {dimension} numbers: "
            f"{why or 'such vectors cannot be shifted'}."
        )
    return VectorSpec(dimension, have_norm_1(np.stack(vectors))), _norms(old, fields.vector, np.stack(vectors))


# Beyond this share of a sample, an index is refused whose vectors differ in length; of fewer each is refused.
_OFF = 0.01
# What rounding components to whole numbers changes of a vector's length, at most.
_BYTE_TOLERANCE = 0.01


def _norms(old: OldIndex, field: str, vectors: Matrix) -> Norms | None:
    """Which norms vectors must have to be ranked by cosine similarity as they were before; None for any.

    Raises:
        UsageError: those of the sample, shape (n, d), float32, do not have them.
    """
    vector_field = index_body.engine_of(old.mappings, old.settings, field)
    if vector_field is None or vector_field.space in (index_body.COSINE, None):
        return None
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    usual, tolerance = 1.0, NORM_TOLERANCE
    if str(index_body.mapped(old.mappings, field).get("data_type")).lower() == "byte":
        # Whole numbers have length 1 in no direction but those of the axes.
        usual, tolerance = float(np.median(lengths)), _BYTE_TOLERANCE
    norms = Norms(str(vector_field.space), usual * (1 - tolerance), usual * (1 + tolerance))
    off = sum(not norms.hold(vector) for vector in vectors)
    if not usual or off > _OFF * len(vectors):
        raise UsageError(
            f"The vectors in {field!r} of {old.index} are compared by {vector_field.space}, and {off:,} of "
            f"{len(vectors):,} of a sample do not have length {usual:.4g}: cosine similarity, which langshift uses, "
            "would rank them otherwise. If that is what you want, copy the index with _reindex into one whose "
            f'mapping has "space_type": "{index_body.COSINE}" (nothing is encoded again), and adopt the copy.'
        )
    return norms


def _require_encoder(old: OldIndex, vector: str, pipeline: EmbeddingPipeline, vector_spec: VectorSpec) -> None:
    encoder = pipeline.encoder
    remedy = "name the encoder that computed them with --encoder, or --encoder given if it is not available here"
    if encoder.dimension != vector_spec.dimension:
        raise UsageError(
            f"The vectors in {vector!r} of {old.index} have {vector_spec.dimension} dimensions, but those of "
            f"{encoder.id} have {encoder.dimension}: {remedy}."
        )
    if encoder.normalised == vector_spec.normalised:
        return
    vector_field = index_body.engine_of(old.mappings, old.settings, vector)
    if vector_field is not None and vector_field.comes_back_normalised:
        raise UsageError(
            f"Index {old.index} stores its vectors with the engine {vector_field.engine}, cosinesimil and derived "
            f"source, which returns them with norm 1 and not as {encoder.id} computed them: load the documents from "
            "their original source with `langshift ingest`."
        )
    theirs, own = ("norm 1", "other norms") if vector_spec.normalised else ("norms other than 1", "norm 1")
    raise UsageError(
        f"The vectors in {vector!r} of {old.index} have {theirs}, but those of {encoder.id} have {own}: {remedy}."
    )

"""Adopting an index: all that stands against it is asked before anything is written; then it is loaded."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
import numpy as np
from opensearchpy import OpenSearch

from langshift.debias import index_means
from langshift.debias.encoders import VectorSpec, have_norm_1
from langshift.debias.encoders.precomputed import NORM_SAMPLE
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.adopt.reader import IndexReader, OldIndex, find_index, open_reader
from langshift.ingest.adopt.transform import IndexDocuments, StoredDocumentBuilder, document_of
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.documents import Document
from langshift.ingest.load import load_source
from langshift.ingest.progress import LoadReporter, LoadSummary, no_progress
from langshift.ingest.resume import LoadOptions, LoadStrategy
from langshift.ingest.transform import detect_language
from langshift.output import note, pluralize
from langshift.plugin import metadata, stored_shift
from langshift.plugin.index_body import DERIVED, LUCENE, VectorField, copied_body, engine_of, mapped, own_mappings
from langshift.plugin.metadata import USUAL, FieldNames, Origin
from langshift.plugin.raw_documents import decode_hit, parse_source
from langshift.plugin.versions import version_behind

_FINAL = "final_pipeline"


def free_fields(old: OldIndex, there: FieldNames, unmapped: Collection[str]) -> FieldNames:
    """The names of the new version's fields: langshift's own are called otherwise where the old index has them.

    Args:
        old: the index.
        there: the names of the fields that the old index has.
        unmapped: fields that documents have beside those that the mapping knows.

    Raises:
        UsageError: the other names are taken, too.
    """
    taken = {*old.mappings.get("properties", {}), *unmapped}

    def free(usual: str) -> str:
        for name in (usual, f"langshift_{usual}"):
            if name not in taken:
                return name
        raise UsageError(
            f"Index {old.index} has fields named {usual!r} and 'langshift_{usual}', and langshift needs one of these "
            "names: copy the index with _reindex, renaming one of them, and adopt the copy."
        )

    own = {part: free(getattr(USUAL, part)) for part in ("language", "confidence", "stamp")}
    return msgspec.structs.replace(there, **own)


def body_of(client: OpenSearch, old: OldIndex, fields: FieldNames, pipeline: EmbeddingPipeline) -> dict[str, Any]:
    """The body of the new version, complete; see ``open_for_writing``."""
    body = copied_body(client, old.index)
    mappings, own = body["mappings"], own_mappings()["properties"]
    names = {fields.language: USUAL.language, fields.confidence: USUAL.confidence, fields.stamp: USUAL.stamp}
    mappings.setdefault("properties", {}).update({name: own[usual] for name, usual in names.items()})
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    mappings["_meta"] |= {
        metadata.FINGERPRINT: pipeline.fingerprint().to_dict(),
        "langshift_fields": fields.to_dict(),
        metadata.ORIGIN: Origin("adopt", old.index, old.uuid, (), at).to_dict(),
        **stored_shift.to_metadata(pipeline.debias, pipeline.preference),
    }
    keep_norms(body["settings"]["index"], engine_of(old.mappings, old.settings, fields.vector))
    return body


def keep_norms(settings: dict[str, Any], vector_field: VectorField | None) -> None:
    """Have vectors come back from the new version as they are written, by switching derived source off for faiss.

    What is read would have norm 1 otherwise, and a later change of alpha would be wrong without a word.

    Args:
        settings: of the new version, the part ``index``; changed in place.
        vector_field: how the old index keeps its vectors.
    """
    if vector_field is not None and vector_field.engine != LUCENE:
        settings.pop(DERIVED.rpartition(".")[0], None)
        settings[DERIVED] = False


_TEXTS = {"text", "keyword", "match_only_text", "wildcard", "constant_keyword"}
_SPACE = "cosinesimil"


def _require_vector(old: OldIndex, name: str) -> None:
    found, index = mapped(old.mappings, name), old.index
    if not found:
        raise UsageError(f"Index {index} has no field {name!r}: {_vectors_there(old)}.")
    if found.get("type") != "knn_vector":
        kind = found.get("type", "object")
        raise UsageError(f"The field {name!r} of {index} is of type {kind}, not knn_vector: {_vectors_there(old)}.")
    parents = accumulate(name.split(".")[:-1], "{}.{}".format)
    if nested := next((part for part in parents if mapped(old.mappings, part).get("type") == "nested"), None):
        raise UsageError(
            f"The field {name!r} of {index} is inside the nested field {nested!r}: only a document's own vector can "
            "be shifted, so index each part of a text as a document of its own."
        )
    kind = str(found.get("data_type", "float")).lower()
    if "dimension" not in found or kind != "float":
        problem = f"are of the data type {kind}" if "dimension" in found else "belong to a trained model"
        raise UsageError(f"The vectors in {name!r} of {index} {problem}: only float vectors can be shifted.")
    vector_field = engine_of(old.mappings, old.settings, name)
    assert vector_field is not None  # noqa: S101 - it is a knn_vector
    if vector_field.space != _SPACE:
        raise UsageError(
            f"The vectors in {name!r} of {index} are compared by {vector_field.space}, but langshift uses "
            "cosine similarity, and shifted vectors differ in length. Copy the index with _reindex into one whose "
            f'mapping has "space_type": "{_SPACE}" (nothing is encoded again), and adopt the copy.'
        )


def _require_string(old: OldIndex, name: str, option: str) -> None:
    found = mapped(old.mappings, name)
    if not found:
        raise UsageError(f"Index {old.index} has no field {name!r}: give {option} a field that its documents have.")
    kind = found.get("type", "object")
    if kind not in _TEXTS:
        raise UsageError(f"The field {name!r} of {old.index} is of type {kind}: give {option} a text or keyword field.")


def _vectors_there(old: OldIndex) -> str:
    names = sorted(_vectors(old.mappings, ""))
    if not names:
        return "it has no knn_vector field, so there is nothing to shift"
    return f"its knn_vector {'field is' if len(names) == 1 else 'fields are'} {', '.join(names)}"


def _vectors(part: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, found in part.get("properties", {}).items():
        if found.get("type") == "knn_vector":
            yield f"{place}{name}"
        yield from _vectors(found, f"{place}{name}.")


class AdoptableIndex(NamedTuple):
    """An index that can be adopted, open for reading.

    Attributes:
        old: the index.
        reader: reads it.
        fields: the names of its fields, and of those that its documents are to get.
        pipeline: how its vectors were made, and are moved.
        vector_spec: what a sample of its vectors tells.
    """

    old: OldIndex
    reader: IndexReader
    fields: FieldNames
    pipeline: EmbeddingPipeline
    vector_spec: VectorSpec


@contextmanager
def open_for_adoption(
    client: OpenSearch, name: str, there: FieldNames, pipeline_options: PipelineOptions, patience: float
) -> Iterator[AdoptableIndex]:
    """Open an index for reading, and see that it can be adopted; nothing is written.

    Args:
        client: the cluster.
        name: an index, or an alias over one.
        there: the names of its fields: of vectors, of text (at least one), and of a document's language if it has one.
        pipeline_options: the encoder that made the vectors, and how they are moved.
        patience: seconds for which a cluster that does not answer is waited for.

    Raises:
        UsageError: it cannot be adopted; saying why and what to do.
        FingerprintError: the language vectors were fitted with another encoder.
    """
    old = find_index(client, name)
    _require_vector(old, there.vector)
    for text in there.texts:
        _require_string(old, text, "--text-field")
    if there.declared_language is not None:
        _require_string(old, there.declared_language, "--language-field")
    with open_reader(client, old, there.vector, patience) as reader:
        sample = reader.sample(NORM_SAMPLE, {"exists": {"field": there.vector}})
        if not sample:
            raise UsageError(f"No document of {old.index} has a vector in {there.vector!r}: there is nothing to shift.")
        unmapped = {name for hit in sample for name in parse_source(decode_hit(hit).source)}
        fields = free_fields(old, there, unmapped)
        vector_spec = _sampled_vector_spec(old, sample, fields)
        pipeline = pipeline_options.open(vector_spec)
        _require_encoder(old, there.vector, pipeline, vector_spec)
        if pipeline.measures:
            pipeline = _measured(reader, fields, pipeline)
        yield AdoptableIndex(old, reader, fields, pipeline, vector_spec)


# An audit judges by other documents than these.
_SEED = 1


def _measured(reader: IndexReader, fields: FieldNames, pipeline: EmbeddingPipeline) -> EmbeddingPipeline:
    """The pipeline with language vectors that are adapted to documents of the index at random."""
    assert pipeline.debias.vectors is not None  # noqa: S101 - ``measures`` says so
    sums = index_means.EmbeddingSums(pipeline.debias.vectors)
    for hit in reader.sample(index_means.SAMPLE, {"exists": {"field": fields.vector}}, _SEED):
        document = document_of(hit, fields, pipeline.encoder.dimension)
        if isinstance(document, Document) and document.embedding is not None:
            sums.add(document.embedding[None], [detect_language(document, pipeline).language])
    return pipeline.adapted(sums)


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
    client: OpenSearch, opened: AdoptableIndex, name: str, options: LoadOptions, watch: LoadReporter | None = None
) -> LoadSummary:
    """Write the documents of an index to a new version.

    Args:
        client: the cluster.
        opened: the index.
        name: the new version's alias.
        options: how the load is done.
        watch: looks on.

    Raises:
        LangshiftError: it broke off; nothing of the new version is left, and the old index is as it was.
    """
    old, fields, pipeline = opened.old, opened.fields, opened.pipeline
    body = body_of(client, old, fields, pipeline)
    # Until it is loaded: its documents have been through the pipeline once.
    during = {_FINAL: "_none"} if _FINAL in body["settings"]["index"] else {}
    kind = LoadStrategy(partial(StoredDocumentBuilder, fields=fields), body, during, keeps_versions=True)
    source = IndexDocuments(opened.reader, fields, opened.vector_spec)
    try:
        return load_source(client, source, name, pipeline, no_progress, options, watch, kind)
    except UsageError:
        raise
    except LangshiftError as error:
        raise type(error)(f"{error} Index {old.index} is unchanged: run the command again.") from error
    except KeyboardInterrupt:
        note(f"Index {old.index} is unchanged: run the same command again.")
        raise


def _sampled_vector_spec(old: OldIndex, sample: Sequence[bytes], fields: FieldNames) -> VectorSpec:
    dimension = int(mapped(old.mappings, fields.vector)["dimension"])
    found = [document_of(hit, fields, dimension) for hit in sample]
    vectors = [one.embedding for one in found if isinstance(one, Document) and one.embedding is not None]
    if not vectors:
        raise UsageError(
            f"The documents of {old.index} do not hold {fields.vector!r} as one list of {dimension} numbers, or hold "
            "it in a list of objects: such vectors cannot be shifted."
        )
    return VectorSpec(dimension, have_norm_1(np.stack(vectors)))


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
    vector_field = engine_of(old.mappings, old.settings, vector)
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

"""Whether what an index holds is what its pipeline and NumPy make: checked on a sample of live documents."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from opensearchpy import OpenSearch

from langshift.debias.debiaser import is_shifted_by_language, shifted, undo
from langshift.errors import ClusterError
from langshift.files import batched
from langshift.languages import UNDETERMINED
from langshift.plugin import metadata, pipelines, shift_script
from langshift.plugin.index_sample import random_order, require_vectors_as_written
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.stored_shift import StoredShift, Vector, matching_tag, read
from langshift.plugin.stored_vector import vector_required
from langshift.plugin.versions import IndexInfo, live
from langshift.wording import pluralize

# Painless and NumPy round alike but for the last place of float32.
CLUSTER_DIFFERS = 2e-7
# What is stored was rounded to float32 once more on the way back and forth.
STORED_DIFFERS = 1e-6
# An encoder's own rounding, and that of a client that prints few digits.
_NORM_DIFFERS = 1e-3
_AT_ONCE = 100


@dataclass
class PipelineCheckResult:
    """What a sample of documents told. Differences are of components, relative to the norm of a document's vector.

    Attributes:
        documents: how many were compared.
        cluster: the largest difference between the pipeline's result and NumPy's.
        worst: id of the document with that.
        stored: the largest difference between what is stored and NumPy's result.
        parentless: documents of an index of chunks that do not get their own id for a parent, where they name none.
        other_language: documents that the pipeline shifts by another language than they were.
        renamed: id of one of them.
        off_norm: documents that have another norm than the encoder gives when their shift is taken back; None where
            the encoder does not give norm 1.
        strange: id of one of them.
        refused: documents that the pipeline refused.
        refusal: why it refused the first.
    """

    documents: int = 0
    cluster: float = 0.0
    worst: str | None = None
    stored: float = 0.0
    parentless: int = 0
    other_language: int = 0
    renamed: str | None = None
    off_norm: int | None = None
    strange: str | None = None
    refused: int = 0
    refusal: str | None = None


def compare(
    client: OpenSearch, index: IndexInfo, shift: StoredShift, installed: pipelines.InstalledPipeline, sample: int
) -> PipelineCheckResult:
    """Shift documents again, which were picked at random among those with a stamp of the index's making.

    Args:
        client: the cluster.
        index: the version.
        shift: how its documents are shifted.
        installed: its pipeline.
        sample: how many documents at most; fewer where one request to the index may not ask for so many.
    """
    fields = index.fields
    body = {
        "size": min(sample, metadata.window(metadata.read_settings(client, index.index))),
        "query": random_order(shift_script.matching_stamp_query(shift, fields)),
        "_source": [name for name in (fields.vector, fields.stamp, fields.language, fields.declared_language) if name],
    }
    result = PipelineCheckResult(off_norm=0 if index.fingerprint.normalised else None)
    hits = client.search(index=index.index, body=body)["hits"]["hits"]
    for some in batched(hits, _AT_ONCE):
        raws = [undo(_vector(hit, fields), _stamp(hit, fields), shift) for hit in some]
        sent = [_raw_document(hit, raw, index) for hit, raw in zip(some, raws, strict=True)]
        # Without what runs before the shift: that may make vectors of its own.
        own = {} if installed.first is None else {"pipeline": {"processors": pipelines.shift_steps(installed.body)}}
        answers = client.ingest.simulate(id=None if own else installed.name, body={"docs": sent, **own})["docs"]
        for hit, raw, answer in zip(some, raws, answers, strict=True):
            name, stamp = hit["_id"], _stamp(hit, fields)
            result.documents += 1
            if result.off_norm is not None and abs(float(np.linalg.norm(raw.astype(np.float64))) - 1) > _NORM_DIFFERS:
                result.off_norm, result.strange = result.off_norm + 1, result.strange or name
            stored = difference(_vector(hit, fields), shifted(raw, stamp, shift), raw)
            result.stored = max(result.stored, stored)
            if "doc" not in answer:
                result.refused += 1
                result.refusal = result.refusal or shift_script.reason(answer["error"])
                continue
            made, now = answer["doc"], _stamp(answer["doc"], fields)
            # What was sent names none.
            result.parentless += fields.parent is not None and value_at(made["_source"], fields.parent) != name
            cluster = difference(_vector(made, fields), shifted(raw, now, shift), raw)
            if cluster >= result.cluster:
                result.cluster, result.worst = cluster, name
            if _moved_by(now) != _moved_by(stamp):
                result.other_language, result.renamed = result.other_language + 1, result.renamed or name
    return result


def _moved_by(stamp: Mapping[str, Any]) -> str | None:
    """The tag of the language vector that a document lost; None where it lost none."""
    return stamp.get("language") if is_shifted_by_language(stamp) else None


def difference(one: Vector, other: Vector, raw: Vector) -> float:
    """The largest difference of two vectors' components, relative to the norm of the vector that both come from."""
    norm = float(np.linalg.norm(raw.astype(np.float64)))
    largest = float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max())
    return largest / norm if norm else largest


def _raw_document(hit: Mapping[str, Any], raw: Vector, index: IndexInfo) -> dict[str, Any]:
    fields, source = index.fields, hit["_source"]
    document_language = value_at(source, fields.language)
    own = matching_tag(_stamp(hit, fields).get("tag"), document_language)
    values = {fields.vector: raw.tolist(), fields.language: own or document_language}
    if fields.declared_language is not None:
        values[fields.declared_language] = value_at(source, fields.declared_language)
    made: dict[str, Any] = {}
    for path, value in values.items():
        metadata.put_at(made, path, value)
    return {"_index": index.index, "_id": hit["_id"], "_source": made}


def _vector(hit: Mapping[str, Any], fields: FieldNames) -> Vector:
    return vector_required(hit["_source"], fields.vector, hit["_index"])


def _stamp(hit: Mapping[str, Any], fields: FieldNames) -> Mapping[str, Any]:
    return dict(value_at(hit["_source"], fields.stamp))


class PipelineVerification(NamedTuple):
    """Whether what an index holds is what its pipeline and NumPy make.

    Attributes:
        version: what was looked at.
        pipeline: what is installed.
        compared: what a sample of its documents told.
        stamps: what the stamps of all documents tell.
        und: documents with a vector in an unknown language.
        wrong: one sentence for each thing that differs, with what to do.
    """

    version: IndexInfo
    pipeline: pipelines.InstalledPipeline
    compared: PipelineCheckResult
    stamps: shift_script.StampCounts
    und: int
    wrong: list[str]

    def to_dict(self) -> dict[str, Any]:
        """As ``langshift pipeline verify --json`` prints it."""
        first = self.pipeline.first.name if self.pipeline.first else None
        found: dict[str, Any] = {"index": self.version.index, "pipeline": self.pipeline.name, "first": first}
        found |= {"compared": asdict(self.compared), "stamps": self.stamps._asdict()}
        return {**found, "und": self.und, "wrong": self.wrong}


def verify_pipeline(client: OpenSearch, name: str, sample: int) -> PipelineVerification:
    """Compare the installed pipeline with NumPy on so many live documents, and look at all stamps.

    Raises:
        ClusterError: there is no such index, no pipeline is installed, or no shift can be taken back.
    """
    index = live(client, name)
    shift = read(client, index.index)
    require_vectors_as_written(client, index)
    installed = pipelines.installed(client, index.index)
    if installed is None:
        raise ClusterError(
            f"{index.index} has no langshift pipeline: install one with `langshift pipeline install {name}`."
        )
    stamps = shift_script.count_stamps(client, index.index, shift, index.fields)
    fields = index.fields
    unclear = [{"exists": {"field": fields.vector}}, {"term": {fields.language: UNDETERMINED}}]
    unknown = int(client.count(index=index.index, body={"query": {"bool": {"filter": unclear}}})["count"])
    parentless = 0 if fields.parent is None else client.count(index=index.index, body=_parentless(fields))["count"]
    compared = compare(client, index, shift, installed, sample)
    wrong = [*_differing(index, name, compared), *_stamps(index, stamps)]
    if parentless:
        wrong.append(
            f"{pluralize(parentless, 'chunk')} without a document in {fields.parent}, by which searches collect: "
            f"`POST /{index.index}/_update_by_query` with {json.dumps(_parentless(fields))} makes each a document of "
            "its own."
        )
    # Vectors come back as they are written, which was looked at above.
    unit = index.fingerprint.normalised
    if installed.body != pipelines.body(index.index, shift, index.fields, installed.first, unit=unit):
        again = f"run `langshift pipeline install {name}` again"
        wrong.insert(0, f"{installed.name} differs from the pipeline that this version of langshift creates: {again}.")
    return PipelineVerification(index, installed, compared, stamps, unknown, wrong)


def _parentless(fields: FieldNames) -> dict[str, Any]:
    """The request for chunks that the pipeline would have given a parent."""
    content = [{"exists": {"field": name}} for name in (fields.vector, *fields.text_fields)]
    unnamed = {"exists": {"field": fields.parent}}
    return {"query": {"bool": {"must_not": unnamed, "should": content, "minimum_should_match": 1}}}


def _differing(index: IndexInfo, name: str, compared: PipelineCheckResult) -> Iterator[str]:
    """One sentence for each thing that differs in the sample."""
    if compared.refused:
        yield f"The pipeline refused {pluralize(compared.refused, 'document')} of the sample: {compared.refusal}"
    if compared.parentless:
        yield (
            f"The pipeline does not give each document that names none in {index.fields.parent} its own _id there: "
            f"install it again with `langshift pipeline install {name}`."
        )
    if compared.cluster > CLUSTER_DIFFERS:
        yield (
            f"The cluster's shift differs from NumPy's (document {compared.worst}): install the pipeline again with "
            f"`langshift pipeline install {name}`, and report a bug if that does not help."
        )
    if compared.stored > STORED_DIFFERS:
        yield (
            "Undoing the shift and shifting again does not give the stored vectors: the engine does not store vectors "
            "as they are written."
        )
    if compared.other_language:
        yield (
            f"{pluralize(compared.other_language, 'document')} of the sample would now be shifted by a language other "
            f"than their stamp's (document {compared.renamed}): index such documents again with their raw vectors."
        )
    if compared.off_norm:
        yield (
            f"{pluralize(compared.off_norm, 'document')} of the sample without the encoder's norm once the shift is "
            f"undone (document {compared.strange}): the vector was replaced but the stamp was not. "
            "Index such documents again with their raw vectors."
        )


def _stamps(index: IndexInfo, stamps: shift_script.StampCounts) -> Iterator[str]:
    """One sentence for each kind of stamp that does not agree with the index."""
    field, entry, request = index.fields.stamp, index.fields.entry, f"`POST /{index.index}/_update_by_query`"
    stamped = {"exists": {"field": f"{field}.alpha"}}
    if stamps.without:
        yield (
            f"{pluralize(stamps.without, entry)} with a vector but no stamp in {field}: if the vectors are "
            f"raw, {request} with {json.dumps({'query': {'bool': {'must_not': stamped}}})} shifts them."
        )
    if stamps.other_scale:
        yield (
            f"{pluralize(stamps.other_scale, entry)} shifted with a scale other than the index's: {request} with "
            f"{json.dumps({'query': stamped})} corrects them."
        )
    if stamps.other_vectors:
        yield (
            f"{pluralize(stamps.other_vectors, entry)} shifted by language vectors other than the index's: index "
            f"such documents again with their raw vectors and without {field}."
        )

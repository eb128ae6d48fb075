"""A sample of live documents shifted again, by the cluster's pipeline and by NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from opensearchpy import OpenSearch

from langshift.debias.taken_back import Vector, difference, moved_by, shifted, taken_back
from langshift.plugin import index_settings
from langshift.plugin import script as shift_script
from langshift.plugin.fields import Fields, value_at
from langshift.plugin.index_shift import fitting
from langshift.plugin.pipeline import Installed
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.stamps import agreeing
from langshift.plugin.versions import LiveIndex

# Painless and NumPy round alike but for the last place of float32.
CLUSTER_DIFFERS = 2e-7
# What is stored was rounded to float32 once more on the way back and forth.
STORED_DIFFERS = 1e-6
# An encoder's own rounding, and that of a client that prints few digits.
_NORM_DIFFERS = 1e-3
_AT_ONCE = 100


class Compared(NamedTuple):
    """What a sample of documents told. Differences are of components, relative to the norm of a document's vector.

    Attributes:
        documents: how many were compared.
        cluster: the largest difference between the pipeline's result and NumPy's.
        worst: id of the document with that.
        stored: the largest difference between what is stored and NumPy's result.
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
    other_language: int = 0
    renamed: str | None = None
    off_norm: int | None = None
    strange: str | None = None
    refused: int = 0
    refusal: str | None = None


def compare(client: OpenSearch, index: LiveIndex, shift: IndexShift, installed: Installed, sample: int) -> Compared:
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
        "size": min(sample, index_settings.window(index_settings.read(client, index.index))),
        "query": {"function_score": {"query": agreeing(shift, fields), "random_score": {}}},
        "_source": [fields.vector, fields.stamp, fields.language, *([fields.told] if fields.told else [])],
    }
    told = Compared(off_norm=0 if index.fingerprint.normalised else None)
    hits = client.search(index=index.index, body=body)["hits"]["hits"]
    for start in range(0, len(hits), _AT_ONCE):
        some = hits[start : start + _AT_ONCE]
        raws = [taken_back(_vector(hit, fields), _stamp(hit, fields), shift.vectors) for hit in some]
        sent = [_raw_document(hit, raw, index) for hit, raw in zip(some, raws, strict=True)]
        answers = _simulated(client, installed, sent)
        for hit, raw, answer in zip(some, raws, answers, strict=True):
            told = _with(told, hit, raw, answer, shift, fields)
    return told


def _with(
    told: Compared, hit: Mapping[str, Any], raw: Vector, answer: Mapping[str, Any], shift: IndexShift, fields: Fields
) -> Compared:
    """What is told so far, with one more document."""
    name, stamp = hit["_id"], _stamp(hit, fields)
    told = told._replace(documents=told.documents + 1)
    if told.off_norm is not None and abs(float(np.linalg.norm(raw.astype(np.float64))) - 1) > _NORM_DIFFERS:
        told = told._replace(off_norm=told.off_norm + 1, strange=told.strange or name)
    stored = difference(_vector(hit, fields), shifted(raw, stamp, shift.vectors), raw)
    told = told._replace(stored=max(told.stored, stored))
    if "doc" not in answer:
        return told._replace(refused=told.refused + 1, refusal=told.refusal or shift_script.reason(answer["error"]))
    made = answer["doc"]
    now = _stamp(made, fields)
    cluster = difference(_vector(made, fields), shifted(raw, now, shift.vectors), raw)
    if cluster >= told.cluster:
        told = told._replace(cluster=cluster, worst=name)
    # A document that was shifted by several languages is shifted by one where somebody says which.
    soft = bool(stamp.get("languages"))
    if not soft and (moved_by(now, shift.vectors) != moved_by(stamp, shift.vectors)).any():
        told = told._replace(other_language=told.other_language + 1, renamed=told.renamed or name)
    return told


def _simulated(
    client: OpenSearch, installed: Installed, documents: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """What the pipeline makes of documents, without what runs before the shift: that may make vectors of its own."""
    body: dict[str, Any] = {"docs": documents}
    if installed.first is None:
        found = client.ingest.simulate(id=installed.name, body=body)
    else:
        found = client.ingest.simulate(body={**body, "pipeline": {"processors": [installed.shift_step]}})
    answers: list[Mapping[str, Any]] = found["docs"]
    return answers


def _raw_document(hit: Mapping[str, Any], raw: Vector, index: LiveIndex) -> dict[str, Any]:
    fields, source = index.fields, hit["_source"]
    told = fields.told or fields.language
    kept = value_at(source, fields.language)
    language = fitting(_stamp(hit, fields).get("tag"), kept) or value_at(source, told) or kept
    made: dict[str, Any] = {}
    for path, value in ((fields.vector, raw.tolist()), (told, language)):
        *outer, last = path.split(".")
        place = made
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = value
    return {"_index": index.index, "_id": hit["_id"], "_source": made}


def _vector(hit: Mapping[str, Any], fields: Fields) -> Vector:
    return np.asarray(value_at(hit["_source"], fields.vector), np.float32)


def _stamp(hit: Mapping[str, Any], fields: Fields) -> Mapping[str, Any]:
    stamp: Mapping[str, Any] = value_at(hit["_source"], fields.stamp)
    return stamp

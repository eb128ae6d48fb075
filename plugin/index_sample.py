"""Documents of an index drawn at random: their vectors as the encoder made them, what they lack, and what is unread."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.encoder_languages import FEWEST, SAMPLED, LanguageSample, collapsed, measured, unread
from langshift.errors import ClusterError
from langshift.languages import UNDETERMINED
from langshift.plugin import metadata
from langshift.plugin.index_body import vectors_come_back_normalised
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.stored_shift import StoredShift, unshifted
from langshift.plugin.stored_vector import masked_in, vector_required
from langshift.plugin.versions import IndexInfo, fingerprint_of

Source = Mapping[str, Any]


def random_order(query: Mapping[str, Any] | None = None, seed: int | None = None) -> dict[str, Any]:
    """Return the query that puts what another one finds in a random order.

    Args:
        query: the other one; None for all documents.
        seed: the same gives the same order as long as the index stays as it is; None gives another one each time.
    """
    score = {} if seed is None else {"seed": seed, "field": "_seq_no"}
    # In place of the query's own score: a filter's is 0, whatever it is multiplied by.
    scored = {"query": query or {"match_all": {}}, "random_score": score, "boost_mode": "replace"}
    return {"function_score": scored}


# How many documents of a shard are drawn from.
_DRAWN_FROM = 5000
# Languages whose documents one answer holds: it holds all of their vectors.
_AT_ONCE = 16


class DrawnDocument(NamedTuple):
    """A document with a vector.

    Attributes:
        source: the fields that were asked for.
        stored: the vector that is searched, shape (dimension,), float32.
        raw: the vector as the encoder made it, of the same shape, float64; None where that cannot be known.
    """

    source: Source
    stored: NDArray[np.float32]
    raw: NDArray[np.float64] | None


def draw(
    client: OpenSearch, index: str, meta: Source, tags: Sequence[str], size: int, more: Iterable[str] = ()
) -> dict[str, list[DrawnDocument]]:
    """Draw documents of some languages, the same each time as long as the index stays as it is.

    Args:
        client: the cluster.
        index: a version.
        meta: its whole ``_meta``.
        tags: languages as the field ``language`` holds them.
        size: how many of each at most.
        more: further fields of the documents.

    Returns:
        Tag -> documents with a vector; languages without any are left out.
    """
    fields, shift = FieldNames.from_meta(meta), StoredShift.from_meta(meta)
    shown = [fields.vector, fields.stamp, fields.language, *more]
    found = {}
    for start in range(0, len(tags), _AT_ONCE):
        searches: list[dict[str, Any]] = []
        for tag in (some := tags[start : start + _AT_ONCE]):
            chosen = [{"term": {fields.language: tag}}, {"exists": {"field": fields.vector}}]
            query = random_order({"bool": {"filter": chosen}}, seed=size)
            body = {"query": query, "size": size, "_source": shown, "terminate_after": _DRAWN_FROM}
            searches += [{"index": index}, body]
        for tag, answer in zip(some, client.msearch(body=searches)["responses"], strict=True):
            if hits := answer.get("hits", {}).get("hits", []):
                found[tag] = [_drawn(hit["_source"], fields, shift, index) for hit in hits]
    return found


def _drawn(source: Source, fields: FieldNames, shift: StoredShift | None, index: str) -> DrawnDocument:
    stored, stamp = vector_required(source, fields.vector, index), value_at(source, fields.stamp) or {}
    return DrawnDocument(source, stored, unshifted(stored, stamp, shift))


def stored_text(source: Source, fields: FieldNames) -> str:
    """Return all that a document holds in its text fields, or in the fields of each language below them."""
    parts: list[str] = []
    for field in fields.text_fields:
        value = value_at(source, field)
        values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
        parts += [one for one in values if isinstance(one, str)]
    return " ".join(parts)


def require_vectors_as_written(client: OpenSearch, index: IndexInfo) -> None:
    """Refuse an index that does not give back its vectors as they were written.

    Raises:
        ClusterError: saying how to make one that does.
    """
    if why := masked_in(client, index.index, index.fields.vector):
        raise ClusterError(f"Index {index.index} does not return its vectors as they were written: {why}.")
    if vectors_come_back_normalised(client, index.index, index.fields.vector):
        raise ClusterError(
            f"Index {index.index} stores its vectors with the engine faiss, cosinesimil and derived source, which "
            "returns them with norm 1 and not as they were written, so no shift can be undone: index the corpus again "
            "with `langshift ingest --if-exists new-version`, which switches derived source off."
        )


_SAMPLED = 200


class Lacking(NamedTuple):
    """How many entries with a vector have nothing beside it.

    Attributes:
        sampled: of how many.
        entries: how many.
    """

    sampled: int
    entries: int


def lacking_in_sample(client: OpenSearch, index: str, field: str, vector: str) -> Lacking:
    """Look at entries drawn at random: the server has no query for documents with weights.

    Args:
        client: the cluster.
        index: the version.
        field: what they may lack, a path with dots.
        vector: the field of vectors.
    """
    query = {"exists": {"field": vector}}
    body = {"size": _SAMPLED, "query": random_order(query), "_source": [field]}
    hits = client.search(index=index, body=body)["hits"]["hits"]
    return Lacking(len(hits), sum(value_at(hit["_source"], field) is None for hit in hits))


def any_lacking(client: OpenSearch, index: str, field: str, vector: str) -> bool:
    """Whether any entry with a vector has nothing beside it; the server reads all of them."""
    script = f"""
        def found = params._source;
        for (String part : {json.dumps(field)}.splitOnToken('.')) {{
            found = found instanceof Map ? found.get(part) : null;
        }}
        emit(found == null && params._source.get({json.dumps(field)}) == null);
    """
    body = {
        "size": 0,
        "terminate_after": 1,
        "derived": {"langshift_lacking": {"type": "boolean", "script": {"source": script}}},
        "query": {"bool": {"filter": [{"exists": {"field": vector}}, {"term": {"langshift_lacking": True}}]}},
    }
    return bool(client.search(index=index, body=body)["hits"]["total"]["value"])


# Others to compare a load's languages with, and most languages.
_BESIDE, _LANGUAGES = 5, 1000


def count_languages(client: OpenSearch, index: str, fields: FieldNames) -> dict[str, int]:
    """Tag -> documents of an index that have a vector; those without a tag count as ``und``."""
    terms = {"terms": {"field": fields.language, "missing": UNDETERMINED, "size": _LANGUAGES}}
    body = {"size": 0, "query": {"exists": {"field": fields.vector}}, "aggs": {"languages": terms}}
    found = client.search(index=index, body=body)["aggregations"]["languages"]["buckets"]
    return {one["key"]: int(one["doc_count"]) for one in found}


def unread_of(client: OpenSearch, index: str, written: Iterable[str]) -> dict[str, int]:
    """See whether the encoder reads the languages of documents that were just written, and note what it does not.

    Languages of which that was measured before are not looked at again. Of others, and of a few to compare with,
    documents are drawn, and ``collapsed`` judges their vectors as they were before the shift.

    Args:
        client: the cluster.
        index: a version; what was written can be searched.
        written: the languages of the documents.

    Returns:
        Languages of the whole index that the encoder does not read, with their documents.
    """
    meta = metadata.read_metadata(client, index)
    encoder, fields = fingerprint_of(index, meta).encoder, FieldNames.from_meta(meta)
    languages = count_languages(client, index, fields)
    asked = [
        tag
        for tag in dict.fromkeys(written)
        if tag != UNDETERMINED and measured(encoder, tag) is None and languages.get(tag, 0) >= FEWEST
    ]
    noted = {*meta.get(metadata.UNREAD, ())}
    if asked:
        most = sorted((tag for tag in languages if tag not in (*asked, UNDETERMINED)), key=lambda tag: -languages[tag])
        found = collapsed(_samples(client, index, meta, [*asked, *most[:_BESIDE]]))
        now = (noted - set(asked)) | (set(found) & set(asked))
        if now != noted:
            metadata.change(client, index, {metadata.UNREAD: sorted(now) or None})
        noted = now
    return unread(encoder, languages, noted)


def _samples(client: OpenSearch, index: str, meta: Mapping[str, Any], tags: list[str]) -> dict[str, LanguageSample]:
    """Documents of each language, drawn at random, with their vectors before the shift."""
    fields = FieldNames.from_meta(meta)
    drawn = draw(client, index, meta, tags, SAMPLED, fields.text_fields)
    samples = {}
    for tag, of in drawn.items():
        if known := [one for one in of if one.raw is not None]:
            texts = [stored_text(one.source, fields) for one in known]
            samples[tag] = LanguageSample(np.array([one.raw for one in known], np.float32), texts)
    return samples

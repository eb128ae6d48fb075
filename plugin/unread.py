"""Documents that can be found by words only: those in languages that the encoder of their index does not read."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from opensearchpy import OpenSearch

from langshift.debias.readable import FEWEST, SAMPLED, LanguageSample, collapsed, measured, unread
from langshift.languages import UNDETERMINED
from langshift.plugin import metadata
from langshift.plugin.metadata import TEXT_FIELDS, FieldNames, value_at
from langshift.plugin.stored_shift import StoredShift, expected
from langshift.plugin.versions import fingerprint_of

# Others to compare a load's languages with, and how many documents of a shard are drawn from.
_COMPARED, _DRAWN_FROM = 5, 5000
_LANGUAGES = 1000


def count_languages(client: OpenSearch, index: str, fields: FieldNames) -> dict[str, int]:
    """Tag -> documents of an index that have a vector; those without a tag count as ``und``."""
    terms = {"terms": {"field": fields.language, "missing": UNDETERMINED, "size": _LANGUAGES}}
    body = {"size": 0, "query": {"exists": {"field": fields.vector}}, "aggs": {"languages": terms}}
    found = client.search(index=index, body=body)["aggregations"]["languages"]["buckets"]
    return {one["key"]: int(one["doc_count"]) for one in found}


def look(client: OpenSearch, index: str, written: Iterable[str]) -> dict[str, int]:
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
        found = collapsed(_draw(client, index, meta, [*asked, *most[:_COMPARED]]))
        now = (noted - set(asked)) | (set(found) & set(asked))
        if now != noted:
            metadata.change(client, index, {metadata.UNREAD: sorted(now) or None})
        noted = now
    return unread(encoder, languages, noted)


def _draw(client: OpenSearch, index: str, meta: Mapping[str, Any], tags: list[str]) -> dict[str, LanguageSample]:
    """Documents of each language, drawn at random, with their vectors before the shift."""
    fields, shift = FieldNames.from_meta(meta), StoredShift.from_meta(meta)
    texts = fields.texts or TEXT_FIELDS
    # What a method other than shift has done stays: it maps each language as a whole, and makes no texts alike.
    unshifted = None if shift is None else expected(shift, StoredShift(), fields)
    searches: list[dict[str, Any]] = []
    for tag in tags:
        chosen = [{"term": {fields.language: tag}}, {"exists": {"field": fields.vector}}]
        random = {"seed": len(tags), "field": "_seq_no"}
        query = {"function_score": {"query": {"bool": {"filter": chosen}}, "random_score": random}}
        shown = [fields.vector, fields.stamp, fields.language, *texts]
        searches += [
            {"index": index},
            {"query": query, "size": SAMPLED, "_source": shown, "terminate_after": _DRAWN_FROM},
        ]
    answers = client.msearch(body=searches)["responses"]
    samples = {}
    for tag, answer in zip(tags, answers, strict=True):
        sources = [hit["_source"] for hit in answer.get("hits", {}).get("hits", [])]
        sources = [one for one in sources if "vectors" in (value_at(one, fields.stamp) or {})]
        stored = [value_at(one, fields.vector) for one in sources]
        vectors = stored if unshifted is None else unshifted(sources)
        if sources:
            samples[tag] = LanguageSample(np.array(vectors, dtype=np.float32), [_text(one, texts) for one in sources])
    return samples


def _text(source: Mapping[str, Any], fields: Iterable[str]) -> str:
    """All that a document holds in text fields, or in the fields of each language below them."""
    parts: list[str] = []
    for field in fields:
        value = value_at(source, field)
        values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
        parts += [one for one in values if isinstance(one, str)]
    return " ".join(parts)

"""Documents that can be found by words only: those in languages that the encoder of their index does not read."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from opensearchpy import OpenSearch

from langshift.debias.encoder_languages import FEWEST, SAMPLED, LanguageSample, collapsed, measured, unread
from langshift.languages import UNDETERMINED
from langshift.plugin import metadata
from langshift.plugin.index_sample import draw, stored_text
from langshift.plugin.metadata import FieldNames
from langshift.plugin.versions import fingerprint_of

# Others to compare a load's languages with.
_COMPARED = 5
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
    fields = FieldNames.from_meta(meta)
    drawn = draw(client, index, meta, tags, SAMPLED, fields.text_fields)
    samples = {}
    for tag, of in drawn.items():
        if known := [one for one in of if one.raw is not None]:
            texts = [stored_text(one.source, fields) for one in known]
            samples[tag] = LanguageSample(np.array([one.raw for one in known], np.float32), texts)
    return samples

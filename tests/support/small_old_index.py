"""A few documents in an index that somebody has made: whatever mapping, and short vectors that are given."""

from __future__ import annotations

from contextlib import contextmanager

VECTOR = {
    "type": "knn_vector",
    "dimension": 4,
    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
}
ADOPTED = ("--vector-field", "vec", "--encoder", "given", "--alpha", "0")


@contextmanager
def old_index(client, name, properties, documents):
    """The index of these fields and documents, id -> fields, which is removed at the end with all named like it."""
    body = {"settings": {"index": {"knn": True}}, "mappings": {"properties": {"vec": VECTOR, **properties}}}
    client.indices.create(index=name, body=body)
    lines = []
    for number, (identifier, fields) in enumerate(documents.items()):
        lines += [{"index": {"_id": identifier}}, {"vec": [1.0, number, 0.5, 2.0], **fields}]
    assert not client.bulk(body=lines, index=name, params={"refresh": "true"})["errors"]
    try:
        yield name
    finally:
        for index in client.indices.get(index=f"{name}*", params={"expand_wildcards": "all"}):
            client.indices.delete(index=index)

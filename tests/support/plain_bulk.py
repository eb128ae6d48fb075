"""Index a file with the client library alone, in the few lines that one would write for it: read, send, refresh.

``python plain_bulk.py FILE URL INDEX CHUNK THREADS``; FILE is JSON Lines or, by its name, Parquet.
"""

import json
import sys
from pathlib import Path

from opensearchpy import OpenSearch, helpers

#: An index with the field of vectors that langshift makes.
BODY = {
    "settings": {"index": {"knn": True, "number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}},
    "mappings": {
        "properties": {
            "text": {"type": "text", "analyzer": "german"},
            "language": {"type": "keyword"},
            "embedding": {
                "type": "knn_vector",
                "dimension": 512,
                "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
            },
        }
    },
}
ROWS = 1000


def documents(path):
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        for batch in ParquetFile(path).iter_batches(ROWS):
            yield from batch.to_pylist()
    else:
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def main(path, url, index, chunk, threads):
    client = OpenSearch(url, timeout=120, pool_maxsize=16)
    client.indices.create(index=index, body=BODY)
    actions = ({"_index": index, "_id": one.pop("_id"), "_source": one} for one in documents(Path(path)))
    for ok, result in helpers.parallel_bulk(client, actions, chunk_size=int(chunk), thread_count=int(threads)):
        assert ok, result
    client.indices.refresh(index=index)
    print(client.count(index=index)["count"])


if __name__ == "__main__":
    main(*sys.argv[1:])

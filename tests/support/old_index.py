"""An index that somebody has made with plain opensearch-py: own names, own analyzers, no langshift in its making."""

import json
from types import SimpleNamespace
from urllib.request import Request, urlopen

import numpy as np
from opensearchpy import OpenSearch

from langshift.debias.vectors import LanguageVectors

DIMENSION, TOPICS = 16, 40
SENTENCES = {
    "en": "The sea rises and falls twice a day because the Moon pulls at the water, and the car stood on the beach.",
    "de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond am Wasser zieht, und das Auto stand am Strand.",
    "fr": "La mer monte et descend deux fois par jour parce que la Lune attire les eaux, et la voiture attendait.",
    "th": "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ และรถจอดอยู่ที่ชายหาด",
}
# What reading JSON and writing it again would change.
EXACT = (
    b'{"whole": 123456789012345678901234567890, "decimal": 0.1000000000000000000000000000000001, '
    b'"one": 1.0, "half": "cut \\ud83d"}'
)
VECTOR = {
    "type": "knn_vector",
    "dimension": DIMENSION,
    "space_type": "cosinesimil",
    "method": {"name": "hnsw", "engine": "lucene", "parameters": {"m": 24, "ef_construction": 128}},
}


def settings(shards):
    analysis = {
        "filter": {
            "own_stemmer": {"type": "stemmer", "language": "light_english"},
            "own_synonyms": {"type": "synonym", "synonyms": ["car, automobile => vehicle", "sea, ocean"]},
        },
        "normalizer": {"own_lower": {"type": "custom", "filter": ["lowercase"]}},
        "analyzer": {
            "own": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "own_synonyms", "own_stemmer"]}
        },
    }
    similarity = {"own_bm25": {"type": "BM25", "k1": 0.9, "b": 0.4}}
    index = {
        "knn": True,
        "number_of_shards": shards,
        "number_of_replicas": 0,
        "refresh_interval": "7s",
        "max_result_window": 400,
        "knn.derived_source.enabled": False,
    }
    return {"index": {**index, "analysis": analysis, "similarity": similarity}}


def mappings():
    properties = {
        "vec": VECTOR,
        "headline": {
            "type": "text",
            "analyzer": "own",
            "similarity": "own_bm25",
            "fields": {"raw": {"type": "keyword"}},
        },
        "body": {"type": "text", "analyzer": "own"},
        "meta": {"properties": {"lang": {"type": "keyword", "normalizer": "own_lower"}, "topic": {"type": "integer"}}},
        "comments": {"type": "nested", "properties": {"who": {"type": "keyword"}, "said": {"type": "text"}}},
        "exact": {"type": "object", "enabled": False},
    }
    return {"dynamic": "strict", "_meta": {"owner": "press"}, "properties": properties}


def topic_of(number):
    return number // len(SENTENCES) % TOPICS


class OldIndex:
    """Documents: by number, every 3rd has routing, every 5th a version of its own, every 100th no vector."""

    def __init__(self, url, name, documents, shards=2):
        self.url, self.name = url, name
        self.client = OpenSearch(url)
        numbers = np.random.default_rng(7)
        self.offsets = {tag: 2 * numbers.standard_normal(DIMENSION) for tag in SENTENCES}
        self.topics = 3 * numbers.standard_normal((TOPICS, DIMENSION))
        self.tags = {}
        self.vectors = {}
        self.client.indices.create(index=name, body={"settings": settings(shards), "mappings": mappings()})
        lines = []
        for number in range(documents):
            lines += self._lines(number, numbers)
        for start in range(0, len(lines), 2000):
            answer = self.client.bulk(body=b"\n".join(lines[start : start + 2000]) + b"\n")
            assert not answer["errors"], answer
        self.client.indices.refresh(index=name)

    def _lines(self, number, numbers):
        tag = list(SENTENCES)[number % len(SENTENCES)]
        topic = topic_of(number)
        vector = self.topics[topic] + self.offsets[tag] + numbers.standard_normal(DIMENSION)
        self.tags[str(number)] = tag
        source = {
            "headline": f"Topic {topic} of the sea",
            "body": [SENTENCES[tag], f"Automobile number {number}."],
            "meta": {"topic": topic, **({"lang": {"th": "TH", "de": "ger"}.get(tag, tag)} if number % 2 else {})},
            "comments": [{"who": f"reader{number % 9}", "said": "Well said."}, {"who": "editor", "said": "Thanks."}],
        }
        if number % 100:
            self.vectors[str(number)] = vector.astype(np.float32)
            source["vec"] = [float(component) for component in self.vectors[str(number)]]
        text = json.dumps(source).encode()[:-1] + b', "exact": ' + EXACT + b"}"
        action = {"_index": self.name, "_id": str(number)}
        if number % 3 == 0:
            action["routing"] = f"r{number % 7}"
        # Not by updates: documents that were replaced would count in the old index's scores of words, for a while.
        if number % 5 == 0:
            action |= {"version": 3 if number % 2 else 1_700_000_000_000 + number, "version_type": "external"}
        return [json.dumps({"index": action}).encode(), text]

    def language_vectors(self, path):
        """A file of the planted offsets, towards English."""
        vectors = {tag: np.float32(offset - self.offsets["en"]) for tag, offset in self.offsets.items() if tag != "en"}
        counts = dict.fromkeys(vectors, 100_000)
        LanguageVectors("en", vectors, counts, "given", "", "", DIMENSION, False, "planted").save(path)
        return path

    def close(self):
        self.client.close()


def raw_documents(url, index, shards):
    """``_id`` -> the document as a search gives it, with numbers as they are written."""
    found = {}
    for shard in range(shards):
        after = []
        while hits := _page(url, index, shard, after):
            for hit in hits:
                found[hit["_id"]] = SimpleNamespace(
                    source=hit["_source"], routing=hit.get("_routing"), version=int(hit["_version"])
                )
            after = hits[-1]["sort"]
    return found


def _page(url, index, shard, after):
    body = {"size": 400, "version": True, "sort": [{"_seq_no": "asc"}], **({"search_after": after} if after else {})}
    address = f"{url}/{index}/_search?preference=_shards:{shard}"
    with urlopen(Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})) as answer:
        return json.loads(answer.read(), parse_float=str, parse_int=str)["hits"]["hits"]

"""Indices of made-up documents with fields of many types, and what searches of them must find, told in Python."""

import json
import uuid

import numpy as np
from chunked_index import TOY
from searched import drop
from toy_encoder import ToyEncoder

from langshift.plugin.metadata import ChunkPlace, FieldNames, chunk_id
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.searcher import Searcher

ENCODER = ToyEncoder()
LANGUAGES = ("en", "de", "th")
WORDS = ["sun", "moon", "tide", "sea", "bread", "oven"]
QUERY = "sun moon"
CHUNKED = FieldNames(parent="parent", chunking="paragraphs")
_KEYWORD = {"type": "keyword"}
_MAPPED = {
    "language": _KEYWORD,
    "group": _KEYWORD,
    "parent": _KEYWORD,
    "year": {"type": "integer"},
    "price": {"type": "float"},
    "published": {"type": "date"},
    "printed": {"type": "keyword", "fields": {"date": {"type": "date"}}},
    "used": {"type": "boolean"},
    "isbn": _KEYWORD,
    "shelf[row]": _KEYWORD,
    "from>to": _KEYWORD,
    "source": _KEYWORD,
    "section": {"type": "text", "fields": {"keyword": _KEYWORD}},
    "abstract": {"type": "text"},
    "hidden": {"type": "keyword", "doc_values": False},
}


class FilteredIndex:
    """Documents ``d0``, ``d1``, ... in an index, whole or of one to three chunks each, and a searcher over them.

    Attributes:
        documents: id -> its fields, without texts.
        entries: ``_id`` -> the document, its language, its words and its vector.
        name: of the index.
        searcher: over it.
    """

    def __init__(self, client, *, chunked, count=260, shards=2):
        numbers = np.random.default_rng(45)
        self.client, self.chunked, self._numbers = client, chunked, numbers
        self.documents, self.entries = {}, {}
        self.name = f"langshift-test-filtered-{uuid.uuid4().hex[:8]}"
        vector = {"type": "knn_vector", "dimension": 8}
        vector["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        meta = {"langshift": TOY.to_dict()} | ({"langshift_fields": CHUNKED.to_dict()} if chunked else {})
        body = {
            "settings": {"index": {"knn": True, "number_of_shards": shards, "number_of_replicas": 0}},
            "mappings": {"_meta": meta, "properties": {**_MAPPED, "embedding": vector}},
            "aliases": {self.name: {}},
        }
        client.indices.create(index=f"{self.name}-v0001", body=body)
        self.write(range(count))
        self.searcher = Searcher(client, self.name, opened={"toy": ENCODER})

    def write(self, places, *, known=True):
        """Write the documents of these numbers, of which tests know, or as another client does."""
        lines = []
        for place in places:
            name, fields = f"d{place}", self._fields(place)
            if known:
                self.documents[name] = fields
            for ordinal in range(1 + place % 3 if self.chunked else 1):
                entry = chunk_id(name, ordinal) if self.chunked else name
                language = LANGUAGES[(place + (place % 5 == 0) * ordinal) % 3]
                words = " ".join(self._numbers.choice(WORDS, self._numbers.integers(2, 9)))
                vector = self._numbers.standard_normal(8).astype(np.float32)
                if known:
                    self.entries[entry] = (name, language, set(words.split()), vector)
                source = fields | {"language": language, "embedding": vector.tolist(), "text": {language: words}}
                if self.chunked:
                    at = ChunkPlace(ordinal, 100 * ordinal, 100 * ordinal + 99, 1 + place % 3)
                    source |= {"parent": name, "chunk": at.to_dict()}
                lines += [{"index": {"_id": entry}}, source]
        self._send(lines)

    def delete(self, entries):
        """Delete the entries of these ids, as another client does."""
        self._send([{"delete": {"_id": entry}} for entry in entries])

    def _send(self, lines):
        content = "".join(json.dumps(line) + "\n" for line in lines)
        assert not self.client.bulk(index=f"{self.name}-v0001", body=content, refresh=True)["errors"]

    def _fields(self, place):
        fields = {
            "group": None if place % 4 == 3 else f"g{place // 8}",
            "year": None if place % 11 == 0 else 1980 + place * 7 % 40,
            "price": place % 13 + 0.5,
            "published": f"20{10 + place % 12:02}-{1 + place % 9:02}-15",
            "printed": f"20{10 + place % 12:02}-{1 + place % 9:02}-15",
            "used": place % 3 == 0,
            "isbn": f"978-{place % 50}" if place % 4 == 0 else None,
            "shelf[row]": f"r{place % 4}",
            "from>to": f"t{place % 6}",
            "source": [f"s{place % 7}", f"s{place % 3}"] if place % 5 else f"s{place % 7}",
            "section": ["Science", "Arts, culture", "Home and garden"][place % 3],
            "abstract": "words",
            "hidden": "x",
        }
        return {name: value for name, value in fields.items() if value is not None}

    def matching(self, holds, languages=None):
        """``_id``s of the entries of documents whose fields pass, in one of the languages."""
        return {
            entry
            for entry, (name, language, _, _) in self.entries.items()
            if holds(self.documents[name]) and (languages is None or language in languages)
        }

    def cosines(self, entries):
        """Document -> cosine of the best of its entries among these, best first."""
        query = ENCODER.encode_queries([QUERY])[0].astype(np.float64)
        found = {}
        for entry in entries:
            name, _, _, vector = self.entries[entry]
            cosine = float(vector @ query / np.linalg.norm(query) / np.linalg.norm(vector.astype(np.float64)))
            found[name] = max(cosine, found.get(name, -2.0))
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def balanced(self, entries):
        """What ``balanced`` finds among entries: the best five of each language among the nearest 50 documents."""
        best, seen, found = {}, {}, []
        query = ENCODER.encode_queries([QUERY])[0].astype(np.float64)
        near = sorted(
            entries, key=lambda one: -float(self.entries[one][3] @ query / np.linalg.norm(self.entries[one][3]))
        )
        for entry in near:
            best.setdefault(self.entries[entry][0], self.entries[entry][1])
        for name, language in list(best.items())[:50]:
            seen[language] = seen.get(language, 0) + 1
            if seen[language] <= 5:
                found.append(name)
        return found

    def expected(self, mode, entries):
        """The documents that a search in a mode finds among entries, where it is to find all."""
        if mode == "balanced":
            return set(self.balanced(entries))
        if mode == "lexical":
            entries = {entry for entry in entries if self.entries[entry][2] & set(QUERY.split())}
        return {self.entries[entry][0] for entry in entries}

    def drop(self):
        """Remove it."""
        drop(self.client, self.name)


def questions():
    """Questions of two words each, as many in each language."""
    texts = [f"{one} {other}" for one in WORDS for other in WORDS]
    vectors = ENCODER.encode_queries(texts)
    return [
        SearchQuery(text, LANGUAGES[at % 3], row) for at, (text, row) in enumerate(zip(texts, vectors, strict=True))
    ]


def drawn_filters(numbers):
    """Filters, and filters in OpenSearch's own DSL, drawn by random numbers."""
    year = int(numbers.integers(1980, 2020))
    return [({"year": {"gte": year}}, []), ({"language": "de", "used": True}, [])][numbers.integers(2)]

"""An index of texts that servers encode, which another server's vectors are to replace, and what must be in it then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from busy_index import Writer
from embeddings_server import MODEL, EmbeddingsServer, vector
from given_data import write_lines
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError
from shifted_index import LANGUAGES, language_vectors

from langshift.debias.vectors import LanguageVectors

#: Of the new server; the former has the usual one.
NEW = 20
PROBES = 2  # texts that are encoded whenever an encoder is opened
SAMPLE = 16  # texts that are encoded again before the new version becomes live
PAGE = 512  # documents whose vectors a run that is killed loses at most
Document = dict[str, Any]


def vectors_of(server: EmbeddingsServer, seed: int = 1) -> LanguageVectors:
    """Language vectors of what a server encodes."""
    fields = {"encoder": server.name, "revision": MODEL, "normalised": True}
    made: LanguageVectors = language_vectors(seed, dimension=server.dimension, **fields)
    return made


def texts_encoded(server: EmbeddingsServer) -> int:
    """How many texts a server has encoded."""
    return sum(map(len, server.asked))


def write_texts(path: Path, count: int, **fields: Any) -> tuple[Path, dict[str, Document]]:
    """Write a corpus of titles and texts in ``LANGUAGES``; its path, and id -> text and language of a document."""
    tags = list(LANGUAGES)
    documents = {f"d{n}": {"text": f"Title {n} Text {n}", "language": tags[n % len(tags)]} for n in range(count)}
    rows = [
        {"_id": f"d{n}", "title": f"Title {n}", "text": f"Text {n}", "language": tags[n % len(tags)], **fields}
        for n in range(count)
    ]
    return write_lines(path, rows), documents


def expected_vector(document: Document, known: LanguageVectors, alpha: float) -> NDArray[np.float64]:
    """What must be stored of a document."""
    raw = vector(document["text"], dimension=known.dimension).astype(np.float64)
    key = None if document["language"] == "und" else known.key(document["language"])
    shifted: NDArray[np.float64] = raw if key is None else raw - alpha * known.vectors[key].astype(np.float64)
    return shifted


def require_encoded(
    client: OpenSearch, index: str, documents: dict[str, Document], known: LanguageVectors, alpha: float
) -> None:
    """A version holds these documents and no others, each with its vector and stamp."""
    client.indices.refresh(index=index)
    hits = client.search(index=index, body={"size": 10_000})["hits"]["hits"]
    stored = {hit["_id"]: hit["_source"] for hit in hits}
    assert stored.keys() == documents.keys()
    for name, document in documents.items():
        there = stored[name]
        error = np.abs(np.array(there["embedding"]) - expected_vector(document, known, alpha)).max()
        assert error < 1e-6, (name, error, there)
        key = None if document["language"] == "und" else known.key(document["language"])
        assert there["shift"]["vectors"] == known.hash
        assert there["shift"]["alpha"] == (0.0 if key is None else alpha), (name, there["shift"])
        assert there.get("seen") == document.get("seen"), name


class EncodingWriter(Writer):
    """Writes texts with their vectors, and changes to the new encoder when the former's vectors are refused."""

    def __init__(self, client: OpenSearch, name: str, number: int, dimension: int) -> None:
        super().__init__(client, name, number)
        self._dimension = dimension

    def _send(self, name: str) -> None:
        try:
            super()._send(name)
        except RequestError:
            self._dimension = NEW
            super()._send(name)

    def _document(self, name: str) -> Document:
        text = f"Text {name} {self._chance.randrange(1000)}"
        language = self._chance.choice([tag for tag in LANGUAGES if tag != "und"])
        return {"text": text, "language": language, "embedding": vector(text, dimension=self._dimension).tolist()}


class Once:
    """A watch that does something at the first word of a stage."""

    def __init__(self, stage, action):
        self._stage, self._action = stage, action

    def __call__(self, progress):
        if progress.stage == self._stage:
            self._stage = None
            self._action()

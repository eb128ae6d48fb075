"""What must hold after each fault: indexed ∪ dead letters = input, no document twice, no vector changed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.helpers import scan

Vectors = dict[str, NDArray[np.float32]]


def write_corpus(path: Path, count: int, dimension: int = 16, **fields: Any) -> Path:
    """Write documents ``d0`` … that bring vectors with norms of 5 to 50."""
    numbers = np.random.default_rng(6)
    directions = numbers.standard_normal((count, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    vectors = (directions * numbers.uniform(5, 50, (count, 1))).astype(np.float32)
    with path.open("w", encoding="utf-8") as file:
        for n, vector in enumerate(vectors):
            document = {"_id": f"d{n}", "text": f"Document {n}.", "language": "en", "embedding": vector.tolist()}
            file.write(json.dumps({**document, **fields}) + "\n")
    return path


def read_letters(path: Path) -> list[dict[str, Any]]:
    """The dead letters of a file, none where there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def assert_nothing_lost(client: OpenSearch, index: str, corpus: Path, dead_letters: Path) -> list[dict[str, Any]]:
    """Compare all that an index holds, and its dead letters, with the corpus; gives the letters.

    A corpus of ``--encoder given --alpha 0`` is meant, whose documents bring their ``_id``.
    """
    lines = corpus.read_bytes().split(b"\n")
    letters = read_letters(dead_letters)
    dead = [letter["line"] for letter in letters]
    assert len(dead) == len(set(dead)), "a dead letter is there twice"
    assert [_original(letter) for letter in letters] == [lines[number - 1] for number in dead]
    expected = _expected(lines, set(dead))
    client.indices.refresh(index=index)
    assert client.count(index=index)["count"] == len(expected)
    indexed = _indexed(client, index)
    assert set(indexed) == set(expected)
    differing = [name for name in expected if not np.array_equal(indexed[name], expected[name])]
    assert differing == []
    return letters


def _original(letter: dict[str, Any]) -> bytes:
    if "document" in letter:
        return str(letter["document"]).encode()
    return base64.b64decode(letter["document_base64"])


def _expected(lines: list[bytes], dead: set[int]) -> Vectors:
    expected: Vectors = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and number not in dead:
            document = json.loads(line)
            expected.pop(document["_id"], None)
            if document.get("_op") != "delete":
                expected[document["_id"]] = np.array(document["embedding"], dtype=np.float32)
    return expected


def _indexed(client: OpenSearch, index: str) -> Vectors:
    indexed: Vectors = {}
    for hit in scan(client, index=index, query={"_source": ["embedding"]}, size=2000):
        assert hit["_id"] not in indexed, f"{hit['_id']} is there twice"
        indexed[hit["_id"]] = np.array(hit["_source"]["embedding"], dtype=np.float32)
    return indexed

"""The queries by which an audit measures: of a file, or documents that stand in for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from langshift.compressed import open_unpacked
from langshift.debias.encoders import is_given
from langshift.errors import UsageError
from langshift.evaluate.audit.sample import Sample
from langshift.ingest.documents import parse_object
from langshift.ingest.encoding import query_vectors
from langshift.ingest.fields import EMBEDDING, Unusable, at, id_field, language_field, parse_embedding, string_field
from langshift.ingest.making import Making
from langshift.languages import UNDETERMINED, text_language
from langshift.numbered import numbered

_SEED = 20_260_213


@dataclass(frozen=True)
class Asking:
    """Queries with their vectors.

    Attributes:
        file: where they come from; None where documents of the sample stand in for them, row by row.
        total: how many the file has.
        tags: the language of each, ``und`` where unknown.
        vectors: as the encoder makes them, shape (n, d), float32.
    """

    file: str | None
    total: int
    tags: list[str]
    vectors: NDArray[np.float32]

    @property
    def own(self) -> bool:
        """Whether they are the documents themselves."""
        return self.file is None

    @property
    def languages(self) -> list[str]:
        """The language of each, as a field ``language`` would hold it."""
        return [text_language(tag) for tag in self.tags]


@dataclass(frozen=True)
class _Query:
    id: str
    text: str
    language: str | None
    embedding: NDArray[np.float32] | None


def stand_ins(sample: Sample) -> Asking:
    """The documents of a sample in the place of queries."""
    return Asking(None, len(sample.tags), sample.tags, sample.vectors)


def read_queries(path: Path, making: Making, among: Collection[str], most: int) -> Asking:
    """Queries of a file in BEIR's layout (``queries.jsonl``), encoded, or with the vectors that they bring.

    Args:
        path: the file.
        making: its encoder, and the detector of the languages that queries do not name.
        among: languages as the field ``language`` holds them, of which queries may be.
        most: of more queries, so many are taken at random, the same each time.

    Raises:
        UsageError: a line is no query, named by file and line; or there is no query.
    """
    try:
        found = list(_read(path, given=is_given(making.encoder.id)))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error}).") from error
    if not found:
        raise UsageError(f"{path} holds no query: put one JSON object with _id and text on each line.")
    total = len(found)
    if total > most:
        rows = np.sort(np.random.default_rng(_SEED).choice(total, most, replace=False))
        found = [found[row] for row in rows]
    tags = [query.language or making.detector.detect(query.text, among=among).language for query in found]
    return Asking(str(path), total, tags, query_vectors(making.encoder, found))


def _read(path: Path, *, given: bool) -> Iterator[_Query]:
    with open_unpacked(path) as lines:
        for number, line in numbered(lines, str(path)):
            with at(f"{path}, line {number}"):
                fields = parse_object(line)
                text = string_field(fields, "text")
                if not text.strip():
                    raise Unusable("has no text: give the query one, or remove it.")
                language = language_field(fields)
                brought = given and fields.get(EMBEDDING) is not None
                embedding = parse_embedding(fields[EMBEDDING]) if brought else None
                yield _Query(id_field(fields), text, None if language == UNDETERMINED else language, embedding)

"""A dataset encoded once: the vectors of its documents and queries, and the languages of both."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders.base import Encoder, VectorSpec, have_norm_1, identity, is_given
from langshift.debias.encoders.precomputed import NORM_SAMPLE
from langshift.debias.vectors import LanguageVectors
from langshift.errors import LangshiftError
from langshift.evaluate.datasets.dataset import CORPUS, Dataset, query_vectors
from langshift.evaluate.datasets.texts import DatasetLanguages, detected_from, read_corpus, read_texts
from langshift.files import atomic_write
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Document
from langshift.ingest.transform import document_vectors, full_text
from langshift.languages import UNDETERMINED, text_language
from langshift_lab.methods.debiaser import MethodDebiaser, Posterior
from langshift_lab.offline.within import OfflinePart

Matrix = NDArray[np.float32]
OnTexts = Callable[[str, int], None]
_AT_ONCE = 256


@dataclass(frozen=True)
class EncodedDataset:
    """A dataset and the vectors that an encoder gives its texts, not shifted.

    Attributes:
        dataset: what was encoded.
        ids: document ids, in the order of the rows of ``documents``.
        documents: shape (documents, dimension), float32, as the encoder makes them.
        queries: shape (queries, dimension), float32, in the dataset's order.
        languages: the languages of documents and queries, named or detected.
        part: what each query searches; ``dataset`` is then its. None where each searches all.
    """

    dataset: Dataset
    ids: Sequence[str]
    documents: Matrix = field(repr=False)
    queries: Matrix = field(repr=False)
    languages: DatasetLanguages
    part: OfflinePart | None = None


def encode(
    dataset: Dataset,
    encoder: Encoder,
    cache: Path | None = None,
    on_texts: OnTexts = lambda *_: None,
    within: str | None = None,
) -> EncodedDataset:
    """Encode a dataset's documents and queries, or take both from the cache.

    Args:
        dataset: what to encode; documents are encoded as ingest does, title before text.
        encoder: gives the vectors; ``given`` takes those that come with the documents and queries.
        cache: a folder for the encodings; None keeps none, nor are vectors kept that come with the data.
        on_texts: called with ``documents`` or ``queries`` and how many of them were done, after each batch.
        within: what each query searches, ``FIELD`` or ``FIELD=VALUE``; None: all.

    Raises:
        UsageError: a document that cannot be read, or that lacks a vector that should come with it; a query without
            a value of ``within``.
        LangshiftError: the encoder gives no usable vector for a text.
    """
    texts = read_texts(dataset)
    languages = DatasetLanguages.of(dataset, texts)
    part = None
    if within is not None:
        part = OfflinePart.of(dataset, within, languages.queries, languages.documents)
        dataset = part.dataset
    ids = list(texts)
    if is_given(encoder.id):
        queries = query_vectors(encoder, dataset.queries)
        documents = _given_vectors(dataset, encoder, len(ids), on_texts)
        on_texts("queries", len(queries))
        return EncodedDataset(dataset, ids, documents, queries, languages, part)
    bodies = [full_text(text.title, text.text) for text in texts.values()]
    documents = _cached("documents", bodies, encoder, cache, on_texts)
    queries = _cached("queries", [query.text for query in dataset.queries], encoder, cache, on_texts)
    query_ids = [query.id for query in dataset.queries]
    for what, names, vectors in (("Document", ids, documents), ("Query", query_ids, queries)):
        if (row := first_unusable(vectors)) is not None:
            raise LangshiftError(
                f"{what} {names[row]!r}: the encoder {encoder.id} gives no usable vector for its text."
            )
    return EncodedDataset(dataset, ids, documents, queries, languages, part)


def read_vector_spec(dataset: Dataset, encoder: str) -> VectorSpec | None:
    """What is known of the vectors that come with a dataset's documents, by the first of them.

    Args:
        dataset: the dataset.
        encoder: the encoder's name; None is returned for any but ``given``.

    Raises:
        UsageError: one of the first documents brings no vector.
    """
    if not is_given(encoder):
        return None
    first = islice(_with_vectors(dataset), NORM_SAMPLE)
    vectors = [document.embedding for document in first if document.embedding is not None]
    return VectorSpec(len(vectors[0]), have_norm_1(np.stack(vectors))) if vectors else None


def _with_vectors(dataset: Dataset) -> Iterator[Document]:
    corpus = dataset.folder / CORPUS
    return read_corpus(corpus, str(corpus), "needed")


def _given_vectors(dataset: Dataset, encoder: Encoder, count: int, on_texts: OnTexts) -> Matrix:
    """The vectors that come with the documents, shape (count, dimension)."""
    vectors = np.empty((count, encoder.dimension), np.float32)
    documents = _with_vectors(dataset)
    for start in range(0, count, _AT_ONCE):
        batch = list(islice(documents, _AT_ONCE))
        vectors[start : start + len(batch)] = document_vectors(encoder, batch)
        on_texts("documents", len(batch))
    return vectors


def _cached(kind: str, texts: list[str], encoder: Encoder, cache: Path | None, on_texts: OnTexts) -> Matrix:
    """The vectors of some texts, shape (len(texts), dimension); written to the cache where there is one."""
    if cache is None:
        return encode_texts(kind, texts, encoder, on_texts)
    file = cache / f"{kind}-{_key(kind, texts, encoder)}.npy"
    try:
        found: Matrix = np.load(file, mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):
        found = np.empty(0, np.float32)  # there is none, or it is damaged and to be made anew
    if found.shape == (len(texts), encoder.dimension) and found.dtype == np.float32:
        on_texts(kind, len(texts))
        return found
    vectors = encode_texts(kind, texts, encoder, on_texts)
    with atomic_write(file, private=True) as partial, partial.open("wb") as opened:
        np.save(opened, vectors, allow_pickle=False)
    return vectors


def encode_texts(kind: str, texts: Sequence[str], encoder: Encoder, on_texts: OnTexts) -> Matrix:
    """Encode texts, batch by batch.

    Args:
        kind: ``documents`` or ``queries``, which some encoders tell apart.
        texts: what to encode.
        encoder: gives the vectors.
        on_texts: called with ``kind`` and how many texts were done, after each batch.

    Returns:
        Shape (len(texts), dimension), float32; see ``first_unusable``.
    """
    encode_batch = encoder.encode_documents if kind == "documents" else encoder.encode_queries
    vectors = np.empty((len(texts), encoder.dimension), np.float32)
    for start in range(0, len(texts), _AT_ONCE):
        batch = texts[start : start + _AT_ONCE]
        vectors[start : start + len(batch)] = encode_batch(batch)
        on_texts(kind, len(batch))
    return vectors


def _key(kind: str, texts: Sequence[str], encoder: Encoder) -> str:
    """32 hexadecimal digits of what makes the vectors: the encoder, its revision, how it reads, every text."""
    made_by = identity(encoder)
    # The prefix of the other side makes no difference.
    del made_by["query_prefix" if kind == "documents" else "document_prefix"]
    digest = hashlib.sha256(orjson.dumps(list(made_by.values())))
    for text in texts:
        content = text.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:32]


def first_unusable(vectors: Matrix) -> int | None:
    """The first row that is zero or not finite; None where all can be compared."""
    for start in range(0, len(vectors), _AT_ONCE):
        block = vectors[start : start + _AT_ONCE]
        usable = np.isfinite(block).all(axis=1) & (block != 0).any(axis=1)
        if not usable.all():
            return start + int(np.flatnonzero(~usable)[0])
    return None


class LanguageSource(NamedTuple):
    """Where documents' languages come from, as the command line names it.

    Attributes:
        kind: ``given`` (by the dataset, detected where that names none), ``detected``, or ``soft`` (all the
            languages that the detector holds possible).
        characters: how much of a text is read for it; None for as much as ingest reads.
    """

    kind: str
    characters: int | None = None

    def __str__(self) -> str:
        return self.kind if self.characters is None else f"{self.kind}:{self.characters}"

    @property
    def soft(self) -> bool:
        """Whether documents move by all languages that they may be in."""
        return self.kind == "soft"

    @classmethod
    def parse(cls, text: str) -> LanguageSource | None:
        """``detected:20`` as a source; None where it is none."""
        kind, colon, characters = text.partition(":")
        if not colon:
            return cls(kind) if kind in ("given", "detected", "soft") else None
        numbered = characters.isdecimal() and int(characters) > 0
        return cls(kind, int(characters)) if numbered and kind in ("detected", "soft") else None


GIVEN = LanguageSource("given")


@dataclass(frozen=True)
class DocumentLanguages:
    """The languages of an encoded dataset's documents, as one source tells them.

    Attributes:
        tags: each document's tag, ``und`` where unknown or not certain enough.
        posteriors: each document's languages and how probable they are, those without a language vector left
            out; None where documents move by their tag.
        detection: as it stands in ``result.json``: the share of the documents of known language whose likeliest
            language is that (None where the dataset names none), how many documents that counts, and how many stay for
            want of a language (None where all that is possible moves them); None where nothing was detected.
    """

    tags: Sequence[str] = field(repr=False)
    posteriors: Sequence[Posterior] | None = field(default=None, repr=False)
    detection: Mapping[str, Any] | None = None

    def move(self, debias: MethodDebiaser, vectors: Matrix, rows: slice) -> Matrix:
        """Move documents by their languages.

        Args:
            debias: what moves them.
            vectors: embeddings of the documents ``rows``, shape (n, d), float32.
            rows: which documents these are.

        Returns:
            Shape (n, d), float32, not normalised.

        Raises:
            UsageError: probable languages with a method that cannot take them.
        """
        if self.posteriors is None:
            return debias.documents(vectors, self.tags[rows])
        return debias.soft(vectors, self.posteriors[rows])


def given_languages(encoded: EncodedDataset) -> DocumentLanguages:
    """What the dataset names; detected where it names none."""
    return DocumentLanguages([encoded.languages.tags[name] for name in encoded.ids])


def resolve_document_languages(
    encoded: EncodedDataset, sources: Sequence[LanguageSource], pipeline: EmbeddingPipeline
) -> dict[LanguageSource, DocumentLanguages]:
    """What each source says of a dataset's documents.

    Args:
        encoded: the dataset.
        sources: which to ask.
        pipeline: the detector, and the language vectors: posteriors of languages that these do not move are not
            kept.
    """
    texts = {} if all(source == GIVEN for source in sources) else read_texts(encoded.dataset)
    return {
        source: given_languages(encoded) if source == GIVEN else _detect_languages(encoded, source, texts, pipeline)
        for source in dict.fromkeys(sources)
    }


def _detect_languages(
    encoded: EncodedDataset, source: LanguageSource, texts: dict[str, Document], pipeline: EmbeddingPipeline
) -> DocumentLanguages:
    detector, vectors = pipeline.detector, pipeline.debias.vectors
    words = [detected_from(texts[name], source.characters) for name in encoded.ids]
    found = [detector.detect(text) for text in words]
    tags = [one.language if one.confidence >= pipeline.least_confidence else UNDETERMINED for one in found]
    named = [encoded.dataset.documents[name].language for name in encoded.ids]
    known = [(one.language, language) for one, language in zip(found, named, strict=True) if language is not None]
    right = [text_language(heard) == text_language(language) for heard, language in known]
    posteriors = [_shiftable(detector.posteriors(text), vectors) for text in words] if source.soft else None
    unknown = None if source.soft else sum(tag == UNDETERMINED for tag in tags)
    accuracy = sum(right) / len(right) if right else None
    detection = {"accuracy": accuracy, "documents": len(right), "unknown": unknown}
    return DocumentLanguages(tags, posteriors, detection)


def _shiftable(posterior: Posterior, known: LanguageVectors | None) -> Posterior:
    return {tag: p for tag, p in posterior.items() if known is not None and known.key(tag) is not None}

"""Fit language vectors on parallel text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from langshift.errors import LangshiftError, UsageError
from langshift.ingest.encoders import Encoder
from langshift.ingest.methods.shift import mean_difference
from langshift.ingest.parallel import count_lines, joined, language_files, read_aligned, read_documents
from langshift.ingest.vectors import LanguageVectors
from langshift.languages import parse_tag

_BATCH = 256


def fit(
    folder: Path,
    pivot: str,
    encoder: Encoder,
    *,
    languages: Sequence[str] | None = None,
    join_lines: int = 1,
    documents: Path | None = None,
    on_lines: Callable[[int, int], None] | None = None,
) -> LanguageVectors:
    """Fit V_ℓ for every language of a folder (Shift, Eq. 1), in one pass and bounded memory.

    A pair with an empty side is left out, and is missing from that language's count.

    Args:
        folder: files ``<lang>.txt``, aligned by line.
        pivot: the pivot language, one of them.
        encoder: the encoder, whose document prefix is applied.
        languages: the languages to fit, in any form of their tags; None takes all of the folder.
        join_lines: this many consecutive lines make one passage.
        documents: file with a document id a line; passages never cross documents.
        on_lines: called with the lines done and how many there are.

    Raises:
        UsageError: files that cannot be used, named with the reason.
        LangshiftError: the encoder gave something that is not a number.
    """
    files = language_files(folder)
    tag = _require(pivot, files, folder)
    if languages is not None:
        files = {
            language: files[language] for language in sorted({tag, *(_require(t, files, folder) for t in languages)})
        }
    if len(files) < 2:
        raise UsageError(f"{folder}: there is text in {tag} alone; a second language is needed.")
    batches = read_aligned(files, _BATCH)
    lines = count_lines(files[tag])
    if join_lines > 1:
        passages = joined(batches, join_lines, iter(read_documents(documents, lines)))
        batches = _regrouped(passages, _BATCH)
    sums = {language: np.zeros(encoder.dimension, np.float64) for language in files if language != tag}
    pairs = dict.fromkeys(sums, 0)
    done = 0
    for batch in batches:
        add_pairs(batch, tag, encoder, sums, pairs)
        done += len(batch[tag])
        if on_lines:
            on_lines(done * join_lines, lines)
    for language, count in pairs.items():
        if not count:
            raise UsageError(f"{files[language]}: not one line has text here and in {files[tag].name}.")
    return LanguageVectors(
        pivot=tag,
        vectors={language: mean_difference(sums[language], pairs[language]) for language in sums},
        pairs=pairs,
        encoder=encoder.id,
        revision=encoder.revision,
        document_prefix=encoder.document_prefix,
        dimension=encoder.dimension,
        normalised=encoder.normalised,
        source=f"{folder.resolve().name}, {join_lines} lines a passage" if join_lines > 1 else folder.resolve().name,
    )


def _require(written: str, files: Mapping[str, Path], folder: Path) -> str:
    tag = parse_tag(written)
    if tag is None or tag not in files:
        raise UsageError(f"{folder}: has no text in the language {written!r}; it has {', '.join(files)}.")
    return tag


def add_pairs(
    batch: dict[str, list[str]],
    pivot: str,
    encoder: Encoder,
    sums: dict[str, NDArray[np.float64]],
    pairs: dict[str, int],
) -> None:
    """Add a batch's differences ``z^ℓ − z^pivot`` to each language's running sum, in place."""
    pivot_vectors = _encode(batch[pivot], pivot, encoder)
    has_pivot = np.array([bool(text) for text in batch[pivot]])
    for language, total in sums.items():
        both = has_pivot & np.array([bool(text) for text in batch[language]])
        if both.any():
            texts = [text for text, kept in zip(batch[language], both, strict=True) if kept]
            differences = _encode(texts, language, encoder).astype(np.float64) - pivot_vectors[both]
            total += differences.sum(axis=0)
            pairs[language] += int(both.sum())


def _encode(texts: list[str], language: str, encoder: Encoder) -> NDArray[np.float32]:
    vectors = encoder.encode_documents(texts)
    if not np.isfinite(vectors).all():
        raise LangshiftError(f"The encoder {encoder.id} gave a vector that is not a number for a text in {language}.")
    return vectors


def _regrouped(passages: Iterator[dict[str, list[str]]], size: int) -> Iterator[dict[str, list[str]]]:
    """Batches of ``size`` passages out of single ones."""
    for first in passages:
        group: Iterable[dict[str, list[str]]] = list(chain([first], islice(passages, size - 1)))
        yield {tag: [row[tag][0] for row in group] for tag in first}

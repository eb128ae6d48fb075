"""The way of a document: read, detect, encode, shift, write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.cluster import address, failure
from langshift.console import counted, note
from langshift.errors import LangshiftError
from langshift.ingest import query_shift
from langshift.ingest.documents import Corpus, Document, Embeddings, open_corpus
from langshift.ingest.encoders import Encoder, is_given
from langshift.ingest.encoding import document_vectors, full_text
from langshift.ingest.making import Making
from langshift.ingest.moving import Told, move, tell
from langshift.ingest.summary import OnStage, Summary, unwatched
from langshift.ingest.write import BulkWriter, entry
from langshift.languages import UNDETERMINED, primary
from langshift.plugin import versions
from langshift.plugin.template import text_language

_BATCH = 256


def load(client: OpenSearch, corpus: str, name: str, making: Making, on_stage: OnStage = unwatched) -> Summary:
    """Index a corpus. Nothing is written unless the whole of it can be read.

    Args:
        client: the cluster.
        corpus: path of a JSONL file (plain, gzip or zstd), or ``-`` for standard input.
        name: the index's name, an alias over its versions.
        making: encoder, method, language vectors, scales and detector.
        on_stage: called after each batch of each stage with the documents and seconds of that batch.

    Raises:
        UsageError: a line that cannot be used; the index is as it was.
        FingerprintError: the index holds vectors of another making; it is as it was.
        ClusterError: the cluster refuses documents; a version made by this load is removed.
    """
    embeddings: Embeddings = "needed" if is_given(making.encoder.id) else "refused"
    with open_corpus(corpus, embeddings=embeddings) as checked:
        return load_checked(client, checked, name, making, on_stage)


def load_checked(
    client: OpenSearch, corpus: Corpus, name: str, making: Making, on_stage: OnStage = unwatched
) -> Summary:
    """Index a corpus that is open and found sound; see ``load``."""
    fingerprint = making.fingerprint()
    target = versions.open_for_writing(client, name, fingerprint, query_shift.kept(making.debias))
    writer = BulkWriter(client, target)
    summary = Summary(name, target.index, fingerprint, longest=making.encoder.longest)
    try:
        for batch in _batches(corpus.read(), summary, on_stage):
            _index(batch, making, writer, summary, on_stage)
        versions.publish(client, target)
    except (Exception, KeyboardInterrupt) as error:
        raise _undo(client, target, writer, error) from error
    summary.replaced = writer.replaced
    return summary


def _batches(documents: Iterator[Document], summary: Summary, on_stage: OnStage) -> Iterator[list[Document]]:
    while True:
        with summary.timed("read", on_stage) as count:
            batch = list(islice(documents, _BATCH))
            count.append(len(batch))
        if not batch:
            return
        yield batch


def _index(batch: list[Document], making: Making, writer: BulkWriter, summary: Summary, on_stage: OnStage) -> None:
    size = len(batch)
    with summary.timed("detect", on_stage, size):
        told = [tell(document, making) for document in batch]
    with summary.timed("encode", on_stage, size):
        vectors = document_vectors(making.encoder, batch)
        _require_numbers(vectors, batch, making.encoder)
    with summary.timed("shift", on_stage, size):
        moved, stamps = move(vectors, told, making)
    with summary.timed("write", on_stage, size):
        entries = [
            entry(
                document.title,
                document.text,
                text_language(found.language),
                found.confidence,
                vector,
                stamp,
                dict(document.other),
            )
            for document, found, vector, stamp in zip(batch, told, moved, stamps, strict=True)
        ]
        writer.write([document.id for document in batch], entries)
    _count(summary, making, batch, told, entries)


def _count(
    summary: Summary, making: Making, batch: list[Document], told: list[Told], entries: list[dict[str, Any]]
) -> None:
    longest, known = making.encoder.longest, making.debias.vectors
    # Whatever its scale: a language that is left alone on purpose lacks no vector.
    unscaled = replace(making.debias, alpha=1.0, alphas={})
    summary.documents += len(entries)
    summary.cut += sum(len(full_text(one.title, one.text)) > longest for one in batch) if longest else 0
    needless = {known.pivot, UNDETERMINED} if known else set()
    for found, made in zip(told, entries, strict=True):
        language = made["language"]
        summary.languages[language] += 1
        summary.shifted += "language" in made["shift"]
        if language != primary(found.language):
            summary.folded[primary(found.language)] += 1
        if known and summary.made.moves and language not in needless and unscaled.key(found.language) is None:
            summary.without_vector[language] += 1


def _require_numbers(vectors: NDArray[np.float32], batch: list[Document], encoder: Encoder) -> None:
    usable = np.isfinite(vectors).all(axis=1) & (np.abs(vectors).max(axis=1, initial=0) > 0)
    if not usable.all():
        document = batch[int(np.flatnonzero(~usable)[0])]
        raise LangshiftError(f"Document {document.id!r}: the encoder {encoder.id} gives no usable vector for its text.")


def _undo(client: OpenSearch, target: versions.Target, writer: BulkWriter, error: BaseException) -> BaseException:
    """Leave nothing half-written: remove a version of this load's own; else say what was written."""
    if isinstance(error, OpenSearchException):
        error = failure(error, address(client))
    told = []
    try:
        versions.discard(client, target)
    except OpenSearchException:
        told.append(f"The unfinished version {target.index} could not be removed; no search sees it.")
    if writer.written and not target.created:
        told.append(
            f"{counted(writer.written, 'document')} had been written to {target.index} before; "
            "running the same command again doubles nothing."
        )
    if told and isinstance(error, LangshiftError):
        return type(error)(" ".join([str(error), *told]))
    for sentence in told:
        note(sentence)
    return error

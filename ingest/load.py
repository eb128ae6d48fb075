"""Indexing a corpus: each of its lines is then on the server or in the dead letters."""

from __future__ import annotations

from opensearchpy import OpenSearch

from langshift.debias.encoders import is_given
from langshift.ingest.documents import Embeddings
from langshift.ingest.load_kind import DOCUMENTS, LoadKind
from langshift.ingest.load_run import LoadRun, Watch
from langshift.ingest.making import Making
from langshift.ingest.opened_load import USUAL, LoadOptions, open_load
from langshift.ingest.read import Source
from langshift.ingest.source import open_source
from langshift.ingest.summary import OnStage, Summary, unwatched


def load(
    client: OpenSearch,
    corpus: str,
    name: str,
    making: Making,
    on_stage: OnStage = unwatched,
    options: LoadOptions = USUAL,
) -> Summary:
    """Index a corpus; each of its lines is then on the server or in the dead letters.

    Args:
        client: the cluster.
        corpus: path of a JSONL file (plain, gzip or zstd) or a Parquet file, or ``-`` for standard input.
        name: the index's name, an alias over its versions.
        making: encoder, method, language vectors, scales and detector.
        on_stage: called after each batch of each stage with the documents and seconds of that batch.
        options: how it is done.

    Raises:
        UsageError: the input cannot be used, or the index exists; nothing is changed.
        FingerprintError: the index holds vectors of another making; it is as it was.
        LangshiftError: the load broke off; unless nothing was written, it can be gone on with.
    """
    embeddings: Embeddings = "needed" if is_given(making.encoder.id) else "refused"
    with open_source(corpus, embeddings=embeddings) as source:
        return load_source(client, source, name, making, on_stage, options)


def load_source(
    client: OpenSearch,
    source: Source,
    name: str,
    making: Making,
    on_stage: OnStage = unwatched,
    options: LoadOptions = USUAL,
    watch: Watch | None = None,
    kind: LoadKind = DOCUMENTS,
) -> Summary:
    """Index a source that is open; see ``load``."""
    with open_load(client, source, name, making, options, kind) as opened:
        return LoadRun(client, source, making, on_stage, options, watch, opened, kind).run()

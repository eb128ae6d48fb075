"""Language vectors adapted to the documents of an index, and to queries that are searched for there."""

from dataclasses import replace
from pathlib import Path

from opensearchpy import OpenSearch

from langshift.debias.detector import open_detector
from langshift.debias.encoders import AS_KNOWN, VectorSpec, open_encoder
from langshift.debias.index_means import SAMPLE, EmbeddingSums, adapted
from langshift.debias.vectors import LanguageVectors
from langshift.evaluate.audit.sample import read_queries
from langshift.ingest.config import EmbeddingPipeline
from langshift.plugin.index_sample import measure
from langshift.plugin.metadata import read_metadata
from langshift.plugin.retune import fitted_vectors
from langshift.plugin.stored_shift import UNMOVED
from langshift.plugin.versions import live


def fit_to_index(
    client: OpenSearch,
    name: str,
    vectors: Path | None,
    queries: Path | None,
    *,
    encoder: str = "",
    trust_remote_code: bool = False,
) -> LanguageVectors:
    """Adapt language vectors to an index; nothing but queries is encoded, and the index is only read.

    Args:
        client: the cluster.
        name: the index.
        vectors: the file to adapt; None takes the one shipped for the index's encoder.
        queries: a query log, or queries as in BEIR: one JSON object with ``text``, and perhaps ``language``, on each
            line; None where none are known.
        encoder: where the index's encoder is now; empty for where it was when the index was made.
        trust_remote_code: whether to run code that comes with the encoder's model.

    Raises:
        UsageError: there is no file, or it was adapted before; or a line is no query.
        FingerprintError: the file was fitted with another encoder than the index's.
        ClusterError: there is no such index, or it does not give back its vectors as they were written.
        LangshiftError: the encoder fails.
    """
    index = live(client, name)
    known = fitted_vectors(index, vectors)
    documents = measure(client, index, read_metadata(client, index.index), known)
    asked = None
    if queries is not None:
        made = index.fingerprint
        spec = VectorSpec(made.dimension, made.normalised)
        opened = open_encoder(
            at := encoder or made.encoder,
            trust_remote_code=trust_remote_code,
            vector_spec=spec,
            named_by="" if encoder else f"The index {name}",
            reading=AS_KNOWN.of(made, at),
        )
        known.require_encoder(opened, name)
        read = read_queries(queries, EmbeddingPipeline(opened, UNMOVED, open_detector()), index.languages, SAMPLE)
        asked = EmbeddingSums(known)
        asked.add(read.vectors, read.tags)
    return replace(adapted(known, documents, asked), source=f"{known.source}, adapted to {index.index}")

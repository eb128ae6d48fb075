"""What ``doctor --size`` says: what an index takes, before it is loaded."""

import time
from itertools import islice
from typing import Any, NamedTuple

from langshift import parameters
from langshift.commands.ingest import name_fields
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import Encoder, is_given
from langshift.errors import UsageError
from langshift.ingest.documents import Document
from langshift.ingest.open_corpus import FoundFiles, find_files, open_source
from langshift.ingest.sources import content_bytes
from langshift.ingest.transform import document_vectors
from langshift.output import emit_json, line, table
from langshift.plugin.metadata import USUAL
from langshift.plugin.sizing import WRITTEN, IndexSize, hours, index_sizes
from langshift.wording import pluralize

# Of a corpus that is measured: so many documents are read, and encoded for so long. The first few together, then twice
# as many each time, up to as many as a load has: an encoder may take seconds for a few.
_READ, _SECONDS, _FEW = 1024, 10.0, 16


class CorpusSample(NamedTuple):
    """What a few documents of a corpus show.

    Attributes:
        lines: how many the corpus has; None where only reading it all tells.
        documents: how many were encoded.
        rate: how many a second.
        text: bytes of the texts and other fields of one, on average.
    """

    lines: int | None
    documents: int
    rate: float
    text: float


def show_size(
    documents: int | None,
    dimension: int | None,
    measure: str | None,
    encoder: str | None,
    texts: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Print what an index takes.

    Args:
        documents: how many there are; None for as many as the measured corpus has lines.
        dimension: of their vectors; None for the encoder's.
        measure: a corpus of which some documents are encoded; None for none.
        encoder: the encoder; None for the usual one.
        texts: fields with text of that corpus; empty for the usual one.
        as_json: whether to print JSON.

    Raises:
        UsageError: something is not known, or two things that were given do not fit.
    """
    if texts and measure is None:
        raise UsageError("--text-field says how a corpus is measured: name one with --measure.")
    measured = None
    if measure is not None or dimension is None or not (encoder is None or is_given(encoder)):
        files = None if measure is None else find_files([measure])
        opened = _open(encoder or parameters.default_encoder(), dimension)
        dimension = opened.dimension
        if files is not None:
            measured = _measured(files, opened, texts)
            documents = documents or measured.lines
    if documents is None:
        raise UsageError("It is not known how many documents there are: give --documents N, or a file with --measure.")
    sizes = index_sizes(documents, dimension, 0.0 if measured is None else measured.text)
    if as_json:
        emit_json(_document(documents, dimension, sizes, measured))
        return
    line(f"{pluralize(documents, 'document')} of {pluralize(dimension, 'dimension')}, one copy:")
    _show_sizes(sizes, measured)
    _show_hours(documents, measured)
    line(
        "Each replica takes the same memory and disk again, and so does the version before while it is there. With "
        "weights of tokens (ingest --sparse) a document takes 7 to 12 KB of disk more, with vectors of them (--tokens) "
        "some 17 KB. Formulas and sources: docs/scale.md."
    )


def _open(name: str, dimension: int | None) -> Encoder:
    """Open the encoder.

    Raises:
        UsageError: it makes other vectors than those of the dimension that was given, or none.
    """
    if is_given(name):
        raise UsageError(
            f"--encoder {name} makes no vectors, so that nothing can be measured: give --documents and --dimension, or "
            "an encoder that does."
        )
    opened = open_encoder(name)
    if dimension not in (None, opened.dimension):
        raise UsageError(
            f"The encoder {name} makes vectors of {opened.dimension} dimensions: leave --dimension out, or name "
            "another."
        )
    return opened


def _measured(files: FoundFiles, encoder: Encoder, texts: tuple[str, ...]) -> CorpusSample:
    """Encode the first documents of a corpus.

    Raises:
        UsageError: it holds none.
    """
    fields = name_fields(None, None, texts, None, None) or USUAL
    with open_source(files, embeddings="ignored", fields=fields) as source:
        rows = islice((row.content for row in source.read(())), _READ)
        found = [content for content in rows if isinstance(content, Document)]
        if not found:
            raise UsageError(f"{source.shown}: none of the first {_READ:,} lines is a document that can be measured.")
        lines = source.total
    encoded, seconds = _encoded(encoder, found)
    return CorpusSample(lines, encoded, encoded / seconds, sum(map(content_bytes, found)) / len(found))


def _encoded(encoder: Encoder, documents: list[Document]) -> tuple[int, float]:
    """How many documents were encoded, and in how many seconds."""
    # What is only done once is no part of a rate.
    document_vectors(encoder, documents[:1])
    begin, done, seconds, size = time.perf_counter(), 0, 0.0, _FEW
    while done < len(documents) and seconds < _SECONDS:
        batch = documents[done : done + size]
        document_vectors(encoder, batch)
        done, seconds, size = done + len(batch), time.perf_counter() - begin, min(2 * size, encoder.batch)
    return done, seconds


def _show_sizes(sizes: list[IndexSize], measured: CorpusSample | None) -> None:
    texts = "without the texts, unless --measure is given"
    if measured is not None:
        texts = f"{measured.text:,.0f} bytes of texts and fields each"
    rows = [
        ["memory, GB", *(_figure(one.memory / 1e9) for one in sizes), "formula of OpenSearch; page cache with lucene"],
        ["disk, GB", *(_figure(one.disk / 1e9) for one in sizes), f"measured with 20,000 documents; {texts}"],
        ["shards", *(f"{one.shards:,}" for one in sizes), "30 GB of disk each, as AWS advises"],
    ]
    engines = [one.engine for one in sizes]
    table(None, ["", *engines, "source"], rows, right=engines, prose=["source"])


def _show_hours(documents: int, measured: CorpusSample | None) -> None:
    encoding = ["encoding", "-", "not known: --measure CORPUS measures it"]
    if measured is not None:
        rate = f"{measured.rate:,.1f}/s by this process, measured with {pluralize(measured.documents, 'document')}"
        encoding = ["encoding", _figure(hours(documents, measured.rate)), f"{rate}; G of its like take a G-th"]
    written = f"{WRITTEN:,.0f}/s, measured on two cores with 20,000 documents; your cluster differs: measure it"
    rows = [encoding, ["writing", _figure(hours(documents, WRITTEN)), written]]
    table(None, ["", "hours", "source"], rows, right=["hours"], prose=["source"])


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 0.1 else "under 0.1"


def _document(documents: int, dimension: int, sizes: list[IndexSize], measured: CorpusSample | None) -> dict[str, Any]:
    writing = {"documents_per_second": WRITTEN, "hours": hours(documents, WRITTEN)}
    encoding = None
    if measured is not None:
        encoding = {"documents_per_second": measured.rate, "hours": hours(documents, measured.rate)}
    return {
        "documents": documents,
        "dimension": dimension,
        "text_bytes": None if measured is None else measured.text,
        "engines": [
            {"engine": one.engine, "memory_bytes": one.memory, "disk_bytes": one.disk, "shards": one.shards}
            for one in sizes
        ],
        "encoding": encoding,
        "writing": writing,
    }

"""The command ``plan``: what a corpus takes before it is loaded."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from langshift.commands.ingest import name_fields
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import Encoder, is_given
from langshift.errors import UsageError
from langshift.ingest.documents import Document
from langshift.ingest.opening import find_files, open_source
from langshift.ingest.sources import content_bytes
from langshift.ingest.transform import document_vectors
from langshift.output import emit_json, line, table
from langshift.parameters import ENCODER, JSON, Command, option
from langshift.plugin.metadata import USUAL
from langshift.plugin.sizing import WRITTEN, IndexSize, hours, index_sizes
from langshift.wording import pluralize

# Of a corpus that is measured: so many documents are read, and encoded for so long. The first few together, then twice
# as many each time, up to as many as a load has: an encoder may take seconds for a few.
_READ, _SECONDS, _FEW = 1024, 10.0, 16
_MOST = 1e12  # documents


class CorpusSample(NamedTuple):
    """What a few documents of a corpus show.

    Attributes:
        documents: how many were encoded.
        rate: how many a second.
        text: bytes of the texts and other fields of one, on average.
    """

    documents: int
    rate: float
    text: float


def _parse_count(_context: click.Context, _parameter: click.Parameter, given: str) -> int:
    """``1e9`` as 1,000,000,000."""
    try:
        number = float(given)
    except ValueError:
        number = 0.0
    if not (1 <= number <= _MOST and number.is_integer()):
        raise click.BadParameter(f"{given} is not a whole number from 1 to 1e12, such as 1e9.")
    return int(number)


@click.command(cls=Command)
@option("--documents N", "How many documents, or chunks with --chunk: 1e9.", callback=_parse_count, required=True)
@option("--dimension D", "Of their vectors.", click.IntRange(1, 16_000), required=True)
@option("--measure CORPUS", "Encode some documents of this one, and go by what they take.")
@ENCODER
@option("--text-field F", "Field with text; can be repeated. [default: text]", dest="texts", multiple=True)
@JSON
@click.pass_context
def plan(
    context: click.Context,
    documents: int,
    dimension: int,
    measure: str | None,
    encoder: str,
    texts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what an index of N documents takes: memory, disk, shards, and hours of encoding and writing.

    Nothing is asked of a cluster. Where a number comes from stands beside it, and in docs/scale.md in full. Without
    --measure nobody knows how long your texts are, or how fast they are encoded.

    \b
    Example:
      langshift plan --documents 1e8 --dimension 384 --measure export.jsonl
    """
    measured = None
    if measure is not None:
        measured = _measured(measure, encoder, dimension, texts)
    elif texts or context.get_parameter_source("encoder") is ParameterSource.COMMANDLINE:
        raise UsageError("--encoder and --text-field say how a corpus is measured: name one with --measure.")
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


def _measured(corpus: str, name: str, dimension: int, texts: tuple[str, ...]) -> CorpusSample:
    """Encode the first documents of a corpus.

    Raises:
        UsageError: it holds none, or the encoder makes other vectors or none.
    """
    if is_given(name):
        raise UsageError(f"--encoder {name} makes no vectors, so that nothing can be measured: name one that does.")
    files, encoder = find_files([corpus]), open_encoder(name)
    if encoder.dimension != dimension:
        raise UsageError(
            f"The encoder {name} makes vectors of {encoder.dimension} dimensions: give --dimension "
            f"{encoder.dimension}, or another --encoder."
        )
    fields = name_fields(None, None, texts, None, None) or USUAL
    with open_source(files, embeddings="ignored", fields=fields) as source:
        rows = islice((row.content for row in source.read(())), _READ)
        found = [content for content in rows if isinstance(content, Document)]
        if not found:
            raise UsageError(f"{source.shown}: none of the first {_READ:,} lines is a document that can be measured.")
    encoded, seconds = _encoded(encoder, found)
    return CorpusSample(encoded, encoded / seconds, sum(map(content_bytes, found)) / len(found))


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
        ["memory, GB", *(_gigabytes(one.memory) for one in sizes), "formula of OpenSearch; page cache with lucene"],
        ["disk, GB", *(_gigabytes(one.disk) for one in sizes), f"measured with lucene, else estimated; {texts}"],
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


def _gigabytes(number: float) -> str:
    return _figure(number / 1e9)


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

"""Adopting an index: all that stands against it is asked before anything is written; then it is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from opensearchpy import OpenSearch

from langshift.console import counted, note
from langshift.debias.encoders import Brought, have_norm_1
from langshift.debias.encoders.given import LOOKED_AT
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.adopt.body import body_of, during_load, free_fields
from langshift.ingest.adopt.document import document_of
from langshift.ingest.adopt.documents import Documents
from langshift.ingest.adopt.maker import DocumentMaker
from langshift.ingest.adopt.mapped import dimension_of, require_fields
from langshift.ingest.adopt.old import OldIndex, find
from langshift.ingest.adopt.reading import Reader, open_reader
from langshift.ingest.adopt.stored import loaded, stored_of
from langshift.ingest.documents import Document
from langshift.ingest.load import load_source
from langshift.ingest.load_kind import LoadKind
from langshift.ingest.load_run import Watch
from langshift.ingest.making import Making
from langshift.ingest.making_options import MakingOptions
from langshift.ingest.opened_load import LoadOptions
from langshift.ingest.summary import Summary, unwatched
from langshift.plugin.engine import engine_of
from langshift.plugin.fields import Fields
from langshift.plugin.versions import version_behind


@dataclass(frozen=True)
class Asked:
    """What is to be adopted.

    Attributes:
        old: an index, or an alias over one.
        vector: its field of vectors.
        texts: its fields of text; at least one.
        language: its field that names a document's language; None where it has none.
        making: the encoder that made the vectors, and how they are moved.
    """

    old: str
    vector: str
    texts: Sequence[str]
    language: str | None
    making: MakingOptions


@dataclass(frozen=True)
class Opened:
    """An index that can be adopted, open for reading.

    Attributes:
        old: the index.
        reader: reads it.
        fields: the names of its fields, and of those that its documents are to get.
        making: how its vectors were made, and are moved.
        brought: what a sample of its vectors tells.
    """

    old: OldIndex
    reader: Reader
    fields: Fields
    making: Making
    brought: Brought


@contextmanager
def open_old(client: OpenSearch, asked: Asked, patience: float) -> Iterator[Opened]:
    """Open an index for reading, and see that it can be adopted; nothing is written.

    Args:
        client: the cluster.
        asked: what is to be adopted.
        patience: seconds for which a cluster that does not answer is waited for.

    Raises:
        UsageError: it cannot be adopted; saying why and what to do.
        FingerprintError: the language vectors were fitted with another encoder.
    """
    old = find(client, asked.old)
    require_fields(old, asked.vector, asked.texts, asked.language)
    with open_reader(client, old, asked.vector, patience) as reader:
        sample = reader.sample(LOOKED_AT, {"exists": {"field": asked.vector}})
        if not sample:
            raise UsageError(f"No document of {old.index} has a vector in {asked.vector!r}: there is nothing to shift.")
        unmapped = {name for hit in sample for name in loaded(stored_of(hit).source)}
        fields = free_fields(old, asked.vector, asked.texts, asked.language, unmapped)
        brought = _brought(old, sample, fields)
        making = asked.making.open(brought)
        _require_encoder(old, asked.vector, making, brought)
        yield Opened(old, reader, fields, making, brought)


def require_name(client: OpenSearch, old: OldIndex, name: str, options: LoadOptions) -> None:
    """Refuse a name that is taken, unless a new version is to be put there.

    Raises:
        UsageError: it is.
        ClusterError: what is there is not an alias over versions.
    """
    live = version_behind(client, name)
    if live == old.index:
        raise UsageError(f"{name} stands for {live}, the index that is to be adopted: choose another --name.")
    if live is not None and options.if_exists == "fail":
        held = counted(client.count(index=live)["count"], "document")
        raise UsageError(
            f"There is an index {name} already ({live}, {held}): replace it with --if-exists replace, or put a new "
            "version before it with --if-exists new-version."
        )


def adopt(client: OpenSearch, opened: Opened, name: str, options: LoadOptions, watch: Watch | None = None) -> Summary:
    """Write the documents of an index to a new version.

    Args:
        client: the cluster.
        opened: the index.
        name: the new version's alias.
        options: how the load is done.
        watch: looks on.

    Raises:
        LangshiftError: it broke off; nothing of the new version is left, and the old index is as it was.
    """
    old, fields, making = opened.old, opened.fields, opened.making
    body = body_of(client, old, fields, making)
    kind = LoadKind(partial(DocumentMaker, fields), body, during_load(body), keeps_versions=True)
    source = Documents(opened.reader, fields, opened.brought)
    try:
        return load_source(client, source, name, making, unwatched, options, watch, kind)
    except UsageError:
        raise
    except LangshiftError as error:
        raise type(error)(f"{error} Nothing of {old.index} was changed: run it again.") from error
    except KeyboardInterrupt:
        note(f"Nothing of {old.index} was changed: run the same command again.")
        raise


def _brought(old: OldIndex, sample: Sequence[bytes], fields: Fields) -> Brought:
    dimension = dimension_of(old, fields.vector)
    found = [document_of(hit, fields, dimension) for hit in sample]
    vectors = [one.embedding for one in found if isinstance(one, Document) and one.embedding is not None]
    if not vectors:
        raise UsageError(
            f"The documents of {old.index} do not hold {fields.vector!r} as one list of {dimension} numbers, or hold "
            "it in a list of objects: such vectors cannot be shifted."
        )
    return Brought(dimension, have_norm_1(np.stack(vectors)))


def _require_encoder(old: OldIndex, vector: str, making: Making, brought: Brought) -> None:
    encoder = making.encoder
    remedy = "name the encoder that made them with --encoder, or --encoder given for one that is not here"
    if encoder.dimension != brought.dimension:
        raise UsageError(
            f"The vectors in {vector!r} of {old.index} have {brought.dimension} dimensions, and those of {encoder.id} "
            f"have {encoder.dimension}: {remedy}."
        )
    if encoder.normalised == brought.normalised:
        return
    kept = engine_of(old.mappings, old.settings, vector)
    if kept is not None and kept.comes_back_normalised:
        raise UsageError(
            f"Index {old.index} keeps its vectors with the engine {kept.engine}, cosinesimil and derived source, which "
            f"gives them back with norm 1 and not as {encoder.id} made them: load the documents from where they came "
            "from, with `langshift ingest`."
        )
    theirs, own = ("norm 1", "other norms") if brought.normalised else ("other norms than 1", "norm 1")
    raise UsageError(
        f"The vectors in {vector!r} of {old.index} have {theirs}, and those of {encoder.id} {own}: {remedy}."
    )

"""The command ``ingest``."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from itertools import permutations
from pathlib import Path

import click
from msgspec import structs
from opensearchpy import OpenSearch

from langshift import parameters
from langshift.client import open_cluster
from langshift.commands.dead_letters import send_again
from langshift.commands.load_calibration import NO_CALIBRATION, calibrate_loaded
from langshift.commands.load_display import json_where_unpublished, open_reporter, report_end, show_languages
from langshift.commands.pipeline_options import MAX_REFUSED, pipeline_options, weighted_field
from langshift.debias.encoders.base import VectorSpec, is_given
from langshift.debias.vectors import shipped
from langshift.errors import ClusterError, UsageError
from langshift.ingest import progress
from langshift.ingest.bulk.writer import MOST
from langshift.ingest.chunking import Chunking
from langshift.ingest.config import PipelineOptions
from langshift.ingest.documents import OPERATION, Embeddings, name_fault
from langshift.ingest.load import load_source
from langshift.ingest.open_corpus import STANDARD_INPUT, find_files, open_source
from langshift.ingest.parsing import own_fields
from langshift.ingest.parts.run import PartedRun, load_in_parts
from langshift.ingest.representations import OFF
from langshift.ingest.resume import LoadOptions
from langshift.ingest.sources import Files
from langshift.ingest.workers.engine import RayEngine, Workers, WorkersRun
from langshift.output import emit_json, line, note, out
from langshift.parameters import (
    ENCODER_OF_INDEX,
    JSON,
    PATIENCE,
    SPARSE,
    TOKENS,
    Command,
    FiniteRange,
    flag,
    option,
    option_group,
    refuse_beside,
)
from langshift.plugin import metadata
from langshift.plugin.index_body import ENGINES, RESERVED_FIELDS, Engine, own_mappings
from langshift.plugin.metadata import CHUNK, PARENT, FieldNames
from langshift.plugin.representations import SPARSE_FIELD, TOKENS_FIELD
from langshift.plugin.user_template import IndexOptions, Template
from langshift.plugin.versions import IfExists, IndexInfo, check_name, live
from langshift.wording import pluralize

_log = logging.getLogger(__name__)

# What langshift itself makes of them.
_TAKEN = (*RESERVED_FIELDS, "language", "_id", OPERATION)


def name_fields(
    id: str | None, title: str | None, texts: tuple[str, ...], language: str | None, group: str | None
) -> FieldNames | None:
    """The names of an index's fields; None where no option is given.

    Args:
        id: the field with a document's own id; None for ``_id``.
        title: the field with its title, ``title^3`` with a weight for word search; None for ``title``.
        texts: the fields with its texts, likewise; empty for ``text``.
        language: the field with its language; None for ``language``.
        group: the field that names its translations; None for ``group``.

    Raises:
        UsageError: a name cannot be used, or two cannot be used together.
    """
    if not any((id, title, texts, language, group)):
        return None
    titles = dict([weighted_field("--title-field", title or "title")])
    weighted = [weighted_field("--text-field", one) for one in texts or ("text",)]
    text_names = [name for name, _ in weighted]
    # A usual name that was given another part is not what it usually is.
    if title is None and "title" in text_names:
        titles = {}
    elif not texts and "text" in titles:
        text_names = []
    own_id, declared = (None if id == "_id" else id), (None if language == "language" else language)
    named = [("--title-field", name) for name in titles] + [("--text-field", name) for name in text_names]
    others = {"--id-field": own_id, "--language-field": declared, "--group-field": group}
    _require_usable(named, [(given, name) for given, name in others.items() if name is not None])
    return FieldNames(
        texts=(*titles, *text_names),
        declared_language=declared,
        # One field alone is the text.
        title=next(iter(titles), None) if text_names else None,
        by_language=True,
        weights={name: weight for name, weight in (*titles.items(), *weighted) if weight != 1},
        group=group or "group",
        id=own_id,
    )


def chunked_fields(fields: FieldNames, chunking: str | None) -> FieldNames:
    """The same fields where documents are cut into chunks; None leaves them whole.

    Raises:
        UsageError: one of them has the name of a field that a chunk has.
    """
    for name, given_as in fields.named_by() if chunking else []:
        if name.partition(".")[0] in (PARENT, CHUNK):
            raise UsageError(
                f"{given_as} {name}: with --chunk, langshift uses this name itself; rename the field in the corpus."
            )
    return fields.chunked(chunking)


def _require_usable(texts: list[tuple[str, str]], others: list[tuple[str, str]]) -> None:
    for given_as, name in (*texts, *others):
        if name in _TAKEN:
            raise UsageError(f"{given_as} {name}: langshift uses this name itself; rename the field in the corpus.")
        if fault := name_fault(name, ()):
            raise UsageError(f"{given_as} {name}: {fault}")
    pairs = [*permutations(texts, 2), *((one, other) for one in texts for other in others)]
    pairs += [(other, one) for one in texts for other in others]
    for (given_as, name), (other_as, other) in pairs:
        # Each text becomes an object with the languages.
        if f"{other}.".startswith(f"{name}."):
            raise UsageError(
                f"{given_as} {name} and {other_as} {other} cannot be used together: a text is stored by language, so "
                "its field can contain nothing else."
            )


_FIELDS = option_group(
    "fields",
    name_fields,
    option("--id-field F", "Field with the id. [default: _id]", dest="id"),
    option("--title-field F", "Field with the title. [default: title]", dest="title"),
    option("--text-field F", "Field with text; can be repeated. [default: text]", dest="texts", multiple=True),
    option("--language-field F", "Field with the language. [default: language]", dest="language"),
    option("--group-field F", "Field with the translation group. [default: group]", dest="group"),
)


_RUNNER = "--runner ray"


def _workers(
    runner: str | None, address: str | None, count: int | None, gpus: float | None, requests: int | None
) -> Workers | None:
    """The workers that are asked for; None for this process alone.

    Raises:
        UsageError: something is said of workers, and nobody asked for any.
    """
    given = {"--address": address, "--workers": count, "--gpus-per-worker": gpus, "--requests": requests}
    if runner is None:
        for name, value in given.items():
            if value is not None:
                raise UsageError(f"{name} concerns the workers of {_RUNNER}: give that, too.")
        return None
    return Workers(address, count, gpus or 0.0, MOST if requests is None else requests)


_WORKERS = option_group(
    "workers",
    _workers,
    option("--runner NAME", "ray: by several workers.", click.Choice(["ray"]), dest="runner", rare=True),
    option("--address HOST:PORT", "Of a Ray cluster, or auto. [default: this machine]", dest="address", rare=True),
    option("--workers N", "How many. [default: one a processor, or GPU]", click.IntRange(1), dest="count", rare=True),
    option("--gpus-per-worker N", "How many, or what share of one.", FiniteRange(0), dest="gpus", rare=True),
    option(
        "--requests N",
        "Bulk requests of all workers at once. [default: 8]",
        click.IntRange(1),
        dest="requests",
        rare=True,
    ),
)


@click.command(cls=Command)
@click.argument("corpus", nargs=-1)
@option("--index NAME", "The index, created if it does not exist.", dest="name", required=True)
@_FIELDS
@option("--chunk HOW", "Cut: auto, paragraphs, sentences:N, words:N, fixed:N, off.")
@pipeline_options(ENCODER_OF_INDEX, SPARSE, TOKENS)
@option_group(
    "options",
    LoadOptions,
    option(
        "--if-exists WHAT",
        "If it exists: fail, append, replace it, or new-version, which keeps the old one for a rollback.",
        click.Choice(["fail", "append", "replace", "new-version"]),
        default="fail",
    ),
    flag("--resume", "Resume an interrupted load, or begin one."),
    flag("--fast-load", "Add a new index's replicas at the end.", dest="fast", rare=True),
    MAX_REFUSED,
    PATIENCE,
)
@flag("--dead-letters", "Send repaired dead letters again; without CORPUS.", dest="again")
@option("--state URI", "Folder, here or s3://, to resume it from anywhere.", dest="state", rare=True)
@_WORKERS
@option("--date-field F", "A field that must hold dates; can be repeated.", dest="dates", multiple=True, rare=True)
@option("--template FILE", "JSON with analyzers, mappings or settings of your own.", rare=True)
@option("--engine NAME", "lucene (default), faiss, faiss-fp16 or faiss-on-disk.", click.Choice(ENGINES), rare=True)
@NO_CALIBRATION
@JSON
def ingest(
    corpus: tuple[str, ...],
    name: str,
    fields: FieldNames | None,
    chunk: str | None,
    pipeline: PipelineOptions,
    options: LoadOptions,
    again: bool,
    state: str | None,
    workers: Workers | None,
    dates: tuple[str, ...],
    template: Path | None,
    engine: Engine | None,
    no_calibration: bool,
    as_json: bool,
) -> None:
    """Index CORPUS: detect each document's language, encode, shift and write it.

    CORPUS is JSONL (plain, gzip, zstd) or Parquet, here or in S3, or - for standard input: _id, title, text, language,
    group, others. "_op": "update" changes fields, "delete" deletes. Bad lines become dead letters (exit code 3).

    \b
    Example:
      langshift ingest export.jsonl --index news --id-field id --title-field headline^2 --text-field body
    """
    check_name(name)
    context = click.get_current_context()
    if again or not corpus:
        _require_letters_alone(context, corpus, again=again)
        context.exit(send_again(name, state, pipeline.encoder or None, options.patience, as_json=as_json))
    # The cluster is asked only where that is needed, and once.
    cluster = cache(open_cluster)
    there = cache(lambda: _index(cluster(), name))
    pipeline = _beside_of_load(there, options.if_exists, pipeline)
    fields = _with_beside(_fields_of_load(there, options.if_exists, fields, chunk), pipeline)
    options = options._replace(fields=fields, shape=_index_options(template, engine, dates, fields))
    # A corpus that cannot be read is refused before anybody is asked.
    files = find_files(corpus, options.patience)
    if not pipeline.encoder or options.if_exists == "append":
        made = None if (info := there()) is None else info.fingerprint
        if not pipeline.encoder and made is not None:
            pipeline = replace(pipeline, encoder=made.encoder, named_by=f"The index {name}")
        pipeline = replace(pipeline, encoder=pipeline.encoder or parameters.default_encoder())
        if made is not None:
            pipeline = replace(pipeline, reading=pipeline.reading.of(made, pipeline.encoder))
    _require_chunkable(fields, pipeline)
    # Where no file of vectors tells how documents are shifted.
    is_told = options.if_exists == "append" and pipeline.default_shift and shipped(pipeline.encoder) is None
    index_meta = metadata.read_metadata(cluster(), info.index) if is_told and (info := there()) else None
    # Vectors that come with the corpus are known when it is read, everything else before.
    opened = None if is_given(pipeline.encoder) else pipeline.open(None, index_meta)
    with ExitStack() as stack:
        ray = None if workers is None else stack.enter_context(_connected(workers, files, state))
        embeddings: Embeddings = "refused" if opened else "needed"
        # What is added to an index need not have all fields that the index has.
        named = _named_fields(metadata.USUAL if options.if_exists == "append" else fields)
        waits = options.patience
        weighted = pipeline.brings_weights
        opening = open_source(
            files, embeddings=embeddings, fields=fields, weighted=weighted, named=named, patience=waits
        )
        source = stack.enter_context(opening)
        if source.hint:
            note(source.hint)
        if not source.resumable:
            # While there is still a choice.
            message = f"{'Standard input' if list(files) == [STANDARD_INPUT] else source.shown} cannot be resumed"
            if options.resume or state is not None:
                raise UsageError(f"{message}: give a file, or leave {'--resume' if options.resume else '--state'} out.")
            note(f"{message}: if this load is interrupted, it has to start again. A load from a file can be resumed.")
        before = None if options.if_exists == "fail" else there()
        opened = opened or pipeline.open(source.vector_spec or _vector_spec(there()), index_meta)
        client = cluster()
        watch = stack.enter_context(open_reporter(client, name, source.shown, pipeline))
        with json_where_unpublished(progress.LoadSummary.to_dict, as_json=as_json):
            if state is not None and isinstance(source, Files):
                make_run = PartedRun if ray is None else partial(WorkersRun, engine=ray)
                summary = load_in_parts(client, source, name, opened, state, options, watch, make_run)
            else:
                summary = load_source(client, source, name, opened, progress.no_progress, options, watch)
        last = progress.last_line(summary)
        _log.info("%s", last)
    if as_json:
        emit_json(summary.to_dict())
    else:
        _print(summary)
    code = report_end(summary, opened, last, as_json=as_json)
    encoder = pipeline.encoder
    calibrate_loaded(client, name, before, encoder, opened.encoder, needless=no_calibration, as_json=as_json)
    context.exit(code)


def _require_letters_alone(context: click.Context, corpus: Sequence[str], *, again: bool) -> None:
    """Refuse what is about a load where dead letters are sent again, and a load of nothing."""
    if not again:
        raise click.MissingParameter(ctx=context, param_hint="'CORPUS...'", param_type="argument")
    if corpus:
        raise UsageError("--dead-letters sends again what a load could not index: leave CORPUS out.")
    both = ("again", "name", "state", "encoder", "patience", "as_json")
    refuse_beside("--dead-letters", *(one.name or "" for one in context.command.params if one.name not in both))


def _connected(workers: Workers, files: Sequence[str], state: str | None) -> RayEngine:
    """Ray, once it is known that its workers can read the corpus and write the state.

    Raises:
        UsageError: they cannot.
    """
    if state is None:
        raise UsageError(f"{_RUNNER} keeps the state of the load where all workers can write it: give --state.")
    if STANDARD_INPUT in files:
        raise UsageError(f"Standard input cannot be read by several workers: give a file, or leave {_RUNNER} out.")
    return RayEngine(workers, [*files, state])


def _named_fields(existing: FieldNames) -> dict[str, str]:
    """Return the fields that the command line names, each with the option, after those that an index has."""
    given = click.get_current_context().params
    named = {**own_fields(existing), **dict.fromkeys(given["dates"], "--date-field")}
    for part in ("id", "title", "text", "language", "group"):
        values = given["texts"] if part == "text" else [given[part]]
        option = f"--{part}-field"
        named |= {weighted_field(option, value)[0]: option for value in values if value is not None}
    return named


def _index_options(
    template: Path | None, engine: Engine | None, dates: tuple[str, ...], fields: FieldNames
) -> IndexOptions:
    taken = fields.mapped.union(own_mappings()["properties"])
    for path in dates:
        if not path.strip(".") or not taken.isdisjoint((path, path.partition(".")[0])):
            raise UsageError(f"--date-field {path!r} names no field of your own: give one that documents have.")
    return IndexOptions(Template.read(template, fields) if template else None, engine, dates)


def _fields_of_load(
    index: Callable[[], IndexInfo | None], if_exists: IfExists, given: FieldNames | None, chunk: str | None
) -> FieldNames:
    """The fields and the chunks that were asked for; what was not asked for is as in the index, where there is one."""
    chunking = str(Chunking.parse(chunk)) if chunk not in (None, "off") else None
    asked_for = chunked_fields(given or metadata.USUAL, chunking)
    if if_exists == "fail" or (given is not None and chunk is not None):
        return asked_for
    there = index()
    if there is None or not there.fields.split:
        return asked_for
    # As the index names them, without what a search must know of it.
    own = FieldNames.from_meta({metadata.FIELDS: there.fields.to_dict()})
    chunking = own.chunking if chunk is None else chunking
    kept = (own if given is None else metadata.USUAL).chunked(None if chunk is not None else chunking)
    if if_exists != "append" and kept != metadata.USUAL:
        note(f"The new version is loaded as {there.index} was, with {kept.as_options()}.")
    return chunked_fields(given or own, chunking)


def _require_chunkable(fields: FieldNames, pipeline: PipelineOptions) -> None:
    """Refuse to cut documents that bring what is made of their texts.

    Raises:
        UsageError: they do.
    """
    brought = [("--encoder", "a vector", "vectors", pipeline.encoder)]
    brought.append(("--sparse", "weights", "weights", pipeline.sparse or OFF))
    for option_name, one, several, encoder in brought if fields.chunking else ():
        if is_given(encoder):
            raise UsageError(
                f"--chunk {fields.chunking} gives each piece of a document {one} of its own, but the {several} of "
                f"{option_name} {encoder} are of whole documents: use --chunk off, or an encoder that reads texts."
            )


def _beside_of_load(
    index: Callable[[], IndexInfo | None], if_exists: IfExists, pipeline: PipelineOptions
) -> PipelineOptions:
    """The options with what is kept beside vectors; what was not asked for is as in the index, where there is one."""
    there = None if if_exists == "fail" or None not in (pipeline.sparse, pipeline.tokens) else index()
    if there is not None and there.sparse is not None and pipeline.sparse is None:
        pipeline = replace(pipeline, sparse=there.sparse.encoder, sparse_named_by=f"The index {there.name}")
    if there is not None and there.tokens is not None and pipeline.tokens is None:
        pipeline = replace(pipeline, tokens=there.tokens.encoder)
    return pipeline


def _with_beside(fields: FieldNames, pipeline: PipelineOptions) -> FieldNames:
    """The same fields, and those of what is kept beside vectors.

    Raises:
        UsageError: one of them has the name of such a field.
    """
    sparse = SPARSE_FIELD if pipeline.sparse not in (None, OFF) else None
    tokens = TOKENS_FIELD if pipeline.tokens not in (None, OFF) else None
    for name, given_as in fields.named_by():
        if (first := name.partition(".")[0]) in (sparse, tokens):
            option_name = "--sparse" if first == sparse else "--tokens"
            raise UsageError(
                f"{given_as} {name}: with {option_name}, langshift uses this name itself; rename the field in the "
                "corpus."
            )
    return structs.replace(fields, sparse=sparse, tokens=tokens)


def _index(client: OpenSearch, name: str) -> IndexInfo | None:
    """What is live; None where there is nothing of langshift's, which the load itself refuses where it matters."""
    try:
        return live(client, name)
    except metadata.MetadataError:
        raise
    except ClusterError:
        return None


def _vector_spec(there: IndexInfo | None) -> VectorSpec | None:
    """What vectors an index holds, for a corpus that brings none since it only deletes or updates."""
    return None if there is None else VectorSpec(there.fingerprint.dimension, there.fingerprint.normalised)


def _print(summary: progress.LoadSummary) -> None:
    if summary.updated and not summary.documents:
        line(f"Updated {pluralize(summary.updated, 'document')} in {summary.name} ({summary.index}).")
        return
    show_languages(summary.languages.most_common(), "chunks" if summary.in_chunks else "documents")
    # Of this run: what earlier ones did took no time in it.
    if (documents := min(summary.documents, summary.lines - summary.resumed)) > 0 and summary.seconds["encode"]:
        timed = [(stage, max(summary.seconds[stage], 1e-9)) for stage in progress.STAGES if stage != "read"]
        rates = ", ".join(f"{stage} {documents / seconds:,.0f}/s" for stage, seconds in timed)
        out.print(f"Speed of each stage: {rates}.", soft_wrap=True)
    chunks = f" in {pluralize(summary.in_chunks, 'chunk')}" if summary.in_chunks else ""
    line(
        f"Indexed {pluralize(summary.documents, 'document')}{chunks} into {summary.name} ({summary.index}), "
        f"{summary.shifted:,} of them shifted with {summary.made.scales}."
    )

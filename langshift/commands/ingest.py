"""The commands ``ingest``, ``adopt`` and ``dead-letters``."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift import parameters
from langshift.client import open_cluster
from langshift.commands.corpus_fields import FIELDS, chunked_fields, named_fields, weighted_field
from langshift.commands.search import note_calibration_due
from langshift.debias.encoders import Reading, VectorSpec, is_given
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import shipped
from langshift.errors import ClusterError, UsageError
from langshift.evaluate.audit import report as audit_report
from langshift.evaluate.audit.audit import audit as audit_index
from langshift.ingest import progress, publication
from langshift.ingest.adopt.adopt import AdoptableIndex, open_for_adoption, require_name
from langshift.ingest.adopt.adopt import adopt as adopt_index
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, grouped, shortened
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.chunking import Chunking
from langshift.ingest.config import PipelineOptions
from langshift.ingest.dead_letter_replay import none_of, run_replay, with_letters
from langshift.ingest.documents import Embeddings
from langshift.ingest.load import load_source
from langshift.ingest.publication import LoadNotPublished
from langshift.ingest.resume import PATIENCE as USUAL_PATIENCE
from langshift.ingest.resume import LoadOptions
from langshift.ingest.sources import open_source, require_readable
from langshift.output import emit_json, line, note, out, table
from langshift.parameters import (
    ALPHA,
    ENCODER,
    ENCODER_OF_INDEX,
    GAMMA,
    INDEX_ENCODER,
    JSON,
    PATIENCE,
    READING,
    REMOTE_CODE,
    SHARE,
    THREADS,
    VECTORS,
    Command,
    CommandGroup,
    Decorator,
    flag,
    json_or_tables,
    option,
    option_group,
    parse_list,
)
from langshift.plugin import metadata
from langshift.plugin.index_body import ENGINES, Engine, IndexOptions, own_mappings
from langshift.plugin.inventory import DocumentCount, count_documents
from langshift.plugin.metadata import FieldNames
from langshift.plugin.user_template import Template
from langshift.plugin.versions import IfExists, IndexInfo, check_name, live
from langshift.retry import waiting
from langshift.server_errors import reason
from langshift.settings import Settings
from langshift.wording import pluralize

_LID_MODEL = option("--lid-model FILE", "Another fastText model that detects languages.", rare=True)
_LANGUAGES = option(
    "--languages L,...",
    "Detect only these languages. [default: all]",
    callback=lambda context, parameter, given: parse_list(context, parameter, given, "en,fr,ms") or [],
)


def _make_pipeline_options(*, min_confidence: float, **values: Any) -> PipelineOptions:  # noqa: ANN401 - what click has checked
    reading = Reading.take(values)
    return PipelineOptions(**values, least_confidence=min_confidence, reading=reading)


def _pipeline_options(encoder: Decorator) -> Decorator:
    """The options of a command that makes documents' vectors; it is given them as ``pipeline``."""
    least_confidence = option(
        "--min-confidence P",
        "Shift only by languages this certain.",
        SHARE,
        default=0.5,
        rare=True,
    )
    usual = (encoder, REMOTE_CODE, *READING, VECTORS, ALPHA, GAMMA)
    return option_group("pipeline", _make_pipeline_options, *usual, _LANGUAGES, _LID_MODEL, least_confidence)


MAX_REFUSED = option(
    "--max-refused SHARE",
    "Replace only if no more is refused.",
    SHARE,
    default=publication.MAX_REFUSED,
    rare=True,
)


@click.command(cls=Command)
@click.argument("old")
@option("--name NEW", "The name of the new index; not needed with --audit.")
@option("--vector-field F", "The field of OLD with the vectors.", dest="vector", required=True)
@option(
    "--text-field T",
    "A text field (T^3: with weight 3), or several.",
    dest="texts",
    required=True,
    multiple=True,
)
@option("--title-field T", "The text field with the title.", dest="title")
@option("--language-field L", "A field with the language. [default: detected]", dest="language")
@option("--group-field G", "A field that translations share. [default: group]", dest="group")
@option("--parent-field P", "Each entry is a chunk: a field with its document's id.", dest="parent")
@flag("--analyze", "Analyze the texts by language, for word search.")
@_pipeline_options(ENCODER)
@option(
    "--if-exists WHAT",
    "If NEW exists: fail, replace it, or new-version, which keeps the old one for a rollback.",
    click.Choice(["fail", "replace", "new-version"]),
    default="fail",
)
@MAX_REFUSED
@PATIENCE
@flag("--audit", "Only report what a shift would change.")
@option(
    "--sample N",
    "With --audit: how many documents. [default: 2000]",
    click.IntRange(100, 10_000),
    rare=True,
)
@option(
    "--queries FILE",
    "With --audit: queries.jsonl. [default: the documents]",
    rare=True,
)
@json_or_tables
def adopt(
    old: str,
    name: str | None,
    vector: str,
    texts: tuple[str, ...],
    title: str | None,
    language: str | None,
    group: str | None,
    parent: str | None,
    analyze: bool,
    pipeline: PipelineOptions,
    if_exists: IfExists,
    max_refused: float,
    patience: float,
    audit: bool,
    sample: int | None,
    queries: Path | None,
    as_json: bool,
) -> None:
    """Take over OLD, an index (or alias) with vectors from any source, as the new index NEW.

    NEW has the same fields, mapping and settings; each document's language is detected and its vector shifted.
    Nothing is encoded: --encoder only names the encoder that the vectors are from. OLD is only read. What is written
    to it later is not in NEW: send it to both (see langshift pipeline). What NEW does not accept goes to the dead
    letters, and the exit code is 3. An interrupted run leaves nothing behind.

    \b
    Example:
      langshift adopt old-articles --audit --vector-field vec --text-field headline --text-field body
      langshift adopt old-articles --name news --vector-field vec --text-field body --language-field meta.lang
    """
    if not audit and (sample is not None or queries is not None):
        raise UsageError("--sample and --queries only apply to --audit: give --audit too.")
    if audit and analyze:
        raise UsageError("--analyze changes nothing that --audit looks at: leave one of them out.")
    weighted = dict([weighted_field("--title-field", title)] if title else [])
    weighted |= dict(weighted_field("--text-field", text) for text in texts)
    weights = {name: weight for name, weight in weighted.items() if weight != 1}
    head = next(iter(weighted)) if title else None
    there = FieldNames(
        vector,
        texts=tuple(weighted),
        declared_language=language,
        title=head,
        weights=weights,
        group=group or "",
        parent=parent,
    )
    if audit:
        if name is not None or if_exists != "fail":
            note("--audit writes nothing: --name and --if-exists have no effect beside it.")
        with open_cluster() as client, open_for_adoption(client, old, there, pipeline, patience) as opened:
            found = audit_index(opened, sample or 2000, queries)
            (emit_json(audit_report.document(found)) if as_json else audit_report.show(found))
        return
    if name is None:
        raise UsageError("Give the new index a name with --name, or only inspect the old one with --audit.")
    check_name(name)
    options = LoadOptions(if_exists, max_refused=max_refused, patience=patience)
    client = open_cluster()
    with ExitStack() as stack:
        opened = stack.enter_context(open_for_adoption(client, old, there, pipeline, patience, analyze=analyze))
        require_name(client, opened.old, name, options)
        watch = stack.enter_context(_reporter(client, name, opened.old.name, pipeline))
        stack.enter_context(_unpublished(lambda done: _document(done, opened, None), as_json=as_json))
        try:
            summary = adopt_index(client, opened, name, options, watch)
        except RequestError as error:
            raise _refused(error, opened) from error
        last = _last_line(summary, opened)
        _log.info("%s", last)
    counted = DocumentCount(summary.documents)
    if opened.fields.parent is not None:
        counted = count_documents(client, summary.index, opened.fields)
    if as_json:
        emit_json(_document(summary, opened, counted))
    else:
        _print_adopted(summary, opened, counted)
    if summary.parentless:
        note(
            f"{pluralize(summary.parentless, 'chunk')} without a value in {opened.fields.parent!r}, which became "
            "documents of their own: their _id was filled in."
        )
    code = progress.report_end(summary, opened.pipeline, last, as_json=as_json)
    note_calibration_due(client, name)
    click.get_current_context().exit(code)


_log = logging.getLogger(__name__)


def _refused(error: RequestError, opened: AdoptableIndex) -> ClusterError:
    why, remedy = reason(error), ""
    if "total fields" in why:
        more = 20 + len(opened.fields.texts) * len(opened.fields.analyzed)
        limit = f"index.mapping.total_fields.limit of {opened.old.index}"
        remedy = f": raise {limit} by {more}, which changes no document"
    return ClusterError(f"The cluster refuses the new index ({why}){remedy}.")


def _reporter(client: OpenSearch, name: str, corpus: str, pipeline: PipelineOptions) -> progress.LoadReporter:
    """What shows and logs a load, once the versions are named that others are making."""
    for sentence in progress.unfinished_versions(client, name):
        note(sentence)
    return progress.LoadReporter(corpus, pipeline, LoadWorkspace.of(Settings.from_env().home, client, name))


@contextmanager
def _unpublished(document: Callable[[progress.LoadSummary], Mapping[str, Any]], *, as_json: bool) -> Iterator[None]:
    """Around a load: prints what it did also where what it has made does not go live, if JSON is wanted."""
    try:
        yield
    except LoadNotPublished as error:
        if as_json:
            emit_json(document(error.summary))
        raise


def _document(
    summary: progress.LoadSummary, opened: AdoptableIndex, counted: DocumentCount | None
) -> dict[str, object]:
    """As ``langshift adopt --json`` prints it: as of a load, with the old index and the names of fields."""
    # The others are of a load alone.
    needless = ("corpus", "cut", "longest", "resumed", "deleted", "not_found", "updated", "encoded_again")
    values = {name: value for name, value in summary.to_dict().items() if name not in needless}
    old = {"name": summary.corpus, "index": opened.old.index, "uuid": opened.old.uuid}
    if counted is not None and counted.chunks is not None:
        values |= counted._asdict()
    return {**values, "old": old, "fields": opened.fields.to_dict()}


def _print_languages(counts: list[tuple[str, int]], entries: str = "documents") -> None:
    table(None, ["language", entries], [[tag, f"{count:,}"] for tag, count in counts], right={entries})


def _print_adopted(summary: progress.LoadSummary, opened: AdoptableIndex, counted: DocumentCount) -> None:
    languages = sorted(summary.languages.items(), key=lambda one: (-one[1], one[0]))
    _print_languages(languages, f"{opened.fields.entry}s")
    without = f", {summary.vectorless:,} without a vector" if summary.vectorless else ""
    line(
        f"Adopted {counted} of {opened.old.shown} into {summary.name} "
        f"({summary.index}), {summary.shifted:,} of them {progress.moved_in_words(summary.made)}{without}; "
        f"{opened.old.name} was not touched."
    )


def _last_line(summary: progress.LoadSummary, opened: AdoptableIndex) -> str:
    """That nothing was lost, and what is not there."""
    entry = opened.fields.entry
    parts = [f"{pluralize(summary.present, entry)} on the server, checked"]
    if summary.dead:
        parts.append(f"{pluralize(summary.dead, 'dead letter')} ({progress.dead_letters_say(summary.name)})")
    return (
        f"All {pluralize(summary.lines, entry)} that searches of {opened.old.name} found when reading began are "
        f"accounted for: {', '.join(parts)}. Anything written to {opened.old.name} since is not in {summary.name}."
    )


def _index_options(
    template: Path | None, engine: Engine | None, dates: tuple[str, ...], fields: FieldNames
) -> IndexOptions:
    taken = fields.mapped.union(own_mappings()["properties"])
    for path in dates:
        if not path.strip(".") or not taken.isdisjoint((path, path.partition(".")[0])):
            raise UsageError(f"--date-field {path!r} names no field of your own: give one that documents have.")
    return IndexOptions(Template.read(template, fields) if template else None, engine, dates)


@click.command(cls=Command)
@click.argument("corpus")
@option("--index NAME", "The index, created if it does not exist.", dest="name", required=True)
@THREADS
@FIELDS
@option(
    "--chunk HOW",
    "Cut texts: auto, paragraphs, sentences:N, words:N or off. [default: as in the index, else off]",
)
@_pipeline_options(ENCODER_OF_INDEX)
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
@option("--date-field F", "A field that must hold dates; can be repeated.", dest="dates", multiple=True, rare=True)
@option("--template FILE", "JSON with analyzers, mappings or settings of your own.", rare=True)
@option(
    "--engine NAME",
    "lucene (the default), faiss, faiss-fp16 or faiss-on-disk.",
    click.Choice(ENGINES),
    rare=True,
)
@json_or_tables
def ingest(
    corpus: str,
    name: str,
    fields: FieldNames | None,
    chunk: str | None,
    pipeline: PipelineOptions,
    options: LoadOptions,
    dates: tuple[str, ...],
    template: Path | None,
    engine: Engine | None,
    as_json: bool,
) -> None:
    """Index CORPUS: detect each document's language, encode, shift and write it.

    CORPUS is JSONL (plain, gzip or zstd), Parquet, or - for standard input: _id, title, text, language, group,
    and any other fields. A later document with the same _id wins; "_op": "update" changes single fields, "_op":
    "delete" deletes. A line that cannot be indexed goes to the dead letters (exit code 3). After a crash or Ctrl-C,
    repeat it with --resume.

    \b
    Example:
      langshift ingest export.jsonl --index news --id-field id --title-field headline^2 --text-field body
    """
    check_name(name)
    fields = _fields_of_load(name, options.if_exists, fields, chunk)
    options = options._replace(fields=fields, shape=_index_options(template, engine, dates, fields))
    # A corpus that cannot be read is refused before anybody is asked.
    require_readable(corpus)
    if not pipeline.encoder or options.if_exists == "append":
        made = _fingerprint_of_index(name)
        if not pipeline.encoder and made is not None:
            pipeline = replace(pipeline, encoder=made.encoder, named_by=f"The index {name}")
        pipeline = replace(pipeline, encoder=pipeline.encoder or parameters.default_encoder())
        if made is not None:
            pipeline = replace(pipeline, reading=pipeline.reading.of(made, pipeline.encoder))
    if fields.chunking is not None and is_given(pipeline.encoder):
        raise UsageError(
            f"--chunk {fields.chunking} gives each piece of a document a vector of its own, but the vectors of "
            f"--encoder {pipeline.encoder} are of whole documents: use --chunk off, or an encoder that reads texts."
        )
    index_meta = _meta_of_index(name, pipeline) if options.if_exists == "append" else None
    # Vectors that come with the corpus are known when it is read, everything else before.
    opened = None if is_given(pipeline.encoder) else pipeline.open(None, index_meta)
    with ExitStack() as stack:
        embeddings: Embeddings = "refused" if opened else "needed"
        # What is added to an index need not have all fields that the index has.
        named = named_fields(metadata.USUAL if options.if_exists == "append" else fields)
        source = stack.enter_context(open_source(corpus, embeddings=embeddings, fields=fields, named=named))
        if source.hint:
            note(source.hint)
        if not source.resumable:
            # While there is still a choice.
            message = f"{source.shown[:1].upper()}{source.shown[1:]} cannot be resumed"
            if options.resume:
                raise UsageError(f"{message}: give a file, or leave --resume out.")
            note(f"{message}: if this load is interrupted, it has to start again. A load from a file can be resumed.")
        opened = opened or pipeline.open(source.vector_spec or _vector_spec(_fingerprint_of_index(name)), index_meta)
        client = open_cluster()
        watch = stack.enter_context(_reporter(client, name, corpus, pipeline))
        with _unpublished(progress.LoadSummary.to_dict, as_json=as_json):
            summary = load_source(client, source, name, opened, progress.no_progress, options, watch)
        last = progress.last_line(summary)
        _log.info("%s", last)
    if as_json:
        emit_json(summary.to_dict())
    else:
        _print(summary)
    code = progress.report_end(summary, opened, last, as_json=as_json)
    note_calibration_due(client, name)
    click.get_current_context().exit(code)


@click.group("dead-letters", cls=CommandGroup)
def dead_letters() -> None:
    """List documents that could not be indexed, with the reasons, and send them again.

    \b
    Example:
      langshift dead-letters list
    """


@dead_letters.command("list")
@option("--index NAME", "Only those of this index. [default: of every index]", dest="name")
@json_or_tables
def list_(name: str | None, as_json: bool) -> None:
    """List dead letters by reason, the most frequent first.

    Reasons that only differ in details of single documents (ids, quoted values, numbers) are counted together; the
    reason shown is the example's own. The files that are named contain each document as it was read. No cluster is
    needed.

    \b
    Example:
      langshift dead-letters list --index news
    """
    counts: Counter[LoadWorkspace] = Counter()
    groups = grouped(_letters(with_letters(name), counts))
    files = [str(place.dead_letters) for place in counts]
    if as_json:
        emit_json({"total": counts.total(), "groups": [group.to_dict() for group in groups], "files": files})
    elif not groups:
        line(none_of(name))
    else:
        rows = []
        for group in groups:
            example = f"{Path(group.example.corpus).name}, line {group.example.line}"
            rows.append([f"{group.count:,}", group.stage, group.type, shortened(group.example.reason), example])
        columns = ["count", "stage", "type", "reason", "example"]
        table(None, columns, rows, right={"count"}, prose={"reason", "example"})
        for (place, count), file in zip(counts.items(), files, strict=True):
            line(f"{pluralize(count, 'dead letter')} of {place.name} in {file}")
        again = ", ".join(f"`langshift dead-letters replay --index {index}`" for index in {p.name: 0 for p in counts})
        line(f"Repair what is wrong, then send them again: {again}.")


@dead_letters.command("replay")
@option("--index NAME", "The index that the dead letters are for.", dest="name", required=True)
@INDEX_ENCODER
@JSON
def replay(name: str, encoder: str | None, as_json: bool) -> None:
    """Send the dead letters of an index again, and remove those that went through.

    Repair what was wrong first: the index's settings, the encoder's server, or the documents themselves, in the file
    that `langshift dead-letters list` names (the line in `document`). Documents are processed as by the last load into
    the index. A document that was loaded as a whole since then is not changed.

    Exit codes: 0 none are left, 3 some are left, with their new reasons.

    \b
    Example:
      langshift dead-letters replay --index news
    """
    with waiting(USUAL_PATIENCE):
        code = run_replay(name, encoder, as_json=as_json)
    click.get_current_context().exit(code)


def _letters(found: list[LoadWorkspace], counts: Counter[LoadWorkspace]) -> Iterator[DeadLetter]:
    for place in found:
        for letter in DeadLetters(place.dead_letters):
            counts[place] += 1
            yield letter


def _fields_of_load(name: str, if_exists: IfExists, given: FieldNames | None, chunk: str | None) -> FieldNames:
    """The fields and the chunks that were asked for; what was not asked for is as in the index, where there is one."""
    chunking = str(Chunking.parse(chunk)) if chunk not in (None, "off") else None
    asked_for = chunked_fields(given or metadata.USUAL, chunking)
    if if_exists == "fail" or (given is not None and chunk is not None):
        return asked_for
    there = _index(open_cluster(), name)
    if there is None or not there.fields.split:
        return asked_for
    chunking = there.fields.chunking if chunk is None else chunking
    kept = (there.fields if given is None else metadata.USUAL).chunked(None if chunk is not None else chunking)
    if if_exists != "append" and kept != metadata.USUAL:
        note(f"The new version is loaded as {there.index} was, with {kept.as_options()}.")
    return chunked_fields(given or there.fields, chunking)


def _index(client: OpenSearch, name: str) -> IndexInfo | None:
    """What is live; None where there is nothing of langshift's, which the load itself refuses where it matters."""
    try:
        return live(client, name)
    except metadata.MetadataError:
        raise
    except ClusterError:
        return None


def _fingerprint_of_index(name: str) -> Fingerprint | None:
    """What made an index; None where there is none."""
    there = _index(open_cluster(), name)
    return None if there is None else there.fingerprint


def _meta_of_index(name: str, pipeline: PipelineOptions) -> dict[str, Any] | None:
    """The ``_meta`` of an index that tells how documents for it are shifted, where no file of vectors does."""
    if not pipeline.default_shift or shipped(pipeline.encoder) is not None:
        return None
    client = open_cluster()
    there = _index(client, name)
    return None if there is None else metadata.read_metadata(client, there.index)


def _vector_spec(made: Fingerprint | None) -> VectorSpec | None:
    """What vectors an index holds, for a corpus that brings none since it only deletes or updates."""
    return None if made is None else VectorSpec(made.dimension, made.normalised)


def _print(summary: progress.LoadSummary) -> None:
    if summary.updated and not summary.documents:
        line(f"Updated {pluralize(summary.updated, 'document')} in {summary.name} ({summary.index}).")
        return
    _print_languages(summary.languages.most_common(), "chunks" if summary.in_chunks else "documents")
    # Of this run: what earlier ones did took no time in it.
    if (documents := min(summary.documents, summary.lines - summary.resumed)) > 0 and summary.seconds["encode"]:
        timed = [(stage, max(summary.seconds[stage], 1e-9)) for stage in progress.STAGES if stage != "read"]
        rates = ", ".join(f"{stage} {documents / seconds:,.0f}/s" for stage, seconds in timed)
        out.print(f"Speed of each stage: {rates}.", soft_wrap=True)
    chunks = f" in {pluralize(summary.in_chunks, 'chunk')}" if summary.in_chunks else ""
    line(
        f"Indexed {pluralize(summary.documents, 'document')}{chunks} into {summary.name} ({summary.index}), "
        f"{summary.shifted:,} of them {progress.moved_in_words(summary.made)}."
    )

"""The commands ``ingest``, ``adopt`` and ``dead-letters``."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift import parameters
from langshift.client import open_cluster
from langshift.commands.search import note_calibration_due
from langshift.debias.encoders import VectorSpec, is_given
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.vectors import shipped
from langshift.errors import ClusterError, UsageError
from langshift.evaluate.audit import report as audit_report
from langshift.evaluate.audit.audit import audit as audit_index
from langshift.ingest import progress
from langshift.ingest.adopt.adopt import AdoptableIndex, open_for_adoption, require_name
from langshift.ingest.adopt.adopt import adopt as adopt_index
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, grouped
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import PipelineOptions
from langshift.ingest.dead_letter_replay import none_of, run_replay, say, with_letters
from langshift.ingest.load import load_source
from langshift.ingest.resume import LoadOptions
from langshift.ingest.sources import open_source, require_readable
from langshift.output import emit_json, line, note, out, pluralize, table
from langshift.parameters import (
    ALPHA,
    DOCUMENTS_ONLY,
    ENCODER,
    ENCODER_OF_INDEX,
    GAMMA,
    JSON,
    MEANS,
    PATIENCE,
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
)
from langshift.plugin import description, metadata, stored_shift
from langshift.plugin.index_body import ENGINES, Engine, IndexOptions
from langshift.plugin.metadata import FieldNames
from langshift.plugin.user_template import Template
from langshift.plugin.versions import IfExists, check_name, live
from langshift.retry import sigterm_as_interrupt
from langshift.server_errors import reason
from langshift.settings import Settings

_METHOD = option("--method NAME", "shift, or affine (a linear map of each language).", default="shift", rare=True)
_SOFT = flag("--soft", "Shift by all languages a document may be in, by their probability.", rare=True)
_LID_MODEL = option("--lid-model FILE", "Another fastText model that detects languages.", rare=True)


def _make_pipeline_options(*, min_confidence: float, **values: Any) -> PipelineOptions:  # noqa: ANN401 - what click has checked
    return PipelineOptions(**{"method": "shift", "soft": False, **values}, least_confidence=min_confidence)


def _pipeline_options(encoder: Decorator, *more: Decorator, unless: str = "") -> Decorator:
    """The options of a command that makes documents' vectors; it is given them as ``pipeline``."""
    least_confidence = option(
        "--min-confidence P",
        f"Do not shift a document whose language is less certain{unless}.",
        SHARE,
        default=0.5,
        rare=True,
    )
    usual = (encoder, REMOTE_CODE, VECTORS, ALPHA, GAMMA, DOCUMENTS_ONLY, MEANS)
    return option_group("pipeline", _make_pipeline_options, *usual, *more, _LID_MODEL, least_confidence)


@click.command(cls=Command)
@click.argument("old")
@option("--name NEW", "The name of the new index; not needed with --audit.")
@option("--vector-field F", "The field of OLD with the vectors.", dest="vector", required=True)
@option(
    "--text-field T",
    "A text field of OLD, for languages and word search; can be repeated.",
    dest="texts",
    required=True,
    multiple=True,
)
@option(
    "--language-field L",
    "A field of OLD with the language. [default: detected]",
    dest="language",
)
@_pipeline_options(ENCODER)
@option(
    "--if-exists WHAT",
    "What to do if NEW exists: fail, replace it, or new-version, which keeps the old one for a rollback.",
    click.Choice(["fail", "replace", "new-version"]),
    default="fail",
)
@PATIENCE
@flag("--audit", "Only report what a shift would change.")
@option(
    "--sample N",
    "With --audit: how many documents, and queries at most, to look at. [default: 2000]",
    click.IntRange(100, 10_000),
    rare=True,
)
@option(
    "--queries FILE",
    "With --audit: queries.jsonl as in BEIR. [default: the documents are used as queries]",
    rare=True,
)
@json_or_tables
def adopt(
    old: str,
    name: str | None,
    vector: str,
    texts: tuple[str, ...],
    language: str | None,
    pipeline: PipelineOptions,
    if_exists: IfExists,
    patience: float,
    audit: bool,
    sample: int | None,
    queries: Path | None,
    as_json: bool,
) -> None:
    """Take over OLD, an index (or alias) with vectors from any source, as the new index NEW.

    NEW has the same fields, mapping, analyzers and settings; each document's language is detected and its vector
    shifted. Nothing is encoded: --encoder only names the encoder that the vectors are from.

    OLD is only read. What is written to it from now on is not in NEW: send it to both (see langshift pipeline). A
    document that NEW does not accept goes to the dead letters, and the exit code is 3. An interrupted run leaves
    nothing behind: run it again.

    \b
    Example:
      langshift adopt old-articles --audit --vector-field vec --text-field headline --text-field body
      langshift adopt old-articles --name news --vector-field vec --text-field body --language-field meta.lang
    """
    if not audit and (sample is not None or queries is not None):
        raise UsageError("--sample and --queries only apply to --audit: give --audit too.")
    there = FieldNames(vector, texts=texts, declared_language=language)
    if audit:
        with open_cluster() as client, open_for_adoption(client, old, there, pipeline, patience) as opened:
            found = audit_index(opened, sample or 2000, queries)
            if as_json:
                emit_json(audit_report.document(found))
            else:
                audit_report.show(found)
        return
    if name is None:
        raise UsageError("Give the new index a name with --name, or only inspect the old one with --audit.")
    check_name(name)
    options = LoadOptions(if_exists, patience=patience)
    client = open_cluster()
    with ExitStack() as stack:
        stack.enter_context(sigterm_as_interrupt())
        opened = stack.enter_context(open_for_adoption(client, old, there, pipeline, patience))
        require_name(client, opened.old, name, options)
        watch = stack.enter_context(_reporter(client, name, opened.old.name, pipeline))
        try:
            summary = adopt_index(client, opened, name, options, watch)
        except RequestError as error:
            why, remedy = reason(error), ""
            if "total fields" in why:
                limit = "index.mapping.total_fields.limit"
                remedy = f": raise {limit} of {opened.old.index} by 20, which changes no document"
            raise ClusterError(f"The cluster refuses the new index ({why}){remedy}.") from error
        last = _last_line(summary, opened)
        _log.info("%s", last)
    if as_json:
        emit_json(_document(summary, opened))
    else:
        _print_adopted(summary, opened)
    # Whoever searched the old index sends queries as they are.
    if stored_shift.moves_queries(noted := metadata.read_metadata(client, summary.index)):
        note(description.of_queries(name, noted)[0])
    code = progress.report_end(summary, opened.pipeline, last, as_json=as_json)
    note_calibration_due(client, name)
    click.get_current_context().exit(code)


_log = logging.getLogger(__name__)


def _reporter(client: OpenSearch, name: str, corpus: str, pipeline: PipelineOptions) -> progress.LoadReporter:
    """What shows and logs a load, once the versions are named that others are making."""
    for sentence in progress.unfinished_versions(client, name):
        note(sentence)
    return progress.LoadReporter(corpus, pipeline, LoadWorkspace.of(Settings.from_env().home, client, name))


def _document(summary: progress.LoadSummary, opened: AdoptableIndex) -> dict[str, object]:
    """As ``langshift adopt --json`` prints it: as of a load, with the old index and the names of fields."""
    # The others are of a load alone.
    needless = ("corpus", "cut", "longest", "resumed", "deleted", "updated", "encoded_again")
    values = {name: value for name, value in summary.to_dict().items() if name not in needless}
    old = {"name": summary.corpus, "index": opened.old.index, "uuid": opened.old.uuid}
    return {**values, "old": old, "fields": opened.fields.to_dict()}


def _print_languages(counts: list[tuple[str, int]]) -> None:
    table(None, ["language", "documents"], [[tag, f"{count:,}"] for tag, count in counts], right={"documents"})


def _print_adopted(summary: progress.LoadSummary, opened: AdoptableIndex) -> None:
    _print_languages(sorted(summary.languages.items(), key=lambda one: (-one[1], one[0])))
    without = f", {summary.vectorless:,} without a vector" if summary.vectorless else ""
    line(
        f"Adopted {pluralize(summary.documents, 'document')} of {opened.old.shown} into {summary.name} "
        f"({summary.index}), {summary.shifted:,} of them {progress.moved_in_words(summary.made)}{without}; "
        f"{opened.old.name} was not touched."
    )


def _last_line(summary: progress.LoadSummary, opened: AdoptableIndex) -> str:
    """That nothing was lost, and what is not there."""
    parts = [f"{pluralize(summary.present, 'document')} on the server, checked"]
    if summary.dead:
        parts.append(f"{pluralize(summary.dead, 'dead letter')} ({progress.dead_letters_say(summary.name)})")
    return (
        f"All {pluralize(summary.lines, 'document')} that searches of {opened.old.name} found when reading began are "
        f"accounted for: {', '.join(parts)}. Anything written to {opened.old.name} since is not in {summary.name}."
    )


def _make_load_options(*, template: Path | None, engine: Engine | None, **values: Any) -> LoadOptions:  # noqa: ANN401 - what click has checked
    return LoadOptions(**values, shape=IndexOptions(Template.read(template) if template else None, engine))


@click.command(cls=Command)
@click.argument("corpus")
@option("--index NAME", "The index, created if it does not exist.", dest="name", required=True)
@THREADS
@_pipeline_options(ENCODER_OF_INDEX, _METHOD, _SOFT, unless=" (--soft does)")
@option_group(
    "options",
    _make_load_options,
    option(
        "--if-exists WHAT",
        "What to do if it exists: fail, append, replace it, or new-version, which keeps the old one for a rollback.",
        click.Choice(["fail", "append", "replace", "new-version"]),
        default="fail",
    ),
    option(
        "--template FILE",
        "JSON with analyzers, mappings or settings of your own for a new index.",
        rare=True,
    ),
    option(
        "--engine NAME",
        "The vector engine of a new index: lucene, faiss, faiss-fp16 or faiss-on-disk. [default: lucene]",
        click.Choice(ENGINES),
        rare=True,
    ),
    flag("--resume", "Resume an interrupted load, or start one if there is none."),
    flag("--fast-load", "Add a new index's replicas at the end.", dest="fast", rare=True),
    PATIENCE,
)
@json_or_tables
def ingest(corpus: str, name: str, pipeline: PipelineOptions, options: LoadOptions, as_json: bool) -> None:
    """Index CORPUS: detect each document's language, encode, shift and write it.

    CORPUS is a JSONL file (_id, title, text, language, group and any other field; plain, gzip or zstd), a
    Parquet file with such columns, or - for standard input. Of two documents with the same _id the later one
    wins; "_op": "update" changes single fields, "_op": "delete" deletes. A line that cannot be indexed goes to
    the dead letters (see langshift dead-letters; exit code 3).

    After a crash, a lost cluster or Ctrl-C, run the same command with --resume; nothing is lost or duplicated.

    \b
    Example:
      langshift ingest corpus.jsonl --index news --template own.json --engine faiss-fp16
    """
    check_name(name)
    if not pipeline.encoder:
        # A corpus that cannot be read is refused before anybody is asked.
        require_readable(corpus)
        made = _fingerprint_of_index(name)
        pipeline = replace(pipeline, encoder=parameters.default_encoder() if made is None else made.encoder)
    index_meta = _meta_of_index(name, pipeline) if options.if_exists == "append" else None
    # Vectors that come with the corpus are known when it is read, everything else before.
    opened = None if is_given(pipeline.encoder) else pipeline.open(None, index_meta)
    with ExitStack() as stack:
        stack.enter_context(sigterm_as_interrupt())
        source = stack.enter_context(open_source(corpus, embeddings="refused" if opened else "needed"))
        if not source.resumable:
            # While there is still a choice.
            message = f"{source.shown[:1].upper()}{source.shown[1:]} cannot be resumed"
            if options.resume:
                raise UsageError(f"{message}: give a file, or leave --resume out.")
            note(f"{message}: if this load is interrupted, it has to start again. A load from a file can be resumed.")
        opened = opened or pipeline.open(source.vector_spec or _vector_spec(_fingerprint_of_index(name)), index_meta)
        client = open_cluster()
        watch = stack.enter_context(_reporter(client, name, corpus, pipeline))
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

    Reasons are shown without the details of single documents: ids, quoted values, numbers. The files that are
    named contain each document as it was read. No cluster is needed.

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
        say(none_of(name))
    else:
        rows = []
        for group in groups:
            example = f"{Path(group.example.corpus).name}, line {group.example.line}"
            rows.append([f"{group.count:,}", group.stage, group.type, group.reason, example])
        columns = ["count", "stage", "type", "reason", "example"]
        table(None, columns, rows, right={"count"}, prose={"reason", "example"})
        for (place, count), file in zip(counts.items(), files, strict=True):
            say(f"{pluralize(count, 'dead letter')} of {place.name} in {file}")
        again = ", ".join(f"`langshift dead-letters replay --index {index}`" for index in {p.name: 0 for p in counts})
        say(f"Repair what is wrong, then send them again: {again}.")


@dead_letters.command("replay")
@option("--index NAME", "The index that the dead letters are for.", dest="name", required=True)
@JSON
def replay(name: str, as_json: bool) -> None:
    """Send the dead letters of an index again, and remove those that went through.

    Repair what was wrong first: the index's settings, the encoder's server, or the documents themselves, in the file
    that `langshift dead-letters list` names (the line in `document`). Documents are processed as by the last load into
    the index. A document that was loaded as a whole since then is not changed.

    Exit codes: 0 none are left, 3 some are left, with their new reasons.

    \b
    Example:
      langshift dead-letters replay --index news
    """
    click.get_current_context().exit(run_replay(name, as_json=as_json))


def _letters(found: list[LoadWorkspace], counts: Counter[LoadWorkspace]) -> Iterator[DeadLetter]:
    for place in found:
        for letter in DeadLetters(place.dead_letters):
            counts[place] += 1
            yield letter


def _fingerprint_of_index(name: str) -> Fingerprint | None:
    """What made an index; None where there is none that can be asked."""
    try:
        return live(open_cluster(), name).fingerprint
    except ClusterError:
        return None


def _meta_of_index(name: str, pipeline: PipelineOptions) -> dict[str, Any] | None:
    """The ``_meta`` of an index that tells how documents for it are shifted, where no file of vectors does."""
    if not pipeline.default_shift or shipped(pipeline.encoder) is not None:
        return None
    try:
        client = open_cluster()
        return metadata.read_metadata(client, live(client, name).index)
    except ClusterError:
        return None


def _vector_spec(made: Fingerprint | None) -> VectorSpec | None:
    """What vectors an index holds, for a corpus that brings none since it only deletes or updates."""
    return None if made is None else VectorSpec(made.dimension, made.normalised)


def _print(summary: progress.LoadSummary) -> None:
    if summary.updated and not summary.documents:
        line(f"Updated {pluralize(summary.updated, 'document')} in {summary.name} ({summary.index}).")
        return
    _print_languages(summary.languages.most_common())
    # Of this run: what earlier ones did took no time in it.
    if (documents := min(summary.documents, summary.lines - summary.resumed)) > 0 and summary.seconds["encode"]:
        timed = [(stage, max(summary.seconds[stage], 1e-9)) for stage in progress.STAGES if stage != "read"]
        rates = ", ".join(f"{stage} {documents / seconds:,.0f}/s" for stage, seconds in timed)
        out.print(f"Speed of each stage: {rates}.", soft_wrap=True)
    line(
        f"Indexed {pluralize(summary.documents, 'document')} into {summary.name} ({summary.index}), "
        f"{summary.shifted:,} of them {progress.moved_in_words(summary.made)}."
    )

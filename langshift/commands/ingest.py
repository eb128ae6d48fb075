"""The commands ``ingest``, ``adopt`` and ``dead-letters``."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from opensearchpy.exceptions import RequestError

from langshift.client import open_cluster
from langshift.commands.options import (
    ALPHA,
    JSON,
    LANGUAGE_VECTORS,
    LEAST_CONFIDENCE,
    LID_MODEL,
    PATIENCE,
    encoder_options,
)
from langshift.debias.encoders import VectorSpec, is_given
from langshift.errors import ClusterError, UsageError
from langshift.evaluate.audit.audit import audit
from langshift.evaluate.audit.report import document, show
from langshift.ingest.adopt.adopt import AdoptableIndex, AdoptionRequest, open_for_adoption, require_name
from langshift.ingest.adopt.adopt import adopt as adopt_index
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, Group, grouped
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import PipelineOptions
from langshift.ingest.dead_letter_replay import none_of, say, with_letters
from langshift.ingest.documents import Embeddings
from langshift.ingest.load import load_source
from langshift.ingest.progress import (
    STAGES,
    LoadReporter,
    LoadSummary,
    dead_letters_say,
    last_line,
    moved_in_words,
    no_progress,
    report_end,
    unfinished_versions,
)
from langshift.ingest.resume import LoadOptions
from langshift.ingest.sources import open_source
from langshift.output import emit_json, note, out, pluralize, table
from langshift.parameters import Share
from langshift.plugin.index_body import ENGINES
from langshift.plugin.versions import check_name, live
from langshift.retry import sigterm_as_interrupt
from langshift.server_errors import reason
from langshift.settings import Settings

if TYPE_CHECKING:
    from langshift.plugin.index_body import Engine
    from langshift.plugin.versions import IfExists

#: Documents that are drawn where nothing else is asked for.
SAMPLE = 2000


def run_audit(request: AdoptionRequest, size: int, queries: Path | None, patience: float, *, as_json: bool) -> None:
    """Look at a sample of an index, and tell what a shift would change; nothing is written."""
    with open_cluster() as client, open_for_adoption(client, request, patience) as opened:
        found = audit(opened, size, queries)
        if as_json:
            emit_json(document(found))
        else:
            show(found)


@click.command()
@click.argument("old")
@click.option("--name", metavar="NEW", help="The name of the new index; not needed with --audit.")
@click.option("--vector-field", "vector", required=True, metavar="F", help="The field of OLD that holds the vectors.")
@click.option(
    "--text-field",
    "texts",
    required=True,
    multiple=True,
    metavar="T",
    help="A field of OLD with text, of which languages are detected; again for more. Word search looks into them.",
)
@click.option(
    "--language-field",
    "language",
    metavar="L",
    help="A field of OLD that names a document's language as a BCP 47 tag (th, zh-TW). [default: detected]",
)
@encoder_options
@LANGUAGE_VECTORS
@ALPHA
@LID_MODEL
@LEAST_CONFIDENCE
@click.option(
    "--if-exists",
    type=click.Choice(["fail", "replace", "new-version"]),
    default="fail",
    show_default=True,
    help="Where NEW exists: refuse, put a new version in its place, or do so and keep the old one.",
)
@PATIENCE
@click.option(
    "--audit", is_flag=True, help="Only read a random sample of OLD and say what a shift would change; write nothing."
)
@click.option(
    "--sample",
    type=click.IntRange(100, 10_000),
    metavar="N",
    help="With --audit: how many documents to draw, and how many queries to take at most. [default: 2000]",
)
@click.option(
    "--queries",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --audit: queries in BEIR's layout (queries.jsonl); with --encoder given each brings its `embedding`. "
    "[default: the documents stand in for them]",
)
@JSON
def adopt(
    old: str,
    name: str | None,
    vector: str,
    texts: tuple[str, ...],
    language: str | None,
    encoder: str,
    trust_remote_code: bool,
    vectors: Path | None,
    alpha: float | None,
    lid_model: Path | None,
    min_confidence: float,
    if_exists: IfExists,
    patience: float,
    audit: bool,
    sample: int | None,
    queries: Path | None,
    as_json: bool,
) -> None:
    """Take over OLD, an index (or alias) with vectors that anybody has made, as NEW.

    Its documents are read, their languages detected, their vectors shifted, and all is written to a new index with
    the same fields, mapping, analyzers and settings; nothing is encoded: --encoder only names what made the vectors.
    Each document also gets its language, how certain that is, and what was done to its vector. NEW is searched,
    measured and retuned as any index of langshift's.

    OLD is never written to, not even refreshed: what no search of OLD finds yet, and what is written to OLD while it
    is read or later, is not in NEW. Send new documents to NEW too (see langshift pipeline), or stop writing to OLD.
    A document that NEW does not take goes to the dead letters, and the exit code is 3. A run that is cut off leaves
    nothing of NEW behind: run it again.

    \b
    Example:
      langshift adopt old-articles --audit --vector-field vec --text-field headline --text-field body
      langshift adopt old-articles --name news --vector-field vec --text-field headline --text-field body
      langshift adopt old-articles --name news --vector-field vec --text-field body --language-field meta.lang
    """
    from langshift.ingest.adopt.adopt import AdoptionRequest
    from langshift.ingest.config import PipelineOptions
    from langshift.ingest.resume import LoadOptions

    if not audit and (sample is not None or queries is not None):
        raise UsageError("--sample and --queries say what --audit looks at: give --audit too.")
    pipeline_options = PipelineOptions(
        encoder=encoder,
        trust_remote_code=trust_remote_code,
        vectors=vectors,
        alpha=alpha,
        method="shift",
        soft=False,
        lid_model=lid_model,
        least_confidence=min_confidence,
    )
    request = AdoptionRequest(old, vector, texts, language, pipeline_options)
    if audit:
        run_audit(request, sample or SAMPLE, queries, patience, as_json=as_json)
        return
    if name is None:
        raise UsageError("Give the new index a name with --name, or only look at the old one with --audit.")
    code = run_adopt(AdoptOptions(request, name, LoadOptions(if_exists, patience=patience), as_json))
    if code:
        click.get_current_context().exit(code)


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AdoptOptions:
    """The command's options.

    Attributes:
        request: what is to be adopted.
        name: the new index.
        load: how it is written.
        as_json: whether to print JSON.
    """

    request: AdoptionRequest
    name: str
    load: LoadOptions
    as_json: bool


def run_adopt(options: AdoptOptions) -> int:
    """Check what was given before anything is written; then adopt and tell.

    Returns:
        The exit code: 0, or 3 where documents went to dead letters.
    """
    name = options.name
    check_name(name)
    client = open_cluster()
    with ExitStack() as stack:
        stack.enter_context(sigterm_as_interrupt())
        opened = stack.enter_context(open_for_adoption(client, options.request, options.load.patience))
        require_name(client, opened.old, name, options.load)
        for sentence in unfinished_versions(client, name):
            note(sentence)
        place = LoadWorkspace.of(Settings.from_env().home, client, name)
        watch = stack.enter_context(LoadReporter(opened.old.name, options.request.pipeline_options, place))
        try:
            summary = adopt_index(client, opened, name, options.load, watch)
        except RequestError as error:
            raise ClusterError(_refused(opened, reason(error))) from error
        last = _last_line(summary, opened)
        _log.info("%s", last)
    if options.as_json:
        emit_json(_document(summary, opened))
    else:
        _print_adopted(summary, opened)
    return report_end(summary, opened.pipeline, last, as_json=options.as_json)


def _refused(opened: AdoptableIndex, why: str) -> str:
    remedy = ""
    if "total fields" in why:
        remedy = f": raise index.mapping.total_fields.limit of {opened.old.index} by 20, which changes no document"
    return f"The cluster refuses the new index ({why}){remedy}."


def _document(summary: LoadSummary, opened: AdoptableIndex) -> dict[str, object]:
    """As ``langshift adopt --json`` prints it: as of a load, with the old index and the names of fields."""
    values = summary.to_dict()
    old = {"name": values.pop("corpus"), "index": opened.old.index, "uuid": opened.old.uuid}
    # Of a load alone.
    for needless in ("cut", "longest", "resumed", "deleted"):
        values.pop(needless)
    return {**values, "old": old, "fields": opened.fields.to_dict()}


def _print_adopted(summary: LoadSummary, opened: AdoptableIndex) -> None:
    counts = sorted(summary.languages.items(), key=lambda one: (-one[1], one[0]))
    rows = [[tag, f"{count:,}"] for tag, count in counts]
    table(None, ["language", "documents"], rows, right={"documents"})
    without = f", {summary.vectorless:,} without a vector" if summary.vectorless else ""
    out.print(
        f"Adopted {pluralize(summary.documents, 'document')} of {opened.old.shown} into {summary.name} "
        f"({summary.index}), {summary.shifted:,} of them {moved_in_words(summary.made)}{without}; "
        f"{opened.old.name} was not touched.",
        markup=False,
        soft_wrap=True,
    )


def _last_line(summary: LoadSummary, opened: AdoptableIndex) -> str:
    """That nothing was lost, and what is not there."""
    parts = [f"{pluralize(summary.present, 'document')} on the server, checked"]
    if summary.dead:
        parts.append(f"{pluralize(summary.dead, 'dead letter')} ({dead_letters_say(summary.name)})")
    return (
        f"All {pluralize(summary.lines, 'document')} that searches of {opened.old.name} found when reading began are "
        f"accounted for: {', '.join(parts)}. What is written to {opened.old.name} since then is not in {summary.name}."
    )


@click.command()
@click.argument("corpus")
@click.option("--index", "name", required=True, metavar="NAME", help="The index, made if there is none.")
@encoder_options
@LANGUAGE_VECTORS
@ALPHA
@click.option(
    "--method",
    default="shift",
    show_default=True,
    metavar="NAME",
    help="How documents are moved: shift, or affine (a linear map of each language onto the pivot's space).",
)
@click.option(
    "--soft",
    is_flag=True,
    help="Shift a detected document by all languages that it may be in, as far as each is probable.",
)
@LID_MODEL
@click.option(
    "--min-confidence",
    type=Share(),
    default=0.5,
    show_default=True,
    metavar="P",
    help="A detection below this makes a document `und`, which is not shifted, unless by --soft.",
)
@click.option(
    "--if-exists",
    type=click.Choice(["fail", "append", "replace", "new-version"]),
    default="fail",
    show_default=True,
    help="Where the index exists: refuse, add to it, put a new version in its place, or do so and keep the old one.",
)
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Own analyzers, fields and settings of a new index: JSON with any of analyzers, mappings, settings.",
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="What indexes the vectors of a new index; the embedded OpenSearch has lucene only. [default: lucene]",
)
@click.option("--resume", is_flag=True, help="Go on with a load that was cut off; without one, begin.")
@click.option("--fast-load", is_flag=True, help="Make a new index without replicas, which it gets at the end.")
@PATIENCE
@JSON
def ingest(
    corpus: str,
    name: str,
    encoder: str,
    trust_remote_code: bool,
    vectors: Path | None,
    alpha: float | None,
    method: str,
    soft: bool,
    lid_model: Path | None,
    min_confidence: float,
    if_exists: IfExists,
    template: Path | None,
    engine: Engine | None,
    resume: bool,
    fast_load: bool,
    patience: float,
    as_json: bool,
) -> None:
    """Index CORPUS: detect each document's language, encode it, shift it, write it.

    CORPUS is a JSONL file (_id, title, text, language, group and any other field; plain, gzip or zstd), a
    Parquet file with such columns, or - for standard input. A document's own language wins over detection.
    Of two documents with one _id the later wins; {"_op": "delete", "_id": ...} deletes. A line that cannot be
    indexed goes to the dead letters (see langshift dead-letters), and the exit code is 3.

    After a crash, a lost cluster or Ctrl-C the same command with --resume goes on; nothing is lost or doubled.

    A template {"analyzers": {"ja": "kuromoji"}} has Japanese texts analyzed by kuromoji, which the cluster must have.

    \b
    Example:
      langshift ingest corpus.jsonl --index news
      langshift ingest corpus.jsonl --index news --template own.json --engine faiss-fp16
    """
    from langshift.ingest.config import PipelineOptions
    from langshift.ingest.resume import LoadOptions
    from langshift.plugin.index_body import IndexOptions
    from langshift.plugin.user_template import Template

    shape = IndexOptions(Template.read(template) if template else None, engine)
    code = run_ingest(
        IngestOptions(
            corpus=corpus,
            name=name,
            pipeline_options=PipelineOptions(
                encoder=encoder,
                trust_remote_code=trust_remote_code,
                vectors=vectors,
                alpha=alpha,
                method=method,
                soft=soft,
                lid_model=lid_model,
                least_confidence=min_confidence,
            ),
            load=LoadOptions(if_exists, resume, fast_load, patience, shape),
            as_json=as_json,
        )
    )
    if code:
        click.get_current_context().exit(code)


@click.group("dead-letters")
def dead_letters() -> None:
    """Documents that could not be indexed: see why, repair them, and send them again.

    \b
    Example:
      langshift dead-letters list
    """


@dead_letters.command("list")
@click.option("--index", "name", metavar="NAME", help="Only those of this index. [default: of every index]")
@JSON
def list_(name: str | None, as_json: bool) -> None:
    """Show dead letters by what was wrong with them, the most frequent first.

    Reasons are shown without what is one document's alone: its id, quoted values, numbers. The files that are
    named hold each document as it came. No cluster is needed.

    \b
    Example:
      langshift dead-letters list --index news
    """
    run_list(name, as_json=as_json)


@dead_letters.command("replay")
@click.option("--index", "name", required=True, metavar="NAME", help="The index that they were meant for.")
@JSON
def replay(name: str, as_json: bool) -> None:
    """Send the dead letters of an index again, and remove those that went through.

    Repair what was wrong first: the index's settings, the encoder's server, or in the file that
    `langshift dead-letters list` names the documents themselves (the line in `document`). Documents are made as by the
    last load into the index. A document that was updated since then stays as it is.

    Exit codes: 0 none is left, 3 some stay, with their new reason.

    \b
    Example:
      langshift dead-letters replay --index news
    """
    from langshift.ingest.dead_letter_replay import run_replay

    if code := run_replay(name, as_json=as_json):
        click.get_current_context().exit(code)


def run_list(name: str | None, *, as_json: bool) -> None:
    """Show the dead letters of an index, or of all, by what was wrong.

    Raises:
        UsageError: a file holds a line that is no dead letter.
    """
    counts: Counter[LoadWorkspace] = Counter()
    groups = grouped(_letters(with_letters(name), counts))
    files = [str(place.dead_letters) for place in counts]
    if as_json:
        emit_json({"total": counts.total(), "groups": [group.to_dict() for group in groups], "files": files})
    elif not groups:
        say(none_of(name))
    else:
        _print_groups(groups)
        for (place, count), file in zip(counts.items(), files, strict=True):
            say(f"{pluralize(count, 'dead letter')} of {place.name} in {file}")
        again = ", ".join(f"`langshift dead-letters replay --index {index}`" for index in {p.name: 0 for p in counts})
        say(f"Repair what is wrong, then send them again: {again}.")


def _letters(found: list[LoadWorkspace], counts: Counter[LoadWorkspace]) -> Iterator[DeadLetter]:
    for place in found:
        for letter in DeadLetters(place.dead_letters):
            counts[place] += 1
            yield letter


def _print_groups(groups: list[Group]) -> None:
    rows = [
        [
            f"{group.count:,}",
            group.stage,
            group.type,
            group.reason,
            f"{Path(group.example.corpus).name}, line {group.example.line}",
        ]
        for group in groups
    ]
    table(None, ["count", "stage", "type", "reason", "for example"], rows, right={"count"})


@dataclass(frozen=True)
class IngestOptions:
    """The command's options.

    Attributes:
        corpus: a file, or ``-`` for standard input.
        name: the index.
        pipeline_options: how documents are made.
        load: how the load is done.
        as_json: whether to print JSON.
    """

    corpus: str
    name: str
    pipeline_options: PipelineOptions
    load: LoadOptions
    as_json: bool


def run_ingest(options: IngestOptions) -> int:
    """Check what was given before anything is started; then load and tell.

    Returns:
        The exit code: 0, or 3 where documents went to dead letters.
    """
    name = options.name
    check_name(name)
    # Vectors that come with the corpus are known when it is read, everything else before.
    pipeline = None if is_given(options.pipeline_options.encoder) else options.pipeline_options.open(None)
    embeddings: Embeddings = "refused" if pipeline else "needed"
    with ExitStack() as stack:
        stack.enter_context(sigterm_as_interrupt())
        source = stack.enter_context(open_source(options.corpus, embeddings=embeddings))
        if not source.resumable:
            _warn_not_resumable(source.shown, options.load)
        pipeline = pipeline or options.pipeline_options.open(source.vector_spec or _vector_spec_of_index(name))
        client = open_cluster()
        for sentence in unfinished_versions(client, name):
            note(sentence)
        place = LoadWorkspace.of(Settings.from_env().home, client, name)
        watch = stack.enter_context(LoadReporter(options.corpus, options.pipeline_options, place))
        summary = load_source(client, source, name, pipeline, no_progress, options.load, watch)
        last = last_line(summary)
        _log.info("%s", last)
    if options.as_json:
        emit_json(summary.to_dict())
    else:
        _print(summary)
    return report_end(summary, pipeline, last, as_json=options.as_json)


def _warn_not_resumable(shown: str, load: LoadOptions) -> None:
    """Say so at the start, while there is still a choice.

    Raises:
        UsageError: it is to be resumed.
    """
    message = f"{shown[:1].upper()}{shown[1:]} cannot be resumed"
    if load.resume:
        raise UsageError(f"{message}: give a file, or leave --resume out.")
    note(f"{message}: should this load be cut off, it has to begin again; a file can be gone on with.")


def _vector_spec_of_index(name: str) -> VectorSpec | None:
    """What vectors an index holds, for a corpus that brings none since it only deletes; None without an index."""
    try:
        made = live(open_cluster(), name).fingerprint
    except ClusterError:
        return None
    return VectorSpec(made.dimension, made.normalised)


def _print(summary: LoadSummary) -> None:
    rows = [[tag, f"{count:,}"] for tag, count in summary.languages.most_common()]
    table(None, ["language", "documents"], rows, right={"documents"})
    # Of this run: what earlier ones did took no time in it.
    if (documents := min(summary.documents, summary.lines - summary.resumed)) > 0 and summary.seconds["encode"]:
        timed = [(stage, max(summary.seconds[stage], 1e-9)) for stage in STAGES if stage != "read"]
        rates = ", ".join(f"{stage} {documents / seconds:,.0f}/s" for stage, seconds in timed)
        out.print(f"Speed of each stage: {rates}.", soft_wrap=True)
    out.print(
        f"Indexed {pluralize(summary.documents, 'document')} into {summary.name} ({summary.index}), "
        f"{summary.shifted:,} of them {moved_in_words(summary.made)}.",
        soft_wrap=True,
    )

"""The command ``adopt``."""

import logging
from contextlib import ExitStack
from typing import Any

import click
from opensearchpy.exceptions import RequestError

from langshift.client import open_cluster
from langshift.commands.load_calibration import NO_CALIBRATION, calibrate_loaded, known
from langshift.commands.load_display import json_where_unpublished, open_reporter, report_end, show_languages
from langshift.commands.pipeline_options import MAX_REFUSED, pipeline_options, weighted_field
from langshift.errors import ClusterError, UsageError
from langshift.ingest import progress
from langshift.ingest.adopt.adopt import AdoptableIndex, open_for_adoption, require_name
from langshift.ingest.adopt.adopt import adopt as adopt_index
from langshift.ingest.config import PipelineOptions
from langshift.ingest.resume import LoadOptions
from langshift.output import emit_json, line, note
from langshift.parameters import ENCODER, JSON, PATIENCE, SPARSE, Command, flag, option, option_group
from langshift.plugin.inventory import DocumentCount, count_documents
from langshift.plugin.metadata import FieldNames
from langshift.plugin.versions import IfExists, check_name
from langshift.server_errors import reason
from langshift.wording import pluralize


def _fields_there(
    texts: tuple[str, ...], title: str | None, group: str | None, sparse_field: str | None, **others: str | None
) -> FieldNames:
    """The names of the fields of the old index, of the options of ``adopt``."""
    weighted = dict([weighted_field("--title-field", title)] if title else [])
    weighted |= dict(weighted_field("--text-field", text) for text in texts)
    weights = {name: weight for name, weight in weighted.items() if weight != 1}
    names: dict[str, Any] = {**others, "title": next(iter(weighted)) if title else None, "group": group or ""}
    return FieldNames(texts=tuple(weighted), weights=weights, sparse=sparse_field, **names)


@click.command(cls=Command)
@click.argument("old")
@option("--name NEW", "The name of the new index.", required=True)
@option_group(
    "there",
    _fields_there,
    option("--vector-field F", "The field of OLD with the vectors.", dest="vector", required=True),
    option(
        "--text-field T", "A text field (T^3: with weight 3), or several.", dest="texts", required=True, multiple=True
    ),
    option("--title-field T", "The text field with the title.", dest="title"),
    option("--language-field L", "A field with the language. [default: detected]", dest="declared_language"),
    option("--group-field G", "A field that translations share. [default: group]", dest="group"),
    option("--sparse-field F", "A rank_features field, of --sparse NAME.", dest="sparse_field", rare=True),
    option("--parent-field P", "Each entry is a chunk: a field with its document's id.", dest="parent"),
)
@flag("--analyze", "Analyze the texts by language, for word search.")
@pipeline_options(ENCODER, SPARSE)
@option(
    "--if-exists WHAT",
    "If NEW exists: fail, replace it, or new-version, which keeps the old one for a rollback.",
    click.Choice(["fail", "replace", "new-version"]),
    default="fail",
)
@MAX_REFUSED
@NO_CALIBRATION
@PATIENCE
@JSON
def adopt(
    old: str,
    name: str,
    there: FieldNames,
    analyze: bool,
    pipeline: PipelineOptions,
    if_exists: IfExists,
    max_refused: float,
    no_calibration: bool,
    patience: float,
    as_json: bool,
) -> None:
    """Take over OLD, an index (or alias) with vectors from any source, as the new index NEW.

    NEW has the same fields, mapping and settings; each document's language is detected and its vector shifted.
    Nothing is encoded: --encoder only names the encoder that the vectors are from. OLD is only read. What is written
    to it later is not in NEW: send it to both (see langshift pipeline). What NEW does not accept goes to the dead
    letters, and the exit code is 3. An interrupted run leaves nothing behind.
    `langshift index audit OLD` tells beforehand what the shift would change.

    \b
    Example:
      langshift adopt old-articles --name news --vector-field vec --text-field body --language-field meta.lang
    """
    check_name(name)
    if (there.sparse is None) != (pipeline.sparse is None):
        raise UsageError(
            "--sparse-field names the field with weights of tokens, --sparse the encoder that made them: give both; or "
            f"neither, and add weights later with `langshift reencode {name} --sparse NAME`."
        )
    options = LoadOptions(if_exists, max_refused=max_refused, patience=patience)
    client = open_cluster()
    with ExitStack() as stack:
        opened = stack.enter_context(open_for_adoption(client, old, there, pipeline, patience, analyze=analyze))
        require_name(client, opened.old, name, options)
        before = None if no_calibration or if_exists == "fail" else known(client, name)
        watch = stack.enter_context(open_reporter(client, name, opened.old.name, pipeline))
        stack.enter_context(json_where_unpublished(lambda done: _document(done, opened, None), as_json=as_json))
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
    code = report_end(summary, opened.pipeline, last, as_json=as_json)
    encoder = opened.pipeline.encoder
    calibrate_loaded(client, name, before, pipeline.encoder, encoder, needless=no_calibration, as_json=as_json)
    click.get_current_context().exit(code)


_log = logging.getLogger(__name__)


def _refused(error: RequestError, opened: AdoptableIndex) -> ClusterError:
    why, remedy = reason(error), ""
    if "total fields" in why:
        more = 20 + len(opened.fields.texts) * len(opened.fields.analyzed)
        limit = f"index.mapping.total_fields.limit of {opened.old.index}"
        remedy = f": raise {limit} by {more}, which changes no document"
    return ClusterError(f"The cluster refuses the new index ({why}){remedy}.")


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


def _print_adopted(summary: progress.LoadSummary, opened: AdoptableIndex, counted: DocumentCount) -> None:
    languages = sorted(summary.languages.items(), key=lambda one: (-one[1], one[0]))
    show_languages(languages, f"{opened.fields.entry}s")
    without = f", {summary.vectorless:,} without a vector" if summary.vectorless else ""
    line(
        f"Adopted {counted} of {opened.old.shown} into {summary.name} "
        f"({summary.index}), {summary.shifted:,} of them shifted with {summary.made.scales}{without}; "
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

"""The command ``index audit``."""

from collections.abc import Sequence
from dataclasses import replace

import click
import numpy as np

from langshift import parameters
from langshift.client import open_cluster
from langshift.commands.log_options import log_options
from langshift.debias.similarity import Floats
from langshift.errors import UsageError
from langshift.evaluate.audit.audit import Audit
from langshift.evaluate.audit.audit import audit as audit_index
from langshift.evaluate.audit.nearness import NEAREST
from langshift.evaluate.audit.report import LISTED, document, findings, verdict
from langshift.evaluate.audit.sample import open_index
from langshift.evaluate.datasets.logs import QueryLog
from langshift.ingest.config import PipelineOptions
from langshift.output import emit_json, line, note, out, table
from langshift.parameters import ALPHA, ENCODER_OF_INDEX, JSON, VECTORS, Command, option, option_group
from langshift.plugin.metadata import FieldNames
from langshift.wording import format_score, pluralize


@click.command(cls=Command)
@click.argument("name")
@option("--vector-field F", "The field with the vectors, of an index that langshift did not create.", dest="vector")
@option("--text-field T", "Likewise a field with text, or several.", dest="texts", multiple=True)
@option("--language-field L", "Likewise the field with the language. [default: detected]", dest="language")
@option_group("options", PipelineOptions, ENCODER_OF_INDEX, VECTORS, ALPHA)
@option("--sample N", "How many documents to draw.", click.IntRange(100, 10_000), default=2000)
@log_options("A log of queries to compare them with. [default: the documents]")
@JSON
def audit(
    name: str,
    vector: str | None,
    texts: tuple[str, ...],
    language: str | None,
    options: PipelineOptions,
    sample: int,
    log: QueryLog | None,
    as_json: bool,
) -> None:
    """Report what a shift changes in the index NAME, from a random sample of its documents.

    The report tells which languages there are, whether the language vectors fit, and how near documents of each
    language lie to queries before and after the shift. Nothing is written. Of an index of langshift's, the shift is its
    own where no other is given. Of any other index with vectors and text, name the fields; --encoder names what made
    the vectors.

    \b
    Example:
      langshift index audit news
      langshift index audit old-articles --vector-field vec --text-field headline --text-field body
    """
    if bool(vector) != bool(texts) or (language and not vector):
        raise UsageError("Give --vector-field and --text-field together, or neither for an index of langshift's.")
    there = FieldNames(vector, texts=texts, declared_language=language, group="") if vector else None
    if there is not None and not options.encoder:
        options = replace(options, encoder=parameters.default_encoder())
    with open_cluster() as client, open_index(client, name, there, options) as opened:
        found = audit_index(opened, sample, log)
    if as_json:
        emit_json(document(found))
    else:
        show(found)


# Languages of a table, so that 80 columns suffice; --json has all.
_DISAGREEMENTS = 5


def show(audit: Audit) -> None:
    """Print an audit."""
    line(_of_what(audit))
    _mix(audit)
    _shift(audit)
    _matrices(audit)
    _near(audit)
    out.print()
    answer = verdict(audit).sentence
    # What is found of the whole may be the verdict itself.
    for text in [*(finding.text for finding in findings(audit) if finding.text != answer), answer]:
        line(text)
    if max(len(audit.mixes), len(audit.nearness.rows.queries)) > LISTED:
        note(f"Only the {LISTED} most frequent languages are listed; --json lists all of them.")


def _of_what(audit: Audit) -> str:
    opened, sample = audit.opened, audit.sample
    without = opened.reader.total - opened.reader.bearing
    parts = [f"{len(sample.tags):,} of {pluralize(opened.reader.bearing, 'document')} with a vector, drawn at random"]
    if without:
        parts.append(f"{without:,} more have no vector")
    if sample.unusable:
        parts.append(f"{sample.unusable:,} of those drawn could not be used")
    return f"{opened.reader.old.shown}: {'; '.join(parts)}. Nothing was written."


def _mix(audit: Audit) -> None:
    columns = ["language", "documents", "share", "certainty", "norm", "5 % to 95 %"]
    named = any(mix.told for mix in audit.mixes)
    rows = []
    for mix in audit.mixes[:LISTED]:
        figures = [f"{mix.documents:,}", f"{mix.share:.1%}", format_score(mix.confidence, 2), f"{mix.norm:.3g}"]
        told = [f"{count:,}" for count in (mix.told, mix.agreed, mix.unsure)] if named else []
        rows.append([mix.language, *figures, f"{mix.low:.3g} to {mix.high:.3g}", *told])
    columns += ["named", "agree", "unsure"] if named else []
    table(None, columns, rows, right=set(columns[1:]))
    if audit.disagreements:
        most = audit.disagreements[:_DISAGREEMENTS]
        shown = ", ".join(f"{one.told} detected as {one.detected} ({one.documents:,})" for one in most)
        line(f"The detector disagrees with the languages that documents name: {shown}.")


def _shift(audit: Audit) -> None:
    out.print()
    rows = []
    for one in audit.judged[:LISTED]:
        fit = ["", "", ""]
        if one.fit is not None:
            there = one.fit.there
            interval = f"{format_score(there.low, 2)} to {format_score(there.high, 2)}"
            fit = [format_score(one.fit.cosine, 2), format_score(there.value, 2), interval]
        rows.append([one.language, one.vector or "-", f"{one.share:.1%}" if one.vector else "", *fit])
    columns = ["language", "vector", "share of norm", "cosine", "present", "95 % interval"]
    beside = f", compared with documents in {audit.reference}" if audit.reference else ""
    line(f"What the shift removes, and how much of it is present{beside}:")
    table(None, columns, rows, right=set(columns[2:]))


def _matrices(audit: Audit) -> None:
    if not audit.nearness.rows.queries or not audit.nearness.rows.documents:
        return
    out.print()
    line(f"Queries: {_queries(audit)}.")
    for title, means in (("before", audit.nearness.before), ("after", audit.nearness.after)):
        line(f"Mean cosine {title} the shift, queries in rows, documents in columns:")
        _matrix(audit, means)


def _queries(audit: Audit) -> str:
    used, total, file = len(audit.queries.tags), audit.queries.total, audit.queries.file
    if file is None:
        return "the documents themselves, none compared with itself (give real queries with --queries)"
    return f"all {used:,} in {file}" if used == total else f"{used:,} of the {total:,} in {file}, drawn at random"


def _matrix(audit: Audit, means: Floats) -> None:
    languages, query_languages = (
        _folded(list(tags), audit.reference) for tags in (audit.nearness.rows.documents, audit.nearness.rows.queries)
    )
    pairs = audit.nearness.rows.pairs
    sums = np.where(pairs > 0, means, 0.0) * pairs
    rows = []
    for tag, across in query_languages:
        parts = [np.ix_(across, down) for _, down in languages]
        totals = [(float(sums[part].sum()), float(pairs[part].sum())) for part in parts]
        rows.append([tag, *(format_score(total / count, 3) if count else "" for total, count in totals)])
    heads = [tag for tag, _ in languages]
    table(None, ["", *heads], rows, right=set(heads))


def _folded(languages: Sequence[str], reference: str | None) -> list[tuple[str, list[int]]]:
    """The reference and the most frequent languages, and all others as one, with their places."""
    first = sorted(range(len(languages)), key=lambda place: languages[place] != reference)
    listed = [(languages[place], [place]) for place in first[:LISTED]]
    rest = first[LISTED:]
    return [*listed, ("others", rest)] if rest else listed


def _near(audit: Audit) -> None:
    if not audit.near:
        return
    out.print()
    columns = ["queries in", "queries", "even mix", "before", "after"]
    rows = [
        [near.language, f"{near.queries:,}", f"{near.even:.1%}", f"{near.before:.1%}", f"{near.after:.1%}"]
        for near in sorted(audit.near, key=lambda near: near.language != audit.reference)[:LISTED]
    ]
    line(f"Of the {NEAREST} nearest documents of the sample, the share in the query's language:")
    table(None, columns, rows, right=set(columns[1:]))

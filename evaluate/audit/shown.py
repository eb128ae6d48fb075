"""An audit as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from langshift.console import counted, note, out, printable, table
from langshift.debias.similarity import Floats
from langshift.evaluate.audit.audited import NEAREST, Audit
from langshift.evaluate.audit.judged import Judged
from langshift.evaluate.audit.verdict import verdict
from langshift.evaluate.audit.words import short

# Languages of a table, so that 80 columns suffice; --json has all.
_LISTED = 8
_DISAGREEMENTS = 5


def show(audit: Audit) -> None:
    """Print an audit."""
    _say(_of_what(audit))
    _mix(audit)
    _shift(audit)
    _matrices(audit)
    _near(audit)
    out.print()
    findings = verdict(audit)
    for finding in findings:
        _say(finding.text)
    if max(len(audit.mixes), len(audit.rows.asked)) > _LISTED:
        note(f"The {_LISTED} most frequent languages are listed; --json has all.")


def _of_what(audit: Audit) -> str:
    opened, sample = audit.opened, audit.sample
    without = opened.reader.total - opened.reader.bearing
    told = [f"{counted(len(sample.tags), 'document')} of {opened.reader.bearing:,} with a vector, at random"]
    if without:
        told.append(f"{without:,} more have none")
    if sample.unusable:
        told.append(f"{sample.unusable:,} drawn could not be adopted")
    return f"{opened.old.shown}: {'; '.join(told)}. Nothing was written."


def _mix(audit: Audit) -> None:
    columns = ["language", "documents", "share", "certain", "norm", "5 % to 95 %"]
    named = any(mix.told for mix in audit.mixes)
    rows = [
        [
            mix.language,
            f"{mix.documents:,}",
            f"{mix.share:.1%}",
            short(mix.confidence),
            f"{mix.norm:.3g}",
            f"{mix.low:.3g} to {mix.high:.3g}",
            *([f"{mix.told:,}", f"{mix.agreed:,}", f"{mix.unsure:,}"] if named else []),
        ]
        for mix in audit.mixes[:_LISTED]
    ]
    columns += ["told", "agree", "unsure"] if named else []
    table(None, columns, rows, right=set(columns[1:]))
    if audit.disagreements:
        most = audit.disagreements[:_DISAGREEMENTS]
        shown = ", ".join(f"{one.told} is {one.detected} ({one.documents:,})" for one in most)
        _say(f"The detector says another language than documents: {shown}.")


def _shift(audit: Audit) -> None:
    out.print()
    rows = [_shift_row(one) for one in audit.judged[:_LISTED]]
    columns = ["language", "vector", "of norm", "cosine", "there", "95 %"]
    beside = f", beside documents in {audit.reference}" if audit.reference else ""
    _say(f"What the shift takes away, and how much of that is there{beside}:")
    table(None, columns, rows, right=set(columns[2:]))


def _shift_row(one: Judged) -> list[str]:
    share = f"{one.share:.1%}" if one.vector else ""
    row = [one.language, one.vector or "-", share]
    if one.fit is None:
        return [*row, "", "", ""]
    there = one.fit.there
    return [*row, short(one.fit.cosine), short(there.value), f"{short(there.low)} to {short(there.high)}"]


def _matrices(audit: Audit) -> None:
    if not audit.rows.asked or not audit.rows.languages:
        return
    out.print()
    moved = ", shifted by their language" if audit.opened.making.debias.shift_queries else ""
    _say(f"Queries: {_queries(audit)}{moved}.")
    for title, means in (("before", audit.before), ("after", audit.after)):
        _say(f"Mean cosine {title} the shift, queries in rows, documents in columns:")
        _matrix(audit, means)


def _queries(audit: Audit) -> str:
    used, total, file = len(audit.asking.tags), audit.asking.total, audit.asking.file
    if file is None:
        return "the documents stand in for them, none compared with itself (--queries gives real ones)"
    return f"{used:,} of {file}" if used == total else f"{used:,} at random of the {total:,} of {file}"


def _matrix(audit: Audit, means: Floats) -> None:
    languages, asked = _folded(audit.rows.languages, audit.reference), _folded(audit.rows.asked, audit.reference)
    pairs = audit.rows.pairs
    sums = np.where(pairs > 0, means, 0.0) * pairs
    rows = []
    for tag, across in asked:
        cells = []
        for _, down in languages:
            part = np.ix_(across, down)
            count = float(pairs[part].sum())
            cells.append(short(float(sums[part].sum()) / count, 3) if count else "")
        rows.append([tag, *cells])
    table(None, ["", *(tag for tag, _ in languages)], rows, right={tag for tag, _ in languages})


def _folded(languages: Sequence[str], reference: str | None) -> list[tuple[str, list[int]]]:
    """The reference and the most frequent languages, and all others as one, with their places."""
    first = sorted(range(len(languages)), key=lambda place: languages[place] != reference)
    listed = [(languages[place], [place]) for place in first[:_LISTED]]
    rest = first[_LISTED:]
    return [*listed, ("others", rest)] if rest else listed


def _near(audit: Audit) -> None:
    if not audit.near:
        return
    out.print()
    columns = ["queries in", "queries", "even mix", "before", "after"]
    rows = [
        [near.language, f"{near.queries:,}", f"{near.even:.1%}", f"{near.before:.1%}", f"{near.after:.1%}"]
        for near in sorted(audit.near, key=lambda near: near.language != audit.reference)[:_LISTED]
    ]
    _say(f"Of the {NEAREST} nearest documents of the sample, those in the query's language:")
    table(None, columns, rows, right=set(columns[1:]))


def _say(text: str) -> None:
    out.print(printable(text), markup=False, soft_wrap=True)

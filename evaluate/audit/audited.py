"""What a shift would change in an index, by a sample of it; nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from langshift.debias.similarity import Draws, Floats, Rows, Sides, same_language_nearest, spread, with_norm_1
from langshift.evaluate.audit.judged import Judged, judge_languages, reference_of
from langshift.evaluate.audit.queries import Asking, read_queries, stand_ins
from langshift.evaluate.audit.sample import Disagreement, Mix, Sample, disagreements, draw, mixes
from langshift.ingest.adopt.adopting import Opened
from langshift.languages import UNDETERMINED

#: So many nearest documents are looked at, of a sample that has several times as many.
NEAREST, _TIMES = 20, 5
# Queries that tell how much similarities differ.
_SOME = 500


class Near(NamedTuple):
    """The documents nearest to queries of one language.

    Attributes:
        language: of the queries.
        queries: how many.
        even: share of the sample's documents in this language, which chance would give.
        before: share of the nearest documents in this language, as the vectors are.
        after: the same after the shift.
    """

    language: str
    queries: int
    even: float
    before: float
    after: float


@dataclass(frozen=True)
class Audit:
    """What a sample tells.

    Attributes:
        opened: the index.
        sample: the sample.
        mixes: its languages, ``und`` among them, the most frequent first.
        disagreements: where the detector says another language than documents name.
        asking: the queries.
        rows: which queries and documents are compared.
        before: mean cosine between queries and documents, shape (asked, languages); NaN where there is no pair.
        after: the same after the shift.
        near: the nearest documents; empty where the sample is too small.
        reference: the language beside which others are seen: the pivot, or the most frequent language where there
            are too few documents or queries in that; None where there are too few in any.
        spread: how much cosines of one query with documents of the reference differ; None where there is none.
        judged: every language but ``und``, the most frequent first.
    """

    opened: Opened
    sample: Sample
    mixes: list[Mix]
    disagreements: list[Disagreement]
    asking: Asking
    rows: Rows
    before: Floats
    after: Floats
    near: list[Near]
    reference: str | None
    spread: float | None
    judged: list[Judged]


def audit(opened: Opened, size: int, queries: Path | None) -> Audit:
    """Look at a sample of an index.

    Args:
        opened: the index.
        size: how many documents to draw, and how many queries to take at most.
        queries: a file of queries; None lets the documents stand in for them.

    Raises:
        UsageError: no document can be used, or a line of the queries.
    """
    sample, making = draw(opened, size), opened.making
    found = mixes(sample)
    known = [mix.language for mix in found if mix.language != UNDETERMINED]
    asking = read_queries(queries, making, known, size) if queries and known else stand_ins(sample)
    moved = making.debias.documents(sample.vectors, sample.tags)
    before = Sides(with_norm_1(asking.vectors), with_norm_1(sample.vectors))
    after = Sides(with_norm_1(making.debias.queries(asking.vectors, asking.tags)), with_norm_1(moved))
    rows = _rows(sample, asking, known)
    draws = Draws(rows)
    cosines, later = draws.cosines(before), draws.cosines(after)
    reference = reference_of(rows, making.debias)
    judged = judge_languages(sample, moved, rows, making.debias, reference, cosines, later)
    return Audit(
        opened, sample, found, disagreements(sample), asking, rows, cosines[0], later[0],
        near=_near(before, after, rows),
        reference=reference,
        spread=_spread(before, rows, reference),
        judged=judged,
    )  # fmt: skip


def _rows(sample: Sample, asking: Asking, known: Sequence[str]) -> Rows:
    documents, queries = np.array(sample.languages), np.array(asking.languages)
    # In the documents' order, so that rows and columns of a matrix go together.
    place = {tag: number for number, tag in enumerate(known)}
    most = (tag for tag, _ in Counter(asking.languages).most_common() if tag != UNDETERMINED)
    asked = sorted(most, key=lambda tag: place.get(tag, len(known)))
    return Rows(
        known,
        asked,
        [np.flatnonzero(queries == tag) for tag in asked],
        [np.flatnonzero(documents == tag) for tag in known],
        asking.own,
    )


def _spread(sides: Sides, rows: Rows, reference: str | None) -> float | None:
    if reference is None:
        return None
    queries = rows.queries[rows.asked.index(reference)][:_SOME]
    return spread(sides, queries, rows.documents[rows.languages.index(reference)], own=rows.own)


def _near(before: Sides, after: Sides, rows: Rows) -> list[Near]:
    counts = {tag: len(of) for tag, of in zip(rows.languages, rows.documents, strict=True)}
    total = sum(counts.values()) - rows.own
    if total < NEAREST * _TIMES or len(counts) < 2:
        return []
    shares = zip(
        rows.asked,
        rows.queries,
        same_language_nearest(before, rows, NEAREST),
        same_language_nearest(after, rows, NEAREST),
        strict=True,
    )
    return [
        Near(tag, len(of), (counts[tag] - rows.own) / total, first, then)
        for tag, of, first, then in shares
        if tag in counts
    ]

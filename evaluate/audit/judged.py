"""What is known of each language of a sample: what a shift takes, whether it is there, how far documents lie."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debias import Debias
from langshift.debias.similarity import Floats, Rows
from langshift.evaluate.audit.offsets import Fit, Interval, fit, taken_share
from langshift.evaluate.audit.sample import Sample

Matrix = NDArray[np.float32]

#: Of fewer documents of a language nothing is said, and of fewer queries of the one that all are compared by.
FEWEST, FEWEST_QUERIES = 30, 10


@dataclass(frozen=True)
class Gap:
    """How much further documents of a language lie from queries of the reference than its own documents.

    Attributes:
        before: mean cosine with the reference's documents, less that with this language's.
        after: the same after the shift.
        change: ``before`` less ``after``.
    """

    before: Interval
    after: Interval
    change: Interval


class Judged(NamedTuple):
    """One language of the sample.

    Attributes:
        language: as the field ``language`` would hold it.
        documents: how many of them are in the sample.
        vector: the tag of the language vector that most of them take; None where there is none.
        share: how long what the shift takes is beside a document's vector: median.
        fit: whether that is there; None where nothing is taken, or there are too few documents.
        gap: None of the reference itself, and where there are too few documents or queries.
    """

    language: str
    documents: int
    vector: str | None
    share: float
    fit: Fit | None
    gap: Gap | None


def reference_of(rows: Rows, debias: Debias) -> str | None:
    """The language beside which others are seen; None where there are too few documents or queries in any."""
    asked = {tag for tag, of in zip(rows.asked, rows.queries, strict=True) if len(of) >= FEWEST_QUERIES}
    enough = [tag for tag, of in zip(rows.languages, rows.documents, strict=True) if len(of) >= FEWEST and tag in asked]
    if debias.vectors is not None and debias.vectors.pivot in enough:
        return debias.vectors.pivot
    return next(iter(enough), None)


def judge_languages(
    sample: Sample, moved: Matrix, rows: Rows, debias: Debias, reference: str | None, before: Floats, after: Floats
) -> list[Judged]:
    """Judge every language of a sample.

    Args:
        sample: the sample.
        moved: its vectors after the shift, shape (n, d), float32.
        rows: which documents and queries are of which language.
        debias: the shift.
        reference: the language beside which others are seen, if any.
        before: mean cosines of every draw, shape (draws, asked, languages).
        after: the same after the shift.
    """
    place = {tag: column for column, tag in enumerate(rows.languages)}
    found = []
    for tag, of in zip(rows.languages, rows.documents, strict=True):
        (common, _), *_ = Counter(sample.tags[row] for row in of).most_common(1)
        fitted = gap = None
        if reference is not None and tag != reference and len(of) >= FEWEST:
            other = rows.documents[place[reference]]
            fitted = fit(sample.vectors[of], moved[of], sample.vectors[other], moved[other])
            gap = _gap(rows.asked.index(reference), place[reference], place[tag], before, after)
        share = taken_share(sample.vectors[of], moved[of])
        found.append(Judged(tag, len(of), debias.named(common), share, fitted, gap))
    return found


def _gap(asked: int, reference: int, language: int, before: Floats, after: Floats) -> Gap:
    first, then = (of[:, asked, reference] - of[:, asked, language] for of in (before, after))
    return Gap(_interval(first), _interval(then), _interval(first - then))


def _interval(drawn: Floats) -> Interval:
    """The sample's figure, and what most draws of a bootstrap lie between."""
    low, high = np.percentile(drawn[1:], [2.5, 97.5])
    return Interval(float(drawn[0]), float(low), float(high))

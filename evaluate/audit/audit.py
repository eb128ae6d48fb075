"""What a shift would change in an index, by a sample of it; nothing is written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias import similarity
from langshift.debias.debiaser import Debiaser
from langshift.debias.encoder_languages import SAMPLED, LanguageSample, collapsed, unread
from langshift.debias.similarity import Floats, LanguageRows
from langshift.evaluate.audit import sample as sampling
from langshift.evaluate.audit.nearness import NearestShare, Nearness, language_rows, measure_nearness, nearest_shares
from langshift.evaluate.audit.sample import AuditedIndex, AuditQueries, LanguageDisagreement, LanguageMix, Sample
from langshift.evaluate.datasets.logs import QueryLog
from langshift.languages import UNDETERMINED

Matrix = NDArray[np.float32]

_SURE = 1.96
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval, as far as the choice of documents and queries leaves it open."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ShiftFit:
    """How what a shift takes from documents of a language compares with how they lie.

    Attributes:
        cosine: between what is taken and the offset: the mean of the language's vectors less the mean of the
            reference's.
        there: how far the offset reaches in the direction of what is taken, as a share of its length: at 1, just
            what is taken is there; below .5 the means lie further apart after the shift than before.
    """

    cosine: float
    there: Interval


def removed_share(raw: Matrix, moved: Matrix) -> float:
    """How long what a shift takes is beside the vector that it is taken from: median over documents.

    Args:
        raw: vectors, shape (n, d), float32.
        moved: the same after the shift.
    """
    before = raw.astype(np.float64)
    return float(np.median(np.linalg.norm(before - moved, axis=1) / np.linalg.norm(before, axis=1)))


def fit(raw: Matrix, moved: Matrix, reference: Matrix, reference_moved: Matrix) -> ShiftFit | None:
    """Compare what a shift takes from documents of a language with the offset that they have.

    Args:
        raw: their vectors, shape (n, d), float32.
        moved: the same after the shift.
        reference: vectors of the documents beside which they are seen, shape (m, d), float32.
        reference_moved: the same after the shift.

    Returns:
        The fit; None where nothing is taken.
    """
    before, other = raw.astype(np.float64), reference.astype(np.float64)
    step = (before - moved).mean(axis=0) - (other - reference_moved).mean(axis=0)
    length = float(np.linalg.norm(step))
    # What rounding leaves is no step.
    if length < _ROUNDING * float(np.linalg.norm(before, axis=1).mean()):
        return None
    offset = before.mean(axis=0) - other.mean(axis=0)
    along, other_along = before @ step / length**2, other @ step / length**2
    there = float(along.mean() - other_along.mean())
    error = _SURE * float(np.sqrt(along.var(ddof=1) / len(along) + other_along.var(ddof=1) / len(other_along)))
    cosine = float(offset @ step) / max(length * float(np.linalg.norm(offset)), np.finfo(np.float64).tiny)
    return ShiftFit(cosine, Interval(there, there - error, there + error))


#: Of fewer documents of a language nothing is said, and of fewer queries of the one that all are compared by.
FEWEST, FEWEST_QUERIES = 30, 10


@dataclass(frozen=True)
class SimilarityGap:
    """How much further documents of a language lie from queries of the reference than its own documents.

    Attributes:
        before: mean cosine with the reference's documents, less that with this language's.
        after: the same after the shift.
        change: ``before`` less ``after``.
    """

    before: Interval
    after: Interval
    change: Interval


@dataclass(frozen=True)
class LanguageFinding:
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
    fit: ShiftFit | None
    gap: SimilarityGap | None


def reference_of(rows: LanguageRows, debias: Debiaser) -> str | None:
    """The language beside which others are seen; None where there are too few documents or queries in any."""
    enough = [
        tag
        for tag, of in rows.documents.items()
        if len(of) >= FEWEST and len(rows.queries.get(tag, ())) >= FEWEST_QUERIES
    ]
    if debias.vectors is not None and debias.vectors.pivot in enough:
        return debias.vectors.pivot
    return next(iter(enough), None)


def judge_languages(
    sample: Sample, moved: Matrix, rows: LanguageRows, debias: Debiaser, reference: str | None, draws: Sequence[Floats]
) -> list[LanguageFinding]:
    """Judge every language of a sample.

    Args:
        sample: the sample.
        moved: its vectors after the shift, shape (n, d), float32.
        rows: which documents and queries are of which language.
        debias: the shift.
        reference: the language beside which others are seen, if any.
        draws: mean cosines of every draw, shape (draws, asked, languages), and the same after the shift.
    """
    found = []
    for column, (tag, of) in enumerate(rows.documents.items()):
        (common, _), *_ = Counter(sample.tags[row] for row in of).most_common(1)
        fitted = gap = None
        if reference is not None and tag != reference and len(of) >= FEWEST:
            other = rows.documents[reference]
            fitted = fit(sample.vectors[of], moved[of], sample.vectors[other], moved[other])
            asked, reference_column = list(rows.queries).index(reference), list(rows.documents).index(reference)
            first, then = (drawn[:, asked, reference_column] - drawn[:, asked, column] for drawn in draws)
            gap = SimilarityGap(_interval(first), _interval(then), _interval(first - then))
        share = removed_share(sample.vectors[of], moved[of])
        found.append(LanguageFinding(tag, len(of), debias.named(common), share, fitted, gap))
    return found


def _interval(drawn: Floats) -> Interval:
    """The sample's figure, and what most draws of a bootstrap lie between."""
    low, high = np.percentile(drawn[1:], [2.5, 97.5])
    return Interval(float(drawn[0]), float(low), float(high))


# Queries that tell how much similarities differ.
_SOME = 500


class Audit(NamedTuple):
    """What a sample tells.

    Attributes:
        opened: the index.
        sample: the sample.
        mixes: its languages, ``und`` among them, the most frequent first.
        disagreements: where the detector says another language than documents name.
        queries: the queries.
        nearness: how near the queries are to the documents, before and after the shift.
        near: the nearest documents; empty where the sample is too small.
        reference: the language beside which others are seen: the pivot, or the most frequent language where there
            are too few documents or queries in that; None where there are too few in any.
        spread: how much cosines of one query with documents of the reference differ; None where there is none.
        judged: every language but ``und``, the most frequent first.
        unread: languages that the encoder does not read, with their documents in the sample.
    """

    opened: AuditedIndex
    sample: Sample
    mixes: list[LanguageMix]
    disagreements: list[LanguageDisagreement]
    queries: AuditQueries
    nearness: Nearness
    near: list[NearestShare]
    reference: str | None
    spread: float | None
    judged: list[LanguageFinding]
    unread: Mapping[str, int] = MappingProxyType({})


def audit(opened: AuditedIndex, size: int, log: QueryLog | None) -> Audit:
    """Look at a sample of an index.

    Args:
        opened: the index.
        size: how many documents to draw, and how many queries to take at most.
        log: queries; None lets the documents stand in for them.

    Raises:
        UsageError: no document can be used, or a line of the queries.
    """
    sample, debias = sampling.draw(opened, size), opened.pipeline.debias
    mixes = sampling.mixes(sample)
    known = [mix.language for mix in mixes if mix.language != UNDETERMINED]
    # Without queries the documents stand in for them.
    asked = AuditQueries(None, len(sample.tags), sample.tags, sample.vectors)
    if log and known:
        asked = sampling.read_queries(log, opened.pipeline, known, size)
    moved = debias.documents(sample.vectors, sample.tags)
    by_language = replace(debias, gamma=0.0, own=0.0).documents(sample.vectors, sample.tags)
    rows = language_rows(asked.languages, sample.languages, known, own=asked.file is None)
    nearness = measure_nearness(asked.vectors, sample.vectors, moved, rows)
    reference, spread = reference_of(rows, debias), None
    if reference is not None:
        some = rows.queries[reference][:_SOME]
        spread = similarity.spread(nearness.sides[0], some, rows.documents[reference], own=rows.own)
    return Audit(
        opened, sample, mixes, sampling.disagreements(sample), asked, nearness,
        near=nearest_shares(nearness),
        reference=reference,
        spread=spread,
        # All documents alike lose what queries have in common, which says nothing of a language.
        judged=judge_languages(sample, by_language, rows, debias, reference, nearness.draws),
        unread=_unread(opened.pipeline.encoder.id, sample, rows.documents),
    )  # fmt: skip


def _unread(encoder: str, sample: Sample, rows: Mapping[str, NDArray[np.intp]]) -> dict[str, int]:
    samples = {
        tag: LanguageSample(sample.vectors[some], [sample.texts[row] for row in some])
        for tag, some in ((tag, rows[tag][:SAMPLED]) for tag in rows)
    }
    return unread(encoder, {tag: len(some) for tag, some in rows.items()}, collapsed(samples))

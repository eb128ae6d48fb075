"""The language map of an index: how near its languages lie to each other, as an audit measures it, and pictures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.similarity import with_norm_1
from langshift.evaluate.audit.nearness import Nearness, language_rows, measure_nearness
from langshift.plugin.index_sample import DrawnDocument, draw
from langshift.plugin.metadata import read_metadata
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.versions import IndexInfo, live
from langshift.wording import pluralize

Matrix = NDArray[np.float64]


class Axes(NamedTuple):
    """The plane of a picture.

    Attributes:
        centre: mean of the vectors it was fitted on, shape (dimension,).
        directions: of unit length and at right angles, shape (2, dimension); zeros where the vectors have less.
        share: of the vectors' variance that each direction holds, 0 to 1.
    """

    centre: Matrix
    directions: Matrix
    share: tuple[float, float]


def fit_axes(vectors: Matrix) -> Axes:
    """The first two principal components, by a singular value decomposition.

    The sign of each is such that its largest component is above 0, so that the same vectors give the same picture.

    Args:
        vectors: shape (n, dimension), at least one.
    """
    centre = vectors.mean(axis=0)
    _, lengths, directions = np.linalg.svd(vectors - centre, full_matrices=False)
    found, held = np.zeros((2, vectors.shape[1])), [0.0, 0.0]
    total = float((lengths**2).sum())
    # What is left of rounding is no direction.
    real = lengths > np.finfo(np.float64).eps * max(vectors.shape) * max(1.0, float(lengths[0]))
    for place, (length, direction) in enumerate(zip(lengths[real][:2], directions[real][:2], strict=True)):
        found[place] = direction * np.sign(direction[np.abs(direction).argmax()])
        held[place] = float(length**2) / total
    return Axes(centre, found, (held[0], held[1]))


def placed(vectors: Matrix, axes: Axes) -> Matrix:
    """Where vectors lie in the plane, shape (n, 2)."""
    made: Matrix = (vectors - axes.centre) @ axes.directions.T
    return made


LANGUAGES: Final = 20
DOCUMENTS: Final = 40


def most_frequent(counts: Mapping[str, int], most: int = LANGUAGES) -> tuple[str, ...]:
    """The languages with the most documents, at most so many; of equals the first by tag."""
    return tuple(sorted(counts, key=lambda tag: (-counts[tag], tag))[:most])


class Picture(NamedTuple):
    """Documents as points of a plane, all at length 1.

    Attributes:
        languages: of each document.
        before: shape (documents, 2); None where it is not known, or nothing was moved.
        after: of the same shape.
        share: of the variance of what the plane was fitted on that each of its directions holds, 0 to 1.
    """

    languages: Sequence[str]
    before: Matrix | None
    after: Matrix
    share: tuple[float, float]


@dataclass(frozen=True)
class LanguageMap:
    """What the page shows.

    Attributes:
        index: the version, as it was found.
        languages: those that are shown, most frequent first.
        drawn: language -> how many documents are in the sample.
        length: mean length of the documents' vectors as they are searched.
        lengths: language -> length of its language vector; those without one are left out.
        alphas: language -> by how much of it documents are shifted; those without one are left out.
        nearness: of the documents to each other as queries; None where what was before the shift is not known.
        moved: whether any document of the sample is shifted.
        widest: in the plane in which the documents differ most before the shift; None where there is none to show.
        along: in the plane in which the language vectors differ most; None where the index holds no two.
        remarks: what is not shown and why, in sentences.
    """

    index: IndexInfo
    languages: Sequence[str]
    drawn: Mapping[str, int]
    length: float
    lengths: Mapping[str, float]
    alphas: Mapping[str, float]
    nearness: Nearness | None
    moved: bool
    widest: Picture | None
    along: Picture | None
    remarks: Sequence[str]

    def similarities(self, query: str | None, document: str) -> list[float | None]:
        """How near queries in one language are to documents in another, before and after; None where not known."""
        if self.nearness is None or not {query, document} <= self.nearness.rows.documents.keys():
            return [None, None]
        tags = list(self.nearness.rows.documents)
        place = tags.index(str(query)), tags.index(document)
        both = [self.nearness.before if self.moved else None, self.nearness.after]
        return [None if means is None or np.isnan(means[place]) else float(means[place]) for means in both]


class _Sample(NamedTuple):
    """The documents that are compared.

    Attributes:
        languages: of each.
        stored: vectors as they are searched, shape (documents, dimension), float32.
        raw: the same as the encoder made them, float64; None where that is not known.
    """

    languages: Sequence[str]
    stored: NDArray[np.float32]
    raw: Matrix | None

    @property
    def moved(self) -> bool:
        """Whether any of them is shifted; not where that is not known."""
        return self.raw is not None and not np.array_equal(self.raw, self.stored)


def measure(client: OpenSearch, name: str) -> LanguageMap:
    """Draw documents and compare them.

    Args:
        client: the cluster.
        name: the version.

    Raises:
        ClusterError: there is no such index, or it did not answer.
    """
    index = live(client, name)
    meta = read_metadata(client, index.index)
    shift = StoredShift.from_meta(meta)
    languages = most_frequent(index.counts)
    drawn = draw(client, index.index, meta, languages, DOCUMENTS)
    sample, remarks = _comparable(index.index, drawn, held=shift is not None)
    others = pluralize(len(index.counts) - len(languages), "other")
    chosen = f"The {LANGUAGES} languages with the most documents are shown; {others} are not."
    taken = _taken(languages, shift)
    # The pivot language takes none.
    directions = np.array([*taken.values(), np.zeros(index.fingerprint.dimension)]) if taken else np.zeros((0, 0))
    there = bool(sample.languages)
    return LanguageMap(
        index=index,
        languages=languages,
        drawn=Counter(sample.languages),
        length=float(np.linalg.norm(sample.stored.astype(np.float64), axis=1).mean()) if there else 0.0,
        lengths={tag: float(np.linalg.norm(vector)) for tag, vector in taken.items()},
        alphas={tag: shift.scale(shift.key(tag) or tag) for tag in taken} if shift is not None else {},
        nearness=_nearness(sample) if there else None,
        moved=sample.moved,
        widest=_pictured(sample) if there else None,
        along=_pictured(sample, directions) if there and len(directions) > 1 else None,
        remarks=[*([chosen] if len(languages) < len(index.counts) else []), *remarks],
    )


def _comparable(index: str, drawn: Mapping[str, Sequence[DrawnDocument]], *, held: bool) -> tuple[_Sample, list[str]]:
    """The documents to compare, with what is to be said of the others.

    Those whose vector before the shift is known; all, as they are, where the index does not hold its shift.
    """
    documents = [(tag, one) for tag, of in drawn.items() for one in of]
    if not documents:
        nothing = f"{index} has no document with a language and a vector, so there is nothing to show."
        return _Sample((), np.empty((0, 0), np.float32), None), [nothing]
    known = [(tag, one) for tag, one in documents if one.raw is not None]
    gone = len(documents) - len(known)
    if gone and not (held and known):
        stored = np.array([one.stored for _, one in documents])
        return _Sample([tag for tag, _ in documents], stored, None), [
            f"Vectors before the shift are not shown: {index} does not store what is needed to reverse it exactly."
        ]
    message = f"For {gone:,} of the {pluralize(len(documents), 'document')} drawn, the shift cannot be reversed exactly"
    stored, raw = np.array([one.stored for _, one in known]), np.array([one.raw for _, one in known])
    return _Sample([tag for tag, _ in known], stored, raw), [f"{message}: they are left out here."] if gone else []


def _nearness(sample: _Sample) -> Nearness | None:
    """How near the documents are to themselves as queries, which stay as the encoder made them."""
    if sample.raw is None:
        return None
    rows = language_rows(sample.languages, sample.languages, list(dict.fromkeys(sample.languages)), own=True)
    return measure_nearness(sample.raw, sample.raw, sample.stored, rows)


def _pictured(sample: _Sample, differing: Matrix | None = None) -> Picture:
    """The documents in the plane in which vectors differ most.

    Args:
        sample: at least one document.
        differing: those vectors, shape (n, dimension); None for the documents' before the shift.
    """
    stored = with_norm_1(sample.stored)
    before = with_norm_1(sample.raw) if sample.raw is not None and sample.moved else None
    axes = fit_axes(differing if differing is not None else stored if before is None else before)
    points = None if before is None else placed(before, axes)
    return Picture(sample.languages, points, placed(stored, axes), axes.share)


def _taken(languages: Sequence[str], shift: StoredShift | None) -> dict[str, Matrix]:
    """Language -> the language vector that its documents take, float64; those that take none are left out."""
    if shift is None:
        return {}
    keys = {tag: shift.key(tag) for tag in languages}
    return {tag: shift.vectors[key].astype(np.float64) for tag, key in keys.items() if key is not None}

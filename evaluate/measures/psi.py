"""PSI: how much ranking depends on where in the document the evidence is."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from statistics import fmean

from langshift.evaluate.measures.family import Family, Measure
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Cell, Pooled, Scores, Table
from langshift.evaluate.measures.standard import calculate

BINS = 20
_EDGES = [number / BINS for number in range(1, BINS)]
STEP = 512
BUCKETS = ("Q1", "Q2", "Q3", "Q4")
_ENOUGH = 2
_NEEDS = "undefined without the evidence's positions and the documents' lengths (evidence.tsv)."

Place = tuple[str, int]
"""A length bucket and a position bin."""


def position_bin(position: float) -> int:
    """The bin, 0 to 19, of a relative position from 0 to 1: 20 bins of equal width, 1 itself in the last."""
    return bisect(_EDGES, position)


def bucket(length: int) -> str | None:
    """The bucket of a length in tokens: Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048; None above that."""
    number = max(length - 1, 0) // STEP
    return BUCKETS[number] if number < len(BUCKETS) else None


def position_sensitivity(measure: Measure, ranked: Ranked) -> Scores:
    """PSI@k, position sensitivity index: ``1 - min(s) / max(s)`` over bins of the evidence's relative position.

    ``s`` are the mean nDCG@k of the queries in each of 20 bins of equal width, within a bucket of
    the relevant document's length in tokens (Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048). Empty
    bins are left out and counted in the note. A bucket has no PSI where fewer than two of its bins
    hold queries, or where every nDCG is 0. The figure is the mean over the buckets that have one; the
    table has each bucket's, and nDCG by bin. A query goes by its relevant document with evidence, the
    one of the highest grade where it has several; queries without evidence, or whose document has no
    length or more than 2048 tokens, are left out.

    Direction: low. Source: PosIR, sections 3.1, 4.1 and 4.2.
    """
    import ir_measures

    places = {query: place for query in ranked.queries if (place := _place(ranked, query))}
    if not places:
        return Scores({}, len(ranked.queries), note=_NEEDS)
    qrels = {query: ranked.material.qrels[query] for query in places}
    run = {query: ranked.run[query] for query in places if query in ranked.run}
    found = calculate(ir_measures.nDCG @ measure.depth, qrels, run)
    bins: dict[Place, list[float]] = {}
    for query, place in places.items():
        bins.setdefault(place, []).append(found[query])
    indices = {name: _index([fmean(bins[name, i]) for i in range(BINS) if (name, i) in bins]) for name in BUCKETS}
    defined = [index for index in indices.values() if index is not None]
    used = [name for name in BUCKETS if any(name == place[0] for place in bins)]
    empty = len(used) * BINS - len(bins)
    return Pooled(
        {},
        len(ranked.queries) - len(places),
        note=f"{empty} of {len(used) * BINS} position bins hold no query and are left out." if empty else None,
        table=_table(bins, indices, used),
        figure=fmean(defined) if defined else None,
        counted=len(places),
        again=lambda queries: position_sensitivity(measure, ranked.only(queries)),
    )


def _place(ranked: Ranked, query: str) -> Place | None:
    evidence = ranked.material.evidence.get(query, {})
    grades = {document: grade for document, grade in ranked.relevant(query).items() if document in evidence}
    if not grades:
        return None
    document = min(grades, key=lambda name: (-grades[name], name))
    length = ranked.material.lengths.get(document)
    name = None if length is None else bucket(length)
    return None if name is None else (name, position_bin(evidence[document]))


def _index(means: list[float]) -> float | None:
    return 1 - min(means) / max(means) if len(means) >= _ENOUGH and max(means) > 0 else None


def _table(bins: Mapping[Place, list[float]], indices: Mapping[str, float | None], used: list[str]) -> Table:
    cells = {
        f"{number / BINS:.2f}-{(number + 1) / BINS:.2f}": {
            name: Cell(fmean(bins[name, number]), len(bins[name, number])) for name in used if (name, number) in bins
        }
        for number in range(BINS)
    }
    counts = {name: sum(len(found) for place, found in bins.items() if place[0] == name) for name in used}
    # First, so that the columns stand in the order of the buckets even where the first bins are empty.
    head = {"PSI": {name: Cell(indices[name], counts[name]) for name in used}}
    return Table("relative position of the evidence", "length of the document", head | cells)


PSI = Family(
    "PSI",
    "position sensitivity index: 1 - min/max of nDCG over where the evidence is in the document, by length",
    "low",
    "PosIR, sections 4.1 and 4.2",
    position_sensitivity,
    "PSI@k",
)

"""How much the place of the evidence in a document matters: PSI and EvidenceHit."""

from bisect import bisect
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.measures import base
from langshift.evaluate.measures.base import Measure, MeasureCell, MeasureFamily, MeasureTable, RankedMaterial, Scores
from langshift.evaluate.measures.standard import calculate
from langshift.languages import UNDETERMINED, parse_tag, primary

BINS = 20
_EDGES = [number / BINS for number in range(1, BINS)]
STEP = 512
BUCKETS = ("Q1", "Q2", "Q3", "Q4")
_NEEDS = "undefined without the evidence's positions and the documents' lengths (evidence.tsv)."
FLOOR, FLOOR_95, NDCG = "floor", "floor 95 %", "nDCG"
FIFTHS = tuple(f"fifth {number}" for number in range(1, 6))
_PERMUTATIONS, _SEED = 200, 0
_ENOUGH_PLACES = 2
_OWN, _ORIGINAL = "own", "en"


def position_bin(position: float) -> int:
    """The bin, 0 to 19, of a relative position from 0 to 1: 20 bins of equal width, 1 itself in the last."""
    return bisect(_EDGES, position)


def bucket(length: int) -> str | None:
    """The bucket of a length in tokens: Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048; None above that."""
    number = max(length - 1, 0) // STEP
    return BUCKETS[number] if number < len(BUCKETS) else None


def position_sensitivity(measure: Measure, ranked: RankedMaterial) -> Scores:
    """PSI@k, position sensitivity index: ``1 - min(s) / max(s)`` over bins of the evidence's relative position.

    ``s`` are the mean nDCG@k of the queries of one language in each of 20 bins of equal width; the figure
    is the mean over query languages. It takes documents of all lengths together, as the paper's Table 10
    does; the table also has it by bucket of the document's length in tokens (Q1 to 512, Q2 to 1024, Q3 to
    1536, Q4 to 2048) and by query language. Domains are taken together, too. Empty bins are left out and
    counted in the note. Where fewer than two bins hold queries, or every nDCG is 0, there is no PSI.

    Bins of few queries differ by chance alone. ``floor`` is what PSI would be without any bias: its mean
    over 200 permutations of the positions among the queries of one language and bucket, with its 95th
    percentile. A PSI below the latter shows no bias. A question that is there in several languages is
    moved alike in all.

    A query goes by its relevant document with evidence: of those of the highest grade by the one in its
    own language, else by the English one. Queries without evidence, or whose document has no length or
    more than 2048 tokens, are left out. nDCG counts all relevant documents, so also translations, which
    the paper's pools of one language do not have. With ``documents='own'`` only the version in the query's
    language counts, and the others are taken out of the answer (the paper's multilingual retrieval); with
    ``documents='en'``, or another language, only the version in that one, for queries in other languages
    (its cross-lingual retrieval). Over all that a search finds, that is what ``PSI`` is with ``--within language``, and
    with ``--within language=en`` for these queries; in a run of all languages it looks at the first 100 alone.

    The table also has nDCG@k of all, of each fifth of the document and of each bin, as means over query
    languages.

    Direction: low. Source: PosIR, sections 3.1, 4.1 and 4.2.
    """
    import ir_measures

    chosen = {query: name for query in ranked.queries if (name := _evidenced(measure, ranked, query))}
    if not chosen:
        return Scores({}, len(ranked.queries), note=_NEEDS)
    material, run = ranked.material, ranked.run
    qrels = {query: ranked.relevant(query) for query in chosen}
    if measure.option("documents") != base.ALL:
        others = {query: qrels[query].keys() - {name} for query, name in chosen.items()}
        run = {query: {one: run[query][one] for one in run[query] if one not in others[query]} for query in others}
        qrels = {query: {name: qrels[query][name]} for query, name in chosen.items()}
    found = calculate(ir_measures.nDCG @ measure.depth, qrels, run)
    placed = _PlacedQueries(
        np.array([ranked.queries[query] or UNDETERMINED for query in chosen]),
        np.array([bucket(material.lengths[name]) for name in chosen.values()]),
        np.array([position_bin(material.evidence[query][name]) for query, name in chosen.items()]),
        np.array([found[query] for query in chosen]),
    )
    cells = _position_cells(placed)
    return Scores(
        {},
        len(ranked.queries) - len(chosen),
        note=_position_note(placed, cells),
        table=MeasureTable("position of the evidence", "length of the document, or query language", cells),
        pooled=cells[PSI.name][base.ALL],
        again=lambda queries: position_sensitivity(measure, ranked.only(queries)),
    )


def _evidenced(measure: Measure, ranked: RankedMaterial, query: str) -> str | None:
    """The document by whose evidence and length a query goes."""
    wanted, own = measure.option("documents"), ranked.queries[query]
    evidence = ranked.material.evidence.get(query, {})
    grades = {document: grade for document, grade in ranked.relevant(query).items() if document in evidence}
    if wanted != base.ALL:
        tag = own if wanted == _OWN else primary(wanted)
        known = tag is not None and (wanted == _OWN or tag != own)
        grades = {document: grade for document, grade in grades.items() if known and ranked.language(document) == tag}
    if not grades:
        return None
    order = {_ORIGINAL: 1, own: 0}
    document = min(grades, key=lambda name: (-grades[name], order.get(ranked.language(name), 2), name))
    length = ranked.material.lengths.get(document)
    return document if length is not None and bucket(length) else None


class _PlacedQueries(NamedTuple):
    """Language, bucket, bin and nDCG of each query."""

    language: NDArray[np.str_]
    bucket: NDArray[np.str_]
    bin: NDArray[np.int64]
    figure: NDArray[np.float64]

    def only(self, part: NDArray[np.bool_]) -> "_PlacedQueries":
        return _PlacedQueries(self.language[part], self.bucket[part], self.bin[part], self.figure[part])

    def mean(self) -> MeasureCell:
        """The mean over languages of their means."""
        _, places = np.unique(self.language, return_inverse=True)
        means = np.bincount(places, self.figure) / np.bincount(places)
        return MeasureCell(float(means.mean()), len(places))


def _indices(placed: _PlacedQueries) -> dict[str, NDArray[np.float64]]:
    """Bucket, or all -> PSI of one language's queries, first as they are, then of each permutation."""
    rows = np.tile(placed.figure, (1 + _PERMUTATIONS, 1))
    parts = {name: placed.bucket == name for name in BUCKETS}
    for part in parts.values():
        # From one seed, so that as many questions in another language are moved alike.
        rows[1:, part] = np.random.default_rng(_SEED).permuted(rows[1:, part], axis=1)
    found = {}
    for name, part in {**parts, base.ALL: np.full(len(placed.bin), fill_value=True)}.items():
        present, places = np.unique(placed.bin[part], return_inverse=True)
        if len(present) >= _ENOUGH_PLACES and placed.figure[part].any():
            means = rows[:, part] @ np.eye(len(present))[places] / np.bincount(places)
            found[name] = 1 - means.min(axis=1) / means.max(axis=1)
    return found


def _position_cells(placed: _PlacedQueries) -> dict[str, dict[str, MeasureCell]]:
    """PSI and its floor, then nDCG of all, by fifth and by bin; by bucket, of all, and by language where several."""
    indices = {tag: _indices(placed.only(placed.language == tag)) for tag in np.unique(placed.language).tolist()}
    columns = {name: placed.bucket == name for name in BUCKETS if name in placed.bucket}
    columns[base.ALL] = np.full(len(placed.bin), fill_value=True)
    sensitivity = {name: [found[name] for found in indices.values() if name in found] for name in columns}
    if len(indices) > 1:
        columns |= {tag: placed.language == tag for tag in indices}
        sensitivity |= {tag: [found[base.ALL]] if base.ALL in found else [] for tag, found in indices.items()}
    cells: dict[str, dict[str, MeasureCell]] = {name: {} for name in (PSI.name, FLOOR, FLOOR_95)}
    for name, found in sensitivity.items():
        count, means = int(columns[name].sum()), np.mean(found, axis=0) if found else None
        at_95 = None if means is None else float(np.quantile(means[1:], 0.95))
        cells[PSI.name][name] = MeasureCell(None if means is None else float(means[0]), count)
        cells[FLOOR][name] = MeasureCell(None if means is None else float(means[1:].mean()), count)
        cells[FLOOR_95][name] = MeasureCell(at_95, count)
    rows = {NDCG: columns[base.ALL]}
    rows |= {name: placed.bin * len(FIFTHS) // BINS == number for number, name in enumerate(FIFTHS)}
    rows |= {f"{number / BINS:.2f}-{(number + 1) / BINS:.2f}": placed.bin == number for number in range(BINS)}
    for row, inside in rows.items():
        cells[row] = {
            name: placed.only(inside & part).mean() for name, part in columns.items() if (inside & part).any()
        }
    return cells


def _position_note(placed: _PlacedQueries, cells: Mapping[str, Mapping[str, MeasureCell]]) -> str | None:
    floor, floor_95 = cells[FLOOR][base.ALL].mean, cells[FLOOR_95][base.ALL].mean
    sentences = []
    if floor is not None and floor_95 is not None:
        sentences = [f"without any bias it would be {floor:.3f} on average, and up to {floor_95:.3f} by chance."]
    used = {name: len(np.unique(placed.bin[placed.bucket == name])) for name in BUCKETS if name in placed.bucket}
    if empty := len(used) * BINS - sum(used.values()):
        sentences.append(f"{empty} of {len(used) * BINS} position bins contain no queries and are left out.")
    return " ".join(sentences) or None


def _version(value: object) -> bool:
    return value in (base.ALL, _OWN) or (isinstance(value, str) and parse_tag(value) is not None)


_VERSIONS = {"documents": base.MeasureOption(base.ALL, "'all', 'own', or a language such as 'en'", _version)}
PSI = MeasureFamily("PSI@k", "low", "PosIR, sections 4.1 and 4.2", position_sensitivity, _VERSIONS)


_NO_PASSAGES = "undefined, because the hits show no passages: it is of indices of chunks."
_NO_SPANS = "undefined without the characters of the evidence (start and end in evidence.tsv)."


def evidence_hit(measure: Measure, ranked: RankedMaterial) -> Scores:
    """EvidenceHit@k: share of queries with a document among the first k whose passage shows the evidence.

    A hit shows it where its document is relevant and its passage holds at least half of the characters of
    the evidence. Only the passage that the hit shows first counts. A whole document shows no place in it: a run
    without any passage has no EvidenceHit. Queries whose relevant documents have no evidence with
    ``start`` and ``end`` are left out; a query without answer counts 0.

    Direction: high. Source: langshift, by the reference spans of PosIR, section 2.2.
    """
    material = ranked.material
    spans = {
        query: {name: material.spans[query][name] for name in ranked.relevant(query) if name in material.spans[query]}
        for query in ranked.queries
        if query in material.spans
    }
    if not any(spans.values()):
        return Scores({}, len(ranked.queries), note=_NO_SPANS)
    if not any(material.passages.values()):
        return Scores({}, len(ranked.queries), note=_NO_PASSAGES)
    per_query = {
        query: float(
            any(
                _shows(material.passages.get(query, {}).get(name), found[name])
                for name in ranked.top(query, measure.depth)
                if name in found
            )
        )
        for query, found in spans.items()
        if found
    }
    return Scores(per_query, len(ranked.queries) - len(per_query))


def _shows(passage: tuple[int, int] | None, evidence: tuple[int, int]) -> bool:
    if passage is None:
        return False
    inside = min(passage[1], evidence[1]) - max(passage[0], evidence[0])
    return 2 * inside >= evidence[1] - evidence[0]


EVIDENCE_HIT = MeasureFamily(
    "EvidenceHit@k", "high", "langshift, by the reference spans of PosIR, section 2.2", evidence_hit
)

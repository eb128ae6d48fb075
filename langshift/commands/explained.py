"""How hits came to their scores, for a person to read."""

from __future__ import annotations

from rich.text import Text

from langshift.console import counted, out, table
from langshift.retrieval.hit import Hit
from langshift.retrieval.result import SearchResult

_NONE = "-"
_LEGS = "{}: the score that this leg of the search gave, and the rank in it, where it gave one."
_MOVED = (
    "dense: by the query's own vector; moved: by that which the anchors moved it to; lexical: by words; each with the "
    "rank among the hits. The score is that of moved, with the bonus and what words in other languages add."
)
_TRUST = (
    "trust: how likely the document is to answer the query, judged by words (their BM25), by its cosine with the "
    "query's own vector, and by whether it is in the query's language; weight: how much of its vector was added to "
    "the query's."
)


def show(result: SearchResult) -> None:
    """Print each hit's legs, its bonus and what the shift did, then the anchors, and what the figures mean."""
    legs = list(dict.fromkeys(leg for hit in result.hits for leg in hit.legs))
    heads = [*legs, *(["bonus"] if result.bonus else []), "similarity", "by vector"]
    rows = []
    for rank, hit in enumerate(result.hits, start=1):
        bonus = [f"{result.bonus_of(hit):+.4f}"] if result.bonus else []
        cells = [*(_leg(hit, leg) for leg in legs), *bonus, _similarity(hit), _rank(hit)]
        rows.append([str(rank), hit.language, *cells, hit.id])
    out.print()
    table(None, ["rank", "language", *heads, "_id"], rows, right={"rank", *heads}, whole={"similarity"})
    for sentence in _meaning(result, legs):
        out.print(Text(sentence))
    if result.anchors:
        out.print()
        _anchors(result)


def _meaning(result: SearchResult, legs: list[str]) -> list[str]:
    said = [_MOVED] if "moved" in legs else [_LEGS.format(", ".join(legs))] if legs else []
    if result.compared:
        said.append(
            "similarity: the cosine of query and document, before → after the shift; by vector: the rank by it among "
            f"{counted(result.compared, 'document')}, which are the nearest after the shift and the hits."
        )
    return said


def _anchors(result: SearchResult) -> None:
    names = list(dict.fromkeys(name for anchor in result.anchors for name in anchor.evidence))
    rows = [
        [anchor.id, f"{anchor.trust:.3f}", f"{anchor.weight:.3f}"]
        + [f"{anchor.evidence[name]:.3g}" if name in anchor.evidence else _NONE for name in names]
        for anchor in result.anchors
    ]
    heads = ["trust", "weight", *names]
    out.print("Anchors, which the query was moved towards:")
    table(None, ["_id", *heads], rows, right=set(heads))
    out.print(Text(_TRUST))


def _leg(hit: Hit, name: str) -> str:
    leg = hit.legs.get(name)
    if leg is None:
        return _NONE
    return f"{leg.score:.4f}" if leg.rank is None else f"{leg.score:.4f} ({leg.rank})"


def _similarity(hit: Hit) -> str:
    if hit.shift is None:
        return _NONE
    before, after = hit.shift.similarity_before, f"{hit.shift.similarity_after:.4f}"
    return f"? → {after}" if before is None else f"{before:.4f} → {after}"


def _rank(hit: Hit) -> str:
    if hit.shift is None:
        return _NONE
    before = hit.shift.rank_before
    return f"{'?' if before is None else before} → {hit.shift.rank_after}"

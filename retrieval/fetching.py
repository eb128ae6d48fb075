"""The vectors of a shortlist and of the nearest in each language, fetched in one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from langshift.debias.taken_back import moving
from langshift.plugin.fields import value_at
from langshift.plugin.index_shift import proportions
from langshift.plugin.shift_index_shift import IndexShift
from langshift.retrieval import bodies
from langshift.retrieval.by_vector import vector_of
from langshift.retrieval.exchange import Body, Exchange, timed
from langshift.retrieval.gathering import Shortlist
from langshift.retrieval.reading import sources, without_legs
from langshift.retrieval.vectors import Array, Vectors

# Within a language alpha hardly changes the order: the first 20 at any alpha are among so many of each.
OF_EACH_LANGUAGE: Final = 30


def fetch(shortlist: Shortlist, shift: IndexShift) -> Exchange[Vectors]:
    """Fetch the vectors of a shortlist, and of the nearest in each language; one step.

    The 30 nearest of a language are asked for as far as the shortlist does not hold them. Documents in none of the
    index's languages count as one more.

    Args:
        shortlist: of the query, whose vector stays as it is at any alpha.
        shift: how the documents of the index are shifted.

    Returns:
        Of the exchange: the vectors' numbers.

    Raises:
        UsageError: the question has no vector.
    """
    fields = shortlist.target.index.fields
    vector_of(shortlist.question)
    asked = [*_nearest(shortlist)]
    if shortlist.ids:
        # What the vector was shifted by goes by the language, too.
        brought = [fields.vector, fields.stamp, fields.language]
        asked.append(bodies.named(shortlist.ids, fields, brought))
    responses, took = yield from timed(_answered(tuple(asked)))
    found = sources(responses)
    languages = shortlist.languages | {
        one.id: one.language for response in responses for one in without_legs(response, fields)
    }
    return _numbers(shortlist, shift, found, languages, took)


def _answered(asked: tuple[Body, ...]) -> Exchange[Sequence[Any]]:
    return (yield asked) if asked else ()


def _nearest(shortlist: Shortlist) -> list[Body]:
    """The bodies for the nearest of each language that the shortlist does not hold."""
    index, vector = shortlist.target.index, vector_of(shortlist.question)
    fields, clauses = index.fields, bodies.filter_clauses(shortlist.filters)
    wanted = shortlist.filters.get(fields.language)
    tags = [tag for tag in index.languages if wanted is None or tag in wanted]
    among: dict[str, dict[str, Any]] = {tag: {"term": {fields.language: tag}} for tag in tags}
    if wanted is None and index.documents > sum(index.counts.values()):
        among[""] = {"bool": {"must_not": [{"terms": {fields.language: list(index.languages)}}]}}
    near = {one.id for (leg, _), found in shortlist.legs.items() if leg == "dense" for one in found}
    known: dict[str, list[str]] = {tag: [] for tag in among}
    for name, language in shortlist.languages.items():
        known.setdefault(language if language in known else "", []).append(name)
    held = Counter({tag: sum(name in near for name in names) for tag, names in known.items()})
    asked = []
    for tag, clause in among.items():
        if (missing := OF_EACH_LANGUAGE - held[tag]) > 0:
            new = {"bool": {"must_not": [bodies.among(known[tag])]}} if known[tag] else {"match_all": {}}
            query = bodies.knn(vector, bodies.LEAST_CANDIDATES, [*clauses, clause, new], fields)
            asked.append(bodies.body(query, missing, fields, ["*"]))
    return asked


class _Numbers(NamedTuple):
    """Of one document, as ``Vectors`` has them of all."""

    indexed: float
    norms: float
    made: float
    made_squared: float
    vectors: float
    vectors_squared: float
    crossed: float


def _numbers(
    shortlist: Shortlist,
    shift: IndexShift,
    found: Mapping[str, Mapping[str, Any]],
    languages: Mapping[str, str],
    took: float,
) -> Vectors:
    fields = shortlist.target.index.fields
    query = vector_of(shortlist.question).astype(np.float64)
    query /= np.linalg.norm(query)
    kept = {tag: vector.astype(np.float64) for tag, vector in shift.vectors.items()}
    numbers: list[_Numbers] = []
    by: dict[str, dict[str, float]] = {}
    shares: dict[str, dict[str, float]] = {}
    unmovable = set()
    for name, source in found.items():
        vector = value_at(source, fields.vector)
        if vector is None:
            continue
        stored = np.array(vector, np.float32).astype(np.float64)
        stamp = value_at(source, fields.stamp) or {}
        by[name] = moving(stamp)
        # A document that was not shifted by langshift has no stamp, and any client may write one without a scale.
        shares[name] = proportions(source, shift, fields) if "alpha" in stamp else {}
        if _movable(stamp, by[name], shares[name], shift):
            moved, whole = (_sum(one[name], kept, len(stored)) for one in (by, shares))
        else:
            unmovable.add(name)
            moved = whole = np.zeros(len(stored))
        numbers.append(_of(query, stored, moved, whole))
    columns = np.array(numbers, np.float64).reshape(len(numbers), len(_Numbers._fields)).T
    new = {name: _without(source, fields.vector) for name, source in found.items() if name not in shortlist.languages}
    return Vectors(
        ids=tuple(by),
        languages=tuple(languages[name] for name in by),
        sources=new,
        **dict(zip(_Numbers._fields, columns, strict=True)),
        by=by,
        proportions=shares,
        unmovable=frozenset(unmovable),
        took=took,
    )


def _movable(stamp: Mapping[str, Any], by: Mapping[str, float], shares: Mapping[str, float], shift: IndexShift) -> bool:
    """Whether it is known what a document was shifted by, and what it would be; any client may write a stamp."""
    if "alpha" not in stamp or not {*by, *shares} <= shift.vectors.keys():
        return False
    return stamp.get("vectors") == shift.hash or not (by or stamp.get("languages"))


def _sum(factors_of: Mapping[str, float], vectors: Mapping[str, Array], dimension: int) -> Array:
    """``Σ f_ℓ V_ℓ``, shape (dimension,)."""
    total = np.zeros(dimension)
    for tag, factor in factors_of.items():
        total += factor * vectors[tag]
    return total


def _of(query: Array, stored: Array, subtracted: Array, whole: Array) -> _Numbers:
    made, norm = stored + subtracted, float(np.linalg.norm(stored))
    return _Numbers(
        indexed=float(query @ stored) / norm if norm else 0.0,
        norms=norm,
        made=float(query @ made),
        made_squared=float(made @ made),
        vectors=float(query @ whole),
        vectors_squared=float(whole @ whole),
        crossed=float(made @ whole),
    )


def _without(source: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A document's fields but the one at a path, also where a part of its name has dots itself."""
    kept = {}
    for name, value in source.items():
        if name == path:
            continue
        inner = path.removeprefix(f"{name}.")
        kept[name] = _without(value, inner) if inner != path and isinstance(value, Mapping) else value
    return kept

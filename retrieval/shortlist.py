"""All that a query's hits may be, gathered in one step, and ranked in any setting and at any alpha."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debiaser import nonzero_scales
from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import value_at
from langshift.plugin.stored_shift import StoredShift, proportions
from langshift.retrieval import dsl, hits, settings
from langshift.retrieval.dense import POOL, best_of_each_language, rank_dense, vector_of
from langshift.retrieval.hybrid import Parts, fuse, nearest_bodies, word_bodies
from langshift.retrieval.steps import Body, SearchPlan, timed_step

# As many as the live search asks of each leg for up to as many hits.
DEPTH: Final = 100


@dataclass(frozen=True)
class Shortlist:
    """The candidates of one query in one index.

    Attributes:
        question: what was asked, with its vector where it has one.
        target: what was searched.
        filters: what all candidates match, by field of the index.
        legs: leg and part -> what that search retrieved, best first, without fields. Parts: ``all`` documents (by
            words in an index of several shards: ``shard N``), those in the searcher's ``own`` language, and all
            ``others``; the last two are absent where the language is not known.
        sources: document -> its fields but the vector.
        lacks: leg -> a sentence that says why it could not be asked.
        took: milliseconds that the server says it took.
    """

    question: settings.SearchQuery
    target: settings.SearchContext
    filters: settings.Filters
    legs: Mapping[hits.Part, tuple[hits.ScoredDoc, ...]]
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    lacks: Mapping[str, str] = field(default_factory=dict)
    took: float = 0.0

    @cached_property
    def languages(self) -> dict[str, str]:
        """Document -> its language; of every candidate."""
        return {one.id: one.language for found in self.legs.values() for one in found}

    @property
    def ids(self) -> tuple[str, ...]:
        """Every candidate."""
        return tuple(self.languages)

    def request(self, setting: settings.SearchSettings, size: int = DEPTH) -> settings.SearchRequest:
        """The search in a setting that the shortlist stands for."""
        return settings.SearchRequest(self.question, setting, self.target, size, DEPTH, self.filters)


def build_shortlist(
    question: settings.SearchQuery, target: settings.SearchContext, filters: settings.Filters, lacks: Mapping[str, str]
) -> SearchPlan[Shortlist]:
    """Ask for every candidate; one step.

    By vector and by words the 100 best, those in the searcher's language and those in all others: what the live search
    looks at for up to 100 hits, with any preference.

    Args:
        question: what is asked.
        target: what is searched.
        filters: field of the index -> values, any of which a hit must have.
        lacks: leg -> why it is known that it cannot be asked.

    Returns:
        Of the plan: the shortlist.
    """
    request = settings.SearchRequest(question, settings.USUAL, target, depth=DEPTH, filters=filters)
    lacking, language = dict(lacks), question.language
    bodies: dict[hits.Part, Body] = {}
    parts: Parts = {}
    if language != UNDETERMINED:
        wishes = {"own": 1.0, "others": -1.0}
        parts = {part: dsl.preferred_clause(request, sign) for part, sign in wishes.items()}
    for leg, bodies_of in (("dense", nearest_bodies), ("lexical", word_bodies)):
        if leg in lacking:
            continue
        try:
            bodies |= bodies_of(request, parts, target.index.shards)
        except UsageError as error:
            lacking[leg] = str(error)
    responses, took = yield from timed_step(bodies.values())
    legs = {
        (leg, part): tuple(one._replace(source={}) for one in hits.candidates(response, leg, request.fields))
        for (leg, part), response in zip(bodies, responses, strict=True)
    }
    return Shortlist(question, target, filters, legs, hits.sources(responses), lacking, took)


def rankable(setting: settings.SearchSettings) -> bool:
    """Whether a shortlist tells what a setting finds: not where a search goes on from what it found itself."""
    return setting.mode != "anchored" and not setting.one_per_group


def rank(shortlist: Shortlist, setting: settings.SearchSettings, *, size: int = DEPTH) -> hits.RankedHits:
    """What the live search finds in a setting: the same documents in the same order, with the same scores.

    Scores are the same to rounding in float32, and documents whose scores are that near may come in another order. In
    an index of several shards, too: the shortlist holds what each shard brings.

    Args:
        shortlist: of the query.
        setting: how it is searched; one that is ``rankable``.
        size: how many hits, 100 at most.

    Returns:
        The hits with their fields and legs; ``took`` is that of the shortlist.

    Raises:
        UsageError: a leg that the setting needs could not be asked.
        ValueError: the setting is not ``rankable``.
    """
    if not rankable(setting):
        raise ValueError(f"a shortlist cannot be ranked in {setting}")
    _require_legs(shortlist, setting)
    found = _ranked(shortlist, shortlist.request(setting, size))
    with_fields = tuple(hit._replace(source=shortlist.sources.get(hit.id, {})) for hit in found.hits)
    return found._replace(hits=with_fields, took=shortlist.took)


def _require_legs(shortlist: Shortlist, setting: settings.SearchSettings) -> None:
    needed = {"dense"} if setting.mode in {"dense", "balanced"} else {"lexical"}
    if setting.mode == "hybrid" or shortlist.request(setting).favoured:
        needed.add("dense")
    for leg, why in shortlist.lacks.items():
        if leg in needed:
            raise UsageError(why)


def _ranked(shortlist: Shortlist, request: settings.SearchRequest) -> hits.RankedHits:
    mode, size = request.setting.mode, request.size

    def pool(leg: str, depth: int | None = None) -> hits.Pool:
        return hits.leg_pool(shortlist.legs, leg, request.favoured, depth)

    if mode == "dense":
        return rank_dense(pool("dense").candidates, request)
    if mode == "balanced":
        return rank_dense(best_of_each_language(pool("dense", POOL).candidates), request)
    if mode == "lexical" and not request.preference:
        return hits.RankedHits(tuple(pool("lexical", DEPTH).candidates[:size]), hits.ScoringContext())
    # In hybrid every shard brings as many, in lexical all together.
    depth = None if mode == "hybrid" else DEPTH
    ranked, how = fuse({leg: pool(leg, depth) for leg in ("dense", "lexical")}, request)
    return hits.RankedHits(tuple(ranked[:size]), how)


Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShortlistVectors:
    """Documents by the few numbers that their similarity to the query at any alpha is made of.

    With ``z`` the vector as the encoder made it, ``V = Σ p(ℓ) V_ℓ`` what an alpha of 1 subtracts from it (that of its
    language, or of a soft shift all of them by their probabilities), ``q̂`` the query's at length 1 and ``z̃`` the stored
    one. Arrays have the shape (documents,) and are float64.

    Attributes:
        ids: the documents with a vector: of the shortlist, and the nearest in each language.
        languages: of each.
        sources: document -> its fields but the vector, of those that are not in the shortlist.
        indexed: ``cos(q, z̃)``.
        norms: ``|z̃|``.
        made: ``q̂·z``.
        made_squared: ``|z|²``.
        vectors: ``q̂·V``.
        vectors_squared: ``|V|²``.
        crossed: ``z·V``.
        by: document -> tag -> what that language's vector was multiplied with in the index, ``p(ℓ) α_ℓ``.
        proportions: document -> tag -> ``p(ℓ)``.
        unmovable: documents of which it is not known what they were shifted by: they stay as indexed.
        took: milliseconds that the server says it took.
    """

    ids: tuple[str, ...]
    languages: tuple[str, ...]
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    indexed: Array
    norms: Array
    made: Array
    made_squared: Array
    vectors: Array
    vectors_squared: Array
    crossed: Array
    by: Mapping[str, Mapping[str, float]] = field(repr=False)
    proportions: Mapping[str, Mapping[str, float]] = field(repr=False)
    unmovable: frozenset[str]
    took: float

    @cached_property
    def places(self) -> dict[str, int]:
        """Document -> where it is in the arrays."""
        return {name: place for place, name in enumerate(self.ids)}

    @cached_property
    def movable(self) -> NDArray[np.bool_]:
        """Whether each can be moved, shape (documents,)."""
        return np.array([name not in self.unmovable for name in self.ids], dtype=bool)

    def lengths(self, alpha: float) -> Array:
        """``|z - α V|`` of each; not known of what is unmovable."""
        squared = self.made_squared - 2 * alpha * self.crossed + alpha**2 * self.vectors_squared
        return np.sqrt(np.maximum(squared, 0.0))

    def similarities(self, alpha: float | None) -> Array:
        """``cos(q, z - α V)`` of each; None and what is unmovable: as indexed."""
        if alpha is None:
            return self.indexed
        lengths = self.lengths(alpha)
        along = self.made - alpha * self.vectors
        cosines = np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0)
        return np.where(self.movable, cosines, self.indexed)


_NUMBERS: Final = ("indexed", "norms", "made", "made_squared", "vectors", "vectors_squared", "crossed")
# Within a language alpha hardly changes the order: the first 20 at any alpha are among so many of each.
OF_EACH_LANGUAGE: Final = 30


def fetch_vectors(shortlist: Shortlist, shift: StoredShift) -> SearchPlan[ShortlistVectors]:
    """Fetch the vectors of a shortlist, and of the nearest in each language; one step.

    The 30 nearest of a language are asked for as far as the shortlist does not hold them. Documents in none of the
    index's languages count as one more.

    Args:
        shortlist: of the query, whose vector stays as it is at any alpha.
        shift: how the documents of the index are shifted.

    Returns:
        Of the plan: the vectors' numbers.

    Raises:
        UsageError: the question has no vector.
    """
    fields = shortlist.target.index.fields
    vector_of(shortlist.question)
    bodies = [*_nearest(shortlist)]
    if shortlist.ids:
        # What the vector was shifted by goes by the language, too.
        source_fields = [fields.vector, fields.stamp, fields.language]
        bodies.append(dsl.named(shortlist.ids, fields, source_fields))
    responses, took = yield from timed_step(bodies)
    found = {one.id: one for response in responses for one in hits.without_legs(response, fields)}
    return _numbers(shortlist, shift, found, took)


def _nearest(shortlist: Shortlist) -> list[Body]:
    """The bodies for the nearest of each language that the shortlist does not hold."""
    index, vector = shortlist.target.index, vector_of(shortlist.question)
    fields, clauses = index.fields, dsl.filter_clauses(shortlist.filters)
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
    bodies = []
    for tag, clause in among.items():
        if (missing := OF_EACH_LANGUAGE - held[tag]) > 0:
            new = {"bool": {"must_not": [dsl.among(known[tag])]}} if known[tag] else {"match_all": {}}
            query = dsl.knn(vector, settings.LEAST_CANDIDATES, [*clauses, clause, new], fields)
            bodies.append(dsl.body(query, missing, fields, ["*"]))
    return bodies


def _numbers(
    shortlist: Shortlist, shift: StoredShift, found: Mapping[str, hits.ScoredDoc], took: float
) -> ShortlistVectors:
    fields = shortlist.target.index.fields
    query = vector_of(shortlist.question).astype(np.float64)
    query /= np.linalg.norm(query)
    language_vectors = {tag: vector.astype(np.float64) for tag, vector in shift.vectors.items()}
    rows = list[dict[str, float]]()
    by: dict[str, dict[str, float]] = {}
    shares: dict[str, dict[str, float]] = {}
    unmovable = set()
    for name, one in found.items():
        vector, stamp = value_at(one.source, fields.vector), value_at(one.source, fields.stamp) or {}
        if vector is None:
            continue
        stored = np.array(vector, np.float32).astype(np.float64)
        by[name] = nonzero_scales(stamp)
        # A document that was not shifted by langshift has no stamp, and any client may write one without a scale.
        shares[name] = proportions(one.source, shift, fields) if "alpha" in stamp else {}
        if _movable(stamp, by[name], shares[name], shift):
            moved, whole = (_sum(of[name], language_vectors, len(stored)) for of in (by, shares))
        else:
            unmovable.add(name)
            moved = whole = np.zeros(len(stored))
        rows.append(_of(query, stored, moved, whole))
    new = found.keys() - shortlist.languages.keys()
    return ShortlistVectors(
        ids=tuple(by),
        languages=tuple(found[name].language for name in by),
        sources={name: _without(one.source, fields.vector) for name, one in found.items() if name in new},
        **{name: np.array([row[name] for row in rows], np.float64) for name in _NUMBERS},
        by=by,
        proportions=shares,
        unmovable=frozenset(unmovable),
        took=took,
    )


def _movable(
    stamp: Mapping[str, Any], by: Mapping[str, float], shares: Mapping[str, float], shift: StoredShift
) -> bool:
    """Whether it is known what a document was shifted by, and what it would be; any client may write a stamp."""
    if "alpha" not in stamp or not {*by, *shares} <= shift.vectors.keys():
        return False
    return stamp.get("vectors") == shift.hash or not (by or stamp.get("languages"))


def _sum(factors_of: Mapping[str, float], vectors: Mapping[str, Array], dimension: int) -> Array:
    """``Σ f_ℓ V_ℓ``, shape (dimension,)."""
    return sum((factor * vectors[tag] for tag, factor in factors_of.items()), np.zeros(dimension))


def _of(query: Array, stored: Array, subtracted: Array, whole: Array) -> dict[str, float]:
    """Of one document, what ``ShortlistVectors`` has of all."""
    made, norm = stored + subtracted, float(np.linalg.norm(stored))
    return {
        "indexed": float(query @ stored) / norm if norm else 0.0,
        "norms": norm,
        "made": float(query @ made),
        "made_squared": float(made @ made),
        "vectors": float(query @ whole),
        "vectors_squared": float(whole @ whole),
        "crossed": float(made @ whole),
    }


def _without(source: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A document's fields but the one at a path, also where a part of its name has dots itself."""
    remaining = {}
    for name, value in source.items():
        if name == path:
            continue
        inner = path.removeprefix(f"{name}.")
        remaining[name] = _without(value, inner) if inner != path and isinstance(value, Mapping) else value
    return remaining


def rank_at(
    shortlist: Shortlist,
    vectors: ShortlistVectors,
    setting: settings.SearchSettings,
    alpha: float | None,
    *,
    size: int = DEPTH,
) -> hits.RankedHits:
    """What the live search would find if all documents were shifted by one alpha: ``z̃ = z - α V``.

    Similarities are exact in double precision, and documents that the graph search of such an index would miss by
    chance are not missed: at the index's own alpha this may find one more than ``rank``. The first 20 by vector are
    those of such an index; further down, and in the range that ``hybrid`` normalises by, a document may be missing that
    the index's own alpha put far down in a language with many near documents. The query's vector and the leg of words
    stay as they are.

    Args:
        shortlist: of the query.
        vectors: of the shortlist.
        setting: how it is searched; one that is ``rankable``.
        alpha: the scale, for all languages alike; None as indexed.
        size: how many hits, 100 at most.

    Returns:
        The hits with their fields and legs.

    Raises:
        UsageError: a leg that the setting needs could not be asked.
        ValueError: the setting is not ``rankable``.
    """
    if alpha is None:
        return rank(shortlist, setting, size=size)
    scores = (1 + vectors.similarities(alpha)) / 2
    order = np.argsort(-scores, kind="stable")
    wide = DEPTH * shortlist.target.index.shards
    legs: dict[hits.Part, tuple[hits.ScoredDoc, ...]] = {("dense", "all"): _leg(vectors, scores, order[:wide])}
    if part := shortlist.request(setting).favoured:
        own = np.array([language == shortlist.question.language for language in vectors.languages], dtype=bool)
        among = own if part == "own" else ~own
        legs["dense", part] = _leg(vectors, scores, order[among[order]][:DEPTH])
    moved = replace(shortlist, legs={**shortlist.legs, **legs}, sources={**vectors.sources, **shortlist.sources})
    return rank(moved, setting, size=size)


def _leg(vectors: ShortlistVectors, scores: NDArray[np.float64], order: NDArray[np.intp]) -> tuple[hits.ScoredDoc, ...]:
    """The documents in this order as a leg gives them."""
    return tuple(
        hits.ScoredDoc(name, score, vectors.languages[place], legs={"dense": hits.Leg(score, number)})
        for number, place in enumerate(order.tolist(), start=1)
        for name, score in [(vectors.ids[place], float(scores[place]))]
    )


@dataclass(frozen=True)
class SimilarityBreakdown:
    """What a document's similarity to the query at an alpha is made of: ``q̂·z / |z̃| - α q̂·V / |z̃|``.

    Attributes:
        before: its similarity before any shift, ``cos(q, z)``; None where that cannot be known.
        indexed: as it is in the index.
        moved: at the alpha asked for; None where that cannot be known.
        own_part: what the text itself has of ``moved``, ``q̂·z / |z̃|``.
        language_part: what the subtracted language vector has of it, ``-α q̂·V / |z̃|``.
        by: tag of a language vector -> what it is multiplied with before it is subtracted.
    """

    before: float | None
    indexed: float
    moved: float | None
    own_part: float | None
    language_part: float | None
    by: Mapping[str, float]


def similarity_breakdown(vectors: ShortlistVectors, name: str, alpha: float | None) -> SimilarityBreakdown | None:
    """Account for a document's similarity.

    The query's vector is the one that is searched with, also before the shift.

    Args:
        vectors: of a query's shortlist.
        name: the document's ``_id``.
        alpha: the scale, for all languages alike; None as indexed.

    Returns:
        None of a document without a vector, and of one that is not a candidate.
    """
    if (place := vectors.places.get(name)) is None:
        return None
    indexed = float(vectors.indexed[place])
    if name in vectors.unmovable:
        return SimilarityBreakdown(None, indexed, None, None, None, vectors.by[name])
    made = float(vectors.made[place])
    moved = float(vectors.similarities(alpha)[place])
    length = float(vectors.norms[place] if alpha is None else vectors.lengths(alpha)[place])
    own_part = made / length if length else 0.0
    by = (
        vectors.by[name] if alpha is None else {t: p * alpha for t, p in vectors.proportions[name].items() if p * alpha}
    )
    before = float(vectors.similarities(0.0)[place])
    return SimilarityBreakdown(before, indexed, moved, own_part, moved - own_part, by)

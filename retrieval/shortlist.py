"""All that a query's hits may be, gathered in one step, and ranked in any setting, at any alpha and gamma."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debiaser import COMMON, nonzero_scales
from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import value_at
from langshift.plugin.stored_shift import StoredShift, proportions
from langshift.plugin.stored_vector import vector_at
from langshift.retrieval import dsl, hits, settings
from langshift.retrieval.dense import rank_balanced, rank_dense, vector_of
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
    """Whether a shortlist tells what a setting finds: not where a search goes on from what it found itself.

    Nor in the mode ``auto``, which an index makes another one first.
    """
    return setting.mode not in {"auto", "anchored"} and not setting.one_per_group and setting.rerank is None


def rank(shortlist: Shortlist, setting: settings.SearchSettings, *, size: int = DEPTH) -> hits.RankedHits:
    """What the live search finds in a setting: the same documents in the same order, with the same scores.

    Scores are the same to rounding in float32, and documents whose scores are that near may come in another order. In
    an index of several shards, too: the shortlist holds what each shard brings. In an index of chunks it holds the 100
    best chunks of each leg, and the documents that these are of: where they are fewer than ``size``, or than the 50 of
    ``balanced``, the live search looks deeper.

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
        return rank_balanced(shortlist.legs, request)
    if mode == "lexical" and not request.preference:
        return hits.RankedHits(tuple(hits.one_per_document(pool("lexical", DEPTH).candidates)[:size]))
    # In hybrid every shard brings as many, in lexical all together.
    depth = None if mode == "hybrid" else DEPTH
    ranked, how = fuse({leg: pool(leg, depth) for leg in ("dense", "lexical")}, request)
    return hits.RankedHits(tuple(hits.one_per_document(ranked)[:size]), how)


Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShortlistVectors:
    """Documents by the few numbers that their similarity to the query at any alpha and gamma is made of.

    With ``z`` the vector as the encoder made it, ``V = Σ p(ℓ) V_ℓ`` what an alpha of 1 subtracts from it (that of its
    language, or of a soft shift all of them by their probabilities), ``U = Σ p(ℓ) α_ℓ V_ℓ`` what the index's own scales
    subtract, and the common means ``m_D`` and ``m_Q``::

        z̃ = z - α V - γ m_D    q̃ = q - γ m_Q

    where ``q`` has lost what the query's own language takes from it, at any alpha alike. With the coefficients ``a`` of
    ``z̃`` in ``(z, V, U, m_D)`` and ``b = (1, -γ)`` of ``q̃`` in ``(q, m_Q)``::

        cos(q̃, z̃) = b C a / √(a G a) √(b Q b)

    Arrays are float64 and have one entry for each document, but for ``of_query``.

    Attributes:
        found: the entries with a vector, without fields: of the shortlist, and the nearest in each language.
        sources: document -> its fields but the vector, of those that are not in the shortlist.
        indexed: ``cos(q̃, z̃)`` of the vectors as they are in the index, shape (documents,).
        norms: ``|z̃|`` as in the index, shape (documents,).
        products: G, the inner products of ``(z, V, U, m_D)``, shape (documents, 4, 4).
        crossed: C, those of ``(q, m_Q)`` with them, shape (documents, 2, 4).
        of_query: Q, those of ``(q, m_Q)``, shape (2, 2).
        gammas: γ as it was subtracted from each document, shape (documents,).
        gamma: γ as it was subtracted from the query.
        by: document -> tag, or ``COMMON`` -> what was multiplied with that vector in the index, ``p(ℓ) α_ℓ`` or γ.
        proportions: document -> tag -> ``p(ℓ)``.
        unmovable: documents of which it is not known what they were shifted by: they stay as indexed.
        took: milliseconds that the server says it took.
    """

    found: tuple[hits.ScoredDoc, ...]
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    indexed: Array
    norms: Array
    products: Array
    crossed: Array
    of_query: Array
    gammas: Array
    gamma: float
    by: Mapping[str, Mapping[str, float]] = field(repr=False)
    proportions: Mapping[str, Mapping[str, float]] = field(repr=False)
    unmovable: frozenset[str]
    took: float

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Of the entries."""
        return tuple(one.id for one in self.found)

    @cached_property
    def places(self) -> dict[str, int]:
        """Document -> where it is in the arrays."""
        return {name: place for place, name in enumerate(self.ids)}

    def parts(self, alpha: float | None, gamma: float | None) -> Array:
        """What each similarity is made of: its parts by ``z``, by the language vectors and by ``m_D``, in sum.

        Args:
            alpha: the scale of the language vectors; None as indexed.
            gamma: the scale of the common means, of documents and of the query; None as indexed.

        Returns:
            Shape (documents, 3): ``q̃·z``, ``-α q̃·V`` and ``-γ q̃·m_D``, each divided by ``|q̃| |z̃|``.
        """
        held = self.gammas if gamma is None else np.full(len(self.ids), gamma)
        language = [0.0, -1.0] if alpha is None else [-alpha, 0.0]
        a = np.column_stack([np.ones(len(held)), np.tile(language, (len(held), 1)), -held])
        b = np.array([1.0, -(self.gamma if gamma is None else gamma)])
        squared = np.einsum("di,dij,dj->d", a, self.products, a)
        lengths = self.norms if alpha is None and gamma is None else np.sqrt(np.maximum(squared, 0.0))
        lengths = lengths * np.sqrt(max(float(b @ self.of_query @ b), 0.0))
        along = a * (b @ self.crossed)
        scaled = np.divide(along, lengths[:, np.newaxis], out=np.zeros_like(along), where=lengths[:, np.newaxis] > 0)
        return np.column_stack([scaled[:, 0], scaled[:, 1] + scaled[:, 2], scaled[:, 3]])

    def similarities(self, alpha: float | None, gamma: float | None = None) -> Array:
        """``cos(q̃, z̃)`` of each; with None as indexed, see ``parts``."""
        return self.indexed if alpha is None and gamma is None else self.parts(alpha, gamma).sum(axis=1)


# Within a language alpha and gamma hardly change the order: the first 20 at any are among so many of each. (Of XQuAD's
# with e5-small, alpha .7, from gamma .7 to no shift one in 300 is not, and to gamma 0 one in 3,500.)
OF_EACH_LANGUAGE: Final = 30


def fetch_vectors(
    shortlist: Shortlist, shift: StoredShift, query_mean: NDArray[np.float32] | None = None
) -> SearchPlan[ShortlistVectors]:
    """Fetch the vectors of a shortlist, and of the nearest in each language; one step.

    The 30 nearest of a language are asked for as far as the shortlist does not hold them. Documents in none of the
    index's languages count as one more.

    Args:
        shortlist: of the query, whose vector lost the common mean as the documents did.
        shift: how the documents of the index are shifted.
        query_mean: the common mean m_Q of queries, shape (dimension,); None where the index keeps none.

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
    return _numbers(shortlist, shift, query_mean, found, took)


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
    shortlist: Shortlist,
    shift: StoredShift,
    query_mean: NDArray[np.float32] | None,
    found: Mapping[str, hits.ScoredDoc],
    took: float,
) -> ShortlistVectors:
    fields = shortlist.target.index.fields
    searched = vector_of(shortlist.question).astype(np.float64)
    mean = np.zeros(len(searched)) if query_mean is None else query_mean.astype(np.float64)
    query = np.stack([searched + shift.gamma * mean, mean])
    read = {name: vector_at(one.source, fields.vector) for name, one in found.items()}
    vectors = {name: vector for name, vector in read.items() if vector is not None}
    bearing = {name: found[name].source for name in vectors}
    stamps = {name: value_at(source, fields.stamp) or {} for name, source in bearing.items()}
    by = {name: nonzero_scales(stamp) for name, stamp in stamps.items()}
    # A document that was not shifted by langshift has no stamp, and any client may write one without a scale.
    shares = {name: proportions(bearing[name], shift, fields) if "alpha" in of else {} for name, of in stamps.items()}
    unmovable = {name for name, stamp in stamps.items() if not _movable(stamp, by[name], shares[name], shift)}
    known = {tag: vector.astype(np.float64) for tag, vector in shift.subtrahends.items()}
    # Shape (documents, 4, dimension): each one's z, V, U and m_D.
    rows = np.zeros((len(bearing), 4, len(searched)))
    for row, name in zip(rows, bearing, strict=True):
        row[0] = vectors[name]
        if name in unmovable:
            continue
        for place, scales in ((1, shares[name]), (2, by[name])):
            row[place] += sum(scale * known[tag] for tag, scale in scales.items() if tag != COMMON)
        row[3] = known.get(COMMON, 0.0)
    stored, gammas = rows[:, 0].copy(), np.array([0.0 if n in unmovable else by[n].get(COMMON, 0.0) for n in by])
    rows[:, 0] += rows[:, 2] + gammas[:, np.newaxis] * rows[:, 3]
    norms = np.linalg.norm(stored, axis=1)
    along = stored @ searched / np.linalg.norm(searched)
    new = found.keys() - shortlist.languages.keys()
    return ShortlistVectors(
        found=tuple(found[name]._replace(source={}) for name in by),
        sources={name: _without(one.source, fields.vector) for name, one in found.items() if name in new},
        indexed=np.divide(along, norms, out=np.zeros_like(norms), where=norms > 0),
        norms=norms,
        products=rows @ rows.transpose(0, 2, 1),
        crossed=query @ rows.transpose(0, 2, 1),
        of_query=query @ query.T,
        gammas=gammas,
        gamma=shift.gamma,
        by=by,
        proportions=shares,
        unmovable=frozenset(unmovable),
        took=took,
    )


def _movable(
    stamp: Mapping[str, Any], by: Mapping[str, float], shares: Mapping[str, float], shift: StoredShift
) -> bool:
    """Whether it is known what a document was shifted by, and what it would be; any client may write a stamp."""
    if "alpha" not in stamp or not {*by, *shares} <= shift.subtrahends.keys():
        return False
    return stamp.get("vectors") == shift.hash or not (by or stamp.get("languages"))


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
    gamma: float | None = None,
    *,
    size: int = DEPTH,
) -> hits.RankedHits:
    """What the live search would find if all documents were shifted by one alpha and gamma: ``z̃ = z - α V - γ m_D``.

    Similarities are exact in double precision, and documents that the graph search of such an index would miss by
    chance are not missed: at the index's own alpha this may find one more than ``rank``. The first 20 by vector are
    nearly always those of such an index; further down, and in the range that ``hybrid`` normalises by, a document may
    be missing that the index's own scales put far down in a language with many near documents. The query loses as much
    of its common mean, and what its language takes from it stays as it is, as does the leg of words.

    Args:
        shortlist: of the query.
        vectors: of the shortlist.
        setting: how it is searched; one that is ``rankable``.
        alpha: the scale, for all languages alike; None as indexed.
        gamma: the scale of the common means of documents and queries; None as indexed.
        size: how many hits, 100 at most.

    Returns:
        The hits with their fields and legs.

    Raises:
        UsageError: a leg that the setting needs could not be asked.
        ValueError: the setting is not ``rankable``.
    """
    if alpha is None and gamma is None:
        return rank(shortlist, setting, size=size)
    scores = (1 + vectors.similarities(alpha, gamma)) / 2
    order = np.argsort(-scores, kind="stable")
    wide = DEPTH * shortlist.target.index.shards
    legs: dict[hits.Part, tuple[hits.ScoredDoc, ...]] = {("dense", "all"): _leg(vectors, scores, order[:wide])}
    if part := shortlist.request(setting).favoured:
        own = np.array([one.language == shortlist.question.language for one in vectors.found], dtype=bool)
        among = own if part == "own" else ~own
        legs["dense", part] = _leg(vectors, scores, order[among[order]][:DEPTH])
    moved = replace(shortlist, legs={**shortlist.legs, **legs}, sources={**vectors.sources, **shortlist.sources})
    return rank(moved, setting, size=size)


def _leg(vectors: ShortlistVectors, scores: NDArray[np.float64], order: NDArray[np.intp]) -> tuple[hits.ScoredDoc, ...]:
    """The documents in this order as a leg gives them."""
    return tuple(
        vectors.found[place]._replace(score=score, legs={"dense": hits.Leg(score, number)})
        for number, place in enumerate(order.tolist(), start=1)
        for score in [float(scores[place])]
    )


@dataclass(frozen=True)
class SimilarityBreakdown:
    """What a document's similarity to the query is made of: the three parts of ``ShortlistVectors.parts``.

    Attributes:
        before: its similarity before any shift, ``cos(q, z)``; None where that cannot be known.
        indexed: as it is in the index.
        moved: at the scales asked for; None where that cannot be known.
        own_part: what the text itself has of ``moved``, ``q̃·z / |q̃| |z̃|``.
        language_part: what the subtracted language vector has of it.
        common_part: what the subtracted common mean has of it.
        by: tag of a language vector, or ``COMMON`` -> what it is multiplied with before it is subtracted.
    """

    before: float | None
    indexed: float
    moved: float | None
    own_part: float | None
    language_part: float | None
    common_part: float | None
    by: Mapping[str, float]


def similarity_breakdown(
    vectors: ShortlistVectors, name: str, alpha: float | None, gamma: float | None = None
) -> SimilarityBreakdown | None:
    """Account for a document's similarity.

    What the query's own language takes from its vector is taken at any alpha, also before the shift; of the common mean
    it loses as much as the documents.

    Args:
        vectors: of a query's shortlist.
        name: the document's ``_id``.
        alpha: the scale, for all languages alike; None as indexed.
        gamma: the scale of the common means; None as indexed.

    Returns:
        None of a document without a vector, and of one that is not a candidate.
    """
    if (place := vectors.places.get(name)) is None:
        return None
    indexed = float(vectors.indexed[place])
    if name in vectors.unmovable:
        return SimilarityBreakdown(None, indexed, None, None, None, None, vectors.by[name])
    held = vectors.by[name]
    scales = (
        {t: p for t, p in held.items() if t != COMMON}
        if alpha is None
        else {t: p * alpha for t, p in vectors.proportions[name].items()}
    )
    scales[COMMON] = held.get(COMMON, 0.0) if gamma is None else gamma
    own_part, language_part, common_part = vectors.parts(alpha, gamma)[place].tolist()
    return SimilarityBreakdown(
        before=float(vectors.similarities(0.0, 0.0)[place]),
        indexed=indexed,
        moved=float(vectors.similarities(alpha, gamma)[place]),
        own_part=own_part,
        language_part=language_part,
        common_part=common_part,
        by={tag: scale for tag, scale in scales.items() if scale},
    )

"""All that a query's hits may be, gathered in one step, and ranked in any setting, at any alpha and gamma."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debiaser import own_of, require_gamma
from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import replaced_at, value_at
from langshift.plugin.stored_shift import StoredShift, key_of, unshifted
from langshift.plugin.stored_vector import vector_at
from langshift.retrieval import dsl, hits
from langshift.retrieval.dsl import vector_of
from langshift.retrieval.filters import IndexFilter
from langshift.retrieval.modes import MODES
from langshift.retrieval.plans import Body, SearchPlan
from langshift.retrieval.question import LEAST_CANDIDATES, SearchContext, SearchQuery, SearchRequest
from langshift.retrieval.request import USUAL, SearchSettings

# As many as the live search asks of each leg for up to as many hits.
DEPTH: Final = 100


@dataclass(frozen=True)
class Shortlist:
    """The candidates of one query in one index.

    Attributes:
        question: what was asked, with its vector where it has one.
        target: what was searched.
        filters: what all candidates match.
        legs: leg and part -> what that search retrieved, best first, without fields. Parts: ``all`` documents (by
            words in an index of several shards: ``shard N``), those in the searcher's ``own`` language, and all
            ``others``; the last two are absent where the language is not known.
        sources: document -> its fields but the vector.
        lacks: leg -> a sentence that says why it could not be asked.
    """

    question: SearchQuery
    target: SearchContext
    filters: IndexFilter
    legs: Mapping[hits.Part, tuple[hits.ScoredDoc, ...]]
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    lacks: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def languages(self) -> dict[str, str]:
        """Document -> its language; of every candidate."""
        return {one.id: one.language for found in self.legs.values() for one in found}

    @property
    def ids(self) -> tuple[str, ...]:
        """Every candidate."""
        return tuple(self.languages)

    def request(self, setting: SearchSettings, size: int = DEPTH) -> SearchRequest:
        """The search in a setting that the shortlist stands for."""
        return SearchRequest(self.question, setting, self.target, size, DEPTH, self.filters)


def build_shortlist(
    question: SearchQuery, target: SearchContext, filters: IndexFilter, lacks: Mapping[str, str]
) -> SearchPlan[Shortlist]:
    """Ask for every candidate; one step.

    By vector and by words the 100 best, those in the searcher's language and those in all others: what the live search
    looks at for up to 100 hits, with any preference.

    Args:
        question: what is asked.
        target: what is searched.
        filters: what all candidates match.
        lacks: leg -> why it is known that it cannot be asked.

    Returns:
        Of the plan: the shortlist.
    """
    request = SearchRequest(question, USUAL, target, depth=DEPTH, filters=filters)
    lacking, language = dict(lacks), question.language
    bodies: dict[hits.Part, Body] = {}
    parts: dsl.Parts = {}
    if language != UNDETERMINED:
        parts = {"own": dsl.preferred_clause(request, 1.0), "others": dsl.preferred_clause(request, -1.0)}
    for leg in ("dense", "lexical"):
        if leg in lacking:
            continue
        try:
            bodies |= dsl.bodies_of_leg(leg, request, parts, target.index.shards)
        except UsageError as error:
            lacking[leg] = str(error)
    responses = (yield tuple(bodies.values())) if bodies else ()
    legs = {
        (leg, part): tuple(one._replace(source={}) for one in hits.candidates(response, leg, request.fields))
        for (leg, part), response in zip(bodies, responses, strict=True)
    }
    return Shortlist(question, target, filters, legs, hits.sources(responses), lacking)


def rankable(setting: SearchSettings) -> bool:
    """Whether a shortlist tells what a setting finds: not where a search goes on from what it found itself.

    Nor in the mode ``auto``, which an index makes another one first, nor by weights of tokens.
    """
    mode = MODES.get(setting.mode)
    goes_on = setting.one_per_group or setting.rerank is not None or setting.needs_weights
    return mode is not None and mode.rank is not None and not goes_on


def rank(shortlist: Shortlist, setting: SearchSettings, *, size: int = DEPTH) -> hits.RankedHits:
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
        The hits with their fields and legs.

    Raises:
        UsageError: a leg that the setting needs could not be asked.
        ValueError: the setting is not ``rankable``.
    """
    mode, request = MODES.get(setting.mode), shortlist.request(setting, size)
    if mode is None or mode.rank is None or not rankable(setting):
        raise ValueError(f"a shortlist cannot be ranked in {setting}")
    if lacking := shortlist.lacks.keys() & mode.legs(request):
        raise UsageError(next(why for leg, why in shortlist.lacks.items() if leg in lacking))
    found = mode.rank(shortlist.legs, request)
    with_fields = tuple(hit._replace(source=shortlist.sources.get(hit.id, {})) for hit in found.hits)
    return found._replace(hits=with_fields)


Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShortlistVectors:
    """Documents as the encoder made them, to be looked at as any alpha and gamma would make them.

    Arrays are float64 and have one entry for each document, but for ``query`` and ``offsets``.

    Attributes:
        found: the entries with a vector, without fields: of the shortlist, and the nearest in each language.
        sources: document -> its fields but the vector, of those that are not in the shortlist.
        query: of unit length, shape (dimension,).
        raw: z, shape (documents, dimension); of what is ``unmovable`` as it is in the index.
        keys: tag of the language vector that each takes, empty for none.
        alphas: by how much of it each is shifted in the index, shape (documents,).
        gammas: each one's gamma there, shape (documents,).
        owns: how much of the preference vector of its language each was given, shape (documents,).
        shift: of the index.
        unmovable: documents of which it is not known what they were shifted by: they stay as indexed.
    """

    found: tuple[hits.ScoredDoc, ...]
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    query: Array
    raw: Array
    keys: Sequence[str]
    alphas: Array
    gammas: Array
    owns: Array
    shift: StoredShift
    unmovable: frozenset[str]

    @cached_property
    def places(self) -> dict[str, int]:
        """Document -> where it is in the arrays."""
        return {one.id: place for place, one in enumerate(self.found)}

    def scales(self, alpha: float | None, gamma: float | None) -> tuple[Array, Array]:
        """Alpha and gamma of each document, where None is as indexed; shape (documents,) each.

        Raises:
            UsageError: there is no such gamma, or the index does not keep what it takes out.
        """
        if gamma and self.shift.step is None:
            raise UsageError("Gamma cannot be changed: the index stores no directions of queries.")
        movable = np.array([one.id not in self.unmovable for one in self.found], dtype=bool)
        shifted = movable & np.array([bool(key) for key in self.keys], dtype=bool)
        return (
            self.alphas if alpha is None else np.where(shifted, alpha, 0.0),
            self.gammas if gamma is None else np.where(movable, require_gamma(gamma), 0.0),
        )

    def parts(self, alpha: float | None, gamma: float | None) -> Array:
        """What the cosine of each is made of: what its text has, and what was taken out changes.

        Args:
            alpha: the scale of the language vectors; None as indexed.
            gamma: that of what all queries have in common; None as indexed.

        Returns:
            Shape (documents, 4), in sum ``cos(q, z̃)``: ``q·z / |z̃|``, ``-α q·V / |z̃|``, what gamma does, and
            ``β s q·u / |z̃|``.
        """
        alphas, gammas = self.scales(alpha, gamma)
        lost = alphas[:, np.newaxis] * self._rows(self.shift.vectors, self.keys)
        moved = self.raw - lost
        for one in set(gammas.tolist()) - {0.0}:
            assert self.shift.step is not None  # noqa: S101 - refused without one
            moved[gammas == one] = self.shift.step.remove(moved[gammas == one], one)
        spoken = [one.language for one in self.found]
        given = self._owns_at(alpha, gamma)[:, np.newaxis] * self._rows(self.shift.own_vectors, spoken)
        norms = np.linalg.norm(moved + given, axis=1)
        own, language, whole = self.raw @ self.query, -lost @ self.query, moved @ self.query
        parts = np.column_stack([own, language, whole - own - language, given @ self.query])
        scaled: Array = np.divide(parts, norms[:, np.newaxis], out=np.zeros_like(parts), where=norms[:, np.newaxis] > 0)
        return scaled

    def _rows(self, vectors: Mapping[str, NDArray[np.float32]], tags: Sequence[str]) -> Array:
        """The vector of each document by its tag, zeros for none, shape (documents, dimension)."""
        rows = [vectors.get(tag, np.zeros(len(self.query))) for tag in tags]
        return np.array(rows, np.float64).reshape(self.raw.shape)

    def _owns_at(self, alpha: float | None, gamma: float | None) -> Array:
        """What each would be given at other scales, by the same β; nothing where nothing else is done either."""
        if (alpha is None and gamma is None) or not self.owns.any():
            return self.owns
        if not (alpha or gamma or (gamma is None and self.gammas.any())):
            return np.zeros(len(self.owns))
        alphas = {"alphas": self.shift.alphas} if alpha is None else {"alpha": alpha, "alphas": {}}
        moved = replace(self.shift, **alphas, gamma=self.shift.gamma if gamma is None else gamma)
        changed: Array = self.owns * (moved.weight / self.shift.weight if self.shift.weight else 1.0)
        return changed

    def similarities(self, alpha: float | None, gamma: float | None = None) -> Array:
        """``cos(q, z̃)`` of each; None is as indexed."""
        found: Array = self.parts(alpha, gamma).sum(axis=1)
        return found


# Within a language alpha and gamma hardly change the order: the first 20 at any are among so many of each. (Of XQuAD's
# with e5-small, alpha .7, from gamma .7 to no shift one in 300 is not, and to gamma 0 one in 3,500.)
OF_EACH_LANGUAGE: Final = 30


def fetch_vectors(shortlist: Shortlist, shift: StoredShift) -> SearchPlan[ShortlistVectors]:
    """Fetch the vectors of a shortlist, and of the nearest in each language; one step.

    The 30 nearest of a language are asked for as far as the shortlist does not hold them. Documents in none of the
    index's languages count as one more.

    Args:
        shortlist: of the query.
        shift: how the documents of the index are shifted.

    Returns:
        Of the plan: the vectors.

    Raises:
        UsageError: the question has no vector.
    """
    fields = shortlist.target.index.fields
    bodies = _nearest(shortlist)
    if shortlist.ids:
        # What the vector was shifted by goes by the language, too.
        source_fields = [fields.vector, fields.stamp, fields.language]
        bodies.append(dsl.named(shortlist.ids, fields, source_fields))
    responses = (yield tuple(bodies)) if bodies else ()
    found = {one.id: one for response in responses for one in hits.without_legs(response, fields)}
    return _unshifted(shortlist, shift, found)


def _nearest(shortlist: Shortlist) -> list[Body]:
    """The bodies for the nearest of each language that the shortlist does not hold."""
    index, vector = shortlist.target.index, vector_of(shortlist.question)
    fields, clauses = index.fields, shortlist.filters.clauses
    wanted = shortlist.filters.languages
    tags = [tag for tag in index.languages if wanted is None or tag in wanted]
    among: dict[str, dict[str, Any]] = {tag: {"term": {fields.language: tag}} for tag in tags}
    if wanted is None and index.documents > sum(index.counts.values()):
        among[""] = {"bool": {"must_not": [{"terms": {fields.language: list(index.languages)}}]}}
    near = {one.id for (leg, _), found in shortlist.legs.items() if leg == "dense" for one in found}
    known: dict[str, list[str]] = {tag: [] for tag in among}
    for name, language in shortlist.languages.items():
        known.setdefault(language if language in known else "", []).append(name)
    bodies = []
    for tag, clause in among.items():
        if (missing := OF_EACH_LANGUAGE - sum(name in near for name in known[tag])) > 0:
            new = {"bool": {"must_not": [dsl.among(known[tag])]}} if known[tag] else {"match_all": {}}
            query = dsl.knn(vector, LEAST_CANDIDATES, [*clauses, clause, new], fields)
            bodies.append(dsl.body(query, missing, fields, ["*"]))
    return bodies


def _unshifted(shortlist: Shortlist, shift: StoredShift, found: Mapping[str, hits.ScoredDoc]) -> ShortlistVectors:
    fields = shortlist.target.index.fields
    entries, rows, keys, scales, unmovable = [], list[Array](), list[str](), list[tuple[float, ...]](), set()
    for name, one in found.items():
        stored, stamp = vector_at(one.source, fields.vector), value_at(one.source, fields.stamp) or {}
        if stored is None:
            continue
        # A document that was not shifted by langshift has no stamp, and any client may write one without a scale.
        raw = unshifted(stored, stamp, shift) if "alpha" in stamp else None
        if raw is None:
            unmovable.add(name)
        entries.append(one._replace(source={}))
        rows.append(stored.astype(np.float64) if raw is None else raw)
        keys.append("" if raw is None else key_of(one.source, shift, fields) or "")
        known = {} if raw is None else stamp
        scales.append((float(known.get("alpha") or 0), float(known.get("gamma") or 0), own_of(known).weight))
    query = vector_of(shortlist.question).astype(np.float64)
    new = {name: one for name, one in found.items() if name not in shortlist.languages}
    alphas, gammas, owns = np.array(scales).reshape(len(scales), 3).T
    return ShortlistVectors(
        found=tuple(entries),
        sources={name: replaced_at(one.source, fields.vector, None) for name, one in new.items()},
        query=query / np.linalg.norm(query),
        raw=np.array(rows).reshape(len(rows), len(query)),
        keys=keys,
        alphas=alphas,
        gammas=gammas,
        owns=owns,
        shift=shift,
        unmovable=frozenset(unmovable),
    )


def rank_at(
    shortlist: Shortlist,
    vectors: ShortlistVectors,
    setting: SearchSettings,
    alpha: float | None,
    gamma: float | None = None,
    *,
    size: int = DEPTH,
) -> hits.RankedHits:
    """What the live search would find if all documents were shifted by one alpha and gamma.

    Similarities are exact in double precision, and documents that the graph search of such an index would miss by
    chance are not missed: at the index's own alpha this may find one more than ``rank``. The first 20 by vector are
    nearly always those of such an index; further down, and in the range that ``hybrid`` normalises by, a document may
    be missing that the index's own scales put far down in a language with many near documents. The leg of words stays
    as it is.

    Args:
        shortlist: of the query.
        vectors: of the shortlist.
        setting: how it is searched; one that is ``rankable``.
        alpha: the scale, for all languages alike; None as indexed.
        gamma: that of what all queries have in common: 0, or .9 to .98; None as indexed.
        size: how many hits, 100 at most.

    Returns:
        The hits with their fields and legs.

    Raises:
        UsageError: a leg that the setting needs could not be asked, or the gamma cannot be used.
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


class SimilarityBreakdown(NamedTuple):
    """What a document's similarity to the query is made of, at one alpha and gamma; see ``ShortlistVectors.parts``.

    Attributes:
        value: the cosine; None where it cannot be known.
        own: what the text itself has of it; None, as the next three, where that cannot be known.
        language: what the subtraction of the language vector has of it.
        common: what taking out what all queries have in common has of it.
        preference: what the preference vector of its language has of it.
        removed: tag of the language vector -> its alpha, and ``gamma`` -> gamma; without what is 0.
    """

    value: float | None
    own: float | None
    language: float | None
    common: float | None
    preference: float | None
    removed: Mapping[str, float]


def similarity_breakdown(
    vectors: ShortlistVectors, name: str, alpha: float | None, gamma: float | None = None
) -> SimilarityBreakdown | None:
    """Account for a document's similarity.

    Args:
        vectors: of a query's shortlist.
        name: the document's ``_id``.
        alpha: the scale, for all languages alike; None as indexed.
        gamma: that of what all queries have in common; None as indexed.

    Returns:
        None of a document without a vector, and of one that is not a candidate.
    """
    if (place := vectors.places.get(name)) is None:
        return None
    own, language, common, preference = vectors.parts(alpha, gamma)[place].tolist()
    if name in vectors.unmovable:
        return SimilarityBreakdown(own if alpha is gamma is None else None, None, None, None, None, {})
    alphas, gammas = vectors.scales(alpha, gamma)
    scales = {vectors.keys[place]: float(alphas[place]), "gamma": float(gammas[place])}
    removed = {name: scale for name, scale in scales.items() if scale}
    whole = own + language + common + preference
    return SimilarityBreakdown(whole, own, language, common, preference, removed)

"""``features``: a reranker that reads no text, but the numbers that a search of the index knows anyway.

It is linear and listwise: ``f(d) = w · x(d)``, with ``x`` relative to the other candidates of the query, fitted by
LAURA's loss (Eq. 1) on candidates from which answers were taken out. No weight is below 0: a document is never worth
less for being nearer to the query, or for holding more of its words. Without that, training on translations of each
other teaches a model to avoid the reader's own language, whose documents hold the query's words whether they answer it
or not.

=============== ======================================================================================
``near``        ``2 · (score - max score) / (ρ · spread)``, by the mode: in ``dense`` by ``cos(q̂, z̃)``
``of_language`` ``(cos - max cos among candidates of the document's language) / (ρ(q̂) · spread)``
``first``       ``-ln(1 + number of candidates of its language that are nearer to the query)``
``trusted``     ``(cos(Σ p ẑ, z̃) - max) / spread``: alike to what is trusted
=============== ======================================================================================

``spread``, ``ρ`` and the trust ``p`` are those of ``anchored``, over all candidates: words count through the trust
alone. In ``near``, ``ρ`` is that of the vector that the mode searched with, in ``anchored`` of the moved query;
``trusted`` compares documents with documents and needs none. As features of their own words got the weight 0, as did
the cosine before the shift, and that to a query which is moved as ``anchored`` moves it. Whether a document is in the
reader's language is no feature: it tells only how words are to be trusted. A language preference comes afterwards.

How far the reranker may go in an index is the index's own (``strength``, 0 to 1): ``w_near · near + strength · (the
rest of w · x)``. At 0 the order is that of the mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from langshift.debias.similarity import with_norm_1
from langshift.errors import UsageError, special_file
from langshift.languages import UNDETERMINED
from langshift.retrieval import dsl, hits
from langshift.retrieval.modes import MODES, anchored, anchoring
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import SearchRequest

Array = NDArray[np.float64]
#: The features, in the order of the columns; the first is the one that stays at strength 0.
FEATURES: Final = ("near", "of_language", "first", "trusted")
_TINY: Final = 1e-12


class CandidateNumbers(NamedTuple):
    """What a search knows of its candidates; of those without a vector nothing is known but their words.

    Attributes:
        cosines: ``cos(q̂, z̃) / ρ(q̂)``, shape (candidates,); the lowest of the others for one without a vector.
        words: BM25 of each in its own language, shape (candidates,).
        query_words: how many different words the query has, 1 or more.
        languages: primary tags.
        own: whether each is in the reader's language, shape (candidates,), bool.
        vectors: of unit length, zeros where there is none, shape (candidates, dimension).
        query: the query's vector.
        documents: as in ``Candidates``.
        spread: the index's.
        near: the feature of that name, shape (candidates,).
    """

    cosines: Array
    words: Array
    query_words: int
    languages: Sequence[str]
    own: NDArray[np.bool_]
    vectors: Array
    query: anchoring.QueryVector
    documents: float
    spread: float
    near: Array

    def only(self, places: NDArray[np.intp]) -> CandidateNumbers:
        """The same of the candidates at some places, as if the others were not in the index."""
        return self._replace(
            cosines=self.cosines[places],
            words=self.words[places],
            languages=[self.languages[place] for place in places.tolist()],
            own=self.own[places],
            vectors=self.vectors[places],
            near=self.near[places] - self.near[places].max(initial=-np.inf),
        )


class WordMatches(NamedTuple):
    """What words say of candidates.

    Attributes:
        scores: entry -> BM25 in its own language; of those that match.
        query_words: how many different words the query has.
    """

    scores: Mapping[str, float]
    query_words: int


def gather(
    request: SearchRequest, found: hits.RankedHits, pool: Sequence[hits.ScoredDoc], spread: float
) -> SearchPlan[CandidateNumbers]:
    """Ask for the words and the vectors of candidates; one step.

    Args:
        request: what was searched for; its question has a vector.
        found: what the mode found.
        pool: the candidates, at least one, with the scores of the mode.
        spread: of the index.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    index, fields, own = request.target.index, request.fields, request.question.language
    others = [language for language in index.languages if language != own]
    matching = dsl.matching(request.question.words, own, others, (), fields)
    among = {"bool": {"filter": dsl.filter_clauses({"_id": [one.id for one in pool]}), "should": [matching]}}
    body = dsl.body_with_vectors(among, len(pool), fields)
    if request.has_own:
        body["suggest"] = anchored.counting(request)
    (response,) = yield (body,)
    found_here = hits.without_legs(response, fields)
    matched = WordMatches({one.id: one.score or 0.0 for one in found_here}, hits.count_words(response))
    languages = {one.id: one.language for one in found_here}
    known = anchoring.hit_vectors(hits.stored_vectors(response), languages, request.target.shift)
    return candidate_numbers(request, found.how.moved, pool, known, matched, spread)


def candidate_numbers(
    request: SearchRequest,
    moved: NDArray[np.float32] | None,
    pool: Sequence[hits.ScoredDoc],
    known: Mapping[str, Array],
    matched: WordMatches,
    spread: float,
) -> CandidateNumbers:
    """Put together what is known of candidates.

    Args:
        request: what was searched for.
        moved: the vector that the mode searched with, where it was not the question's.
        pool: the candidates, with the scores of the mode.
        known: entry -> its vector of unit length, shape (dimension,); of those that have one.
        matched: by words.
        spread: of the index.
    """
    query, own = anchoring.query_vector(request), request.question.language
    vectors = np.array([known.get(one.id, np.zeros(len(query.unit))) for one in pool])
    cosines, bearing = vectors @ query.unit / query.rho, np.array([one.id in known for one in pool])
    cosines[~bearing] = cosines[bearing].min() if bearing.any() else 0.0
    scores = np.array([one.score or 0.0 for one in pool])
    if MODES[request.setting.mode].by_cosine:
        scale = 2.0 / (query.rho if moved is None else anchoring.rho(moved, request.target.shift))
    else:
        scale = float(np.ptp(cosines) / max(np.ptp(scores), _TINY))
    return CandidateNumbers(
        cosines=cosines,
        words=np.array([matched.scores.get(one.id, 0.0) for one in pool]),
        query_words=matched.query_words,
        languages=[one.language for one in pool],
        own=np.array([one.language == own != UNDETERMINED for one in pool], dtype=bool),
        vectors=vectors,
        query=query,
        documents=anchoring.own_documents(request),
        spread=spread,
        near=scale * (scores - scores.max()) / spread,
    )


def features(numbers: CandidateNumbers) -> Array:
    """The features of each candidate, shape (candidates, features), in the order of ``FEATURES``."""
    cosines, spread = numbers.cosines, numbers.spread
    tags = np.array(numbers.languages)
    of_language, first = np.zeros(len(tags)), np.zeros(len(tags))
    for tag in set(numbers.languages):
        (places,) = np.nonzero(tags == tag)
        of_language[places] = (cosines[places] - cosines[places].max()) / spread
        first[places[np.argsort(-cosines[places], kind="stable")]] = -np.log1p(np.arange(len(places)))
    evidence = map(anchoring.AnchorEvidence, numbers.own.tolist(), numbers.words.tolist(), cosines.tolist())
    gathered = anchoring.Candidates(
        (), list(evidence), numbers.vectors, numbers.query, numbers.query_words, 0, numbers.documents
    )
    probable = anchoring.anchor_probabilities(gathered, spread)
    trusted = numbers.vectors @ with_norm_1(probable @ numbers.vectors)
    return np.column_stack([numbers.near, of_language, first, (trusted - trusted.max()) / spread])


class FeatureModel(msgspec.Struct, frozen=True, kw_only=True):
    """The weights, as the file ``features.json`` has them.

    Attributes:
        weights: feature -> weight, 0 or above.
        trained_on: what they were fitted on, in words, with its attribution.
        loss: Eq. 1 over what they were fitted on.
        queries: how many lists of candidates these were.
        langshift: the version that fitted them.
    """

    weights: dict[str, float]
    trained_on: str
    loss: float
    queries: int
    langshift: str

    def vector(self, strength: float = 1.0) -> Array:
        """The weights as they are multiplied with ``features``, shape (features,)."""
        made = strength * np.array([self.weights[name] for name in FEATURES])
        made[0] = self.weights[FEATURES[0]]
        return made


@dataclass(frozen=True)
class FeatureReranker:
    """The reranker ``features``, in one index.

    Attributes:
        model: its weights.
        spread: of the index.
        strengths: mode of the search -> how far it may go there, 0 to 1; that of ``dense`` is that of all modes which
            are not there.
    """

    model: FeatureModel
    spread: float
    strengths: Mapping[str, float]

    def strength(self, mode: str) -> float:
        """How far it may go in a mode."""
        return self.strengths.get(mode, self.strengths["dense"])

    def scores(self, numbers: CandidateNumbers, mode: str) -> Array:
        """The score of each candidate of a search in a mode, shape (candidates,)."""
        scores: Array = features(numbers) @ self.model.vector(self.strength(mode))
        return scores


def read_model(name: str = "features") -> FeatureModel:
    """The model of a reranker's name: ``features``, the one that comes with langshift, or ``features:FILE``.

    Raises:
        UsageError: there is no such file, or it is none of ``langshift rerank fit``.
    """
    written = name.partition(":")[2]
    path = Path(written) if written else Path(str(resources.files(__package__) / "features.json"))
    if special := special_file(path):
        raise UsageError(f"{special}: name a file of rerank fit.")
    try:
        model = msgspec.json.decode(path.read_bytes(), type=FeatureModel)
        if set(model.weights) != set(FEATURES):
            raise ValueError(f"its features are {', '.join(model.weights)}")
    except OSError as error:
        raise UsageError(f"The reranker {path} cannot be read ({error.strerror}): name a file of rerank fit.") from None
    except (ValueError, RecursionError) as error:
        remedy = "run langshift rerank fit again"
        raise UsageError(f"{path} is no reranker of this version of langshift ({error}): {remedy}.") from None
    return model

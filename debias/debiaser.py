"""What takes language out of embeddings: one method with its scales, over documents and over queries.

What was done to a document's vector stands in its stamp, by which it is undone, or done again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders import Matrix
from langshift.debias.fitting.linear_maps import map_affine, remove_directions
from langshift.debias.vectors import DOCUMENTS, QUERIES, LanguageVectors, Recommendation, Vectors, vector_tag
from langshift.errors import UsageError
from langshift.languages import UNDETERMINED

# As ``--method`` takes them. What an index can be made with moves documents alone: shift, ``z − αV_ℓ``, and affine, a
# linear map of each language onto the pivot's space. The others change queries too, and work in offline evaluation
# alone: centering, ``x − μ_ℓ``, and lir, x without its language's first principal direction.
INDEX_SIDE, QUERY_SIDE = ("shift", "affine"), ("centering", "lir")
METHODS = ("none", "shift", "centering", "lir", "affine")


def subtract(vectors: Matrix, step: NDArray[np.float64]) -> Matrix:
    """Subtract in 64 bits, and round once: ``z − s``.

    Args:
        vectors: z, shape (n, d) or (d,), float32.
        step: s, of a shape that goes with theirs, float64.

    Returns:
        Shape of ``vectors``, float32, a new array.
    """
    return (vectors.astype(np.float64) - step).astype(np.float32)


def shift(vectors: Matrix, offset: NDArray[np.float32], alpha: float = 1.0) -> Matrix:
    """Move documents of one language into the pivot's space: ``z̃ = z − α V_ℓ`` (Shift, Algorithm 1, line 8).

    The same with ``−alpha`` takes it back, up to rounding: nothing is normalised.

    Args:
        vectors: document embeddings z of one language, shape (n, d), float32.
        offset: the language vector V_ℓ, shape (d,), float32.
        alpha: scale α; with 0 nothing moves, bit for bit.

    Returns:
        Shape (n, d), float32, a new array.
    """
    return subtract(vectors, alpha * offset.astype(np.float64)) if alpha else vectors.copy()


def soft_shift(
    vectors: Matrix, weights: NDArray[np.float64], offsets: Matrix, common: NDArray[np.float64] | None = None
) -> Matrix:
    """Move documents of uncertain language: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ − γ m``.

    Args:
        vectors: document embeddings z, shape (n, d), float32.
        weights: p(ℓ) α_ℓ of each document, shape (n, languages), float64; the posterior of the pivot language, and of
            languages without a vector, is left out: it moves nothing.
        offsets: V_ℓ, shape (languages, d), float32.
        common: γ m, which every document loses once, shape (d,), float64; None for γ 0.

    Returns:
        Shape (n, d), float32, a new array. With γ 0 a row with one weight is what ``shift`` gives with that alpha, and
        a row without any what it was, both bit for bit.
    """
    if common is not None:
        return subtract(vectors, weights @ offsets.astype(np.float64) + common)
    made: Matrix = vectors.copy()
    moved = weights.any(axis=1)
    made[moved] = subtract(vectors[moved], weights[moved] @ offsets.astype(np.float64))
    return made


def mean_difference(total: NDArray[np.float64], pairs: int) -> NDArray[np.float32]:
    """A language vector from a running sum: ``V_ℓ = 1/N Σ (z_i^ℓ − z_i^pivot)`` (Shift, Eq. 1).

    Args:
        total: sum of the differences over all pairs, shape (d,), float64.
        pairs: N, at least 1.

    Returns:
        V_ℓ, shape (d,), float32.
    """
    return (total / pairs).astype(np.float32)


# Rows of one language that are raised to 64 bits at once.
_AT_ONCE = 4096
# Language tag -> posterior p(ℓ) of one document.
Posterior = Mapping[str, float]


class Scales:
    """One scale for all languages, and those of single languages.

    Attributes:
        alpha: scale of all languages.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
    """

    alpha: float
    alphas: Mapping[str, float]

    def scale(self, key: str) -> float:
        """Return the scale of one language, by the tag of its vector."""
        return self.alphas.get(key, self.alpha)


@dataclass(frozen=True)
class Debiaser(Scales):
    """A method and its scales.

    Attributes:
        vectors: the language vectors and what else was fitted; None where nothing is known, which moves nothing.
        method: one of ``METHODS``.
        alpha: scale, 0 to 1: every method moves z to ``z + α (method(z) − z)``.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
        shift_queries: whether queries of other languages than the pivot are moved as documents are.
        gamma: scale γ of the common mean, 0 to 1, which all documents and all queries lose, whatever their language
            (``shift`` alone): ``z̃ = z − α V_ℓ − γ m_D`` and ``q̃ = q − α V^Q_ℓ − γ m_Q``, where m_D and m_Q are the
            mean embeddings of documents and of queries in the pivot language. With α 1 and γ 1 that is centering.
    """

    vectors: LanguageVectors | None
    method: str = "shift"
    alpha: float = 1.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    shift_queries: bool = False
    gamma: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a method for which the file of language vectors holds nothing.

        Raises:
            UsageError: saying how to fit it.
        """
        if self.method not in METHODS:
            raise UsageError(f"Unknown method {self.method!r}; choose one of {', '.join(METHODS)}.")
        if self.vectors is not None and not self._fitted:
            raise UsageError(
                f"The language vectors contain nothing for the method {self.method}: fit them with "
                f"`langshift vectors fit --methods {self.method}`."
            )
        if not self.gamma:
            return
        if self.method != "shift":
            raise UsageError(f"Only the method shift takes a gamma, not {self.method}.")
        if self.vectors is None or not self.vectors.common:
            raise UsageError(
                "The language vectors contain no common mean of documents and queries for a gamma: fit them anew with "
                "`langshift vectors fit`."
            )

    def key(self, language: str) -> str | None:
        """The tag under which documents of a language are moved; None where they stay as they are."""
        key = self.named(language)
        return key if key is not None and self.scale(key) else None

    def named(self, language: str) -> str | None:
        """The tag under which documents of a language would be moved, whatever its scale; None where there is none."""
        known = self.vectors
        if known is None or self.method == "none":
            return None
        if self.method in QUERY_SIDE:
            # The pivot language changes, too.
            return vector_tag(language, None, self._fitted)
        key = known.key(language)
        return key if key in self._fitted else None

    def documents(self, vectors: Matrix, languages: Sequence[str]) -> Matrix:
        """Documents moved by their language.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            languages: each one's tag, ``und`` where unknown.

        Returns:
            Shape (n, d), float32, not normalised; rows that stay, as none does with γ above 0, come back bit for bit.
        """
        return self._moved(vectors, [self.key(tag) for tag in languages], query=False)

    def queries(self, vectors: Matrix, languages: Sequence[str | None]) -> Matrix:
        """Queries moved by their language, where the method or ``shift_queries`` asks for it.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            languages: each one's tag, None or ``und`` where unknown.

        Returns:
            Shape (n, d), float32; with γ 0 queries in the pivot language come back bit for bit.
        """
        by_language = self.shift_queries or self.method in QUERY_SIDE
        if not by_language and not self.gamma:
            return vectors
        keys = [self.key(tag or UNDETERMINED) if by_language else None for tag in languages]
        return self._moved(vectors, keys, query=True)

    def soft(self, vectors: Matrix, posteriors: Sequence[Posterior]) -> Matrix:
        """Documents moved by what they probably are: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ − γ m_D``.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            posteriors: each document's languages and how probable they are.

        Returns:
            Shape (n, d), float32; a document with one language of posterior 1 is what ``documents`` makes of it,
            bit for bit.

        Raises:
            UsageError: another method than ``shift``.
        """
        if self.method != "shift":
            raise UsageError(f"Only the method shift can be soft, not {self.method}.")
        made = np.array(vectors, np.float32)
        known = self.vectors
        if known is None:
            return made
        tags = sorted(known.vectors)
        offsets, scales = np.stack([known.vectors[tag] for tag in tags]), np.array([self.scale(tag) for tag in tags])
        place, common = {tag: column for column, tag in enumerate(tags)}, self._common(query=False)
        for start in range(0, len(made), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            probable = np.zeros((len(made[rows]), len(tags)))
            for row, posterior in enumerate(posteriors[rows]):
                for language, probability in posterior.items():
                    key = self.key(language)
                    if key is not None:
                        probable[row, place[key]] += probability
            made[rows] = soft_shift(made[rows], probable * scales, offsets, common)
        return made

    def _common(self, *, query: bool) -> NDArray[np.float64] | None:
        """γ m, shape (d,), float64; None for γ 0."""
        if self.vectors is None or not self.gamma:
            return None
        return self.gamma * self.vectors.common[QUERIES if query else DOCUMENTS].astype(np.float64)

    @property
    def _fitted(self) -> Mapping[str, Matrix]:
        """What the method moves by, by tag."""
        known = self.vectors
        if known is None:
            return {}
        return {"centering": known.means, "lir": known.directions, "affine": known.maps}.get(self.method, known.vectors)

    def _moved(self, vectors: Matrix, keys: Sequence[str | None], *, query: bool) -> Matrix:
        made = np.array(vectors, np.float32)
        named = np.array([key or "" for key in keys])
        for key in sorted(set(named.tolist())):
            move = self._move(key, query=query)
            if move is None:
                continue
            places = np.flatnonzero(named == key)
            for start in range(0, len(places), _AT_ONCE):
                rows = places[start : start + _AT_ONCE]
                made[rows] = move(made[rows])
        return made

    def _move(self, key: str, *, query: bool) -> Callable[[Matrix], Matrix] | None:
        """What moves vectors by the tag of a language vector, empty for none; None where nothing does."""
        known, common = self.vectors, self._common(query=query)
        if known is None or not key:
            return None if common is None else partial(subtract, step=common)
        alpha = self.scale(key)
        if self.method == "lir":
            return partial(remove_directions, directions=known.directions[key], alpha=alpha)
        if self.method == "affine":
            mean = known.means[key]
            offset = mean - known.vectors[key]
            return partial(map_affine, mean=mean, map_=known.maps[key], pivot_mean=offset, alpha=alpha)
        # Centering takes the language's mean embedding: ``x̃ = x − α μ_ℓ`` (Shift, Appendix C.1, with α 1).
        offset = known.means[key] if self.method == "centering" else known.vectors[key]
        if query and self.method == "shift":
            offset = known.query_vectors.get(key, offset)
        if common is None:
            return partial(shift, offset=offset, alpha=alpha)
        return partial(subtract, step=alpha * offset.astype(np.float64) + common)


def recommended(
    known: LanguageVectors | None,
    method: str = "shift",
    alpha: float | None = None,
    gamma: float | None = None,
    shift_queries: bool | None = None,
    *,
    documents_only: bool = False,
) -> Debiaser:
    """Complete what was given by what a file of language vectors recommends.

    Args:
        known: the file; None moves nothing.
        method: one of ``METHODS``. What a file recommends was measured for ``shift`` alone.
        alpha: scale of all languages; None takes the file's scales, else 1.
        gamma: scale of the common mean; None takes the file's, but 0 beside an alpha that was given.
        shift_queries: whether queries are shifted; None takes what the file recommends, else no.
        documents_only: take what is recommended where queries stay as they are.

    Raises:
        UsageError: the file holds nothing for the method or the gamma, or gamma was given where queries stay as they
            are.
    """
    if known is None:
        return Debiaser(None, method, 0.0)
    if documents_only and gamma:
        raise UsageError(
            "--gamma moves queries too, so it cannot be given with --documents-only: leave one of them out."
        )
    advice = recommendation(known, method, documents_only=documents_only)
    if gamma is None:
        gamma = advice.gamma if alpha is None else 0.0
    alphas = dict(advice.alphas) if alpha is None else {}
    queries = advice.shift_queries if shift_queries is None else shift_queries
    return Debiaser(known, method, advice.alpha if alpha is None else alpha, alphas, queries, gamma)


def recommendation(known: LanguageVectors, method: str = "shift", *, documents_only: bool = False) -> Recommendation:
    """What a file of language vectors recommends for a method: alpha 1, where nobody has measured it."""
    found = known.documents_only if documents_only else known.both_sides
    return found if found is not None and method == "shift" else Recommendation()


#: What stands for the common mean beside the tags of language vectors, where it says what moved a document.
COMMON = "common"


def applied_scales(stamp: Mapping[str, Any]) -> dict[str, float]:
    """Tag of a language vector, or ``COMMON`` -> what it was multiplied with and subtracted: p(ℓ) α_ℓ, or γ."""
    alpha, alphas = float(stamp.get("alpha") or 0), stamp.get("alphas") or {}
    language, gamma = stamp.get("language"), float(stamp.get("gamma") or 0)
    probable = stamp.get("languages") or ({language: 1.0} if language else {})
    common = {COMMON: gamma} if gamma else {}
    return {tag: p * alphas.get(tag, alpha) for tag, p in probable.items()} | common


def nonzero_scales(stamp: Mapping[str, Any]) -> dict[str, float]:
    """As ``applied_scales``, without what moved nothing."""
    return {tag: factor for tag, factor in applied_scales(stamp).items() if factor}


def is_shifted(stamp: Mapping[str, Any]) -> bool:
    """Whether a vector with this stamp is another than the encoder's."""
    return bool(stamp.get("gamma")) or is_shifted_by_language(stamp)


def is_shifted_by_language(stamp: Mapping[str, Any]) -> bool:
    """Whether a vector with this stamp lost a language vector."""
    return bool(stamp["alpha"] or any((stamp.get("alphas") or {}).values()))


def subtracted(stamp: Mapping[str, Any], vectors: Vectors) -> NDArray[np.float64]:
    """What a stamp says was subtracted from a vector: ``Σ_ℓ p(ℓ) α_ℓ V_ℓ + γ m_D``, or ``α V_ℓ + γ m_D``.

    Args:
        stamp: of a document that was shifted with these vectors.
        vectors: the index's: tag -> V_ℓ, ``COMMON`` -> m_D, each of shape (dimension,).

    Returns:
        Shape (dimension,), float64; a single 0 where nothing was.
    """
    steps = [factor * vectors[tag].astype(np.float64) for tag, factor in applied_scales(stamp).items()]
    return np.sum(steps, axis=0) if steps else np.zeros(1)


def undo(stored: Matrix, stamp: Mapping[str, Any], vectors: Vectors) -> Matrix:
    """The vector as the encoder made it, up to rounding: ``z = z̃ + Σ_ℓ p(ℓ) α_ℓ V_ℓ + γ m_D``.

    Args:
        stored: z̃, shape (dimension,), float32.
        stamp: of the document.
        vectors: see ``subtracted``.

    Returns:
        Shape (dimension,), float32.
    """
    return subtract(stored, -subtracted(stamp, vectors))


def shifted(raw: Matrix, stamp: Mapping[str, Any], vectors: Vectors) -> Matrix:
    """The vector as it is stored with this stamp: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ − γ m_D``; arguments as in ``undo``."""
    return subtract(raw, subtracted(stamp, vectors))

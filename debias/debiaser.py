"""What takes language out of documents' embeddings: the shift, with its scales.

What was done to a document's vector stands in its stamp, by which it is undone, or done again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import Matrix
from langshift.debias.vectors import CommonStep, LanguageVectors, Recommendation, Vectors
from langshift.errors import UsageError

# The range of γ beside 0: retrieval is worse in between than at either end, and what 1 takes out cannot be put back.
LEAST_GAMMA, MOST_GAMMA = 0.9, 0.98


def require_gamma(gamma: float) -> float:
    """Refuse a γ that no index is made with.

    Raises:
        UsageError: it is neither 0 nor in the range; with the reason.
    """
    if gamma != 0 and not LEAST_GAMMA <= gamma <= MOST_GAMMA:
        raise UsageError(
            f"gamma {gamma:g} cannot be used: it must be 0, or {LEAST_GAMMA:g} to {MOST_GAMMA:g}. Values between find "
            "less than either, and what 1 takes out of a vector cannot be put back."
        )
    return gamma


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
AT_ONCE = 4096


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
    """The shift and its scales.

    Attributes:
        vectors: the language vectors and what else was fitted; None where nothing is known, which moves nothing.
        alpha: scale, 0 to 1.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
        gamma: 0, or how much of what all queries have in common is taken out of all documents, whatever their
            language; see ``CommonStep``.
    """

    vectors: LanguageVectors | None
    alpha: float = 1.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a gamma for which the file of language vectors holds nothing.

        Raises:
            UsageError: saying how to fit it.
        """
        if not self.gamma:
            return
        require_gamma(self.gamma)
        if self._step is None:
            raise UsageError(
                "The language vectors contain no directions of queries for a gamma: fit them anew with "
                "`langshift vectors fit`, or leave gamma at 0."
            )

    def key(self, language: str) -> str | None:
        """The tag under which documents of a language are moved; None where they stay as they are."""
        key = self.named(language)
        return key if key is not None and self.scale(key) else None

    def named(self, language: str) -> str | None:
        """The tag under which documents of a language would be moved, whatever its scale; None where there is none."""
        return None if self.vectors is None else self.vectors.key(language)

    def documents(self, vectors: Matrix, languages: Sequence[str]) -> Matrix:
        """Documents moved by their language.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            languages: each one's tag, ``und`` where unknown.

        Returns:
            Shape (n, d), float32, not normalised; rows that stay, as none does with γ above 0, come back bit for bit.
        """
        return self.moved(vectors, [self.key(tag) for tag in languages], self._document_move)

    def moved(
        self, vectors: Matrix, keys: Sequence[str | None], move_of: Callable[[str], Callable[[Matrix], Matrix] | None]
    ) -> Matrix:
        """Vectors of which those of each key are moved together, some thousand at a time.

        Args:
            vectors: shape (n, d), float32.
            keys: each one's key; None stands for an empty one.
            move_of: gives what moves the vectors of a key; None where they stay.

        Returns:
            Shape (n, d), float32, a new array; rows that stay come back bit for bit.
        """
        made = np.array(vectors, np.float32)
        named = np.array([key or "" for key in keys])
        for key in sorted(set(named.tolist())):
            move = move_of(key)
            if move is None:
                continue
            places = np.flatnonzero(named == key)
            for start in range(0, len(places), AT_ONCE):
                rows = places[start : start + AT_ONCE]
                made[rows] = move(made[rows])
        return made

    @property
    def _step(self) -> CommonStep | None:
        return None if self.vectors is None else self.vectors.step

    def _document_move(self, key: str) -> Callable[[Matrix], Matrix] | None:
        """What moves documents by the tag of a language vector, empty for none; None where nothing does."""
        if not self.gamma:
            return self.language_move(key)
        known, step = self.vectors, self._step
        assert known is not None  # noqa: S101 - a gamma was refused without them
        assert step is not None  # noqa: S101
        offset = self.scale(key) * known.vectors[key].astype(np.float64) if key else np.zeros(known.dimension)
        return lambda rows: step.remove(rows.astype(np.float64) - offset, self.gamma).astype(np.float32)

    def language_move(self, key: str) -> Callable[[Matrix], Matrix] | None:
        """What the shift by a language vector does; None where nothing does, as for an empty tag."""
        known = self.vectors
        return partial(shift, offset=known.vectors[key], alpha=self.scale(key)) if known is not None and key else None


def recommended(known: LanguageVectors | None, alpha: float | None = None, gamma: float | None = None) -> Debiaser:
    """Complete what was given by what a file of language vectors recommends.

    Args:
        known: the file; None moves nothing.
        alpha: scale of all languages; None takes the file's scales, else 1.
        gamma: None takes the file's, but 0 beside an alpha that was given.

    Raises:
        UsageError: the file holds nothing for the gamma, or the gamma cannot be used.
    """
    if known is None:
        return Debiaser(None, 0.0)
    # What nobody has measured is moved whole.
    advice = known.recommendation or Recommendation()
    if gamma is None:
        gamma = advice.gamma if alpha is None else 0.0
    alphas = dict(advice.alphas) if alpha is None else {}
    return Debiaser(known, advice.alpha if alpha is None else alpha, alphas, gamma)


Stamp = Mapping[str, Any]


def is_shifted(stamp: Stamp) -> bool:
    """Whether a vector with this stamp is another than the encoder's."""
    return bool(stamp.get("gamma")) or is_shifted_by_language(stamp)


def is_shifted_by_language(stamp: Stamp) -> bool:
    """Whether a vector with this stamp lost a language vector."""
    return bool(stamp.get("alpha"))


def restored(stored: Matrix, stamp: Stamp, vectors: Vectors, step: CommonStep | None) -> NDArray[np.float64]:
    """As ``undo``, before rounding: shape (dimension,), float64."""
    gamma, raw = float(stamp.get("gamma") or 0), stored.astype(np.float64)
    if gamma:
        raw = _required(step).restore(raw, gamma)
    return raw + _offset(stamp, vectors)


def undo(stored: Matrix, stamp: Stamp, vectors: Vectors, step: CommonStep | None) -> Matrix:
    """The vector as the encoder made it, up to rounding; see ``CommonStep.restore``.

    Args:
        stored: z̃, shape (dimension,), float32.
        stamp: of a document that was shifted with these vectors.
        vectors: the index's: tag -> V_ℓ, each of shape (dimension,).
        step: the index's; None where its documents have no γ.

    Returns:
        z, shape (dimension,), float32.
    """
    made: Matrix = restored(stored, stamp, vectors, step).astype(np.float32)
    return made


def shifted(raw: NDArray[np.floating[Any]], stamp: Stamp, vectors: Vectors, step: CommonStep | None) -> Matrix:
    """The vector as it is stored with this stamp; ``raw`` is z, of shape (dimension,), the rest as in ``undo``."""
    gamma, moved = float(stamp.get("gamma") or 0), raw.astype(np.float64) - _offset(stamp, vectors)
    if gamma:
        moved = _required(step).remove(moved, gamma)
    made: Matrix = moved.astype(np.float32)
    return made


def _required(step: CommonStep | None) -> CommonStep:
    if step is None:
        raise ValueError("a stamp with a gamma needs the directions of its index")
    return step


def _offset(stamp: Stamp, vectors: Vectors) -> NDArray[np.float64]:
    """α V_ℓ, shape (dimension,), float64; a single 0 where no language vector was subtracted."""
    alpha, language = float(stamp.get("alpha") or 0), stamp.get("language")
    return alpha * vectors[language].astype(np.float64) if alpha and language else np.zeros(1)

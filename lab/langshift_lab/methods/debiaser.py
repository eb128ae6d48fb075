"""What takes language out of embeddings: one method with its scales, over documents and over queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from langshift.debias import debiaser
from langshift.debias.debiaser import Debiaser, shift, subtract
from langshift.debias.encoders.base import Matrix
from langshift.debias.vectors import vector_tag
from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift_lab.methods.linear_maps import map_affine, remove_directions
from langshift_lab.methods.vectors import MethodVectors

# Shift, ``z − αV_ℓ``, and affine, a linear map of each language onto the pivot's space, move documents; centering,
# ``x − μ_ℓ``, and lir, x without its language's first principal direction, change queries too.
QUERY_SIDE = ("centering", "lir")
METHODS = ("none", "shift", "centering", "lir", "affine")
#: Language tag -> posterior p(ℓ) of one document.
Posterior = Mapping[str, float]


def soft_shift(vectors: Matrix, weights: NDArray[np.float64], offsets: Matrix) -> Matrix:
    """Move documents of uncertain language: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ``.

    Args:
        vectors: document embeddings z, shape (n, d), float32.
        weights: p(ℓ) α_ℓ of each document, shape (n, languages), float64; the posterior of the pivot language, and of
            languages without a vector, is left out: it moves nothing.
        offsets: V_ℓ, shape (languages, d), float32.

    Returns:
        Shape (n, d), float32, a new array. A row with one weight is what ``shift`` gives with that alpha, and a row
        without any what it was, both bit for bit.
    """
    made: Matrix = vectors.copy()
    moved = weights.any(axis=1)
    made[moved] = subtract(vectors[moved], weights[moved] @ offsets.astype(np.float64))
    return made


@dataclass(frozen=True)
class MethodDebiaser(Debiaser):
    """A method and its scales: every one moves z to ``z + α (method(z) − z)``.

    Attributes:
        vectors: the language vectors and what else was fitted; None where nothing is known, which moves nothing.
        method: one of ``METHODS``; ``shift`` alone takes a gamma.
        shift_queries: whether queries of other languages than the pivot are moved as documents are (Shift, Appendix J).
    """

    vectors: MethodVectors | None
    method: str = "shift"
    shift_queries: bool = False

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
                f"`langshift vectors methods --methods {self.method}`."
            )
        if self.gamma and self.method != "shift":
            raise UsageError(f"Only the method shift takes a gamma, not {self.method}.")
        super().__post_init__()

    def named(self, language: str) -> str | None:
        """The tag under which documents of a language would be moved, whatever its scale; None where there is none."""
        if self.vectors is None or self.method == "none":
            return None
        if self.method in QUERY_SIDE:
            # The pivot language changes, too.
            return vector_tag(language, None, self._fitted)
        key = self.vectors.key(language)
        return key if key in self._fitted else None

    def queries(self, vectors: Matrix, languages: Sequence[str | None]) -> Matrix:
        """Queries moved by their language, where the method or ``shift_queries`` asks for it.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            languages: each one's tag, None or ``und`` where unknown.

        Returns:
            Shape (n, d), float32; what no vector moves comes back bit for bit.
        """
        if not self.shift_queries and self.method not in QUERY_SIDE:
            return vectors
        return self.moved(vectors, [self.key(tag or UNDETERMINED) for tag in languages], self.language_move)

    def soft(self, vectors: Matrix, posteriors: Sequence[Posterior]) -> Matrix:
        """Documents moved by what they probably are: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ``, without a γ.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            posteriors: each document's languages and how probable they are.

        Returns:
            Shape (n, d), float32; a document with one language of posterior 1 is what ``documents`` makes of it,
            bit for bit.

        Raises:
            UsageError: another method than ``shift``, or a γ.
        """
        if self.method != "shift" or self.gamma:
            raise UsageError(f"Only the method shift with gamma 0 can be soft, not {self.method} with {self.gamma:g}.")
        made = np.array(vectors, np.float32)
        known = self.vectors
        if known is None:
            return made
        tags = sorted(known.vectors)
        offsets, scales = np.stack([known.vectors[tag] for tag in tags]), np.array([self.scale(tag) for tag in tags])
        place = {tag: column for column, tag in enumerate(tags)}
        for start in range(0, len(made), debiaser.AT_ONCE):
            rows = slice(start, start + debiaser.AT_ONCE)
            probable = np.zeros((len(made[rows]), len(tags)))
            for row, posterior in enumerate(posteriors[rows]):
                for language, probability in posterior.items():
                    key = self.key(language)
                    if key is not None:
                        probable[row, place[key]] += probability
            made[rows] = soft_shift(made[rows], probable * scales, offsets)
        return made

    @property
    def _fitted(self) -> Mapping[str, Matrix]:
        """What the method moves by, by tag."""
        part = {"centering": "means", "lir": "directions", "affine": "maps"}.get(self.method, "vectors")
        held: Mapping[str, Matrix] = {} if self.vectors is None else getattr(self.vectors, part)
        return held

    def language_move(self, key: str) -> Callable[[Matrix], Matrix] | None:
        """What the method does by the tag of a language vector; None where nothing does, as for an empty tag."""
        known, alpha = self.vectors, self.scale(key)
        if known is None or not key or self.method in ("none", "shift"):
            return super().language_move(key)
        if self.method == "lir":
            return partial(remove_directions, directions=known.directions[key], alpha=alpha)
        mean = known.means[key]
        if self.method == "affine":
            return partial(
                map_affine, mean=mean, map_=known.maps[key], pivot_mean=mean - known.vectors[key], alpha=alpha
            )
        # Centering takes the language's mean embedding: ``x̃ = x − α μ_ℓ`` (Shift, Appendix C.1, with α 1).
        return partial(shift, offset=mean, alpha=alpha)


def recommended(
    known: MethodVectors | None,
    method: str = "shift",
    alpha: float | None = None,
    gamma: float | None = None,
    *,
    shift_queries: bool = False,
) -> MethodDebiaser:
    """Complete what was given by what a file of language vectors recommends.

    Args:
        known: the file; None moves nothing.
        method: one of ``METHODS``. What a file recommends was measured for ``shift`` alone.
        alpha: scale of all languages; None takes the file's scales, else 1.
        gamma: None takes the file's, but 0 beside an alpha that was given.
        shift_queries: whether queries are shifted.

    Raises:
        UsageError: the file holds nothing for the method or the gamma, or the gamma cannot be used.
    """
    if method == "shift" and known is not None:
        # What an index adds for readers is no part of any method.
        made = debiaser.recommended(known, alpha, gamma, own=0.0)
        alpha, alphas, gamma = made.alpha, made.alphas, made.gamma
    else:
        # What nobody has measured is moved whole.
        alpha, alphas, gamma = (1.0 if alpha is None else alpha) if known is not None else 0.0, {}, gamma or 0.0
    return MethodDebiaser(known, alpha, alphas, gamma, 0.0, method, shift_queries)

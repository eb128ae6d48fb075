"""What queries tell of their language: the directions that their means span, and the preference vectors."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import Matrix
from langshift.errors import UsageError
from langshift.languages import text_language

# Directions matter whose singular value is above this share of the first; below the second it is rounding.
_MATTERS, _ROUNDING = 1 / 40, 1e-6


def spanned_directions(means: NDArray[np.float64]) -> int:
    """How many directions means span, shape (languages, d): their rank, but for rounding."""
    return _spanned(np.linalg.svd(means, compute_uv=False))


def _spanned(sizes: NDArray[np.floating[Any]]) -> int:
    return int((sizes > _ROUNDING * sizes[0]).sum())


def principal_directions(means: NDArray[np.float64], rank: int | None = None) -> NDArray[np.float32]:
    """The first right singular vectors of means, which are not centred: B of ``CommonStep``.

    Args:
        means: of queries in each language, shape (languages, d), float64.
        rank: how many, k; None for those whose singular value is above a fortieth of the first.

    Returns:
        Orthonormal rows, the most dominant first, shape (k, d), float32.

    Raises:
        UsageError: the means span fewer directions than were asked for.
    """
    _, sizes, rows = np.linalg.svd(means, full_matrices=False)
    spanned = _spanned(sizes)
    if rank is not None and rank > spanned:
        languages, dimension = means.shape
        raise UsageError(
            f"{rank} directions were asked for, but the means of queries in {languages} languages and {dimension} "
            f"dimensions span only {spanned}: ask for no more, or fit more languages, with texts that differ."
        )
    return signed(rows[: int((sizes > _MATTERS * sizes[0]).sum()) if rank is None else rank])


def signed(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """Singular vectors, whose sign is arbitrary: each one's largest component is made positive."""
    signs: NDArray[np.float64] = np.sign(np.take_along_axis(rows, np.abs(rows).argmax(axis=1, keepdims=True), axis=1))
    return (rows * signs).astype(np.float32)


# The ridge, in mean eigenvalues of the queries' second moments: where 4,000 queries are known, .01 to .1 do the same.
_RIDGE = 0.03
#: So many texts are enough for any scatter, all languages together.
MOST_TEXTS = 100_000


class Scatter:
    """Sums of the squares of embeddings about the mean of their language, while texts go by: O(d²) memory.

    How texts of a language differ is much the same in every language, so that it is summed over all; the means, and
    with them the languages, can be weighed alike afterwards.
    """

    def __init__(self, dimension: int, languages: Iterable[str]) -> None:
        """Begin with nothing, for these tags."""
        tags = list(languages)
        self._most = -(-MOST_TEXTS // max(len(tags), 1))
        self._seen = dict.fromkeys(tags, 0)
        spoken = {text_language(tag) for tag in tags}
        self._sums = {language: np.zeros(dimension) for language in sorted(spoken)}
        self._counts = dict.fromkeys(spoken, 0)
        self._squares = np.zeros((dimension, dimension))

    def lacks(self, tag: str) -> int:
        """How many more texts in a language are needed."""
        return self._most - self._seen[tag]

    def add(self, tag: str, rows: Matrix, *, unit: bool) -> None:
        """Add texts in a language, as long as more are needed.

        Args:
            tag: the language.
            rows: embeddings, shape (n, d), float32.
            unit: whether they count at length 1.
        """
        some = rows[: self.lacks(tag)]
        if not len(some):
            return
        self._seen[tag] += len(some)
        if unit:
            lengths = np.linalg.norm(some, axis=1, keepdims=True)
            some = some / np.maximum(lengths, np.finfo(np.float32).tiny)
        language = text_language(tag)
        self._sums[language] += some.sum(axis=0, dtype=np.float64)
        self._counts[language] += len(some)
        self._squares += some.T @ some

    @property
    def means(self) -> dict[str, NDArray[np.float64]]:
        """Language -> the mean of its texts, shape (d,); of those that have any."""
        return {tag: total / self._counts[tag] for tag, total in self._sums.items() if self._counts[tag]}

    @property
    def within(self) -> NDArray[np.float64]:
        """The mean of ``(x − m_ℓ)(x − m_ℓ)ᵀ``, shape (d, d)."""
        means = self.means
        counts = np.array([self._counts[tag] for tag in means])
        rows = np.array(list(means.values())).reshape(len(means), -1)
        made: NDArray[np.float64] = (self._squares - (rows.T * counts) @ rows) / max(counts.sum(), 1)
        return made

    def along(self, directions: NDArray[np.floating[Any]]) -> list[float]:
        """The mean squared distance from the means: in all, then along each direction, shape (k, d)."""
        within = self.within
        return [float(np.trace(within)), *np.einsum("ki,ij,kj->k", directions, within, directions).tolist()]


def preference_vectors(queries: Scatter) -> Mapping[str, NDArray[np.float32]]:
    """Fit u_ℓ, with ``⟨q, u_ℓ⟩`` about 1 for queries in ℓ and 0 for others: a ridge regression on one-hot languages.

    ``U = (QᵀQ/n + λ t I)⁻¹ QᵀT/n``, with Q queries at length 1, T their languages, and t the mean eigenvalue of
    ``QᵀQ/n``; every language weighs alike. The more languages there are, the less of the 1 is left, so that all u are
    divided by what queries have of their own on median: a language that is hard to tell stays short.

    Args:
        queries: sums over texts encoded as queries, at length 1.

    Returns:
        Language, as the field ``language`` has it -> u_ℓ, shape (d,), float32.
    """
    means = queries.means
    rows = np.array(list(means.values()))
    moments = queries.within + rows.T @ rows / len(rows)
    ridge = _RIDGE * np.trace(moments) / len(moments)
    if not ridge:
        return {}
    fitted = np.linalg.solve(moments + ridge * np.eye(len(moments)), rows.T / len(rows))
    # Positive, as the ridge leaves a positive definite form.
    scaled = fitted.T / np.median(np.einsum("ld,dl->l", rows, fitted))
    return dict(zip(means, scaled.astype(np.float32), strict=True))

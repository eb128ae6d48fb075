"""What takes language out of documents' embeddings: the shift, with its scales.

What was done to a document's vector stands in its stamp, by which it is undone, or done again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import Matrix
from langshift.debias.vectors import MOST_OWN, CommonStep, LanguageVectors, Recommendation, Vectors
from langshift.errors import UsageError
from langshift.languages import text_language

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


def require_own(own: float) -> float:
    """Refuse a β that no index is made with.

    Raises:
        UsageError: it is out of its range.
    """
    if not 0 <= own <= MOST_OWN:
        raise UsageError(f"own {own:g} cannot be used: it must be between 0 and {MOST_OWN:g}.")
    return own


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


class Fitted(Protocol):
    """What documents are moved by; the attributes are those of ``LanguageVectors``."""

    @property
    def hash(self) -> str | None: ...  # noqa: D102

    @property
    def own_hash(self) -> str | None: ...  # noqa: D102

    @property
    def vectors(self) -> Vectors: ...  # noqa: D102

    @property
    def step(self) -> CommonStep | None: ...  # noqa: D102

    @property
    def own_vectors(self) -> Vectors: ...  # noqa: D102

    @property
    def scatter(self) -> Sequence[float]: ...  # noqa: D102


class Scales:
    """One scale for all languages, and those of single languages.

    Attributes:
        alpha: scale of all languages.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
        gamma: 0, or how much of what all queries have in common is taken out of all documents, whatever their
            language; see ``CommonStep``.
        own: β, which adds ``β s u_ℓ`` to documents in ℓ, the pivot language too, with s of ``weight``.
    """

    alpha: float
    alphas: Mapping[str, float]
    gamma: float
    own: float

    @property
    def fitted(self) -> Fitted | None:
        """What is scaled; None where nothing is known."""
        raise NotImplementedError

    def scale(self, key: str) -> float:
        """Return the scale of one language, by the tag of its vector."""
        return self.alphas.get(key, self.alpha)

    @cached_property
    def weight(self) -> float:
        """β s, with s the mean length of documents that are moved by these scales (root mean square).

        So β is in units of cosine. The mean of a language's documents moves as each document does, and what is left of
        their scatter adds to it: ``s² = mean ‖T(m_D + (1 − α_ℓ) V_ℓ)‖² + scatter − (1 − (1 − γ)²) scatter along B``.

        Raises:
            UsageError: there is a β, and nothing is known that could be scaled by it.
        """
        known = self.fitted
        if not self.own or known is None:
            return 0.0
        if not known.own_vectors or known.step is None:
            raise UsageError(
                "The language vectors contain no preference vectors for --own: fit them anew with "
                "`langshift vectors fit`, or leave --own at 0."
            )
        offsets = [(1 - self.scale(tag)) * one.astype(np.float64) for tag, one in known.vectors.items()]
        means = known.step.mean + np.array([np.zeros(len(known.step.mean)), *offsets])
        lost = 1 - (1 - self.gamma) ** 2
        within = known.scatter[0] - lost * sum(known.scatter[1 : 1 + len(known.step.directions)])
        moved = np.square(known.step.remove(means, self.gamma)).sum(axis=1).mean()
        return self.own * float(np.sqrt(moved + max(within, 0.0)))

    def moved_stamp(self, key: str | None, language: str) -> dict[str, Any]:
        """Return what a stamp says of these scales.

        ``alpha`` and ``language`` are the scale and the vector, also where the scale is 0; ``gamma`` and ``own`` are
        absent where they are 0.

        Args:
            key: the tag of the document's language vector; None where there is none.
            language: the document's, as its field has it.
        """
        known = self.fitted
        made: dict[str, Any] = {"alpha": 0.0} if key is None else {"alpha": self.scale(key), "language": key}
        if self.gamma:
            made["gamma"] = self.gamma
        if self.own and known is not None:
            preferred = language in known.own_vectors
            given = {"weight": self.weight, "language": language} if preferred else {"weight": 0.0}
            made["own"] = {"vectors": known.own_hash, **given}
        return made


@dataclass(frozen=True)
class Debiaser(Scales):
    """The shift and its scales.

    Attributes:
        vectors: the language vectors and what else was fitted; None where nothing is known, which moves nothing.
        alpha: scale, 0 to 1.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
        gamma: as in ``Scales``.
        own: likewise.
    """

    vectors: LanguageVectors | None
    alpha: float = 1.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    own: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a gamma or a β for which the file of language vectors holds nothing.

        Raises:
            UsageError: saying how to fit it.
        """
        require_own(self.own)
        # Refuses what cannot be scaled.
        _ = self.weight
        if not self.gamma:
            return
        require_gamma(self.gamma)
        if self._step is None:
            raise UsageError(
                "The language vectors contain no directions of queries for a gamma: fit them anew with "
                "`langshift vectors fit`, or leave gamma at 0."
            )

    @property
    def fitted(self) -> LanguageVectors | None:
        """The language vectors."""
        return self.vectors

    def stamp(self, language: str) -> dict[str, Any]:
        """What a document's stamp says of how it was moved, by its tag; see ``moved_stamp``.

        ``tag`` is the document's own tag where that says more than the field ``language``, so that other language
        vectors can be applied later.
        """
        spoken = text_language(language)
        made = {"vectors": self.vectors.hash if self.vectors else None}
        made |= self.moved_stamp(self.named(language), spoken)
        if language != spoken:
            made["tag"] = language
        return made

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
        return self.moved(vectors, languages, self._document_move)

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

    def _document_move(self, language: str) -> Callable[[Matrix], Matrix] | None:
        """What moves documents in a language; None where nothing does."""
        known, step, key = self.vectors, self._step, self.key(language) or ""
        own = None if known is None else self._own_step.get(text_language(language))
        if known is None or not (self.gamma or own is not None):
            return self.language_move(key)
        offset = self.scale(key) * known.vectors[key].astype(np.float64) if key else np.zeros(known.dimension)

        def move(rows: Matrix) -> Matrix:
            moved = rows.astype(np.float64) - offset
            if self.gamma and step is not None:
                moved = step.remove(moved, self.gamma)
            made: Matrix = (moved if own is None else moved + own).astype(np.float32)
            return made

        return move

    @cached_property
    def _own_step(self) -> dict[str, NDArray[np.float64]]:
        """Language -> β s u, shape (d,); empty without β."""
        known = self.vectors
        if known is None or not self.weight:
            return {}
        return {tag: self.weight * one.astype(np.float64) for tag, one in known.own_vectors.items()}

    def language_move(self, key: str) -> Callable[[Matrix], Matrix] | None:
        """What the shift by a language vector does; None where nothing does, as for an empty tag."""
        known = self.vectors
        return partial(shift, offset=known.vectors[key], alpha=self.scale(key)) if known is not None and key else None


def recommended(
    known: LanguageVectors | None,
    alpha: float | None = None,
    gamma: float | None = None,
    own: float | None = None,
    translated: float = 0.0,
) -> Debiaser:
    """Complete what was given by what a file of language vectors recommends.

    Args:
        known: the file; None moves nothing.
        alpha: scale of all languages; None takes the file's scales, else 1.
        gamma: None takes the file's, but 0 beside an alpha that was given.
        own: None takes what goes with how much is translated, but 0 beside an alpha or a gamma.
        translated: see ``LanguageVectors.recommended_own``.

    Raises:
        UsageError: the file holds nothing for the gamma or for own, or they cannot be used.
    """
    if known is None:
        return Debiaser(None, 0.0)
    # What nobody has measured is moved whole.
    advice = known.recommendation or Recommendation()
    unnamed, shifts_as_known = alpha is None, alpha is None and gamma is None
    gamma = gamma if gamma is not None else advice.gamma if unnamed else 0.0
    if own is None:
        own = known.recommended_own(translated) if shifts_as_known else 0.0
    return Debiaser(known, advice.alpha if alpha is None else alpha, dict(advice.alphas) if unnamed else {}, gamma, own)


Stamp = Mapping[str, Any]


def is_shifted(stamp: Stamp) -> bool:
    """Whether a vector with this stamp is another than the encoder's."""
    return bool(stamp.get("gamma") or own_of(stamp).weight) or is_shifted_by_language(stamp)


def is_shifted_by_language(stamp: Stamp) -> bool:
    """Whether a vector with this stamp lost a language vector."""
    return bool(stamp.get("alpha"))


class OwnStamp(NamedTuple):
    """What a stamp says of β.

    Attributes:
        weight: β s; 0 where nothing was added.
        language: whose u was added.
        vectors: the hash of its preference vectors.
    """

    weight: float = 0.0
    language: str | None = None
    vectors: str | None = None


def own_of(stamp: Stamp) -> OwnStamp:
    """Read what a stamp says of β; any client may have written it."""
    told = stamp.get("own")
    if not isinstance(told, Mapping) or not isinstance(weight := told.get("weight"), int | float):
        return OwnStamp()
    return OwnStamp(float(weight), told.get("language"), told.get("vectors"))


def is_undoable(stamp: Stamp, fitted: Fitted) -> bool:
    """Whether all that a stamp says was done can be taken back."""
    by_language, own = is_shifted_by_language(stamp), own_of(stamp)
    if (by_language or stamp.get("gamma")) and stamp.get("vectors") != fitted.hash:
        return False
    if own.weight and (own.vectors != fitted.own_hash or own.language not in fitted.own_vectors):
        return False
    return not (
        (by_language and stamp.get("language") not in fitted.vectors) or (stamp.get("gamma") and not fitted.step)
    )


def restored(stored: Matrix, stamp: Stamp, fitted: Fitted) -> NDArray[np.float64]:
    """As ``undo``, before rounding: shape (dimension,), float64."""
    gamma, raw = float(stamp.get("gamma") or 0), stored.astype(np.float64) - _own_offset(stamp, fitted)
    if gamma:
        raw = _required(fitted.step).restore(raw, gamma)
    return raw + _offset(stamp, fitted)


def undo(stored: Matrix, stamp: Stamp, fitted: Fitted) -> Matrix:
    """The vector as the encoder made it, up to rounding; see ``CommonStep.restore``.

    Args:
        stored: z̃, shape (dimension,), float32.
        stamp: of a document that was shifted by ``fitted``, see ``is_undoable``.
        fitted: what the index keeps.

    Returns:
        z, shape (dimension,), float32.
    """
    made: Matrix = restored(stored, stamp, fitted).astype(np.float32)
    return made


def shifted(raw: NDArray[np.floating[Any]], stamp: Stamp, fitted: Fitted) -> Matrix:
    """The vector as it is stored with this stamp; ``raw`` is z, of shape (dimension,), the rest as in ``undo``."""
    gamma, moved = float(stamp.get("gamma") or 0), raw.astype(np.float64) - _offset(stamp, fitted)
    if gamma:
        moved = _required(fitted.step).remove(moved, gamma)
    made: Matrix = (moved + _own_offset(stamp, fitted)).astype(np.float32)
    return made


def _required(step: CommonStep | None) -> CommonStep:
    if step is None:
        raise ValueError("a stamp with a gamma needs the directions of its index")
    return step


def _offset(stamp: Stamp, fitted: Fitted) -> NDArray[np.float64]:
    """α V_ℓ, shape (dimension,), float64; a single 0 where no language vector was subtracted."""
    alpha, language = float(stamp.get("alpha") or 0), stamp.get("language")
    return alpha * fitted.vectors[language].astype(np.float64) if alpha and language else np.zeros(1)


def _own_offset(stamp: Stamp, fitted: Fitted) -> NDArray[np.float64]:
    """β s u_ℓ, likewise."""
    weight, language, _ = own_of(stamp)
    return weight * fitted.own_vectors[language].astype(np.float64) if weight and language else np.zeros(1)

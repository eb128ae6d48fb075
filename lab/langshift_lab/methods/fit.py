"""Fit the methods beside the shift, on the embeddings that language vectors are fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from langshift.debias.debiaser import mean_difference
from langshift.debias.encoders.base import Encoder
from langshift.debias.fitting.fit import fit
from langshift.debias.fitting.sums import BatchEmbeddings, column_sums
from langshift.debias.parallel.columns import ParallelText
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift_lab.methods.linear_maps import PairMoments, SecondMoment
from langshift_lab.methods.vectors import MethodVectors

# What can be fitted; the first two need means alone, which are always fitted.
FITTED = ("shift", "centering", "lir", "affine")


class MethodSums:
    """Sums over the embeddings of parallel text: O(languages × dimension), and × dimension² for ``lir`` and ``affine``.

    Args:
        methods: some of ``FITTED``.
    """

    def __init__(self, methods: Sequence[str]) -> None:
        self._methods = methods
        self._counts: dict[str, int] = {}
        self._totals: dict[str, Any] = {}
        self._directions: dict[str, SecondMoment] = {}
        # Pair of a language and a pivot -> sums over their pairs.
        self._pairs: dict[tuple[str, str], tuple[Any, int, PairMoments | None]] = {}

    def add(self, sides: Mapping[str, BatchEmbeddings], pivots: Sequence[str]) -> None:
        """Add a batch of embeddings by language, and the pairs of each language with each pivot."""
        for language, side in sides.items():
            present = side.vectors[side.present]
            self._totals[language] = self._totals.get(language, 0.0) + side.total
            self._counts[language] = self._counts.get(language, 0) + len(present)
            if "lir" in self._methods:
                self._directions.setdefault(language, SecondMoment(present.shape[1])).add(present)
            for pivot in pivots:
                if pivot != language:
                    self._add_pairs(language, pivot, side, sides[pivot])

    def _add_pairs(self, language: str, pivot: str, side: BatchEmbeddings, of_pivot: BatchEmbeddings) -> None:
        both = side.present & of_pivot.present
        rows, pivot_rows = side.vectors[both], of_pivot.vectors[both]
        total, count, moments = self._pairs.get((language, pivot), (0.0, 0, None))
        if moments is None and "affine" in self._methods:
            moments = PairMoments(rows.shape[1])
        if moments is not None:
            moments.add(rows, pivot_rows)
        self._pairs[language, pivot] = (total + column_sums(rows), count + len(rows), moments)

    def complete(self, vectors: LanguageVectors) -> MethodVectors:
        """Language vectors with what was fitted for their languages."""
        pivot, tags = vectors.pivot, sorted(vectors.vectors)
        pairs = {tag: self._pairs[tag, pivot] for tag in tags}
        known = {one.name: getattr(vectors, one.name) for one in fields(vectors)}
        return MethodVectors(
            **known,
            means={
                pivot: mean_difference(self._totals[pivot], self._counts[pivot]),
                **{tag: mean_difference(total, count) for tag, (total, count, _) in pairs.items()},
            },
            directions={tag: self._directions[tag].directions() for tag in (pivot, *tags) if tag in self._directions},
            maps={tag: moments.fit() for tag, (_, _, moments) in pairs.items() if moments is not None},
        )


def fit_methods(
    source: ParallelText,
    pivots: Sequence[str],
    encoder: Encoder,
    *,
    methods: Sequence[str] = ("shift",),
    **options: Any,  # noqa: ANN401 - fit's
) -> dict[str, MethodVectors]:
    """Fit language vectors as ``langshift.debias.fitting.fit.fit`` does, and other methods in the same pass.

    Args:
        source: the parallel text, or given vectors.
        pivots: the pivot languages, in any form of their tags.
        encoder: the encoder; ``given`` for given vectors.
        methods: some of ``FITTED``.
        options: for ``fit``.

    Returns:
        The language vectors by pivot, with what the methods move by.

    Raises:
        UsageError: a method that there is not, and what ``fit`` raises.
    """
    for method in methods:
        if method not in FITTED:
            raise UsageError(f"The method {method!r} cannot be fitted; choose one of {', '.join(FITTED)}.")
    sums = MethodSums(methods)
    found = fit(source, pivots, encoder, on_sides=sums.add, **options)
    return {pivot: sums.complete(vectors) for pivot, vectors in found.items()}

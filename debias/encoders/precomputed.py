"""``given``, ``given:NAME``: vectors and weights that come with the data, of a model that langshift never sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from langshift.debias.encoders.base import Encoder, Matrix, VectorSpec, have_norm_1
from langshift.debias.encoders.sparse import SparseEncoder, TokenWeights
from langshift.errors import UsageError

if TYPE_CHECKING:
    from langshift.debias.parallel.columns import ParallelText


#: How many of the first vectors tell whether all have norm 1.
NORM_SAMPLE = 1000


class PrecomputedEncoder(Encoder):
    """Stands for the encoder of vectors that are there already; it turns no text into a vector.

    Attributes:
        id: ``given``, or ``given:NAME``.
        revision: NAME, so that vectors of two models that the user tells apart are never mixed.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1.
        query_prefix: empty: whatever the model wanted is in the vectors.
        document_prefix: empty, likewise.
        longest: None.
    """

    def __init__(self, name: str, vector_spec: VectorSpec | None) -> None:
        """Keep what is known.

        Args:
            name: what the user calls their model; may be empty.
            vector_spec: what is known of the vectors that came with the data; None where there are none.

        Raises:
            UsageError: there are none.
        """
        self.id = f"given:{name}" if name else "given"
        if vector_spec is None:
            raise UsageError(
                f"The encoder {self.id} uses vectors that come with the data, but there are none: "
                "choose an encoder of text, such as e5-small."
            )
        self.revision = name
        self.dimension, self.normalised = vector_spec

    def encode_documents(self, texts: Sequence[str]) -> Matrix:  # noqa: ARG002 - the protocol's
        """Refuse.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"The encoder {self.id} does not encode documents: their vectors come with the data, "
            "in the field 'embedding'."
        )

    def encode_queries(self, texts: Sequence[str]) -> Matrix:  # noqa: ARG002 - the protocol's
        """Refuse.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"The encoder {self.id} does not encode queries, because its model is not available: search by words with "
            "--mode lexical, or replay a dataset whose queries have an 'embedding'."
        )


class PrecomputedSparse(SparseEncoder):
    """Stands for the encoder of weights of tokens that are there already.

    Attributes:
        id: ``given``, or ``given:NAME``.
        revision: NAME, so that weights of two models that the user tells apart are never mixed.
    """

    def __init__(self, name: str) -> None:
        """Keep what the user calls their model; may be empty."""
        self.id = f"given:{name}" if name else "given"
        self.revision = name

    def encode_documents(self, texts: Sequence[str]) -> list[TokenWeights]:  # noqa: ARG002 - the protocol's
        """Refuse.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"The sparse encoder {self.id} does not encode documents: the weights of their tokens come with the data, "
            "in the field 'sparse_embedding'."
        )

    def encode_queries(self, texts: Sequence[str]) -> list[TokenWeights]:  # noqa: ARG002 - the protocol's
        """Refuse.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"The sparse encoder {self.id} does not encode queries, because its model is not available: search without "
            "it, as with --mode dense, or replay a dataset whose queries have a 'sparse_embedding'."
        )


def vector_spec_of(source: ParallelText) -> VectorSpec | None:
    """What is known of the vectors of a parallel source by its first ones; None where it holds texts."""
    if source.dimension is None:
        return None
    for rows in source.batches(max(NORM_SAMPLE // len(source.languages), 1)):
        vectors = np.concatenate([of[~np.isnan(of).any(axis=1)] for of in rows.vectors.values()])
        if len(vectors):
            return VectorSpec(source.dimension, have_norm_1(vectors))
    return VectorSpec(source.dimension, normalised=False)

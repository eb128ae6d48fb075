"""The spread of an index's vectors: how much the cosine of unrelated documents differs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.plugin.versions import LiveIndex
from langshift.retrieval.exchange import Exchange, carry_out
from langshift.retrieval.search_gathering import bringing_vectors, brought

# Fewer documents tell nothing; then the spread is that of a usual model.
_FEWEST: Final = 5
_USUAL: Final = 0.05
# No model's documents are all alike, but those of a test may be; it is divided by.
_LEAST: Final = 1e-3
# Of normally distributed figures, standard deviation over median absolute deviation.
_NORMAL: Final = 1.4826


def spread_of(vectors: NDArray[np.floating[Any]]) -> float:
    """The robust standard deviation of the cosine of all pairs: ``1.4826 · median |cos - median cos|``.

    Translations of each other are few among all pairs of a sample, and a median does not see them.

    Args:
        vectors: of documents drawn at random, shape (documents, dimension), of any norm.
    """
    if len(vectors) < _FEWEST:
        return _USUAL
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, np.finfo(np.float64).tiny)
    cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return max(_LEAST, _NORMAL * float(np.median(np.abs(cosines - np.median(cosines)))))


def measured_spread(client: OpenSearch, index: LiveIndex, documents: int) -> float:
    """The spread of a sample of an index's documents, the same each time; one request.

    Args:
        client: the cluster.
        index: the index.
        documents: how many to draw.
    """
    return carry_out(client, index.index, _spread(index, documents))


def drawn(among: dict[str, Any]) -> dict[str, Any]:
    """The query that puts what another one finds in an order of chance, which is the same each time."""
    drawing = {"query": among, "random_score": {"seed": 0, "field": "_seq_no"}, "boost_mode": "replace"}
    return {"function_score": drawing}


def _spread(index: LiveIndex, documents: int) -> Exchange[float]:
    among = drawn({"exists": {"field": index.fields.vector}})
    (response,) = yield (bringing_vectors(among, documents, index.fields),)
    return spread_of(np.array(list(brought(response).values())))

"""What reranks: ``features``, ``st:NAME_OR_PATH`` and ``http:URL#MODEL``, opened by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Union

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from langshift.retrieval.rerank.features import FeatureReranker


class TextReranker(Protocol):
    """A model that reads the query and a passage, and says how relevant the passage is.

    Attributes:
        name: as it was given: ``st:NAME_OR_PATH`` or ``http:URL#MODEL``.
    """

    name: str

    def scores(self, words: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """How relevant each passage is, on the model's own scale; higher is better.

        Args:
            words: the query, as the searcher wrote it.
            texts: passages, each with its title before it where it has one.

        Returns:
            Shape (texts,), float64, finite.

        Raises:
            LangshiftError: the model or its server fails, or gives anything but one number for each passage; the
                sentence names the model or the server.
        """
        ...


Reranker = Union[TextReranker, "FeatureReranker"]

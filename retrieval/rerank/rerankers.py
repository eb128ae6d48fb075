"""What reranks: ``features``, ``st:NAME_OR_PATH`` and ``http:URL#MODEL``, opened by name."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
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


def open_reranker(name: str) -> TextReranker:
    """Open a reranker that reads texts.

    Args:
        name: ``st:NAME_OR_PATH`` or ``http:URL#MODEL``.

    Raises:
        UsageError: there is no reranker of that name, or it cannot be used with what there is.
        LangshiftError: its model cannot be loaded, or its server does not answer as it should.
    """
    kind, _, rest = name.partition(":")
    if kind == "st" and rest:
        from langshift.debias.encoders.model_kinds import is_late_interaction
        from langshift.retrieval.rerank.cross_encoder import CrossEncoderReranker, find_reranker

        model = find_reranker(rest)
        if is_late_interaction(model.folder):
            from langshift.debias.encoders.token_vectors import TokenEncoder
            from langshift.retrieval.rerank.late_interaction import LateInteractionReranker

            return LateInteractionReranker(TokenEncoder(model))
        return CrossEncoderReranker(model)
    if kind in ("http", "https") and rest:
        from langshift.retrieval.rerank.api import HttpReranker

        return HttpReranker(name)
    raise UsageError(
        f"Unknown reranker {name!r}; choose features, features:FILE (trained by langshift rerank fit), "
        "st:NAME_OR_PATH (a cross-encoder or late-interaction model of sentence-transformers) or http:URL#MODEL (a "
        "reranking server)."
    )


Reranker = TextReranker | FeatureReranker

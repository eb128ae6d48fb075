"""``st:NAME_OR_PATH`` of a late-interaction model: candidates are scored by MaxSim (see ``token_vectors``).

Where the index keeps the vectors of documents' tokens, only the query is encoded in a search.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import Matrix
from langshift.debias.encoders.token_vectors import TokenEncoder, max_sim, unpack
from langshift.debias.fingerprint import same_encoder
from langshift.plugin.representations import TokenVectors


class LateInteractionReranker:
    """A model that compares every token of the query with every token of a passage.

    Attributes:
        name: ``st:`` and the model's name on Hugging Face, or the absolute path of its folder.
        encoder: the model itself.
    """

    def __init__(self, encoder: TokenEncoder) -> None:
        self.name = encoder.id
        self.encoder = encoder

    def scores(self, words: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """MaxSim of each passage, shape (texts,), float64; its tokens are encoded here. See ``TextReranker``."""
        return self.scores_of_vectors(words, self.encoder.encode_documents(texts))

    def made(self, tokens: TokenVectors) -> bool:
        """Whether what an index keeps was made by this model."""
        return same_encoder((tokens.encoder, tokens.revision), (self.encoder.id, self.encoder.revision))

    def unpacked(self, packed: Any) -> Matrix | None:  # noqa: ANN401 - any JSON value
        """The vectors that a document brings, shape (tokens, dimension); None where it brings none of this model's."""
        try:
            vectors = unpack(packed)
        except ValueError:
            return None
        return vectors if vectors.shape[1] == self.encoder.dimension else None

    def scores_of_vectors(self, words: str, documents: Sequence[Matrix]) -> NDArray[np.float64]:
        """MaxSim of passages whose tokens are encoded already, each shape (tokens, dimension); likewise."""
        query = self.encoder.encode_queries([words])[0]
        return np.array([max_sim(query, document) for document in documents], np.float64)

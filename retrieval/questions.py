"""What a person asks made into what an index is searched with: detected, encoded, shifted where documents are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.debias import Debias
from langshift.debias.detect import Detection, open_detector
from langshift.debias.encoders import Encoder
from langshift.languages import text_language
from langshift.plugin import query_shift
from langshift.plugin.versions import LiveIndex
from langshift.retrieval.opening import SearchOptions, open_encoder_of
from langshift.retrieval.wanted import USUAL, Question, Setting
from langshift.searching_languages import require_tag


class Asker:
    """Makes the questions of one index.

    Attributes:
        index: what stands behind the name.
        encoder: the encoder that the index was made with.
    """

    def __init__(
        self, client: OpenSearch, index: LiveIndex, options: SearchOptions, opened: dict[str, Encoder]
    ) -> None:
        """Open the encoder of an index.

        Args:
            client: the cluster.
            index: the index.
            options: how.
            opened: encoders by name that are open already; this one is added.

        Raises:
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        self._client, self._options = client, options
        self.index = index
        self.encoder = open_encoder_of(index, options, opened)
        self._detector = open_detector()

    @cached_property
    def query_debias(self) -> Debias:
        """What moves queries, if anything does; read from the index at first use.

        Raises:
            UsageError: queries are to be shifted always, and the index holds nothing to shift them by.
        """
        return query_shift.of_index(self._client, self.index, self._options.shift_queries)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Query vectors as the encoder makes them, shape (len(texts), dimension), float32."""
        return self.encoder.encode_queries(texts)

    def move(self, vectors: NDArray[np.float32], languages: Sequence[str | None]) -> NDArray[np.float32]:
        """Query vectors as they are searched with.

        Args:
            vectors: as the encoder makes them, shape (n, dimension), float32.
            languages: each query's tag, None where unknown.

        Returns:
            Shape (n, dimension), float32; the same bits where queries are not shifted.
        """
        return self.query_debias.queries(vectors, languages)

    def language(self, words: str, setting: Setting = USUAL) -> Detection:
        """The language of a query, detected among those of the index's documents.

        Where a vector is searched with and queries are shifted, languages without a document may be meant just as well.
        """
        among = set(self.index.languages)
        if setting.needs_vector and self.query_debias.vectors is not None:
            known = self.query_debias.vectors
            among |= {text_language(tag) for tag in (known.pivot, *known.vectors)}
        return self._detector.detect(words, among=among)

    def question(
        self,
        words: str,
        setting: Setting = USUAL,
        *,
        language: str | None = None,
        vector: NDArray[np.float32] | None = None,
    ) -> Question:
        """A query, with all that the setting needs.

        Args:
            words: the query.
            setting: in which it will be asked.
            language: of the query, detected if None.
            vector: the vector to search with, shape (dimension,), as ``move`` gives it, if it is known already.

        Raises:
            UsageError: there is no such language, or the index's encoder cannot encode.
        """
        tag = self.language(words, setting).language if language is None else require_tag(language)
        if vector is None and setting.needs_vector:
            vector = self.move(self.encode([words]), [tag])[0]
        return Question(words, text_language(tag), vector)

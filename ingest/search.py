"""Search a live index in one mode, with the encoder that made it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.errors import UsageError
from langshift.failures import reason
from langshift.ingest import query_shift
from langshift.ingest.debias import Debias
from langshift.ingest.detect import Detection, open_detector
from langshift.ingest.encoders import Encoder
from langshift.ingest.hit import Hit, to_hit
from langshift.ingest.opening import USUAL, SearchOptions, open_encoder_of
from langshift.languages import UNDETERMINED, parse_tag
from langshift.plugin import query, versions
from langshift.plugin.template import text_language

# Types of fields that a term does not find.
_NOT_EXACT = {"text", "match_only_text", "search_as_you_type", "object", "nested", "knn_vector"}
MODES = ("dense", "lexical")


class Searcher:
    """Searches one index; opening it reads the fingerprint and opens the encoder it names.

    Attributes:
        index: what stands behind the name.
        encoder: the encoder that the index was made with.
    """

    def __init__(
        self,
        client: OpenSearch,
        name: str,
        options: SearchOptions = USUAL,
        opened: dict[str, Encoder] | None = None,
        *,
        also_unfinished: bool = False,
    ) -> None:
        """Open the index ``name``.

        Args:
            client: the cluster.
            name: the index, an alias or a version.
            options: how.
            opened: encoders by name that are open already; this one's is added.
            also_unfinished: whether a version that is being made may be opened, by who makes it.

        Raises:
            ClusterError: there is no such index of langshift's, or it is not finished.
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        self._client, self._options = client, options
        self.index = versions.live(client, name, also_unfinished=also_unfinished)
        self.encoder = open_encoder_of(self.index, options, {} if opened is None else opened)
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

    def language(self, words: str, mode: str = "dense") -> Detection:
        """The language of a query, detected among those of the index's documents.

        In dense mode, where queries are shifted, languages without a document may be meant just as well.
        """
        among = set(self.index.languages)
        if mode == "dense" and self.query_debias.vectors is not None:
            known = self.query_debias.vectors
            among |= {text_language(tag) for tag in (known.pivot, *known.vectors)}
        return self._detector.detect(words, among=among)

    def body(
        self,
        words: str,
        *,
        mode: str = "dense",
        language: str | None = None,
        size: int = 10,
        filters: query.Filters = query.NO_FILTERS,
        vector: NDArray[np.float32] | None = None,
    ) -> dict[str, Any]:
        """The request body for a search.

        Args:
            words: the query.
            mode: ``dense`` or ``lexical``.
            language: language of the query, detected if None.
            size: how many hits.
            filters: field of the index -> values, any of which a hit must have.
            vector: the vector to search with, shape (dimension,), as ``move`` gives it, if it is known already.

        Raises:
            UsageError: there is no such mode or language.
        """
        fields = self.index.fields
        if mode == "dense":
            vector = self._vector(words, language) if vector is None else vector
            return query.dense(vector, size=size, filters=filters, fields=fields)
        if mode == "lexical":
            tag = self.language(words).language if language is None else require_language(language)
            return query.lexical(words, tag, self.index.languages, size=size, filters=filters, fields=fields)
        raise UsageError(f"There is no search mode {mode!r}; there are: {', '.join(MODES)}.")

    def _vector(self, words: str, language: str | None) -> NDArray[np.float32]:
        vectors = self.encode([words])
        if self.query_debias.shift_queries:
            tag = self.language(words).language if language is None else _require_tag(language)
            vectors = self.move(vectors, [tag])
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def search(
        self,
        words: str,
        *,
        mode: str = "dense",
        language: str | None = None,
        size: int = 10,
        filters: query.Filters = query.NO_FILTERS,
    ) -> list[Hit]:
        """The best hits for a query; the arguments are those of ``body``, and a filter ``language`` is by language.

        Raises:
            UsageError: there is no such mode or language, or no such field to filter by.
        """
        if not words.strip():
            raise UsageError("The query is empty: give the words to search for.")
        try:
            words.encode()
        except UnicodeEncodeError:
            raise UsageError("The query is not UTF-8 text.") from None
        filters = self._checked(filters)
        body = self.body(words, mode=mode, language=language, size=size, filters=filters)
        try:
            answer = self._client.search(index=self.index.index, body=body)
        except RequestError as error:
            if not filters:
                raise
            told = ", ".join(f"{field}={'|'.join(values)}" for field, values in filters.items())
            raise UsageError(f"The filter {told} does not fit its field: {reason(error)}.") from error
        return [to_hit(found, self.index.fields) for found in answer["hits"]["hits"]]

    def _checked(self, filters: query.Filters) -> query.Filters:
        """The filters, by the index's own fields and tags; refused where a field cannot be filtered by."""
        language = self.index.fields.language
        checked: dict[str, list[str]] = {}
        for name, values in filters.items():
            field = language if name == "language" else name
            known = self._client.field_caps(index=self.index.index, fields=field)["fields"].get(field, {})
            if not known or set(known) & _NOT_EXACT:
                raise UsageError(
                    f"Index {self.index.name} has no field {name!r} that can be filtered by exact value; "
                    "language, group and every other field that its documents brought can be."
                )
            found = [require_language(value) for value in values] if field == language else values
            checked.setdefault(field, []).extend(found)
        return checked


def require_language(language: str) -> str:
    """Which text fields a query of this language looks into first.

    Raises:
        UsageError: it names no language.
    """
    return text_language(_require_tag(language))


def _require_tag(language: str) -> str:
    tag = parse_tag(language)
    if tag is None and language != UNDETERMINED:
        raise UsageError(f"{language!r} is no language: use a BCP 47 tag such as th or zh-TW.")
    return tag or UNDETERMINED

"""Search a live index in one mode, with the encoder that made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.errors import UsageError
from langshift.failures import reason
from langshift.ingest.detect import Detection, open_detector
from langshift.ingest.encoders import Encoder, open_encoder
from langshift.languages import UNDETERMINED, parse_tag
from langshift.plugin import query, versions
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.template import text_language

# Types of fields that a term does not find.
_NOT_EXACT = {"text", "object", "nested", "knn_vector"}
MODES = ("dense", "lexical")


class Hit(NamedTuple):
    """One document found.

    Attributes:
        id: its ``_id``.
        score: as the cluster gives it; in dense mode ``(1 + cos) / 2``.
        language: primary tag, or ``und``.
        title: may be empty.
        text: may be empty.
        group: translation group, or None.
    """

    id: str
    score: float
    language: str
    title: str
    text: str
    group: str | None


class Searcher:
    """Searches one index; opening it reads the fingerprint and opens the encoder it names.

    Attributes:
        index: what stands behind the name.
        encoder: the encoder that the index was made with.
    """

    def __init__(self, client: OpenSearch, name: str) -> None:
        """Open the index ``name``.

        Raises:
            ClusterError: there is no such index of langshift's.
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        self._client = client
        self.index = versions.live(client, name)
        self.encoder: Encoder = open_encoder(self.index.fingerprint.encoder)
        self.index.fingerprint.require_same(
            _as_installed(self.index.fingerprint, self.encoder),
            name,
            "search with the same encoder, or index the corpus again",
        )
        self._detector = open_detector()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Query vectors, shape (len(texts), dimension), float32."""
        return self.encoder.encode_queries(texts)

    def language(self, words: str) -> Detection:
        """The language of a query, detected among those of the index's documents."""
        return self._detector.detect(words, among=self.index.languages)

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
            filters: field -> values, any of which a hit must have.
            vector: the query's vector, shape (dimension,), if it is known already.

        Raises:
            UsageError: there is no such mode or language.
        """
        if mode == "dense":
            return query.dense(self.encode([words])[0] if vector is None else vector, size=size, filters=filters)
        if mode == "lexical":
            tag = self.language(words).language if language is None else require_language(language)
            return query.lexical(words, tag, self.index.languages, size=size, filters=filters)
        raise UsageError(f"There is no search mode {mode!r}; there are: {', '.join(MODES)}.")

    def search(
        self,
        words: str,
        *,
        mode: str = "dense",
        language: str | None = None,
        size: int = 10,
        filters: query.Filters = query.NO_FILTERS,
    ) -> list[Hit]:
        """The best hits for a query; the arguments are those of ``body``.

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
        return [to_hit(found) for found in answer["hits"]["hits"]]

    def _checked(self, filters: query.Filters) -> query.Filters:
        """The filters, languages as the index holds them; refused where a field cannot be filtered by."""
        for field in filters:
            known = self._client.field_caps(index=self.index.index, fields=field)["fields"].get(field, {})
            if not known or set(known) & _NOT_EXACT:
                raise UsageError(
                    f"Index {self.index.name} has no field {field!r} that can be filtered by exact value; "
                    "language, group and every other field that its documents brought can be."
                )
        return {
            field: [require_language(value) for value in values] if field == "language" else values
            for field, values in filters.items()
        }


def to_hit(found: dict[str, Any]) -> Hit:
    """A hit of the cluster's answer."""
    source = found["_source"]
    return Hit(
        id=found["_id"],
        score=float(found["_score"]),
        language=source["language"],
        title=next(iter(source.get("title", {}).values()), ""),
        text=next(iter(source.get("text", {}).values()), ""),
        group=source.get("group"),
    )


def _as_installed(fingerprint: Fingerprint, encoder: Encoder) -> Fingerprint:
    from dataclasses import replace

    return replace(
        fingerprint,
        revision=encoder.revision,
        query_prefix=encoder.query_prefix,
        document_prefix=encoder.document_prefix,
        dimension=encoder.dimension,
        normalised=encoder.normalised,
    )


def require_language(language: str) -> str:
    """Which text fields a query of this language looks into first.

    Raises:
        UsageError: it names no language.
    """
    tag = parse_tag(language)
    if tag is None and language != UNDETERMINED:
        raise UsageError(f"{language!r} is no language: use a BCP 47 tag such as th or zh-TW.")
    return text_language(tag or UNDETERMINED)

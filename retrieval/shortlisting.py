"""Makes the shortlists of one index."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.encoders import Encoder
from langshift.errors import UsageError
from langshift.languages import text_language
from langshift.plugin import meta
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.versions import LiveIndex
from langshift.retrieval import fetching, gathering
from langshift.retrieval.exchange import Exchange
from langshift.retrieval.explaining import known_shift
from langshift.retrieval.filters import FilterCheck
from langshift.retrieval.gathering import Shortlist
from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.questions import Asker
from langshift.retrieval.target import Target
from langshift.retrieval.vectors import Vectors
from langshift.retrieval.wanted import NO_FILTERS, Filters, Question
from langshift.retrieval.words import require_query
from langshift.searching_languages import require_tag


class Shortlister(Asker):
    """Makes what ``rank`` and ``rank_at`` rank, of the questions of one index."""

    def __init__(
        self, client: OpenSearch, index: LiveIndex, options: SearchOptions, opened: dict[str, Encoder]
    ) -> None:
        """As ``Asker`` is made."""
        super().__init__(client, index, options, opened)
        self._filters = FilterCheck(client, index)

    @cached_property
    def _shift(self) -> tuple[IndexShift | None, str | None]:
        return known_shift(meta.read(self._client, self.index.index), self.index.index)

    def shortlist(
        self,
        words: str,
        *,
        language: str | None = None,
        filters: Filters = NO_FILTERS,
        encoded: Callable[[], NDArray[np.float32]] | None = None,
    ) -> Exchange[Shortlist]:
        """The candidates of a query for any setting but ``anchored`` and one per group, see ``ingest.shortlist``.

        Args:
            words: the query.
            language: of the query, detected if None.
            filters: field of the index -> values, any of which a hit must have; ``language`` is by language.
            encoded: gives the query's vector as the encoder makes it, shape (dimension,), where somebody keeps it.

        Returns:
            The exchange; the query is encoded before this returns.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
        """
        require_query(words, gathering.DEPTH)
        checked = self._filters.checked(filters)
        tag = self.language(words).language if language is None else require_tag(language)
        lacks = {}
        try:
            raw = self.encode([words])[0] if encoded is None else encoded()
            question = self.question(words, language=tag, vector=self.move(raw[np.newaxis], [tag])[0])
        except UsageError as error:
            # The encoder of given vectors encodes no query; words can be searched for all the same.
            lacks["dense"], question = str(error), Question(words, text_language(tag))
        return gathering.gather(question, Target(self.index), checked, lacks)

    @cached_property
    def shiftable(self) -> str | None:
        """None where documents can be looked at under any alpha, else a sentence that says why not."""
        shift, index = self._shift[0], self.index.name
        if shift is None:
            return f"Alpha cannot be moved: {index} does not hold what could take its shift back exactly."
        return None if shift.vectors else f"Alpha cannot be moved: {index} keeps no language vectors."

    def vectors(self, shortlist: Shortlist) -> Exchange[Vectors]:
        """What a shortlist needs to be ranked at any alpha, see ``ingest.shortlist.moving``.

        Raises:
            UsageError: alpha cannot be moved, or the query has no vector.
        """
        shift, _ = self._shift
        if shift is None or self.shiftable is not None:
            raise UsageError(self.shiftable or "")
        if "dense" in shortlist.lacks:
            raise UsageError(shortlist.lacks["dense"])
        return fetching.fetch(shortlist, shift)

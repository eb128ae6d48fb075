"""Search a live index in any mode, with the encoder that made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.debias.encoders import Encoder
from langshift.errors import ClusterError
from langshift.plugin import versions
from langshift.retrieval import modes
from langshift.retrieval.answering import Explaining, answer
from langshift.retrieval.bodies import Source
from langshift.retrieval.calibration.known import remarks_on, trust_of
from langshift.retrieval.exchange import Exchange, carry_out
from langshift.retrieval.found import Found, How
from langshift.retrieval.fusions import fusions
from langshift.retrieval.opening import USUAL as USUALLY_OPENED
from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.result import SearchResult
from langshift.retrieval.shortlisting import Shortlister
from langshift.retrieval.target import Target
from langshift.retrieval.trust import Trust
from langshift.retrieval.wanted import NO_FILTERS, USUAL, Filters, Fusion, Question, Setting
from langshift.retrieval.words import require_query
from langshift.searching_languages import require_tag


class Searcher(Shortlister):
    """Searches one index; opening it reads the fingerprint and opens the encoder it names.

    Attributes:
        index: what stands behind the name.
        encoder: the encoder that the index was made with.
    """

    def __init__(
        self,
        client: OpenSearch,
        name: str,
        options: SearchOptions = USUALLY_OPENED,
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
        index = versions.live(client, name, also_unfinished=also_unfinished)
        super().__init__(client, index, options, {} if opened is None else opened)

    @cached_property
    def _fusions(self) -> frozenset[Fusion]:
        return fusions(self._client)

    @cached_property
    def trust(self) -> Trust:
        """What ``anchored`` reckons with in this index; read from the cluster at first use.

        Raises:
            ClusterError: the calibration that the index keeps cannot be read.
        """
        return trust_of(self._client, self.index)

    @cached_property
    def remarks(self) -> list[str]:
        """What a searcher in ``anchored`` should know of ``trust``; empty where all is as it should be.

        Raises:
            ClusterError: the calibration that the index keeps cannot be read.
        """
        return remarks_on(self._client, self.index, self.trust)

    def exchange(
        self,
        question: Question,
        setting: Setting = USUAL,
        *,
        size: int = 10,
        filters: Filters = NO_FILTERS,
        source: Source = True,
        legs: bool = False,
    ) -> Exchange[Found]:
        """The search for a question.

        Args:
            question: as ``question`` makes it for this setting.
            setting: how to search.
            size: how many hits.
            filters: field of the index -> values, any of which a hit must have.
            source: which fields hits bring; True for all but the vector.
            legs: whether every leg's score and rank are wanted, which the cluster's own fusion does not tell.

        Raises:
            UsageError: one document of each group is wanted, and the index's field does not serve for that.
        """
        if setting.one_per_group:
            self._filters.require_groups()
        target = self._target(setting)
        target = replace(target, fuses=target.fuses and not legs, legs=legs)
        return modes.search(question, setting, target, size=size, filters=filters, source=source)

    def scores(
        self, question: Question, setting: Setting, how: How, ids: Sequence[str]
    ) -> Exchange[dict[str, float | None]]:
        """What a search would have given each of these documents; see ``plugin.search.modes.scores``."""
        return modes.scores(question, setting, self._target(setting), how, ids)

    def _target(self, setting: Setting) -> Target:
        fuses = setting.mode == "hybrid" and setting.fusion in self._fusions
        return Target(self.index, fuses, self.trust if setting.mode == "anchored" else None)

    def search(
        self,
        words: str,
        setting: Setting = USUAL,
        *,
        language: str | None = None,
        size: int = 10,
        filters: Filters = NO_FILTERS,
        explain: bool = False,
    ) -> SearchResult:
        """The best hits for a query.

        Args:
            words: the query.
            setting: how to search.
            language: of the query, detected if None.
            size: how many hits, 1 to 1,000.
            filters: field of the index -> values, any of which a hit must have; ``language`` is by language.
            explain: whether to tell what the shift did to each hit, which costs one request more.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
            ClusterError: a part of the index did not answer.
            OpenSearchException: the cluster did not answer as it should.
        """
        answering = self.answering(words, setting, language=language, size=size, filters=filters, explain=explain)
        try:
            return carry_out(self._client, self.index.index, answering)
        except (RequestError, ClusterError):
            self.require_fitting(filters)
            raise

    def answering(
        self, words: str, setting: Setting, *, language: str | None, size: int, filters: Filters, explain: bool
    ) -> Exchange[SearchResult]:
        """All of ``search`` that needs no search: what is left of it is an exchange to carry out.

        Raises:
            UsageError: as in ``search``.
        """
        require_query(words, size)
        checked = self._filters.checked(filters)
        if explain:
            tag = self.language(words, setting).language if language is None else require_tag(language)
            raw = self.encode([words])
            question = self.question(words, setting, language=tag, vector=self.move(raw, [tag])[0])
            explaining = Explaining(raw[0], *self._shift, checked)
        else:
            question, explaining = self.question(words, setting, language=language), None
        return answer(
            self.index,
            question,
            setting,
            self.exchange(question, setting, size=size, filters=checked, legs=explain),
            shift_queries=setting.needs_vector and self.query_debias.shift_queries,
            explaining=explaining,
            remarks=self.remarks if setting.mode == "anchored" else (),
        )

    def require_fitting(self, filters: Filters) -> None:
        """Say of a search that failed whether its filters are why.

        Raises:
            UsageError: a value does not fit its field.
        """
        self._filters.require_fitting(self._filters.checked(filters))

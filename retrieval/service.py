"""An index kept open by a service that searches it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.result import SearchResult
from langshift.retrieval.standing import closed, in_one_sentence, open_index
from langshift.retrieval.wish import SearchArguments, wish
from langshift.settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Index:
    """An open index; may be used from several threads, and is closed by ``close`` or at the end of a ``with``.

    A search goes to the version that stands behind the name. After each, one small request makes sure that it still
    does; where another has come in its place, by a retune or otherwise, that is opened and searched instead. So a
    service goes on without a restart, and no query meets vectors that were made or moved otherwise than it was.

    Attributes:
        name: of the index, an alias or a version.
    """

    def __init__(self, name: str, options: SearchOptions) -> None:
        """Open the cluster of the settings, the index and its encoder; see ``langshift.open_index``."""
        settings = Settings.from_env()
        self.name, self._anonymous = name, settings.username is None
        self._opened = open_index(settings, name, options)
        self._client, self._closed = self._opened.client, False

    @property
    def version(self) -> str:
        """The version that the last search went to."""
        return self._opened.version

    def search(self, words: str, **how: Unpack[SearchArguments]) -> SearchResult:
        """The best hits for a query.

        Args:
            words: the query.
            **how: see ``SearchArguments``.

        Raises:
            UsageError: what was given cannot be searched for, or the index is closed.
            ClusterError: the cluster did not answer as it should.
            FingerprintError: another version came to stand behind the name, and its encoder is not installed here.
        """
        if self._closed:
            raise closed(self.name)
        wanted = wish(**how)
        with in_one_sentence(self._client, anonymous=self._anonymous):
            return self._opened.carry_out(lambda searcher: wanted.answering(searcher, words), wanted.filters)[1]

    def close(self) -> None:
        """Close the connections to the cluster."""
        self._closed = True
        self._client.close()

    def __enter__(self) -> Index:
        """The index."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

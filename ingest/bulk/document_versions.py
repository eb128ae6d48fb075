"""Versions that documents are written under: by the server's time, and after whatever their index holds."""

import threading
from collections.abc import Sequence
from typing import NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.ingest.bulk.writer import ActionResult
from langshift.plugin import metadata
from langshift.plugin.versions import Target
from langshift.reporting import note
from langshift.retry import RetryBudget, retry_until_available
from langshift.wording import utc_time

# Lines of a load have consecutive versions from its begin on; in a millisecond nobody reads a million of them, so
# that the next load's are later.
_LINES_A_MILLISECOND = 20  # bits
# More than a load has lines, and than the clocks of a cluster's nodes are apart: a second.
_MARGIN = 1000 << _LINES_A_MILLISECOND
_HIGHEST = (1 << 63) - 1
# Of the documents that were written last some of the last load are among so many.
_LOOKED_AT = 200
# No index has such a field; what matters is what the server takes for now.
_NO_FIELD = "langshift_server_time"
_WRONG = "a machine that has loaded it had a wrong clock"


class _Seen(NamedTuple):
    """What an index says of versions.

    Attributes:
        now: the server's time, as a version.
        noted: where the last load began that had to begin after the server's time; 0 where none had.
        latest: the highest version of the documents that were written last.
    """

    now: int
    noted: int
    latest: int


def _look(client: OpenSearch, index: str, *, created: bool = False) -> _Seen:
    # No search can find or sum up versions. This one needs no permission but to search, and its time is the server's,
    # whatever stands before that.
    body = {
        "size": _LOOKED_AT,
        "sort": [{"_seq_no": {"order": "desc", "unmapped_type": "long"}}],
        "version": True,
        "_source": False,
        "track_total_hits": False,
        "aggs": {"now": {"date_range": {"field": _NO_FIELD, "ranges": [{"to": "now"}]}}},
    }
    answer = client.search(index=index, body=body)
    (bucket,) = answer["aggregations"]["now"]["buckets"]
    # A version that was just made has none.
    noted = 0 if created else metadata.read_metadata(client, index).get(metadata.VERSION_BASE, 0)
    latest = max((hit["_version"] for hit in answer["hits"]["hits"]), default=0)
    return _Seen(int(bucket["to"]) << _LINES_A_MILLISECOND, noted, latest)


def time_of(version: int) -> str:
    """The time that a version stands for, in UTC, such as ``2026-11-25 11:31:02 UTC``."""
    return utc_time(version >> _LINES_A_MILLISECOND)


class VersionsAhead(ClusterError):
    """An index holds a document whose version lies ahead of the server's time: nobody can have written it later.

    Attributes:
        version: the document's.
    """

    def __init__(self, index: str, version: int, now: int) -> None:
        super().__init__(
            f"{index} holds a document with a version of {time_of(version)}, but the server's time is {time_of(now)}: "
            f"{_WRONG}. Run the load again: its versions will continue from there."
        )
        self.version = version


def first_version(client: OpenSearch, target: Target, last: int, patience: float) -> int:
    """The version after which those of a load begin: the server's time, or the highest that is known of the index.

    This machine's time makes no difference. Where the index is ahead of the server's time, that is said, and noted in
    the index for the loads that come.

    Args:
        client: the cluster.
        target: the version that the load writes to.
        last: the highest version of the load before from this machine, 0 where there was none.
        patience: seconds for which a cluster that does not answer is waited for.

    Raises:
        ClusterError: there is no later version than one that the index holds.
    """
    seen = retry_until_available(lambda: _look(client, target.index, created=target.created), RetryBudget(patience))
    highest = max(seen.noted, seen.latest, last)
    return seen.now if highest < seen.now else _after(client, target.index, highest, seen.now)


def version_after(client: OpenSearch, index: str, version: int, patience: float) -> int:
    """As ``first_version``, after a version that a load has met in the index."""

    def after() -> int:
        seen = _look(client, index)
        return _after(client, index, max(version, seen.noted), seen.now)

    return retry_until_available(after, RetryBudget(patience))


def _after(client: OpenSearch, index: str, version: int, now: int) -> int:
    base = version + _MARGIN
    if base + _MARGIN > _HIGHEST:
        raise ClusterError(
            f"{index} holds a document with the version {version}, after which there is none: load the whole corpus "
            "with --if-exists replace or new-version."
        )
    metadata.change(client, index, {metadata.VERSION_BASE: base})
    note(
        f"{index} holds versions of documents up to {time_of(version)}, but the server's time is {time_of(now)}: "
        f"{_WRONG}. The versions of this load continue from there."
    )
    return base


class VersionWatch:
    """Tells lines that somebody has written later from those that only seem to be superseded; from several threads.

    Args:
        client: the cluster.
        index: the version that is written to.
        base: the version that line 0 has.
        patience: seconds for which a cluster that does not answer is waited for.
    """

    def __init__(self, client: OpenSearch, index: str, base: int, patience: float) -> None:
        self._client, self._index, self._base, self._patience = client, index, base, patience
        self._seen = _Seen(0, 0, 0)
        self._lock = threading.Lock()

    def require_known(self, outcomes: Sequence[ActionResult]) -> None:
        """Refuse to take a line for superseded by a version that lies ahead of the server's time.

        Raises:
            VersionsAhead: one would be.
        """
        if ahead := [one.there for one in outcomes if self._is_ahead(one)]:
            raise VersionsAhead(self._index, max(ahead), self._seen.now)

    def doubted(self, outcome: ActionResult) -> ActionResult:
        """What became of a dead letter that was sent again; it stays one where nobody knows which came later."""
        if not self._is_ahead(outcome):
            return outcome
        why = (
            f"the index holds it with a version of {time_of(outcome.there)}, but the server's time is "
            f"{time_of(self._seen.now)}, so nobody knows which is the later one: load the document again"
        )
        return outcome._replace(state="dead", type="version_ahead", reason=why)

    def _is_ahead(self, outcome: ActionResult) -> bool:
        if outcome.state != "superseded":
            return False
        own = self._base + outcome.item.line
        with self._lock:
            if _is_ahead(self._seen, own, outcome.there):
                # Another load may have begun since, and time has passed.
                self._seen = retry_until_available(
                    lambda: _look(self._client, self._index), RetryBudget(self._patience)
                )
            return _is_ahead(self._seen, own, outcome.there)


def _is_ahead(seen: _Seen, own: int, there: int) -> bool:
    """Whether it is not known that what an index holds was written after a line with a version of its own."""
    now = seen.now + _MARGIN
    # Loads that have begun after the server's time are known among themselves.
    since = seen.noted if own <= now else 0
    return there > now and not since < there <= seen.noted + _MARGIN

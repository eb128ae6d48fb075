"""Delivering one chunk, whatever it takes: sent again, halved, waited for, until each of its documents is settled."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from uuid import uuid4

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.nap import sleep_using_event

from langshift.client import address, make_client
from langshift.errors import ClusterError
from langshift.ingest.bulk import writer
from langshift.ingest.bulk.final_pipeline import FinalPipelineCheck, refused
from langshift.ingest.bulk.response import BulkResponse, MalformedResponse, RenamedDocument, parse_bulk_response
from langshift.ingest.bulk.writer import ActionResult, AdaptiveLimit, BulkAction, BulkChunk, BulkWriter, Merge, Settle
from langshift.plugin import live_writes
from langshift.plugin.index_health import explain_block
from langshift.plugin.version_writer import require_not_replaced
from langshift.plugin.versions import Target
from langshift.retry import BACKOFF, RetryBudget
from langshift.server_errors import Rejected, Retryable, classify, is_gone, not_permitted
from langshift.settings import Settings
from langshift.wording import pluralize

#: So often in a row the server may fail over a chunk before the document is looked for that it fails over.
ISOLATED_AFTER = 3
# A request whose answer was lost so often in a row is perhaps too much for the server or a gateway: it is halved,
# unless it is so small that this cannot be why.
_HALVED_AFTER, _SMALL = 3, 1 << 16


@dataclass
class ChunkState:
    """What is left of a chunk, and what is known of the tries.

    Attributes:
        chunk: the items that are not settled.
        unsure: whether they may have been written already, by a request whose answer was lost.
        breaker: tells the memory breaker's answers from those about bad documents.
        lost_in_a_row: answers lost.
        failed_in_a_row: errors of the server's own.
        alone: whether the server takes others, so that the document is what it fails over.
        fits: whether the one document that is left is known not to be too large for the server.
    """

    chunk: BulkChunk
    unsure: bool
    failed_in_a_row: int = 0
    lost_in_a_row: int = 0
    alone: bool = False
    fits: bool = False

    @property
    def stubborn(self) -> bool:
        """Whether the server fails over the chunk again and again."""
        return self.failed_in_a_row >= ISOLATED_AFTER

    @property
    def too_heavy(self) -> bool:
        """Whether the chunk may be too large, for its answers are lost again and again."""
        large = len(self.chunk.body) > _SMALL and (len(self.chunk) > 1 or not self.fits)
        return large and self.lost_in_a_row >= _HALVED_AFTER


def diagnosis(why: str, seconds: float) -> str:
    """What a cluster that has taken nothing for so many seconds lacks, and what to do.

    Args:
        why: the last reason, in the server's words.
        seconds: how long it was waited for.
    """
    waited = f"The cluster has accepted no documents for {pluralize(round(seconds), 'second')}"
    if "flood-stage" in why or "flood stage" in why:
        return f"{waited}, because its disk is full ({why}): free space on its nodes."
    if "circuit breaker" in why:
        return (
            f"{waited}, because its memory for k-NN graphs is used up ({why}): give the nodes more memory, "
            "or raise knn.memory.circuit_breaker.limit."
        )
    return f"{waited} (last: {why})."


# The documents are shifted already, so no default pipeline of the index runs. Of an answer only what is read comes,
# as it is otherwise as long as short documents are.
_PARAMETERS = {"pipeline": "_none", "filter_path": "items.*._id,items.*.status,items.*.result,items.*.error"}
# Seconds that a server which fails over one document gets to recover before it is asked whether it takes others.
_PROBE_DELAY = 1.0
_NOTHING = BulkChunk(())
# A document in chunks makes many operations of one update.
_LARGEST_MERGED = 4 * writer.SIZE

_log = logging.getLogger(__name__)


@dataclass
class ChunkSender:
    """Delivers chunks; several threads may call it at once.

    Attributes:
        client: the cluster; it must not try again by itself.
        index: where requests go: the version and never the alias, which a retune may let stand for a version with
            another shift meanwhile.
        settle: called with what became of items for good, from the thread that delivers them.
        patience: how long trouble is borne.
        stopping: set when nothing is to be sent any more.
        doubtful: up to this line an earlier run may have sent lines whose answers it did not live to see.
        on_block: called where the index takes no writes; says why, if that is known, and what to do, and raises where
            it is of no use to wait.
        merge: makes of updates what is to be written.
        pipeline_check: looks at the index's final pipeline before the first request.
        retries: requests sent again.
        limit: how many requests are sent at once.
    """

    client: OpenSearch
    index: str
    settle: Settle
    patience: RetryBudget
    stopping: threading.Event
    doubtful: int = 0
    on_block: Callable[[], str] = lambda: ""
    merge: Merge = tuple
    pipeline_check: FinalPipelineCheck | None = None
    retries: int = 0
    limit: AdaptiveLimit = field(default_factory=AdaptiveLimit)
    _largest: float = float("inf")
    _accepted: bool = False
    _blocked: str = ""

    def deliver(self, chunk: BulkChunk) -> None:
        """Deliver a chunk; returns when each of its items is settled.

        Raises:
            ClusterError: the cluster has taken nothing at all so far and refuses each of several documents, or has
                taken nothing for too long.
            Stopped: somebody has asked to stop.
        """
        unsure = chunk.items[0].line <= self.doubtful
        refused = [outcome for part in self._fitting(chunk) for outcome in self._persist(part, unsure=unsure)]
        if len(refused) == len(chunk) > 1 and not self._accepted:
            # No document's fault, it seems: nothing would ever be taken.
            raise ClusterError(f"The cluster refuses every document of a bulk request: {refused[0].reason}.")
        if refused:
            self.settle(refused)

    def _fitting(self, chunk: BulkChunk) -> Iterator[BulkChunk]:
        """The chunk in parts that are not larger than what was refused for its size before."""
        if len(chunk.body) <= self._largest or len(chunk) == 1:
            yield chunk
        else:
            for half in chunk.halves():
                yield from self._fitting(half)

    def _persist(self, chunk: BulkChunk, *, unsure: bool, suspect: bool = False) -> list[ActionResult]:
        """Send until all is settled but what makes the server refuse or fail; that is returned.

        Args:
            chunk: what to send.
            unsure: whether it was sent before, and its answer lost.
            suspect: whether the server has failed over it often enough already.
        """
        rest = ChunkState(chunk, unsure, ISOLATED_AFTER - 1 if suspect else 0)
        while True:
            try:
                self._trying(rest)(self._once, rest)
                # What tries again refers to itself, and so would keep the chunk until the garbage is collected.
                rest.chunk = _NOTHING
                return []
            except Rejected as refusal:
                return self._smaller(rest, refusal)
            except Retryable as trouble:
                if self.stopping.is_set():
                    raise writer.Stopped from trouble
                if self.patience.over:
                    raise ClusterError(self._blocked or diagnosis(str(trouble), self.patience.seconds)) from trouble
                self.retries += 1
                if len(rest.chunk) > 1 and (rest.too_heavy or rest.stubborn):
                    return self._halved(rest)
                if rest.too_heavy:
                    # A server that reads no more closes the connection, and what it says may be lost with that.
                    if (limit := self._limit()) is not None and len(rest.chunk.body) > limit:
                        return self._smaller(rest, Rejected(str(trouble), too_large=True))
                    rest.fits, rest.lost_in_a_row = limit is not None, 0
                if rest.stubborn and rest.alone:
                    return [ActionResult(rest.chunk.items[0], "dead", "", "server_error", str(trouble).rstrip("."))]
                # The last word has the document itself: the server may have recovered before it was asked.
                rest.alone = rest.stubborn and self._takes_others()
                rest.failed_in_a_row = ISOLATED_AFTER - 1 if rest.alone else 0

    def _trying(self, rest: ChunkState) -> Retrying:
        return Retrying(
            wait=BACKOFF,
            stop=lambda _: self.stopping.is_set() or self.patience.over or rest.too_heavy or rest.stubborn,
            retry=retry_if_exception_type(Retryable),
            sleep=sleep_using_event(self.stopping),
            before_sleep=self._note,
            reraise=True,
        )

    def _takes_others(self) -> bool:
        """Whether the cluster takes a request that changes nothing, while it fails over one document."""
        self.stopping.wait(_PROBE_DELAY)
        name = uuid4().hex
        probe = BulkChunk([BulkAction(0, name, "delete", writer.bulk_lines("delete", name, 1), b"")])
        try:
            response = self.client.bulk(body=probe.body, index=self.index, params=_PARAMETERS)
            return bool(parse_bulk_response(response, probe, unsure=False).results)
        except (OpenSearchException, MalformedResponse):
            return False

    def _once(self, rest: ChunkState) -> None:
        """Send what is left of a chunk once."""
        if not rest.chunk.ordered or self._merged(rest):
            if len(rest.chunk) > 1 and len(rest.chunk.body) > _LARGEST_MERGED:
                raise Rejected("longer than other requests", too_large=False)
            self._send(rest)

    def _send(self, rest: ChunkState) -> None:
        with self.limit.request() as turn:
            # Asked now, as the turn may have been long in coming.
            if self.stopping.is_set():
                raise writer.Stopped
            try:
                verdict = self._request(rest)
            except MalformedResponse as error:
                raise self._again(rest, Retryable(str(error), lost=True)) from error
            except OpenSearchException as error:
                trouble = classify(error, address(self.client))
                if isinstance(trouble, Retryable):
                    turn.overloaded = trouble.overloaded
                    trouble = self._again(rest, trouble)
                raise trouble from error
            turn.overloaded, turn.accepted = verdict.overloaded, not verdict.again
        if fatal := verdict.fatal or (verdict.missing if verdict.missing and self._is_gone() else ""):
            message = f"The cluster no longer accepts documents: {fatal}."
            raise not_permitted(fatal, address(self.client)) or ClusterError(message)
        rest.lost_in_a_row = 0
        rest.failed_in_a_row = rest.failed_in_a_row + 1 if verdict.failed else 0
        if verdict.results:
            self._accepted = True
            self.patience.taken()
            self.settle(verdict.results)
        if verdict.again:
            self._blocked = ""
            if verdict.blocked:
                # Where nobody can be asked, it is tried again.
                with suppress(OpenSearchException):
                    self._blocked = self.on_block()
            if not verdict.results:
                self.patience.trouble(self._blocked or verdict.why)
            rest.chunk = BulkChunk(verdict.again)
            # A shard may have written what it could not confirm.
            rest.unsure |= verdict.unsure
            raise Retryable(verdict.why)

    def _request(self, rest: ChunkState) -> BulkResponse:
        if self.pipeline_check is not None:
            try:
                self.pipeline_check.require_harmless(rest.chunk)
            except OpenSearchException as error:
                trouble = classify(error, address(self.client))
                if isinstance(trouble, Retryable):
                    # Nothing of the chunk was sent, whatever was lost.
                    trouble = self._again(rest, Retryable(str(trouble)))
                raise trouble from error
        response = self.client.bulk(body=rest.chunk.body, index=self.index, params=_PARAMETERS)
        try:
            return parse_bulk_response(response, rest.chunk, unsure=rest.unsure)
        except RenamedDocument as error:
            if self.pipeline_check is not None and self.pipeline_check.name is not None:
                raise refused(self.index, self.pipeline_check.name, "changes _id of documents") from error
            raise

    def _merged(self, rest: ChunkState) -> bool:
        """Merge updates with the documents that they change, as these are now; whether anything is left to send."""
        todo = [item for item in rest.chunk.items if not item.body]
        if not todo:
            return True
        try:
            made = self.merge(todo)
        except (OpenSearchException, Retryable) as error:
            trouble = error if isinstance(error, Retryable) else classify(error, address(self.client))
            raise (self._again(rest, trouble) if isinstance(trouble, Retryable) else trouble) from error
        if ended := [one for one in made if isinstance(one, ActionResult)]:
            self.settle(ended)
        now = [item for item in rest.chunk.items if item.body] + [one for one in made if isinstance(one, BulkAction)]
        rest.chunk = BulkChunk(sorted(now, key=attrgetter("line")))
        return len(rest.chunk) > 0

    def _is_gone(self) -> bool:
        try:
            return is_gone(self.client.transport.perform_request, self.index)
        except OpenSearchException:
            # Nobody knows: the documents are sent again rather than given up.
            return False

    def _again(self, rest: ChunkState, trouble: Retryable) -> Retryable:
        self.patience.trouble(trouble)
        rest.failed_in_a_row = rest.failed_in_a_row + 1 if trouble.failed else 0
        if trouble.lost:
            rest.unsure = True
            rest.lost_in_a_row += 1
        return trouble

    def _smaller(self, rest: ChunkState, refusal: Rejected) -> list[ActionResult]:
        chunk = rest.chunk
        if refusal.too_large:
            self._largest = min(self._largest, len(chunk.body) // 2)
        if len(chunk) == 1:
            kind = "too_large" if refusal.too_large else "refused_request"
            why = self._too_large(len(chunk.body)) if refusal.too_large else str(refusal).rstrip(".")
            return [ActionResult(chunk.items[0], "dead", "", kind, why)]
        _log.info("halving a request of %d documents, %d bytes: %s", len(chunk), len(chunk.body), refusal)
        return self._halved(rest)

    def _too_large(self, size: int) -> str:
        """Why a request of one document, of so many bytes, is refused for its size."""
        sent, limit = f"the document is a request of {size:,} bytes", self._limit()
        if limit is not None and size > limit:
            return f"{sent}, more than the {limit:,} of the server's http.max_content_length"
        own = "" if limit is None else f" (the server's own http.max_content_length is {limit:,})"
        return f"{sent}, more than a proxy before the server, or the server, accepts{own}"

    def _limit(self) -> int | None:
        """The least ``http.max_content_length`` of the nodes, in bytes; None where it is not known."""
        try:
            nodes = self.client.nodes.info(metric="http")["nodes"].values()
        except OpenSearchException:
            return None
        found = [one.get("http", {}).get("max_content_length_in_bytes") for one in nodes]
        return min((limit for limit in found if isinstance(limit, int)), default=None)

    def _halved(self, rest: ChunkState) -> list[ActionResult]:
        halves, suspect = rest.chunk.halves(), rest.stubborn
        return [o for half in halves for o in self._persist(half, unsure=rest.unsure, suspect=suspect)]

    def _note(self, state: RetryCallState) -> None:
        self.retries += 1
        trouble = state.outcome.exception() if state.outcome else None
        wait = state.next_action.sleep if state.next_action else 0.0
        _log.warning("sending again in %.1f s, %s requests at a time: %s", wait, self.limit.at_once, trouble)


# Whoever publishes a load blocks the version before for less than a second; seconds after which he was killed, and
# after which a block is another one.
_ABANDONED, _ANOTHER = 30.0, 60.0


@dataclass
class _OnBlock:
    """What to do where a version takes no writes, each time it says so.

    Attributes:
        client: the cluster.
        target: the version.
        longest: seconds for which the block of a load that is being published is waited for.
        patience: begins anew once such a block is lifted.
    """

    client: OpenSearch
    target: Target
    longest: float
    patience: RetryBudget
    _first: float = 0.0
    _last: float = float("-inf")

    def __call__(self) -> str:
        """Look what has happened.

        Returns:
            Why it takes none, as a sentence; empty where that is not known.

        Raises:
            ClusterError: another version has taken its place, or a command that was interrupted has blocked it.
        """
        require_not_replaced(self.client, self.target)
        now = time.monotonic()
        if now - self._last > _ANOTHER:
            self._first = now
        self._last = now
        if now - self._first > self.longest and live_writes.release_abandoned(self.client, self.target.name):
            self.patience.taken()
        return explain_block(self.client, self.target.name, self.target.index)


@contextmanager
def open_bulk_writer(
    client: OpenSearch,
    target: Target,
    settle: Settle,
    patience: float,
    doubtful: int = 0,
    merge: Merge = tuple,
    requests: int = writer.MOST,
) -> Iterator[tuple[BulkWriter, ChunkSender]]:
    """Open a writer; when the block ends all it took is settled, or after an error nothing is under way any more.

    Args:
        client: the cluster.
        target: where the operations go.
        settle: as for ``ChunkSender``, as is ``doubtful``.
        patience: seconds for which trouble is borne.
        doubtful: up to this line an earlier run may have sent lines whose answers it did not live to see.
        merge: makes of updates what is to be written.
        requests: how many may be under way at once.

    Returns:
        The writer, and what sends its chunks and counts.

    Raises:
        ClusterError: the cluster takes nothing, or another version has taken the target's place.
    """
    stopping = threading.Event()
    # The client must not send again by itself: what was sent, and how often, is counted here.
    with make_client(Settings.from_env(), address(client), retries=0) as sending:
        budget = RetryBudget(patience)
        on_block = _OnBlock(client, target, min(_ABANDONED, patience / 2), budget)
        chunk_sender = ChunkSender(sending, target.index, settle, budget, stopping, doubtful, on_block, merge)
        chunk_sender.pipeline_check = FinalPipelineCheck(sending, target)
        chunk_sender.limit = AdaptiveLimit(requests)
        with BulkWriter(chunk_sender.deliver, stopping, requests) as bulk_writer:
            yield bulk_writer, chunk_sender
            bulk_writer.drain()

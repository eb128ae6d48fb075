"""Delivering one chunk, whatever it takes: until each of its documents is settled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.nap import sleep_using_event

from langshift.cluster import address
from langshift.errors import ClusterError
from langshift.failures import not_permitted
from langshift.ingest.bulk import answer
from langshift.ingest.bulk.breaker import Breaker
from langshift.ingest.bulk.concurrency import Limit
from langshift.ingest.bulk.item import Chunk, Item, Outcome
from langshift.ingest.bulk.rest import ISOLATED_AFTER, Rest
from langshift.ingest.bulk.trouble import Stopped, diagnosis
from langshift.ingest.entry import body
from langshift.missing_index import is_gone
from langshift.patience import BACKOFF, Patience
from langshift.trouble import Again, Refused, meaning

#: Only what is read of an answer, which is otherwise as long as short documents are.
_FIELDS = {"filter_path": "items.*._id,items.*.status,items.*.result,items.*.error"}
# Seconds that a server which fails over one document gets to recover before it is asked whether it takes others.
_BEFORE_ASKING = 1.0
_NOTHING = Chunk(())

_log = logging.getLogger(__name__)


class Courier:
    """Delivers chunks; several threads may call it at once.

    Attributes:
        retries: requests sent again.
        limit: how many requests are sent at once.
    """

    def __init__(
        self,
        client: OpenSearch,
        parameters: Mapping[str, Any],
        settle: Callable[[list[Outcome]], None],
        patience: Patience,
        stopping: threading.Event,
        doubtful: int = 0,
        on_block: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a courier.

        Args:
            client: the cluster; it must not try again by itself.
            parameters: where a request goes, as ``client.bulk`` takes it.
            settle: called with what became of items for good, from the thread that delivers them.
            patience: how long trouble is borne.
            stopping: set when nothing is to be sent any more.
            doubtful: up to this line an earlier run may have sent lines whose answers it did not live to see.
            on_block: called where the index takes no writes; raises where it never will again.
        """
        self.retries = 0
        self.limit = Limit()
        self._client = client
        self._parameters = {**parameters, "params": {**parameters.get("params", {}), **_FIELDS}}
        self._settle = settle
        self._patience = patience
        self._stopping = stopping
        self._doubtful = doubtful
        self._on_block = on_block
        self._largest: int | None = None
        self._accepted = False

    def deliver(self, chunk: Chunk) -> None:
        """Deliver a chunk; returns when each of its items is settled.

        Raises:
            ClusterError: the cluster has taken nothing at all so far and refuses each of several documents, or has
                taken nothing for too long.
            Stopped: somebody has asked to stop.
        """
        unsure = chunk.items[0].line <= self._doubtful
        refused = [outcome for part in self._fitting(chunk) for outcome in self._persist(part, unsure=unsure)]
        if len(refused) == len(chunk) > 1 and not self._accepted:
            # No document's fault, it seems: nothing would ever be taken.
            raise ClusterError(f"The cluster refuses every document of a bulk request: {refused[0].reason}.")
        if refused:
            self._settle(refused)

    def _fitting(self, chunk: Chunk) -> Iterator[Chunk]:
        """The chunk in parts that are not larger than what was refused for its size before."""
        if self._largest is None or len(chunk.body) <= self._largest or len(chunk) == 1:
            yield chunk
        else:
            for half in chunk.halves():
                yield from self._fitting(half)

    def _persist(self, chunk: Chunk, *, unsure: bool, suspect: bool = False) -> list[Outcome]:
        """Send until all is settled but what makes the server refuse or fail; that is returned.

        Args:
            chunk: what to send.
            unsure: whether it was sent before, and its answer lost.
            suspect: whether the server has failed over it often enough already.
        """
        rest = Rest(chunk, unsure, Breaker(self._client))
        rest.failed_in_a_row = ISOLATED_AFTER - 1 if suspect else 0
        while True:
            try:
                for attempt in self._trying(rest):
                    with attempt:
                        self._once(rest)
                # What tries again refers to itself, and so would keep the chunk until the garbage is collected.
                rest.chunk = _NOTHING
                return []
            except Refused as refusal:
                return self._smaller(rest, refusal)
            except Again as trouble:
                if self._stopping.is_set():
                    raise Stopped from trouble
                if self._patience.over:
                    raise ClusterError(diagnosis(str(trouble), self._patience.seconds)) from trouble
                self.retries += 1
                if len(rest.chunk) > 1 and (rest.too_heavy or rest.stubborn):
                    return self._halved(rest)
                if rest.stubborn and rest.alone:
                    return [Outcome(rest.chunk.items[0], "dead", "", "server_error", str(trouble).rstrip("."))]
                # The last word has the document itself: the server may have recovered before it was asked.
                rest.alone = rest.stubborn and self._takes_others()
                rest.failed_in_a_row = ISOLATED_AFTER - 1 if rest.alone else 0

    def _trying(self, rest: Rest) -> Retrying:
        return Retrying(
            wait=BACKOFF,
            stop=lambda _: self._stopping.is_set() or self._patience.over or rest.too_heavy or rest.stubborn,
            retry=retry_if_exception_type(Again),
            sleep=sleep_using_event(self._stopping),
            before_sleep=self._note,
            reraise=True,
        )

    def _takes_others(self) -> bool:
        """Whether the cluster takes a request that changes nothing, while it fails over one document."""
        self._stopping.wait(_BEFORE_ASKING)
        name = uuid4().hex
        probe = Chunk([Item(0, name, "delete", body("delete", name, 1), b"")])
        try:
            told = self._client.bulk(body=probe.body, **self._parameters)
            return bool(answer.read(told, probe, lambda _: False, unsure=False).settled)
        except (OpenSearchException, answer.Broken):
            return False

    def _once(self, rest: Rest) -> None:
        """Send what is left of a chunk once."""
        with self.limit.request() as turn:
            # Asked now, as the turn may have been long in coming.
            if self._stopping.is_set():
                raise Stopped
            rest.breaker.begin()
            try:
                told = self._client.bulk(body=rest.chunk.body, **self._parameters)
                verdict = answer.read(told, rest.chunk, rest.breaker.caused, unsure=rest.unsure)
            except answer.Broken as error:
                raise self._again(rest, Again(str(error), lost=True)) from error
            except OpenSearchException as error:
                trouble = meaning(error, address(self._client))
                if isinstance(trouble, Again):
                    turn.overloaded = trouble.overloaded
                    trouble = self._again(rest, trouble)
                raise trouble from error
            turn.overloaded, turn.accepted = verdict.overloaded, not verdict.again
        if fatal := verdict.fatal or (verdict.missing if verdict.missing and self._is_gone() else ""):
            told = f"The cluster does not take documents any more: {fatal}."
            raise not_permitted(fatal, address(self._client)) or ClusterError(told)
        rest.lost_in_a_row = 0
        rest.count(failed=verdict.failed)
        if verdict.settled:
            self._accepted = True
            self._patience.taken()
            self._settle(verdict.settled)
        if verdict.again:
            if verdict.blocked:
                # Where nobody can be asked, it is tried again.
                with suppress(OpenSearchException):
                    self._on_block()
            if not verdict.settled:
                self._patience.trouble()
            rest.chunk = Chunk(verdict.again)
            raise Again(verdict.why)

    def _is_gone(self) -> bool:
        try:
            return is_gone(self._client, self._parameters["index"])
        except OpenSearchException:
            # Nobody knows: the documents are sent again rather than given up.
            return False

    def _again(self, rest: Rest, trouble: Again) -> Again:
        self._patience.trouble()
        rest.count(failed=trouble.failed)
        if trouble.lost:
            rest.unsure = True
            rest.lost_in_a_row += 1
        return trouble

    def _smaller(self, rest: Rest, refusal: Refused) -> list[Outcome]:
        chunk = rest.chunk
        if refusal.too_large:
            half = len(chunk.body) // 2
            self._largest = half if self._largest is None else min(self._largest, half)
        if len(chunk) == 1:
            kind = "too_large" if refusal.too_large else "refused_request"
            return [Outcome(chunk.items[0], "dead", "", kind, str(refusal).rstrip("."))]
        _log.info("a request of %d documents, %d bytes, is halved: %s", len(chunk), len(chunk.body), refusal)
        return self._halved(rest)

    def _halved(self, rest: Rest) -> list[Outcome]:
        halves, suspect = rest.chunk.halves(), rest.stubborn
        return [o for half in halves for o in self._persist(half, unsure=rest.unsure, suspect=suspect)]

    def _note(self, state: RetryCallState) -> None:
        self.retries += 1
        trouble = state.outcome.exception() if state.outcome else None
        wait = state.next_action.sleep if state.next_action else 0.0
        _log.warning("sent again in %.1f s, %s at once: %s", wait, self.limit.at_once, trouble)

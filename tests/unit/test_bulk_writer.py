"""The writer of bulk requests: chunks, how many are under way, what an answer says of each document, and a stop.

tests/cluster has the faults of the cluster itself.
"""

import threading
from contextlib import contextmanager
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy.exceptions import ConnectionError as UnreachableError
from opensearchpy.exceptions import TransportError
from tenacity import wait_none

from langshift.errors import ClusterError
from langshift.ingest.bulk import delivery
from langshift.ingest.bulk.delivery import ChunkSender
from langshift.ingest.bulk.writer import AdaptiveLimit, BulkAction, BulkChunk, BulkWriter, Chunker, Stopped
from langshift.retry import RetryBudget

OPERATIONS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["index", "delete"]), st.integers(1, 40)))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Nothing waits before it is sent again."""
    monkeypatch.setattr(delivery, "BACKOFF", wait_none())


def item(name, operation="index", line=1):
    return BulkAction(line, name, operation, f"{operation} {name}\n".encode(), b"{}")


def chunk(*names, operation="index"):
    return BulkChunk([item(name, operation) for name in names])


INDEX = "news-v0001"


class Cluster:
    """Answers bulk requests as the test says, and keeps them: what is said of a request is taken from ``faults``.

    A fault is a function of the answer that says that all was taken; what it gives is answered instead.
    """

    def __init__(self, *faults):
        self.sent = []
        self.transport = SimpleNamespace(hosts=[{"host": "127.0.0.1"}])
        self._faults = list(faults)

    def bulk(self, body, index, params):
        assert (index, params["pipeline"]) == (INDEX, "_none")
        operations = [tuple(line.split()) for line in body.decode().splitlines()]
        self.sent.append("".join(name for _, name in operations))
        answer = {"items": [{what: {"_id": name, "status": 201, "result": "created"}} for what, name in operations]}
        return self._faults.pop(0)(answer) if self._faults else answer


def but(place, status, kind=None, **more):
    """A fault: the answer with another status for one document, and an error where a type is given."""
    error = {} if kind is None else {"error": {"type": kind, "reason": "why", **more}}

    def change(answer):
        (told,) = answer["items"][place].values()
        told |= {"status": status, **(error or more)}
        return answer

    return change


def courier(cluster, settle, patience=None, stopping=None, doubtful=0):
    return ChunkSender(
        cluster, "news-v0001", settle, patience or RetryBudget(60), stopping or threading.Event(), doubtful
    )


@contextmanager
def opened(cluster, **options):
    """A writer to a cluster, what becomes of its items, and what sends them."""
    settled, stopping = [], threading.Event()
    carrying = courier(cluster, settled.extend, stopping=stopping, **options)
    with BulkWriter(carrying.deliver, stopping) as stream:
        yield stream, settled, carrying
        stream.drain()


def written(cluster, *items, **options):
    """What became of items, of one if none is given: id -> outcome."""
    items = items or (item("a"),)
    with opened(cluster, **options) as (stream, settled, _):
        for one in items:
            stream.send(one)
    assert len(settled) == len({outcome.item.id for outcome in settled}) == len(items)
    return {outcome.item.id: outcome for outcome in settled}


def gathered(items, **limits):
    chunker = Chunker(**limits)
    chunks = [chunk for item in items if (chunk := chunker.add(item)) is not None]
    return chunks + [chunk for chunk in [chunker.take()] if chunk is not None]


@given(OPERATIONS)
def test_all_come_through_in_order_within_the_limits(operations):
    items = [BulkAction(n, name, op, b"x" * size, b"") for n, (name, op, size) in enumerate(operations)]
    chunks = gathered(items, count=4, size=50)
    assert [item for chunk in chunks for item in chunk.items] == items
    for chunk in chunks:
        assert 1 <= len(chunk) <= 4
        assert len(chunk.body) <= 50
        for name in chunk.ordered:
            assert [item.id for item in chunk.items].count(name) == 1


def test_an_item_beyond_the_size_is_a_chunk_of_its_own():
    items = [BulkAction(n, str(n), "index", b"x" * size, b"") for n, size in enumerate((10, 500, 10))]
    assert [len(chunk.body) for chunk in gathered(items, size=50)] == [10, 500, 10]


def test_nothing_gathered_is_no_chunk():
    assert Chunker().take() is None


def test_a_request_that_is_too_large_is_sent_in_halves():
    class Small(Cluster):
        def bulk(self, body, **where):
            answer = super().bulk(body, **where)
            if len(answer["items"]) > 3:
                raise TransportError(413, "too large", {})
            return answer

    small = Small()
    with opened(small) as (stream, settled, _):
        for names in ("abcde", "fghij"):
            for name in names:
                stream.send(item(name))
            stream.drain()
    assert sorted((outcome.item.id, outcome.state) for outcome in settled) == [(name, "done") for name in "abcdefghij"]
    # What is larger than half of what was refused is not tried again.
    assert small.sent == ["abcde", "ab", "cde", "fg", "h", "ij"]


def test_each_document_goes_its_own_way():
    def mixed(answer):
        return but(1, 429, "es_rejected_execution_exception")(but(2, 400, "mapper_parsing_exception")(answer))

    cluster = Cluster(mixed)
    with opened(cluster) as (stream, settled, chunk_sender):
        for name in "abc":
            stream.send(item(name))
        stream.drain()
        assert (chunk_sender.retries, chunk_sender.limit.at_once) == (1, 2)
    assert [(one.item.id, one.state, one.type, one.reason) for one in settled] == [
        ("a", "done", "", ""),
        ("c", "dead", "mapper_parsing_exception", "why"),
        ("b", "done", "", ""),
    ]
    assert cluster.sent == ["abc", "b"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "es_rejected_execution_exception"),
        (429, "circuit_breaking_exception"),
        (503, "unavailable_shards_exception"),
        (500, "node_disconnected"),
        (403, "cluster_block_exception"),
        (429, "cluster_block_exception"),
    ],
)
def test_what_says_nothing_against_a_document_is_sent_again(status, kind):
    cluster = Cluster(but(0, status, kind))
    assert written(cluster)["a"].state == "done"
    assert cluster.sent == ["a", "a"]


@pytest.mark.parametrize(("status", "at_once"), [(429, 2), (503, 2), (500, 3)])
def test_fewer_requests_are_sent_at_once_where_the_cluster_has_too_much_to_do(status, at_once):
    with opened(Cluster(but(0, status, "some_exception"))) as (stream, _, chunk_sender):
        for name in "abc":
            stream.send(item(name))
            stream.drain()
        # Three were taken after the fault.
        assert chunk_sender.limit.at_once == at_once


def test_a_cluster_that_takes_nothing_is_given_up_with_its_last_words():
    with (
        pytest.raises(ClusterError) as given_up,
        opened(Cluster(but(0, 429, "busy")), patience=RetryBudget(0)) as (stream, _, _),
    ):
        stream.send(item("a"))
    assert str(given_up.value) == "The cluster has accepted no documents for 0 seconds (last: why)."


@pytest.mark.parametrize(
    ("status", "kind", "why"),
    [
        (403, "security_exception", "why"),
        (401, "security_exception", "why"),
        (400, "index_closed_exception", "the index is closed; open it"),
    ],
)
def test_what_stands_against_every_document_ends_the_load(status, kind, why):
    cluster = Cluster(but(0, status, kind))
    with pytest.raises(ClusterError) as refused, opened(cluster) as (stream, settled, _):
        stream.send(item("a"))
    assert str(refused.value) == f"The cluster no longer accepts documents: {why}."
    assert (cluster.sent, settled) == (["a"], [])


def test_a_later_version_on_the_server_supersedes():
    assert written(Cluster(but(0, 409, "version_conflict_engine_exception")))["a"].state == "superseded"


def test_deleting_what_is_not_there_is_done():
    gone = written(Cluster(but(0, 404, result="not_found")), item("a", "delete"))["a"]
    assert (gone.state, gone.result) == ("done", "not_found")


def test_a_breakers_400_is_no_bad_document():
    breaker = {"type": "knn_circuit_breaker_exception", "reason": "The breaker is open"}
    cluster = Cluster(but(0, 400, "mapper_parsing_exception", caused_by=breaker))
    assert written(cluster)["a"].state == "done"
    assert cluster.sent == ["a", "a"]
    # What a bad document holds is shown by the server, too.
    shown = {"type": "number_format_exception", "reason": "Preview of field's value: 'circuit breaker'"}
    assert written(Cluster(but(0, 400, "mapper_parsing_exception", caused_by=shown)))["a"].state == "dead"


@pytest.mark.parametrize(("doubtful", "result"), [(1, "resent"), (0, "updated")])
def test_what_an_earlier_run_sent_may_have_been_written_by_it(doubtful, result):
    outcomes = written(Cluster(but(0, 200, result="updated")), item("a"), item("b", line=2), doubtful=doubtful)
    assert [outcome.result for outcome in outcomes.values()] == [result, "created"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda told: {"items": told["items"][:2]},
        lambda told: {"items": told["items"] * 2},
        lambda told: {"items": told["items"][::-1]},
        lambda told: {"items": [{"delete": one["index"]} for one in told["items"]]},
        but(0, "201"),
        lambda _: {"items": [None, None, None]},
        lambda _: {"items": None},
        lambda _: {},
        lambda _: [],
        lambda _: "text",
        lambda _: None,
    ],
)
def test_after_an_answer_that_is_not_to_this_request_it_is_sent_again(broken):
    cluster = Cluster(broken, but(0, 200, result="updated"))
    # Nobody knows what the first one wrote.
    assert [outcome.result for outcome in written(cluster, *map(item, "abc")).values()] == [
        "resent", "created", "created"
    ]  # fmt: skip
    assert cluster.sent == ["abc", "abc"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            {"type": "t", "reason": "failed.", "caused_by": {"reason": "x", "caused_by": {"reason": "the  root."}}},
            "failed. (x: the root.)",
        ),
        (
            {
                "reason": "no",
                "caused_by": {"reason": "too large\n at [Source: REDACTED (`X` disabled); line: 1, column: 9]"},
            },
            "no (too large)",
        ),
        ({"type": "t"}, "t"),
        ({"reason": "it broke: why", "caused_by": {"reason": "why"}}, "it broke: why"),
    ],
)
def test_an_error_in_words(error, reason):
    assert written(Cluster(but(0, 400, error=error)))["a"].reason == reason


def through(limit, times=1):
    for _ in range(times):
        with limit.request() as turn:
            turn.accepted = True


def overload(limit):
    with limit.request() as turn:
        turn.overloaded = True


def test_it_grows_by_one_a_round_up_to_the_most():
    limit = AdaptiveLimit(4)
    assert limit.at_once == 2
    through(limit, 2 + 1)
    assert limit.at_once == 3
    through(limit, 100)
    assert limit.at_once == 4


def test_overload_halves_it_down_to_one_and_it_recovers():
    limit = AdaptiveLimit(8)
    through(limit, 100)
    overload(limit)
    assert limit.at_once == 4
    for _ in range(9):
        overload(limit)
    assert limit.at_once == 1
    through(limit, 100)
    assert limit.at_once == 8


def test_requests_that_were_under_way_together_halve_it_once():
    limit = AdaptiveLimit(8)
    through(limit, 100)
    with limit.request() as first, limit.request() as second:
        first.overloaded = second.overloaded = True
    assert limit.at_once == 4


def test_what_was_neither_taken_nor_too_much_changes_nothing():
    limit = AdaptiveLimit(8)
    with limit.request():
        pass
    with pytest.raises(ValueError, match="lost"), limit.request():
        raise ValueError("lost")
    assert limit.at_once == 2


def test_never_more_at_once_than_the_limit_says():
    limit, seen, lock, under_way = AdaptiveLimit(3), [], threading.Lock(), set()

    def work(number):
        for _ in range(50):
            with limit.request() as turn:
                with lock:
                    under_way.add(number)
                    seen.append(len(under_way))
                turn.accepted = True
                with lock:
                    under_way.discard(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(seen) <= 3
    assert limit.seconds > 0


class Gate:
    """A delivery that waits to be let through, and keeps account."""

    def __init__(self):
        self.open, self.begun, self.done = threading.Event(), [], []
        self.lock = threading.Condition()

    def __call__(self, some):
        with self.lock:
            self.begun.append(some)
            self.lock.notify_all()
        assert self.open.wait(30)
        with self.lock:
            self.done.append(some)

    def wait_for(self, count):
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.begun) >= count, 30)


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_everything_is_delivered_before_the_block_ends():
    done = []
    with BulkWriter(done.append, threading.Event()) as sender:
        for n in range(100):
            sender.submit(chunk(str(n)))
        sender.drain()
        assert sender.idle
    assert sorted(int(one.items[0].id) for one in done) == list(range(100))


def test_who_submits_waits_when_enough_is_waiting():
    gate = Gate()
    with BulkWriter(gate, threading.Event()) as sender:
        submitted = []

        def submit():
            for n in range(20):
                sender.submit(chunk(str(n)))
                submitted.append(n)

        thread = in_thread(submit)
        gate.wait_for(8)
        thread.join(0.3)
        assert thread.is_alive()
        # Eight under way, two waiting, and one that is being handed over.
        assert len(submitted) <= 10
        assert not sender.idle
        gate.open.set()
        thread.join()
        sender.drain()
    assert len(gate.done) == 20


@pytest.mark.parametrize(("first", "second"), [*product(("index", "delete", "update"), repeat=2)][1:])
def test_a_delete_or_an_update_and_another_operation_on_its_document_are_never_under_way_together(first, second):
    gate = Gate()
    with BulkWriter(gate, threading.Event()) as sender:
        sender.submit(chunk("a", "b", operation=first))
        gate.wait_for(1)
        sender.submit(chunk("c", operation=second))
        thread = in_thread(lambda: sender.submit(chunk("b", operation=second)))
        gate.wait_for(2)
        thread.join(0.2)
        assert thread.is_alive()
        assert len(gate.begun) == 2
        gate.open.set()
        thread.join()
        sender.drain()
    assert len(gate.done) == 3


def test_two_writes_of_a_document_may_be_under_way_together():
    gate = Gate()
    with BulkWriter(gate, threading.Event()) as sender:
        sender.submit(chunk("a"))
        sender.submit(chunk("a"))
        gate.wait_for(2)
        gate.open.set()


def test_an_error_is_raised_by_the_next_call_and_stops_the_others():
    stopping = threading.Event()

    def fail(some):
        raise ValueError(some.items[0].id)

    def run():
        with BulkWriter(fail, stopping) as sender:
            for n in range(100):
                sender.submit(chunk(str(n)))
            sender.drain()

    with pytest.raises(ValueError, match=r"^\d$"):
        run()
    assert stopping.is_set()


def test_leaving_by_an_error_waits_for_what_is_under_way_and_drops_what_waits():
    gate, stopping = Gate(), threading.Event()

    def run():
        with BulkWriter(gate, stopping) as sender:
            sender.submit(chunk("a"))
            gate.wait_for(1)
            threading.Timer(0.2, gate.open.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert (len(gate.begun), len(gate.done)) == (1, 1)
    assert stopping.is_set()


def test_stopped_is_no_error():
    def stop(_):
        raise Stopped

    with BulkWriter(stop, threading.Event()) as sender:
        sender.submit(chunk("a"))
        sender.drain()


def test_after_a_stop_nothing_is_sent_that_only_waited_for_its_turn():
    """Ctrl-C before a cluster that answers slowly: what is under way is waited for, and no more."""
    under_way, open_, stopping, settled = threading.Semaphore(0), threading.Event(), threading.Event(), []

    def slow(answer):
        under_way.release()
        assert open_.wait(30)
        return answer

    some = courier(Cluster(*[slow] * 5), settled.extend, stopping=stopping)
    stopped = []

    def deliver(name):
        try:
            some.deliver(chunk(name))
        except Stopped:
            stopped.append(name)

    threads = [threading.Thread(target=deliver, args=(name,)) for name in "abcde"]
    for thread in threads:
        thread.start()
    for _ in range(some.limit.at_once):
        assert under_way.acquire(timeout=30)
    stopping.set()
    open_.set()
    for thread in threads:
        thread.join(30)
    assert (len(settled), len(stopped)) == (2, 3)


def test_patience_that_ends_just_as_another_request_is_taken_goes_on():
    class Renewed(RetryBudget):
        """Over when it is first asked, and then renewed by another thread."""

        asked = 0

        @property
        def over(self):
            self.asked += 1
            return self.asked == 1

    def reset(_):
        raise UnreachableError("N/A", "reset", OSError("reset"))

    cluster, settled = Cluster(reset), []
    courier(cluster, settled.extend, Renewed(60)).deliver(chunk("a"))
    assert cluster.sent == ["a", "a"]
    assert [(one.item.id, one.state) for one in settled] == [("a", "done")]

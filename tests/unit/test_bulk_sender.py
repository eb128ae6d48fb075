"""Sending in the background: bounded, in order where order matters, and never silent about an error."""

import threading

import pytest

from langshift.ingest.bulk.item import Chunk, Item
from langshift.ingest.bulk.sender import Sender
from langshift.ingest.bulk.trouble import Stopped


def chunk(*names, operation="index"):
    return Chunk([Item(1, name, operation, b"x", b"") for name in names])


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
    with Sender(done.append, threading.Event()) as sender:
        for n in range(100):
            sender.submit(chunk(str(n)))
        sender.drain()
        assert sender.idle
    assert sorted(int(one.items[0].id) for one in done) == list(range(100))


def test_who_submits_waits_when_enough_is_waiting():
    gate = Gate()
    with Sender(gate, threading.Event()) as sender:
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


@pytest.mark.parametrize(("first", "second"), [("index", "delete"), ("delete", "index"), ("delete", "delete")])
def test_a_delete_and_another_operation_on_its_document_are_never_under_way_together(first, second):
    gate = Gate()
    with Sender(gate, threading.Event()) as sender:
        sender.submit(chunk("a", "b", operation=first))
        gate.wait_for(1)
        sender.submit(chunk("c", operation=second))
        thread = in_thread(lambda: sender.submit(chunk("b", operation=second)))
        gate.wait_for(2)
        thread.join(0.2)
        assert len(gate.begun) == 2
        gate.open.set()
        thread.join()
        sender.drain()
    assert len(gate.done) == 3


def test_two_writes_of_a_document_may_be_under_way_together():
    gate = Gate()
    with Sender(gate, threading.Event()) as sender:
        sender.submit(chunk("a"))
        sender.submit(chunk("a"))
        gate.wait_for(2)
        gate.open.set()


def test_an_error_is_raised_by_the_next_call_and_stops_the_others():
    stopping = threading.Event()

    def fail(some):
        raise ValueError(some.items[0].id)

    def run():
        with Sender(fail, stopping) as sender:
            for n in range(100):
                sender.submit(chunk(str(n)))
            sender.drain()

    with pytest.raises(ValueError, match=r"^\d$"):
        run()
    assert stopping.is_set()


def test_leaving_by_an_error_waits_for_what_is_under_way_and_drops_what_waits():
    gate, stopping = Gate(), threading.Event()

    def run():
        with Sender(gate, stopping) as sender:
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

    with Sender(stop, threading.Event()) as sender:
        sender.submit(chunk("a"))
        sender.drain()

"""Delivering chunks where threads come between each other; tests/cluster has the faults of the cluster itself."""

import threading
from types import SimpleNamespace

import pytest
from opensearchpy.exceptions import ConnectionError as UnreachableError
from opensearchpy.exceptions import SSLError

from langshift.errors import ClusterError
from langshift.ingest.bulk.delivery import Courier
from langshift.ingest.bulk.item import Chunk, Item
from langshift.ingest.bulk.trouble import Stopped
from langshift.patience import Patience
from langshift.trouble import Again, meaning


def chunk(name="a"):
    return Chunk([Item(1, name, "index", name.encode(), b"{}")])


def courier(bulk, settle, patience, stopping):
    transport = SimpleNamespace(hosts=[{"host": "127.0.0.1"}])
    return Courier(SimpleNamespace(bulk=bulk, transport=transport), {}, settle, patience, stopping)


def taken(body, **_):
    return {"items": [{"index": {"_id": body.decode(), "status": 201, "result": "created"}}]}


def test_after_a_stop_nothing_is_sent_that_only_waited_for_its_turn():
    """Ctrl-C before a cluster that answers slowly: what is under way is waited for, and no more."""
    under_way, open_, stopping, settled = threading.Semaphore(0), threading.Event(), threading.Event(), []

    def slow(body, **_):
        under_way.release()
        assert open_.wait(30)
        return taken(body)

    some = courier(slow, settled.extend, Patience(60), stopping)
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
    class Renewed(Patience):
        """Over when it is first asked, and then renewed by another thread."""

        asked = 0

        @property
        def over(self):
            self.asked += 1
            return self.asked == 1

    sent, settled = [], []

    def bulk(body, **_):
        sent.append(body)
        if len(sent) == 1:
            raise UnreachableError("N/A", "reset", OSError("reset"))
        return taken(body)

    courier(bulk, settled.extend, Renewed(60), threading.Event()).deliver(chunk())
    assert sent == [b"a", b"a"]
    assert [(one.item.id, one.state) for one in settled] == [("a", "done")]


def test_a_tls_connection_that_breaks_off_is_trouble_that_passes():
    broken = SSLError("N/A", "EOF occurred in violation of protocol", OSError("EOF occurred in violation of protocol"))
    found = meaning(broken, "https://127.0.0.1:9200")
    assert isinstance(found, Again)
    assert (str(found), found.lost) == ("the connection broke off", True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            SSLError("N/A", "", OSError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired")),
            "The cluster at https://127.0.0.1:9200 shows a certificate that has expired: renew it on the cluster, or "
            "switch verification off with OPENSEARCH_SSL_VERIFY=false.",
        ),
        (
            UnreachableError("N/A", "", RuntimeError("Credentials were refreshed, but they are still expired.")),
            "The AWS credentials cannot be had (what came is expired or unreadable): check AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, the profile or the role.",
        ),
    ],
    ids=["certificate", "credentials"],
)
def test_what_no_waiting_mends_ends_a_load(error, message):
    found = meaning(error, "https://127.0.0.1:9200")
    assert isinstance(found, ClusterError)
    assert str(found) == message


def test_an_error_of_an_event_loop_is_none_of_credentials():
    error = meaning(UnreachableError("N/A", "", RuntimeError("Event loop is closed")), "http://127.0.0.1:9200")
    assert isinstance(error, Again)

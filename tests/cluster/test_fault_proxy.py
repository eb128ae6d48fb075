"""The fault proxy of the tests: what it is asked to do really happens, and nothing else."""

import http.client
import json
import socket
import threading
from itertools import repeat

import pytest
import server_words
from fault_proxy import fault_proxy
from faults import (
    Breaker,
    at_most,
    broken_off,
    cut_after,
    cut_before,
    cut_midway,
    delayed,
    page,
    poisoned,
    refusing,
    whole,
    with_items,
)
from opensearchpy.exceptions import ConnectionError as BrokenOff
from opensearchpy.exceptions import TransportError
from urllib3.util import make_headers

from langshift.client import make_client
from langshift.response_checks import WrongAnswer
from langshift.settings import Settings


def body(*ids):
    lines = [line for one in ids for line in ({"index": {"_id": one}}, {"n": one})]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def write(through, index, *ids):
    # Who asks for parts of an answer is given whatever comes.
    return through.bulk(body=body(*ids), index=index, params={"filter_path": "items,errors"})


def stored(client, index):
    client.indices.refresh(index=index)
    return {hit["_id"] for hit in client.search(index=index, size=100)["hits"]["hits"]}


def told(answer):
    return [(item["index"]["_id"], item["index"]["status"]) for item in answer["items"]]


def test_without_a_fault_everything_passes_and_bulks_are_recorded(client, proxy, through, index_name):
    assert through.info() == client.info()
    assert not through.indices.exists(index=index_name)
    assert told(write(through, index_name, "a", "b")) == [("a", 201), ("b", 201)]
    through.delete(index=index_name, id="b")
    assert stored(client, index_name) == {"a"}
    (seen,) = proxy.bulks
    assert (seen.ids, seen.size, seen.under_way, seen.status) == (["a", "b"], len(body("a", "b")), 1, 200)


def test_a_body_in_chunks_arrives_whole_on_a_connection_that_is_kept(client, proxy, index_name):
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"))
    for parts in ([body("a"), body("b")], [body("c")]):
        connection.request(
            "POST",
            f"/{index_name}/_bulk",
            body=iter(parts),
            headers={"content-type": "application/x-ndjson", **_authorization()},
            encode_chunked=True,
        )
        assert connection.getresponse().read().startswith(b'{"took":')
    connection.close()
    assert stored(client, index_name) == {"a", "b", "c"}


def _authorization():
    settings = Settings.from_env()
    return make_headers(basic_auth=f"{settings.username}:{settings.password}") if settings.username else {}


def test_cut_before_the_server_saw_it(client, proxy, through, index_name):
    client.indices.create(index=index_name)
    proxy.inject("_bulk", [cut_before])
    with pytest.raises(BrokenOff):
        write(through, index_name, "a")
    assert stored(client, index_name) == set()
    write(through, index_name, "b")
    assert stored(client, index_name) == {"b"}
    assert [bulk.status for bulk in proxy.bulks] == [None, 200]


@pytest.mark.parametrize(
    ("fault", "error"), [(cut_after, BrokenOff), (cut_midway, BrokenOff), (broken_off, WrongAnswer)]
)
def test_cut_after_the_server_did_it(client, proxy, through, index_name, fault, error):
    proxy.inject("_bulk", [fault])
    with pytest.raises(error):
        write(through, index_name, "a")
    assert stored(client, index_name) == {"a"}


def test_an_answer_with_other_items(client, proxy, through, index_name):
    changes = [lambda items: items[:-1], lambda items: [*items, items[0]], lambda items: items[::-1]]
    proxy.inject("_bulk", map(with_items, changes))
    answers = [[one for one, _ in told(write(through, index_name, "a", "b"))] for _ in changes]
    assert answers == [["a"], ["a", "b", "a"], ["b", "a"]]
    assert stored(client, index_name) == {"a", "b"}


def test_refused_items_never_reach_the_server_and_the_others_do(client, proxy, through, index_name):
    words = {"a": server_words.rejected, "c": server_words.unparsable, "d": server_words.unavailable}
    proxy.inject("_bulk", [refusing(lambda operation: words.get(operation.id))])
    answer = write(through, index_name, "a", "b", "c", "d", "e")
    assert told(answer) == [("a", 429), ("b", 201), ("c", 400), ("d", 503), ("e", 201)]
    assert answer["errors"]
    assert answer["items"][2]["index"]["error"]["reason"].startswith(
        "failed to parse field [year] of type [integer] in"
    )
    assert stored(client, index_name) == {"b", "e"}


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        (whole(server_words.pressed()), 429, "rejected_execution_exception"),
        (whole(server_words.not_recovered()), 503, "cluster_block_exception"),
        (page(502), 502, "502 Bad Gateway"),
    ],
)
def test_a_whole_request_is_refused(client, proxy, through, index_name, fault, status, said):
    client.indices.create(index=index_name)
    proxy.inject("_bulk", [fault])
    with pytest.raises(TransportError) as refused:
        write(through, index_name, "a")
    assert refused.value.status_code == status
    assert said in str(refused.value)
    assert stored(client, index_name) == set()


def test_too_large_and_poisoned_bodies_are_refused_and_others_pass(client, proxy, through, index_name):
    proxy.inject("_bulk", [at_most(len(body("a"))), at_most(len(body("a"))), poisoned(b'"p"'), poisoned(b'"p"')])
    answers = []
    for ids in (["a", "b"], ["a"], ["c", "p"], ["c"]):
        try:
            answers.append(told(write(through, index_name, *ids)))
        except TransportError as error:
            answers.append(error.status_code)
    assert answers == [413, [("a", 201)], 400, [("c", 201)]]
    assert stored(client, index_name) == {"a", "c"}


def test_the_memory_breaker_refuses_some_requests(proxy, through, index_name):
    breaker = Breaker(server_words.broken, requests=2)
    proxy.inject("_bulk", repeat(breaker.bulk))
    statuses = [status for _ in range(3) for status in told(write(through, index_name, "a"))]
    assert statuses == [("a", 400), ("a", 400), ("a", 201)]
    assert breaker.refused == 2


def test_requests_under_way_at_once_are_counted(proxy, through, index_name):
    proxy.inject("_bulk", repeat(delayed(0.5)))
    threads = [threading.Thread(target=write, args=(through, index_name, str(n))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bulk.under_way for bulk in proxy.bulks) == [1, 2, 3, 4]


def test_a_server_that_is_gone_is_a_cut_connection():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    with fault_proxy(nobody) as proxy, pytest.raises(BrokenOff):
        ask(proxy)


def test_a_mistake_in_a_fault_fails_the_test(cluster_url):
    async def mistake(_exchange):
        raise ZeroDivisionError

    def run():
        with fault_proxy(cluster_url) as proxy:
            proxy.inject("/", [mistake])
            with pytest.raises(BrokenOff):
                ask(proxy)

    with pytest.raises(ZeroDivisionError):
        run()


def ask(proxy):
    with make_client(Settings.from_env(), proxy.url, retries=0) as through:
        return through.info()

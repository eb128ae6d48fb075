"""What the fault proxy says in the server's place is what the server says."""

from itertools import repeat

import pytest
import server_words
from faults import refusing_all, whole
from opensearchpy.exceptions import NotFoundError, RequestError

BODY = b'{"index": {"_id": "a"}}\n{"n": 1}\n'


def test_refused_words_are_those_of_the_server(client, proxy, through, index_name):
    client.indices.create(index=index_name, body={"mappings": {"properties": {"year": {"type": "integer"}}}})
    bad = b'{"index": {"_id": "x"}}\n{"year": "soon"}\n'
    real = client.bulk(body=bad, index=index_name)["items"]
    proxy.inject("_bulk", [refusing_all(server_words.unparsable)])
    assert through.bulk(body=bad, index=index_name)["items"] == real


def test_the_words_for_a_whole_request_are_those_of_the_server(client, proxy, through, index_name):
    proxy.inject("_bulk", [whole(server_words.malformed())])
    answers = []
    for one, sent in ((client, b'"nothing"\n'), (through, BODY)):
        with pytest.raises(RequestError) as refused:
            one.bulk(body=sent, index=index_name)
        answers.append(refused.value.info)
    assert answers[0] == answers[1]


@pytest.mark.usefixtures("unwatched_disk")
def test_the_words_of_a_flooded_disk_are_those_of_the_server(client, proxy, through, index_name):
    client.indices.create(index=index_name, body={"settings": {"blocks.read_only_allow_delete": True}})
    real = client.bulk(body=BODY, index=index_name)["items"]
    proxy.inject("_bulk", [refusing_all(server_words.flooded)])
    shown = through.bulk(body=BODY, index=index_name)["items"]
    client.indices.put_settings(index=index_name, body={"index.blocks.read_only_allow_delete": None})
    assert shown == real


def test_the_words_for_an_index_that_is_not_there_are_those_of_the_server(client, proxy, through, index_name):
    proxy.inject("/", repeat(whole(server_words.unknown(index_name))))
    answers = []
    for one in (client, through):
        with pytest.raises(NotFoundError) as raised:
            one.indices.get_settings(index=index_name)
        answers.append(raised.value.info)
    assert answers[0] == answers[1]


def test_the_words_for_an_index_that_a_write_may_not_make_are_those_of_the_server(client, proxy, through, index_name):
    name = "action.auto_create_index"
    client.cluster.put_settings(body={"transient": {name: f"-{index_name}*,+*"}})
    real = client.bulk(body=BODY, index=index_name)["items"]
    client.cluster.put_settings(body={"transient": {name: None}})
    error = real[0]["index"]["error"]
    # The server goes on with what forbids it, which is not the same everywhere.
    error["reason"], forbidding, _ = error["reason"].partition(f" and [{name}]")
    assert forbidding
    proxy.inject("_bulk", [refusing_all(server_words.unknown_target)])
    assert through.bulk(body=BODY, index=index_name)["items"] == real

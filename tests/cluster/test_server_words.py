"""What the fault proxy says in the server's place is what the server says."""

import pytest
import server_words
from faults import refusing_all, whole
from opensearchpy.exceptions import RequestError

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

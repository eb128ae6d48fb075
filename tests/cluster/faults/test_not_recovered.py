"""A cluster whose nodes were all away knows no index until its manager has read them from its disk: none is deleted."""

import asyncio
import json
from dataclasses import replace
from itertools import repeat

import pytest
from faults import Recovering, at_first, refusing_all, whole
from http_exchange import Reply
from nothing_lost import write_corpus
from opensearchpy.exceptions import NotFoundError, TransportError
from plain_index import PLAIN
from server_words import recovering, security_exception, unknown, unknown_target
from transferring import Meanwhile, behind, blocked, everything, index, moved, plan, unfinished

from langshift.client import make_async_client
from langshift.errors import ClusterError
from langshift.plugin import version_writer
from langshift.plugin.metadata import read_settings, uuid_of
from langshift.plugin.transfer.run import transfer
from langshift.plugin.versions import require_there
from langshift.settings import Settings

PATIENCE = 30


@pytest.fixture
def starting(proxy):
    """A server that is about to start anew."""
    server = Recovering()
    proxy.inject("/", repeat(server.any))
    return server


def test_a_load_that_ends_then_goes_live(load, starting, proxy):
    write_corpus(load.corpus, 20)

    async def bulk(exchange):
        reply = await exchange.forward()
        starting.begin()
        return reply

    proxy.clear()
    proxy.inject("_bulk", [bulk])
    proxy.inject("/", repeat(starting.any))
    done = load.run()
    assert load.accounted_for(done) == []
    assert starting.met == 3


def test_documents_of_an_index_that_a_node_does_not_know_yet_are_sent_again(load, proxy):
    write_corpus(load.corpus, 20)
    proxy.inject("_bulk", repeat(at_first(lambda _: unknown_target)))
    assert load.accounted_for(load.run()) == []
    assert sorted(load.sent()) == sorted(2 * [f"d{n}" for n in range(20)])


def test_documents_of_an_index_that_is_gone_end_the_load(client, load, proxy):
    write_corpus(load.corpus, 20)

    async def bulk(exchange):
        client.indices.delete(index=f"{load.index}-v0001", ignore_unavailable=True)
        return await refusing_all(unknown_target)(exchange)

    proxy.inject("_bulk", repeat(bulk))
    done = load.run()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"Error: The cluster no longer accepts documents: no such index [{load.index}-v0001]."
    )


@pytest.mark.parametrize("ended", [version_writer.reopen, version_writer.may_reopen], ids=["resumed", "begun anew"])
def test_a_load_that_was_cut_off_is_found_again(client, through, starting, index_name, ended):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    starting.begin()
    # A cluster that is not ready in time says so itself.
    with pytest.raises(TransportError, match="503"):
        ended(through, index_name, target.index, target.uuid)
    found = ended(through, index_name, target.index, target.uuid)
    assert found is True or (found.index, found.uuid, found.created) == (target.index, target.uuid, True)
    assert starting.met == 3


def test_a_version_that_is_live_is_not_discarded(client, through, starting, index_name):
    target = index(client, index_name, 3)
    starting.begin()
    with pytest.raises(TransportError, match="503"):
        version_writer.discard(through, target)
    version_writer.discard(through, target)
    assert behind(client, index_name) == [target.index]


def test_a_version_that_is_gone_in_truth_is_gone(client, through, starting, index_name):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    client.indices.delete(index=target.index)
    starting.begin()
    with pytest.raises(TransportError, match="503"):
        require_there(through, target)
    with pytest.raises(ClusterError) as refused:
        require_there(through, target)
    assert str(refused.value) == f"Index {target.index} was deleted while it was being written: run the command again."


@pytest.mark.parametrize("stage", ["copying", "blocked", "swapping"])
def test_a_retune_waits(client, through, starting, index_name, stage):
    old = index(client, index_name, 20)
    before = everything(client, old.index)
    watch = Meanwhile(**{stage: starting.begin})
    done = transfer(through, plan(client, index_name), watch=watch, patience=PATIENCE)
    assert starting.met == 3
    assert (done.index, behind(client, index_name)) == (f"{index_name}-v0002", [f"{index_name}-v0002"])
    assert everything(client, done.index) == moved(before)
    assert (unfinished(client, done.index), blocked(client, old.index)) == (None, True)


def test_a_task_that_did_not_know_an_index_or_the_script_is_begun_again(client, through, proxy, index_name):
    old = index(client, index_name, 20)
    before, way = everything(client, old.index), plan(client, index_name)
    target = f"{index_name}-v0002"
    script = {
        "type": "resource_not_found_exception",
        "reason": f"unable to find script [{way.transform.script}] in cluster state",
    }
    cause = unknown_target(type("Named", (), {"target": target})).error
    failures = [{"index": target, "id": "3", "cause": cause, "status": 404}]

    ends = [{"error": script}, {"response": {"failures": failures}}]

    async def ended(exchange):
        reply = await exchange.forward()
        # Others cancel it.
        if exchange.method != "GET" or not ends:
            return reply
        told = {"completed": True, "task": json.loads(reply.body)["task"], **ends.pop(0)}
        return replace(reply, body=json.dumps(told).encode())

    proxy.inject("/_tasks/", repeat(ended))
    done = transfer(through, way, watch=Meanwhile(), patience=PATIENCE)
    assert ends == []
    assert everything(client, done.index) == moved(before)


def test_a_node_that_learns_of_an_index_late_is_asked_again(client, through, proxy, index_name):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    late = whole(unknown(target.index))
    proxy.inject("/_settings", [late, late])
    assert read_settings(through, target.index)["uuid"] == target.uuid
    proxy.inject("/_settings", repeat(late))
    with pytest.raises(TransportError) as raised:
        read_settings(through, target.index)
    assert (raised.value.status_code, raised.value.info["error"]["reason"]) == (
        503,
        f"index {target.index} exists, but the node that answered does not know it yet",
    )


def test_who_may_not_ask_has_the_first_answer(through, proxy, index_name):
    async def forbidden(_):
        return Reply(403, json.dumps(security_exception("indices:admin/get")).encode())

    proxy.inject("ignore_unavailable", [forbidden])
    assert uuid_of(through, f"{index_name}-v0001") == ""


def test_the_asynchronous_client_does_the_same(client, proxy, index_name):
    target = index(client, index_name, 1)

    async def ask():
        async with make_async_client(Settings.from_env(), proxy.url) as opened:
            found = await opened.indices.get(index=index_name)
            proxy.inject("ignore_unavailable", [whole(recovering())] * 3)
            proxy.inject("/", repeat(whole(unknown(index_name))))
            with pytest.raises(TransportError, match="503"):
                await opened.indices.get(index=index_name)
            proxy.clear()
            with pytest.raises(NotFoundError):
                await opened.indices.get(index=f"{index_name}-v0007")
            return found

    proxy.inject(f"/{index_name}", [whole(unknown(index_name))])
    assert list(asyncio.run(ask())) == [target.index]

"""Lines that reach the server twice, documents that are too large for it, and a server that names another address."""

import asyncio
import json
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat

import pytest
from command_line import langshift
from fault_proxy import passed
from faults import cut_after, cut_before
from http_exchange import Reply
from model_http import serving
from nothing_lost import write_corpus

from langshift.client import make_async_client
from langshift.response_checks import Redirected
from langshift.settings import Settings


async def twice(exchange):
    """A proxy that has not got the first answer delivers again by itself."""
    await exchange.forward()
    return await exchange.forward()


def write_changes(load):
    """30 documents, one of them replaced, one deleted, one deleted and made again, and one delete of none."""
    write_corpus(load.corpus, 30)
    lines = load.corpus.read_text().splitlines()
    lines += [json.dumps({"_op": "delete", "_id": name}) for name in ("d7", "d8")]
    # After the deletes, which wait for all before them: of two in one request the first would be superseded the second
    # time, and is said to be.
    lines += [lines[5].replace("Document 5.", "Newer."), lines[8], json.dumps({"_op": "delete", "_id": "never"})]
    load.corpus.write_text("\n".join(lines) + "\n")


COUNTED = "29 documents on the server, checked, 1 replaced an earlier one with the same _id, 2 deleted, 1 delete of a "


@pytest.mark.parametrize("fault", [passed, twice, cut_after, None])
def test_lines_that_are_delivered_again_are_counted_for_what_they_did_the_first_time(load, fault):
    write_changes(load)
    if fault is None:
        # Everything is written, and then the load is broken off: the next run sends nothing again, and counts the same.
        load.proxy.inject("_bulk", [cut_after, twice])
        load.proxy.inject("_mget", repeat(cut_before))
        assert load.run("--patience", "0.5").returncode == 1
        load.proxy.clear()
        done = load.run("--resume")
    else:
        load.proxy.inject("_bulk", [fault] * 3 if fault is cut_after else repeat(fault))
        done = load.run()
    assert done.returncode == 0, done
    told = f"All 35 lines of {load.corpus} are accounted for: {COUNTED}document that was not there."
    assert done.stdout.splitlines()[-1] == told


def test_what_a_lost_answer_leaves_unknown_in_an_index_with_documents_is_said(load):
    write_corpus(load.corpus, 20)
    assert load.run().returncode == 0
    load.proxy.inject("_bulk", [cut_after])
    done = load.run("--if-exists", "append")
    assert done.stdout.splitlines()[-1].endswith(
        "20 documents on the server, checked, 20 sent again after a lost answer, so whether they replaced one is not "
        "known."
    )


LIMIT = 100_000


async def limit(exchange):
    """The nodes' answer, with a limit that a test need not send 100 MB for."""
    reply = await exchange.forward()
    said = json.loads(reply.body)
    for node in said["nodes"].values():
        assert node["http"]["max_content_length_in_bytes"] >= 10 << 20
        node["http"]["max_content_length_in_bytes"] = LIMIT
    return replace(reply, body=json.dumps(said).encode())


def too_large(answer):
    async def fault(exchange):
        return await (answer if len(exchange.body) > LIMIT else passed)(exchange)

    return fault


async def nothing_with_413(_exchange):
    """As OpenSearch 3.6 says it: no body."""
    return Reply(413, b"", "text/plain")


@pytest.mark.parametrize("answer", [nothing_with_413, cut_before])
def test_a_document_over_the_servers_limit_is_a_dead_letter_that_says_so(load, answer):
    """Just over it, and far over it, where the server closes the connection while it is sent."""
    write_corpus(load.corpus, 20)
    lines = load.corpus.read_text().splitlines()
    for number, size in ((3, LIMIT + 1000), (9, 6 * LIMIT)):
        lines[number] = json.dumps({**json.loads(lines[number]), "text": "x " * (size // 2)})
    load.corpus.write_text("\n".join(lines))
    load.proxy.inject("_bulk", repeat(too_large(answer)))
    load.proxy.inject("_nodes/http", repeat(limit))
    letters = load.accounted_for(load.run())
    # What is cut off could be anything, but for a document that is far larger than others.
    assert [(letter["line"], letter["type"]) for letter in letters] == [(4, "too_large"), (10, "too_large")]
    for letter in letters:
        assert letter["reason"].startswith("the document is a request of ")
        assert letter["reason"].endswith(f" bytes, more than the {LIMIT:,} of the server's http.max_content_length")


@contextmanager
def recording(status, headers):
    """A web server that answers every request the same, and the requests that it got."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            asked.append(f"{self.command} {self.path}")
            self.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_its_host_is_named(status, tmp_path):
    with ExitStack() as stack:
        target, reached = stack.enter_context(recording(200, {}))
        place = f"{target}/login?token=hidden".replace("//", "//anna:secret@")
        url, asked = stack.enter_context(recording(status, {"Location": place}))
        secret = {"OPENSEARCH_USERNAME": "anna", "OPENSEARCH_PASSWORD": "secret"}
        done = langshift("search", "news", "words", OPENSEARCH_URL=url, LANGSHIFT_HOME=tmp_path, **secret)
        sentence = (
            f"The server at {url} redirects ({status}) to {target}, and langshift follows no redirects: if that is the "
            f"cluster, set OPENSEARCH_URL to {target}."
        )
        assert done == (1, "", f"Error: {sentence}\n")

        async def ask():
            client = make_async_client(Settings.from_env({"OPENSEARCH_URL": url, **secret}), url)
            try:
                with pytest.raises(Redirected) as refused:
                    await client.search(index="news", body={})
                return str(refused.value)
            finally:
                await client.close()

        assert f"{asyncio.run(ask())}." == sentence
        assert (asked, reached) == (["GET /", "POST /news/_search"], [])

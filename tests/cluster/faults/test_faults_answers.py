"""Answers that are lost, mixed, wrong or misleading: whatever is answered, nothing is lost or doubled."""

import asyncio
import json
import os
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import repeat

import server_words
from command_line import LANGSHIFT
from faults import (
    at_first,
    broken_off,
    cut_after,
    cut_before,
    cut_midway,
    delayed,
    page,
    refusing_all,
    whole,
    with_items,
)
from http_exchange import Cut
from nothing_lost import write_corpus

COUNT = 3000


def often(load):
    """How often each document was sent."""
    return Counter(load.sent())


def test_fault_2_an_answer_that_is_lost_after_the_server_committed(load):
    write_corpus(load.corpus, COUNT)
    load.proxy.inject("_bulk", [cut_after, cut_midway, cut_before, cut_after])
    assert load.accounted_for(load.run()) == []
    assert [bulk.status for bulk in load.proxy.bulks].count(None) == 4
    assert often(load).keys() == {f"d{n}" for n in range(COUNT)}
    assert max(often(load).values()) > 1


def test_fault_2_an_old_chunk_that_is_sent_again_never_overwrites_what_is_newer(client, load):
    write_corpus(load.corpus, 5000)
    lines = load.corpus.read_text().splitlines()
    numbers = [0.25] * 16
    lines[2499] = json.dumps({"_id": "d5", "text": "Newer.", "language": "en", "embedding": numbers})
    lines[3999] = json.dumps({"_op": "delete", "_id": "d7"})
    lines[4499] = json.dumps({"_op": "delete", "_id": "d8"})
    lines[4999] = json.dumps({"_id": "d8", "text": "Back again.", "language": "en", "embedding": numbers})
    load.corpus.write_text("\n".join(lines))

    cut = []

    async def written(times):
        while sum("d5" in bulk.ids and bulk.status == 200 for bulk in load.proxy.bulks) < times:
            await asyncio.sleep(0.02)

    async def overtaken(exchange):
        """The older document is cut off once the newer one is written, and documents go only after they have come."""
        older, deletes = b"Newer." not in exchange.body and b'"d5"' in exchange.body, b'{"delete"' in exchange.body
        if deletes:
            await written(2)
        elif older and not cut:
            cut.append("older")
            await written(1)
            raise Cut
        reply = await exchange.forward()
        if deletes and len(cut) == 1:
            cut.append("answer")
            raise Cut
        return reply

    load.proxy.inject("_bulk", repeat(overtaken))
    done = load.run()
    assert load.accounted_for(done, deleted=2) == []
    assert done.stderr == (
        "1 line left out: the index has a later version of the document, from this corpus or elsewhere.\n"
    )
    found = client.mget(index=load.index, body={"ids": ["d5", "d7", "d8"]})["docs"]
    assert [one["found"] and one["_source"]["text"]["en"] for one in found] == ["Newer.", False, "Back again."]


def test_fault_3_whole_requests_refused_by_the_server_or_a_gateway_are_sent_again(load):
    write_corpus(load.corpus, 100)
    refusals = [page(502), page(503), whole(server_words.pressed()), whole(server_words.not_recovered())]
    load.proxy.inject("_bulk", refusals)
    assert load.accounted_for(load.run()) == []
    assert [bulk.status for bulk in load.proxy.bulks] == [502, 503, 429, 503, 200]
    assert set(often(load).values()) == {5}


MIXED = {0: server_words.unparsable, 1: server_words.rejected, 2: server_words.unavailable}


def test_fault_3_of_a_mixed_answer_only_what_may_succeed_is_sent_again(load):
    write_corpus(load.corpus, 1000)
    load.proxy.inject("_bulk", repeat(at_first(lambda operation: MIXED.get(int(operation.id[1:]) % 10))))
    letters = load.accounted_for(load.run())
    assert [letter["_id"] for letter in letters] == [f"d{n}" for n in range(0, 1000, 10)]
    assert {letter["type"] for letter in letters} == {"mapper_parsing_exception"}
    assert letters[1]["reason"] == (
        "failed to parse field [year] of type [integer] in document with id 'd10'. Preview of field's value: 'soon' "
        '(For input string: "soon")'
    )
    again = {f"d{n}" for n in range(1000) if n % 10 in (1, 2)}
    assert often(load) == {f"d{n}": 1 + (f"d{n}" in again) for n in range(1000)}


class Storm:
    """Too many requests, for a while from the first of them on."""

    def __init__(self, seconds, after):
        self.seconds, self._after = seconds, after
        self.begun = self.refused = 0

    def faults(self):
        """A slow server, so that requests meet there; then the storm; then a slow server again."""
        yield from repeat(delayed(0.2), self._after)
        self.begun = time.monotonic()
        while time.monotonic() < self.begun + self.seconds:
            self.refused += 1
            yield (whole(server_words.pressed()), refusing_all(server_words.rejected))[self.refused % 2]
        yield from repeat(delayed(0.1))


def test_fault_3_under_429s_fewer_requests_are_sent_at_once_and_more_again_later_and_reading_waits(load):
    """The corpus comes through a pipe, which shows how much of it is read while nothing can be written."""
    count, storm, taken = 25_000, Storm(3, after=4), []
    lines = write_corpus(load.corpus, count, 4).read_bytes()
    load.proxy.inject("_bulk", storm.faults())
    with subprocess.Popen(
        [LANGSHIFT, "ingest", "-", *load.arguments],
        env={**os.environ, **load.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:

        def write():
            with suppress(BrokenPipeError), process.stdin:
                for begin in range(0, len(lines), 1 << 12):
                    process.stdin.write(lines[begin : begin + (1 << 12)])
                    taken.append(time.monotonic())

        writer = threading.Thread(target=write)
        writer.start()
        told, noted = process.stdout.read().decode(), process.stderr.read().decode()
        writer.join()
    done = subprocess.CompletedProcess([], process.returncode, told, noted)
    assert load.accounted_for(done, "standard input") == []

    end = storm.begun + storm.seconds
    in_storm = [bulk for bulk in load.proxy.bulks if storm.begun <= bulk.at <= end]
    assert max(bulk.under_way for bulk in load.proxy.bulks if bulk.at < storm.begun) > 1
    assert {bulk.under_way for bulk in in_storm[-3:]} == {1}
    assert max(bulk.under_way for bulk in load.proxy.bulks if bulk.at > end) > 1
    # With backoff; in a loop without it there would be hundreds.
    assert 3 <= len(in_storm) < 100
    read = sum(at <= end for at in taken) / len(taken)
    assert read < 0.8, f"{read:.0%} of the corpus was read before anything could be written"


def answer(body):
    """Let the server do it, and answer something else."""

    async def fault(exchange):
        return replace(await exchange.forward(), body=body)

    return fault


def rename(items):
    return [{"index": {**items[0]["index"], "_id": "somebody"}}, *items[1:]]


WRONG = {
    "short": with_items(lambda items: items[:-1]),
    "long": with_items(lambda items: [*items, items[0]]),
    "reordered": with_items(lambda items: items[::-1]),
    "of another document": with_items(rename),
    "without words": with_items(lambda items: [{"index": {"_id": one["index"]["_id"]}} for one in items]),
    "of nothing": with_items(lambda items: [None for _ in items]),
    "cut mid-JSON": broken_off,
    "cut off": cut_midway,
    "empty": answer(b""),
    "another JSON": answer(b"[1, 2]"),
    "no JSON": answer(b"<html>Welcome</html>"),
}


def test_fault_4_wrong_answers_count_as_unknown_and_the_chunk_is_sent_again(load):
    write_corpus(load.corpus, len(WRONG) * 1000, 4)
    load.proxy.inject("_bulk", WRONG.values())
    assert load.accounted_for(load.run()) == []
    for number in range(len(WRONG)):
        later = {one for bulk in load.proxy.bulks[number + 1 :] for one in bulk.ids}
        assert set(load.proxy.bulks[number].ids) <= later

"""What cannot be written, for now or ever: a full disk, too large a body, a bad document, a full disk of our own."""

import json
from collections import Counter
from itertools import chain, repeat

import pytest
import server_words
from fault_proxy import passed
from faults import at_most, poisoned, refusing, refusing_all, whole
from nothing_lost import write_corpus

DIMENSION = 16


def line(name, text="Text.", **fields):
    """A document's line, without its line break."""
    document = {"_id": name, "text": text, "language": "en", "embedding": [0.5] * DIMENSION, **fields}
    return json.dumps(document).encode()


def change(load, lines):
    """Put other lines in the places of some, which are counted from 1."""
    there = load.corpus.read_bytes().split(b"\n")
    for number, other in lines.items():
        there[number - 1] = other
    load.corpus.write_bytes(b"\n".join(there))


def full_disk(load, handled):
    """What a load says that a full disk stops."""
    return (
        f"Error: The cluster has accepted no documents for 2 seconds, because its disk is full (index "
        f"[{load.index}-v0001] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has "
        f"read-only-allow-delete block];): free space on its nodes. {handled} of {load.corpus} handled: "
        "continue with --resume.\n"
    )


def test_fault_6_a_full_disk_ends_the_load_with_the_diagnosis_and_it_can_be_resumed(load):
    write_corpus(load.corpus, 4000)
    load.proxy.inject("_bulk", chain(repeat(passed, 2), repeat(refusing_all(server_words.flooded))))
    done = load.run("--patience", "2")
    taken = {one for bulk in load.proxy.bulks[:2] for one in bulk.ids}
    assert (done.returncode, done.stdout, done.stderr) == (1, "", full_disk(load, f"{len(taken):,} lines"))
    assert load.letters() == []

    load.proxy.clear()
    load.proxy.bulks.clear()
    assert load.accounted_for(load.run("--resume")) == []
    assert Counter(load.sent()) == dict.fromkeys({f"d{n}" for n in range(4000)} - taken, 1)


@pytest.mark.usefixtures("unwatched_disk")
def test_fault_6_the_servers_own_block_keeps_settings_from_being_restored_and_the_next_run_does_it(client, load):
    write_corpus(load.corpus, 3000)
    version, block = f"{load.index}-v0001", "index.blocks.read_only_allow_delete"
    put_settings = client.indices.put_settings

    async def last_before_the_block(exchange):
        reply = await exchange.forward()
        put_settings(index=version, body={block: True})
        return reply

    load.proxy.inject("_bulk", [last_before_the_block])
    done = load.run("--patience", "2")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert f"{version} could not be removed or reset: the next run will do it." in done.stderr
    assert refresh_interval(client, version) == "-1"
    put_settings(index=version, body={block: None})
    assert load.accounted_for(load.run("--resume")) == []
    assert refresh_interval(client, version) is None


def refresh_interval(client, version):
    return client.indices.get_settings(index=version)[version]["settings"]["index"].get("refresh_interval")


def test_fault_7_a_gateways_limit_is_found_and_only_what_is_larger_becomes_a_dead_letter(load):
    write_corpus(load.corpus, 6000)
    large = [1, 700, 701, 2000]
    change(load, {n: line(f"large{n}", "Large. " * 5000) for n in large})
    load.proxy.inject("_bulk", repeat(at_most(30_000)))
    letters = load.accounted_for(load.run())
    assert [letter["line"] for letter in letters] == large
    assert {(letter["type"], letter["stage"]) for letter in letters} == {("too_large", "write")}
    # What is known is not tried again.
    assert Counter(load.sent())["d5999"] == 1


def test_fault_8_documents_that_fail_a_whole_request_are_found_by_halving(load):
    write_corpus(load.corpus, 1000)
    change(load, {n: line(f"bad{n}", "a poisonous word") for n in (1, 500, 501)})
    load.proxy.inject("_bulk", repeat(poisoned(b"poisonous")))
    letters = load.accounted_for(load.run())
    assert [(letter["line"], letter["_id"]) for letter in letters] == [(1, "bad1"), (500, "bad500"), (501, "bad501")]
    assert letters[0]["reason"].endswith("expected START_OBJECT but found [VALUE_STRING]")
    # Each is found in about log2(1000) halvings.
    assert len(load.proxy.bulks) < 70


def test_fault_8_documents_that_the_server_fails_over_are_found_too(load):
    write_corpus(load.corpus, 200)
    change(load, {n: line(f"bad{n}", "a poisonous word") for n in (1, 200)})
    load.proxy.inject("_bulk", repeat(poisoned(b"poisonous", server_words.failed())))
    letters = load.accounted_for(load.run())
    assert [(letter["line"], letter["type"]) for letter in letters] == [(1, "server_error"), (200, "server_error")]
    assert "value" in letters[0]["reason"]


def test_fault_8_single_documents_that_the_server_fails_over(load):
    write_corpus(load.corpus, 200)
    broken = ("d7", "d150")

    def fails(_):
        return server_words.failed()

    load.proxy.inject("_bulk", repeat(refusing(lambda one: fails if one.id in broken else None)))
    letters = load.accounted_for(load.run())
    assert [(letter["_id"], letter["type"]) for letter in letters] == [(name, "server_error") for name in broken]


def test_a_server_that_fails_over_everything_is_waited_for(load):
    write_corpus(load.corpus, 50)
    load.proxy.inject("_bulk", chain(repeat(whole(server_words.failed()), 12)))
    assert load.accounted_for(load.run()) == []


def test_fault_8_a_cluster_that_refuses_every_request_is_no_documents_fault(load):
    write_corpus(load.corpus, 100)
    load.proxy.inject("_bulk", repeat(whole(server_words.malformed())))
    done = load.run()
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "Error: The cluster refuses every document of a bulk request: Malformed action/metadata line [1], expected "
        "START_OBJECT but found [VALUE_STRING].\n",
    )
    assert load.letters() == []
    load.proxy.clear()
    assert load.accounted_for(load.run("--resume")) == []


BAD = {
    "wrong dimension": line("bad", embedding=[0.5] * (DIMENSION - 1)),
    "NaN": line("bad", embedding=[float("nan")] * DIMENSION),
    "infinite": line("bad", embedding=[0.5] * (DIMENSION - 1)).replace(b"]", b", 1e999]"),
    "too large for float32": line("bad", embedding=[1e300] * DIMENSION),
    "too large for a cosine": line("bad", embedding=[1e30] * DIMENSION),
    "too small for a cosine": line("bad", embedding=[1e-30] * DIMENSION),
    "zero": line("bad", embedding=[0.0] * DIMENSION),
    "no vector": b'{"_id": "bad", "text": "Text."}',
    "lone surrogate": line("bad", "\ud800"),
    "lone surrogate in the _id": line("\ud800"),
    "empty text": line("bad", "", title=" "),
    "invalid JSON": b'{"_id": "bad", "text": ',
    "no object": b"[1, 2]",
    "not UTF-8": b'{"_id": "bad", "text": "\xff"}',
    "null byte": b"\x00\x00",
    "long _id": line("ü" * 257),
}
GOOD = {
    "line break in text": line("break", "Two\nlines\r\nand  \u0085 more.\t"),
    "10 MB text": line("huge", "Ten megabytes. " * 700_000),
    "the same _id again": line("d1", "Another one.", embedding=[0.25] * DIMENSION),
    "and again": line("d1", "The last one.", embedding=[0.75] * DIMENSION),
}


def test_fault_9_bad_lines_are_caught_before_sending_and_their_neighbours_are_indexed(client, load):
    write_corpus(load.corpus, 1000, DIMENSION)
    # The very first line is no measure for the others.
    bad = dict(zip([1, *range(20, 1000, 20)], BAD.values(), strict=False))
    good = dict(zip(range(21, 1000, 20), GOOD.values(), strict=False))
    assert len(bad) >= len(BAD)
    assert len(good) >= len(GOOD)
    change(load, bad | good)
    done = load.run()
    letters = load.accounted_for(done, replaced=2)
    assert done.stderr == ""
    assert [letter["line"] for letter in letters] == list(bad)
    assert all(letter["type"] and letter["reason"] and letter["stage"] in ("read", "encode") for letter in letters)
    assert not {"bad", "ü" * 257} & set(load.sent())
    assert client.get(index=load.index, id="d1")["_source"]["text"] == {"en": "The last one."}
    assert client.get(index=load.index, id="break")["_source"]["text"]["en"].startswith("Two\nlines\r\nand")


def unusable(load):
    """A line that is no document: found when it is read."""
    change(load, {200: b"no document"})


def unwritable(load):
    """A document that the server refuses: found when it is written."""
    load.proxy.inject("_bulk", repeat(refusing(lambda one: server_words.unparsable if one.id == "d199" else None)))


@pytest.mark.parametrize("spoil", [unusable, unwritable])
def test_fault_10_dead_letters_that_cannot_be_written_stop_the_load_and_nothing_is_dropped(load, spoil):
    write_corpus(load.corpus, 300)
    spoil(load)
    load.place.folder.mkdir(parents=True)
    load.place.dead_letters.symlink_to("/dev/full")
    done = load.run()
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith(
        f"Error: {load.place.dead_letters} cannot be written (No space left on device): free space on the disk, and "
        "continue with --resume."
    )

    load.place.dead_letters.unlink()
    (letter,) = load.accounted_for(load.run("--resume"))
    assert letter["line"] == 200

"""Adopting an index while things go wrong: the new one is whole or not there, the old one as it was."""

from __future__ import annotations

import json
import re
import signal
import time
from contextlib import contextmanager
from itertools import chain, count, repeat
from pathlib import Path

import pytest
from command_line import langshift, refusal, started
from fault_proxy import passed
from faults import broken_off, cut_before, delayed
from old_index import OldIndex, raw_documents

from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.plugin.versions import versions_of

# More than are read at once.
SHARDS = 6
PATIENCE = 60  # seconds


@pytest.fixture
def old(cluster_url, index_name):
    made = OldIndex(cluster_url, f"{index_name}-old", documents=600, shards=SHARDS)
    yield made
    made.close()


@pytest.fixture
def new(index_name):
    return f"{index_name}-new"


@pytest.fixture
def command(old, new, tmp_path):
    """The command, without the program."""
    vectors = old.language_vectors(tmp_path / "planted.safetensors")
    options = ["--vector-field", "vec", "--text-field", "body", "--encoder", "given", "--vectors", vectors]
    return ["adopt", old.name, "--name", new, *options]


@contextmanager
def under_way(command, proxy):
    """The command on its way through the proxy, once it has sent documents, which take long."""
    proxy.inject("/_bulk", repeat(delayed(1)))
    with started(*command, OPENSEARCH_URL=proxy.url) as process:
        latest = time.monotonic() + PATIENCE
        while not proxy.bulks and process.poll() is None and time.monotonic() < latest:
            time.sleep(0.05)
        assert proxy.bulks, process.communicate()
        yield process


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_is_interrupted_leaves_nothing_behind(client, proxy, command, old, new, stop):
    with under_way(command, proxy) as process:
        process.send_signal(stop)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout) == (130, b"")
    told = f"Index {old.name} is unchanged: run the same command again."
    assert stderr.decode().split("\n") == [told, "", "Interrupted.", ""]
    assert versions_of(client, new) == []
    assert client.count(index=old.name)["count"] == 600


def test_after_a_kill_the_same_command_begins_again(client, cluster_url, proxy, command, old, new):
    with under_way(command, proxy) as process:
        process.kill()
    assert versions_of(client, new) == [f"{new}-v0001"]
    proxy.clear()
    # What was on its way arrives: were the version gone by then, it would make an index of that name.
    latest = time.monotonic() + PATIENCE
    while any(bulk.status is None for bulk in proxy.bulks) and time.monotonic() < latest:
        time.sleep(0.05)
    done = langshift(*command, url=cluster_url)
    assert done.returncode == 0, done
    told = rf"A load of {old.name} into {new} that was interrupted after \d+ lines? is abandoned\."
    assert any(re.fullmatch(told, line) for line in done.stderr.splitlines())
    assert versions_of(client, new) == [f"{new}-v0001"]
    assert client.count(index=new)["count"] == 600


def test_a_point_in_time_that_is_lost_is_told_in_one_sentence(client, proxy, command, old, new):
    numbers = count()

    async def lose(exchange):
        point = json.loads(exchange.body).get("pit")
        # Two counts, two pages of the sample, and the first pages of the documents pass.
        if point and next(numbers) == 8:
            client.delete_pit(body={"pit_id": [point["id"]]})
        return await exchange.forward()

    proxy.inject("/_search?", repeat(lose))
    assert refusal(langshift(*command, OPENSEARCH_URL=proxy.url)) == (
        f"The cluster has lost the point in time at which {old.name} was read, as happens when one of its nodes stops. "
        f"Index {old.name} is unchanged: run the command again."
    )
    assert versions_of(client, new) == []


def test_trouble_of_reading_and_writing_that_passes_costs_nothing(cluster_url, proxy, command, old, new):
    proxy.inject(
        "/_search?", chain(repeat(passed, 5), [cut_before, broken_off, cut_before], repeat(passed, 2), [broken_off])
    )
    proxy.inject("/_bulk", [cut_before, broken_off])
    done = langshift(*command, OPENSEARCH_URL=proxy.url)
    assert done.returncode == 0, done
    before, after = (raw_documents(cluster_url, index, SHARDS) for index in (old.name, new))
    assert after.keys() == before.keys()
    for name, document in before.items():
        kept = {field: after[name].source[field] for field in document.source if field != "vec"}
        assert kept == {field: value for field, value in document.source.items() if field != "vec"}


def test_a_document_that_the_new_index_refuses_is_a_dead_letter_of_the_old_one(client, cluster_url, command, old, new):
    # What is left of it after the shift is no vector that has a cosine.
    planted = [float(part) for part in (old.offsets["de"] - old.offsets["en"]).astype("float32")]
    document = {"headline": "Nothing", "body": ["Das Meer steigt und fällt zweimal am Tag."], "vec": planted}
    client.index(index=old.name, id="zero", routing="here", body=document, params={"refresh": "true"})
    done = langshift(*command, "--json", url=cluster_url)
    assert done.returncode == 3, done
    told = json.loads(done.stdout)
    assert (told["documents"], told["dead"], told["vectorless"], told["old"]["name"]) == (600, 1, 6, old.name)
    letters = DeadLetters(Path(told["dead_letters"]))
    (letter,) = letters
    kept = json.loads(letter.document)
    assert (letter.id, letter.corpus, kept["_routing"], kept["_source"]) == ("zero", old.name, "here", document)
    again = langshift("ingest", "--dead-letters", "--index", new, url=cluster_url)
    assert again.returncode == 3, again
    mended = json.dumps({**kept, "_source": {**document, "vec": [2 * part for part in planted]}})
    letters.revise(lambda found: found._replace(document=mended.encode()))
    again = langshift("ingest", "--dead-letters", "--index", new, url=cluster_url)
    assert again.returncode == 0, again
    there = client.get(index=new, id="zero", routing="here")
    assert (there["_version"], there["_source"]["language"]) == (1, "de")
    assert there["_source"]["vec"] == pytest.approx(planted, rel=1e-6)

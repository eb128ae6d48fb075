"""Fault 1: SIGKILL at any moment; and fault 12: Ctrl-C. LANGSHIFT_KILLS=100 gives the long form."""

import json
import os
import random
import signal
import time

import numpy as np
import pytest
from embeddings_server import embeddings_server, vector
from opensearchpy import helpers
from resumed_load import ResumedLoad

from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.plugin.versions import versions_of

KILLS = int(os.environ.get("LANGSHIFT_KILLS", "2"))
KILLS_AT_THE_END = max(2, KILLS // 10)
LINES_A_KILL = 600
MOST_BEFORE_A_KILL = 400


def bad(line):
    return line % 97 == 0


@pytest.fixture
def begun(tmp_path, index_name, cluster_env):
    """A function that gives the load of so many lines."""
    loads = []
    with embeddings_server() as server:

        def make(lines):
            corpus = tmp_path / "corpus.jsonl"
            with corpus.open("w") as file:
                for line in range(1, lines + 1):
                    document = {"_id": f"d{line}", "text": f"Document {line} of a number.", "language": "en"}
                    file.write("{broken\n" if bad(line) else json.dumps(document) + "\n")
            loads.append(ResumedLoad(server, corpus, lines, index_name, tmp_path / "home", cluster_env))
            return loads[-1]

        yield make
        for process in loads[0].processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def assert_nothing_lost(client, load):
    good = {f"d{line}": f"Document {line} of a number." for line in range(1, load.lines + 1) if not bad(line)}
    client.indices.refresh(index=load.index)
    found = {hit["_id"]: hit["_source"] for hit in helpers.scan(client, index=load.index, size=1000)}
    assert found.keys() == good.keys()
    assert client.count(index=load.index)["count"] == len(good)
    for name, text in good.items():
        assert np.abs(np.array(found[name]["embedding"], np.float32) - vector(text)).max() < 1e-6
    (letters,) = load.home.glob(f"loads/*/{load.index}/dead-letters.jsonl")
    assert sorted(letter.line for letter in DeadLetters(letters)) == list(filter(bad, range(1, load.lines + 1)))


def test_sigkill_at_random_moments(client, begun):
    load = begun(KILLS * LINES_A_KILL)
    # Slow enough that no run comes to the end before all the kills.
    load.server.pause = 0.1
    chance = random.Random(6)
    kills = 0
    for number in range(KILLS):
        handled = set(load.handled())
        process = load.start()
        if number % 10 == 9:
            # While it starts, or opens its files.
            time.sleep(chance.uniform(0, 3))
        else:
            enough = chance.randrange(MOST_BEFORE_A_KILL)
            load.wait_for(process, lambda enough=enough: len(load.asked()) > enough)
            time.sleep(chance.uniform(0, 0.2))
        assert load.end(process, signal.SIGKILL)[0] == -signal.SIGKILL
        kills += 1
        assert handled.isdisjoint(load.asked()), "encoded again what was acknowledged"
        assert handled <= set(load.handled())
    # The end of a load: last answers, final check, publishing.
    last = max(line for line in range(load.lines + 1) if not bad(line))
    for _ in range(KILLS_AT_THE_END):
        handled = set(load.handled())
        process = load.start()
        load.wait_for(process, lambda handled=handled: last in load.asked() or last in handled)
        time.sleep(chance.uniform(0, 1) if last in load.asked() else chance.uniform(1, 3))
        if load.end(process, signal.SIGKILL)[0] == -signal.SIGKILL:
            kills += 1
        assert handled.isdisjoint(load.asked())
    process = load.start()
    code, out, err = load.end(process)
    assert code == 3, err
    assert f"All {load.lines:,} lines of " in err.splitlines()[-1]
    assert json.loads(out)["lines"] == load.lines
    assert_nothing_lost(client, load)
    print(f"\n{kills} kills, {load.lines} lines, {len(load.processes)} runs")
    settings = client.indices.get_settings(index=load.index)
    assert all("refresh_interval" not in index["settings"]["index"] for index in settings.values())
    assert len(list(versions_of(client, load.index))) == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupting_finishes_what_is_under_way_and_restores_the_settings(client, begun, how):
    load = begun(1500)
    load.server.pause = 0.02
    process = load.start()
    load.wait_for(process, lambda: len(load.asked()) > 700)
    code, out, err = load.end(process, how)
    assert (code, out) == (130, ""), err
    handled = load.handled()
    assert [line for line in err.splitlines() if line][-2:] == [
        f"{len(handled):,} lines of {load.command[2]} handled: continue with --resume.",
        "Interrupted.",
    ]
    assert 0 < len(handled) < load.lines
    (index,) = versions_of(client, load.index)
    settings = client.indices.get_settings(index=index)[index]["settings"]["index"]
    assert "refresh_interval" not in settings
    # What was under way was finished and counted: the server has no document that the journal does not have.
    client.indices.refresh(index=index)
    assert client.count(index=index)["count"] == sum(not bad(line) for line in handled)
    code, out, err = load.end(load.start())
    assert code == 3, err
    assert json.loads(out)["resumed"] == len(handled)
    assert set(handled).isdisjoint(load.asked())
    assert_nothing_lost(client, load)


def test_a_load_of_a_folder_is_killed_in_each_of_its_files(client, index_name, cluster_env, tmp_path):
    folder, each = tmp_path / "in", 400
    folder.mkdir()
    for number in range(3):
        documents = [
            {"_id": f"d{line}", "text": f"Document {line} of a number.", "language": "en"}
            for line in range(number * each + 1, (number + 1) * each + 1)
        ]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    with embeddings_server() as server:
        load = ResumedLoad(server, folder, 3 * each, index_name, tmp_path / "home", cluster_env)
        server.pause = 0.05
        for number in range(3):
            process = load.start()
            load.wait_for(process, lambda number=number: any(line > number * each + 100 for line in load.asked()))
            assert load.end(process, signal.SIGKILL)[0] == -signal.SIGKILL
        # Another folder than what began is told, and changes nothing.
        (folder / "0.jsonl").rename(folder / "4.jsonl")
        code, _, err = load.end(load.start())
        assert (code, "content" in err) == (2, True), err
        (folder / "4.jsonl").rename(folder / "0.jsonl")
        server.pause = 0
        code, out, err = load.end(load.start())
    assert code == 0, err
    assert json.loads(out)["lines"] == 3 * each
    client.indices.refresh(index=index_name)
    found = {hit["_id"] for hit in helpers.scan(client, index=index_name, size=1000)}
    assert found == {f"d{line}" for line in range(1, 3 * each + 1)}

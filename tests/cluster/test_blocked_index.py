"""An index that takes no writes: loads are refused before anything is encoded, and whoever waits is told what for."""

import re
from itertools import repeat

import pytest
from faults import refusing_all, whole
from given_data import run, write_lines
from server_words import Refusal, flooded
from shifted_index import Corpus, language_vectors, refused, saved

from langshift import retry
from langshift.retry import RetryBudget

pytestmark = pytest.mark.usefixtures("cluster_env", "unwatched_disk")


@pytest.fixture
def loaded(index_name, tmp_path):
    """An index with a dead letter, what loads it, and its live version."""
    corpus, vectors = Corpus(tmp_path), saved(tmp_path, language_vectors())
    lines = [*(corpus.line(name) for name in corpus.languages), {"_id": "bad", "text": "No vector"}]
    path = write_lines(tmp_path / "corpus.jsonl", lines)
    update = write_lines(tmp_path / "updates.jsonl", [{"_op": "update", "_id": "de-0", "seen": 1}])
    given = ("--index", index_name, "--encoder", "given", "--vectors", vectors, "--max-refused", 1)
    assert run("ingest", path, *given).exit_code == 3
    return {"append": (path, *given), "update": (update, *given), "letters": index_name}, f"{index_name}-v0001"


@pytest.mark.parametrize("block", ["write", "read_only", "read_only_allow_delete"])
def test_nothing_is_encoded_for_an_index_that_takes_no_writes(client, index_name, loaded, block):
    loads, version = loaded
    append, update = (("ingest", *loads[one], "--if-exists", "append") for one in ("append", "update"))
    commands = {append: "nothing can be written to it", update: "nothing can be written to it"}
    commands["ingest", "--dead-letters", "--index", index_name] = "nothing can be written to it"
    if block != "write":
        commands[("ingest", *loads["append"], "--if-exists", "replace")] = "no other version can take its place"
        commands["retune", index_name, "--alpha", 0.1] = "cannot hold back the last writes"
    name = f"index.blocks.{block}"
    client.indices.put_settings(index=version, body={name: True})
    try:
        for command, effect in commands.items():
            said, code = refused(run(*command))
            assert code == 1
            assert said.startswith(f"Index {version} has the block {name}, ")
            assert effect in said
            assert said.endswith(f'`PUT /{version}/_settings` and {{"{name}": null}}, then run the command again.')
            assert ("free space on its nodes" in said) == (block == "read_only_allow_delete")
    finally:
        client.indices.put_settings(index=version, body={name: None})
    assert run(*append).exit_code == 3


@pytest.mark.parametrize(("code", "name"), [(6, "read_only"), (13, "read_only_allow_delete")])
def test_a_cluster_that_is_read_only_names_its_setting(proxy, monkeypatch, loaded, code, name):
    """Not set in truth: other tests write to this cluster, too."""
    loads, _ = loaded
    monkeypatch.setenv("OPENSEARCH_URL", proxy.url)
    words = f"index [x] blocked by: [FORBIDDEN/{code}/cluster read-only (api)];"
    proxy.inject("_bulk", repeat(whole(Refusal(403, {"type": "cluster_block_exception", "reason": words}))))
    said, _ = refused(run("ingest", *loads["append"], "--if-exists", "append"))
    setting = f"cluster.blocks.{name}"
    assert f"the cluster has the setting {setting}; remove it with `PUT /_cluster/settings` and " in said
    assert f'{{"persistent": {{"{setting}": null}}, "transient": {{"{setting}": null}}}}' in said


def test_whoever_waits_for_a_disk_is_told_so_and_until_when(proxy, monkeypatch, loaded, capsys):
    loads, _ = loaded
    monkeypatch.setattr(retry, "_QUIET", 0.0)
    monkeypatch.setenv("OPENSEARCH_URL", proxy.url)
    proxy.inject("_bulk", repeat(refusing_all(flooded), 3))
    done = run("ingest", *loads["append"], "--if-exists", "append")
    assert done.exit_code == 3, (done.output, done.exception)
    told = [line for line in (done.stderr + capsys.readouterr().err).splitlines() if line.startswith("Waiting")]
    assert len(told) == 1
    clock = r"\d\d:\d\d:\d\d"
    assert re.fullmatch(
        rf"Waiting for the cluster since {clock}, until {clock} at the latest: .*flood-stage.*\.", told[0]
    )


def test_a_line_comes_after_some_seconds_and_then_from_time_to_time(monkeypatch):
    clock, told = [], []
    monkeypatch.setattr(retry.time, "monotonic", lambda: clock[-1])
    monkeypatch.setattr(retry, "note", told.append)
    budget, at = RetryBudget(300), []
    for now in (100.0, 104.0, 106.0, 120.0, 137.0, 150.0):
        clock.append(now)
        budget.trouble("no connection.")
        at += [now] * (len(told) - len(at))
    assert at == [106.0, 137.0]
    assert all(one.endswith("at the latest: no connection.") for one in told)
    budget.taken()
    for now in (200.0, 206.0):
        clock.append(now)
        budget.trouble("429")
    assert len(told) == 3

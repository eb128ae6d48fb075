"""An index that takes no writes: loads are refused before anything is encoded, and whoever waits is told what for."""

import re
import time
from itertools import repeat

import pytest
from command_line import langshift
from faults import refusing_all
from given_data import run, write_lines
from http_exchange import Reply
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


def blocking(code, begins, seconds=3.0):
    """Requests that change something are refused for so long as those of a read-only cluster, once one ``begins``."""
    words = f"index [x] blocked by: [FORBIDDEN/{code}/cluster read-only (api)];"
    until = []

    async def fault(exchange):
        if not until and begins in exchange.path:
            until.append(time.monotonic() + seconds)
        writes = exchange.method in ("PUT", "DELETE") or "_bulk" in exchange.path or "_reindex" in exchange.path
        if until and time.monotonic() < until[0] and (writes or "_aliases" in exchange.path):
            return Reply(403, Refusal(403, {"type": "cluster_block_exception", "reason": words}).whole())
        return await exchange.forward()

    return repeat(fault)


@pytest.mark.parametrize(("code", "name"), [(6, "read_only"), (13, "read_only_allow_delete")])
def test_a_cluster_that_stays_read_only_names_its_setting(proxy, monkeypatch, loaded, code, name):
    """Not set in truth: other tests write to this cluster, too."""
    loads, _ = loaded
    monkeypatch.setenv("OPENSEARCH_URL", proxy.url)
    setting = f"cluster.blocks.{name}"
    remedy = f"the cluster has the setting {setting}; remove it with `PUT /_cluster/settings` and "
    for begins, patience in (("_mapping", 300), ("_bulk", 1)):
        proxy.inject("", blocking(code, begins, 100))
        done = langshift("ingest", *loads["append"], "--if-exists", "append", "--patience", patience)
        assert done.returncode == 1
        said = done.stderr.splitlines()[-1]
        assert remedy in said
        assert f'{{"persistent": {{"{setting}": null}}, "transient": {{"{setting}": null}}}}' in said
        proxy.clear()


@pytest.mark.parametrize(
    ("begins", "command"),
    [
        ("_bulk", ("append",)),
        ("_aliases", ("new-version",)),
        ("_reindex", ("retune", "--alpha", "0.4")),
        ("_block", ("retune", "--alpha", "0.3")),
    ],
)
def test_a_block_of_the_cluster_in_the_middle_is_waited_for(
    client, index_name, proxy, monkeypatch, loaded, begins, command
):
    loads, _ = loaded
    held = client.count(index=index_name)["count"]
    monkeypatch.setenv("OPENSEARCH_URL", proxy.url)
    monkeypatch.setattr(retry, "_QUIET", 0.0)
    proxy.inject("", blocking(6, begins))
    kind, *options = command
    given = (kind, index_name, *options) if kind == "retune" else ("ingest", *loads["append"], "--if-exists", kind)
    done = run(*given)
    assert done.exit_code == (0 if kind == "retune" else 3), (done.output, done.exception)
    client.indices.refresh(index=index_name)
    assert client.count(index=index_name)["count"] == held


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

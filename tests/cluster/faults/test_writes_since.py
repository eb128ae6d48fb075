"""Writes to a live version while a load makes the one that is to take its place: the load refuses, or it lacks none."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import datetime, timezone

import pytest
from command_line import langshift
from plain_index import PLAIN, made
from small_old_index import ADOPTED, old_index
from tenacity import wait_fixed

from langshift.errors import ClusterError
from langshift.ingest.bulk import delivery
from langshift.ingest.load import LoadRun
from langshift.plugin import live_writes, metadata, version_writer, versions
from langshift.plugin.transfer import cutover
from langshift.plugin.version_writer import NotPublished
from langshift.server_errors import Unreadable
from langshift.wording import utc_time


def lines_of(names, text="Das Meer steigt."):
    return [{"_id": name, "text": text, "language": "de"} for name in names]


def bulk(client, index, *lines):
    return client.bulk(index=index, body=list(lines), params={"refresh": "true"})["items"]


def refused_versions(client, index):
    one = {"_id": "0", "version": 1, "version_type": "external"}
    (item,) = bulk(client, index, {"index": {**one, "version": 0}}, {"n": 9})
    assert item["index"]["status"] == 409


def failed_documents(client, index):
    (item,) = bulk(client, index, {"index": {"_id": "bad"}}, {"n": "no number"})
    assert item["index"]["status"] == 400


def unchanged(client, index):
    assert client.update(index=index, id="0", body={"doc": {"n": 0}})["result"] == "noop"


def looked_after(client, index):
    client.indices.refresh(index=index)
    client.indices.flush(index=index, params={"force": "true"})
    client.indices.forcemerge(index=index, params={"max_num_segments": 1})
    client.indices.put_mapping(index=index, body={"properties": {"more": {"type": "keyword"}}})
    metadata.change(client, index, {"theirs": 1})
    client.indices.put_settings(index=index, body={"index": {"number_of_replicas": 0, "refresh_interval": "2s"}})


def reopened(client, index):
    client.indices.close(index=index)
    client.indices.open(index=index, params={"wait_for_active_shards": 1})


WRITES = {
    "an index in bulk": (lambda client, index: bulk(client, index, {"index": {"_id": "new"}}, {"n": 7}), 1),
    "several": (lambda client, index: bulk(client, index, *[{"index": {}}, {"n": 7}] * 5), 5),
    "an update": (lambda client, index: client.update(index=index, id="0", body={"doc": {"n": 7}}), 1),
    "a delete": (lambda client, index: client.delete(index=index, id="0"), 1),
    "written and deleted": (
        lambda client, index: bulk(client, index, {"index": {"_id": "new"}}, {"n": 7}, {"delete": {"_id": "new"}}),
        2,
    ),
    "delete by query": (
        lambda client, index: client.delete_by_query(index=index, body={"query": {"terms": {"_id": ["0", "1"]}}}),
        2,
    ),
    "update by query": (lambda client, index: client.update_by_query(index=index), 3),
}
NO_WRITES = {
    "nothing": lambda *_: None,
    "refused versions": refused_versions,
    "failed documents": failed_documents,
    "an update without change": unchanged,
    "upkeep": looked_after,
    "closed and opened": reopened,
}
REPLACING = pytest.mark.parametrize("if_exists", ["replace", "new-version"])


def replacing(client, name, if_exists="replace"):
    target = version_writer.open_for_writing(client, name, PLAIN, if_exists=if_exists)
    client.index(index=target.index, id="new", body={"n": 1})
    return target


def takes_writes(client, index):
    return not metadata.is_write_blocked(metadata.read_settings(client, index))


@REPLACING
@pytest.mark.parametrize(("write", "writes"), WRITES.values(), ids=WRITES)
def test_a_version_that_was_written_to_is_not_replaced(client, index_name, if_exists, write, writes):
    old = made(client, index_name, 3)
    client.indices.refresh(index=old.index)
    target = replacing(client, index_name, if_exists)
    # By another process, the mark alone tells what was there at the begin.
    target = version_writer.reopen(client, index_name, target.index, target.uuid)
    write(client, old.index)
    with pytest.raises(NotPublished) as refused:
        version_writer.publish(client, target)
    began = utc_time(int(metadata.read_settings(client, target.index)["creation_date"]))
    assert abs(datetime.now(timezone.utc) - datetime.fromisoformat(began.replace(" UTC", "+00:00"))).seconds < 600
    assert str(refused.value) == (
        f"{index_name} still points to {old.index}, because {old.index} has had {writes} write{'s' * (writes > 1)} "
        f"since this load began ({began}), which the new version lacks (to have them in it, run the load again with a "
        f"corpus that does): the new version is kept aside as {target.index}, and `langshift rollback {index_name} "
        f"--to {target.index}` publishes it all the same."
    )
    assert versions.version_behind(client, index_name) == old.index
    assert versions.unfinished(client, index_name) == {}
    assert takes_writes(client, old.index)
    assert takes_writes(client, target.index)


@REPLACING
@pytest.mark.parametrize("happens", NO_WRITES.values(), ids=NO_WRITES)
def test_what_is_no_write_keeps_nothing_from_being_replaced(client, index_name, if_exists, happens):
    old = made(client, index_name, 3)
    client.indices.refresh(index=old.index)
    target = replacing(client, index_name, if_exists)
    happens(client, old.index)
    version_writer.publish(client, target)
    assert versions.version_behind(client, index_name) == target.index
    assert if_exists == "replace" or takes_writes(client, old.index)


def test_nothing_is_written_between_the_comparison_and_the_swap(client, index_name, monkeypatch):
    old = made(client, index_name, 3)
    target = replacing(client, index_name, "new-version")
    real, statuses = versions.move_alias, []

    def move(*arguments):
        (item,) = bulk(client, index_name, {"index": {"_id": "late"}}, {"n": 7})
        statuses.append(item["index"]["status"])
        real(*arguments)

    monkeypatch.setattr(versions, "move_alias", move)
    version_writer.publish(client, target)
    assert statuses == [403]
    assert takes_writes(client, old.index)


def test_a_block_that_somebody_has_lifted_meanwhile_is_set_once_more(client, index_name, monkeypatch):
    old = made(client, index_name, 3)
    target = replacing(client, index_name)
    real = live_writes.require_blocked

    def released(*arguments):
        monkeypatch.undo()
        live_writes.release_abandoned(client, index_name)
        bulk(client, index_name, {"index": {"_id": "late"}}, {"n": 7})
        real(*arguments)

    monkeypatch.setattr(live_writes, "require_blocked", released)
    with pytest.raises(Unreadable):
        version_writer.publish(client, target)
    with pytest.raises(NotPublished, match=f"{old.index} has had 1 write since"):
        version_writer.publish(client, target)


def test_a_version_behind_somebodys_own_block_stays_behind_it(client, index_name):
    old = made(client, index_name, 3)
    target = replacing(client, index_name, "new-version")
    client.indices.add_block(index=old.index, block="write")
    version_writer.publish(client, target)
    assert not takes_writes(client, old.index)
    assert takes_writes(client, target.index)


def test_another_index_of_the_name_is_not_replaced(client, index_name):
    old = made(client, index_name, 3)
    target = replacing(client, index_name)
    client.indices.delete(index=old.index)
    client.indices.create(index=old.index, body={"aliases": {index_name: {}}})
    with pytest.raises(ClusterError) as refused:
        version_writer.publish(client, target)
    assert str(refused.value) == (
        f"{old.index} was deleted and created again since this load began, so {index_name} was not pointed to "
        f"{target.index}: run the load again."
    )


@pytest.fixture
def ingest(cluster_env, index_name, corpus):
    def run(names, *more, exists="append", **named):
        arguments = ["ingest", corpus(*lines_of(names)), "--index", index_name, "--if-exists", exists, *more]
        return langshift(*arguments, url=cluster_env, **named)

    return run


@pytest.fixture
def meanwhile(monkeypatch):
    """A function that has something happen once the next load has written its lines."""

    def once(action):
        real = LoadRun._write

        def write(run, target):
            real(run, target)
            monkeypatch.setattr(LoadRun, "_write", real)
            action()

        monkeypatch.setattr(LoadRun, "_write", write)

    return once


@REPLACING
def test_of_two_homes_one_replaces_and_one_appends(client, index_name, ingest, meanwhile, tmp_path, if_exists):
    assert ingest("abcdef").returncode == 0
    meanwhile(lambda: ingest("xyz", LANGSHIFT_HOME=tmp_path))
    done = ingest("abcdef", "--json", exists=if_exists)
    assert done.returncode == 1, done
    assert f"Error: {index_name} still points to {index_name}-v0001, because {index_name}-v0001 has had 3 writes" in (
        done.stderr
    )
    summary = json.loads(done.stdout)
    assert (summary["published"], summary["index"]) == (False, f"{index_name}-v0002")
    assert client.count(index=index_name)["count"] == 9
    # As it says.
    assert langshift("rollback", index_name, "--to", f"{index_name}-v0002").returncode == 0
    assert client.count(index=index_name)["count"] == 6


def test_an_adopted_index_takes_no_place_either_of_what_was_written_to(client, index_name, cluster_env, meanwhile):
    documents = {name: {"text": "Das Meer steigt."} for name in "abcdef"}
    with old_index(client, f"{index_name}-old", {"text": {"type": "text"}}, documents) as old:
        command = ["adopt", old, "--name", index_name, "--text-field", "text", *ADOPTED]
        assert langshift(*command, url=cluster_env).returncode == 0
        meanwhile(lambda: client.index(index=index_name, id="x", body={"text": "Neu"}, params={"refresh": "true"}))
        done = langshift(*command, "--if-exists", "replace", url=cluster_env)
        assert done.returncode == 1, done
        assert f"{index_name}-v0001 has had 1 write since this load began" in done.stderr
        assert versions.version_behind(client, index_name) == f"{index_name}-v0001"


def test_an_index_that_is_written_to_while_it_is_adopted_is_named(client, index_name, cluster_env, meanwhile):
    with old_index(client, f"{index_name}-old", {"text": {"type": "text"}}, {"a": {"text": "Das Meer."}}) as old:
        command = ["adopt", old, "--name", index_name, "--text-field", "text", *ADOPTED]
        meanwhile(lambda: client.index(index=old, id="x", body={"text": "Neu"}, params={"refresh": "true"}))
        done = langshift(*command, url=cluster_env)
        assert done.returncode == 0, done
        assert (
            f"{old} has had 1 write since it was read, which {index_name} lacks: let nobody write to {old} any more, "
            "and adopt it again with --if-exists replace."
        ) in done.stderr.splitlines()
        again = langshift(*command, "--if-exists", "replace", url=cluster_env)
        assert (again.returncode, "since it was read" in again.stderr) == (0, False), again
        assert client.count(index=index_name)["count"] == 2


KILLED = """
import os, signal, sys
from langshift import entry
from langshift.plugin import versions
versions.move_alias = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sys.argv = ["langshift", *sys.argv[1:]]
entry.main()
"""


def test_after_a_kill_before_the_swap_the_load_can_be_resumed(client, index_name, ingest, corpus, cluster_env):
    assert ingest("abcdef").returncode == 0
    arguments = ["ingest", corpus(*lines_of("abcdefg")), "--index", index_name, "--if-exists", "replace"]
    env = {**os.environ, "OPENSEARCH_URL": os.environ.get("OPENSEARCH_URL", cluster_env)}
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], env=env, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed
    assert not takes_writes(client, f"{index_name}-v0001")
    done = langshift(*arguments, "--resume", url=cluster_env)
    assert done.returncode == 0, done
    assert client.count(index=index_name)["count"] == 7


@pytest.fixture
def left_blocked(client, index_name, ingest):
    """The live version of an index, as a load leaves it that is killed between the block and the swap."""
    assert ingest("abcdef").returncode == 0
    live = f"{index_name}-v0001"
    fingerprint = versions.live(client, index_name).fingerprint
    target = version_writer.open_for_writing(client, index_name, fingerprint, if_exists="new-version")
    noted = metadata.unfinished(client, target.index)
    metadata.change(client, target.index, {metadata.UNFINISHED: {**noted, "blocked": True}})
    cutover.set_block(client, live)
    return live


@pytest.mark.usefixtures("left_blocked")
def test_an_append_waits_and_goes_on_after_a_kill(client, index_name, ingest, monkeypatch):
    """Also where the pause between two tries is longer than its patience."""
    monkeypatch.setattr(delivery, "BACKOFF", wait_fixed(1.2))
    done = ingest("xyz", "--patience", "1")
    assert done.returncode == 0, done
    assert client.count(index=index_name)["count"] == 9


@pytest.mark.parametrize(
    "command",
    [
        ["index", "drop", "NAME", "--version", "2", "--yes"],
        ["retune", "NAME", "--alpha", "0.5"],
        ["rollback", "NAME"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
@pytest.mark.usefixtures("left_blocked")
def test_the_next_command_lets_the_version_take_writes_again(client, index_name, cluster_env, command):
    langshift(*(index_name if one == "NAME" else one for one in command), url=cluster_env)
    live = versions.version_behind(client, index_name)
    assert takes_writes(client, live), live


def test_the_doctor_tells(index_name, cluster_env, left_blocked):
    done = langshift("doctor", "--json", url=cluster_env)
    found = [one for one in json.loads(done.stdout)["findings"] if one["name"] == f"index {index_name}"]
    (finding,) = (one for one in found if one["value"] == "takes no writes")
    assert re.fullmatch(
        rf"Nothing can be written to {left_blocked}: the load to {index_name}-v0002 has blocked it for its last step\. "
        rf"{index_name}-v0002 is not finished: a load is still writing it or was interrupted\. Run that again with "
        rf"--resume, or remove the version with `langshift index drop {index_name} --version {index_name}-v0002`\.",
        finding["remedy"],
    )
    assert finding["status"] == "warning"

"""What people do to an index, its alias and a load's files while a load is at work, or after it."""

import asyncio
import subprocess

import pytest
from command_line import LANGSHIFT, langshift, refusal
from faults import passed
from nothing_lost import write_corpus

COUNT = 300


@pytest.fixture(autouse=True)
def corpus(load):
    """What is loaded."""
    return write_corpus(load.corpus, COUNT)


@pytest.fixture
def _several_requests(load):
    """More is loaded."""
    write_corpus(load.corpus, 10 * COUNT)


def doing(action):
    """A fault that lets a request through, once something was done to the cluster."""

    async def fault(exchange):
        await asyncio.to_thread(action)
        return await passed(exchange)

    return fault


def first(load):
    """The first version of the index."""
    return f"{load.index}-v0001"


@pytest.mark.usefixtures("_several_requests")
def test_a_closed_index_costs_no_document_and_the_load_can_be_gone_on_with(load, client):
    load.proxy.inject("_bulk", [passed, passed, passed, doing(lambda: client.indices.close(index=first(load)))])
    stopped = load.run()
    assert stopped.returncode == 1
    assert "Error: The cluster no longer accepts documents: the index is closed; open it. " in stopped.stderr
    assert stopped.stderr.endswith(f" lines of {load.corpus} handled: continue with --resume.\n")
    client.indices.open(index=first(load))
    client.cluster.health(index=first(load), params={"wait_for_status": "yellow"})
    assert load.accounted_for(load.run("--resume")) == []


@pytest.mark.usefixtures("_several_requests")
def test_a_load_whose_index_was_deleted_is_begun_anew_without_more_ado(load, client):
    load.proxy.inject("_bulk", [passed, passed, passed, doing(lambda: client.indices.delete(index=first(load)))])
    stopped = load.run()
    assert stopped.returncode == 1
    assert stopped.stderr.endswith(
        f" lines of {load.corpus} handled, but this load cannot be resumed: start again without --resume.\n"
    )
    again = load.run()
    assert " that was interrupted after " in again.stderr
    assert again.stderr.endswith(" is abandoned.\n")
    assert load.accounted_for(again) == []


def test_a_load_that_somebody_else_has_overtaken_is_begun_anew_too(load, client, tmp_path):
    other = write_corpus(tmp_path / "other.jsonl", 10)

    def overtake():
        done = langshift(
            "ingest", other, *load.arguments, **{**load.environment, "LANGSHIFT_HOME": str(tmp_path / "elsewhere")}
        )
        assert done.returncode == 0, done

    load.proxy.inject("_bulk", [doing(overtake)])
    stopped = load.run()
    assert refusal(stopped) == (
        f"Another load has created {load.index} ({load.index}-v0002) in the meantime, so this load's documents were "
        "not added: run it again to add them. 300 lines of "
        f"{load.corpus} handled, but this load cannot be resumed: start again without --resume."
    )
    added = load.run("--if-exists", "append")
    assert added.returncode == 0, added
    assert not client.indices.exists(index=first(load))
    assert load.accounted_for(added, replaced=10) == []


def test_a_complete_load_whose_index_was_deleted_is_not_called_complete(load, client):
    assert load.accounted_for(load.run()) == []
    client.indices.delete(index=first(load))
    assert load.accounted_for(load.run("--resume")) == []


def test_letters_that_somebody_has_broken_do_not_spoil_a_load_that_replaces_the_index(load):
    assert load.run().returncode == 0
    load.place.dead_letters.write_text('{"x": 1}\n')
    done = load.run("--if-exists", "replace")
    assert (done.returncode, done.stderr) == (
        0,
        f"{load.place.dead_letters}, line 1, is not a valid dead letter (it has no document): correct or remove it.\n",
    )


def test_a_file_of_deletions_alone_is_taken_by_an_index_of_given_vectors(load, client, tmp_path):
    assert load.run().returncode == 0
    deletions = tmp_path / "deletions.jsonl"
    deletions.write_text('{"_op": "delete", "_id": "d0"}\n{"_op": "delete", "_id": "d1"}\n')
    done = langshift("ingest", deletions, *load.arguments, "--if-exists", "append", **load.environment)
    assert done.returncode == 0, done
    assert client.count(index=load.index)["count"] == COUNT - 2


def test_closed_standard_input_is_told_so(load):
    command = 'exec "$0" ingest - --index "$1" --encoder given <&-'
    done = subprocess.run(
        ["/bin/sh", "-c", command, LANGSHIFT, load.index], capture_output=True, text=True, check=False, timeout=300
    )
    assert refusal(done) == "Standard input is closed: give a file, or pipe the corpus in."

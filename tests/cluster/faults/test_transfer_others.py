"""Other runs, loads and people who act on the same index at the same time."""

import pytest
from plain_index import PLAIN
from transferring import Meanwhile, behind, blocked, everything, index, moved, plan, unfinished, unwatched

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError
from langshift.plugin import version_writer
from langshift.plugin.transfer.run import transfer

PATIENCE = 60.0


@pytest.mark.parametrize("stage", ["copying", "catching up", "checking", "settling", "swapping"])
def test_a_second_run_takes_over_and_the_first_one_stops(client, index_name, stage):
    old = index(client, index_name, 20)
    second = []

    def take_over():
        second.append(transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE))

    watch = Meanwhile(**{stage.replace(" ", "_"): take_over})
    live = everything(client, old.index)
    with pytest.raises(Exception, match="Another ") as raised:
        transfer(client, plan(client, index_name), watch=watch, gate=lambda _: None, patience=PATIENCE)
    assert str(raised.value) in (
        f"Another retune, reencode or rollback has taken over or removed {index_name}-v0002, so this one stops: wait "
        "for the other to finish, or run the command again.",
        f"Another run has pointed {index_name} to {index_name}-v0002 in the meantime, so this one stops.",
    )
    assert behind(client, index_name) == [second[0].index] == [f"{index_name}-v0002"]
    assert everything(client, second[0].index) == moved(live)
    assert blocked(client, old.index)


def test_a_second_run_that_asks_for_something_else_stops_the_first_one(client, index_name):
    old = index(client, index_name, 20)

    def other():
        transfer(client, plan(client, index_name, 0.5), watch=unwatched, patience=PATIENCE)

    with pytest.raises(Exception, match="Another "):
        transfer(client, plan(client, index_name), watch=Meanwhile(copying=other), patience=PATIENCE)
    (now,) = behind(client, index_name)
    assert everything(client, now) == moved(everything(client, old.index), 0.5)


def test_a_load_that_makes_a_version_meanwhile_is_left_alone_and_the_first_to_end_wins(client, index_name):
    old = index(client, index_name, 20)
    other = Fingerprint(**{**PLAIN.to_dict(), "revision": "2"})
    load = version_writer.open_for_writing(client, index_name, other, if_exists="new-version")
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    assert behind(client, index_name) == [done.index]
    assert unfinished(client, load.index) is not None
    with pytest.raises(ClusterError, match=f"{index_name} pointed to {old.index} when this load began"):
        version_writer.publish(client, load)


def test_where_a_load_ends_first_the_transfer_gives_up(client, index_name):
    old = index(client, index_name, 20)
    load = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version")
    watch = Meanwhile(settling=lambda: version_writer.publish(client, load))
    with pytest.raises(ClusterError) as raised:
        transfer(client, plan(client, index_name), watch=watch, patience=PATIENCE)
    assert str(raised.value) == (
        f"{index_name} pointed to {old.index} when this run began and now points to {load.index}, so "
        f"it was not pointed to {index_name}-v0003: run the command again."
    )
    assert behind(client, index_name) == [load.index]
    assert not client.indices.exists(index=f"{index_name}-v0003")


@pytest.mark.parametrize("stage", ["copying", "catching up", "settling", "blocked", "verifying", "swapping"])
def test_a_live_version_that_somebody_deletes_meanwhile_ends_it(client, index_name, stage):
    old = index(client, index_name, 20)
    watch = Meanwhile(**{stage.replace(" ", "_"): lambda: client.indices.delete(index=old.index)})
    with pytest.raises(ClusterError) as raised:
        transfer(client, plan(client, index_name), watch=watch, patience=PATIENCE)
    assert str(raised.value) == (
        f"Index {old.index} was deleted while {index_name}-v0002 was being built from it: run the command again."
    )
    assert not client.indices.exists(index=f"{index_name}-v0002")

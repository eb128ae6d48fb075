"""A transfer that breaks off leaves the live version serving; the same call goes on, another one clears up."""

import pytest
from opensearchpy.exceptions import AuthorizationException
from transferring import (
    Meanwhile,
    behind,
    blocked,
    document,
    everything,
    index,
    moved,
    plan,
    unfinished,
    unwatched,
)

from langshift.plugin.transfer import reindex_tasks
from langshift.plugin.transfer.run import finish_abandoned, release_abandoned, transfer

PATIENCE = 60.0
STAGES = ["copying", "catching up", "checking", "settling", "blocked", "verifying", "swapping"]


class Interrupted(BaseException):
    """Like Ctrl-C."""


def interrupt():
    raise Interrupted


def broken_off(client, name, stage, **values):
    watch = Meanwhile(**{stage.replace(" ", "_"): interrupt})
    with pytest.raises(Interrupted):
        transfer(client, plan(client, name, **values), watch=watch, gate=lambda _: None, patience=PATIENCE)


@pytest.mark.parametrize("stage", STAGES)
def test_after_a_break_the_live_version_takes_writes_and_the_same_call_goes_on(client, index_name, stage):
    old = index(client, index_name, 20)
    broken_off(client, index_name, stage)
    assert behind(client, index_name) == [old.index]
    assert unfinished(client, f"{index_name}-v0002") is not None
    client.index(index=index_name, id="new", body=document(9))
    client.delete(index=index_name, id="3")
    live = everything(client, old.index)
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    assert done.index == f"{index_name}-v0002"
    assert behind(client, index_name) == [done.index]
    assert everything(client, done.index) == moved(live)
    assert "refresh_interval" not in client.indices.get_settings(index=done.index)[done.index]["settings"]["index"]


@pytest.mark.parametrize("stage", ["copying", "swapping"])
def test_a_call_that_asks_for_something_else_begins_anew(client, index_name, stage):
    old = index(client, index_name, 20)
    broken_off(client, index_name, stage)
    live = everything(client, old.index)
    done = transfer(client, plan(client, index_name, 0.5), watch=unwatched, patience=PATIENCE)
    assert everything(client, done.index) == moved(live, 0.5)
    assert sorted(client.indices.get(index=f"{index_name}-v*")) == [old.index, done.index]


def test_what_is_being_copied_still_is_watched_to_its_end(client, index_name, monkeypatch):
    old = index(client, index_name, 30)
    # As if killed: nothing is cleared up, and the task runs on.
    with monkeypatch.context() as patch:
        patch.setattr("langshift.plugin.transfer.run._leave", lambda *_, **__: None)
        patch.setattr(reindex_tasks, "wait_for_task", lambda *_: interrupt())
        slow = plan(client, index_name, throttle=2.0)
        with pytest.raises(Interrupted):
            transfer(client, slow, watch=unwatched, patience=PATIENCE)
    (task,) = reindex_tasks.running(client, f"{index_name}-v0002")
    watch = Meanwhile()
    started = []
    monkeypatch.setattr(reindex_tasks, "start", _noting(reindex_tasks.start, started))
    done = transfer(client, plan(client, index_name, throttle=1000.0), watch=watch, patience=PATIENCE)
    assert started == []
    assert client.tasks.get(task_id=task)["completed"]
    assert everything(client, done.index) == moved(everything(client, old.index))


def _noting(function, calls):
    def noting(*args, **values):
        calls.append(args)
        return function(*args, **values)

    return noting


@pytest.mark.parametrize("broken", ["running", "gone"])
def test_another_call_ends_what_still_runs(client, index_name, monkeypatch, broken):
    old = index(client, index_name, 30)
    with monkeypatch.context() as patch:
        patch.setattr("langshift.plugin.transfer.run._leave", lambda *_, **__: None)
        patch.setattr(reindex_tasks, "wait_for_task", lambda *_: interrupt())
        with pytest.raises(Interrupted):
            transfer(client, plan(client, index_name, throttle=2.0), watch=unwatched, patience=PATIENCE)
    if broken == "gone":
        client.indices.delete(index=f"{index_name}-v0002")
        reindex_tasks.cancel(client, f"{index_name}-v0002")
        client.indices.delete(index=f"{index_name}-v0002", ignore_unavailable=True)
    done = transfer(client, plan(client, index_name, 0.5), watch=unwatched, patience=PATIENCE)
    assert everything(client, done.index) == moved(everything(client, old.index), 0.5)
    assert reindex_tasks.running(client, f"{index_name}-v0002") == []


def test_a_kill_under_the_write_block_is_made_up_for_by_the_next_run(client, index_name, monkeypatch):
    old = index(client, index_name, 20)
    with monkeypatch.context() as patch:
        patch.setattr("langshift.plugin.transfer.run._leave", lambda *_, **__: None)
        broken_off(client, index_name, "swapping")
    assert blocked(client, old.index)
    watch = Meanwhile(copying=interrupt, catching_up=lambda: client.index(index=index_name, id="n", body=document(1)))
    done = transfer(client, plan(client, index_name), watch=watch, patience=PATIENCE)
    assert "copying" not in watch.stages
    assert everything(client, done.index) == moved(everything(client, old.index))


def test_what_a_killed_run_has_blocked_is_released_before_its_version_is_dropped(client, index_name, monkeypatch):
    old = index(client, index_name, 20)
    with monkeypatch.context() as patch:
        patch.setattr("langshift.plugin.transfer.run._leave", lambda *_, **__: None)
        broken_off(client, index_name, "swapping")
    release_abandoned(client, index_name)
    assert not blocked(client, old.index)
    client.indices.delete(index=f"{index_name}-v0002")
    client.index(index=index_name, id="new", body=document(9))


def test_a_kill_right_after_the_swap_is_finished_quietly(client, index_name, monkeypatch):
    old = index(client, index_name, 20)
    monkeypatch.setattr("langshift.plugin.transfer.state.TransferMark.clear", lambda _: interrupt())
    with pytest.raises(Interrupted):
        transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    monkeypatch.undo()
    assert behind(client, index_name) == [f"{index_name}-v0002"]
    assert blocked(client, old.index)
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    assert (done.index, done.before, done.requested) == (f"{index_name}-v0002", old.index, {"add": 0.25})
    assert unfinished(client, done.index) is None
    assert finish_abandoned(client, index_name) is None


@pytest.mark.parametrize("stage", ["copying", "settling"])
def test_a_write_block_of_the_users_own_stays_on_what_is_live(client, index_name, stage):
    old = index(client, index_name, 5)
    client.indices.add_block(index=old.index, block="write")
    broken_off(client, index_name, stage)
    assert blocked(client, old.index)
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    assert blocked(client, done.index)
    with pytest.raises(AuthorizationException, match="index write"):
        client.index(index=index_name, id="new", body=document(1))

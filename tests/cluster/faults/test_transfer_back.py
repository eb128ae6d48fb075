"""The version before the live one becomes live again, and nothing that was written since is lost."""

from dataclasses import replace

import pytest
from opensearchpy.exceptions import AuthorizationException
from plain_index import PLAIN
from transferring import (
    Meanwhile,
    behind,
    blocked,
    document,
    everything,
    index,
    make_anew,
    moved,
    plan,
    unfinished,
    unwatched,
    way,
)

from langshift.errors import ClusterError
from langshift.plugin import metadata, version_writer
from langshift.plugin.transfer.run import roll_back, transfer

PATIENCE = 60.0


def retuned(client, name, documents=20, **settings):
    old = index(client, name, documents, **settings)
    return old.index, transfer(client, plan(client, name), watch=unwatched, patience=PATIENCE).index


def back(client, name, watch=unwatched):
    return roll_back(client, name, way(client, -0.25), watch=watch, patience=PATIENCE)


def restored(documents):
    """As the way back makes them: what it wrote has the stamp of that way."""
    return {key: (version, {**source, "shift": None}) for key, (version, source) in documents.items()}


def test_without_writes_since_the_version_before_is_as_it_was(client, index_name):
    old, new = retuned(client, index_name)
    before = everything(client, old)
    done = back(client, index_name)
    assert (done.index, done.before, done.kind, done.documents, done.caught_up) == (old, new, "retune", 20, 0)
    assert behind(client, index_name) == [old]
    assert everything(client, old) == before
    assert unfinished(client, old) is None
    assert not blocked(client, old)
    assert blocked(client, new)
    settings = client.indices.get_settings(index=old)[old]["settings"]["index"]
    assert not {"gc_deletes", "refresh_interval", "final_pipeline"} & set(settings)


@pytest.mark.parametrize("when", ["before", "catching up", "settling"])
def test_what_was_written_updated_and_deleted_since_is_carried_over(client, index_name, when):
    old, new = retuned(client, index_name)

    def write():
        client.index(index=index_name, id="new", body={**document(7), "tag": "later"})
        client.index(index=index_name, id="3", body=document(333))
        client.update(index=index_name, id="4", body={"doc": {"n": 444}})
        client.delete(index=index_name, id="5")
        client.delete(index=index_name, id="6")
        client.index(index=index_name, id="6", body=document(666))

    if when == "before":
        write()
    done = back(client, index_name, Meanwhile(**({when.replace(" ", "_"): write} if when != "before" else {})))
    live = everything(client, new)
    assert restored(everything(client, old)) == restored(moved(live, -0.25))
    assert behind(client, index_name) == [old]
    assert (done.documents, done.caught_up, done.deleted) == (20, 4, 1)
    client.index(index=index_name, id="after", body=document(1))


def test_a_document_made_anew_with_a_lower_version_is_carried_over_too(client, index_name):
    old, _ = retuned(client, index_name, gc_deletes="0s")
    client.index(index=index_name, id="3", body=document(30))
    back(client, index_name)
    transfer(client, plan(client, index_name, 0.5), watch=unwatched, patience=PATIENCE)
    (newer,) = behind(client, index_name)
    make_anew(client, index_name, "3", document(3))
    roll_back(client, index_name, way(client, -0.5), watch=unwatched, patience=PATIENCE)
    live = everything(client, newer)
    assert live["3", None][0] == 1
    assert restored(everything(client, old)) == restored(moved(live, -0.5))


STAGES = ["catching up", "settling", "blocked", "verifying", "swapping"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("killed", [True, False])
def test_a_break_leaves_the_live_version_serving_and_the_same_call_finishes(
    client, index_name, monkeypatch, stage, killed
):
    old, new = retuned(client, index_name)
    client.index(index=index_name, id="new", body=document(9))
    client.delete(index=index_name, id="3")

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if killed:
            patch.setattr("langshift.plugin.transfer.run._leave", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            back(client, index_name, Meanwhile(**{stage.replace(" ", "_"): interrupt}))
    assert behind(client, index_name) == [new]
    if not killed:
        assert not blocked(client, new)
        assert blocked(client, old)
        assert unfinished(client, old) is None
        client.index(index=index_name, id="newer", body=document(10))
    back(client, index_name)
    assert behind(client, index_name) == [old]
    assert restored(everything(client, old)) == restored(moved(everything(client, new), -0.25))
    assert blocked(client, new)
    assert not blocked(client, old)


def test_a_kill_right_after_the_swap_is_finished_and_not_another_step_back(client, index_name, monkeypatch):
    old, new = retuned(client, index_name)

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("langshift.plugin.transfer.state.TransferMark.clear", interrupt)
        with pytest.raises(KeyboardInterrupt):
            back(client, index_name)
    done = back(client, index_name)
    assert (done.index, done.before) == (old, new)
    assert behind(client, index_name) == [old]
    assert unfinished(client, old) is None


def test_a_retune_after_a_killed_rollback_clears_up_and_goes_its_own_way(client, index_name, monkeypatch):
    old, new = retuned(client, index_name)

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("langshift.plugin.transfer.run._leave", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            back(client, index_name, Meanwhile(swapping=interrupt))
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    assert behind(client, index_name) == [done.index] == [f"{index_name}-v0003"]
    assert done.before == new
    assert unfinished(client, old) is None
    assert blocked(client, old)


def test_the_users_own_write_block_stays_with_the_name(client, index_name):
    old, new = retuned(client, index_name, 3)
    client.indices.add_block(index=new, block="write")
    back(client, index_name)
    assert blocked(client, old)
    with pytest.raises(AuthorizationException, match="index write"):
        client.index(index=index_name, id="new", body=document(1))


def test_a_load_is_rolled_back_by_moving_the_alias(client, index_name):
    old = index(client, index_name, 3)
    load = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version")
    version_writer.publish(client, load)
    found = metadata.read_origin(client, load.index)
    assert (found.kind, found.version, found.uuid) == ("load", old.index, old.uuid)
    watch = Meanwhile()
    done = roll_back(client, index_name, None, watch=watch, patience=PATIENCE)
    assert replace(done, seconds=0.0).documents == 3
    assert (done.index, done.before, done.kind) == (old.index, load.index, "load")
    assert behind(client, index_name) == [old.index]
    assert watch.stages == ["swapping", "done"]
    client.index(index=index_name, id="new", body=document(1))


REMEDY = "use `langshift retune {} --alpha A` to create one with the alpha that you want."


def test_without_a_version_before_nothing_is_rolled_back(client, index_name):
    old = index(client, index_name, 3)
    with pytest.raises(ClusterError) as raised:
        back(client, index_name)
    assert str(raised.value) == f"There is no version of {index_name} before {old.index}: {REMEDY.format(index_name)}"


@pytest.mark.parametrize("anew", [False, True])
def test_a_version_that_was_dropped_or_made_anew_is_no_version_before(client, index_name, anew):
    old, new = retuned(client, index_name, 3)
    client.indices.delete(index=old)
    if anew:
        client.indices.create(index=old)
    with pytest.raises(ClusterError) as raised:
        back(client, index_name)
    assert str(raised.value) == f"The version before {new}, {old}, was dropped: {REMEDY.format(index_name)}"
    assert behind(client, index_name) == [new]

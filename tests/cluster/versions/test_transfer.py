"""A new version is made out of the live one while people write; everything they did is in it."""

import pytest
from opensearchpy.exceptions import AuthorizationException
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

from langshift.plugin import metadata
from langshift.plugin.metadata import uuid_of
from langshift.plugin.transfer.run import APART, roll_back, transfer

PATIENCE = 60.0


def test_a_version_is_made_with_every_document_and_takes_the_live_ones_place(client, index_name):
    old = index(client, index_name, 30)
    watch = Meanwhile()
    before = everything(client, old.index)
    done = transfer(client, plan(client, index_name), watch=watch, patience=PATIENCE)
    assert (done.index, done.before, done.documents) == (f"{index_name}-v0002", old.index, 30)
    assert (done.caught_up, done.deleted, done.requested) == (0, 0, {"add": 0.25})
    assert behind(client, index_name) == [done.index]
    assert everything(client, done.index) == moved(before)
    assert everything(client, old.index) == before
    assert unfinished(client, done.index) is None
    assert watch.stages == ["copying", "catching up", "settling", "blocked", "verifying", "swapping", "done"]


def test_the_new_version_has_the_settings_and_mappings_of_the_old_one(client, index_name):
    old = index(client, index_name, 3, refresh_interval="7s", number_of_shards=2)
    client.indices.put_mapping(index=old.index, body={"properties": {"sku": {"type": "keyword", "null_value": "-"}}})
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    ours, theirs = (client.indices.get(index=i)[i] for i in (done.index, old.index))
    assert ours["mappings"]["properties"] == theirs["mappings"]["properties"]
    of_one = ("uuid", "creation_date", "provided_name", "version", "blocks")
    assert _without(ours["settings"]["index"], of_one) == _without(theirs["settings"]["index"], of_one)


def _without(settings, names):
    return {name: value for name, value in settings.items() if name not in names}


def test_the_old_version_takes_no_writes_any_more_and_the_new_one_says_where_it_came_from(client, index_name):
    old = index(client, index_name, 3)
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    with pytest.raises(AuthorizationException, match="index write"):
        client.index(index=old.index, id="late", body=document(1))
    client.index(index=index_name, id="new", body=document(1), params={"require_alias": "true"})
    assert not blocked(client, done.index)
    found = metadata.read_origin(client, done.index)
    assert (found.kind, found.version, found.uuid) == ("retune", old.index, uuid_of(client, old.index))
    assert found.checkpoint == (2,)


STAGES = ["copying", "catching_up", "settling"]


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_written_updated_and_deleted_meanwhile_is_in_the_new_version(client, index_name, stage):
    old = index(client, index_name, 40)

    def write():
        client.index(index=index_name, id="new", body={**document(7), "tag": "later"})
        client.index(index=index_name, id="3", body=document(333))
        client.update(index=index_name, id="4", body={"doc": {"n": 444}})
        client.delete(index=index_name, id="5")
        client.delete(index=index_name, id="6")
        client.index(index=index_name, id="6", body=document(666))

    done = transfer(client, plan(client, index_name), watch=Meanwhile(**{stage: write}), patience=PATIENCE)
    live = everything(client, old.index)
    assert everything(client, done.index) == moved(live)
    assert len(live) == done.documents == 40
    assert live["6", None][1]["n"] == 666


@pytest.mark.parametrize("stage", STAGES)
def test_a_document_made_anew_with_a_lower_version_replaces_its_predecessor(client, index_name, stage):
    old = index(client, index_name, 5, gc_deletes="0s")
    client.index(index=index_name, id="3", body=document(30))
    client.index(index=index_name, id="3", body=document(31))

    def anew():
        make_anew(client, index_name, "3", document(3))

    done = transfer(client, plan(client, index_name), watch=Meanwhile(**{stage: anew}), patience=PATIENCE)
    live = everything(client, old.index)
    assert live["3", None][0] == 1
    assert everything(client, done.index) == moved(live)


def test_a_document_made_anew_right_after_the_copy_was_deleted_is_not_lost(client, index_name, monkeypatch):
    """The target remembers a deleted document for a moment, in a later version than the new one has."""
    old, copy = index(client, index_name, 5, gc_deletes="0s"), f"{index_name}-v0002"
    monkeypatch.setitem(APART, "gc_deletes", "4s")

    def anew():
        client.delete(index=copy, id="3", params={"version_type": "external", "version": 8})
        client.index(index=index_name, id="3", body=document(33))

    done = transfer(client, plan(client, index_name), watch=Meanwhile(settling=anew), patience=PATIENCE)
    assert done.documents == 5
    assert everything(client, done.index) == moved(everything(client, old.index))


def test_an_index_that_gives_few_documents_at_once_is_copied_too(client, index_name):
    old = index(client, index_name, 30, max_result_window=7)
    done = transfer(
        client,
        plan(client, index_name),
        watch=Meanwhile(catching_up=lambda: client.delete(index=index_name, id="3")),
        patience=PATIENCE,
    )
    assert (done.documents, done.deleted) == (29, 1)
    for version in (old.index, done.index):
        client.indices.put_settings(index=version, body={"index": {"max_result_window": None}})
    assert everything(client, done.index) == moved(everything(client, old.index))


def test_sixteen_slices_make_what_one_makes(client, index_name, monkeypatch):
    begun, reindex = [], client.reindex

    def noted(**request):
        begun.append((request["params"].get("slices", 1), request["body"]["source"]["size"]))
        return reindex(**request)

    monkeypatch.setattr(client, "reindex", noted)
    old = index(client, index_name, 400, number_of_shards=16)
    expected = moved(everything(client, old.index))
    one, many = (plan(client, index_name, **slices) for slices in ({"slices": 1}, {}))
    first = transfer(client, one, watch=unwatched, patience=PATIENCE)
    assert everything(client, first.index) == expected
    roll_back(client, index_name, way(client, -0.25), watch=unwatched, patience=PATIENCE)
    second = transfer(client, many, watch=unwatched, patience=PATIENCE)
    assert (second.documents, second.index != first.index) == (400, True)
    assert everything(client, second.index) == expected
    # Each slice is a shard; together they hold no more documents than eight.
    assert begun == [(1, 1000), (16, 500)]


@pytest.mark.parametrize("stage", STAGES)
def test_shards_of_uneven_numbers_of_writes_are_each_caught_up(client, index_name, stage):
    old = index(client, index_name, 0, number_of_shards=3)
    for number in range(30):
        client.index(index=old.index, id=f"a{number}", routing="a", body=document(number))
    client.index(index=old.index, id="b", routing="d", body=document(1))

    def write():
        for number, routing in enumerate("abcdefgh"):
            client.index(index=index_name, id=f"m{number}", routing=routing, body=document(number))
            client.index(index=index_name, id="same", routing=routing, body=document(100 + number))
        client.delete(index=index_name, id="same", routing="c")
        client.delete(index=index_name, id="a7", routing="a")

    done = transfer(client, plan(client, index_name), watch=Meanwhile(**{stage: write}), patience=PATIENCE)
    live = everything(client, old.index)
    assert everything(client, done.index) == moved(live)


def test_more_documents_than_one_task_takes_are_caught_up_shard_by_shard(client, index_name, monkeypatch):
    monkeypatch.setattr("langshift.plugin.transfer.copying._FEW", 3)
    old = index(client, index_name, 30, number_of_shards=3)

    def write():
        for number in range(20):
            client.index(index=index_name, id=f"m{number}", body=document(number))

    done = transfer(client, plan(client, index_name), watch=Meanwhile(copying=write), patience=PATIENCE)
    assert everything(client, done.index) == moved(everything(client, old.index))
    assert done.caught_up == 20


def test_versions_that_a_writer_gives_himself_stay_and_go_on(client, index_name):
    old = index(client, index_name, 3)
    given = {"version_type": "external"}
    client.index(index=index_name, id="x", body=document(1), params={**given, "version": 700})

    def write():
        client.index(index=index_name, id="x", body=document(2), params={**given, "version": 900})

    done = transfer(client, plan(client, index_name), watch=Meanwhile(catching_up=write), patience=PATIENCE)
    assert everything(client, done.index) == moved(everything(client, old.index))
    assert everything(client, done.index)["x", None][0] == 900
    client.index(index=index_name, id="x", body=document(3), params={**given, "version": 901})


def test_documents_without_vectors_are_copied_as_they_are(client, index_name):
    old = index(client, index_name, 2)
    client.index(index=index_name, id="bare", body={"n": 5, "words": ["a", "b"], "deep": {"er": 1.5}})
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    assert everything(client, done.index) == moved(everything(client, old.index))


def test_a_field_that_is_mapped_meanwhile_is_mapped_alike_in_the_new_version(client, index_name):
    old = index(client, index_name, 2)

    def write():
        client.indices.put_mapping(
            index=old.index, body={"properties": {"shift": {"properties": {"more": {"type": "long"}}}}}
        )
        client.indices.put_mapping(index=old.index, body={"properties": {"when": {"type": "date"}}})
        client.index(index=index_name, id="dated", body={"when": "2020-01-01"})

    done = transfer(client, plan(client, index_name), watch=Meanwhile(catching_up=write), patience=PATIENCE)
    ours, theirs = (client.indices.get_mapping(index=i)[i]["mappings"]["properties"] for i in (done.index, old.index))
    assert ours == theirs


def test_documents_go_through_no_pipeline_on_the_way(client, index_name):
    client.ingest.put_pipeline(id=index_name, body={"processors": [{"set": {"field": "piped", "value": True}}]})
    try:
        old = index(client, index_name, 3, default_pipeline=index_name, final_pipeline=index_name)
        before = everything(client, old.index)
        client.indices.put_settings(index=old.index, body={"index": {"default_pipeline": "_none"}})
        done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
        assert everything(client, done.index) == moved(before)
        settings = client.indices.get_settings(index=done.index)[done.index]["settings"]["index"]
        assert settings["final_pipeline"] == index_name
        assert "gc_deletes" not in settings
    finally:
        client.indices.put_settings(
            index=f"{index_name}-v*", body={"index": {"final_pipeline": "_none", "default_pipeline": "_none"}}
        )
        client.ingest.delete_pipeline(id=index_name)


def test_what_the_alias_has_of_its_own_moves_with_it(client, index_name):
    old = index(client, index_name, 3)
    own = {"filter": {"range": {"n": {"gte": 1}}}, "index_routing": "r", "search_routing": "r", "is_write_index": True}
    client.indices.put_alias(index=old.index, name=index_name, body=own)
    done = transfer(client, plan(client, index_name), watch=unwatched, patience=PATIENCE)
    assert client.indices.get_alias(name=index_name) == {done.index: {"aliases": {index_name: own}}}

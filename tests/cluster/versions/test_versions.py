"""Versions of an index: made, added to, put in the place of another."""

from dataclasses import replace

import pytest
from plain_index import PLAIN, made

from langshift.errors import ClusterError, FingerprintError, UsageError
from langshift.plugin import metadata, version_writer, versions


@pytest.fixture
def alias_requests(client, monkeypatch):
    """The bodies of all requests that change aliases."""
    seen = []
    real = client.indices.update_aliases

    def update(**arguments):
        seen.append(arguments["body"]["actions"])
        return real(**arguments)

    monkeypatch.setattr(client.indices, "update_aliases", update)
    return seen


def test_an_index_that_exists_is_refused_with_the_ways_there_are(client, index_name):
    made(client, index_name, 2)
    with pytest.raises(UsageError) as refused:
        version_writer.open_for_writing(client, index_name, PLAIN)
    assert str(refused.value) == (
        f"Index {index_name} already exists ({index_name}-v0001, 2 documents): add to it with --if-exists append, "
        "replace it with --if-exists replace, or create a new version of it with --if-exists new-version."
    )
    assert list(versions.versions_of(client, index_name)) == [f"{index_name}-v0001"]


@pytest.mark.parametrize("if_exists", ["fail", "append", "replace", "new-version"])
def test_where_there_is_none_a_version_is_made_whatever_is_asked_for(client, index_name, if_exists):
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists=if_exists)
    assert (target.index, target.created, target.live) == (f"{index_name}-v0001", True, None)
    assert list(versions.unfinished(client, index_name)) == [target.index]
    assert versions.version_behind(client, index_name) is None
    version_writer.publish(client, target)
    assert versions.unfinished(client, index_name) == {}
    assert versions.version_behind(client, index_name) == target.index


def test_adding_goes_to_the_live_version_and_changes_none_of_its_settings(client, index_name):
    made(client, index_name)
    before = client.indices.get(index=index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="append", fast=True)
    assert (target.index, target.created, target.live) == (f"{index_name}-v0001", False, f"{index_name}-v0001")
    assert client.indices.get(index=index_name) == before
    version_writer.discard(client, target)
    version_writer.publish(client, target)
    assert client.indices.get(index=index_name) == before


def test_adding_vectors_of_another_making_is_refused_but_a_new_version_may_have_them(client, index_name):
    made(client, index_name)
    other = replace(PLAIN, revision="2")
    with pytest.raises(FingerprintError) as refused:
        version_writer.open_for_writing(client, index_name, other, if_exists="append")
    assert str(refused.value) == (
        f"Index {index_name} was built with revision 1, not 2: "
        "use the settings it was built with, or choose another index name."
    )
    version_writer.publish(client, version_writer.open_for_writing(client, index_name, other, if_exists="new-version"))
    assert versions.live(client, index_name).fingerprint == other


@pytest.mark.parametrize("if_exists", ["append", "replace", "new-version"])
def test_an_index_of_somebody_else_behind_the_alias_is_left_alone(client, index_name, if_exists):
    client.indices.create(index=f"{index_name}-theirs", body={"aliases": {index_name: {}}})
    with pytest.raises(ClusterError, match=r"-theirs has no langshift fingerprint: it was not created by"):
        version_writer.open_for_writing(client, index_name, PLAIN, if_exists=if_exists)
    assert list(client.indices.get(index=f"{index_name}*")) == [f"{index_name}-theirs"]


@pytest.mark.parametrize(("if_exists", "kept"), [("replace", ["v0002"]), ("new-version", ["v0001", "v0002"])])
def test_a_new_version_takes_the_place_in_one_request(client, index_name, alias_requests, if_exists, kept):
    old = made(client, index_name, 2)
    alias_requests.clear()
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists=if_exists)
    assert (target.index, target.created, target.live) == (f"{index_name}-v0002", True, old.index)
    assert versions.live(client, index_name).index == old.index
    version_writer.publish(client, target)
    assert alias_requests == [
        [
            {"remove": {"index": old.index, "alias": index_name, "must_exist": True}},
            {"add": {"index": target.index, "alias": index_name}},
        ]
    ]
    assert versions.live(client, index_name).index == target.index
    assert list(versions.versions_of(client, index_name)) == [f"{index_name}-{version}" for version in kept]
    assert metadata.unfinished(client, target.index) is None


def test_what_took_the_place_meanwhile_is_not_replaced(client, index_name):
    old = made(client, index_name)
    first = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="replace")
    version_writer.publish(client, version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version"))
    with pytest.raises(ClusterError) as refused:
        version_writer.publish(client, first)
    assert str(refused.value) == (
        f"{index_name} pointed to {old.index} when this load began and now points to {index_name}-v0003, so "
        f"it was not pointed to {first.index}: run the load again."
    )
    assert versions.live(client, index_name).index == f"{index_name}-v0003"
    assert old.index in versions.versions_of(client, index_name)


def test_what_was_deleted_meanwhile_is_not_brought_back(client, index_name):
    old = made(client, index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="replace")
    client.indices.delete(index=old.index)
    with pytest.raises(ClusterError) as refused:
        version_writer.publish(client, target)
    assert str(refused.value) == (
        f"{index_name} pointed to {old.index} when this load began and no longer exists, so it was not pointed to "
        f"{target.index}: run the load again."
    )


def test_a_swap_that_comes_between_is_refused_by_the_server(client, index_name, monkeypatch):
    old = made(client, index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="replace")
    other = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version")
    real = client.indices.refresh

    def swap_first(**arguments):
        monkeypatch.undo()
        version_writer.publish(client, other)
        return real(**arguments)

    monkeypatch.setattr(client.indices, "refresh", swap_first)
    with pytest.raises(ClusterError) as refused:
        version_writer.publish(client, target)
    assert str(refused.value) == (
        f"{index_name} pointed to {old.index} when this load began and now points to {other.index}, so "
        f"it was not pointed to {target.index}: run the load again."
    )
    assert versions.live(client, index_name).index == other.index


@pytest.mark.parametrize("write_after", [False, True], ids=["gone", "made anew by a write"])
def test_a_version_that_was_deleted_is_not_published(client, index_name, write_after):
    old = made(client, index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="replace")
    client.indices.delete(index=target.index)
    if write_after:
        client.index(index=target.index, body={"text": "made anew"})
    with pytest.raises(ClusterError) as refused:
        version_writer.publish(client, target)
    assert str(refused.value) == f"Index {target.index} was deleted while it was being written: run the command again."
    version_writer.discard(client, target)
    assert list(versions.versions_of(client, index_name)) == [old.index]


@pytest.mark.parametrize("now", ["another version", "nothing"])
def test_adding_to_what_the_alias_does_not_stand_for_any_more_is_said(client, index_name, now):
    made(client, index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="append")
    if now == "another version":
        version_writer.publish(
            client, version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version")
        )
        told = f"now points to {index_name}-v0002"
    else:
        client.indices.delete_alias(index=target.index, name=index_name)
        told = "no longer exists"
    with pytest.raises(ClusterError) as refused:
        version_writer.publish(client, target)
    assert str(refused.value) == (
        f"{index_name} {told}, but this load has added its documents to {target.index}: run the load again."
    )


def test_discarding_removes_the_version_but_never_one_that_is_live_or_anothers(client, index_name):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    version_writer.discard(client, target)
    version_writer.discard(client, target)
    assert list(versions.versions_of(client, index_name)) == []
    another = version_writer.open_for_writing(client, index_name, PLAIN)
    assert another.index == target.index
    version_writer.discard(client, target)
    version_writer.publish(client, another)
    version_writer.discard(client, another)
    assert versions.live(client, index_name).index == another.index

"""Settings of a load: set where the index is new, put back whatever happens."""

import pytest
from plain_index import PLAIN

from langshift.plugin import metadata, version_writer, versions

NAMES = ("refresh_interval", "auto_expand_replicas", "number_of_replicas")
FAST = {"refresh_interval": "-1", "auto_expand_replicas": "false", "number_of_replicas": "0"}


def settings(client, index):
    """Those settings of an index that a load may change; a default is not listed."""
    client.cluster.health(index=index, params={"wait_for_status": "yellow", "wait_for_events": "languid"})
    found = client.indices.get_settings(index=index)[index]["settings"]["index"]
    return {name: found[name] for name in NAMES if name in found}


@pytest.fixture
def usual(client, index_name):
    """What the template gives on this cluster, however many nodes it has."""
    target = version_writer.open_for_writing(client, f"{index_name}-usual", PLAIN)
    version_writer.restore(client, target.index)
    found = settings(client, target.index)
    assert found["auto_expand_replicas"] == "0-1"
    assert "refresh_interval" not in found
    return found


def test_a_new_version_does_not_refresh_during_the_load_and_keeps_its_replicas(client, index_name, usual):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    assert settings(client, target.index) == {**usual, "refresh_interval": "-1"}
    client.index(index=target.index, id="a", body={})
    version_writer.publish(client, target)
    assert settings(client, target.index) == usual
    assert metadata.read_metadata(client, target.index).keys() == {metadata.FINGERPRINT, metadata.ORIGIN}
    assert versions.live(client, index_name).documents == 1


def test_a_fast_load_does_without_replicas_until_the_version_is_published(client, index_name, usual):
    target = version_writer.open_for_writing(client, index_name, PLAIN, fast=True)
    assert settings(client, target.index) == FAST
    version_writer.publish(client, target)
    assert settings(client, target.index) == usual


@pytest.mark.parametrize("fast", [False, True])
def test_what_a_dead_load_has_changed_is_put_back_by_the_next_run_any_number_of_times(client, index_name, usual, fast):
    target = version_writer.open_for_writing(client, index_name, PLAIN, fast=fast)
    for _ in range(3):
        version_writer.restore(client, target.index)
        assert settings(client, target.index) == usual
    assert list(versions.unfinished(client, index_name)) == [target.index]
    client.indices.put_settings(index=target.index, body={"index": {"refresh_interval": "5s"}})
    version_writer.restore(client, target.index)
    assert settings(client, target.index) == {**usual, "refresh_interval": "5s"}


def test_putting_back_where_nothing_is_left_or_nothing_is_there_is_no_error(client, index_name):
    version_writer.restore(client, f"{index_name}-v0001")
    client.indices.create(index=f"{index_name}-theirs", body={"settings": {"refresh_interval": "7s"}})
    version_writer.restore(client, f"{index_name}-theirs")
    assert settings(client, f"{index_name}-theirs")["refresh_interval"] == "7s"


@pytest.mark.parametrize(("first", "then"), [(False, False), (False, True), (True, True), (True, False)])
@pytest.mark.parametrize("put_back_between", [False, True])
def test_a_load_that_is_gone_on_with_has_its_settings_again(client, index_name, usual, first, then, put_back_between):
    target = version_writer.open_for_writing(client, index_name, PLAIN, fast=first)
    if put_back_between:
        version_writer.restore(client, target.index)
    again = version_writer.reopen(client, index_name, target.index, target.uuid, fast=then)
    assert again == target
    assert settings(client, target.index) == (FAST if then else {**usual, "refresh_interval": "-1"})
    version_writer.publish(client, again)
    assert settings(client, target.index) == usual


def test_a_run_that_dies_while_it_sets_them_leaves_what_can_be_put_back(client, index_name, usual, monkeypatch):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    version_writer.restore(client, target.index)

    def die(**_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(client.indices, "put_settings", die)
        with pytest.raises(KeyboardInterrupt):
            version_writer.reopen(client, index_name, target.index, target.uuid, fast=True)
    version_writer.restore(client, target.index)
    assert settings(client, target.index) == usual


def test_adding_to_an_index_leaves_what_its_owner_has_set(client, index_name):
    version_writer.publish(client, version_writer.open_for_writing(client, index_name, PLAIN))
    index = f"{index_name}-v0001"
    client.indices.put_settings(index=index, body={"index": {"refresh_interval": "30s", "auto_expand_replicas": "0-2"}})
    before = settings(client, index)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="append", fast=True)
    version_writer.restore(client, target.index)
    version_writer.reopen(client, index_name, target.index, target.uuid, fast=True)
    version_writer.publish(client, target)
    assert settings(client, index) == before

"""Versions of a load that was cut off: opened again, and published whatever was done already."""

import re

import pytest
from plain_index import PLAIN, made

from langshift.errors import ClusterError
from langshift.plugin import metadata, version_writer, versions


def killed_before(monkeypatch, module, name):
    """Let a publish die right before it calls a function."""

    def die(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, die)


@pytest.mark.parametrize("if_exists", ["replace", "new-version"])
def test_a_load_that_was_cut_off_opens_its_version_again(client, index_name, if_exists):
    made(client, index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists=if_exists)
    assert version_writer.reopen(client, index_name, target.index, target.uuid) == target
    added = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="append")
    assert version_writer.reopen(client, index_name, added.index, added.uuid) == added


def test_a_version_that_is_gone_cannot_be_opened_again(client, index_name):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    client.indices.delete(index=target.index)
    told = f"Index {target.index}, which this load was writing to, was deleted: run the load again without --resume."
    with pytest.raises(ClusterError, match=f"^{re.escape(told)}$"):
        version_writer.reopen(client, index_name, target.index, target.uuid)
    # Another load has the name now.
    version_writer.open_for_writing(client, index_name, PLAIN)
    with pytest.raises(ClusterError, match=f"^{re.escape(told)}$"):
        version_writer.reopen(client, index_name, target.index, target.uuid)


def test_a_version_that_another_took_the_place_of_cannot_be_added_to_again(client, index_name):
    made(client, index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="append")
    version_writer.publish(client, version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version"))
    with pytest.raises(ClusterError) as refused:
        version_writer.reopen(client, index_name, target.index, target.uuid)
    assert str(refused.value) == (
        f"{index_name} no longer points to {target.index}, to which this load was adding: run the load again without "
        "--resume."
    )


@pytest.mark.parametrize("if_exists", ["replace", "new-version"])
@pytest.mark.parametrize("step", ["update_aliases", "delete", "put_mapping", None])
def test_a_publish_that_is_killed_at_any_step_is_completed_by_the_next_run(
    client, index_name, monkeypatch, if_exists, step
):
    old = made(client, index_name)
    target = version_writer.open_for_writing(client, index_name, PLAIN, if_exists=if_exists, fast=True)
    client.index(index=target.index, id="a", body={})
    with monkeypatch.context() as patched:
        if step is not None:
            killed_before(patched, client.indices, step)
        try:
            version_writer.publish(client, target)
        except KeyboardInterrupt:
            assert step is not None
    again = version_writer.reopen(client, index_name, target.index, target.uuid, fast=True)
    for _ in range(2):
        version_writer.publish(client, again)
        version_writer.discard(client, again)
    kept = [target.index] if if_exists == "replace" else [old.index, target.index]
    assert list(versions.versions_of(client, index_name)) == kept
    assert (versions.live(client, index_name).index, versions.live(client, index_name).documents) == (target.index, 1)
    assert metadata.read_metadata(client, target.index).keys() == {metadata.FINGERPRINT, metadata.ORIGIN}
    settings = client.indices.get_settings(index=target.index)[target.index]["settings"]["index"]
    assert ("refresh_interval" in settings, settings["auto_expand_replicas"]) == (False, "0-1")


def test_a_live_version_is_not_unfinished_though_its_mark_was_left(client, index_name, monkeypatch):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    killed_before(monkeypatch, version_writer, "finish")
    with pytest.raises(KeyboardInterrupt):
        version_writer.publish(client, target)
    assert versions.unfinished(client, index_name) == {}
    assert versions.live(client, index_name).index == target.index

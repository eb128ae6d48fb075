"""What can never become live is refused with a sentence, and goes; the live version serves on."""

import pytest
from transferring import Meanwhile, behind, blocked, document, index, plan, unfinished, unwatched

from langshift.errors import ClusterError
from langshift.plugin.transfer.run import transfer

PATIENCE = 60.0


@pytest.mark.parametrize("slices", [1, 3])
def test_a_document_that_the_script_refuses_ends_it_with_the_scripts_own_sentence(client, index_name, slices):
    old = index(client, index_name, 20)
    client.index(index=index_name, id="bad", body={"embedding": [1, 2, 3, 4]})
    with pytest.raises(ClusterError) as raised:
        transfer(client, plan(client, index_name, slices=slices), watch=unwatched, patience=PATIENCE)
    assert str(raised.value) == "The document bad has no stamp."
    assert behind(client, index_name) == [old.index]
    assert not client.indices.exists(index=f"{index_name}-v0002")
    client.index(index=index_name, id="more", body=document(1))


def test_a_refused_document_that_is_written_meanwhile_ends_it_too(client, index_name):
    old = index(client, index_name, 20)

    def write():
        client.index(index=index_name, id="bad", body={"embedding": [1, 2, 3, 4]})

    with pytest.raises(ClusterError) as raised:
        transfer(client, plan(client, index_name), watch=Meanwhile(settling=write), patience=PATIENCE)
    assert str(raised.value) == "The document bad has no stamp."
    assert not blocked(client, old.index)
    assert not client.indices.exists(index=f"{index_name}-v0002")


def test_an_index_that_leaves_fields_out_of_its_source_is_refused(client, index_name):
    old = index(client, index_name)
    asked = plan(client, index_name)
    asked.body["mappings"]["_source"] = {"excludes": ["embedding"]}
    with pytest.raises(ClusterError) as raised:
        transfer(client, asked, watch=unwatched, patience=PATIENCE)
    assert str(raised.value) == (
        f"Index {old.index} leaves fields out of _source, which a copy would not have: load the corpus again."
    )


def test_an_index_that_is_not_there_is_said_to_be_missing(client, index_name):
    old = index(client, index_name)
    asked = plan(client, index_name)
    client.indices.delete(index=old.index)
    with pytest.raises(ClusterError) as raised:
        transfer(client, asked, watch=unwatched, patience=PATIENCE)
    assert str(raised.value) == (
        f"There is no index {index_name}: create it with `langshift ingest CORPUS --index {index_name}`."
    )


def test_a_gate_that_refuses_ends_it_and_the_version_goes(client, index_name):
    old = index(client, index_name, 5)
    seen = []

    def gate(version):
        seen.append((version, client.count(index=version)["count"]))
        raise ClusterError("The new version is worse.")

    with pytest.raises(ClusterError) as raised:
        transfer(client, plan(client, index_name), watch=unwatched, gate=gate, patience=PATIENCE)
    assert str(raised.value) == "The new version is worse."
    assert seen == [(f"{index_name}-v0002", 5)]
    assert not client.indices.exists(index=f"{index_name}-v0002")
    assert behind(client, index_name) == [old.index]
    assert not blocked(client, old.index)
    assert unfinished(client, old.index) is None


def test_a_copy_that_is_not_what_was_expected_never_becomes_live(client, index_name):
    old = index(client, index_name, 5)

    def meddle():
        client.index(index=f"{index_name}-v0002", id="3", body={**document(3), "n": 4})

    with pytest.raises(ClusterError) as raised:
        transfer(client, plan(client, index_name), watch=Meanwhile(settling=meddle), patience=PATIENCE)
    assert str(raised.value) == (
        f"{index_name}-v0002 is not as expected for a retune of {old.index} (document 3 has version 2, not 1), "
        f"so {index_name} still points to {old.index}: run the command again."
    )
    assert not client.indices.exists(index=f"{index_name}-v0002")
    assert not blocked(client, old.index)

"""A name that stands for several indices, a foreign one or none: told by all commands, and put right by rollback."""

import json

import pytest
from command_line import langshift, refusal
from given_data import run
from plain_index import PLAIN
from shifted_index import Corpus, language_vectors, printed, require_vectors, saved

from langshift.plugin import version_writer, versions

pytestmark = pytest.mark.usefixtures("cluster_env")


def live_and_unfinished(client, name):
    target = version_writer.open_for_writing(client, name, PLAIN, if_exists="new-version")
    put(client, name, target.index)


def live_and_foreign(client, name):
    client.indices.create(index=f"{name}-theirs")
    put(client, name, f"{name}-theirs")


def replaced_and_live(client, name):
    printed(run("retune", name, "--alpha", 0.5, "--json"))
    put(client, name, f"{name}-v0001")


def rolled_back_and_replaced(client, name):
    printed(run("retune", name, "--alpha", 0.5, "--json"))
    printed(run("rollback", name, "--json"))
    put(client, name, f"{name}-v0002")


def foreign_alone(client, name):
    live_and_foreign(client, name)
    client.indices.delete_alias(index=f"{name}-v0001", name=name)


def unfinished_and_foreign(client, name):
    live_and_unfinished(client, name)
    foreign_alone(client, name)


def put(client, name, index):
    client.indices.put_alias(index=index, name=name)


# What has happened -> the finished version that the name stands for among others.
BROKEN = {
    live_and_unfinished: "v0001",
    live_and_foreign: "v0001",
    replaced_and_live: "v0002",
    rolled_back_and_replaced: "v0001",
    foreign_alone: None,
    unfinished_and_foreign: None,
}


@pytest.fixture
def name(index_name, tmp_path):
    """An index that can be retuned."""
    Corpus(tmp_path, each=1).ingest(index_name, "--vectors", saved(tmp_path, language_vectors()), "--alpha", 1)
    return index_name


@pytest.mark.parametrize(("happened", "version"), BROKEN.items(), ids=[each.__name__ for each in BROKEN])
def test_a_broken_alias_is_told_and_repaired(client, name, tmp_path, happened, version):
    happened(client, name)
    behind = sorted(client.indices.get_alias(name=name))
    there = sorted(client.indices.get(index=f"{name}*"))
    if len(behind) > 1:
        what = f"is an alias of {len(behind)} indices ({', '.join(behind)}), but should point to one version"
    else:
        what = f"points to {behind[0]}, which is not a version of it"
    told = f"{name} {what}: choose one with `langshift rollback {name} --to VERSION`, which removes no index."
    corpus = str(tmp_path / "corpus.jsonl")
    for command in (
        ("search", name, "Text"),
        ("retune", name, "--alpha", 0.7),
        ("reencode", name, "--encoder", "e5-small"),
        ("rollback", name),
        ("pipeline", "install", name),
        ("index", "drop", name, "--yes"),
        *(
            ("ingest", corpus, "--index", name, "--encoder", "given", "--alpha", 0, "--if-exists", one)
            for one in ("append", "replace")
        ),
    ):
        assert refusal(langshift(*command)) == told
    assert told in json.loads(langshift("index", "list", "--json").stdout)["remarks"]
    assert told in " ".join(langshift("index", "list").stderr.split())
    findings = json.loads(langshift("doctor", "--json").stdout)["findings"]
    assert told in [one["remedy"] for one in findings if one["name"] == f"index {name}"]
    if version is None:
        assert refusal(langshift("index", "describe", name)) == told
    else:
        described = printed(run("index", "describe", name, "--json"))
        assert (described["version"], described["remarks"][0]) == (f"{name}-{version}", told)
    there_alone = f"{name}-{version or 'v0001'}"
    assert refusal(langshift("rollback", name, "--to", 7)).startswith(f"{name} has no version '7': it has {name}-v0001")
    if "unfinished" in happened.__name__:
        assert refusal(langshift("rollback", name, "--to", 2)) == (
            f"Version {name}-v0002 is not finished: name one that is (see `langshift index list`)."
        )
    assert sorted(client.indices.get_alias(name=name)) == behind
    done = langshift("rollback", name, "--to", version or "v0001")
    taken = " and ".join(one for one in behind if one != there_alone)
    assert done.stdout == (
        f"{name} points to {there_alone} alone: 8 documents. It was taken away from {taken}; no index was removed.\n"
    )
    assert sorted(client.indices.get(index=f"{name}*")) == there
    assert versions.version_behind(client, name) == there_alone
    alpha = 0.5 if version == "v0002" else 1.0
    require_vectors(client, name, Corpus(tmp_path, each=1), language_vectors(), alpha)
    assert not [one for one in json.loads(langshift("index", "list", "--json").stdout)["remarks"] if name in one]
    assert refusal(langshift("rollback", name, "--to", there_alone)) == (
        f"{name} already points to {there_alone}: name another version, or leave --to out."
    )
    printed(run("index", "drop", name, "--yes", "--json"))


def test_a_version_that_was_replaced_takes_writes_again(client, name):
    replaced_and_live(client, name)
    done = printed(run("rollback", name, "--to", 1, "--json"))
    assert done == {
        "name": name,
        "index": f"{name}-v0001",
        "removed_from": [f"{name}-v0002"],
        "documents": 8,
        "chunks": None,
    }
    client.index(index=name, id="new", body={"language": "de"})


def test_a_name_that_was_taken_away_altogether_is_made_again(client, name):
    client.indices.delete_alias(index=f"{name}-v0001", name=name)
    assert refusal(langshift("rollback", name)) == f"There is no index {name}: nothing can be rolled back."
    assert langshift("rollback", name, "--to", 1).stdout == f"{name} points to {name}-v0001 alone: 8 documents.\n"
    assert versions.version_behind(client, name) == f"{name}-v0001"


def test_what_langshift_has_not_made_is_left_alone(client, index_name):
    for one in ("a", "b"):
        client.indices.create(index=f"{index_name}-{one}", body={"aliases": {index_name: {}}})
    assert refusal(langshift("search", index_name, "x")) == (
        f"{index_name} is an alias of 2 indices ({index_name}-a, {index_name}-b): choose another name."
    )
    assert refusal(langshift("rollback", index_name, "--to", 1)) == (
        f"{index_name} is an alias of 2 indices ({index_name}-a, {index_name}-b): choose another name."
    )
    assert sorted(client.indices.get_alias(name=index_name)) == [f"{index_name}-a", f"{index_name}-b"]

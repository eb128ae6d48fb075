"""A name that stands for several indices, or for a foreign one: told by all commands, and put right by one."""

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


# What has happened -> the version that the name points to afterwards.
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
    told = f"{name} {what}: repair it with `langshift index repair {name}`, which removes no index."
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
    asked = refusal(langshift("index", "repair", name))
    assert asked.startswith(f"This would take the alias {name} away from ")
    assert asked.endswith(": without a terminal, confirm with --yes.")
    assert sorted(client.indices.get_alias(name=name)) == behind
    done = langshift("index", "repair", name, "--yes")
    assert (done.returncode, done.stdout.endswith(". No index was removed.\n")) == (0, True)
    assert sorted(client.indices.get(index=f"{name}*")) == there
    assert versions.version_behind(client, name) == (version and f"{name}-{version}")
    if version is None:
        assert f"`langshift rollback {name} --to VERSION`" in done.stdout
        assert f"{name}-v0001 (kept, 8 documents" in done.stdout.replace("9 documents", "8 documents")
        assert "points to no version" in done.stdout
    else:
        alpha = 0.5 if version == "v0002" else 1.0
        require_vectors(client, name, Corpus(tmp_path, each=1), language_vectors(), alpha)
    assert not [one for one in json.loads(langshift("index", "list", "--json").stdout)["remarks"] if name in one]
    assert langshift("index", "repair", name, "--yes").stdout == (
        f"Nothing to repair: {name} points to {name}-{version} alone.\n"
        if version
        else f"Nothing to repair: {name} points to no version.\n"
    )
    printed(run("index", "drop", name, "--yes", "--json"))


def test_what_langshift_has_not_made_is_left_alone(client, index_name):
    for one in ("a", "b"):
        client.indices.create(index=f"{index_name}-{one}", body={"aliases": {index_name: {}}})
    assert refusal(langshift("search", index_name, "x")) == (
        f"{index_name} is an alias of 2 indices ({index_name}-a, {index_name}-b): choose another name."
    )
    assert refusal(langshift("index", "repair", index_name, "--yes")) == (
        f"There is no index {index_name}: `langshift index list` lists the existing indices."
    )
    assert sorted(client.indices.get_alias(name=index_name)) == [f"{index_name}-a", f"{index_name}-b"]

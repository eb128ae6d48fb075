"""``langshift index list``, ``describe`` and ``drop``."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest
from command_line import LANGSHIFT, langshift, refusal
from plain_index import PLAIN, made
from readable_tables import look_at_tables

from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.plugin import inventory, metadata, pipelines, version_writer, versions
from langshift.plugin import inventory as overview
from langshift.plugin.description import describe, remarks
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.plugin.stored_shift import StoredShift

SHIFTED = replace(PLAIN, vectors="0123456789abcdef", pivot="en", alpha=0.5, alphas={"th": 0.25})
SHIFT = StoredShift(
    SHIFTED.vectors, "en", {tag: np.ones(4, np.float32) for tag in ("de", "th")}, SHIFTED.alpha, SHIFTED.alphas
)
BY_ALPHA = {"vectors": SHIFTED.vectors, "alpha": 0.5, "language": "de"}


@pytest.fixture(autouse=True)
def _readable(monkeypatch):
    """Every table of these commands can be read on a usual terminal."""
    look_at_tables(monkeypatch)


def newer(client, name, fingerprint=PLAIN, **options):
    """Another version, which is live."""
    target = version_writer.open_for_writing(client, name, fingerprint, if_exists="new-version", **options)
    version_writer.publish(client, target)
    return target.index


def shifted(client, name):
    """A version with documents that agree with its fingerprint, and with some that do not."""
    index = newer(client, name, SHIFTED, extra_meta={metadata.VECTORS: SHIFT.to_dict()})
    vector = {"embedding": [1.0, 2.0, 3.0, 4.0]}
    documents = [
        {**vector, "language": "de", "text": {"de": "Gut."}, "shift": BY_ALPHA},
        {**vector, "language": "th", "title": {"th": "ดี"}, "shift": {**BY_ALPHA, "language": "th", "alpha": 0.25}},
        {**vector, "language": "en", "text": {"en": "Good."}, "shift": {"vectors": SHIFTED.vectors, "alpha": 0.0}},
        {**vector, "language": "de", "shift": {**BY_ALPHA, "alpha": 1.0}},
        {**vector, "language": "de", "shift": {**BY_ALPHA, "vectors": "another"}},
        {**vector, "language": "und"},
        {"text": {"en": "Without a vector, and without a language."}},
    ]
    for number, document in enumerate(documents):
        client.index(index=index, id=str(number), body=document, params={"refresh": "true"})
    return index


def listed(url):
    """What ``list --json`` tells, by version."""
    done = langshift("index", "list", "--json", url=url)
    assert done.returncode == 0, done.stderr
    return {one["version"]: one for one in json.loads(done.stdout)["versions"]}


def require_size_soon(version, url):
    """Wait for the size of what was written: a server measures the files of a shard every ten seconds at most."""
    end = time.monotonic() + 30
    while listed(url)[version]["bytes"] <= 1000:
        assert time.monotonic() < end, f"{version} is no larger than an empty index"
        time.sleep(0.5)


def test_list_has_a_row_for_each_version_with_its_state(client, index_name, cluster_env):
    made(client, index_name, 3)
    shifted(client, index_name)
    version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version")
    client.indices.create(index=f"{index_name}-v0004", body={"mappings": {"_meta": {"other": {"odd": 1}}}})
    client.indices.create(index=f"{index_name}-other")
    client.indices.put_settings(index=f"{index_name}-v0001", body={"index.blocks.write": True})
    found = {version: one for version, one in listed(cluster_env).items() if one["name"] == index_name}
    assert list(found) == [f"{index_name}-v000{number}" for number in (1, 2, 3)]
    first, second, third = found.values()
    assert [(one["state"], one["documents"], one["write_blocked"]) for one in (first, second, third)] == [
        ("kept", 3, True), ("live", 7, False), ("unfinished", 0, False)
    ]  # fmt: skip
    assert (second["encoder"], second["alpha"], second["alphas"], second["vectors"]) == (
        "toy", 0.5, {"th": 0.25}, "0123456789abcdef"
    )  # fmt: skip
    assert (third["unfinished"], second["unfinished"]) == ("load", None)
    require_size_soon(f"{index_name}-v0002", cluster_env)
    done = langshift("index", "list", url=cluster_env, COLUMNS="200")
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["name", "version", "state", "documents", "size", "encoder", "alpha", "created"]
    (row,) = (row for row in rows if row.startswith(index_name) and " live " in row)
    size = row.split()[4:6]
    assert row.split() == [
        index_name, "v0002", "live", "7", *size, "toy", "0.5", "(th", "0.25)", second["made"][:10]
    ]  # fmt: skip
    # That a kept version takes no writes is usual, and not told.
    assert [row.split()[2] for row in rows if row.startswith(index_name)] == ["kept", "live", "unfinished"]
    # Long names are shortened at the width of a usual terminal, and figures are not.
    *narrow, hidden = langshift("index", "list", url=cluster_env, COLUMNS="80").stdout.splitlines()
    assert {len(line) for line in narrow} <= set(range(81))
    assert any(re.search(r" v0002 +live +7 +\d+\.\d kB +toy\b", line) for line in narrow), narrow
    assert "shortened: name" in hidden
    wide = langshift("index", "list", url=cluster_env, COLUMNS="").stdout.splitlines()
    assert len([line for line in wide if line.rstrip().endswith(second["made"][:10])]) >= 3


def test_nested_documents_are_not_counted(client, index_name):
    target = made(client, index_name)
    client.indices.put_mapping(index=target.index, body={"properties": {"part": {"type": "nested"}}})
    client.index(index=target.index, id="1", body={"part": [{"n": 1}, {"n": 2}]}, params={"refresh": "true"})
    (one,) = overview.versions_of(client, index_name)
    assert one.documents == 1


def test_a_closed_version_is_listed_without_figures(client, index_name):
    target = made(client, index_name, 1)
    newer(client, index_name)
    client.indices.close(index=target.index)
    closed, live = overview.versions_of(client, index_name)
    assert (closed.state, closed.documents, live.documents) == ("kept", None, 0)


def test_describe_counts_languages_vectors_and_stamps(client, index_name):
    index = shifted(client, index_name)
    found = describe(client, index_name)
    assert (found.version.version, found.version.state, found.entries) == (index, "live", 7)
    assert found.languages == {"de": 3, "und": 2, "en": 1, "th": 1}
    assert found.share("und") == 2 / 7
    assert found.without_vector == 1
    assert found.stamps is not None
    assert found.stamps._asdict() == {"vectors": 6, "without": 1, "other_vectors": 1, "other_scale": 1}
    assert {(one.field, one.analyzer, one.documents) for one in found.texts} == {
        ("text.de", "german", 1), ("text.en", "english", 2), ("title.th", "thai", 1)
    }  # fmt: skip
    assert found.vector is not None
    assert (found.vector.engine, found.vector.space) == ("lucene", "cosinesimil")
    assert (found.default_pipeline, found.shards, found.auto_expand_replicas) == (None, 1, "0-1")


def test_describe_tells_a_person_all_of_it(client, index_name, cluster_env):
    index = shifted(client, index_name)
    client.indices.put_settings(index=index, body={"index.default_pipeline": "somebodys", "index.blocks.write": True})
    done = langshift("index", "describe", index_name, url=cluster_env, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    size = next(line for line in done.stdout.splitlines() if line.startswith("It takes ")).split(" in ")[0]
    (one,) = overview.versions_of(client, index_name)
    replicas = describe(client, index_name).replicas
    assert done.stdout.splitlines()[:7] == [
        f"{index} is the version that {index_name} points to, created by a load.",
        "It holds 7 documents, 28.6% of them in an unknown language (und), 1 without a vector.",
        "Its vectors were computed by the encoder toy (revision 1): 4 dimensions, any norm.",
        "Each document was shifted with alpha 0.5 (th 0.25) and the language vectors 0123456789abcdef (pivot en).",
        "Languages were detected by none; the index was built by langshift 0.1.0.",
        "Vectors are in embedding (engine lucene, cosinesimil space), languages in language, stamps in shift.",
        f"{size} in 1 shard with {replicas} replica{'' if replicas == 1 else 's'} each, auto-expanded to 0-1; it has "
        "the default pipeline somebodys (not langshift's); writes are blocked.",
    ]
    assert [line.split() for line in done.stdout.splitlines() if line.startswith(("de ", "en "))] == [
        ["de", "3", "42.9%", "0", "1", "german"], ["en", "1", "14.3%", "0", "2", "english"]
    ]  # fmt: skip
    assert done.stderr.splitlines()[0] == ("1 document has no vector: dense search finds only documents with a vector.")
    blocked = f"Nothing can be written to {index}: an administrator or a full disk has blocked it (index.blocks)."
    assert blocked in done.stderr
    told = json.loads(langshift("index", "describe", index, "--json", url=cluster_env).stdout)
    assert (told["version"], told["und"], told["write_blocked"], told["fields"]["texts"]) == (index, 2 / 7, True, [])
    assert told["remarks"] == done.stderr.splitlines()[:-1]
    assert told["made"] == one.made


def test_describe_reads_an_index_with_fields_of_its_own(client, index_name):
    own = FieldNames(vector="v.v", language="l.l", confidence="l.c", stamp="l.s", texts=("body", "body.exact", "gone"))
    vector = {"type": "knn_vector", "dimension": 4, "method": {"name": "hnsw", "engine": "lucene"}}
    body_field = {"type": "text", "fields": {"exact": {"type": "text", "analyzer": "whitespace"}}}
    properties = {
        "v": {"properties": {"v": vector}},
        "l": {"properties": {"l": {"type": "keyword"}}},
        "body": body_field,
    }
    kept = {"langshift": PLAIN.to_dict(), "langshift_fields": own.to_dict()}
    mappings = {"_meta": kept, "properties": properties}
    index = f"{index_name}-v0001"
    client.indices.create(
        index=index,
        body={"settings": {"index.knn": True}, "mappings": mappings, "aliases": {index_name: {}}},
    )
    client.index(
        index=index, body={"v": {"v": [1, 2, 3, 4]}, "l": {"l": "th"}, "body": "Good."}, params={"refresh": "true"}
    )
    found = describe(client, index_name)
    assert (found.fields, found.languages, found.without_vector) == (own, {"th": 1}, 0)
    assert [(one.field, one.analyzer, one.documents) for one in found.texts] == [
        ("body", "standard", 1), ("body.exact", "whitespace", 1)
    ]  # fmt: skip


def test_an_index_without_a_live_version_is_described_by_its_newest(client, index_name):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    assert describe(client, index_name).version.version == target.index


def test_one_version_goes_and_the_others_stay(client, index_name, cluster_env):
    made(client, index_name, 3)
    live = newer(client, index_name)
    newer(client, f"{index_name}-beside")
    done = langshift("index", "drop", index_name, "--version", "v0001", "--yes", url=cluster_env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Removed {index_name}-v0001 (kept, 3 documents, ")
    assert list(versions.versions_of(client, index_name)) == [live]
    assert versions.live(client, index_name).index == live
    assert versions.live(client, f"{index_name}-beside").documents == 0


def test_what_was_removed_is_told_as_json(client, index_name, cluster_env):
    made(client, index_name, 1)
    (one,) = overview.versions_of(client, index_name)
    done = langshift("index", "drop", index_name, "--yes", "--json", url=cluster_env)
    assert json.loads(done.stdout) == {"name": index_name, "whole": True, "removed": [one.to_dict()]}
    assert done.stderr == ""


def test_the_live_version_goes_only_with_the_whole(client, index_name, cluster_env):
    made(client, index_name)
    done = langshift("index", "drop", index_name, "--version", "1", "--yes", url=cluster_env)
    assert done.returncode == 2
    assert refusal(done) == (
        f"{index_name}-v0001 is the version that {index_name} points to: go back to another version first (langshift "
        f"rollback {index_name}), or remove all versions with `langshift index drop {index_name}`."
    )
    assert versions.live(client, index_name).documents == 0


def test_the_whole_goes_with_its_pipelines_and_leaves_what_is_not_langshifts(client, index_name, cluster_env):
    first, second = made(client, index_name, 1).index, newer(client, index_name)
    left = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version").index
    foreign = f"{index_name}-v0009"
    client.indices.create(index=foreign)
    pipelines.install(client, second, StoredShift(), USUAL, None)
    client.ingest.put_pipeline(id=pipelines.name_for(first), body={"processors": []})
    try:
        done = langshift("index", "drop", index_name, "--yes", url=cluster_env)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"Removed the index {index_name} with {first} (kept, 1 document, ")
        assert f"{left} (unfinished, 0 documents, " in done.stdout
        assert list(client.indices.get(index=f"{index_name}*")) == [foreign]
        assert pipelines.name_for(second) not in client.ingest.get_pipeline(params={"ignore": 404})
        # Of that name, and made by somebody else.
        assert pipelines.name_for(first) in client.ingest.get_pipeline(params={"ignore": 404})
    finally:
        client.ingest.delete_pipeline(id=pipelines.name_for(first))


def test_dropping_what_a_retune_left_lets_writes_to_the_live_version_in_again(client, index_name, cluster_env):
    live = made(client, index_name, 1)
    left = version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version").index
    note = {"asked": {}, "from": live.index, "uuid": live.uuid, "token": "t", "blocked": True, "checkpoint": [1]}
    metadata.change(client, left, {metadata.UNFINISHED: {"retune": note, "restore": {}}})
    client.indices.add_block(index=live.index, block="write")
    told = describe(client, index_name)
    assert remarks(told)[-2:] == [
        f"Nothing can be written to {live.index}: the retune to {left} has blocked it for its last step.",
        f"The retune of {index_name} to {left} is still running or was interrupted: in that case, finish it with "
        f"`langshift retune {index_name} --alpha 0`, or abandon it with `langshift index drop {index_name} --version "
        f"{left}`.",
    ]
    assert told.versions[1].origin == {"kind": "retune", "from": live.index, "uuid": live.uuid}
    done = langshift("index", "drop", index_name, "--version", "2", "--yes", url=cluster_env)
    assert done.returncode == 0, done.stderr
    assert list(versions.versions_of(client, index_name)) == [live.index]
    (one,) = overview.versions_of(client, index_name)
    assert not one.write_blocked
    client.index(index=index_name, id="new", body={"n": 1})


def test_nobody_to_ask_is_a_refusal(client, index_name, cluster_env):
    made(client, index_name, 1)
    done = langshift("index", "drop", index_name, url=cluster_env)
    assert done.returncode == 2
    (one,) = overview.versions_of(client, index_name)
    told = inventory.plan_drop(client, index_name, None).in_words()
    assert refusal(done) == f"This would remove {told}: without a terminal, confirm with --yes."
    assert told.startswith(f"the index {index_name} with {one.version} (live, 1 document, ")
    assert versions.live(client, index_name).documents == 1


@pytest.mark.parametrize(("answer", "code", "last"), [("n", 1, "Nothing was removed."), ("y", 0, "Removed the index")])
def test_who_is_asked_decides(client, index_name, cluster_env, answer, code, last):
    made(client, index_name)
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard, os.fdopen(theirs, "rb", buffering=0) as terminal:
        keyboard.write(f"{answer}\n".encode())
        done = subprocess.run(
            [LANGSHIFT, "index", "drop", index_name],
            env=dict(os.environ, OPENSEARCH_URL=cluster_env),
            stdin=terminal,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == code
    assert done.stderr.startswith(f"This removes the index {index_name} with {index_name}-v0001 (live, 0 documents, ")
    assert "Remove it? [y/N]: " in done.stderr
    assert last in done.stdout + done.stderr
    assert (versions.version_behind(client, index_name) is None) == (answer == "y")


def test_what_has_changed_since_it_was_shown_is_not_removed(client, index_name):
    first = made(client, index_name).index
    second = newer(client, index_name)
    wanted = inventory.plan_drop(client, index_name, "1")
    client.indices.update_aliases(
        body={
            "actions": [
                {"remove": {"index": second, "alias": index_name}},
                {"add": {"index": first, "alias": index_name}},
            ]
        }
    )
    with pytest.raises(ClusterError) as refused:
        inventory.drop(client, wanted)
    assert str(refused.value) == (
        f"The versions of {index_name} have changed, so none was removed: run the command again."
    )
    assert list(versions.versions_of(client, index_name)) == [first, second]


@pytest.mark.parametrize("name", ["*", "_all", "näws", "News", "a,b", "news*"])
@pytest.mark.parametrize("command", [describe, inventory.plan_drop])
def test_what_cannot_be_a_name_is_refused(client, command, name):
    with pytest.raises(UsageError) as refused:
        command(client, name, *([None] if command is inventory.plan_drop else []))
    assert str(refused.value) == (
        f"{name!r} is not a valid index name: use lower-case letters a-z, digits, '-', '_' and '.', starting with a "
        "letter or digit."
    )


def test_what_looks_like_an_option_can_be_said_to_be_a_name(cluster_env):
    done = langshift("index", "drop", "--yes", "--", "-x", url=cluster_env)
    assert refusal(done).startswith("'-x' is not a valid index name: ")


def test_what_is_not_langshifts_is_refused(client, index_name):
    client.indices.create(index=f"{index_name}-a", body={"aliases": {index_name: {}, f"{index_name}-one": {}}})
    client.indices.create(index=f"{index_name}-b", body={"aliases": {index_name: {}}})
    client.indices.create(index=f"{index_name}-v0001")
    target = made(client, f"{index_name}-news")
    client.indices.put_alias(index=target.index, name=f"{index_name}-prod")
    before = set(client.indices.get(index=f"{index_name}*"))
    both = f"{index_name} is an alias of 2 indices ({index_name}-a, {index_name}-b): choose another name."
    no_alias = "is an index, not an alias for versions: give the alias, or another name."
    one, prod, none = f"{index_name}-one", f"{index_name}-prod", f"{index_name}-none"
    told = {
        ("drop", index_name): both,
        ("describe", index_name): both,
        ("drop", f"{index_name}-a"): f"{index_name}-a {no_alias}",
        ("describe", f"{index_name}-v0001"): f"{index_name}-v0001 {no_alias}",
        ("drop", f"{index_name}-v0001"): f"{index_name}-v0001 {no_alias}",
        ("drop", one): f"{one} points to {index_name}-a, which is not a version of {one}: nothing was removed.",
        ("describe", one): f"{one} points to {index_name}-a, which is not a version created by langshift.",
        ("drop", prod): f"{prod} points to {target.index}, which is not a version of {prod}: nothing was removed.",
        ("drop", none): f"There is no index {none}: `langshift index list` lists the existing indices.",
        ("describe", none): f"There is no index {none}: `langshift index list` lists the existing indices.",
        ("drop", target.index): (
            f"{target.index} is a version of {target.name}: remove it with `langshift index drop {target.name} "
            f"--version {target.index}`."
        ),
    }
    for (command, name), sentence in told.items():
        with pytest.raises(LangshiftError) as refused:
            describe(client, name) if command == "describe" else inventory.plan_drop(client, name, None)
        assert str(refused.value) == sentence
    assert set(client.indices.get(index=f"{index_name}*")) == before
    assert describe(client, prod).version.version == target.index


def test_versions_that_are_hidden_are_found_too(client, index_name, cluster_env):
    made(client, index_name, 3)
    client.indices.put_settings(index=f"{index_name}-v0001", body={"index.hidden": True})
    assert [one["version"] for one in listed(cluster_env).values() if one["name"] == index_name] == [
        f"{index_name}-v0001"
    ]
    require_size_soon(f"{index_name}-v0001", cluster_env)
    assert describe(client, index_name).version.documents == 3
    assert versions.versions_of(client, index_name) == [f"{index_name}-v0001"]
    assert langshift("index", "drop", index_name, "--yes", url=cluster_env).returncode == 0
    assert not client.indices.exists(index=f"{index_name}-v0001")

"""Users who may not do everything: what is missing is named, nothing is half-written, and the rest works over TLS."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import command_line
import pytest
import trustme
from chat_server import chat_server
from cluster_templates import index_templates
from security_plugin import Guard, documented_roles, with_every_index
from tls_proxy import proxy

from langshift.plugin.pipelines import installed

USER, PASSWORD = "loader", "grün:s3cret/@%ß猫"
EVERYTHING = {
    "cluster_permissions": ["*"],
    "index_permissions": [{"index_patterns": ["*"], "allowed_actions": ["*"]}],
}
LOADER = {"OPENSEARCH_USERNAME": USER, "OPENSEARCH_PASSWORD": PASSWORD}
DOCUMENTS = 15

Run = Callable[..., "tuple[int, str, str]"]


def said(err):
    """What a load said, but for how far its pages are translated."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("Translated: "))


@pytest.fixture
def langshift(authority, tmp_path) -> Run:
    """Run a command as the user, with these variables only; the password must not come out."""
    usual = {"PATH": os.environ["PATH"], "HOME": tmp_path, "LANGSHIFT_HOME": tmp_path / "home"}
    usual |= {"OPENSEARCH_CA_FILE": authority.file, **LOADER}

    def run(*arguments: object, **env: str) -> tuple[int, str, str]:
        done = command_line.langshift(*arguments, only={}, **usual | env)
        assert "s3cret" not in done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def secured(cluster_url, authority) -> Callable[..., Any]:
    """The real server behind TLS, a password, and the permissions of a role."""

    @contextmanager
    def open_(role: dict[str, Any] = EVERYTHING, *, without: tuple[str, ...] = ()) -> Iterator[tuple[str, Guard]]:
        guard = Guard(role, USER, without=without)
        with proxy(cluster_url, tls=authority.server, credentials=(USER, PASSWORD), refuse=guard) as (url, _):
            yield url, guard
        assert guard.unknown == []

    return open_


def lacks(url: str, named: str) -> str:
    return (
        f"Error: The cluster at {url} denies the request: the user {USER} does not have the permission {named}; "
        "ask the cluster's administrator for it."
    )


def indices(client, name: str) -> list[str]:
    return sorted(client.indices.get(index=f"{name}*", params={"expand_wildcards": "all"}))


@pytest.mark.parametrize(
    ("permission", "group"),
    [
        ("cluster:monitor/main", "cluster_monitor"),
        ("indices:admin/get", None),
        ("indices:admin/create", "create_index"),
        ("indices:data/write/bulk", "cluster_composite_ops"),
        ("indices:data/write/bulk[s]", "write"),
    ],
)
def test_a_load_that_cannot_begin_leaves_nothing(langshift, secured, client, folder, index_name, permission, group):
    with secured(without=(permission,)) as (url, _):
        done = langshift("ingest", folder / "corpus.jsonl", "--index", index_name, OPENSEARCH_URL=url)
    named = f"{permission} (in the action group {group})" if group else permission
    assert done == (1, "", f"{lacks(url, named)}\n")
    assert indices(client, index_name) == []


@pytest.mark.parametrize(
    ("permission", "group", "told"),
    [
        ("indices:data/read/mget[shard]", "read", ""),
        ("indices:admin/aliases", "manage_aliases", ""),
        (
            *("indices:admin/settings/update", "manage"),
            " {index}-v0001 could not be removed or reset: the next run will do it.",
        ),
    ],
)
def test_a_load_that_cannot_end_is_gone_on_with(
    langshift, secured, client, folder, index_name, permission, group, told
):
    ingest = ("ingest", folder / "corpus.jsonl", "--index", index_name)
    with secured(without=(permission,)) as (url, _):
        code, out, err = langshift(*ingest, OPENSEARCH_URL=url)
    assert (code, out) == (1, "")
    assert err == (
        f"{lacks(url, f'{permission} (in the action group {group})')}{told.format(index=index_name)} "
        f"{DOCUMENTS} lines of {folder / 'corpus.jsonl'} handled: continue with --resume.\n"
    )
    assert not client.indices.exists_alias(name=index_name)
    with secured() as (url, _):
        code, _, err = langshift(*ingest, "--resume", OPENSEARCH_URL=url)
    assert code == 0, err
    assert client.count(index=index_name)["count"] == DOCUMENTS
    assert indices(client, index_name) == [f"{index_name}-v0001"]


TEMPLATES = ("indices:admin/index_template/get", "indices:admin/template/get", "cluster:admin/component_template/get")


@pytest.mark.parametrize("missing", TEMPLATES)
def test_without_the_right_to_read_index_templates(langshift, secured, client, folder, index_name, missing):
    """What such a template does is then seen only in the version that was created."""
    ingest = ("ingest", folder / "corpus.jsonl", "--index", index_name)
    components = {"c": {"aliases": {index_name: {}}}}
    legacy = missing == "indices:admin/template/get"
    contents = components["c"] if legacy else {}
    with secured(without=(missing,)) as (url, _):
        code, _, err = langshift(*ingest, OPENSEARCH_URL=url)
        assert (code, said(err)) == (0, "")
        with index_templates(client, index_name, contents, components=None if legacy else components, legacy=legacy):
            done = langshift(*ingest, "--if-exists", "new-version", OPENSEARCH_URL=url)
    assert done[:2] == (1, "")
    assert f"because an index template of the cluster would give it the alias {index_name} at once" in done[2]
    assert indices(client, index_name) == [f"{index_name}-v0001"]


def test_without_the_right_to_look_at_the_cluster(langshift, secured, folder, index_name, tmp_path):
    """Only a load needs to know which cluster it is, to find its journal again."""
    looking = ("cluster:monitor/state", "cluster:monitor/nodes/info", "cluster:monitor/health")
    looking += ("indices:data/read/msearch", *TEMPLATES)
    with secured(without=looking) as (url, _):
        code, _, err = langshift("ingest", folder / "corpus.jsonl", "--index", index_name, OPENSEARCH_URL=url)
        assert (code, said(err)) == (0, "")
    with secured(without=("cluster:monitor/main", *looking)) as (url, _):
        code, out, err = langshift("search", index_name, "Ebbe und Flut", "--json", OPENSEARCH_URL=url)
        assert (code, err, len(json.loads(out)["hits"])) == (0, "", 10)
        output = tmp_path / "out"
        replay = ("evaluate", "replay", folder, "--index", index_name, "--output", output)
        code, _, err = langshift(*replay, "--json", OPENSEARCH_URL=url)
        assert code == 0
        missing = lacks("", "indices:data/read/msearch (in the action group cluster_composite_ops_ro)")
        assert missing.removeprefix("Error: ").replace(" at  denies", " denies") in err
        assert json.loads((output / "result.json").read_text())["versions"]["opensearch"] == "unknown"
        code, out, err = langshift("doctor", "--json", OPENSEARCH_URL=url)
    of_the_cluster = [f for f in json.loads(out)["findings"] if f["section"] == "cluster"]
    # An index that another test is loading right now is named here, too.
    found = {f["name"]: (f["status"], f["value"]) for f in of_the_cluster if not f["name"].startswith("index ")}
    assert (code, said(err)) == (0, "")
    assert found == {
        "reachable": ("ok", url),
        "version": ("warning", "this user may not read it"),
        "health": ("warning", "this user may not read it"),
        "plugins": ("warning", "this user may not list them"),
    }


OFF = "disable verification with OPENSEARCH_SSL_VERIFY=false."


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (
            {"OPENSEARCH_PASSWORD": "wrong"},
            "rejects the user name or password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD.",
        ),
        (
            {"OPENSEARCH_USERNAME": "", "OPENSEARCH_PASSWORD": ""},
            "requires a user name and password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD.",
        ),
        (
            {"OPENSEARCH_CA_FILE": ""},
            "presents a certificate that cannot be verified: "
            f"set OPENSEARCH_CA_FILE to the CA that signed it, or {OFF}",
        ),
        (
            {"OPENSEARCH_CA_FILE": "other.pem"},
            "presents a certificate that cannot be verified: "
            f"set OPENSEARCH_CA_FILE to the CA that signed it, or {OFF}",
        ),
    ],
)
def test_who_is_not_let_in_writes_nothing(langshift, secured, client, folder, index_name, tmp_path, env, says):
    if env.get("OPENSEARCH_CA_FILE"):
        env["OPENSEARCH_CA_FILE"] = str(tmp_path / "other.pem")
        trustme.CA().cert_pem.write_to_path(env["OPENSEARCH_CA_FILE"])
    with secured() as (url, guard):
        done = langshift("ingest", folder / "corpus.jsonl", "--index", index_name, OPENSEARCH_URL=url, **env)
        assert done == (1, "", f"Error: The cluster at {url} {says}\n")
        assert not guard.used
    assert indices(client, index_name) == []


def test_a_certificate_that_nobody_verifies(langshift, secured, client, folder, index_name):
    with secured() as (url, _):
        env = {"OPENSEARCH_URL": url, "OPENSEARCH_SSL_VERIFY": "false", "OPENSEARCH_CA_FILE": ""}
        code, _, err = langshift("ingest", folder / "corpus.jsonl", "--index", index_name, **env)
    assert (code, said(err)) == (0, "")
    assert client.count(index=index_name)["count"] == DOCUMENTS


def make_old(client, index: str, name: str) -> None:
    """An index that langshift did not make, with the documents of one that it made with alpha 0."""
    vector = client.indices.get_mapping(index=index)[f"{index}-v0001"]["mappings"]["properties"]["embedding"]
    properties = {"vector": vector, "body": {"type": "text"}, "lang": {"type": "keyword"}}
    settings = {"index": {"knn": True, "number_of_replicas": 0}}
    client.indices.create(index=name, body={"settings": settings, "mappings": {"properties": properties}})
    for hit in client.search(index=index, body={"size": 100})["hits"]["hits"]:
        source = hit["_source"]
        ((language, text),) = source["text"].items()
        client.index(index=name, id=hit["_id"], body={"vector": source["embedding"], "body": text, "lang": language})
    client.indices.refresh(index=name)


def test_the_roles_of_the_documentation_are_enough(langshift, secured, client, folder, index_name, tmp_path):
    """Every command, over TLS and with a password."""
    searching, loading, everything = documented_roles(index_name)

    def works(role: dict[str, Any], *arguments: object) -> None:
        with secured(role) as (url, _):
            code, _, err = langshift(*arguments, OPENSEARCH_URL=url)
        assert code == 0, (arguments, err)

    ingest = ("ingest", folder / "corpus.jsonl", "--index", index_name, "--alpha", "0")
    works(loading, *ingest)
    make_old(client, index_name, f"{index_name}-old")
    works(searching, "search", index_name, "Ebbe und Flut")
    works(searching, "evaluate", "replay", folder, "--index", index_name, "--output", tmp_path / "out")
    # The model refuses all, after the documents were read.
    with chat_server(lambda _: "") as model, secured(searching) as (url, _):
        models = ("--generator", model.name, "--rerank", model.name)
        _, _, err = langshift("dataset", "make", index_name, tmp_path / "made", *models, OPENSEARCH_URL=url)
    assert "Error: None of the 15 questions can be used, and nothing was written: the model refused" in err
    works(everything, "retune", index_name, "--alpha", "0.5", "--throttle", "1000")
    works(everything, "rollback", index_name)
    works(everything, "reencode", index_name, "--encoder", "use-m", "--alpha", "0.25")
    works(everything, "rollback", index_name)
    works(everything, "pipeline", "install", index_name)
    works(searching, "pipeline", "verify", index_name)
    works(everything, "retune", index_name, "--alpha", "0.7")
    works(everything, "pipeline", "remove", index_name)
    works(with_every_index(searching), "index", "list")
    works(searching, "index", "describe", index_name)
    works(everything, "index", "drop", index_name, "--yes")
    fields = ("--vector-field", "vector", "--text-field", "body", "--language-field", "lang", "--encoder", "use-m")
    works(everything, "adopt", f"{index_name}-old", "--name", index_name, *fields)
    assert client.count(index=index_name)["count"] == DOCUMENTS
    works(loading, *ingest, "--if-exists", "replace")
    assert client.count(index=f"{index_name}-old")["count"] == DOCUMENTS


def test_who_may_only_search(langshift, secured, client, folder, index_name):
    searching, loading, _ = documented_roles(index_name)
    ingest = ("ingest", folder / "corpus.jsonl", "--index", index_name)
    with secured(searching) as (url, _):
        code, _, err = langshift(*ingest, OPENSEARCH_URL=url)
    assert (code, err) == (1, f"{lacks(url, 'indices:admin/create (in the action group create_index)')}\n")
    assert indices(client, index_name) == []
    with secured(loading) as (url, _):
        assert langshift(*ingest, OPENSEARCH_URL=url)[0] == 0
        for command, permission in (
            (("pipeline", "install"), "cluster:admin/script/get"),
            (("retune", "--alpha", "0.5"), "cluster:admin/script/get"),
        ):
            code, out, err = langshift(*command, index_name, OPENSEARCH_URL=url)
            assert (code, out, err) == (1, "", f"{lacks(url, permission)}\n")
        before = indices(client, index_name)
    assert before == [f"{index_name}-v0001"]


def test_a_load_by_who_may_make_no_pipeline_does_not_take_the_place_of_a_version_with_one(
    langshift, secured, client, folder, pipelines
):
    ingest = ("ingest", folder / "corpus.jsonl", "--index", pipelines, "--if-exists", "replace")
    with secured() as (url, _):
        assert langshift(*ingest, OPENSEARCH_URL=url)[0] == 0
        assert langshift("pipeline", "install", pipelines, OPENSEARCH_URL=url)[0] == 0
    with secured(without=("cluster:admin/ingest/pipeline/put",)) as (url, _):
        code, out, err = langshift(*ingest, OPENSEARCH_URL=url)
    named = "cluster:admin/ingest/pipeline/put (in the action group cluster_manage_pipelines)"
    handled = f"{DOCUMENTS} lines of {folder / 'corpus.jsonl'} handled: continue with --resume."
    assert (code, out, err) == (1, "", f"{lacks(url, named)} {handled}\n")
    assert list(client.indices.get_alias(name=pipelines)) == [f"{pipelines}-v0001"]
    with secured() as (url, _):
        code, _, err = langshift(*ingest, "--resume", OPENSEARCH_URL=url)
    assert code == 0, err
    assert f"{pipelines}-v0002 shifts what other clients write, as {pipelines}-v0001 did." in err.splitlines()
    assert installed(client, f"{pipelines}-v0002") is not None


@pytest.mark.parametrize(
    ("permission", "group"),
    [
        ("cluster:admin/ingest/pipeline/put", "cluster_manage_pipelines"),
        ("indices:admin/settings/update", "manage"),
    ],
)
def test_a_pipeline_that_may_not_be_made(langshift, secured, client, folder, index_name, permission, group):
    with secured() as (url, _):
        assert langshift("ingest", folder / "corpus.jsonl", "--index", index_name, OPENSEARCH_URL=url)[0] == 0
    with secured(without=(permission,)) as (url, _):
        done = langshift("pipeline", "install", index_name, OPENSEARCH_URL=url)
    assert done == (1, "", f"{lacks(url, f'{permission} (in the action group {group})')}\n")
    assert f"langshift-{index_name}-v0001" not in client.ingest.get_pipeline(params={"ignore": 404})
    assert "default_pipeline" not in str(client.indices.get_settings(index=index_name))

"""What doctor says of a cluster that answers: the real one, and one that it pretends to be on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tls_proxy import Rewrite, proxy

from langshift.plugin.cluster_check import Finding, check_cluster
from langshift.plugin.index_body import has_native_libraries
from langshift.settings import Settings

FORBIDDEN = (403, b'{"error": {"reason": "no permissions"}, "status": 403}')
Changes = dict[str, Callable[[Any], Any] | tuple[int, bytes]]


def changed(changes: Changes) -> Rewrite:
    """Change the answers to paths that begin so: the document in it, or the whole answer."""

    def rewrite(path: str, status: int, body: bytes) -> tuple[int, bytes]:
        for beginning, change in changes.items():
            if path.startswith(beginning):
                return change if isinstance(change, tuple) else (status, json.dumps(change(json.loads(body))).encode())
        return status, body

    return rewrite


@pytest.fixture
def told(cluster_url):
    """The findings on the real cluster, by name, with changes made to its answers."""

    def findings(changes: Changes | None = None) -> dict[str, Finding]:
        with proxy(cluster_url, rewrite=changed(changes or {})) as (url, _):
            return {finding.name: finding for finding in check_cluster(Settings.from_env({"OPENSEARCH_URL": url}))}

    return findings


def health(**values: object) -> Changes:
    return {"/_cluster/health": lambda document: document | values}


def with_security(*roles: str) -> Changes:
    """As the security plugin would answer a user who has these roles."""

    def add(rows: list[dict[str, str]]) -> list[dict[str, str]]:
        return rows + [{"name": row["name"], "component": "opensearch-security"} for row in rows]

    body = json.dumps({"user_name": "anna", "backend_roles": [], "roles": roles}).encode()
    return {"/_cat/plugins": add, "/_plugins/_security/authinfo": (200, body)}


def test_the_real_cluster(told, client):
    report = told()
    number = client.info()["version"]["number"]
    cluster = client.cluster.health()
    # Others' indices may be there, too.
    assert [name for name in report if not name.startswith("index ")] == [
        "reachable",
        "version",
        "name",
        "nodes",
        "health",
        "opensearch-knn",
        "opensearch-neural-search",
        "plugin langshift",
        "may create indices",
    ]
    assert report["version"] == Finding("cluster", "version", "ok", f"OpenSearch {number}")
    assert report["name"] == Finding("cluster", "name", "ok", cluster["cluster_name"])
    assert (report["opensearch-knn"].status, report["opensearch-knn"].value[:22]) == ("ok", "on every node; engine ")
    nodes = f"{cluster['number_of_nodes']}, {cluster['number_of_data_nodes']} of them with data"
    assert report["nodes"] == Finding("cluster", "nodes", "ok", nodes)
    # By what other tests do meanwhile: of a single node it is either.
    assert report["health"].value.startswith(("green", "yellow"))


def with_libraries(document: Any) -> Any:
    """As nodes answer of which none says that it lacks the native libraries."""
    for node in document["nodes"].values():
        node.pop("attributes", None)
    return document


def running(faiss: bool) -> tuple[int, bytes]:
    """What k-NN says of a node that has loaded Faiss, or has not."""
    return 200, json.dumps({"nodes": {"a": {"faiss_initialized": faiss}}}).encode()


@pytest.mark.parametrize(
    ("nodes", "stats", "engines"),
    [
        (lambda document: document, FORBIDDEN, "; engine lucene"),
        (with_libraries, FORBIDDEN, ""),
        (
            with_libraries,
            running(False),
            "; engine lucene, faiss not used yet",
        ),
        (with_libraries, running(True), "; engines lucene and faiss"),
    ],
)
def test_the_engines_that_run(told, client, nodes, stats, engines):
    if has_native_libraries(client):
        pytest.skip("this cluster may have faiss")
    report = told({"/_nodes": nodes, "/_plugins/_knn/stats": stats})
    assert report["opensearch-knn"] == Finding("cluster", "opensearch-knn", "ok", f"on every node{engines}")


@pytest.mark.parametrize(
    ("colour", "nodes", "status", "value", "remedy"),
    [
        ("green", 1, "ok", "green", ""),
        ("yellow", 1, "ok", "yellow (replicas need a second node)", ""),
        (
            "yellow",
            3,
            "warning",
            "yellow",
            "Wait until the replicas are in place, or see _cluster/allocation/explain for why they are not.",
        ),
    ],
)
def test_health(told, colour, nodes, status, value, remedy):
    report = told(health(status=colour, number_of_data_nodes=nodes))
    assert report["health"] == Finding("cluster", "health", status, value, remedy)


def test_indices_that_lack_shards_are_named(told):
    indices = {"a": {"status": "green"}, "c": {"status": "red"}, "b": {"status": "red"}}
    report = told(health(status="red", indices=indices))
    sentence = (
        "No node has all shards of b and c, and none is being recovered; GET /_cluster/allocation/explain says why. "
        "All other indices work; `langshift index drop NAME` removes an index."
    )
    assert report["health"] == Finding("cluster", "health", "warning", "red", sentence)


def test_a_user_who_may_not_look(told):
    report = told({"/_cluster/health": FORBIDDEN, "/_cat/plugins": FORBIDDEN})
    named = [name for name in report if not name.startswith("index ")]
    assert named == ["reachable", "version", "health", "plugins"]
    assert report["health"] == Finding(
        "cluster",
        "health",
        "warning",
        "this user may not read it",
        "Grant this user the permission cluster_monitor, so that doctor can see the cluster's health.",
    )
    assert report["plugins"] == Finding(
        "cluster",
        "plugins",
        "warning",
        "this user may not list them",
        "Grant this user the permission cluster_monitor, or check for opensearch-knn yourself.",
    )


@pytest.mark.parametrize(
    ("roles", "value"),
    [
        (["own_index", "all_access"], "yes (role all_access)"),
        (["readall", "own_index"], "not known without trying (roles: own_index, readall)"),
        ([], "not known without trying (roles: none)"),
    ],
)
def test_roles(told, roles, value):
    report = told(with_security(*roles))
    assert report["may create indices"] == Finding("cluster", "may create indices", "ok", value)


def test_no_neural_search(told, client):
    number = client.info()["version"]["number"]
    report = told({"/_cat/plugins": lambda rows: [row for row in rows if row["component"] == "opensearch-knn"]})
    assert report["opensearch-neural-search"] == Finding(
        "cluster",
        "opensearch-neural-search",
        "warning",
        "not on every node",
        "For hybrid queries, run bin/opensearch-plugin install "
        f"org.opensearch.plugin:neural-search:{number}.0 on every node.",
    )
    assert report["may create indices"].value == "yes, like every user (no security plugin)"


def test_a_plugin_that_one_node_lacks(told):
    def another_node(rows: list[dict[str, str]]) -> list[dict[str, str]]:
        return [*rows, {"name": "second", "component": "opensearch-neural-search"}]

    assert told({"/_cat/plugins": another_node})["opensearch-knn"].status == "missing"


def test_an_answer_that_fails_half_way(told):
    report = told({"/_cluster/health": (500, b'{"error": {"reason": "out of order"}, "status": 500}')})
    assert list(report) == ["reachable", "version", "answers"]
    address = report["reachable"].value
    sentence = f"The cluster at {address} answered 500: out of order."
    assert report["answers"] == Finding("cluster", "answers", "missing", "not to all requests", sentence)

"""What doctor finds when it asks the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, OpenSearchException

from langshift import cluster, embedded
from langshift.commands.findings import Finding, Status
from langshift.errors import ClusterError, LangshiftError
from langshift.failures import failure
from langshift.settings import Settings

# Seconds that one answer may take here, whatever OPENSEARCH_TIMEOUT allows.
PATIENCE = 5.0
OPTIONAL_PLUGIN = "opensearch-neural-search"
SECURITY_PLUGIN = "opensearch-security"
MAIN = "cluster:monitor/main"


def ask(settings: Settings) -> Iterator[Finding]:
    """Ask the cluster, if there is one to ask; the embedded one is not started."""
    done: list[Finding] = []
    try:
        server = None if settings.url else embedded.status(settings.home)
        url = settings.url or (server.url if server else None)
        if url is None:
            remedy = "Start it with langshift up; commands that need it start it themselves."
            yield _finding("reachable", "warning", "the embedded OpenSearch is not running", remedy)
            return
        for finding in _answers(replace(settings, timeout=min(settings.timeout, PATIENCE)), url):
            done.append(finding)
            yield finding
    except (LangshiftError, OSError) as error:
        name = "answers" if done else "reachable"
        yield _finding(name, "missing", "no" if not done else "not to everything", str(error))


def _answers(settings: Settings, url: str) -> Iterator[Finding]:
    """One finding after the other, until one cannot be had.

    Raises:
        LangshiftError: the cluster gave no usable answer.
    """
    client = cluster.make_client(settings, url, retries=0)
    try:
        number = cluster.version(client)
        yield _finding("reachable", "ok", cluster.address(client))
        yield _version(client, number)
        yield from _health(client)
        yield from _plugins(client, number)
    except OpenSearchException as error:
        raise failure(error, cluster.address(client), anonymous=settings.username is None) from error
    finally:
        client.close()


def _finding(name: str, status: Status, value: str, remedy: str = "") -> Finding:
    return Finding("cluster", name, status, value, remedy)


def _version(client: OpenSearch, number: str | None) -> Finding:
    if number is None:
        remedy = f"Give this user the right {MAIN}: without it nothing can be indexed."
        return _finding("version", "warning", "this user may not ask for it", remedy)
    try:
        cluster.check_version(client, number)
    except ClusterError as error:
        return _finding("version", "missing", f"OpenSearch {number}", str(error))
    return _finding("version", "ok", f"OpenSearch {number}")


def _health(client: OpenSearch) -> Iterator[Finding]:
    try:
        health = client.cluster.health()
    except AuthorizationException:
        remedy = "Give this user the right cluster_monitor if doctor is to see the cluster's health."
        yield _finding("health", "warning", "this user may not ask for it", remedy)
        return
    colour, nodes = health["status"], health["number_of_data_nodes"]
    yield _finding("name", "ok", health["cluster_name"])
    yield _finding("nodes", "ok", f"{health['number_of_nodes']}, {nodes} of them with data")
    if colour == "red":
        remedy = "Bring the missing nodes back: parts of some indices are not there (_cluster/allocation/explain)."
        yield _finding("health", "missing", colour, remedy)
    elif colour == "yellow" and nodes > 1:
        remedy = "Wait until the replicas are in place, or ask _cluster/allocation/explain why they are not."
        yield _finding("health", "warning", colour, remedy)
    else:
        yield _finding("health", "ok", "yellow (replicas need a second node)" if colour == "yellow" else colour)


def _plugins(client: OpenSearch, number: str | None) -> Iterator[Finding]:
    names = cluster.plugins(client)
    if names is None:
        remedy = f"Give this user the right cluster_monitor, or ask whether {cluster.REQUIRED_PLUGIN} is there."
        yield _finding("plugins", "warning", "this user may not list them", remedy)
        return
    try:
        cluster.check_plugins(client, number, names)
    except ClusterError as error:
        yield _finding(cluster.REQUIRED_PLUGIN, "missing", "not on every node", str(error))
    else:
        yield _finding(cluster.REQUIRED_PLUGIN, "ok", "on every node; engine lucene")
    if OPTIONAL_PLUGIN in names:
        yield _finding(OPTIONAL_PLUGIN, "ok", "on every node")
    else:
        coordinates = f"org.opensearch.plugin:neural-search:{number or 'VERSION'}.0"
        remedy = f"For hybrid queries, run bin/opensearch-plugin install {coordinates} on every node."
        yield _finding(OPTIONAL_PLUGIN, "warning", "not on every node", remedy)
    yield _rights(client, secured=SECURITY_PLUGIN in names)


def _rights(client: OpenSearch, *, secured: bool) -> Finding:
    """Whether indices may be created, as far as that is known without trying."""
    if not secured:
        return _finding("may create indices", "ok", "yes, as everybody may (no security plugin)")
    roles = client.transport.perform_request("GET", "/_plugins/_security/authinfo").get("roles", [])
    if "all_access" in roles:
        return _finding("may create indices", "ok", "yes (role all_access)")
    shown = ", ".join(sorted(roles)) or "none"
    return _finding("may create indices", "ok", f"not known without trying (roles: {shown})")

"""What langshift needs of a cluster, and whether it is there: asked request by request, and nothing is changed."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, OpenSearchException

from langshift import client as clients
from langshift import embedded
from langshift.debias.encoder_languages import unread_in_words
from langshift.errors import ClusterError, LangshiftError
from langshift.plugin import index_health
from langshift.plugin.index_body import has_native_libraries
from langshift.plugin.inventory import AnyVersion, UnreadableVersion, Version, listed, searchable
from langshift.plugin.metadata import MetadataError
from langshift.plugin.native_nodes import plugin_nodes
from langshift.plugin.representations import in_words
from langshift.plugin.versions import IndexInfo
from langshift.server_errors import client_errors_as_langshift_errors
from langshift.settings import Settings

Status = Literal["ok", "warning", "missing"]


class Finding(NamedTuple):
    """One line of doctor's report.

    Attributes:
        section: installed, embedded, settings or cluster.
        name: what was looked at.
        status: ok; warning (langshift works, with a limit); missing (something needed is not there).
        value: what was found.
        remedy: one sentence on what to do; empty where the status is ok.
    """

    section: str
    name: str
    status: Status
    value: str
    remedy: str = ""


# Seconds that one answer may take here, whatever OPENSEARCH_TIMEOUT allows.
PATIENCE = 5.0
_finding = partial(Finding, "cluster")
# What k-NN says of each node: whether it has loaded the native libraries of Faiss.
_RUNS = "faiss_initialized"


def check_cluster(settings: Settings) -> Iterator[Finding]:
    """Ask the cluster, if there is one to ask; the embedded one is not started."""
    name, value = "reachable", "no"
    try:
        server = None if settings.url else embedded.status(settings.home)
        url = settings.url or (server.url if server else None)
        if url is None:
            remedy = "Start it with langshift up; commands that need it start it themselves."
            yield _finding("reachable", "warning", "the embedded OpenSearch is not running", remedy)
            return
        for finding in _answers(replace(settings, timeout=min(settings.timeout, PATIENCE)), url):
            name, value = "answers", "not to all requests"
            yield finding
    except (LangshiftError, OSError) as error:
        yield _finding(name, "missing", value, str(error))


def _answers(settings: Settings, url: str) -> Iterator[Finding]:
    """One finding after the other, until one cannot be had.

    Raises:
        LangshiftError: the cluster gave no usable answer.
    """
    anonymous = settings.username is None
    client = clients.make_client(settings, url, retries=0)
    with client, client_errors_as_langshift_errors(clients.address(client), anonymous=anonymous):
        number = clients.cluster_version(client)
        yield _finding("reachable", "ok", clients.address(client))
        yield _version(client, number)
        yield from _health(client)
        yield from _plugins(client, number)
        yield from _indices(client)


def _version(client: OpenSearch, number: str | None) -> Finding:
    if number is None:
        remedy = "Grant this user the permission cluster:monitor/main: without it, nothing can be indexed."
        return _finding("version", "warning", "this user may not read it", remedy)
    try:
        clients.check_version(client, number)
    except ClusterError as error:
        return _finding("version", "missing", f"OpenSearch {number}", str(error))
    return _finding("version", "ok", f"OpenSearch {number}")


def _health(client: OpenSearch) -> Iterator[Finding]:
    try:
        health = client.cluster.health(params={"level": "indices"})
    except AuthorizationException:
        remedy = "Grant this user the permission cluster_monitor, so that doctor can see the cluster's health."
        yield _finding("health", "warning", "this user may not read it", remedy)
        return
    colour, nodes = health["status"], health["number_of_data_nodes"]
    yield _finding("name", "ok", health["cluster_name"])
    yield _finding("nodes", "ok", f"{health['number_of_nodes']}, {nodes} of them with data")
    if colour == "red":
        red = sorted(name for name, one in health["indices"].items() if one["status"] == "red")
        yield _finding("health", "warning", colour, clients.missing_shards(red))
    elif colour == "yellow" and nodes > 1:
        remedy = "Wait until the replicas are in place, or see _cluster/allocation/explain for why they are not."
        yield _finding("health", "warning", colour, remedy)
    else:
        yield _finding("health", "ok", "yellow (replicas need a second node)" if colour == "yellow" else colour)


def _plugins(client: OpenSearch, number: str | None) -> Iterator[Finding]:
    names = clients.plugins(client)
    if names is None:
        remedy = f"Grant this user the permission cluster_monitor, or check for {clients.REQUIRED_PLUGIN} yourself."
        yield _finding("plugins", "warning", "this user may not list them", remedy)
        return
    try:
        clients.check_plugins(client, number, names)
        yield _finding(clients.REQUIRED_PLUGIN, "ok", f"on every node{_engines(client)}")
    except ClusterError as error:
        yield _finding(clients.REQUIRED_PLUGIN, "missing", "not on every node", str(error))
    if clients.HYBRID_PLUGIN in names:
        yield _finding(clients.HYBRID_PLUGIN, "ok", "on every node")
    else:
        coordinates = f"org.opensearch.plugin:neural-search:{number or 'VERSION'}.0"
        remedy = f"For hybrid queries, run bin/opensearch-plugin install {coordinates} on every node."
        yield _finding(clients.HYBRID_PLUGIN, "warning", "not on every node", remedy)
    if (own := plugin_nodes(client)) is not None:
        problem = own.problem()
        yield _finding("plugin langshift", "warning" if problem else "ok", own.in_words(), problem or "")
    yield _rights(client, secured="opensearch-security" in names)


def _engines(client: OpenSearch) -> str:
    """The engines of vectors that run, as far as is known: nothing of Faiss before its use, or without permission."""
    if not has_native_libraries(client):
        return "; engine lucene"
    with suppress(OpenSearchException):
        nodes = client.transport.perform_request("GET", f"/_plugins/_knn/stats/{_RUNS}").get("nodes", {}).values()
        runs = any(node.get(_RUNS) is True for node in nodes)
        return "; engines lucene and faiss" if runs else "; engine lucene, faiss not used yet"
    return ""


def _indices(client: OpenSearch) -> Iterator[Finding]:
    """What is wrong with indices: what is unfinished, aliases, documents that their encoder does not read.

    And what they keep beside vectors, for which a search may need another model.
    """
    found: list[IndexInfo] = []
    versions: list[AnyVersion] = []
    broken: list[index_health.BrokenAlias] = []
    # Somebody may not read all indices, or drop one meanwhile: nothing is wrong with the cluster then.
    with suppress(LangshiftError, OpenSearchException):
        versions = listed(client)
        broken = index_health.broken_aliases(client, versions)
    yield from _unfinished(versions)
    for one in versions:
        with suppress(LangshiftError, OpenSearchException):
            found += searchable(client, [one])
    for alias in broken:
        yield _finding(f"index {alias.name}", "warning", "its alias is broken", alias.in_words())
    for index in found:
        for kept in index.beside:
            yield _finding(f"index {index.name}", "ok", f"{in_words(kept)} in {kept.field}")
        for sentence in unread_in_words(index.fingerprint.encoder, index.unread, index.fields.entry):
            remedy = f"{sentence} Use one that can: langshift reencode {index.name} --encoder ENCODER."
            yield _finding(
                f"index {index.name}", "warning", f"{index.fingerprint.encoder} cannot read all of it", remedy
            )


def _unfinished(versions: Sequence[AnyVersion]) -> Iterator[Finding]:
    """Versions that cannot be read or written to, and what retunes, reencodes and rollbacks have left to do."""
    for one in versions:
        item = f"index {one.name}"
        if isinstance(one, UnreadableVersion):
            yield _finding(item, "warning", "cannot be read", str(MetadataError(one.version, one.error)))
    readable = [one for one in versions if isinstance(one, Version)]
    for name in dict.fromkeys(one.name for one in readable):
        beside = [one for one in readable if one.name == name]
        for one in beside:
            if one.state == "live" and (remark := index_health.block_remark(one, beside)):
                yield _finding(f"index {name}", "warning", "takes no writes", remark)
        for remark in index_health.remarks(beside, loads=False):
            yield _finding(f"index {name}", "warning", "is not finished", remark)


def _rights(client: OpenSearch, *, secured: bool) -> Finding:
    """Whether indices may be created, as far as that is known without trying."""
    if not secured:
        return _finding("may create indices", "ok", "yes, like every user (no security plugin)")
    roles = sorted(client.transport.perform_request("GET", "/_plugins/_security/authinfo").get("roles", []))
    if "all_access" in roles:
        return _finding("may create indices", "ok", "yes (role all_access)")
    return _finding("may create indices", "ok", f"not known without trying (roles: {', '.join(roles) or 'none'})")

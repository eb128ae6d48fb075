"""What OpenSearch's security plugin would answer: requests as the permissions that they need, and its refusals.

The plugin itself is not part of the server that the tests use; the proxy asks this instead. The names are those of
OpenSearch's transport actions, the groups the plugin's own default ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "permissions.md"
#: Default action groups that langshift's documentation names -> what they hold.
GROUPS = {
    "cluster_monitor": ["cluster:monitor/*"],
    "cluster_manage_pipelines": ["cluster:admin/ingest/pipeline/*"],
    "cluster_composite_ops_ro": [
        *("indices:data/read/mget", "indices:data/read/msearch", "indices:data/read/mtv", "indices:data/read/scroll"),
        *("indices:admin/aliases/exists*", "indices:admin/aliases/get*", "indices:admin/resolve/index"),
    ],
    "cluster_composite_ops": [
        *("indices:data/write/bulk", "indices:admin/aliases*", "indices:data/write/reindex"),
        "cluster_composite_ops_ro",
    ],
    "read": ["indices:data/read*", "indices:admin/mappings/fields/get*", "indices:admin/resolve/index"],
    "search": ["indices:data/read/search*", "indices:data/read/msearch*", "indices:admin/resolve/index"],
    "write": ["indices:data/write*", "indices:admin/mapping/put"],
    "create_index": ["indices:admin/create", "indices:admin/mapping/put"],
    "manage": ["indices:monitor/*", "indices:admin/*"],
    "manage_aliases": ["indices:admin/aliases*"],
    "indices_monitor": ["indices:monitor/*"],
}
_OF_THE_CLUSTER = re.compile(
    r"cluster:.*|indices:data/write/(bulk|reindex)|indices:data/read/(mget|mtv|scroll.*|msearch.*)"
    r"|indices:admin/(index_)?template/.*"
)
_OF_REINDEX = [
    *("indices:data/read/search", "indices:data/read/scroll", "indices:data/read/scroll/clear"),
    *("indices:data/write/bulk", "indices:data/write/bulk[s]"),
]
# Method and path -> actions, the first that the server checks first. {index} is one or more names.
_ACTIONS: list[tuple[str, str, list[str]]] = [
    ("GET", r"/", ["cluster:monitor/main"]),
    ("GET", r"/_cat/plugins", ["cluster:monitor/state", "cluster:monitor/nodes/info"]),
    ("GET", r"/_cluster/health(/.+)?", ["cluster:monitor/health"]),
    ("GET", r"/_cluster/settings", ["cluster:monitor/state"]),
    ("GET", r"/_cluster/state.*", ["cluster:monitor/state"]),
    ("GET", r"/_nodes/(.+/)?stats.*", ["cluster:monitor/nodes/stats"]),
    ("GET", r"/_nodes(/.*)?", ["cluster:monitor/nodes/info"]),
    ("GET", r"/_plugins/_security/authinfo", []),
    ("GET", r"/_tasks/[^/]+", ["cluster:monitor/task/get"]),
    ("GET", r"/_tasks", ["cluster:monitor/tasks/lists"]),
    ("POST", r"/_tasks/[^/]+/_cancel", ["cluster:admin/tasks/cancel"]),
    ("POST", r"/_reindex/[^/]+/_rethrottle", ["cluster:admin/reindex/rethrottle"]),
    # Its searches and writes are asked about as the user's own.
    ("POST", r"/_reindex", ["indices:data/write/reindex", *_OF_REINDEX]),
    ("PUT|POST", r"/_scripts/[^/]+", ["cluster:admin/script/put"]),
    ("GET|HEAD", r"/_scripts/[^/]+", ["cluster:admin/script/get"]),
    ("DELETE", r"/_scripts/[^/]+", ["cluster:admin/script/delete"]),
    ("POST|GET", r"/_ingest/pipeline/([^/]+/)?_simulate", ["cluster:admin/ingest/pipeline/simulate"]),
    ("PUT", r"/_ingest/pipeline/[^/]+", ["cluster:admin/ingest/pipeline/put"]),
    ("GET", r"/_ingest/pipeline(/[^/]+)?", ["cluster:admin/ingest/pipeline/get"]),
    ("DELETE", r"/_ingest/pipeline/[^/]+", ["cluster:admin/ingest/pipeline/delete"]),
    ("GET", r"/_index_template(/[^/]+)?", ["indices:admin/index_template/get"]),
    ("GET", r"/_component_template/[^/]+", ["cluster:admin/component_template/get"]),
    ("GET", r"/_template(/[^/]+)?", ["indices:admin/template/get"]),
    ("POST", r"/_aliases", ["indices:admin/aliases"]),
    ("GET|HEAD", r"(/{index})?/_alias(/[^/]+)?", ["indices:admin/aliases/get"]),
    ("GET|POST", r"/_search/scroll", ["indices:data/read/scroll"]),
    ("DELETE", r"/_search/scroll", ["indices:data/read/scroll/clear"]),
    ("GET|POST", r"(/{index})?/_msearch", ["indices:data/read/msearch", "indices:data/read/search"]),
    ("GET|POST", r"(/{index})?/_mget", ["indices:data/read/mget", "indices:data/read/mget[shard]"]),
    ("PUT|POST", r"(/{index})?/_bulk", ["indices:data/write/bulk", "indices:data/write/bulk[s]"]),
    ("POST", r"/{index}/_search/point_in_time", ["indices:data/read/point_in_time/create"]),
    ("DELETE", r"/_search/point_in_time", ["indices:data/read/point_in_time/delete"]),
    ("GET|POST", r"(/{index})?/_search", ["indices:data/read/search"]),
    ("GET|POST", r"/{index}/_count", ["indices:data/read/search"]),
    ("GET|POST", r"/{index}/_field_caps", ["indices:data/read/field_caps"]),
    ("GET|POST", r"/{index}/_analyze", ["indices:admin/analyze"]),
    ("GET|HEAD", r"/{index}/_doc/[^/]+", ["indices:data/read/get"]),
    ("GET|POST", r"/{index}/_refresh", ["indices:admin/refresh", "indices:admin/refresh[s]"]),
    ("GET|POST", r"/{index}/_flush", ["indices:admin/flush", "indices:admin/flush[s]"]),
    ("POST", r"/{index}/_forcemerge", ["indices:admin/forcemerge"]),
    ("PUT", r"/{index}/_block/[^/]+", ["indices:admin/block/add"]),
    ("GET", r"/{index}/_stats(/.*)?", ["indices:monitor/stats"]),
    ("GET", r"/{index}/_settings(/.*)?", ["indices:monitor/settings/get"]),
    ("PUT", r"/{index}/_settings", ["indices:admin/settings/update"]),
    ("GET", r"/{index}/_mappings?", ["indices:admin/mappings/get"]),
    ("PUT|POST", r"/{index}/_mappings?", ["indices:admin/mapping/put"]),
    ("GET|HEAD", r"/{index}", ["indices:admin/get"]),
    ("PUT", r"/{index}", ["indices:admin/create"]),
    ("DELETE", r"/{index}", ["indices:admin/delete"]),
]


class Need(NamedTuple):
    """One action of a request, and the index that it is on; empty where it is on the cluster."""

    action: str
    index: str


def needs(method: str, path: str, body: bytes) -> list[Need]:
    """What a request needs.

    Raises:
        LookupError: nobody has written that down yet.
    """
    bare = unquote(urlsplit(path).path).rstrip("/") or "/"
    for methods, pattern, actions in _ACTIONS:
        found = re.fullmatch(pattern.replace("{index}", r"(?P<index>[^_/][^/]*)"), bare)
        if found and method in methods.split("|"):
            index = found.groupdict().get("index") or ""
            names = index.split(",") if index else sorted(_named(bare, body))
            needed = [Need(action, name) for action in actions for name in (names or [""])]
            return [*dict.fromkeys(n._replace(index="" if _of_the_cluster(n.action) else n.index) for n in needed)]
    raise LookupError(f"Which permission {method} {bare} needs is not written down in {__name__}.")


def _named(path: str, body: bytes) -> set[str]:
    """The indices that a body names."""
    if path == "/_aliases":
        return {next(iter(action.values()))["index"] for action in json.loads(body)["actions"]}
    if path == "/_reindex":
        asked = json.loads(body)
        return {asked["source"]["index"], asked["dest"]["index"]}
    if path.endswith(("_bulk", "_mget", "_msearch")):
        return set(re.findall(r'"_?index":\s*"([^"]+)"', body.decode()))
    return set()


def _of_the_cluster(action: str) -> bool:
    return _OF_THE_CLUSTER.fullmatch(action) is not None


class Guard:
    """What a user with a role may do, for the proxy's ``refuse``.

    Attributes:
        used: the permissions that requests needed, in the order of their first use.
        without: permissions that are missing all the same.
        unknown: requests of which nobody knows what they need; empty in a test that passes.
    """

    def __init__(self, role: Mapping[str, Any], user: str = "loader", *, without: Iterable[str] = ()) -> None:
        """Say what may be done.

        Args:
            role: the body of the security plugin's REST API for roles.
            user: the user's name.
            without: permissions that are missing all the same.
        """
        self._cluster = _resolved(role.get("cluster_permissions", []))
        self._indices = [
            (entry["index_patterns"], _resolved(entry["allowed_actions"])) for entry in role["index_permissions"]
        ]
        self._user, self.without = user, set(without)
        self.used: dict[str, None] = {}
        self.unknown: list[str] = []

    def __call__(self, method: str, path: str, _: Message, body: bytes) -> tuple[int, bytes] | None:
        """The refusal of a request, or None."""
        try:
            needed = needs(method, path, body)
        except LookupError as error:
            self.unknown.append(str(error))
            return 500, b'{"error": "unknown"}'
        for need in needed:
            self.used[need.action] = None
            if not self._may(need):
                return self._refusal(need.action, path, body)
        return None

    def _may(self, need: Need) -> bool:
        if need.action in self.without:
            return False
        if not need.index and _of_the_cluster(need.action):
            return _fits(need.action, self._cluster)
        if not need.index:
            # On a point in time, whose id alone tells the index.
            return any(_fits(need.action, actions) for _, actions in self._indices)
        return any(_fits(need.action, actions) for names, actions in self._indices if _fits(need.index, names))

    def _refusal(self, action: str, path: str, body: bytes) -> tuple[int, bytes]:
        error = security_exception(action, user=self._user)["error"]
        plain = {name: error[name] for name in ("type", "reason")}
        # Actions on shards are refused within an answer.
        if action == "indices:data/write/bulk[s]":
            sent = [json.loads(line) for line in body.splitlines() if re.match(rb'\{"(index|delete)":', line)]
            items = [{name: {**of, "status": 403, "error": plain} for name, of in one.items()} for one in sent]
            return 200, json.dumps({"took": 1, "errors": True, "items": items}).encode()
        if action == "indices:data/read/mget[shard]":
            wanted = json.loads(body)
            ids = wanted.get("ids") or [document["_id"] for document in wanted["docs"]]
            return 200, json.dumps({"docs": [{"_id": id, "error": plain} for id in ids]}).encode()
        if path.partition("?")[0].endswith("/_msearch"):
            count = len(body.splitlines()) // 2
            return 200, json.dumps({"took": 1, "responses": [{"error": error, "status": 403}] * count}).encode()
        return 403, json.dumps(security_exception(action, user=self._user)).encode()


def documented_roles(name: str) -> list[dict[str, Any]]:
    """The roles of the documentation, for another index: searching, loading, everything."""
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    return [json.loads(block.replace('"old-news"', f'"{name}-old"').replace('"news', f'"{name}')) for block in blocks]


def with_every_index(role: Mapping[str, Any]) -> dict[str, Any]:
    """A role that may also list all indices, as the documentation says."""
    every = json.loads(re.search(r"^`({.*})`$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)[1])
    return {**role, "index_permissions": [*role["index_permissions"], every]}


def security_exception(*permissions: str, user: str = "loader") -> dict[str, Any]:
    """The body with which the security plugin refuses a request."""
    reason = (
        f"no permissions for [{', '.join(permissions)}] and User [name={user}, backend_roles=[], requestedTenant=null]"
    )
    error = {"type": "security_exception", "reason": reason}
    return {"error": {"root_cause": [error], **error}, "status": 403}


def _resolved(names: Sequence[str]) -> list[str]:
    """Patterns of actions, the groups taken apart."""
    return [pattern for name in names for pattern in (_resolved(GROUPS[name]) if name in GROUPS else [name])]


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)

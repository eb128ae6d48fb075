"""What OpenSearch 3.6, its k-NN plugin and nginx say when they refuse, word for word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from bulk_body import Operation


class Refusal(NamedTuple):
    """Why something is refused.

    Attributes:
        status: HTTP status.
        error: the ``error`` of an item, or of an answer.
    """

    status: int
    error: Mapping[str, Any]

    def whole(self) -> bytes:
        """The body of an answer that refuses a whole request."""
        cause = {name: self.error[name] for name in ("type", "reason")}
        return json.dumps({"error": {"root_cause": [cause], **self.error}, "status": self.status}).encode()


def rejected(operation: Operation) -> Refusal:  # noqa: ARG001 - one signature for all
    """The queue of writes is full."""
    reason = (
        "rejected execution of org.opensearch.common.util.concurrent.TimedRunnable@5b3b1d63 on "
        "OpenSearchThreadPoolExecutor[name = node-1/write, queue capacity = 10000, "
        "org.opensearch.common.util.concurrent.OpenSearchThreadPoolExecutor@3c1b7f0e[Running, pool size = 2, "
        "active threads = 2, queued tasks = 10000, completed tasks = 84211]]"
    )
    return Refusal(429, {"type": "rejected_execution_exception", "reason": reason})


def unavailable(operation: Operation) -> Refusal:
    """The primary shard is on no node for the moment."""
    reason = (
        f"[{operation.target}][0] primary shard is not active Timeout: [1m], request: "
        f"[BulkShardRequest [[{operation.target}][0]] containing [1] requests]"
    )
    return Refusal(503, {"type": "unavailable_shards_exception", "reason": reason})


def unparsable(operation: Operation) -> Refusal:
    """The document does not fit the mapping."""
    reason = (
        f"failed to parse field [year] of type [integer] in document with id '{operation.id}'. "
        "Preview of field's value: 'soon'"
    )
    cause = {"type": "number_format_exception", "reason": 'For input string: "soon"'}
    return Refusal(400, {"type": "mapper_parsing_exception", "reason": reason, "caused_by": cause})


def flooded(operation: Operation) -> Refusal:
    """The disk is nearly full, so that the index takes nothing any more."""
    reason = (
        f"index [{operation.target}] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, "
        "index has read-only-allow-delete block];"
    )
    return Refusal(429, {"type": "cluster_block_exception", "reason": reason})


def broken(operation: Operation) -> Refusal:
    """The memory breaker of k-NN, which looks like a bad document."""
    cause = {
        "type": "knn_circuit_breaker_exception",
        "reason": "Parsing the created knn vector fields prior to indexing has failed as the circuit breaker "
        "triggered.  This indicates that the cluster is low on memory resources and cannot index more documents at "
        "the moment. Check _plugins/_knn/stats for the circuit breaker status.",
    }
    return Refusal(400, {**bad_vector(operation).error, "caused_by": cause})


def bad_vector(operation: Operation) -> Refusal:
    """A document whose vector cannot be read."""
    reason = (
        f"failed to parse field [embedding] of type [knn_vector] in document with id '{operation.id}'. "
        "Preview of field's value: '0.1'"
    )
    return Refusal(400, {"type": "mapper_parsing_exception", "reason": reason})


def pressed() -> Refusal:
    """Indexing pressure refuses a whole request."""
    reason = (
        "rejected execution of coordinating operation [coordinating_and_primary_bytes=0, replica_bytes=0, "
        "all_bytes=0, coordinating_operation_bytes=86531, max_coordinating_and_primary_bytes=73400]"
    )
    return Refusal(429, {"type": "rejected_execution_exception", "reason": reason})


def not_recovered() -> Refusal:
    """The cluster has no manager yet."""
    reason = "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];"
    return Refusal(503, {"type": "cluster_block_exception", "reason": reason})


def recovering() -> Refusal:
    """A request has waited in vain for the cluster manager to recover the cluster's state from its disk."""
    block = not_recovered().error
    reason = f"ClusterBlockException[{block['reason']}]"
    kind = "cluster_manager_not_discovered_exception"
    return Refusal(503, {"root_cause": [block], "type": kind, "reason": reason, "caused_by": block})


def unknown(index: str) -> Refusal:
    """There is no index of that name, or the node or the cluster manager has not recovered the cluster's state yet."""
    cause = {
        "type": "index_not_found_exception",
        "reason": f"no such index [{index}]",
        "index": index,
        "resource.id": index,
        "resource.type": "index_or_alias",
        "index_uuid": "_na_",
    }
    return Refusal(404, {"root_cause": [cause], **cause})


def unknown_target(operation: Operation) -> Refusal:
    """There is no index of that name to write to, and none may be made by writing to it; or as in ``unknown``."""
    reason = f"no such index [{operation.target}]"
    names = {"index": operation.target, "index_uuid": "_na_"}
    return Refusal(404, {"type": "index_not_found_exception", "reason": reason, **names})


def malformed() -> Refusal:
    """The body of a bulk request cannot be read."""
    reason = "Malformed action/metadata line [1], expected START_OBJECT but found [VALUE_STRING]"
    return Refusal(400, {"type": "illegal_argument_exception", "reason": reason})


def failed() -> Refusal:
    """The server met an error of its own."""
    reason = 'Cannot invoke "String.length()" because "value" is null'
    return Refusal(500, {"type": "null_pointer_exception", "reason": reason})


def nginx(status: int) -> bytes:
    """The page of a proxy."""
    title = {413: "413 Request Entity Too Large", 502: "502 Bad Gateway", 503: "503 Service Temporarily Unavailable"}
    return (
        f"<html>\r\n<head><title>{title[status]}</title></head>\r\n<body>\r\n<center><h1>{title[status]}</h1></center>"
        "\r\n<hr><center>nginx/1.27.3</center>\r\n</body>\r\n</html>\r\n"
    ).encode()


def security_exception(*permissions: str, user: str = "loader") -> dict[str, Any]:
    """The body with which the security plugin refuses a request."""
    reason = (
        f"no permissions for [{', '.join(permissions)}] and User [name={user}, backend_roles=[], requestedTenant=null]"
    )
    error = {"type": "security_exception", "reason": reason}
    return {"error": {"root_cause": [error], **error}, "status": 403}

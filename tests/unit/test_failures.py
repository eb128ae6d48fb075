"""What langshift says of a failed request, from what the client library raises."""

from __future__ import annotations

import pytest
from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    ConnectionTimeout,
    RequestError,
    SerializationError,
    SSLError,
    TransportError,
)
from opensearchpy.exceptions import ConnectionError as UnreachableError
from urllib3.exceptions import ConnectTimeoutError, ReadTimeoutError

from langshift.client import address, make_client, version_tuple
from langshift.errors import ClusterError, LangshiftError, UnavailableError
from langshift.ingest.bulk.document_versions import VersionsAhead
from langshift.ingest.publication import LoadNotPublished
from langshift.plugin.metadata import MetadataError
from langshift.server_errors import Retryable, classify, failure, missing_permissions
from langshift.settings import Settings

URL = "https://search.example:9200"
SILENT = (
    f"The cluster at {URL} did not answer in time: check the address and the cluster's load, "
    "or raise OPENSEARCH_TIMEOUT (seconds)."
)


PUT = "cluster:admin/ingest/pipeline/put"
LOADER = "User [name=loader, backend_roles=[], requestedTenant=null]"


def because(reason: object, *, root: str | None = None, kind: str = "illegal_argument_exception") -> dict:
    error = {"type": kind, "reason": reason}
    return {"error": error | ({"root_cause": [{"type": kind, "reason": root}]} if root else {})}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            AuthenticationException(401, "Unauthorized", "Unauthorized"),
            f"The cluster at {URL} rejects the user name or password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD.",
        ),
        (
            AuthorizationException(403, "security_exception", because("Index is immutable")),
            f"The cluster at {URL} denies the request: Index is immutable.",
        ),
        (
            AuthorizationException(403, "security_exception", because(f"no permissions for [{PUT}] and {LOADER}")),
            f"The cluster at {URL} denies the request: the user loader does not have the permission {PUT} "
            "(in the action group cluster_manage_pipelines); ask the cluster's administrator for it.",
        ),
        (
            AuthorizationException(403, "x", {"Message": "User: arn:x is not authorized to perform: es:ESHttpPut"}),
            f"The cluster at {URL} denies the request: User: arn:x is not authorized to perform: es:ESHttpPut.",
        ),
        (
            AuthorizationException(
                403, "cluster_block_exception", because("index [e] blocked by: [FORBIDDEN/8/index write (api)];")
            ),
            f"The cluster at {URL} answered 403: index [e] blocked by: [FORBIDDEN/8/index write (api)].",
        ),
        (
            RequestError(
                400,
                "index_closed_exception",
                {"error": {"type": "index_closed_exception", "reason": "closed", "index": "e-v0001"}},
            ),
            f"The cluster at {URL} answered 400: e-v0001 is closed; open it with `POST /e-v0001/_open`.",
        ),
        (ConnectionTimeout("TIMEOUT", "slow", ReadTimeoutError(None, "/", "slow")), SILENT),
        (UnreachableError("N/A", "slow", ConnectTimeoutError("slow")), SILENT),
        (
            UnreachableError("N/A", "closed", ConnectionResetError()),
            f"The cluster at {URL} cannot be reached: check that it is running and that OPENSEARCH_URL is its address "
            "(http or https, host, port).",
        ),
        (
            RequestError(400, "illegal_argument_exception", because("wrong\n  dimension.", root="wrong\n  dimension.")),
            f"The cluster at {URL} answered 400: wrong dimension.",
        ),
        (
            RequestError(400, "x", because("all shards failed", root="no field [embedding]")),
            f"The cluster at {URL} answered 400: all shards failed: no field [embedding].",
        ),
        (
            RequestError(400, "x", because(None, kind="mapper_exception")),
            f"The cluster at {URL} answered 400: mapper_exception.",
        ),
        (
            RequestError(400, "x", {"error": "no handler found for uri [/x]"}),
            f"The cluster at {URL} answered 400: no handler found for uri [/x].",
        ),
        (TransportError(502, "<html>", "<html>"), f"The cluster at {URL} answered 502: Bad Gateway."),
        (TransportError(520, "<html>", "<html>"), f"The cluster at {URL} answered 520: a page of HTML."),
        (
            SerializationError("Unknown\nmimetype"),
            f"The cluster at {URL} gave an unreadable answer: Unknown mimetype.",
        ),
    ],
)
def test_sentence(error, sentence, monkeypatch):
    monkeypatch.setenv("OPENSEARCH_URL", URL)
    assert str(failure(error, URL)) == sentence


def test_without_an_address_it_is_just_the_cluster():
    sentence = "The cluster answered 502: Bad Gateway."
    assert str(failure(TransportError(502, "<html>", "<html>"))) == sentence


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://localhost", "http://localhost:9200"),
        ("https://search.example", "https://search.example:443"),
        ("https://search.example:9200/a/b", "https://search.example:9200/a/b"),
        ("http://[::1]:9200", "http://[::1]:9200"),
    ],
)
def test_address_that_is_asked(url, asked):
    settings = Settings.from_env({"OPENSEARCH_URL": url})
    with make_client(settings, url) as client:
        assert address(client) == asked


@pytest.mark.parametrize(
    ("number", "expected"), [("3.6.0", (3, 6, 0)), ("3.0.0-beta1", (3, 0, 0)), ("", (0,)), ("3.x", (3, 0))]
)
def test_versions(number, expected):
    assert version_tuple(number) == expected


def test_the_embedded_one_is_named_where_no_address_is_set(monkeypatch):
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    assert str(failure(UnreachableError("N/A", "closed", ConnectionResetError()), "http://127.0.0.1:9200")) == (
        "The embedded OpenSearch can no longer be reached: `langshift doctor` shows why, `langshift up` restarts it."
    )


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (
            # A user of AWS, and what a bulk request lacks on an index.
            "no permissions for [indices:data/write/bulk[s], indices:data/write/index] and "
            "User [name=arn:aws:iam::1:role/x, backend_roles=[a, b], requestedTenant=null]",
            "denies the request: the user arn:aws:iam::1:role/x does not have the permissions "
            "indices:data/write/bulk[s] and indices:data/write/index (in the action group write); "
            "ask the cluster's administrator for them.",
        ),
        (
            "all shards failed: no permissions for [indices:admin/aliases, cluster:admin/script/put, "
            "cluster:monitor/task/get] and associated roles [own_index]",
            "denies the request: this user does not have the permissions indices:admin/aliases (in the action group "
            "manage_aliases), cluster:admin/script/put and cluster:monitor/task/get (in the action group "
            "cluster_monitor); ask the cluster's administrator for them.",
        ),
        (
            "no permissions for [indices:admin/get]",
            "denies the request: this user does not have the permission indices:admin/get; "
            "ask the cluster's administrator for it.",
        ),
        (
            "no permissions for [indices:data/write/bulk[s]].",
            "denies the request: this user does not have the permission indices:data/write/bulk[s] "
            "(in the action group write); ask the cluster's administrator for it.",
        ),
    ],
)
def test_what_the_security_plugin_says_of_permissions(words, end):
    assert str(missing_permissions(words)) == end


@pytest.mark.parametrize(
    "words",
    [
        f"no permissions for [] and {LOADER}",
        "No mapping for User [name=loader, backend_roles=[], requestedTenant=null] on roles [x]",
        "index [e1] blocked by: [FORBIDDEN/8/index write (api)];",
    ],
)
def test_other_words_are_not_of_permissions(words):
    assert missing_permissions(words) is None


@pytest.mark.parametrize(
    ("permission", "group"),
    [
        ("cluster:monitor/main", "cluster_monitor"),
        ("indices:data/write/bulk", "cluster_composite_ops"),
        ("indices:data/read/mget", "cluster_composite_ops_ro"),
        ("indices:data/read/mget[shard]", "read"),
        ("indices:data/read/search", "search"),
        ("indices:admin/create", "create_index"),
        ("indices:admin/settings/update", "manage"),
        ("indices:admin/template/put", "cluster_manage_index_templates"),
        ("indices:monitor/stats", "indices_monitor"),
        # The group that has it deletes indices too.
        ("indices:admin/mappings/get", None),
        ("cluster:admin/script/put", None),
    ],
)
def test_default_action_group(permission, group):
    named = f"the permission {permission}" + (f" (in the action group {group});" if group else ";")
    assert named in str(missing_permissions(f"no permissions for [{permission}] and {LOADER}"))


def test_what_may_work_a_moment_later_is_told_apart():
    later = [
        TransportError(429, "rejected_execution_exception", because("rejected")),
        TransportError(502, "x", "<html>"),
        TransportError(503, "cluster_block_exception", because("no cluster manager")),
        UnreachableError("N/A", "refused", OSError()),
        ConnectionTimeout("TIMEOUT", "timed out", OSError()),
    ]
    assert {type(failure(error, URL)) for error in later} == {UnavailableError}
    for_good = [TransportError(500, "x", because("broken")), RequestError(400, "x", because("bad"))]
    assert {type(failure(error, URL)) for error in for_good} == {ClusterError}


def test_a_tls_connection_that_breaks_off_is_trouble_that_passes():
    broken = SSLError("N/A", "EOF occurred in violation of protocol", OSError("EOF occurred in violation of protocol"))
    found = classify(broken, "https://127.0.0.1:9200")
    assert isinstance(found, Retryable)
    assert (str(found), found.lost) == ("the connection was interrupted", True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            SSLError("N/A", "", OSError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired")),
            "The cluster at https://127.0.0.1:9200 presents a certificate that has expired: renew it on the cluster, "
            "or disable verification with OPENSEARCH_SSL_VERIFY=false.",
        ),
        (
            UnreachableError("N/A", "", RuntimeError("Credentials were refreshed, but they are still expired.")),
            "The AWS credentials are not available (those received are expired or unreadable): check AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY, the profile or the role.",
        ),
    ],
    ids=["certificate", "credentials"],
)
def test_what_no_waiting_mends_ends_a_load(error, message):
    found = classify(error, "https://127.0.0.1:9200")
    assert isinstance(found, ClusterError)
    assert str(found) == message


def test_an_error_of_an_event_loop_is_none_of_credentials():
    error = classify(UnreachableError("N/A", "", RuntimeError("Event loop is closed")), "http://127.0.0.1:9200")
    assert isinstance(error, Retryable)


@pytest.mark.parametrize(
    "error",
    [
        LangshiftError("No.", log=["last words"]),
        VersionsAhead("news-v0001", 7, 5),
        MetadataError("news-v0001", "_meta is wrong"),
        LoadNotPublished("No.", None),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_with_another_sentence_keeps_all_else_that_it_carries(error):
    again = error.reworded(f"{error.sentence} Run it again.")
    assert type(again) is type(error)
    assert str(again) == str(error).replace(error.sentence, f"{error.sentence} Run it again.")
    assert {**vars(again), "sentence": error.sentence} == vars(error)

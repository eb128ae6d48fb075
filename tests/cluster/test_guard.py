"""What the embedded OpenSearch refuses: requests that a web page of somebody else's could make a browser send."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import pytest
from opensearchpy import OpenSearch
from opensearchpy.helpers import bulk

DOCUMENTS = 300
WRONG_HOST = (
    "The embedded OpenSearch is available only as localhost or 127.0.0.1: the Host header of this request names "
    "something else."
)
WRONG_ORIGIN = (
    "The embedded OpenSearch takes no requests from web pages of another origin: let the server of the page send them."
)
WRONG_SITE = (
    "The embedded OpenSearch takes no requests from other web pages and follows no links on them: type its address "
    "into the browser."
)
WRONG_TYPE = (
    "The embedded OpenSearch takes JSON only: send the header Content-Type: application/json, or none where there is "
    "no body."
)
FORM = "application/x-www-form-urlencoded"
#: Requests that change something and need no body, as method and path.
CHANGES = [
    ("POST", "/{index}/_delete_by_query?q=*&refresh=true"),
    ("POST", "/{index}/_delete_by_query?source_content_type=application/json&source=%7B%22query%22:%7B%22match_all%22"
     ":%7B%7D%7D%7D"),
    ("DELETE", "/{index}"),
    ("DELETE", "/{index}/_doc/1"),
    ("POST", "/{index}/_close"),
    ("POST", "/{index}/_refresh"),
    ("POST", "/{index}/_forcemerge"),
    ("PUT", "/{index}-made"),
    ("PUT", "/{index}/_alias/{index}-made"),
    ("POST", "/_cache/clear"),
    ("GET", "/{index}/_flush"),
]  # fmt: skip
READS = ["/", "/{index}/_search", "/{index}/_search?scroll=1h", "/_cat/indices", "/{index}/_doc/1", "/_cluster/state"]


@pytest.fixture(scope="module")
def index(client: OpenSearch) -> Iterator[str]:
    """An index of 300 documents, which every request of this module is to leave as it is."""
    if {"langshift_native"} - {name for node in client.nodes.info()["nodes"].values() for name in node["attributes"]}:
        pytest.skip("the tests' cluster is not the embedded one")
    name = "langshift-test-guarded"
    client.indices.delete(index=f"{name}*")
    bulk(client, ({"_index": name, "_id": str(number), "n": number} for number in range(DOCUMENTS)), refresh=True)
    yield name
    client.indices.refresh(index=name)
    assert client.count(index=name)["count"] == DOCUMENTS
    assert client.indices.get_alias(index=f"{name}*") == {name: {"aliases": {}}}
    client.indices.delete(index=name)


def ask(
    url: str, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> tuple[int, object]:
    """Send a request with just these headers and Host; gives status and error, None where there is none."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    try:
        sent = {"Host": place.netloc, **(headers or {})}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status < 400:
        return answer.status, None
    return answer.status, json.loads(content)["error"] if content else None


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.mark.parametrize("method_path", CHANGES, ids=" ".join)
@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ({"Host": "evil.example:{port}"}, (403, WRONG_HOST)),
        ({"Origin": "http://evil.example", "Content-Type": FORM}, (403, WRONG_ORIGIN)),
        ({"Origin": "null"}, (403, WRONG_ORIGIN)),
        ({"Sec-Fetch-Site": "same-site"}, (403, WRONG_SITE)),
        ({"Content-Type": FORM}, (415, WRONG_TYPE)),
        ({"Content-Type": "multipart/form-data; boundary=x"}, (415, WRONG_TYPE)),
        ({"Content-Type": "text/plain"}, (415, WRONG_TYPE)),
    ],
    ids=["host", "origin", "null", "site", "form", "multipart", "text"],
)
def test_no_change_that_needs_no_body(
    cluster_url: str, index: str, method_path: tuple[str, str], headers: dict[str, str], refusal: tuple[int, str]
) -> None:
    method, path = method_path
    sent = {name: value.format(port=port_of(cluster_url)) for name, value in headers.items()}
    found = ask(cluster_url, method, path.format(index=index), sent)
    # A GET's type says nothing: no form sends one.
    assert found == ((200, None) if method == "GET" and refusal[0] == 415 else refusal)


@pytest.mark.parametrize("kind", [FORM, "multipart/form-data; boundary=x", "text/plain", None])
@pytest.mark.parametrize(("method", "path"), [("POST", "/{index}/_delete_by_query"), ("PUT", "/{index}/_doc/1")])
def test_no_body_of_a_forms_types(cluster_url: str, index: str, kind: str | None, method: str, path: str) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    status, error = ask(cluster_url, method, path.format(index=index), headers, b'{"query": {"match_all": {}}}')
    assert (status, error) == (406, f"Content-Type header [{kind or ''}] is not supported")


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        *(({"Host": name}, (403, WRONG_HOST)) for name in (
            *("evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example", ""),
            *("evil.localhost:{port}", "localhost.:{port}", "127.0.0.1@evil.example", "[::1", "[::2]:{port}"),
        )),
        *(({"Origin": origin}, (403, WRONG_ORIGIN)) for origin in (
            *("null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://localhost:{port}"),
            *("http://127.0.0.1:1", "chrome-extension://abc", "", "*"),
        )),
        *(({"Sec-Fetch-Site": site}, (403, WRONG_SITE)) for site in ("cross-site", "same-site", "")),
    ],
    ids=str,
)  # fmt: skip
def test_nothing_is_read_from_elsewhere(
    cluster_url: str, index: str, path: str, headers: dict[str, str], refusal: tuple[int, str]
) -> None:
    sent = {name: value.format(port=port_of(cluster_url)) for name, value in headers.items()}
    assert ask(cluster_url, "GET", path.format(index=index), sent) == refusal


def test_two_hosts_are_not_one(cluster_url: str) -> None:
    place = urlsplit(cluster_url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    connection.putrequest("GET", "/", skip_host=True)
    connection.putheader("Host", place.netloc)
    connection.putheader("Host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST", "127.0.0.1:{port}", "[::1]:{port}", "localhost:1"])
def test_its_own_names_are_answered_at_any_port(cluster_url: str, host: str) -> None:
    """As ``ssh -L`` and a proxy ask: a page's own name is never one of these."""
    assert ask(cluster_url, "GET", "/", {"Host": host.format(port=port_of(cluster_url))}) == (200, None)


@pytest.mark.parametrize(
    ("method", "path", "kind", "body"),
    [
        ("POST", "/{index}/_refresh", None, None),
        ("POST", "/{index}/_refresh", None, b""),
        ("POST", "/{index}/_refresh", "application/json", None),
        ("GET", "/{index}/_search", "application/json", b'{"size": 1}'),
        ("POST", "/{index}/_search", "application/json; charset=UTF-8", b'{"size": 1}'),
        ("POST", "/{index}/_search", "application/vnd.opensearch+json; compatible-with=3", b'{"size": 1}'),
        ("POST", "/{index}/_search", "application/yaml", b"size: 1"),
        ("POST", "/{index}/_search", "application/cbor", b"\xa1dsize\x01"),
        ("POST", "/{index}/_bulk", "application/x-ndjson", b'{"index": {"_id": "1"}}\n{"n": 1}\n'),
        ("HEAD", "/{index}", None, None),
        ("DELETE", "/{index}-missing*", None, None),
    ],
)
def test_clients_work_as_before(
    cluster_url: str, index: str, method: str, path: str, kind: str | None, body: bytes | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    assert ask(cluster_url, method, path.format(index=index), headers, body)[0] == 200


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_a_person_may_open_its_address_and_its_own_pages_may_ask(cluster_url: str, site: str) -> None:
    assert ask(cluster_url, "GET", "/", {"Sec-Fetch-Site": site, "Origin": cluster_url}) == (200, None)

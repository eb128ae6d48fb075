"""Opening a cluster through the command line: what works, and the sentence for what does not."""

from __future__ import annotations

import json
import os
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import NamedTuple

import command_line
import pytest
import trustme
from model_http import serving
from tls_proxy import Rewrite, proxy, server_side

from langshift.client import open_cluster
from langshift.settings import Settings

USER, SECRET = "anna", "grün:s3cret/@%ß猫"
NO_SUCH_INDEX = "There is no index nothing-here: create it with `langshift ingest CORPUS --index nothing-here`."
OFF = "disable verification with OPENSEARCH_SSL_VERIFY=false."


class Run(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    def findings(self) -> dict[str, dict[str, str]]:
        """Doctor's findings on the cluster, by name."""
        document = json.loads(self.out)
        assert document["ok"] is (self.code == 0)
        return {f["name"]: f for f in document["findings"] if f["section"] == "cluster"}


@pytest.fixture
def langshift(tmp_path):
    """Run a command with these variables only; no secret and no traceback may come out."""
    usual = {"PATH": os.environ["PATH"], "HOME": tmp_path, "LANGSHIFT_HOME": tmp_path}

    def run(*arguments: str, **env: str) -> Run:
        done = command_line.langshift(*arguments, only={}, **usual | env)
        for text in (done.stdout, done.stderr):
            assert "Traceback" not in text
            for secret in (SECRET, "s3cret", b64encode(f"{USER}:{SECRET}".encode()).decode()):
                assert secret not in text
        return Run(*done)

    return run


def assert_refused(langshift, sentence: str, *, value: str = "no", **env: str) -> None:
    """Both search and doctor must say exactly this, and fail."""
    assert langshift("search", "nothing-here", "words", **env) == (1, "", f"Error: {sentence}\n")
    told = langshift("doctor", "--json", **env)
    assert (told.code, told.err) == (1, "")
    assert told.findings() == {
        "reachable": {
            "section": "cluster",
            "name": "reachable",
            "status": "missing",
            "value": value,
            "remedy": sentence,
        }
    }


def assert_works(langshift, url: str, **env: str) -> None:
    """The cluster is opened: search misses nothing but its index, doctor finds everything."""
    done = langshift("search", "nothing-here", "words", OPENSEARCH_URL=url, **env)
    assert done == (1, "", f"Error: {NO_SUCH_INDEX}\n")
    told = langshift("doctor", "--json", OPENSEARCH_URL=url, **env)
    assert (told.code, told.err) == (0, "")
    assert told.findings()["reachable"]["value"] == url
    assert told.findings()["opensearch-knn"]["status"] == "ok"


def as_anna(url: str, **env: str) -> dict[str, str]:
    return {"OPENSEARCH_URL": url, "OPENSEARCH_USERNAME": USER, "OPENSEARCH_PASSWORD": SECRET, **env}


@pytest.fixture
def secured(cluster_url, authority) -> Iterator[str]:
    """The real server behind TLS that demands a user name and password."""
    with proxy(cluster_url, tls=authority.server, credentials=(USER, SECRET)) as (url, _):
        yield url


def test_plain_http_without_credentials(langshift, cluster_url):
    with proxy(cluster_url) as (url, server):
        assert_works(langshift, url)
        assert {authorised for _, authorised in server.seen} == {False}


def test_right_password_and_ca_file(langshift, secured, authority):
    env = as_anna(secured, OPENSEARCH_CA_FILE=str(authority.file))
    assert_works(langshift, env.pop("OPENSEARCH_URL"), **env)


def test_verification_off_is_silent(langshift, secured):
    env = as_anna(secured, OPENSEARCH_SSL_VERIFY="false")
    assert_works(langshift, env.pop("OPENSEARCH_URL"), **env)


def test_credentials_in_the_address(langshift, cluster_url):
    with proxy(cluster_url, credentials=("an@na", "s3cret/:")) as (url, _):
        address = url.replace("http://", "http://an%40na:s3cret%2F%3A@")
        done = langshift("search", "nothing-here", "words", OPENSEARCH_URL=address)
        assert done == (1, "", f"Error: {NO_SUCH_INDEX}\n")
        told = langshift("doctor", "--json", OPENSEARCH_URL=address)
        assert (told.code, told.findings()["reachable"]["value"]) == (0, url)


def test_the_opened_client_keeps_its_credentials_to_itself(secured, authority):
    settings = Settings.from_env(as_anna(secured, OPENSEARCH_CA_FILE=str(authority.file)))
    with closing(open_cluster(settings)) as client:
        assert client.info()["version"]["distribution"] == "opensearch"
        for shown in (repr(client), str(client.transport.hosts), repr(client.transport.get_connection())):
            assert "s3cret" not in shown


def test_wrong_password(langshift, secured, authority):
    env = as_anna(secured, OPENSEARCH_CA_FILE=str(authority.file)) | {"OPENSEARCH_PASSWORD": "s3cret"}
    sentence = (
        f"The cluster at {secured} rejects the user name or password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD."
    )
    assert_refused(langshift, sentence, **env)


def test_no_password(langshift, secured, authority):
    sentence = (
        f"The cluster at {secured} requires a user name and password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD."
    )
    env = {"OPENSEARCH_URL": secured, "OPENSEARCH_CA_FILE": str(authority.file)}
    assert_refused(langshift, sentence, **env)


def test_certificate_of_an_unknown_authority(langshift, secured, tmp_path):
    sentence = (
        f"The cluster at {secured} presents a certificate that cannot be verified: "
        f"set OPENSEARCH_CA_FILE to the CA that signed it, or {OFF}"
    )
    assert_refused(langshift, sentence, **as_anna(secured))
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    assert_refused(langshift, sentence, **as_anna(secured, OPENSEARCH_CA_FILE=str(other)))


def test_certificate_for_another_name(langshift, cluster_url, authority):
    with proxy(cluster_url, tls=server_side(authority.ca.issue_cert("search.example"))) as (url, _):
        sentence = (
            f"The cluster at {url} presents a certificate issued for another name: "
            f"use that name in OPENSEARCH_URL, or {OFF}"
        )
        assert_refused(langshift, sentence, **as_anna(url, OPENSEARCH_CA_FILE=str(authority.file)))


def test_certificate_that_has_expired(langshift, cluster_url, authority):
    yesterday = datetime.now(timezone.utc) - timedelta(days=1)
    certificate = authority.ca.issue_cert("localhost", not_after=yesterday)
    with proxy(cluster_url, tls=server_side(certificate)) as (url, _):
        sentence = f"The cluster at {url} presents a certificate that has expired: renew it on the cluster, or {OFF}"
        assert_refused(langshift, sentence, **as_anna(url, OPENSEARCH_CA_FILE=str(authority.file)))


def test_ca_file_without_a_certificate(langshift, secured, tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("no certificate\n")
    sentence = f"OPENSEARCH_CA_FILE is set to {file}, which contains no valid certificate in PEM format."
    env = as_anna(secured, OPENSEARCH_CA_FILE=str(file))
    assert langshift("search", "nothing-here", "words", **env) == (2, "", f"Error: {sentence}\n")
    told = langshift("doctor", "--json", **env)
    assert (told.code, told.err, told.findings()["reachable"]["remedy"]) == (1, "", sentence)


def test_https_where_http_is_spoken(langshift, cluster_url):
    with proxy(cluster_url) as (url, _):
        address = url.replace("http://", "https://")
        sentence = f"The cluster at {address} does not use TLS: check whether OPENSEARCH_URL should begin with http://."
        assert_refused(langshift, sentence, **as_anna(address))


def test_http_where_https_is_spoken(langshift, secured):
    address = secured.replace("https://", "http://")
    assert_refused(langshift, unreachable(address), **as_anna(address))


def unreachable(url: str) -> str:
    return (
        f"The cluster at {url} cannot be reached: check that it is running and that OPENSEARCH_URL is its address "
        "(http or https, host, port)."
    )


def test_cluster_down(langshift):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    assert_refused(langshift, unreachable(url), **as_anna(url))


def test_host_that_does_not_exist(langshift):
    url = "http://no-such-host.invalid:9200"
    assert_refused(langshift, unreachable(url), **as_anna(url))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_host_that_does_not_answer(langshift, scheme):
    # The system takes the connection into its queue; nobody ever reads from it.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        sentence = (
            f"The cluster at {url} did not answer in time: check the address and the cluster's load, "
            "or raise OPENSEARCH_TIMEOUT (seconds)."
        )
        assert_refused(langshift, sentence, **as_anna(url, OPENSEARCH_TIMEOUT="0.3"))


@contextmanager
def web_server(status: int, kind: str, body: bytes) -> Iterator[str]:
    """Something else than OpenSearch, which answers every request the same."""
    with counting_web_server(status, kind, body) as (url, _):
        yield url


@contextmanager
def counting_web_server(status: int, kind: str, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """The same, with the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(HTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked


@pytest.mark.parametrize(
    ("status", "kind", "body", "says"),
    [
        (200, "text/html", b"<html><body>It works!</body></html>", ""),
        (404, "text/html", b"<html><body>Not here</body></html>", ""),
        (200, "text/plain", b"It works!", ""),
        (200, "application/json", b"<html>", ""),
        (200, "application/json", b"[]", ""),
        (200, "application/json", b'{"version": "1"}', ""),
        (200, "application/json", b'{"version": {"number": "8.15.0"}}', " (it reports version 8.15.0)"),
    ],
)
def test_something_that_is_no_opensearch(langshift, status, kind, body, says):
    with web_server(status, kind, body) as url:
        sentence = f"The server at {url} is not an OpenSearch{says}; check OPENSEARCH_URL."
        assert_refused(langshift, sentence, OPENSEARCH_URL=url)


def test_gateway_whose_cluster_is_away(langshift):
    with web_server(503, "text/html", b"<html><h1>503</h1></html>") as url:
        sentence = f"The cluster at {url} answered 503: Service Unavailable."
        assert_refused(langshift, sentence, OPENSEARCH_URL=url)


def test_security_that_is_not_ready(langshift):
    with web_server(503, "text/plain", b"OpenSearch Security not initialized.") as url:
        sentence = f"The cluster at {url} answered 503: OpenSearch Security not initialized."
        assert_refused(langshift, sentence, OPENSEARCH_URL=url)


def test_server_that_is_too_old(langshift, cluster_url):
    def older(path: str, status: int, body: bytes) -> tuple[int, bytes]:
        if path != "/":
            return status, body
        document = json.loads(body)
        document["version"]["number"] = "2.19.4"
        return status, json.dumps(document).encode()

    with proxy(cluster_url, rewrite=older) as (url, _):
        sentence = f"The cluster at {url} runs OpenSearch 2.19.4, but langshift needs 3.0 or later."
        done = langshift("search", "nothing-here", "words", OPENSEARCH_URL=url)
        assert done == (1, "", f"Error: {sentence}\n")
        told = langshift("doctor", "--json", OPENSEARCH_URL=url)
        assert told.code == 1
        version = told.findings()["version"]
        assert (version["status"], version["value"], version["remedy"]) == (
            "missing",
            "OpenSearch 2.19.4",
            sentence,
        )


def without(component: str) -> Rewrite:
    """Take a plugin out of the server's list."""

    def rewrite(path: str, status: int, body: bytes) -> tuple[int, bytes]:
        if not path.startswith("/_cat/plugins"):
            return status, body
        rows = [row for row in json.loads(body) if row["component"] != component]
        return status, json.dumps(rows).encode()

    return rewrite


def test_server_without_the_knn_plugin(langshift, cluster_url, client):
    number = client.info()["version"]["number"]
    with proxy(cluster_url, rewrite=without("opensearch-knn")) as (url, _):
        sentence = (
            f"The cluster at {url} has no k-NN plugin: run bin/opensearch-plugin install "
            f"org.opensearch.plugin:opensearch-knn:{number}.0 on every node and restart it."
        )
        done = langshift("search", "nothing-here", "words", OPENSEARCH_URL=url)
        assert done == (1, "", f"Error: {sentence}\n")
        told = langshift("doctor", "--json", OPENSEARCH_URL=url)
        knn = told.findings()["opensearch-knn"]
        assert (told.code, knn["status"], knn["remedy"]) == (1, "missing", sentence)


def test_server_without_neural_search_will_do(langshift, cluster_url):
    with proxy(cluster_url, rewrite=without("opensearch-neural-search")) as (url, _):
        assert_works(langshift, url)
        neural = langshift("doctor", "--json", OPENSEARCH_URL=url).findings()["opensearch-neural-search"]
        assert neural["status"] == "warning"
        assert neural["remedy"].startswith("For hybrid queries, run bin/opensearch-plugin install ")


def test_a_cluster_that_fails_at_once_is_not_asked_again(langshift):
    """With retries, a silent address would take several timeouts before the sentence comes."""
    with counting_web_server(503, "text/plain", b"away") as (url, asked):
        langshift("search", "nothing-here", "words", OPENSEARCH_URL=url)
        assert asked == ["/"]
        langshift("doctor", OPENSEARCH_URL=url)
        assert asked == ["/", "/"]

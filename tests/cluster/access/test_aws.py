"""Requests signed for AWS, through a proxy that checks every signature before the real server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

import command_line
import pytest
from model_http import serving
from tls_proxy import proxy

from langshift.client import make_async_client, make_client
from langshift.credentials import credentials
from langshift.server_errors import failure
from langshift.settings import Settings

from .aws_signature import MISMATCH, Verifier

ACCESS, SECRET, TOKEN = "AKIAFAKEFAKEFAKEFAKE", "fake/secret+key", "fake+token/=="
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
SIGNED = {"OPENSEARCH_AWS_REGION": "eu-central-1"}
CHECK = "check the AWS credentials, OPENSEARCH_AWS_REGION, OPENSEARCH_AWS_SERVICE and this machine's clock."


@pytest.fixture
def alone(tmp_path, monkeypatch) -> dict[str, str]:
    """Nothing of this machine's own settings of AWS, and no question to a metadata service."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "OPENSEARCH_"))]:
        monkeypatch.delenv(name)
    alone = {"AWS_EC2_METADATA_DISABLED": "true"}
    alone |= {f"AWS_{name}_FILE": str(tmp_path / "none") for name in ("CONFIG", "SHARED_CREDENTIALS")}
    for name, value in alone.items():
        monkeypatch.setenv(name, value)
    credentials.cache_clear()
    yield alone
    credentials.cache_clear()


@pytest.fixture
def langshift(alone, tmp_path):
    """Run a command with these variables only; no key may come out."""
    usual = {"PATH": os.environ["PATH"], "HOME": tmp_path, "LANGSHIFT_HOME": tmp_path, **alone}

    def run(*arguments: object, **env: str) -> tuple[int, str, str]:
        credentials.cache_clear()
        done = command_line.langshift(*arguments, only={}, **usual | env)
        for secret in (ACCESS, SECRET, TOKEN, "wrong-secret", "Traceback"):
            assert secret not in done.stdout + done.stderr
        return done

    return run


@pytest.mark.parametrize("token", [None, TOKEN])
def test_ingest_and_search_with_every_request_signed(langshift, cluster_url, index_name, tmp_path, token):
    corpus = tmp_path / "corpus.jsonl"
    texts = {"a/b c%": "Das Meer steigt und fällt zweimal am Tag.", "猫": "ทะเลขึ้นและลงวันละสองครั้ง"}
    lines = [json.dumps({"_id": i, "text": text}, ensure_ascii=False) + "\n" for i, text in texts.items()]
    corpus.write_text("".join(lines), encoding="utf-8")
    verifier = Verifier({ACCESS: (SECRET, token)})
    with proxy(cluster_url, refuse=verifier) as (url, server):
        env = KEYS | SIGNED | {"OPENSEARCH_URL": url} | ({"AWS_SESSION_TOKEN": token} if token else {})
        code, _, told = langshift("ingest", corpus, "--index", index_name, **env)
        assert code == 0, told
        code, out, told = langshift("search", index_name, "Ebbe und Flut", "--json", **env)
        assert (code, {hit["id"] for hit in json.loads(out)["hits"]}) == (0, set(texts)), told
        assert len(verifier.used) == len(server.seen)
        code, out, _ = langshift("doctor", "--json", **env)
    found = {f["name"]: f["value"] for f in json.loads(out)["findings"]}
    assert (code, found["OPENSEARCH_AWS_REGION"], found["OPENSEARCH_AWS_SERVICE"]) == (0, "eu-central-1", "es")


@pytest.mark.usefixtures("alone")
def test_asynchronous_requests_are_signed_alike(cluster_url, monkeypatch):
    async def ask(url: str) -> list[str]:
        async with make_async_client(Settings.from_env(), url) as client:
            await client.info()
            lines = [{"index": "_all"}, {"size": 0, "query": {"match": {"text": "ä/ %猫"}}}]
            await client.msearch(body=lines, params={"filter_path": "responses.*.hits,took"})
            return list(await client.indices.get(index="nothing-here", params={"ignore": 404}))

    verifier = Verifier({ACCESS: (SECRET, None)})
    with proxy(cluster_url, refuse=verifier) as (url, server):
        for name, value in (KEYS | SIGNED | {"OPENSEARCH_URL": url}).items():
            monkeypatch.setenv(name, value)
        assert asyncio.run(ask(url)) == ["error", "status"]
        assert len(verifier.used) == len(server.seen) == 3


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, MISMATCH.split(". ")[0]),
        ({"AWS_SESSION_TOKEN": "wrong-secret"}, "The security token included in the request is invalid"),
        ({"OPENSEARCH_AWS_REGION": "eu-west-1"}, "Credential should be scoped to a valid region"),
        ({"OPENSEARCH_AWS_SERVICE": "aoss"}, "Credential should be scoped to a valid region"),
    ],
)
def test_a_refused_signature(langshift, cluster_url, env, words):
    with proxy(cluster_url, refuse=Verifier({ACCESS: (SECRET, None)})) as (url, _):
        done = langshift("search", "nothing-here", "words", **KEYS | SIGNED | {"OPENSEARCH_URL": url} | env)
        assert done == (1, "", f"Error: The cluster at {url} rejects the signature ({words}): {CHECK}\n")


def test_a_password_where_signatures_are_wanted_is_not_repeated(langshift, cluster_url):
    with proxy(cluster_url, refuse=Verifier({})) as (url, _):
        env = {"OPENSEARCH_URL": url, "OPENSEARCH_USERNAME": "anna", "OPENSEARCH_PASSWORD": "wrong-secret"}
        sentence = "requires signed requests: set OPENSEARCH_AWS_REGION, and leave OPENSEARCH_USERNAME unset."
        done = langshift("search", "nothing-here", "words", **env)
        assert done == (1, "", f"Error: The cluster at {url} {sentence}\n")


def test_without_credentials(langshift, cluster_url):
    assert langshift("search", "nothing-here", "words", OPENSEARCH_URL=cluster_url, **SIGNED) == (
        1,
        "",
        "Error: OPENSEARCH_AWS_REGION is set, but there are no AWS credentials: set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, name a profile with AWS_PROFILE, or run where a role provides them.\n",
    )


def test_a_profile_that_is_not_there(langshift, cluster_url):
    assert langshift("search", "nothing-here", "words", OPENSEARCH_URL=cluster_url, AWS_PROFILE="anna", **SIGNED) == (
        1,
        "",
        "Error: The AWS credentials are not available (The config profile (anna) could not be found): "
        "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile or the role.\n",
    )


@pytest.fixture
def role(alone, monkeypatch) -> Iterator[dict[str, object]]:
    """A role's credentials, other ones at every question and nearly at their end, so that each request asks."""
    assert "AWS_EC2_METADATA_DISABLED" in alone
    state: dict[str, object] = {"given": 0, "broken": False}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = state["given"] = int(str(state["given"])) + 1
            until = datetime.now(timezone.utc) + timedelta(minutes=2)
            keys = {"AccessKeyId": f"AK{number}", "SecretAccessKey": f"SK{number}", "Token": f"T{number}"}
            body = json.dumps(keys | {"Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()
            self.send_response(500 if state["broken"] else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(HTTPServer(("127.0.0.1", 0), Handler)) as server:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{server.server_address[1]}/")
        yield state


def test_temporary_credentials_are_renewed(role, cluster_url, index_name, monkeypatch):
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.SLEEP_TIME", 0.01)
    verifier = Verifier({f"AK{number}": (f"SK{number}", f"T{number}") for number in range(100)})
    lines = [{"index": {"_index": index_name, "_id": "a/b c%"}}, {"text": "grün 猫"}]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with proxy(cluster_url, refuse=verifier) as (url, _):
        settings = Settings.from_env({"OPENSEARCH_URL": url, **SIGNED})
        with closing(make_client(settings, url)) as client:
            for body in (text.encode(), text):
                assert client.bulk(body=body, params={"refresh": "true"})["errors"] is False
            assert client.get(index=index_name, id="a/b c%")["_source"] == {"text": "grün 猫"}
            assert (
                client.count(index=f"{index_name}*,{index_name}", params={"ignore_unavailable": "true"})["count"] == 1
            )
            assert len(set(verifier.used)) == len(verifier.used) == 4
            connection = client.transport.get_connection()
            shown = repr((settings, client, client.transport.hosts, connection, connection.http_auth))
            assert not any(secret in shown for secret in ("SK", "T1", "AK"))
            role["broken"] = True
            with pytest.raises(Exception, match="metadata") as caught:
                client.info()
    assert str(failure(caught.value, url)) == (
        "The AWS credentials are not available (container-role returned none): "
        "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile or the role."
    )


@pytest.mark.usefixtures("alone")
def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    settings = Settings.from_env({"OPENSEARCH_URL": "http://127.0.0.1:9", **SIGNED})
    with pytest.raises(Exception, match="needs an extra") as caught:
        make_client(settings, "http://127.0.0.1:9")
    assert (str(caught.value), caught.value.exit_code) == (
        "Signing requests for AWS (OPENSEARCH_AWS_REGION) needs an extra: pip install 'langshift[aws]'.",
        1,
    )

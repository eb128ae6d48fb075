"""The asynchronous client does as the other one: TLS, passwords that nobody sees, permissions, signatures, trouble."""

from __future__ import annotations

import asyncio
import json
import traceback

import pytest
import trustme
from opensearchpy.exceptions import OpenSearchException
from searched import a_name, drop, make_index
from secured_cluster import documented_roles, everything_but
from tls_proxy import proxy

import langshift
from langshift.client import make_async_client
from langshift.server_errors import failure
from langshift.settings import Settings

USER, PASSWORD = "anna", "grün:s3cret/@%ß"
OFF = "disable verification with OPENSEARCH_SSL_VERIFY=false."


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = a_name()
    make_index(client, tmp_path_factory.mktemp("secured") / "corpus.jsonl", name)
    yield name
    drop(client, name)


@pytest.fixture
def settings(authority, monkeypatch):
    """Sets the variables that are given, and no others."""

    def set_(url, **variables):
        usual = {
            "OPENSEARCH_URL": url,
            "OPENSEARCH_USERNAME": USER,
            "OPENSEARCH_PASSWORD": PASSWORD,
            "OPENSEARCH_CA_FILE": str(authority.file),
        }
        for variable, value in (usual | variables).items():
            monkeypatch.setenv(variable, value)

    return set_


def said(error):
    """The message, after checking that no password is in it or in the traceback."""
    told = "".join(traceback.format_exception(error))
    assert "s3cret" not in told
    return str(error)


@pytest.fixture(scope="module")
def secured_index(secured, administrator, tmp_path_factory):
    """An index of the cluster with the security plugin."""
    name = a_name()
    with secured.settings_of("administrator"):
        make_index(administrator, tmp_path_factory.mktemp("secured") / "corpus.jsonl", name)
    yield name
    drop(administrator, name)


@pytest.fixture
def as_user(secured, monkeypatch):
    """Makes a user who may do this, and takes the settings of that one."""

    def set_(role):
        user = secured.user_of(role)
        for variable, value in secured.environment(user).items():
            monkeypatch.setenv(variable, value)
        return user

    return set_


@pytest.mark.parametrize("without", [(), ("cluster:monitor/nodes/info", "cluster:monitor/main")])
def test_who_may_search_and_no_more_searches_in_every_mode(secured_index, as_user, without):
    name = secured_index
    as_user(everything_but(*without) if without else documented_roles(name)["searching"])

    async def all_modes():
        async with await langshift.open_index_async(name) as index:
            first = await index.search("Moon", mode="hybrid", size=1, from_=0, sort="group", facets="language")
            more = {"from_": 1, "point_in_time": first.point_in_time}
            assert (await index.search("Moon", mode="hybrid", size=1, **more)).hits
            return [
                await index.search("Moon", mode=mode, explain=True, filters={"language": ["de", "en"]})
                for mode in ("dense", "lexical", "hybrid", "balanced")
            ]

    awaited = asyncio.run(all_modes())
    with langshift.open_index(name) as index:
        hybrid = index.search("Moon", mode="hybrid", filters={"language": ["de", "en"]})
    assert [len(result.hits) > 0 for result in awaited] == [True] * 4
    assert [hit.id for hit in hybrid.hits] == [hit.id for hit in awaited[2].hits]
    assert [hit.score for hit in hybrid.hits] == pytest.approx([hit.score for hit in awaited[2].hits], abs=1e-4)


def test_what_is_not_permitted_is_named(secured, secured_index, as_user):
    page = "indices:data/read/point_in_time/create"
    user = as_user(everything_but("indices:data/read/msearch", page))
    with pytest.raises(langshift.ClusterError) as refused:
        asyncio.run(langshift.search_async(secured_index, "Moon", explain=True))
    with pytest.raises(langshift.ClusterError, match=rf"the permission {page} \(in the action group read\)"):
        langshift.search(secured_index, "Moon", from_=0)
    told = said(refused.value).replace(f"The cluster at {secured.url}", "The cluster")
    assert told == (
        f"The cluster denies the request: the user {user} does not have the permission indices:data/read/msearch "
        "(in the action group cluster_composite_ops_ro); ask the cluster's administrator for it."
    )


def asked(variables, url, settings):
    """What the asynchronous client's failure is told as."""
    settings(url, **variables)

    async def ask():
        async with make_async_client(Settings.from_env(), url) as client:
            await client.info()

    with pytest.raises(OpenSearchException) as failed:
        asyncio.run(ask())
    return said(failure(failed.value, url))


def test_trouble_is_told_as_by_the_other_client(cluster_url, authority, settings, tmp_path):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    with proxy(cluster_url, tls=authority.server, credentials=(USER, PASSWORD)) as (url, _):
        place = f"The cluster at {url}"
        assert asked({"OPENSEARCH_CA_FILE": str(other)}, url, settings) == (
            f"{place} presents a certificate that cannot be verified: "
            f"set OPENSEARCH_CA_FILE to the CA that signed it, or {OFF}"
        )
        assert asked({"OPENSEARCH_PASSWORD": "s3cret-but-wrong"}, url, settings) == (
            f"{place} rejects the user name or password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD."
        )
    plain = cluster_url.replace("http://", "https://")
    assert asked({}, plain, settings) == (
        f"The cluster at {plain} does not use TLS: check whether OPENSEARCH_URL should begin with http://."
    )
    assert asked({}, "http://127.0.0.1:1", settings) == (
        "The cluster at http://127.0.0.1:1 cannot be reached: check that it is running and that OPENSEARCH_URL is its "
        "address (http or https, host, port)."
    )


def test_a_certificate_that_nobody_verifies(name, cluster_url, authority, settings):
    with proxy(cluster_url, tls=authority.server, credentials=(USER, PASSWORD)) as (url, _):
        settings(url, OPENSEARCH_CA_FILE="", OPENSEARCH_SSL_VERIFY="false")
        assert asyncio.run(langshift.search_async(name, "Moon", size=1)).hits


def test_results_and_requests_hold_no_secret(name, cluster_url, authority, settings):
    with proxy(cluster_url, tls=authority.server, credentials=(USER, PASSWORD)) as (url, _):
        settings(url)
        found = asyncio.run(langshift.search_async(name, "Moon", explain=True))
    shown = "".join(request.as_curl + request.in_dev_tools for request in found.requests)
    assert "s3cret" not in repr(found) + shown + json.dumps(found.to_dict())
    assert "authorization" not in shown.lower()

"""The console for users with few permissions: what docs/reference/permissions.md says is enough; the rest is told."""

import re
from html import unescape

import pytest
from console_process import sentence, serving
from searched import a_name, drop, make_index
from security_plugin import DOCUMENT, Guard, documented_roles, with_every_index
from tls_proxy import proxy

USER, PASSWORD = "anna", "grün:s3cret/@%ß"
# Every command looks at the cluster, and needs none of it but the first.
LOOKING = {"cluster:monitor/main", "cluster:monitor/state", "cluster:monitor/nodes/info"}
QUERY = "Why does the sea rise?"


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = a_name()
    make_index(client, tmp_path_factory.mktemp("corpus") / "corpus.jsonl", name, alpha=1)
    yield name
    drop(client, name)


@pytest.fixture(scope="module")
def searching(name):
    """The role of the documentation for searching."""
    return documented_roles(name)[0]


@pytest.fixture(scope="module")
def guard(searching):
    """May what the documentation says that the console needs."""
    return Guard(with_every_index(searching), USER)


@pytest.fixture(scope="module")
def secured(cluster_url, authority, tmp_path_factory):
    """Opens a console for the user, before a cluster with TLS, passwords and permissions."""

    def open_(guard):
        return proxy(cluster_url, tls=authority.server, credentials=(USER, PASSWORD), refuse=guard)

    def serve(url):
        user = {"OPENSEARCH_USERNAME": USER, "OPENSEARCH_PASSWORD": PASSWORD}
        home = tmp_path_factory.mktemp("home")
        return serving(url=url, home=home, OPENSEARCH_CA_FILE=str(authority.file), **user)

    return open_, serve


@pytest.fixture(scope="module")
def http(secured, guard):
    """A client of a console whose user may what is documented."""
    open_, serve = secured
    with open_(guard) as (url, _), serve(url) as served, served.client() as opened:
        opened.cluster = url
        yield opened


@pytest.fixture(autouse=True)
def everything_is_known(guard):
    yield
    assert guard.unknown == []


def lacks(url, permission, group=None):
    named = f"{permission} (in the action group {group})" if group else permission
    return (
        f"The cluster at {url} denies the request: the user {USER} does not have the permission {named}; "
        "ask the cluster's administrator for it."
    )


def pages(name):
    """Every page that asks the cluster, in every mode."""
    asked = {"q": QUERY, "left": name, "right": name}
    modes = [
        *({"left.mode": "hybrid", "right.mode": mode} for mode in ("lexical", "balanced", "anchored")),
        {"left.one": "1", "right.alpha": "0.3", "filter": "language=de"},
        {"from": "0", "sort": "group", "facet": "group"},
    ]
    yield "/search", {}
    for mode in modes:
        yield "/search", asked | mode
        yield "/search/hit", asked | mode | {"side": "right", "id": "tides-de"}
    yield "/search/vectors", asked
    for path in ("/indices", f"/indices/{name}", "/evaluations"):
        yield path, {}


def test_the_documented_permissions_are_enough_for_every_page_and_none_is_superfluous(http, guard, name):
    for path, values in pages(name):
        answer = http.get(path, params=values)
        assert answer.status_code == (204 if path == "/search/vectors" else 200), (path, values, sentence(answer))
    row = re.search(r"^\| `serve` \|(.*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert set(guard.used) - LOOKING == set(re.findall(r"`(indices:[^`]*)`", row))


@pytest.mark.parametrize(
    ("path", "permission", "group"),
    [
        ("/search", "indices:data/read/msearch", "cluster_composite_ops_ro"),
        ("/indices", "indices:admin/get", None),
        ("/indices/{name}", "indices:monitor/stats", "indices_monitor"),
    ],
)
def test_what_is_missing_is_named_on_the_page(http, guard, name, path, permission, group):
    guard.without.add(permission)
    try:
        answer = http.get(path.format(name=name), params={"q": f"{QUERY} {permission}", "left": name, "right": name})
    finally:
        guard.without.clear()
    # What is refused inside an answer does not tell the address.
    told = sentence(answer).replace(f"The cluster at {http.cluster}", "The cluster")
    assert (answer.status_code, told) == (502, lacks("", permission, group).replace(" at  denies", " denies"))
    assert "s3cret" not in answer.text


def test_an_index_is_shown_to_who_may_not_ask_which_cluster_it_is_on(http, guard, name):
    guard.without.add("cluster:monitor/main")
    try:
        answer = http.get(f"/indices/{name}")
    finally:
        guard.without.clear()
    assert answer.status_code == 200
    named = lacks(http.cluster, "cluster:monitor/main", "cluster_monitor")
    assert f"The dead letters cannot be counted: {named}" in unescape(answer.text)


def test_replays_are_shown_to_who_may_not_list_indices(secured, searching):
    open_, serve = secured
    with open_(Guard(searching, USER)) as (url, _), serve(url) as served, served.client() as http:
        assert http.get("/evaluations").status_code == 200
        answer = http.get("/search")
        assert (answer.status_code, sentence(answer)) == (502, lacks(url, "indices:admin/get"))

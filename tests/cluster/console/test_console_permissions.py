"""The console for users with few permissions: what docs/reference/permissions.md says is enough; the rest is told."""

import re
from html import unescape

import pytest
from console_process import sentence, serving
from searched import a_name, drop, make_index
from secured_cluster import DOCUMENT, documented_roles, everything_but

# Every command looks at the cluster, and needs none of it but the first.
LOOKING = {"cluster:monitor/main", "cluster:monitor/state", "cluster:monitor/nodes/info"}
QUERY = "Why does the sea rise?"


@pytest.fixture(scope="module")
def name(secured, administrator, tmp_path_factory):
    name = a_name()
    with secured.settings_of("administrator"):
        make_index(administrator, tmp_path_factory.mktemp("corpus") / "corpus.jsonl", name, alpha=1)
    yield name
    drop(administrator, name)


@pytest.fixture(scope="module")
def serve(secured, tmp_path_factory):
    """Opens a console as a user."""

    def open_(user):
        variables = secured.environment(user)
        return serving(url=variables.pop("OPENSEARCH_URL"), home=tmp_path_factory.mktemp("home"), **variables)

    return open_


@pytest.fixture(scope="module")
def user(secured, name):
    """Who may do what the documentation says that the console needs."""
    return secured.user_of(documented_roles(name)["listing"])


@pytest.fixture(scope="module")
def http(serve, user):
    """A client of a console whose user may what is documented."""
    with serve(user) as served, served.client() as opened:
        yield opened


@pytest.fixture
def without(secured, user, name):
    """Takes a permission from that user, for the test."""
    yield lambda permission: secured.set_role(user, everything_but(permission))
    secured.set_role(user, documented_roles(name)["listing"])


def lacks(user, permission, group=None):
    named = f"{permission} (in the action group {group})" if group else permission
    return (
        f"The cluster denies the request: the user {user} does not have the permission {named}; "
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


def test_the_documented_permissions_are_enough_for_every_page_and_none_is_superfluous(secured, http, user, name):
    for path, values in pages(name):
        answer = http.get(path, params=values)
        assert answer.status_code == (204 if path == "/search/vectors" else 200), (path, values, sentence(answer))
    row = re.search(r"^\| `serve` \|(.*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert secured.used(user) - LOOKING == set(re.findall(r"`(indices:[^`]*)`", row))


@pytest.mark.parametrize(
    ("path", "permission", "group"),
    [
        ("/search", "indices:data/read/msearch", "cluster_composite_ops_ro"),
        ("/indices", "indices:admin/get", None),
        ("/indices/{name}", "indices:monitor/stats", "indices_monitor"),
    ],
)
def test_what_is_missing_is_named_on_the_page(secured, http, user, without, name, path, permission, group):
    without(permission)
    answer = http.get(path.format(name=name), params={"q": f"{QUERY} {permission}", "left": name, "right": name})
    # What is refused inside an answer does not tell the address.
    told = sentence(answer).replace(f"The cluster at {secured.url}", "The cluster")
    assert (answer.status_code, told) == (502, lacks(user, permission, group))
    assert "s3cret" not in answer.text


def test_an_index_is_shown_to_who_may_not_ask_which_cluster_it_is_on(secured, http, user, without, name):
    without("cluster:monitor/main")
    answer = http.get(f"/indices/{name}")
    assert answer.status_code == 200
    named = lacks(user, "cluster:monitor/main", "cluster_monitor").replace("cluster", f"cluster at {secured.url}", 1)
    assert f"The dead letters cannot be counted: {named}" in unescape(answer.text)


def test_replays_are_shown_to_who_may_not_list_indices(secured, serve, name):
    user = secured.user_of(documented_roles(name)["searching"])
    with serve(user) as served, served.client() as http:
        assert http.get("/evaluations").status_code == 200
        answer = http.get("/search")
        told = sentence(answer).replace(f"The cluster at {secured.url}", "The cluster")
        assert (answer.status_code, told) == (502, lacks(user, "indices:admin/get"))

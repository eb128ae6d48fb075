"""Who is let in to the service and its console: nobody without a token, whatever the request says of itself."""

import json
import re

import anyio
import httpx
import pytest

from langshift.errors import UsageError
from langshift.settings import Settings
from langshift.web.api.options import ApiOptions, ClientToken, read_tokens
from langshift.web.app import make_app
from langshift.web.context import AppContext
from langshift.web.security import access

TOKEN = "fedcba9876543210"
OPEN = {"/health", "/health/ready", "/static/style.css", "/static/icon.svg"}
PATHS = [
    "/", "/search", "/search/hit", "/search/passages", "/search/vectors", "/indices", "/indices/news", "/evaluations",
    "/evaluations/judging", "/nothing", "/static/console.js", "/static/nothing.css", "/api/indices", "/api/indices/",
    "/api/search", "/api/openapi.json", "/api/nothing", "/v1/embeddings", "/v1/rerank", "/metrics", "/metrics/", "/mcp",
    "/mcp/", "/healthy", "/health/", "/health/nothing", "//health", "/health/../metrics", "/static/style.css/",
    *sorted(OPEN),
]  # fmt: skip


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Ask a service with tokens whose cluster is away; the answer."""
    home = tmp_path_factory.mktemp("home")
    settings = Settings.from_env({"OPENSEARCH_URL": "http://127.0.0.1:9", "LANGSHIFT_HOME": str(home)})
    tokens = {"agents": ClientToken(TOKEN), "shop": ClientToken(TOKEN[::-1], frozenset({"shop"}))}
    options = ApiOptions(tokens=tokens, metrics=True, mcp=True)
    allowed = access("127.0.0.1", 8365, bound="127.0.0.1", guarded=True)
    app = make_app(AppContext(settings, home), allowed, options)

    def asked(path, method="GET", body=None, **headers):
        async def go():
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8365"
            ) as client:
                return await client.request(method, path, headers=headers, json=body)

        return anyio.run(go)

    asked.token = allowed.token
    return asked


HOSTS = [
    "127.0.0.1:8365", "localhost:8365", "x/health?", "x/health#", "x/health/ready?", "x/static/style.css?",
    "127.0.0.1:8365/health?", "127.0.0.1:8365/static/style.css?",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_with_tokens_nothing_is_answered_without_one_but_health_and_what_a_sign_in_page_needs(ask, host):
    elsewhere = host not in HOSTS[:2]
    for path in PATHS:
        answer = ask(path, host=host)
        if path in OPEN and not (elsewhere and path.startswith("/static")):
            assert answer.status_code in (200, 503), path
        else:
            assert answer.status_code in ((401, 421) if elsewhere else (401,)), path


def test_the_token_that_is_printed_opens_the_pages_and_a_clients_token_does_not(ask):
    assert ask(f"/static/console.js?token={TOKEN}").status_code == 401
    signed_in = ask(f"/static/console.js?token={ask.token}")
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/static/console.js")
    cookie = re.match("[^;]+", signed_in.headers["set-cookie"])[0]
    assert ask("/static/console.js", cookie=cookie).status_code == 200
    for path in ("/api/indices", "/metrics"):
        assert ask(path, cookie=cookie).status_code == 401
        assert ask(path, authorization=f"Bearer {ask.token}").status_code == 401
    assert ask("/metrics", authorization=f"Bearer {TOKEN}").status_code == 200


def test_what_is_asked_for_in_the_address_is_refused(ask):
    answer = ask("/api/indices?limit=3", authorization=f"Bearer {TOKEN}")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        "Arguments are taken from the body alone: leave out the question mark and what follows it."
    )
    # Probes add what they like.
    assert ask("/health?since=1").status_code == 200


def test_no_address_is_led_on_to_the_host_that_a_client_names(ask):
    answer = ask("/api/indices/", authorization=f"Bearer {TOKEN}", host="evil.example")
    assert (answer.status_code, answer.headers.get("location")) == (404, None)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/search", {"index": "{}", "query": "tides"}),
        ("/v1/embeddings", {"model": "{}", "input": "tides"}),
    ],
)
def test_a_client_with_indices_of_its_own_asks_for_no_others(ask, path, body):
    """The cluster is away: what is asked of it is not answered with 404."""
    told = []
    for index in ("shop", "shop-v0001", "news", "shop-v0001x"):
        one = json.loads(json.dumps(body).replace("{}", index))
        answer = ask(path, "POST", one, authorization=f"Bearer {TOKEN[::-1]}")
        told.append("There is no index" in answer.text)
    assert told == [False, False, True, True]


def test_indices_of_a_client_stand_behind_its_token(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"# clients\nagents {TOKEN}\nshop {TOKEN[::-1]} shop news\n", encoding="utf-8")
    assert read_tokens(file) == {
        "agents": ClientToken(TOKEN),
        "shop": ClientToken(TOKEN[::-1], frozenset({"shop", "news"})),
    }
    file.write_text(f"agents {TOKEN} Shop\n", encoding="utf-8")
    with pytest.raises(UsageError, match="'Shop' is not a valid index name"):
        read_tokens(file)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "The argument `jsonrpc` is missing."),
        ([], "The request cannot be taken: expected `object`, got `array`."),
        ({"jsonrpc": "2.0"}, "The argument `method` is missing."),
        ({"jsonrpc": "1.0", "method": "tools/list"}, "The argument `jsonrpc` cannot be taken: "),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": []}, "The argument `params` cannot be taken: "),
    ],
)
def test_what_agents_send_is_refused_in_a_sentence(ask, body, says):
    answer = ask("/mcp", "POST", body, authorization=f"Bearer {TOKEN}")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(says)

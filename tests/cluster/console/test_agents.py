"""The tools for agents, over standard input and output and over HTTP, asked by the client of the protocol's own SDK."""

import json
import os
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from command_line import LANGSHIFT
from console_process import serving
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from searched import HOSTILE, TEXTS, a_name, drop, make_index

WORDS = "why does the sea rise"


@pytest.fixture(scope="module")
def index(client, tmp_path_factory):
    name = a_name()
    lines = [
        {"_id": one, "title": HOSTILE if one == "tides-en" else "", "text": text, "group": one[:5]}
        | ({"url": f"https://example.org/{one}"} if one.startswith("tides") else {})
        for one, text in TEXTS.items()
    ]
    make_index(client, tmp_path_factory.mktemp("corpus") / "corpus.jsonl", name, lines=lines)
    yield name
    drop(client, name)


def over_stdio(cluster_url, tmp_path, errors):
    env = {**os.environ, "OPENSEARCH_URL": cluster_url, "LANGSHIFT_HOME": str(tmp_path)}
    return stdio_client(StdioServerParameters(command=str(LANGSHIFT), args=["mcp"], env=env), errors)


@asynccontextmanager
async def over_http(url, token):
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as asking,
        streamable_http_client(f"{url}mcp", http_client=asking) as transport,
    ):
        yield transport


def ask(transport, *calls):
    """The tools, and what each call answers."""

    async def asked():
        async with transport as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            return tools, [await session.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(asked)


# Arguments beside a query and an index -> what is said of them.
REFUSED = (
    ({"filter": {"language": "de"}}, "There is no argument `filter`: use query, index, language, size, "
     "prefer_language, filters, one_per_group."),
    ({"limit": 3}, "There is no argument `limit`: "),
    ({"lang": "de"}, "There is no argument `lang`: "),
    ({"size": "5"}, "The argument `size` cannot be taken: expected `int`, got `str`."),
    ({"size": 500}, "The argument `size` cannot be taken: expected `int` <= 20."),
    ({"one_per_group": "yes"}, "The argument `one_per_group` cannot be taken: expected `bool`, got `str`."),
    ({"query": None}, "The argument `query` cannot be taken: expected `str`, got `null`."),
    ({"filters": {"colour": "red"}}, " has no field 'colour': "),
    ({"filters": {"year": list(range(20_000))}}, "The filters have more than 10,000 values: ask for fewer at once."),
)  # fmt: skip


def calls(index):
    return (
        ("indices", {}),
        ("search", {"query": WORDS, "index": index, "one_per_group": True, "size": 2}),
        ("search", {"query": WORDS, "index": index, "filters": {"language": ["de"]}}),
        ("explain", {"query": WORDS, "index": index, "language": "en", "size": 3}),
        ("search", {"query": WORDS, "index": "langshift-test-none"}),
        ("indices", {"limit": 3}),
        ("drop", {}),
        *(("search", {"query": WORDS, "index": index, **given}) for given, _ in REFUSED),
    )


def require_right(index, tools, answers):
    assert {tool.name for tool in tools} == {"search", "indices", "explain"}
    assert all(tool.annotations.readOnlyHint and tool.outputSchema for tool in tools)
    assert not any(tool.inputSchema["additionalProperties"] for tool in tools)
    listed, grouped, german, explained, missing, limited, unknown, *refused = answers
    (found,) = (one for one in listed.structuredContent["result"] if one["name"] == index)
    assert found == {"name": index, "documents": 6, "languages": {"en": 2, "de": 2, "th": 2}}
    assert grouped.structuredContent["query_language"] == "en"
    first, second = grouped.structuredContent["hits"]
    assert (first["id"], first["url"]) == ("tides-en", "https://example.org/tides-en")
    # What a title says stays what it is: text in JSON.
    assert first["title"] == HOSTILE
    assert first["translations"] == {"de": "tides-de", "th": "tides-th"}
    assert "url" not in second
    assert first["snippet"] in TEXTS["tides-en"]
    assert {hit["language"] for hit in german.structuredContent["hits"]} == {"de"}
    hits = explained.structuredContent["hits"]
    assert explained.structuredContent["mode"] == "dense"
    assert len(hits) == 3
    assert all(-1 <= hit["similarity_before"] <= 1 for hit in hits)
    # Each with one sentence, and nothing of the libraries' own.
    assert all(one.isError for one in (missing, limited, unknown, *refused))
    assert missing.content[0].text == "There is no index langshift-test-none: choose one from the list of indices."
    assert limited.content[0].text == "There is no argument `limit`: leave it out."
    assert unknown.content[0].text == "There is no tool 'drop': choose one of search, indices, explain."
    for one, (_, said) in zip(refused, REFUSED, strict=True):
        assert said in one.content[0].text
        assert one.content[0].text.count("\n") == 0
    assert all(len(json.dumps(one.structuredContent)) < 4000 for one in answers)


def test_an_agent_asks_over_standard_input_and_output(cluster_url, index, tmp_path):
    with (tmp_path / "errors").open("w+") as errors:
        require_right(index, *ask(over_stdio(cluster_url, tmp_path, errors), *calls(index)))
        errors.seek(0)
        assert errors.read() == ""


def test_an_agent_asks_over_http(cluster_url, index, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("agents fedcba9876543210\n")
    with serving("--api", "--mcp", "--tokens", tokens, url=cluster_url, home=tmp_path) as console:
        require_right(index, *ask(over_http(console.url, "fedcba9876543210"), *calls(index)))
        with console.client() as other:
            assert other.post("/mcp", json={}).status_code == 401
            headers = {"authorization": "Bearer fedcba9876543210", "content-type": "application/json"}
            for depth in (300, 1_010, 3_000, 200_000):
                deep = '{"a":' * depth + "1" + "}" * depth
                call = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {deep}}}'
                answer = other.post("/mcp", content=call, headers=headers)
                how = "nested too deeply" if depth < 1_020 else "depth limit exceeded"
                assert answer.status_code == 400
                assert answer.json()["error"]["message"] == f"The request's body is not JSON: {how}."

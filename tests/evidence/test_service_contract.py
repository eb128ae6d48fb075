"""The service does what its OpenAPI document says: schemathesis calls it, a generated client searches."""

import copy
import importlib.util
import json
import re
import subprocess
import sys

import pytest
from console_process import serving
from reranking_server import reranking_server
from searched import an_index

from langshift.debias.encoders import open_encoder
from langshift.retrieval.searcher import Searcher

# Of each of two runs.
CALLS, EXAMPLES = 1000, 350
TOKEN = "0123456789abcdef"
WORDS = "why does the sea rise"
SECONDS = 1800
# Whether there is such a field, or what excludes what, the document does not say; all else that it allows is answered.
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["200", "400", "404"]
"""
CLIENT = """
import json
import sys
from langshift_client import AuthenticatedClient
from langshift_client.api.default import get_api_indices, post_api_search, post_v1_embeddings
from langshift_client.models import EmbeddingsBody, SearchBody, SearchBodyFilters

url, token, index, words = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True) as client:
    filters = SearchBodyFilters.from_dict({"year": {"gte": 1990}})
    found = post_api_search.sync(client=client, body=SearchBody(index=index, query=words, filters=filters, size=3))
    listed = get_api_indices.sync(client=client)
    made = post_v1_embeddings.sync(client=client, body=EmbeddingsBody(model=index, input_=words))
    missing = post_api_search.sync(client=client, body=SearchBody(index="langshift-test-none", query=words))
print(json.dumps({
    "hits": [hit.id for hit in found.hits],
    "languages": [hit.language for hit in found.hits],
    "documents": {one.name: one.documents for one in listed.indices}[index],
    "vector": made.data[0].embedding,
    "missing": missing.error.code,
}))
"""


@pytest.fixture(scope="module")
def index(client, tmp_path_factory):
    with an_index(client, tmp_path_factory.mktemp("corpus")) as name:
        yield name


@pytest.fixture(scope="module")
def service(cluster_url, tmp_path_factory):
    """The service, whose clients have tokens, with a reranker."""
    home = tmp_path_factory.mktemp("home")
    (home / "tokens").write_text(f"contract {TOKEN}\n")
    options = ("--api", "--metrics", "--tokens", home / "tokens", "--reranker")
    with (
        reranking_server() as reranking,
        serving(*options, reranking.name, url=cluster_url, home=home) as running,
        running.client(authorization=f"Bearer {TOKEN}") as running.asking,
    ):
        running.reranker = reranking.name
        running.description = running.asking.get("/api/openapi.json").json()
        yield running


def run_module(name, *arguments, cwd):
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name} is not installed: `make evidence` does that")
    command = [sys.executable, "-m", name, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counted(service, name):
    """The sum of a figure of the service."""
    lines = re.findall(rf"^{name}{{.*}} (\S+)$", service.asking.get("/metrics").text, re.MULTILINE)
    return sum(map(float, lines))


def narrowed(service, index, *, more):
    """The document, which names the index, models and a reranker that there are; else hardly a call would be of one.

    With ``more``, also fields and languages that there are.
    """
    described = copy.deepcopy(service.description)
    search = {
        "sort": ["year", "year:desc"],
        "facets": ["language", "year"],
        "language": ["en", "de-AT", "th", None],
        "fields": [["year"], ["*"], [], None],
        "filters": [{}, {"language": "en"}, {"year": {"gte": 1990, "lt": 1994}}, {"group": {"exists": True}}],
        "dsl_filter": [[], {"range": {"year": {"lt": 1993}}}],
        "rerank": ["features", service.reranker, None],
        "vector": [None, open_encoder("use-m").encode_queries([WORDS])[0].tolist()],
        "point_in_time": [None],
    }
    values = {
        "SearchBody": {"index": [index], **(search if more else {})},
        "EmbeddingsBody": {"model": ["use-m", index], **({"dimensions": [512, None]} if more else {})},
        "RerankBody": {"model": [service.reranker]},
    }
    for body, fields in values.items():
        for name, allowed in fields.items():
            described["components"]["schemas"][body]["properties"][name] = {"enum": allowed}
    return described


# What only the narrowed document forbids is rightly answered.
@pytest.mark.parametrize(("more", "mode"), [(False, "all"), (True, "positive")])
def test_schemathesis_finds_nothing(service, index, tmp_path, more, mode):
    (tmp_path / "openapi.json").write_text(json.dumps(narrowed(service, index, more=more)))
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    before = counted(service, "langshift_requests_total"), counted(service, "langshift_searches_total")
    run_module(
        *("schemathesis.cli", "run", "openapi.json", "--url", service.url),
        *("--header", f"Authorization: Bearer {TOKEN}", "--max-examples", EXAMPLES, "--mode", mode),
        *("--checks", "all", "--continue-on-failure", "--generation-deterministic", "--no-color"),
        cwd=tmp_path,
    )
    calls = counted(service, "langshift_requests_total") - before[0]
    searches = counted(service, "langshift_searches_total") - before[1]
    print(f"\n{calls:,.0f} calls, of which {searches:,.0f} searches that were answered")
    assert calls >= CALLS
    assert searches >= CALLS / 10


def test_a_client_that_a_generator_makes_searches(client, service, index, tmp_path):
    (tmp_path / "openapi.json").write_text(json.dumps(service.description))
    (tmp_path / "config.json").write_text(json.dumps({"package_name_override": "langshift_client", "post_hooks": []}))
    said = run_module(
        "openapi_python_client",
        *("generate", "--path", "openapi.json", "--config", "config.json", "--meta", "none"),
        *("--output-path", "langshift_client", "--fail-on-warning"),
        cwd=tmp_path,
    )
    assert "warning" not in said.lower()
    command = [sys.executable, "-c", CLIENT, service.url.rstrip("/"), TOKEN, index, WORDS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = Searcher(client, index).search(WORDS, filters={"year": {"gte": 1990}}, size=3)
    assert found["hits"] == [hit.id for hit in wanted.hits]
    assert found["languages"] == [hit.language for hit in wanted.hits]
    assert found["documents"] == 6
    assert found["vector"] == pytest.approx(open_encoder("use-m").encode_queries([WORDS])[0].tolist(), abs=1e-6)
    assert found["missing"] == "not_found"

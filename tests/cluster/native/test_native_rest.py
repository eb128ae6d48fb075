"""The plugin's own search answers as ``langshift search --json`` does, and refuses what that refuses."""

import json
import random

import pytest
from documents import DOCS, blocks
from filtered_index import ENCODER, QUERY, FilteredIndex
from native_plugin import has_plugin, metadata_of
from opensearchpy.exceptions import TransportError
from plain_index import PLAIN
from same_answer import require_same
from searched import TEXTS, a_name, drop, make_index
from searched_index import WITHOUT_WEIGHTS

from langshift.errors import ClusterError
from langshift.plugin.metadata import USUAL
from langshift.plugin.version_writer import open_for_writing, publish
from langshift.plugin.versions import live
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import setting_of

SETTING = ("mode", "prefer_language", "spread", "fusion", "lexical_weight", "one_per_group")


@pytest.fixture(scope="module", autouse=True)
def _plugin(client):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")


@pytest.fixture(scope="module", params=[False, True], ids=["documents", "chunks"])
def index(client, request):
    made = FilteredIndex(client, chunked=request.param)
    made.delete(list(made.entries)[4::9])
    made.searcher = Searcher(client, made.name, opened={"toy": ENCODER})
    yield made
    made.drop()


def ask(client, name, **body):
    """The plugin's answer."""
    # As JSON has it, and as it would come from any client.
    return client.transport.perform_request("POST", f"/_plugins/_langshift/{name}/search", body=json.dumps(body))


def told(searcher, text, **how):
    """What langshift's own search prints."""
    setting = setting_of(**{name: value for name, value in how.items() if name in SETTING})
    rest = {name: value for name, value in how.items() if name not in (*SETTING, "vector")}
    return json.loads(json.dumps(searcher.search(text, setting, **rest).to_dict()))


def require_same_answer(client, index, text=QUERY, **how):
    """The plugin answers as langshift does."""
    wanted = told(index.searcher, text, **how)
    got = ask(client, index.name, text=text, vector=ENCODER.encode_queries([text])[0].tolist(), **how)
    mode, explain = wanted["mode"], how.get("explain", False)
    if (mode == "hybrid" and not explain) or how.get("one_per_group"):
        # Where neural-search puts the legs together nobody knows them, and the members of a group are found otherwise.
        for hit in (*got["hits"], *wanted["hits"]):
            hit["legs"] = {}
    got["took"], wanted["took"] = 0, 0
    require_same(got, wanted)
    return got


@pytest.mark.parametrize("beta", [{}, {"prefer_language": 0.1}, {"spread": 0.3}], ids=["plain", "preferred", "spread"])
@pytest.mark.parametrize("mode", WITHOUT_WEIGHTS)
def test_it_answers_as_langshift_does(client, index, mode, beta):
    numbers = random.Random(f"{mode} {beta} {index.chunked}")
    for grouped in (False, True):
        how = {"mode": mode, **beta, "language": numbers.choice(["en", "de", "und"]), "one_per_group": grouped}
        found = require_same_answer(client, index, size=numbers.choice([3, 10, 60]), **how)
        assert found["hits"]
        how["filters"] = {"year": {"gte": 1990}, "source": {"not": "s1"}, "language": ["de-AT", "th"]}
        how |= {"passages": 2} if index.chunked else {}
        require_same_answer(client, index, size=5, fields=["year", "isbn", "none"], explain=not grouped, **how)


@pytest.mark.parametrize("fusion", ["min-max", "rrf"])
def test_words_may_weigh_more(client, index, fusion):
    for how in ({}, {"prefer_language": 0.2}, {"prefer_language": 0.2, "one_per_group": True}):
        weighed = {"fusion": fusion, "lexical_weight": 0.6, "language": "de", **how}
        require_same_answer(client, index, mode="hybrid", explain=True, **weighed)


def test_filters_sorts_and_facets_are_those_of_langshift(client, index):
    facets = ["source", "year", "used", "published", "language", "section"]
    for mode in ("dense", "lexical"):
        how = {"mode": mode, "language": "en", "facets": facets}
        filters = {
            "price": {"gt": 2.5, "lt": 11},
            "published": {"gte": "2012", "lte": "now"},
            "isbn": {"exists": False},
            "section": ["Science", "Arts, culture"],
        }
        require_same_answer(client, index, filters=filters, sort=["printed:desc", "year"], **how)
        query = {"bool": {"should": [{"prefix": {"isbn": "978-1"}}, {"term": {"used": True}}]}}
        require_same_answer(client, index, dsl_filter=query, sort="year:desc", **how)
        nothing = require_same_answer(client, index, filters={"year": 1}, **how)
        assert nothing["hits"] == []


@pytest.fixture(scope="module")
def shifted(client, tmp_path_factory):
    """An index of use-m whose documents were shifted."""
    name = a_name()
    make_index(client, tmp_path_factory.mktemp("rest") / "corpus.jsonl", name, alpha=0.5)
    yield name, Searcher(client, name)
    drop(client, name)


@pytest.mark.parametrize("mode", ["auto", "lexical", "anchored"])
def test_it_tells_what_the_shift_did_and_what_is_shown(client, shifted, mode):
    name, searcher = shifted
    text = "Why does the water level of the sea change?"
    how = {"mode": mode, "explain": True, "one_per_group": mode == "auto"}
    wanted = told(searcher, text, **how)
    got = ask(client, name, text=text, vector=searcher.encode([text])[0].tolist(), snippets=True, **how)
    shown = {hit["id"]: hit["snippet"] for hit in got["hits"]}
    if mode == "lexical":
        assert shown["tides-en"]["by"] == "words"
        begin, end = shown["tides-en"]["marks"][0]
        assert shown["tides-en"]["text"][begin:end] == "sea"
    assert all(one["text"] in TEXTS[name] for name, one in shown.items())
    for hit in (*got["hits"], *wanted["hits"]):
        hit["snippet"] = None
        hit["legs"] = {} if how["one_per_group"] else hit["legs"]
    got["took"], wanted["took"] = 0, 0
    require_same(got, wanted)
    assert mode != "anchored" or any(hit["shift"]["alpha"] for hit in got["hits"])


REFUSED = {
    "nothing": ({}, "needs a [text]."),
    "blank": ({"text": " "}, "[text] is empty: give the words to search for."),
    "unknown": ({"text": "sun", "foo": 1}, "There is no argument [foo]."),
    "mode": (
        {"text": "sun", "mode": "foo"},
        "Unknown mode [foo]: choose one of auto, dense, lexical, hybrid, balanced, anchored.",
    ),
    "tokens": (
        {"text": "sun", "mode": "hybrid", "sparse_weight": 0.3},
        "Weights of tokens are searched by langshift's own searches, or by OpenSearch's query neural_sparse: choose "
        "another mode, without [sparse_weight] and [sparse_embedding].",
    ),
    "rerank": (
        {"text": "sun", "rerank": "features"},
        "[rerank] is done by langshift's own searches alone: leave it out.",
    ),
    "size": ({"text": "sun", "size": 0}, "[size] is a whole number from 1 to 1,000."),
    "both": (
        {"text": "sun", "spread": 0.1, "prefer_language": 0.1},
        "[prefer_language] and [spread] are mutually exclusive: give one of them.",
    ),
    "fusion": ({"text": "sun", "fusion": "rrf"}, "[fusion] and [lexical_weight] need mode hybrid."),
    "field": (
        {"text": "sun", "filters": {"colour": "red"}},
        "Index NAME has no field 'colour': use language, group or another field that its documents came with.",
    ),
    "condition": (
        {"text": "sun", "filters": {"year": {"like": 1}}},
        'The filter [year] takes values, such as ["de", "th"], or conditions, such as {"gte": 1990, "lt": 2000}, '
        '{"not": ["x"]} or {"exists": true}.',
    ),
    "words": (
        {"text": "sun", "sort": "abstract"},
        "Index NAME cannot sort by its field 'abstract', which is of type text and holds words, not values: name a "
        "field of type keyword, or search for its words.",
    ),
    "value": (
        {"text": "sun", "mode": "lexical", "filters": {"year": "soon"}},
        'The filter year=soon does not fit its field: failed to create query: For input string: "soon".',
    ),
    "query": (
        {"text": "sun", "mode": "lexical", "dsl_filter": {"foo": {}}},
        'The filter {"foo":{}} is no query that the cluster takes: unknown query [foo].',
    ),
    "dimension": (
        {"text": "sun", "vector": [1.0]},
        "The vector has dimension 1, and index NAME-v0001 holds vectors of 8.",
    ),
    "language": (
        {"text": "sun", "language": "x-klingon"},
        "[language] is 'x-klingon', which is not a valid language: use a BCP 47 tag such as th or zh-TW.",
    ),
}


def refusal(client, name, **body):
    """Status and sentence."""
    with pytest.raises(TransportError) as refused:
        ask(client, name, **body)
    return refused.value.status_code, refused.value.info["error"]["reason"]


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_searched_for_is_refused(client, index, case):
    body, wanted = REFUSED[case]
    assert refusal(client, index.name, **body) == (400, f"[langshift] {wanted.replace('NAME', index.name)}")


def test_what_cannot_be_searched_is_refused(client):
    assert refusal(client, "langshift-test-none", text="sun") == (404, "no such index [langshift-test-none]")
    foreign = a_name()
    client.indices.create(index=foreign)
    try:
        assert refusal(client, foreign, text="sun") == (
            400,
            f"[langshift] Index {foreign} has no langshift fingerprint: it was not created by langshift.",
        )
    finally:
        client.indices.delete(index=foreign)


def test_a_version_that_is_being_written_is_refused_by_its_own_name(client):
    name = a_name()
    try:
        made = open_for_writing(client, name, PLAIN)
        with pytest.raises(ClusterError) as error:
            live(client, made.index)
        assert refusal(client, made.index, text="sun") == (400, f"[langshift] {error.value}")
        publish(client, made)
        assert ask(client, made.index, text="sun", mode="lexical")["hits"] == []
    finally:
        drop(client, name)


def test_the_filter_of_an_alias_holds(client, index):
    alias, filters = f"{index.name}-used", {"used": True}
    client.indices.put_alias(index=f"{index.name}-v0001", name=alias, body={"filter": {"term": filters}})
    vector = ENCODER.encode_queries([QUERY])[0].tolist()
    for mode in ("anchored", "hybrid"):
        how = {"text": QUERY, "vector": vector, "mode": mode, "language": "en", "facets": "year", "one_per_group": True}
        filtered, by_alias = (ask(client, name, **how, **more) for name, more in (
            (index.name, {"filters": filters}), (alias, {})
        ))  # fmt: skip
        assert by_alias["hits"] == filtered["hits"]
        assert by_alias["facets"] == filtered["facets"]


def test_the_page_of_the_plugin_shows_a_search(client):
    (request,) = (one.text for one in blocks(DOCS / "plugin.md") if one.text.startswith("POST /_plugins/"))
    name, vector = a_name(), {"type": "knn_vector", "dimension": 4}
    vector["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    properties = {field: {"type": "keyword"} for field in ("language", "group")} | {"year": {"type": "integer"}}
    mappings = {"_meta": metadata_of(PLAIN, USUAL), "properties": {"embedding": vector, **properties}}
    client.indices.create(index=name, body={"settings": {"index": {"knn": True}}, "mappings": mappings})
    try:
        for tag in ("de", "en", "th"):
            held = {"embedding": [0.1, -0.3, 0.4, 0.2], "language": tag, "group": "tides", "year": 2026}
            client.index(index=name, id=f"tides-{tag}", body=held, params={"refresh": "true"})
        found = ask(client, name, **json.loads(request.partition("\n")[2]))
        assert [(hit["id"], [one["id"] for one in hit["others"]]) for hit in found["hits"]] == [
            ("tides-de", ["tides-en"])
        ]
        assert found["facets"] == {"year": {"values": [{"value": 2026, "count": 2}], "other": 0}}
    finally:
        client.indices.delete(index=name)

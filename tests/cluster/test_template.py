"""Own analyzers, fields, settings and engines of a new index, on a real cluster."""

import json

import pytest
from command_line import langshift, refusal
from toy_encoder import ToyEncoder

from langshift.debias.detector import open_detector
from langshift.errors import ClusterError, UsageError
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.progress import no_progress
from langshift.ingest.resume import LoadOptions
from langshift.plugin import metadata, versions
from langshift.plugin.index_body import has_native_libraries, vectors_come_back_normalised
from langshift.plugin.user_template import IndexOptions, Template
from langshift.retrieval import dsl
from langshift.settings import Settings

DOCUMENTS = [
    {
        "_id": "a",
        "title": "Photographs",
        "text": "The photographer waited.",
        "language": "en",
        "published": "2020-05-01",
    },
    {"_id": "b", "text": "The Moon pulls at the sea.", "language": "en", "published": "2024-05-01", "code": "X-1"},
    {"_id": "c", "text": "Mwezi huvuta bahari 123.", "language": "sw", "published": "2022-05-01"},
]
PREFIXES = {
    "settings": {
        "analysis": {
            "filter": {"beginnings": {"type": "edge_ngram", "min_gram": 3, "max_gram": 8}},
            "analyzer": {
                "prefixes": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "beginnings"]},
                "no_moon": {"type": "stop", "stopwords": ["the", "moon", "at"]},
            },
        }
    }
}
NO_FAISS = (
    "The embedded OpenSearch does not include faiss (no package registry has its native libraries): use --engine "
    "lucene, or a cluster that runs OpenSearch's official images."
)


@pytest.fixture(scope="module")
def making():
    return build_pipeline(ToyEncoder(), open_detector(), None, 0.0)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(json.dumps(document) for document in DOCUMENTS))
    return str(path)


@pytest.fixture
def template(tmp_path):
    def write(content):
        path = tmp_path / "own.json"
        path.write_text(json.dumps(content))
        return Template.read(path)

    return write


@pytest.fixture
def loaded(client, index_name, corpus, making):
    """Load the documents into an index of a shape."""

    def run(template=None, engine=None, **options):
        return load(
            client, corpus, index_name, making, options=LoadOptions(shape=IndexOptions(template, engine), **options)
        )

    return run


@pytest.fixture
def found(client, index_name):
    """Identifiers of the documents that a word search finds, the best first."""

    def search(words, language="en"):
        body = dsl.body(dsl.matching(words, language), 10)
        return [hit["_id"] for hit in client.search(index=index_name, body=body)["hits"]["hits"]]

    return search


def left_behind(client, name):
    """Versions, and what the journal says was begun."""
    with Journal(LoadWorkspace.of(Settings.from_env().home, client, name).journal) as journal:
        return versions.versions_of(client, name), journal.begun, journal.fact("planned")


NOTHING = ([], False, None)


def test_an_analyzer_from_the_file_changes_what_a_word_search_finds(loaded, found, template):
    loaded()
    assert found("photo") == []
    assert found("moon") == ["b"]
    loaded(template({**PREFIXES, "analyzers": {"en": "prefixes"}}), if_exists="replace")
    assert found("photo") == ["a"]
    assert found("moon") == ["b"]
    loaded(template({**PREFIXES, "analyzers": {"en": "no_moon"}}), if_exists="replace")
    assert found("moon") == []
    assert found("sea") == ["b"]


def test_a_language_without_an_analyzer_gets_one_of_its_own(loaded, found, template, client, index_name):
    loaded(template({**PREFIXES, "analyzers": {"sw": "prefixes"}}))
    assert found("mwe", "sw") == ["c"]
    fields = client.indices.get_mapping(index=f"{index_name}-v0001")[f"{index_name}-v0001"]["mappings"]["properties"]
    for field in ("title", "text"):
        assert fields[field]["properties"]["sw"] == {"type": "text", "analyzer": "prefixes"}


def test_own_fields_have_their_types_and_the_index_its_shards_and_replicas(loaded, client, index_name, template):
    content = {
        "settings": {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "7s"},
        "mappings": {
            "properties": {"published": {"type": "date"}, "code": {"type": "keyword", "normalizer": "lowercase"}},
            "_meta": {"team": "news"},
        },
    }
    loaded(template(content), fast=True)
    recent = {"query": {"range": {"published": {"gte": "2021-06||-1M"}}}, "sort": ["published"]}
    assert [hit["_id"] for hit in client.search(index=index_name, body=recent)["hits"]["hits"]] == ["c", "b"]
    assert client.count(index=index_name, body={"query": {"term": {"code": "x-1"}}})["count"] == 1
    index = f"{index_name}-v0001"
    settings = client.indices.get_settings(index=index)[index]["settings"]["index"]
    told = {name: settings.get(name) for name in ("number_of_shards", "number_of_replicas", "refresh_interval")}
    assert told == {"number_of_shards": "2", "number_of_replicas": "0", "refresh_interval": "7s"}
    assert settings.get("auto_expand_replicas") in (None, "false")
    kept = metadata.read_metadata(client, index)
    assert kept["team"] == "news"
    assert versions.live(client, index).fingerprint.encoder == "toy"


def test_fields_that_nobody_declared_may_be_refused_without_refusing_what_langshift_writes(
    loaded, found, template, client, index_name
):
    summary = loaded(template({"mappings": {"dynamic": "strict", "properties": {"published": {"type": "date"}}}}))
    assert (summary.documents, summary.dead) == (2, 1)
    assert found("bahari", "sw") == ["c"]
    assert not client.exists(index=index_name, id="b")


def test_a_template_for_all_strings_makes_no_keywords_of_texts(loaded, found, template, client, index_name):
    strings = {"strings": {"match_mapping_type": "string", "mapping": {"type": "keyword", "normalizer": "lowercase"}}}
    loaded(template({"mappings": {"dynamic_templates": [strings], "numeric_detection": True}}))
    assert found("bahari", "sw") == ["c"]
    assert client.count(index=index_name, body={"query": {"term": {"code": "x-1"}}})["count"] == 1


@pytest.mark.parametrize(
    ("content", "plugin", "said"),
    [
        (
            {"analyzers": {"ja": "kuromoji"}},
            "analysis-kuromoji",
            "Failed to parse mapping [_doc]: analyzer [kuromoji] has not been configured in mappings",
        ),
        (
            {"settings": {"analysis": {"analyzer": {"a": {"type": "custom", "tokenizer": "nori_tokenizer"}}}}},
            "analysis-nori",
            "[a] Custom Analyzer [a] failed to find tokenizer under name [nori_tokenizer]",
        ),
        (
            {"settings": {"analysis": {"analyzer": {"a": {"type": "smartcn"}}}}},
            "analysis-smartcn",
            "Unknown analyzer type [smartcn] for [a]",
        ),
        (
            {"settings": {"analysis": {"filter": {"a": {"type": "icu_transform"}}}}},
            "analysis-icu",
            "Unknown filter type [icu_transform] for [a]",
        ),
    ],
)
def test_an_analyzer_that_the_cluster_lacks_is_refused_with_the_plugin_to_install(
    loaded, template, client, index_name, content, plugin, said
):
    if any(plugin in line["component"] for line in client.cat.plugins(format="json")):
        pytest.skip(f"this cluster has {plugin}")
    own = template(content)
    with pytest.raises(ClusterError) as refused:
        loaded(own)
    assert str(refused.value) == (
        f"The cluster cannot create an index from {own.path}: {said}; install the plugin {plugin} on every node "
        f"(`opensearch-plugin install {plugin}`) and restart it."
    )
    assert left_behind(client, index_name) == NOTHING


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            {"settings": {"numbr_of_shards": 2}},
            "unknown setting [index.numbr_of_shards] did you mean [index.number_of_shards]?",
        ),
        (
            {"analyzers": {"en": "nori_own"}},
            "Failed to parse mapping [_doc]: analyzer [nori_own] has not been configured in mappings",
        ),
    ],
)
def test_what_the_server_refuses_is_told_and_nothing_is_left(loaded, template, client, index_name, content, said):
    own = template(content)
    with pytest.raises(ClusterError) as refused:
        loaded(own)
    assert str(refused.value) == f"The cluster cannot create an index from {own.path}: {said}; correct the file."
    assert left_behind(client, index_name) == NOTHING
    assert loaded().documents == 3


@pytest.mark.parametrize(("engine", "options"), [(None, "--template"), ("lucene", "--template and --engine")])
def test_a_template_counts_only_where_a_version_is_made(loaded, template, index_name, engine, options):
    own = template({"settings": {"number_of_replicas": 0}})
    assert loaded(own, engine, if_exists="append").index == f"{index_name}-v0001"
    with pytest.raises(UsageError) as refused:
        loaded(own, engine, if_exists="append")
    assert str(refused.value) == (
        f"Index {index_name} already exists ({index_name}-v0001), where {options} would have no effect: leave that out "
        "to add to it, replace it with --if-exists replace, or create a new version of it with --if-exists "
        "new-version."
    )
    assert loaded(if_exists="append").documents == 3


@pytest.mark.parametrize("given", [lambda own: IndexOptions(own, "lucene"), lambda _own: IndexOptions()])
def test_a_load_that_made_its_version_goes_on_with_the_same_template_or_none(
    client, index_name, corpus, making, template, given
):
    own = template({**PREFIXES, "analyzers": {"en": "prefixes"}})
    journal = LoadWorkspace.of(Settings.from_env().home, client, index_name).journal

    def kill(stage, documents, _seconds):
        if stage == "write" and documents:
            raise KeyboardInterrupt

    def run(shape, on_stage=no_progress, resume=True):
        load(client, corpus, index_name, making, on_stage, LoadOptions(resume=resume, shape=shape))

    with pytest.raises(KeyboardInterrupt):
        run(IndexOptions(own), kill, resume=False)
    with pytest.raises(UsageError) as refused:
        run(IndexOptions(template({"settings": {"number_of_replicas": 0}}), "faiss"))
    assert str(refused.value) == (
        f"The load into {index_name} that was interrupted created its version with another --template and --engine: "
        f"leave --template and --engine out to resume it, or remove {journal} to abandon it."
    )
    run(given(own))
    body = dsl.body(dsl.matching("photo", "en"), 10)
    assert [hit["_id"] for hit in client.search(index=index_name, body=body)["hits"]["hits"]] == ["a"]
    assert versions.versions_of(client, index_name) == [f"{index_name}-v0001"]


@pytest.mark.parametrize("engine", ["faiss", "faiss-fp16", "faiss-on-disk"])
def test_faiss_is_refused_where_its_first_write_would_end_the_node(loaded, client, index_name, engine):
    if has_native_libraries(client):
        pytest.skip("this cluster may have faiss")
    with pytest.raises(ClusterError) as refused:
        loaded(engine=engine)
    assert str(refused.value) == NO_FAISS
    assert left_behind(client, index_name) == NOTHING


def test_an_own_field_of_vectors_that_would_end_the_node_is_refused_too(loaded, template, client, index_name):
    if has_native_libraries(client):
        pytest.skip("this cluster may have faiss")
    with pytest.raises(ClusterError) as refused:
        loaded(template({"mappings": {"properties": {"image": {"type": "knn_vector", "dimension": 2}}}}))
    assert str(refused.value) == NO_FAISS.replace("use --engine lucene", "use the engine lucene for the field image")
    assert left_behind(client, index_name) == NOTHING


@pytest.mark.parametrize("engine", ["faiss", "faiss-fp16", "faiss-on-disk"])
def test_faiss_gives_vectors_back_as_they_were_written(loaded, client, index_name, engine, making):
    if not has_native_libraries(client):
        pytest.skip("this cluster has no faiss")
    loaded(engine=engine)
    for document in DOCUMENTS[1:]:
        expected = making.encoder.encode_documents([document["text"]])[0]
        got = client.get(index=index_name, id=document["_id"])["_source"]["embedding"]
        assert got == pytest.approx(expected.tolist(), abs=1e-6)
    assert not vectors_come_back_normalised(client, index_name, "embedding")


def test_lucene_gives_vectors_back_as_they_were_written(loaded, client, index_name):
    loaded()
    assert not vectors_come_back_normalised(client, index_name, "embedding")
    assert not vectors_come_back_normalised(client, index_name, "language")


def test_the_command_line_takes_the_file_and_says_where_it_is_wrong(client, index_name, corpus, tmp_path, cluster_url):
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"mappings": {"properties": {"embedding": {"dimension": 3}}}}))
    command = ("ingest", corpus, "--index", index_name, "--template", path)
    done = langshift(*command, url=cluster_url)
    assert done.returncode == 2
    assert refusal(done) == (
        f"{path}, mappings.properties.embedding.dimension: langshift sets this itself; only method.parameters.m and "
        "ef_construction may be set."
    )
    path.write_text(json.dumps({**PREFIXES, "analyzers": {"en": "prefixes"}}))
    assert langshift(*command, "--engine", "lucene", url=cluster_url).returncode == 0
    body = dsl.body(dsl.matching("photo", "en"), 10)
    assert [hit["_id"] for hit in client.search(index=index_name, body=body)["hits"]["hits"]] == ["a"]

"""The pipeline of an index of chunks: each that a client writes is shifted by itself, and has a document."""

import json
from copy import deepcopy

import numpy as np
import pytest
from click.testing import CliRunner
from opensearchpy.exceptions import RequestError
from piped_index import DIMENSION, made_shift, make_foreign_index, raw_vector, shifted_by

from langshift.commands.pipeline import pipeline as command
from langshift.plugin.metadata import FieldNames
from langshift.plugin.pipelines import install, name_for, read_body

SHIFT = made_shift(alpha=0.75, gamma=0.97)
FIELDS = FieldNames(vector="vec", texts=("body",), group="g", parent="meta.doc", parent_keyword="meta.doc.keyword")
KEYWORDS = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
VECTOR = {
    "type": "knn_vector",
    "dimension": DIMENSION,
    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
}
PROPERTIES = {
    "vec": VECTOR,
    "body": {"type": "text"},
    "meta": {"properties": {"doc": KEYWORDS}},
    "language": {"type": "keyword"},
    "language_confidence": {"type": "float"},
    "shift": {"properties": {"language": {"type": "keyword"}, "vectors": {"type": "keyword"}}},
}


@pytest.fixture
def index(client, pipelines):
    made = make_foreign_index(client, pipelines, SHIFT, FIELDS, PROPERTIES)
    install(client, made, SHIFT, FIELDS, None)
    return made


def source(client, index, name):
    return client.get(index=index, id=name)["_source"]


def chunk(seed=1, **more):
    return {"body": "Ebbe und Flut", "language": "de", "vec": raw_vector(seed), **more}


def verify(cluster_env, name):
    arguments, env = ["verify", name], {"OPENSEARCH_URL": cluster_env}
    done = CliRunner().invoke(command, arguments, env=env, catch_exceptions=False)
    return done.exit_code, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("given", "parent"),
    [
        ({}, {"meta.doc": "own"}),
        ({"meta": {"doc": ""}}, {"meta": {"doc": ""}, "meta.doc": "own"}),
        ({"meta": {"doc": None, "page": 3}}, {"meta": {"doc": None, "page": 3}, "meta.doc": "own"}),
        ({"meta": {"doc": "long"}}, {"meta": {"doc": "long"}}),
        ({"meta": {"doc": ["long"]}}, {"meta": {"doc": ["long"]}}),
        ({"meta.doc": "long", "chunk": {"ordinal": 3}}, {"meta.doc": "long", "chunk": {"ordinal": 3}}),
    ],
)
def test_a_chunk_stays_as_it_is_and_what_names_no_document_is_one(client, index, index_name, given, parent):
    client.index(index=index_name, id="own", body=chunk(**given))
    found = source(client, index, "own")
    assert np.abs(np.array(found["vec"]) - shifted_by(raw_vector(1), SHIFT, "de")).max() < 1e-6
    assert {name: found[name] for name in found if name.startswith(("meta", "chunk"))} == parent
    client.indices.refresh(index=index)
    counted = {"size": 0, "aggs": {"documents": {"terms": {"field": FIELDS.document_key}}}}
    buckets = client.search(index=index, body=counted)["aggregations"]["documents"]["buckets"]
    assert [bucket["key"] for bucket in buckets if bucket["key"]] == [
        "own" if "meta.doc" in parent and parent["meta.doc"] == "own" else "long"
    ]


@pytest.mark.usefixtures("index")
def test_what_has_neither_an_id_nor_a_document_is_refused(client, index_name):
    told = (
        "The document has no _id and names no document in meta.doc: give it an _id, or in meta.doc the id of the "
        "document that it is a chunk of."
    )
    with pytest.raises(RequestError) as refused:
        client.index(index=index_name, body=chunk())
    assert refused.value.info["error"]["caused_by"]["reason"] == told
    bad, good = client.bulk(
        index=index_name, body=[{"index": {}}, chunk(), {"index": {}}, chunk(meta={"doc": "long"})]
    )["items"]
    assert (bad["index"]["status"], good["index"]["status"]) == (400, 201)
    assert bad["index"]["error"]["caused_by"]["reason"] == told


def test_updates_leave_a_chunk_with_its_document(client, index, index_name):
    client.index(index=index_name, id="c3", body=chunk(meta={"doc": "long"}))
    client.update(index=index_name, id="c3", body={"doc": {"price": 1}})
    upsert = [{"update": {"_id": "c3"}}, {"doc": {"seen": True}, "doc_as_upsert": True}]
    assert not client.bulk(index=index_name, body=upsert)["errors"]
    found = source(client, index, "c3")
    assert (found["meta"], found.get("meta.doc"), found["price"], found["seen"]) == ({"doc": "long"}, None, 1, True)


def test_verify_finds_chunks_that_name_no_document(client, cluster_env, index, index_name):
    for number in range(8):
        client.index(index=index_name, id=f"c{number}", body=chunk(number, meta={"doc": f"d{number // 3}"}))
    client.indices.refresh(index=index)
    assert verify(cluster_env, index_name) == (0, [])
    for name in "ab":
        client.index(
            index=index, id=name, body=source(client, index, "c0") | {"meta": {}}, params={"pipeline": "_none"}
        )
    client.indices.refresh(index=index)
    code, (sentence,) = verify(cluster_env, index_name)
    assert code == 1
    begin, _, rest = sentence.partition("`POST ")
    assert begin == "2 chunks without a document in meta.doc, by which searches collect: "
    request, _, rest = rest.partition("` with ")
    query, _, end = rest.rpartition(" makes")
    assert (request, end) == (f"/{index}/_update_by_query", " each a document of its own.")
    client.update_by_query(index=index, body=json.loads(query), params={"refresh": "true"})
    assert verify(cluster_env, index_name) == (0, [])
    assert source(client, index, "a")["meta.doc"] == "a"


def test_verify_finds_a_pipeline_that_sees_to_no_document(client, cluster_env, index, index_name):
    client.index(index=index_name, id="c1", body=chunk(), params={"refresh": "true"})
    name = name_for(index)
    body = deepcopy(read_body(client, name))
    del body["processors"][-1]["script"]["params"]["content"]
    client.ingest.put_pipeline(id=name, body=body)
    again = f"`langshift pipeline install {index_name}`"
    assert verify(cluster_env, index_name) == (
        1,
        [
            f"{name} differs from the pipeline that this version of langshift creates: run {again} again.",
            "The pipeline does not give each document that names none in meta.doc its own _id there: install it again "
            f"with {again}.",
        ],
    )

"""What indexes the vectors: the bodies, and which clusters can hold them."""

import numpy as np
import pytest
from plain_index import PLAIN

from langshift.errors import ClusterError
from langshift.plugin.index_body import (
    ENGINES,
    engine_of,
    index_body,
    oversample,
    require_engine,
    sets_ef_search,
    state_compression,
)
from langshift.plugin.metadata import FieldNames
from langshift.plugin.user_template import IndexOptions
from langshift.retrieval import dsl

COSINE = {"name": "hnsw", "engine": "faiss", "space_type": "cosinesimil"}
OFFICIAL = {"attributes": {}, "settings": {"cluster": {"name": "docker-cluster"}, "node": {"name": "a"}}}
DERIVED = {"index.knn.derived_source.enabled": "true"}
REFUSAL = (
    "The embedded OpenSearch does not include faiss (no package registry has its native libraries): use --engine "
    "lucene, or a cluster that runs OpenSearch's official images."
)


class Nodes:
    """A cluster that only says what nodes it has, and counts who asks."""

    def __init__(self, *nodes):
        self.nodes, self._found, self.asked = self, nodes, 0

    def info(self, metric):
        assert metric == "settings"
        self.asked += 1
        return {"nodes": {str(number): node for number, node in enumerate(self._found)}}


def body(engine):
    return IndexOptions(engine=engine).applied(index_body(PLAIN))


@pytest.mark.parametrize(
    ("engine", "compression"),
    [("faiss", "1x"), ("faiss-fp16", "2x"), ("faiss-on-disk", "32x")],
)
def test_faiss_keeps_vectors_in_the_source_where_they_stay_as_they_are(engine, compression):
    made = body(engine)
    assert made["mappings"]["properties"]["embedding"] == {
        "type": "knn_vector",
        "dimension": 4,
        "method": COSINE,
        "compression_level": compression,
    }
    assert made["settings"]["index"]["knn.derived_source.enabled"] is False


def test_a_mapping_says_how_its_vectors_are_kept_whatever_a_newer_server_takes():
    made = index_body(PLAIN)["mappings"]["properties"]["embedding"]
    assert (made["method"]["engine"], made["compression_level"], "mode" in made) == ("lucene", "1x", False)


def knn(**more):
    return {"type": "knn_vector", "dimension": 4, **more}


@pytest.mark.parametrize(
    ("field", "stated"),
    [
        (knn(), "1x"),
        (knn(method={"name": "hnsw", "engine": "lucene", "parameters": {"m": 24}}), "1x"),
        (knn(compression_level="16x"), "16x"),
        (knn(mode="on_disk"), None),
        (knn(model_id="trained"), None),
        (knn(data_type="byte"), None),
        (knn(method={"name": "hnsw", "engine": "faiss", "parameters": {"encoder": {"name": "sq"}}}), None),
        (knn(method={"name": "hnsw", "engine": "nmslib"}), None),
        ({"type": "text"}, None),
    ],
)
def test_a_copy_says_it_of_fields_that_say_nothing(field, stated):
    state_compression(field)
    assert field.get("compression_level") == stated


@pytest.mark.parametrize(
    ("field", "factor"),
    [
        (knn(compression_level="32x"), 5.0),
        (knn(compression_level="32x", dimension=1024), 3.0),
        (knn(compression_level="32x", mode="on_disk"), None),
        (knn(mode="on_disk"), None),
        (knn(compression_level="1x"), None),
    ],
)
def test_what_is_kept_by_bits_is_compared_anew_as_with_the_mode_of_before(field, factor):
    fields = FieldNames(oversample=oversample({"properties": {"embedding": field}}, "embedding"))
    query = dsl.knn(np.ones(4, np.float32), 7, (), fields)["knn"]["embedding"]
    assert query.get("rescore") == (factor and {"oversample_factor": factor})
    assert fields.to_dict() == FieldNames().to_dict()


@pytest.mark.parametrize(
    ("field", "stated"),
    [
        (knn(), True),
        (knn(compression_level="1x", method={"name": "hnsw", "engine": "faiss"}), True),
        (knn(compression_level="2x", method={"name": "hnsw", "engine": "faiss"}), True),
        (knn(compression_level="32x", method={"name": "hnsw", "engine": "faiss"}), False),
        (knn(method={"name": "hnsw", "engine": "lucene"}), False),
        (knn(method={"name": "ivf", "engine": "faiss"}), False),
        (knn(mode="on_disk"), False),
        (knn(model_id="trained"), False),
    ],
)
def test_a_search_of_a_graph_of_faiss_says_how_much_of_it_is_kept_in_view(field, stated):
    fields = FieldNames(ef_search=sets_ef_search({"properties": {"embedding": field}}, "embedding"))
    query = dsl.knn(np.ones(4, np.float32), 7, (), fields)["knn"]["embedding"]
    assert query.get("method_parameters") == ({"ef_search": 107} if stated else None)
    assert fields.to_dict() == FieldNames().to_dict()


def test_lucene_is_the_usual_engine():
    assert body("lucene") == body(None) == index_body(PLAIN)


@pytest.mark.parametrize(
    "node",
    [
        {**OFFICIAL, "attributes": {"langshift_native": "false"}},
    ],
)
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "lucene"])
def test_a_cluster_with_an_embedded_node_is_given_no_faiss(node, engine):
    with pytest.raises(ClusterError) as refused:
        require_engine(Nodes(OFFICIAL, node), body(engine))
    assert str(refused.value) == REFUSAL


def test_other_clusters_are_given_it_and_lucene_is_not_asked_about():
    somebodys = {"attributes": {}, "settings": {"cluster": {"name": "langshift"}, "node": {"name": "theirs"}}}
    for engine in ENGINES:
        require_engine(Nodes(OFFICIAL, somebodys), body(engine))
    embedded = Nodes({"attributes": {"langshift_native": "false"}})
    require_engine(embedded, body("lucene"))
    assert embedded.asked == 0


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"properties": {"image": {"type": "knn_vector", "dimension": 2}}}, "image"),
        ({"properties": {"a": {"properties": {"b": {"type": "knn_vector", "mode": "on_disk"}}}}}, "a.b"),
        ({"properties": {"type": {"type": "knn_vector", "model_id": "m"}}}, "type"),
        ({"properties": {"t": {"type": "text", "fields": {"v": {"type": "semantic", "model_id": "m"}}}}}, "t.v"),
        ({"dynamic_templates": [{"vectors": {"match": "*_v", "mapping": {"type": "knn_vector"}}}]}, "vectors"),
        ({"properties": {"n": {"type": "knn_vector", "method": {"engine": "nmslib"}}}}, "n"),
    ],
)
def test_a_field_of_their_own_is_found_wherever_it_stands(part, place):
    with pytest.raises(ClusterError) as refused:
        require_engine(Nodes({"attributes": {"langshift_native": "false"}}), {"mappings": part})
    assert str(refused.value) == (
        "The embedded OpenSearch does not include faiss (no package registry has its native libraries): use the engine "
        f"lucene for the field {place}, or a cluster that runs OpenSearch's official images."
    )


def test_fields_that_lucene_indexes_and_fields_named_like_types_are_not_refused():
    lucene = {"type": "knn_vector", "dimension": 2, "method": {"name": "hnsw", "engine": "lucene"}}
    top = {"type": "knn_vector", "dimension": 2, "engine": "Lucene"}
    part = {"properties": {"type": {"type": "keyword"}, "v": lucene, "w": top}, "_meta": {"type": "knn_vector"}}
    require_engine(Nodes({"attributes": {"langshift_native": "false"}}), {"mappings": part})


@pytest.mark.parametrize(
    ("field", "settings", "expected"),
    [
        ({"method": COSINE}, DERIVED, ("faiss", "cosinesimil", True, True)),
        ({"method": COSINE}, {"index.knn.derived_source.enabled": "false"}, ("faiss", "cosinesimil", False, False)),
        ({"method": COSINE}, {"index.derived_source.enabled": "true"}, ("faiss", "cosinesimil", True, True)),
        ({"space_type": "cosinesimil", "mode": "on_disk"}, DERIVED, ("faiss", "cosinesimil", True, True)),
        ({}, DERIVED, ("faiss", "l2", True, False)),
        ({"space_type": "innerproduct"}, DERIVED, ("faiss", "innerproduct", True, False)),
        ({"model_id": "trained"}, DERIVED, ("faiss", None, True, True)),
        ({"method": {**COSINE, "engine": "lucene"}}, DERIVED, ("lucene", "cosinesimil", True, False)),
        ({"engine": "lucene", "space_type": "cosinesimil"}, DERIVED, ("lucene", "cosinesimil", True, False)),
    ],
)
def test_which_vectors_come_back_with_norm_one(field, settings, expected):
    mappings = {"properties": {"a": {"properties": {"v": {"type": "knn_vector", **field}}}}}
    found = engine_of(mappings, settings, "a.v")
    assert (found.engine, found.space, found.derived, found.comes_back_normalised) == expected


def test_what_is_no_field_of_vectors_has_no_engine():
    mappings = {"properties": {"v": {"type": "keyword"}}}
    assert engine_of(mappings, {}, "v") is None
    assert engine_of(mappings, {}, "v.w") is None
    assert engine_of({}, {}, "other") is None

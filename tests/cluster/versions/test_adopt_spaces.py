"""Indices of other spaces and of bytes, adopted: what ranks like the cosine is taken over as that, as floats."""

import numpy as np
import pytest
from given_data import run
from opensearchpy import helpers
from shifted_index import language_vectors, printed, refused, saved, sources

from langshift.plugin import metadata

DIMENSION, DOCUMENTS = 8, 30
OPTIONS = ("--vector-field", "vec", "--text-field", "body", "--encoder", "given")
pytestmark = pytest.mark.usefixtures("cluster_env")


def vectors(kind):
    drawn = np.random.default_rng(3).standard_normal((DOCUMENTS, DIMENSION))
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    if kind == "byte":
        return np.rint(120 * unit).astype(int)
    return np.float32(unit if kind == "unit" else drawn)


def old(client, name, made, *, space=None, top=None, data_type=None):
    """An index of these vectors, compared in this space, which its method names, or the field itself, or nothing."""
    method = {"name": "hnsw", "engine": "lucene", **({"space_type": space} if space else {})}
    field = {"type": "knn_vector", "dimension": DIMENSION, "method": method}
    field |= {name: value for name, value in (("space_type", top), ("data_type", data_type)) if value}
    properties = {"vec": field, "body": {"type": "text"}}
    body = {"settings": {"index": {"knn": True}}, "mappings": {"properties": properties}}
    client.indices.create(index=name, body=body)
    documents = (
        {"_index": name, "_id": str(n), "vec": vector.tolist(), "body": f"The sea {n}."}
        for n, vector in enumerate(made)
    )
    helpers.bulk(client, documents, refresh="true")
    return made


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("unit", {"space": "l2"}),
        ("unit", {"space": "innerproduct"}),
        ("unit", {"top": "innerproduct"}),
        ("unit", {}),  # l2 is what the server takes
        ("byte", {"space": "cosinesimil", "data_type": "byte"}),
        ("byte", {"top": "l2", "data_type": "byte"}),
    ],
)
def test_what_ranks_alike_is_compared_by_the_cosine_as_floats(client, index_name, tmp_path, kind, how):
    made, new = old(client, index_name, vectors(kind), **how), f"{index_name}-new"
    if kind == "byte":
        known = saved(tmp_path, language_vectors(dimension=DIMENSION))
        audited = printed(run("index", "audit", index_name, *OPTIONS, "--vectors", known, "--json"))
        assert sum(one["documents"] for one in audited["languages"]) == DOCUMENTS
    assert run("adopt", index_name, "--name", new, *OPTIONS, "--alpha", 0).exit_code == 0
    field = client.indices.get_mapping(index=new)[f"{new}-v0001"]["mappings"]["properties"]["vec"]
    assert (field.get("space_type") or field["method"]["space_type"], "data_type" in field) == ("cosinesimil", False)
    # A shifted vector is none of whole numbers, and of no such length.
    client.update(index=new, id="0", body={"doc": {"vec": [0.5] * DIMENSION}})
    stored = sources(client, new)
    assert all(np.array_equal(np.float32(stored[str(n)]["vec"]), np.float32(made[n])) for n in range(1, DOCUMENTS))
    query = {"knn": {"vec": {"vector": made[4].tolist(), "k": 5}}}
    ranked = [
        [hit["_id"] for hit in client.search(index=index, body={"query": query, "size": 5})["hits"]["hits"]]
        for index in (index_name, new)
    ]
    assert ranked[0] == ranked[1] or kind == "byte"
    assert metadata.read_origin(client, f"{new}-v0001").version == index_name


@pytest.mark.parametrize("space", ["l2", "innerproduct"])
def test_vectors_of_several_lengths_would_rank_otherwise(client, index_name, space):
    old(client, index_name, vectors("any"), space=space)
    new = ("--name", f"{index_name}-new", "--alpha", 0)
    for command in (("index", "audit", index_name), ("adopt", index_name, *new)):
        said, code = refused(run(*command, *OPTIONS))
        assert code == 2
        assert said.startswith(f"The vectors in 'vec' of {index_name} are compared by {space}, and 30 of 30 of a ")


def test_one_of_another_length_among_many_is_a_dead_letter(client, index_name):
    made = np.repeat(vectors("unit"), 5, axis=0)
    made[7] *= 2
    old(client, index_name, made, space="l2")
    new = f"{index_name}-new"
    assert run("adopt", index_name, "--name", new, *OPTIONS, "--alpha", 0, "--max-refused", 0.1).exit_code == 3
    assert set(sources(client, new)) == {str(n) for n in range(len(made)) if n != 7}
    (group,) = printed(run("dead-letters", "list", "--index", new, "--json"))["groups"]
    assert group["example"]["reason"] == "the vector in 'vec' has another length than the others, which l2 counts."

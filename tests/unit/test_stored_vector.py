"""Vectors in answers: the forms that they come in, and why they do not come."""

import base64

import numpy as np
import pytest

from langshift.errors import ClusterError, UsageError
from langshift.ingest.adopt.fields import checked_fields
from langshift.ingest.adopt.reader import OldIndex
from langshift.plugin.metadata import FieldNames
from langshift.plugin.stored_vector import masked, parse_vector, vector_at, vector_required


def packed(values, kind="<f4"):
    return base64.b64encode(np.array(values, kind).tobytes()).decode()


@pytest.mark.parametrize(
    ("value", "vector"),
    [
        ([1, -2.5, 3e-8], [1, -2.5, 3e-8]),
        (packed([1, -2.5]), [1, -2.5]),
        (packed([0.1, 7]).rstrip("="), [np.float32(0.1), 7]),
        ([], None),
        ("", None),
        ("no vector", None),
        (packed([1, 2, 3], "<f2"), None),
        ([[1, 2]], None),
        (["a"], None),
        (1, None),
        ({"en": [1]}, None),
        (None, None),
    ],
)
def test_a_vector_is_a_list_of_numbers_or_base64(value, vector):
    read = parse_vector(value)
    assert (read is None) == (vector is None)
    if read is not None:
        assert read.dtype == np.float32
        assert np.array_equal(read, np.float32(vector))


@pytest.mark.parametrize(
    ("field", "value", "known"),
    [
        ("bodyVec", 1, True),
        ("a.embeddingVec", 1, True),
        ("vec", 1, False),
        ("bodyVec", 2, False),
        ("bodyVec", True, False),
    ],
)
def test_a_server_that_returns_1_is_known_by_the_fields_name(field, value, known):
    assert bool(masked(field, value)) == known


def test_what_is_no_vector_or_is_not_there_is_the_servers_doing():
    assert vector_at({"vec": None}, "vec") is None
    with pytest.raises(ClusterError, match=r"^The server returns no vector in 'aB': OpenSearch before 3\.7 returns 1 "):
        vector_at({"aB": 1}, "aB")
    with pytest.raises(ClusterError, match=r"^The server left the vectors in 'vec' of news-v0001 out of its answer"):
        vector_required({}, "vec", "news-v0001")


FLOATS = {"type": "knn_vector", "dimension": 4}
SEMANTIC = {"type": "semantic", "model_id": "m"}


INFO = {"properties": {"embedding": FLOATS}}
CHUNKS = {"properties": {"chunks": {"type": "nested", **INFO}}}


@pytest.mark.parametrize(
    ("properties", "vector", "field"),
    [
        ({"body": SEMANTIC, "body_semantic_info": INFO}, "body_semantic_info.embedding", "body"),
        ({"body": {**SEMANTIC, "semantic_info_field_name": "b"}, "b": INFO}, "b.embedding", "body"),
        ({"body": SEMANTIC, "body_semantic_info": CHUNKS}, "body_semantic_info.chunks.embedding", "body"),
        ({"a": {"properties": {"body": SEMANTIC}}}, "a.body_semantic_info.embedding", "a.body"),
        ({"body": SEMANTIC}, "body", "body"),
        ({"body": SEMANTIC, "vec": {**FLOATS, "space_type": "l2"}}, "vec", None),
    ],
)
def test_vectors_of_a_semantic_field_are_not_adopted(properties, vector, field):
    old = OldIndex("old", "old", "uuid", {"properties": {**properties, "text": {"type": "text"}}}, {})
    there = FieldNames(vector=vector, texts=("text",), group="")
    if field is None:
        assert checked_fields(old, there).vector == vector
        return
    with pytest.raises(UsageError) as raised:
        checked_fields(old, there)
    assert str(raised.value) == (
        f"The vectors in {vector!r} of old belong to the semantic field {field!r}, whose own pipeline would write over "
        "a shifted vector at every write: load the original documents with `langshift ingest`."
    )

"""Documents of an index that is adopted: what is looked at, and what passes byte for byte."""

import numpy as np
import orjson
import pytest
from msgspec import Raw

from langshift.ingest.adopt.adopt import keep_norms
from langshift.ingest.adopt.transform import document_of, strings_at
from langshift.ingest.documents import InvalidRow
from langshift.plugin.index_body import VectorField
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.raw_documents import edit_source

FIELDS = FieldNames("meta.vec", texts=("head", "parts.body"), declared_language="meta.lang")


def hit(source):
    return b'{"_index": "i", "_id": "a", "_version": 3, "_score": null, "_source": %s, "sort": [1]}' % source


def test_all_but_the_vector_stays_byte_for_byte():
    source = Raw(
        b'{ "n": 12345678901234567890123,\r\n "d": 0.10000000000000000001e-400, "t": "\\u00e9\\ud800", "vec": [1] }'
    )
    assert edit_source(source, {"vec": b"[2.0]", "language": b'"de"'}) == (
        b'{"n":12345678901234567890123,"d":0.10000000000000000001e-400,"t":"\\u00e9\\ud800","vec":[2.0],"language":"de"}'
    )


@pytest.mark.parametrize(
    ("source", "path", "expected"),
    [
        (b'{"a": {"b": {"c": [1], "d": 1.0}}}', "a.b.c", b'{"a":{"b":{"c":[2],"d":1.0}}}'),
        (b'{"a.b": {"c": [1]}, "a": {"b": 1}}', "a.b.c", b'{"a.b":{"c":[2]},"a":{"b": 1}}'),
        (b'{"a.b.c": [1], "a": {"b": {"c": 5}}}', "a.b.c", b'{"a.b.c":[2],"a":{"b": {"c": 5}}}'),
        (b'{"a": {"b.c": [1]}}', "a.b.c", b'{"a":{"b.c":[2]}}'),
    ],
)
def test_a_vector_is_replaced_where_its_path_leads(source, path, expected):
    made = edit_source(Raw(source), {path: b"[2]"})
    assert made == expected
    assert value_at(orjson.loads(made), path) == [2]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b'{"n": 1}', b'{"n":1,"a":{"b":{"c":[2]}}}'),
        (b'{"a": {"d": 1.0}}', b'{"a":{"d":1.0,"b":{"c":[2]}}}'),
        (b'{"a.b": {"d": 1}}', b'{"a.b":{"d":1,"c":[2]}}'),
        (b'{"a": [{"d": 1}]}', b'{"a":[{"d": 1}],"a.b.c":[2]}'),
        (b'{"a": null}', b'{"a":null,"a.b.c":[2]}'),
    ],
)
def test_a_vector_is_added_where_its_path_leads_and_removed_again(source, expected):
    made = edit_source(Raw(source), {"a.b.c": b"[2]"})
    assert made == expected
    removed = orjson.loads(edit_source(Raw(made), {"a.b.c": None}))
    assert value_at(removed, "a.b.c") is None
    assert {**orjson.loads(source), **removed} == removed


def test_lines_of_a_document_become_one():
    source = Raw(b'{\n  "a": {\n    "b": [1,\r\n 2]\n  }\n}')
    assert edit_source(source, {"vec": None}) == b'{"a":{     "b": [1,   2]   }}'


def test_strings_are_found_within_lists_and_under_names_with_dots():
    source = {"a": [{"b": ["x", {"c": 1}]}, {"b": "y"}], "a.b": "z", "ab": "no", "n": 5}
    assert list(strings_at(source, "a.b")) == ["x", "y", "z"]
    assert list(strings_at(source, "n")) == []


@pytest.mark.parametrize(
    ("told", "language"),
    [
        (b'"ger"', "de"),
        (b'"zh_Hant_TW"', "zh-TW"),
        (b'["th"]', "th"),
        (b'["th", "de"]', None),
        (b'"UND"', "und"),
        (b'"who knows"', None),
        (b"null", None),
        (b"5", None),
    ],
)
def test_the_language_is_what_a_document_names_if_that_is_one(told, language):
    document = document_of(hit(b'{"meta": {"lang": %s, "vec": [1, 2.5]}, "head": "H"}' % told), FIELDS, 2)
    assert document.language == language
    np.testing.assert_array_equal(document.embedding, np.array([1, 2.5], np.float32))


@pytest.mark.parametrize(
    ("declared", "own", "language"),
    [
        (b'"fr"', b'"de"', "fr"),
        (b'""', b'"de"', "de"),
        (b'"who knows"', b'"de-AT"', "de-AT"),
        (b"null", b'"Fortran"', None),
        (b'"und"', b'"de"', "und"),
    ],
)
def test_the_usual_field_is_asked_where_the_declared_one_names_no_language(declared, own, language):
    fields = FieldNames("vec", "langshift_language", texts=("head",), declared_language="locale")
    document = document_of(hit(b'{"locale": %s, "language": %s, "head": "H"}' % (declared, own)), fields, 2)
    assert document.language == language


def test_texts_are_joined_and_half_a_surrogate_pair_is_no_text():
    source = b'{"head": "H\\ud800", "parts": [{"body": "one"}, {"body": "two"}]}'
    document = document_of(hit(source), FIELDS, 2)
    assert (document.id, document.text, document.embedding) == ("a", "H\ufffd\none\ntwo", None)


@pytest.mark.parametrize("vector", [b"[1]", b'"AAAA"', b'["a", "b"]', b"[[1, 2]]", b'{"x": 1}'])
def test_what_is_no_list_of_numbers_is_told(vector):
    assert document_of(hit(b'{"meta": {"vec": %s}}' % vector), FIELDS, 2) == InvalidRow(
        "invalid_embedding", "the field 'meta.vec' is not one list of 2 numbers.", "a"
    )


def test_a_field_of_langshifts_own_name_that_no_mapping_knows_is_never_written_over():
    assert document_of(hit(b'{"shift": "night", "meta": {"vec": [1, 2]}}'), FIELDS, 2) == InvalidRow(
        "field_taken", "has a field 'shift' that is not in the mapping and whose name langshift needs.", "a"
    )


def test_faiss_is_not_to_give_vectors_back_with_norm_1():
    settings = {"knn": "true", "knn.derived_source": {"enabled": "true"}}
    keep_norms(settings, VectorField("lucene", "cosinesimil", True))
    assert settings == {"knn": "true", "knn.derived_source": {"enabled": "true"}}
    keep_norms(settings, VectorField("faiss", "cosinesimil", True))
    assert settings == {"knn": "true", "knn.derived_source.enabled": False}

"""Documents of an index that is adopted: what is looked at, and what passes byte for byte."""

import json
from dataclasses import replace

import numpy as np
import orjson
import pytest
from msgspec import Raw

from langshift.commands.pipeline_options import weighted_field
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import VectorSpec
from langshift.errors import UsageError
from langshift.ingest.adopt.adopt import keep_norms
from langshift.ingest.adopt.fields import require_used, sampled_languages
from langshift.ingest.adopt.reader import OldIndex
from langshift.ingest.adopt.transform import document_of, strings_at
from langshift.ingest.config import build_pipeline
from langshift.ingest.documents import InvalidRow
from langshift.plugin.index_body import VectorField
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.raw_documents import edit_source

FIELDS = FieldNames("meta.vec", texts=("head", "parts.body"), declared_language="meta.lang")

OLD = OldIndex("old", "old", "", {}, {})


def hit(source):
    return b'{"_index": "i", "_id": "a", "_version": 3, "_score": null, "_source": %s, "sort": [1]}' % source


def test_all_but_the_vector_stays_byte_for_byte():
    source = Raw(
        b'{ "n": 12345678901234567890123,\r\n "d": 0.10000000000000000001e-400, "t": "\\u00e9\\ud800", "vec": [1] }'
    )
    assert edit_source(source, {"vec": [2.0], "language": "de"}) == (
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
    made = edit_source(Raw(source), {path: [2]})
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
    made = edit_source(Raw(source), {"a.b.c": [2]})
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


ENGLISH = "The ministry has said that the new hospital will open in the spring, after two years of work."
GERMAN = "Das Ministerium teilte mit, dass das neue Krankenhaus nach zwei Jahren im Frühling eröffnet wird."


def judged(capsys, *documents):
    """The languages of a sample with these values and texts, and what is noted."""
    hits = [hit(json.dumps({"locale": value, "head": text}).encode()) for value, text in documents]
    old = OldIndex("news", "news", "", {}, {})
    fields = FieldNames("vec", "ls_language", texts=("head",), declared_language="locale")
    pipeline = build_pipeline(open_encoder("given", vector_spec=VectorSpec(2, False)), open_detector(), None, 0.0)
    return sampled_languages(old, hits, fields, pipeline), capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "share", "example"),
    [
        (["news", "sport", "tech"], "0%", "news"),
        # Codes of languages, all of them.
        (["art", "law", "fun", "war"], "0%", "art"),
        (["it", "hr", "pr"], "0%", "pr"),
        (["English", "English", "en"], "33%", "English"),
    ],
)
def test_a_field_that_does_not_tell_languages_is_refused(capsys, values, share, example):
    with pytest.raises(UsageError) as refused:
        judged(capsys, *((value, ENGLISH) for value in values))
    assert str(refused.value) == (
        f"The field 'locale' of news does not tell languages: of {len(values)} documents of a sample with a value "
        f"there, {share} have a language tag that their text does not contradict (such a value is {example!r}). Give "
        "--language-field the field with the language, or leave it out to have languages detected."
    )


def test_values_that_are_no_tags_are_counted_with_an_example(capsys):
    languages, noted = judged(
        capsys, ("en-GB", ENGLISH), ("de", GERMAN), ("eng", ENGLISH), ("", GERMAN), ("?", ENGLISH)
    )
    assert languages == {"en": 3, "de": 2}
    assert noted == (
        "1 of 4 documents of a sample have no language tag in 'locale', but '?', for example: for such documents a tag "
        "in the field 'language' is taken, and without one the language is detected.\n"
    )


@pytest.mark.parametrize(
    "documents",
    [
        [("de", GERMAN), ("en", ENGLISH), ("de", ENGLISH)],
        [("ms", "Kerajaan mengumumkan bahawa hospital baharu akan dibuka pada musim bunga selepas dua tahun.")],
        [("und", ENGLISH), ("UND", GERMAN)],
        [("haw", "123 456")],
    ],
)
def test_a_field_that_tells_languages_is_taken_without_a_word(capsys, documents):
    assert judged(capsys, *documents)[1] == ""


def test_a_field_without_values_is_named(capsys):
    assert judged(capsys, ("", ENGLISH), (None, GERMAN))[1] == (
        "No document of a sample has a value in 'locale': languages are detected.\n"
    )


def test_a_text_that_is_nowhere_and_a_language_that_is_not_asked_for_are_named(capsys):
    hits = [hit(json.dumps({"head": "H", "lang": "de", "language": "Fortran"}).encode())] * 3
    require_used(OLD, hits, FieldNames("vec", texts=("head",)))
    assert capsys.readouterr().err.splitlines() == [
        "Languages are detected, although documents name one in 'lang': give --language-field lang to take that.",
    ]
    require_used(OLD, hits, FieldNames("vec", texts=("head",), declared_language="lang"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("named", "option"),
    [
        ({"texts": ("head", "body")}, "--text-field names"),
        ({"texts": ("body", "head"), "title": "body"}, "--title-field names"),
        ({"texts": ("head",), "declared_language": "body"}, "--language-field names"),
        ({"texts": ("head",), "group": "body"}, "--group-field names"),
        ({"texts": ("head",), "parent": "body"}, "--parent-field names"),
    ],
)
def test_a_field_that_was_named_and_that_no_document_has_is_refused(named, option):
    hits = [hit(json.dumps({"head": "H", "meta": {"n": 1}, "body": ""}).encode())] * 3
    with pytest.raises(UsageError) as refused:
        require_used(OLD, hits, FieldNames("vec", **named))
    assert str(refused.value) == (
        f"None of the first documents of old has body, which {option}: they have head and meta."
    )
    # A field of one value for all documents stands in the mapping.
    constant = replace(OLD, mappings={"properties": {"body": {"type": "constant_keyword"}}})
    require_used(constant, hits, FieldNames("vec", **named))


@pytest.mark.parametrize(
    ("given", "expected"), [("body", ("body", 1.0)), ("title^3", ("title", 3.0)), ("a.b^0.5", ("a.b", 0.5))]
)
def test_a_field_may_have_a_weight(given, expected):
    assert weighted_field("--text-field", given) == expected


@pytest.mark.parametrize("given", ["^3", "title^", "title^much", "title^0", "title^-1", "title^inf", "title^nan"])
def test_a_weight_that_is_none_is_refused(given):
    with pytest.raises(UsageError) as refused:
        weighted_field("--text-field", given)
    example = f"{given.rpartition('^')[0] or 'body'}^2"
    assert str(refused.value) == (
        f"--text-field {given}: the weight after ^ must be a number above 0, as in {example}."
    )


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

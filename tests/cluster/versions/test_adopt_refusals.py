"""What stands against adopting an index is told in one sentence, before anything is written."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from command_line import langshift, refusal
from old_index import DIMENSION, VECTOR

from langshift.cli import root
from langshift.errors import LangshiftError
from langshift.plugin.versions import versions_of

SIMPLE = {"vec": VECTOR, "body": {"type": "text"}}
COMPARED = {**VECTOR, "space_type": "l2", "method": {"name": "hnsw", "engine": "lucene"}}


@pytest.fixture
def old(client, index_name):
    """Makes an index of these fields with one document, and gives its name."""

    def make(properties=SIMPLE, document=None, closed=False, **mappings):
        name = f"{index_name}-old"
        body = {"settings": {"index": {"knn": True}}, "mappings": {"properties": properties, **mappings}}
        client.indices.create(index=name, body=body)
        document = {"vec": [1.0] * DIMENSION, "body": "The sea."} if document is None else document
        client.index(index=name, id="1", body=document, params={"refresh": "true"})
        if closed:
            client.indices.close(index=name)
        return name

    return make


@pytest.fixture
def refused(client, cluster_env, index_name):  # noqa: ARG001 - also sets the address
    """The sentence with which adopting is refused; nothing is written."""

    def run(old, *more, vector="vec", texts=("body",), name=None, encoder="given"):
        new = name or f"{index_name}-new"
        before = set(client.indices.get(index=f"{index_name}*", params={"expand_wildcards": "all"}))
        options = ["--vector-field", vector, *(part for text in texts for part in ("--text-field", text))]
        if encoder:
            options += ["--encoder", encoder, "--alpha", 0]
        done = CliRunner().invoke(root, ["adopt", old, "--name", new, *map(str, [*options, *more])])
        assert isinstance(done.exception, LangshiftError), done
        assert done.output == ""
        assert set(client.indices.get(index=f"{index_name}*", params={"expand_wildcards": "all"})) == before
        return str(done.exception)

    return run


def test_there_is_no_such_index(cluster_env, index_name):
    options = ["--name", f"{index_name}-new", "--vector-field", "vec", "--text-field", "body"]
    assert refusal(langshift("adopt", f"{index_name}-none", *options, url=cluster_env)) == (
        f"There is no index {index_name}-none: `GET /_cat/indices` lists the existing indices."
    )


def test_an_index_of_langshifts_own_is_retuned(refused, old):
    name = old(_meta={"langshift": {}})
    assert refused(name) == f"Index {name} is already managed by langshift: change its shift with `langshift retune`."


def test_an_alias_over_several_indices(client, refused, old, index_name):
    name, other = old(), f"{index_name}-other"
    client.indices.create(index=other)
    for index in (name, other):
        client.indices.put_alias(index=index, name=f"{index_name}-alias")
    assert refused(f"{index_name}-alias") == (
        f"{index_name}-alias points to 2 indices ({name}, {other}): give the name of one index."
    )


@pytest.mark.parametrize("name", ["", "*", "{}*", "{},other"])
def test_a_name_of_none_or_several_indices(refused, old, name):
    name = name.format(old())
    assert refused(name) == (f"{name!r} is not the name of one index or alias: give one, without wildcards or commas.")


def test_a_data_stream(client, refused, index_name):
    template = {"index_patterns": [f"{index_name}-stream*"], "data_stream": {}, "template": {"settings": {}}}
    client.indices.put_index_template(name=index_name, body=template)
    try:
        client.indices.create_data_stream(name=f"{index_name}-stream")
        assert refused(f"{index_name}-stream") == (
            f"{index_name}-stream is a data stream: give the name of one of its indices "
            f"(.ds-{index_name}-stream-000001)."
        )
    finally:
        client.indices.delete_data_stream(name=f"{index_name}-stream")
        client.indices.delete_index_template(name=index_name)


def test_an_alias_with_a_filter(client, refused, old, index_name):
    name, alias = old(), f"{index_name}-alias"
    client.indices.put_alias(index=name, name=alias, body={"filter": {"term": {"body": "sea"}}})
    assert refused(alias) == (f"{alias} is an alias with a filter, but only a whole index can be read: use {name}.")


def test_a_name_that_stands_for_the_old_index(client, refused, old, index_name):
    name, alias = old(), f"{index_name}-alias"
    client.indices.put_alias(index=name, name=alias)
    assert refused(alias, name=alias) == (f"{alias} points to {name}, the index to be adopted: choose another --name.")
    assert refused(name, name=name) == (
        f"{name} is an index, not an alias for versions: give the alias, or another name."
    )


def test_a_closed_index(refused, old):
    name = old(closed=True)
    assert refused(name) == f"Index {name} is closed: open it with POST /{name}/_open."


def test_no_such_field_of_vectors(refused, old):
    name = old({**SIMPLE, "meta": {"properties": {"other": VECTOR}}})
    assert refused(name, vector="embedding") == (
        f"Index {name} has no field 'embedding': its knn_vector fields are meta.other, vec."
    )
    assert refused(name, vector="meta") == (
        f"The field 'meta' of {name} is of type object, not knn_vector: its knn_vector fields are meta.other, vec."
    )
    assert refused(name, vector="body") == (
        f"The field 'body' of {name} is of type text, not knn_vector: its knn_vector fields are meta.other, vec."
    )


def test_an_index_without_vectors(refused, old):
    name = old({"body": {"type": "text"}}, {"body": "The sea."})
    assert refused(name) == (
        f"Index {name} has no field 'vec': it has no knn_vector field, so there is nothing to shift."
    )


def test_vectors_of_bits(refused, old):
    bits = {"type": "knn_vector", "dimension": 8, "data_type": "binary", "space_type": "hamming"}
    method = {"name": "hnsw", "engine": "faiss", "space_type": "hamming"}
    name = old({**SIMPLE, "vec": {**bits, "method": method}}, {"body": "The sea."})
    assert refused(name) == (
        f"The vectors in 'vec' of {name} are of the data type binary: only float and byte vectors can be shifted."
    )


def test_vectors_compared_otherwise_than_by_the_cosine(refused, old):
    name = old({**SIMPLE, "vec": COMPARED})
    assert refused(name) == (
        f"The vectors in 'vec' of {name} are compared by l2, and 1 of 1 of a sample do not have length 1: cosine "
        "similarity, which langshift uses, would rank them otherwise. If that is what you want, copy the index with "
        "_reindex into one whose "
        'mapping has "space_type": "cosinesimil" (nothing is encoded again), and adopt the copy.'
    )


def test_no_such_text_or_language_field(refused, old):
    name = old({**SIMPLE, "when": {"type": "date"}})
    assert refused(name, texts=("body", "title")) == (
        f"Index {name} has no field 'title': give --text-field a field that its documents have."
    )
    assert refused(name, texts=("when",)) == (
        f"The field 'when' of {name} is of type date: give --text-field a text or keyword field."
    )
    assert refused(name, "--language-field", "lang") == (
        f"Index {name} has no field 'lang': give --language-field a field that its documents have."
    )


def test_a_field_that_does_not_tell_languages(refused, old):
    name = old(
        {**SIMPLE, "category": {"type": "keyword"}}, {"vec": [1.0] * DIMENSION, "body": "Sea.", "category": "sport"}
    )
    assert refused(name, "--language-field", "category") == (
        f"The field 'category' of {name} does not tell languages: of 1 document of a sample with a value there, 0% "
        "have a language tag that their text does not contradict (such a value is 'sport'). Give --language-field the "
        "field with the language, or leave it out to have languages detected."
    )


@pytest.mark.parametrize(
    ("source", "lost"),
    [
        ({"enabled": False}, "does not store `_source`"),
        ({"excludes": ["secret"]}, "stores only a part of each document's `_source`"),
    ],
)
def test_an_index_that_does_not_keep_whole_documents(refused, old, source, lost):
    name = old(_source=source)
    assert refused(name) == (
        f"Index {name} {lost}, so its documents cannot be read completely: load them from their original source "
        "with `langshift ingest`."
    )


def test_no_document_has_a_vector(refused, old):
    name = old(document={"body": "The sea."})
    assert refused(name) == f"No document of {name} has a vector in 'vec': there is nothing to shift."


def test_both_names_of_a_field_are_taken(refused, old):
    name = old({**SIMPLE, "shift": {"type": "keyword"}, "langshift_shift": {"type": "keyword"}})
    assert refused(name) == (
        f"Index {name} has fields named 'shift' and 'langshift_shift', and langshift needs one of these names: copy "
        "the index with _reindex, renaming one of them, and adopt the copy."
    )


def test_vectors_of_another_length_than_the_encoders(refused, old):
    name = old()
    assert refused(name, encoder=None) == (
        f"The vectors in 'vec' of {name} have 16 dimensions, but those of use-m have 512: name the encoder that "
        "computed them with --encoder, or --encoder given if it is not available here."
    )


def test_vectors_of_other_norms_than_the_encoders(refused, old):
    long = {**VECTOR, "dimension": 512}
    name = old({**SIMPLE, "vec": long}, {"vec": [1.0] * 512, "body": "The sea."})
    assert refused(name, encoder=None) == (
        f"The vectors in 'vec' of {name} have norms other than 1, but those of use-m have norm 1: name the encoder "
        "that computed them with --encoder, or --encoder given if it is not available here."
    )


def test_vectors_in_lists_of_objects(refused, old):
    inner = {"parts": {"properties": {"vec": VECTOR}}, "body": {"type": "text"}}
    name = old(inner, {"parts": [{"vec": [1.0] * DIMENSION}], "body": "The sea."})
    assert refused(name, vector="parts.vec") == (
        f"The documents of {name} hold 'parts.vec' in a list of objects, so one may have several: load the original "
        "documents with `langshift ingest --chunk auto`, or write each object in 'parts' as a document of its own, "
        "with the id of the document that it is from, and adopt that index with --parent-field."
    )


def test_no_room_for_more_fields(client, refused, old):
    name = old()
    client.indices.put_settings(index=name, body={"index.mapping.total_fields.limit": 5})
    assert refused(name) == (
        "The cluster refuses the new index (Limit of total fields [5] has been exceeded): raise "
        f"index.mapping.total_fields.limit of {name} by 20, which changes no document."
    )


def test_a_name_that_is_taken(client, cluster_env, refused, old, index_name):
    name, new = old(), f"{index_name}-new"
    options = ["--vector-field", "vec", "--text-field", "body", "--encoder", "given", "--alpha", "0"]
    assert langshift("adopt", name, "--name", new, *options, url=cluster_env).returncode == 0
    assert refused(name) == (
        f"Index {new} already exists ({new}-v0001, 1 document): replace it with --if-exists replace, or create a new "
        "version of it with --if-exists new-version."
    )
    done = langshift("adopt", name, "--name", new, *options, "--if-exists", "new-version", url=cluster_env)
    assert done.returncode == 0, done
    assert versions_of(client, new) == [f"{new}-v0001", f"{new}-v0002"]

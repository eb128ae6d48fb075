"""An index of chunks that somebody else has made is adopted: searches find its documents, each by its best chunk."""

from __future__ import annotations

import json

import pytest
from command_line import langshift, refusal
from old_index import raw_documents
from small_old_index import ADOPTED, VECTOR, old_index

DYNAMIC = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
OURS = ("language", "language_confidence", "shift")


def chunks(of):
    """Four chunks of two documents, and what names none; ``of`` makes the id of a document."""
    return {
        "c1": {"body": "The sea rises and falls twice a day.", "page": {"doc": of(1), "number": 1}},
        "c2": {"body": "The moon pulls at the sea, and the sea follows.", "page": {"doc": of(1), "number": 2}},
        "c3": {"body": "Hefe lässt den Teig am Morgen aufgehen.", "page": {"doc": of(2), "number": 1}},
        "c4": {"body": "Wer ans Meer fährt, nimmt Brot mit an die sea.", "page": {"doc": [of(2)]}},
        "7": {"body": "A note about the sea that is no part of anything."},
        "8": {"body": "Another of these notes.", "page": {"doc": None, "number": 3}},
    }


def adopt(cluster_url, name, *more):
    options = ["--text-field", "body", *ADOPTED, *more]
    return langshift("adopt", name, "--name", f"{name}-new", *options, url=cluster_url)


@pytest.mark.parametrize(
    ("kind", "of", "view"),
    [
        ({"type": "keyword"}, "doc-{}".format, None),
        (DYNAMIC, "A document: {}".format, "page.doc.keyword"),
        ({"type": "long"}, int, None),
    ],
)
def test_searches_find_documents_by_whatever_field_names_them(client, cluster_url, index_name, kind, of, view):
    properties = {"body": {"type": "text"}, "page": {"properties": {"doc": kind, "number": {"type": "integer"}}}}
    with old_index(client, index_name, properties, chunks(of)):
        done = adopt(cluster_url, index_name, "--parent-field", "page.doc", "--json")
        assert done.returncode == 0, done
        told = json.loads(done.stdout)
        assert (told["documents"], told["chunks"], told["lines"], told["parentless"]) == (4, 6, 6, 2)
        assert (told["fields"]["parent"], told["fields"]["parent_keyword"]) == ("page.doc", view)
        assert done.stderr.splitlines()[:1] == [
            "2 chunks without a value in 'page.doc', which became documents of their own: their _id was filled in."
        ]
        before, after = (raw_documents(cluster_url, one, 1) for one in (index_name, f"{index_name}-new"))
        for name, one in after.items():
            kept = {field: value for field, value in one.source.items() if field not in OURS}
            there = before[name].source
            if name in "78":
                there = {**there, "page": {**there.get("page", {}), "doc": name}}
            assert kept == there, name
        assert len(after) == len(before) == 6
        pages = {"c1": str(of(1)), "c2": str(of(1)), "c3": str(of(2)), "c4": str(of(2)), "7": "7", "8": "8"}
        assert {name: one.source["shift"]["page"] for name, one in after.items()} == pages
        search = ["search", f"{index_name}-new", "sea", "--mode", "lexical", "--json"]
        found = langshift(*search, url=cluster_url)
        assert found.returncode == 0, found
        best = [(hit["id"], hit["passage"]["id"]) for hit in json.loads(found.stdout)["hits"]]
        assert sorted(best) == sorted([(str(of(1)), "c2"), (str(of(2)), "c4"), ("7", "7")])


def test_what_was_done_is_told_in_documents_and_chunks(client, cluster_url, index_name):
    of = "doc-{}".format
    properties = {"body": {"type": "text"}, "page": {"properties": {"doc": {"type": "keyword"}}}}
    several = {"c5": {"body": "Of two documents.", "page": {"doc": ["doc-1", "doc-2"]}}}
    with old_index(client, index_name, properties, {**chunks(of), **several}):
        new = f"{index_name}-new"
        done = adopt(cluster_url, index_name, "--parent-field", "page.doc")
        assert done.returncode == 3, done
        assert done.stdout.splitlines()[0].split() == ["language", "chunks"]
        assert done.stdout.splitlines()[-2:] == [
            f"Adopted 4 documents in 6 chunks of {index_name} into {new} ({new}-v0001), 0 of them shifted with alpha "
            f"0; {index_name} was not touched.",
            f"All 7 chunks that searches of {index_name} found when reading began are accounted for: 6 chunks on the "
            f"server, checked, 1 dead letter (langshift dead-letters list --index {new} shows why). Anything written "
            f"to {index_name} since is not in {new}.",
        ]
        letters = json.loads(langshift("dead-letters", "list", "--index", new, "--json", url=cluster_url).stdout)
        (group,) = letters["groups"]
        assert (group["type"], group["example"]["reason"]) == (
            "invalid_parent",
            "the field 'page.doc' is not one value.",
        )
        described = langshift("index", "describe", new, url=cluster_url)
        assert described.stdout.splitlines()[1:3] == [
            "It holds 4 documents in 6 chunks, 0.0% of them in an unknown language (und), 0 without a vector.",
            "Its documents were cut by whoever made the adopted index: each chunk names its document in page.doc.",
        ]
        (version,) = (
            one
            for one in json.loads(langshift("index", "list", "--json", url=cluster_url).stdout)["versions"]
            if one["name"] == new
        )
        assert (version["documents"], version["chunks"]) == (4, 6)


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("topic", {"type": "text"}, "of type text"),
        ("topic", {"type": "wildcard"}, "of type wildcard"),
        ("topic", {"type": "object", "properties": {"id": {"type": "keyword"}}}, "of type object"),
    ],
)
def test_a_field_that_cannot_be_collected_by_is_refused(client, cluster_url, index_name, name, kind, problem):
    with old_index(client, index_name, {"body": {"type": "text"}, name: kind}, {"a": {"body": "The sea rises."}}):
        done = adopt(cluster_url, index_name, "--parent-field", name)
        assert refusal(done) == (
            f"The field {name!r} of {index_name} is {problem}, which cannot be searched by its exact value: give "
            "--parent-field a keyword field, or a text field that has a keyword view."
        )
        missing = adopt(cluster_url, index_name, "--parent-field", "none")
        assert refusal(missing) == (
            f"Index {index_name} has no field 'none': give --parent-field a field that its documents have."
        )


def nested(index):
    return (
        f"The vectors of {index} are inside the nested field 'parts', so a document may have several: load the "
        "original documents with `langshift ingest --chunk auto`, or write each object in 'parts' as a document of its "
        "own, with the id of the document that it is from, and adopt that index with --parent-field."
    )


@pytest.mark.parametrize("field", ["parts.vec", "parts"])
def test_several_vectors_in_a_nested_field_are_refused_at_once(client, cluster_url, index_name, field):
    parts = {"type": "nested", "properties": {"vec": VECTOR, "body": {"type": "text"}}}
    vectors = [{"vec": [1.0, number, 0.5, 2.0], "body": "The sea rises."} for number in range(3)]
    body = {"settings": {"index": {"knn": True}}, "mappings": {"properties": {"parts": parts}}}
    client.indices.create(index=index_name, body=body)
    try:
        client.index(index=index_name, id="a", body={"parts": vectors}, params={"refresh": "true"})
        options = ["--text-field", "parts.body", "--vector-field", field, "--encoder", "given", "--alpha", "0"]
        for command in ("index", "audit", index_name), ("adopt", index_name, "--name", f"{index_name}-new"):
            assert refusal(langshift(*command, *options, url=cluster_url)) == nested(index_name)
    finally:
        client.indices.delete(index=index_name)


def test_an_audit_of_chunks(client, cluster_url, index_name):
    properties = {"body": {"type": "text"}, "page": {"properties": {"doc": {"type": "keyword"}}}}
    with old_index(client, index_name, properties, chunks("doc-{}".format)):
        done = langshift("index", "audit", index_name, "--text-field", "body", *ADOPTED, url=cluster_url)
        assert done.returncode == 0, done
        assert done.stdout.startswith(f"{index_name}: 6 of 6 documents with a vector")

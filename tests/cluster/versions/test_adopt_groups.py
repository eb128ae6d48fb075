"""Groups of an adopted index: in a field of whatever name, a text with a keyword view as well as a keyword."""

from __future__ import annotations

import json

import pytest
from command_line import langshift, refusal
from small_old_index import ADOPTED, old_index

DYNAMIC = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
DOCUMENTS = {
    f"{topic}-{tag}": {"body": text, "group": f"The {topic}, a topic", "topic": f"The {topic}, a topic"}
    for topic, texts in {
        "tides": {"en": "The sea rises and falls twice a day.", "de": "Das Meer steigt und fällt zweimal am Tag."},
        "bread": {"en": "Yeast makes the dough of the sea rise.", "de": "Hefe lässt den Teig am Meer aufgehen."},
    }.items()
    for tag, text in texts.items()
}


def adopt(cluster_url, name, *more):
    options = ["--text-field", "body", *ADOPTED, *more, "--json"]
    return langshift("adopt", name, "--name", f"{name}-new", *options, url=cluster_url)


@pytest.mark.parametrize(
    ("properties", "options", "group", "view"),
    [
        ({"group": DYNAMIC, "topic": DYNAMIC}, (), "group", "group.keyword"),
        ({"group": {"type": "keyword"}, "topic": DYNAMIC}, (), "group", None),
        ({"group": DYNAMIC, "topic": DYNAMIC}, ("--group-field", "topic"), "topic", "topic.keyword"),
        ({"group": DYNAMIC, "topic": {"type": "keyword"}}, ("--group-field", "topic"), "topic", None),
    ],
)
def test_one_document_per_group_is_found(client, cluster_url, index_name, properties, options, group, view):
    with old_index(client, index_name, {"body": {"type": "text"}, **properties}, DOCUMENTS):
        done = adopt(cluster_url, index_name, *options)
        assert done.returncode == 0, done
        fields = json.loads(done.stdout)["fields"]
        assert (fields["group"], fields["group_keyword"]) == (group, view)
        search = ["search", f"{index_name}-new", "sea Meer", "--mode", "lexical", "--one-per-group", "--json"]
        found = langshift(*search, url=cluster_url)
        assert found.returncode == 0, found
        hits = json.loads(found.stdout)["hits"]
        assert sorted(hit["id"].partition("-")[0] for hit in hits) == ["bread", "tides"]
        assert [len(hit["others"]) for hit in hits] == [1, 1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("topic", {"type": "text"}),
        ("topic", {"type": "nested", "properties": {"name": {"type": "keyword"}}}),
    ],
)
def test_a_field_that_cannot_be_filtered_by_is_refused(client, cluster_url, index_name, name, kind):
    with old_index(client, index_name, {"body": {"type": "text"}, name: kind}, {"a": {"body": "The sea rises."}}):
        done = adopt(cluster_url, index_name, "--group-field", name)
        assert refusal(done) == (
            f"The field {name!r} of {index_name} is of type {kind['type']}, which cannot be searched by its exact "
            "value: give --group-field a keyword field, or a text field that has a keyword view."
        )
        missing = adopt(cluster_url, index_name, "--group-field", "none")
        assert refusal(missing) == (
            f"Index {index_name} has no field 'none': give --group-field a field that its documents have."
        )


def test_a_field_inside_a_nested_one_is_refused(client, cluster_url, index_name):
    parts = {"type": "nested", "properties": {"topic": {"type": "keyword"}}}
    with old_index(client, index_name, {"body": {"type": "text"}, "parts": parts}, {"a": {"body": "The sea rises."}}):
        done = adopt(cluster_url, index_name, "--group-field", "parts.topic")
        assert refusal(done) == (
            f"The field 'parts.topic' of {index_name} is inside the nested field 'parts': give --group-field a field "
            "of the document itself."
        )

"""A template of a person's own: read, refused, and merged over langshift's."""

import json

import pytest
from plain_index import PLAIN

from langshift.errors import UsageError
from langshift.plugin.index_body import index_body
from langshift.plugin.metadata import FieldNames
from langshift.plugin.user_template import IndexOptions, Template

EMPTY = {"mappings": {}, "settings": {}}
RELIED = "langshift sets this itself; only method.parameters.m and ef_construction may be set."
PIPELINE = "a pipeline would change what langshift writes (see langshift pipeline); leave it out."


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "own.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


@pytest.fixture
def merged(file):
    """The body of an index of small vectors with a template merged over it."""
    return lambda content: IndexOptions(Template.read(file(content))).applied(index_body(PLAIN))


def properties(**fields):
    return {"mappings": {"properties": fields}}


def test_an_analyzer_of_a_language_is_that_of_its_titles_and_texts(merged):
    body = merged({"analyzers": {"ja": "kuromoji", "sw": "my_own", "und": "icu_analyzer"}})
    for field in ("title", "text"):
        fields = body["mappings"]["properties"][field]["properties"]
        assert fields["ja"] == {"type": "text", "analyzer": "kuromoji"}
        assert fields["sw"] == {"type": "text", "analyzer": "my_own"}
        assert fields["und"] == {"type": "text", "analyzer": "icu_analyzer"}
        assert fields["de"] == {"type": "text", "analyzer": "german"}


def test_fields_with_other_names_are_those_of_texts(file):
    fields = FieldNames(texts=("headline", "content.body"), by_language=True, group="of")
    own = {
        "analyzers": {"ja": "kuromoji"},
        **properties(**{"content.body.ko": {"analyzer": "nori"}, "text": {"type": "keyword"}}),
    }
    body = IndexOptions(Template.read(file(own), fields)).applied(index_body(PLAIN, fields=fields))["mappings"]
    inner = body["properties"]["content"]["properties"]["body"]["properties"]
    assert inner["ja"] == body["properties"]["headline"]["properties"]["ja"] == {"type": "text", "analyzer": "kuromoji"}
    assert (inner["ko"], body["properties"]["text"]) == ({"type": "text", "analyzer": "nori"}, {"type": "keyword"})
    path = file(properties(content={"properties": {"body": {"type": "text"}}}))
    with pytest.raises(UsageError) as caught:
        Template.read(path, fields)
    assert str(caught.value) == (
        f"{path}, mappings.properties.content.properties.body.type: langshift stores texts by language, as in body.en: "
        "set the analyzer there."
    )


def test_the_long_form_adds_to_the_short_one_and_has_its_way(merged):
    both = {
        "analyzers": {"ja": "kuromoji", "ko": "nori"},
        **properties(text={"properties": {"ja": {"analyzer": "own"}}}),
    }
    fields = merged(both)["mappings"]["properties"]
    assert fields["text"]["properties"]["ja"] == {"type": "text", "analyzer": "own"}
    assert fields["title"]["properties"]["ja"] == {"type": "text", "analyzer": "kuromoji"}
    assert fields["text"]["properties"]["ko"] == {"type": "text", "analyzer": "nori"}


@pytest.mark.parametrize(
    "settings",
    [
        {"index": {"number_of_shards": 3, "analysis": {"analyzer": {"own": {"type": "custom"}}}}},
        {"number_of_shards": 3, "analysis": {"analyzer": {"own": {"type": "custom"}}}},
        {"index.number_of_shards": 3, "index": {"analysis.analyzer": {"own": {"type": "custom"}}}},
    ],
)
def test_settings_may_be_written_in_each_of_the_ways_that_the_server_takes(merged, settings):
    made = merged({"settings": settings})["settings"]["index"]
    # langshift's own stays beside it.
    assert list(made.pop("analysis")["analyzer"]) == ["hebrew"]
    assert made == {
        "knn": True,
        "auto_expand_replicas": "0-1",
        "number_of_shards": 3,
        "analysis.analyzer.own.type": "custom",
    }


def test_a_number_of_replicas_is_not_overruled_by_their_expansion(merged):
    assert "auto_expand_replicas" not in merged({"settings": {"number_of_replicas": 2}})["settings"]["index"]
    both = merged({"settings": {"number_of_replicas": 2, "auto_expand_replicas": "0-all"}})["settings"]["index"]
    assert (both["auto_expand_replicas"], both["number_of_replicas"]) == ("0-all", 2)


def test_own_fields_stand_beside_those_of_langshift(merged):
    own = {"published": {"type": "date"}, "author.name": {"type": "keyword"}, "author.born": {"type": "date"}}
    body = merged({"mappings": {"properties": own, "_meta": {"team": "news"}, "dynamic": "strict"}})
    fields = body["mappings"]["properties"]
    assert fields["published"] == {"type": "date"}
    assert fields["author"] == {"properties": {"name": {"type": "keyword"}, "born": {"type": "date"}}}
    usual = index_body(PLAIN)["mappings"]
    assert {name: fields[name] for name in usual["properties"]} == usual["properties"]
    assert body["mappings"]["_meta"] == {**usual["_meta"], "team": "news"}
    assert body["mappings"]["dynamic"] == "strict"
    assert all(fields[name]["dynamic"] is True for name in ("title", "text", "shift"))


def test_parameters_of_the_graph_may_be_set(merged):
    scales = {"m": 32, "ef_construction": 256}
    embedding = merged(properties(embedding={"method": {"parameters": scales}}))["mappings"]["properties"]["embedding"]
    assert embedding["method"] == {
        "name": "hnsw",
        "engine": "lucene",
        "space_type": "cosinesimil",
        "parameters": scales,
    }
    assert embedding["dimension"] == 4


def test_own_dynamic_templates_come_first_but_make_nothing_else_of_texts(merged):
    strings = {"strings": {"match_mapping_type": "string", "mapping": {"type": "wildcard"}}}
    swahili = {"swahili": {"path_match": "text.sw", "mapping": {"type": "text", "analyzer": "own"}}}
    found = merged({"mappings": {"dynamic_templates": [strings, swahili]}})["mappings"]["dynamic_templates"]
    assert [name for template in found for name in template] == [
        "swahili",
        "title_of_other_languages",
        "text_of_other_languages",
        "strings",
        "strings_to_filter_by",
        "whole_numbers",
        "numbers",
    ]
    replaced = {"strings_to_filter_by": {"match_mapping_type": "string", "mapping": {"type": "wildcard"}}}
    found = merged({"mappings": {"dynamic_templates": [replaced]}})["mappings"]["dynamic_templates"]
    assert len(found) == 5
    assert found[2] == replaced


def test_a_template_that_says_nothing_or_what_langshift_says_changes_nothing(merged):
    body = index_body(PLAIN)
    said = {
        name: body["mappings"]["properties"][name] for name in ("language", "language_confidence", "shift", "title")
    }
    said["embedding"] = {"type": "knn_vector", "method": body["mappings"]["properties"]["embedding"]["method"]}
    assert merged({}) == body
    assert merged(EMPTY) == body
    assert (
        merged({"settings": {"index": {"knn": "true"}}, "mappings": {"properties": said}})["mappings"]
        == (body["mappings"])
    )


def test_templates_that_say_the_same_have_one_name(file):
    one = Template.read(file({"settings": {"index": {"number_of_shards": 2, "codec": "best_compression"}}}))
    same = Template.read(file({"settings": {"codec": "best_compression", "number_of_shards": 2}, "mappings": {}}))
    assert one.hash == same.hash
    assert one.hash != Template.read(file({"settings": {"number_of_shards": 3}})).hash


@pytest.mark.parametrize(
    ("content", "place", "why"),
    [
        ("[]", "", "must be a JSON object."),
        ({"template": {}}, "template", "is not a known name; use one of settings, mappings, analyzers."),
        ({"settings": []}, "settings", "must be a JSON object."),
        ({"mappings": {"properties": {"text": 1}}}, "mappings.properties.text", "must be a JSON object."),
        ({"mappings": {"properties": 1}}, "mappings.properties", "must be a JSON object."),
        ({"mappings": {"dynamic_templates": {}}}, "mappings.dynamic_templates", "must be a list."),
        (
            {"mappings": {"dynamic_templates": [{"a": {}, "b": {}}]}},
            "mappings.dynamic_templates[0]",
            "must be an object with one name.",
        ),
        (
            {"mappings": {"dynamic_templates": [{"a": {"path_match": "text.*", "mapping": {"type": "keyword"}}}]}},
            "mappings.dynamic_templates[0].a.mapping.type",
            "must be text, or lexical search finds nothing; other types can be added under fields.",
        ),
        (
            {"settings": {"knn": False}},
            "settings.index.knn",
            "vector search would not work; leave it out, or set it to true.",
        ),
        (
            {"settings": {"index": {"knn.derived_source": {"enabled": True}}}},
            "settings.index.knn.derived_source.enabled",
            "vectors might be returned changed, and could not be shifted again; leave it out, or set it to false.",
        ),
        ({"settings": {"index.default_pipeline": "own"}}, "settings.index.default_pipeline", PIPELINE),
        ({"settings": {"final_pipeline": "own"}}, "settings.index.final_pipeline", PIPELINE),
        (
            {"settings": {"blocks": {"write": True}}},
            "settings.index.blocks.write",
            "langshift could not write to the index; leave it out.",
        ),
        (
            {"mappings": {"_source": {"enabled": False}}},
            "mappings._source",
            "langshift reads whole documents from the index; leave it out.",
        ),
        (
            {"mappings": {"_source": {"excludes": ["embedding"]}}},
            "mappings._source",
            "langshift reads whole documents from the index; leave it out.",
        ),
        (
            {"mappings": {"_routing": {"required": True}}},
            "mappings._routing.required",
            "langshift writes documents without routing; leave it out.",
        ),
        ({"mappings": {"enabled": "false"}}, "mappings.enabled", "no field would be searchable; leave it out."),
        (
            {"mappings": {"_meta": {"langshift_vectors": {}}}},
            "mappings._meta.langshift_vectors",
            "names that begin with langshift are reserved; rename it.",
        ),
        (properties(embedding={"dimension": 4}), "mappings.properties.embedding.dimension", RELIED),
        (properties(embedding={"type": "keyword"}), "mappings.properties.embedding.type", RELIED),
        (properties(embedding={"mode": "on_disk"}), "mappings.properties.embedding.mode", RELIED),
        (
            properties(embedding={"method": {"space_type": "l2"}}),
            "mappings.properties.embedding.method.space_type",
            RELIED,
        ),
        (
            properties(embedding={"method": {"engine": "faiss"}}),
            "mappings.properties.embedding.method.engine",
            "is set by --engine; leave it out.",
        ),
        (
            properties(language={"type": "text"}),
            "mappings.properties.language",
            "langshift writes this field itself; leave it out.",
        ),
        (
            properties(language_confidence={"type": "float", "index": False}),
            "mappings.properties.language_confidence",
            "langshift writes this field itself; leave it out.",
        ),
        (
            {"mappings": {"properties": {"shift.alpha": {"type": "integer"}}}},
            "mappings.properties.shift",
            "langshift writes this field itself; leave it out.",
        ),
        (
            properties(shift={"dynamic": "strict"}),
            "mappings.properties.shift",
            "langshift writes this field itself; leave it out.",
        ),
        (
            properties(group={"type": "text"}),
            "mappings.properties.group.type",
            "langshift needs a keyword field; leave it out.",
        ),
        (
            properties(text={"type": "text", "analyzer": "own"}),
            "mappings.properties.text.type",
            "langshift stores texts by language, as in text.en: set the analyzer there.",
        ),
        (
            properties(title={"dynamic": False}),
            "mappings.properties.title.dynamic",
            "langshift stores texts by language, as in title.en: set the analyzer there.",
        ),
        (
            {"mappings": {"properties": {"text.ja": {"type": "keyword"}}}},
            "mappings.properties.text.properties.ja.type",
            "must be text, or lexical search finds nothing; other types can be added under fields.",
        ),
        (
            properties(text={"properties": {"ja": {"index": False}}}),
            "mappings.properties.text.properties.ja.index",
            "lexical search would find nothing; leave it out.",
        ),
        (
            properties(text={"properties": {"zh-TW": {"analyzer": "smartcn"}}}),
            "mappings.properties.text.properties.zh-TW",
            "texts in zh-TW are stored in the fields of zh: use zh.",
        ),
        (
            {"analyzers": {"jp": "kuromoji"}},
            "analyzers.jp",
            "'jp' is not a valid language: use a BCP 47 tag such as ja.",
        ),
        ({"analyzers": {"nn": "own"}}, "analyzers.nn", "texts in nn are stored in the fields of no: use no."),
        (
            {"analyzers": {"ja": {"type": "kuromoji"}}},
            "analyzers.ja",
            'must be the name of an analyzer, as in {"ja": "kuromoji"}.',
        ),
    ],
)
def test_what_langshift_relies_on_is_not_to_be_changed(file, content, place, why):
    path = file(content)
    with pytest.raises(UsageError) as refused:
        Template.read(path)
    assert str(refused.value) == (f"{path}, {place}: {why}" if place else f"{path}: {why}")


def test_a_file_that_is_no_json_is_refused_with_the_place(file):
    path = file('{\n  "settings": {,}\n}')
    with pytest.raises(UsageError) as refused:
        Template.read(path)
    assert str(refused.value) == (
        f"{path}, line 2, column 16: is not valid JSON (Expecting property name enclosed in double quotes); correct it."
    )
    path.write_text("[" * 100_000)
    with pytest.raises(UsageError) as refused:
        Template.read(path)
    assert str(refused.value) == f"{path}: is not valid JSON; correct it."


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "missing.json"
    with pytest.raises(UsageError) as refused:
        Template.read(path)
    assert str(refused.value) == f"{path}: cannot be read: No such file or directory."

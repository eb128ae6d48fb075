"""Index templates of the cluster: what they would break is refused before anything is made, and all else loads."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from cluster_templates import index_templates
from given_data import run
from plain_index import PLAIN
from shifted_index import Corpus, language_vectors, refused, require_vectors, saved
from small_old_index import ADOPTED, old_index

from langshift.plugin import version_writer, versions

pytestmark = pytest.mark.usefixtures("cluster_env")


class Case(NamedTuple):
    """Templates, and the sentence with which they are refused; none where the load succeeds."""

    contents: tuple[dict[str, Any], ...]
    sentence: str = ""
    legacy: bool = False
    components: Mapping[str, dict[str, Any]] = MappingProxyType({})


def mappings(**parts):
    return {"mappings": parts}


def fields(**properties):
    return {"mappings": {"properties": properties}}


def alias(label, alias="NAME"):
    return (
        f"Index NAME-v0001 cannot be created, because {label} would give it the alias {alias} at once, and searches "
        "would find it before it is finished: remove the alias from the template (langshift sets it itself), or "
        "change its index_patterns."
    )


def broken(place, why, label="the index template NAME-t0"):
    return (
        f"Index NAME-v0001 cannot be created because of {label} ({place}): {why}; change the template, or its "
        "index_patterns."
    )


def conflict(why, label="the index template NAME-t0"):
    return (
        f"The cluster cannot create index NAME-v0001 under {label}: {why}; correct the template, or change its "
        "index_patterns."
    )


NOT_INDEXED = "nothing in this field would be searchable"
NO_WRITES = "langshift could not write to the index"
WHOLE = "langshift reads whole documents from the index"
LEGACY = "the legacy index template NAME-t0"
THE_ALIAS = {"aliases": {"NAME": {}}}
CASES = {
    "alias": Case((THE_ALIAS,), alias("the index template NAME-t0")),
    "alias for writes": Case(({"aliases": {"NAME": {"is_write_index": True}}},), alias("the index template NAME-t0")),
    "alias with a filter": Case(
        ({"aliases": {"NAME": {"filter": {"term": {"language": "de"}}}}},), alias("the index template NAME-t0")
    ),
    "alias of a component": Case(
        ({},), alias("the component template NAME-c of the index template NAME-t0"), components={"c": THE_ALIAS}
    ),
    "alias of a legacy template": Case(({}, THE_ALIAS), alias("the legacy index template NAME-t1"), legacy=True),
    "alias of another index": Case(
        ({"aliases": {"NAME-other": {}}},), alias("the index template NAME-t0", "NAME-other")
    ),
    "data stream": Case(
        ({"top": {"data_stream": {}}},),
        "No index NAME-v0001 can be created, because the index template NAME-t0 makes data streams of such names: "
        "change its index_patterns, or choose another index name.",
    ),
    "no _source": Case((mappings(_source={"enabled": False}),), broken("mappings._source", WHOLE)),
    "no _source, legacy": Case(
        (mappings(_source={"enabled": False}),), broken("mappings._source", WHOLE, LEGACY), legacy=True
    ),
    "_source without vectors": Case(
        ({"settings": {"number_of_replicas": 0}},),
        broken("mappings._source", WHOLE, "the component template NAME-c of the index template NAME-t0"),
        components={"c": mappings(_source={"excludes": ["embedding"]})},
    ),
    "routing required": Case(
        (mappings(_routing={"required": True}),),
        broken("mappings._routing.required", "langshift writes documents without routing"),
    ),
    "mapping disabled": Case((mappings(enabled=False),), broken("mappings.enabled", "no field would be searchable")),
    "stamp disabled": Case(
        (fields(shift={"type": "object", "enabled": False}),),
        broken("mappings.properties.shift.enabled", NOT_INDEXED),
    ),
    "texts of a language as keywords": Case(
        (fields(text={"properties": {"sw": {"type": "keyword"}}}),),
        broken(
            "mappings.properties.text.properties.sw.type",
            "must be text, or lexical search finds nothing",
        ),
    ),
    "texts as keywords by a pattern": Case(
        (mappings(dynamic_templates=[{"texts": {"path_match": "text.*", "mapping": {"type": "keyword"}}}]),),
        broken(
            "mappings.dynamic_templates[0].texts.mapping.type",
            "must be text, or lexical search finds nothing",
        ),
    ),
    "fingerprint": Case(
        (mappings(_meta={"langshift": {"owner": "me"}}),),
        broken("mappings._meta.langshift", "names that begin with langshift are reserved"),
    ),
    "calibration": Case(
        (mappings(_meta={"langshift_anchors": {}}),),
        broken("mappings._meta.langshift_anchors", "names that begin with langshift are reserved"),
    ),
    "text as a keyword": Case(
        (fields(text={"type": "keyword"}),), conflict("can't merge a non object mapping [text] with an object mapping")
    ),
    "language as an object": Case(
        (fields(language={"properties": {"name": {"type": "keyword"}}}),),
        conflict("can't merge a non object mapping [language] with an object mapping"),
    ),
    "few fields": Case(
        ({"settings": {"mapping.total_fields.limit": 5}},),
        conflict("Limit of total fields [5] has been exceeded"),
    ),
    "write block": Case(({"settings": {"blocks.write": True}},), broken("settings.index.blocks.write", NO_WRITES)),
    "read-only": Case(
        ({"settings": {"blocks.read_only": True}},), broken("settings.index.blocks.read_only", NO_WRITES)
    ),
    "hidden": Case(
        ({"settings": {"hidden": True}},), broken("settings.index.hidden", "langshift would not find the version")
    ),
    "derived source": Case(
        ({"settings": {"derived_source.enabled": True}},),
        conflict(
            "Failed to parse mapping [_doc]: Derive source is not supported for field [embedding] with field type "
            "[knn_vector]"
        ),
    ),
    # All that follows loads.
    "no vector index": Case(({"settings": {"knn": False}},)),
    "other aliases": Case(
        ({"aliases": {"NAME-all": {"is_write_index": False}, "NAME-de": {"filter": {"term": {"language": "de"}}}}},)
    ),
    "alias of a template with less priority": Case((THE_ALIAS, {})),
    # Of legacy templates nothing is left of a field that langshift maps.
    "fields disabled, legacy": Case(
        (fields(text={"type": "object", "enabled": False}, language={"type": "object"}),), legacy=True
    ),
    "nothing new": Case((mappings(dynamic="strict", date_detection=True),)),
    "other types of our fields": Case(
        (fields(language={"type": "keyword", "index": False, "ignore_above": 1}, language_confidence={"type": "text"}),)
    ),
    "everything is a keyword": Case(
        (mappings(dynamic_templates=[{"all": {"match": "*", "mapping": {"type": "keyword", "index": False}}}]),)
    ),
    "everything is a keyword, legacy": Case(
        (mappings(dynamic_templates=[{"all": {"match": "*", "mapping": {"type": "keyword"}}}]),), legacy=True
    ),
    "an owner, a field and settings": Case(
        (
            {
                "settings": {"number_of_replicas": 1, "number_of_shards": 3, "codec": "best_compression"},
                "mappings": {"_meta": {"owner": "us"}, "properties": {"author": {"type": "keyword"}}},
            },
        )
    ),
    "sorted, and fewer at once": Case(
        ({"settings": {"sort.field": ["language"], "max_result_window": 1000, "query.default_field": ["author"]}},)
    ),
    "a default pipeline that is not there": Case(({"settings": {"default_pipeline": "NAME-none"}},)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_load_under_templates(client, index_name, tmp_path, case):
    corpus, known = Corpus(tmp_path, each=1), language_vectors()
    there = []
    if "-other" in case.sentence:
        other = version_writer.open_for_writing(client, f"{index_name}-other", PLAIN)
        there.append(version_writer.publish(client, other))
    options = ("--vectors", saved(tmp_path, known), "--alpha", 1)
    with index_templates(client, index_name, *case.contents, components=case.components, legacy=case.legacy):
        if not case.sentence:
            corpus.ingest(index_name, *options)
            require_vectors(client, index_name, corpus, known, 1.0)
            texts = client.indices.get_mapping(index=index_name)[f"{index_name}-v0001"]["mappings"]["properties"][
                "text"
            ]
            assert {one["type"] for one in texts["properties"].values()} == {"text"}
            return
        done = run("ingest", corpus.path, "--index", index_name, "--encoder", "given", *options)
        assert refused(done) == (case.sentence.replace("NAME", index_name), 1)
        assert list(client.indices.get(index=f"{index_name}*")) == there


@pytest.mark.filterwarnings("ignore:index template .* has index patterns")
def test_a_legacy_template_is_not_asked_where_another_applies(client, index_name, tmp_path):
    with index_templates(client, index_name, THE_ALIAS, legacy=True), index_templates(client, index_name, {}):
        Corpus(tmp_path, each=1).ingest(index_name, "--alpha", 0)
    assert versions.version_behind(client, index_name) == f"{index_name}-v0001"


BREAKING = {
    "alias": (THE_ALIAS, "the alias NAME"),
    "legacy alias": (THE_ALIAS, "the alias NAME"),
    "no _source": (mappings(_source={"enabled": False}), "mappings._source"),
    "stream": ({"top": {"data_stream": {}}}, "data streams"),
    "hidden": ({"settings": {"hidden": True}}, "settings.index.hidden"),
    "dynamic": (mappings(dynamic="strict"), ""),
}


@pytest.fixture
def shifted(index_name, tmp_path):
    """An index whose documents can be shifted again, and its corpus and vectors."""
    corpus, known = Corpus(tmp_path, each=1), language_vectors()
    corpus.ingest(index_name, "--vectors", saved(tmp_path, known), "--alpha", 1)
    return corpus, known


@pytest.mark.parametrize(("content", "place"), BREAKING.values(), ids=BREAKING)
def test_what_takes_the_place_of_an_index_is_refused_too(client, index_name, shifted, request, content, place):
    corpus, known = shifted
    legacy = "legacy" in request.node.callspec.id
    load = ("ingest", corpus.path, "--index", index_name, "--encoder", "given", "--alpha", 0)
    with index_templates(client, index_name, content, legacy=legacy):
        for command in (("retune", index_name, "--alpha", 0.5), (*load, "--if-exists", "replace")):
            done = run(*command)
            if not place:
                assert done.exit_code == 0
                continue
            sentence, code = refused(done)
            assert f"index template {index_name}-t0" in sentence
            assert place.replace("NAME", index_name) in sentence
            assert (code, f"{index_name}-v0002" in sentence) == (1, True)
            assert list(versions.versions_of(client, index_name)) == [f"{index_name}-v0001"]
            require_vectors(client, index_name, corpus, known, 1.0)
    if not place:
        made = client.indices.get_mapping(index=index_name)[f"{index_name}-v0003"]["mappings"]
        assert made["dynamic"] == "true"


@pytest.mark.parametrize(("content", "place"), BREAKING.values(), ids=BREAKING)
def test_an_index_is_not_adopted_under_a_template_that_breaks_it(client, index_name, content, place):
    documents = {"a": {"txt": "one", "lang": "en"}, "b": {"txt": "zwei", "lang": "de"}}
    properties = {"txt": {"type": "text"}, "lang": {"type": "keyword"}}
    adopt = ("adopt", f"{index_name}-old", "--name", index_name, "--text-field", "txt", *ADOPTED)
    with old_index(client, f"{index_name}-old", properties, documents), index_templates(client, index_name, content):
        done = run(*adopt)
        if not place:
            assert done.exit_code == 0
            assert client.indices.get_mapping(index=index_name)[f"{index_name}-v0001"]["mappings"]["dynamic"] == "true"
            return
        sentence, code = refused(done)
        assert f"index template {index_name}-t0" in sentence
        assert (code, place.replace("NAME", index_name) in sentence) == (1, True)
        assert list(client.indices.get(index=f"{index_name}*")) == [f"{index_name}-old"]

"""The page that every stamp names, by which searches of any client show each page once."""

import json

import pytest
from native_plugin import has_plugin, install_processor
from piped_index import DIMENSION, MADE, fingerprint_of, made_shift, make_index, raw_vector
from toy_encoder import ToyEncoder

from langshift.debias.detector import open_detector
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin import metadata
from langshift.plugin.index_body import index_body, mapped
from langshift.plugin.metadata import USUAL
from langshift.plugin.pipelines import install
from langshift.plugin.retune import RetuneRequest, retune, roll_back

SHIFT = made_shift(alpha=0.5)
KEYWORD = {"type": "keyword"}
TEXT = "The sea rises and falls.\n\nThe Moon pulls at the water."
DOCUMENTS = {
    "rain-de": {"language": "de", "group": "rain"},
    "rain-en": {"language": "en", "group": ["rain", "weather"]},
    "7-en": {"language": "en", "group": 7},
    "7-de": {"language": "de", "group": "7"},
    "empty": {"language": "en", "group": ""},
    "alone": {"language": "th"},
}
PAGES = {"rain-de": "rain", "rain-en": "rain", "7-en": "7", "7-de": "7", "empty": "empty", "alone": "alone"}


@pytest.fixture(scope="module")
def making():
    return build_pipeline(ToyEncoder(), open_detector(), None, 0)


@pytest.fixture(params=[None, "paragraphs"], ids=["documents", "chunks"])
def loaded(request, client, index_name, making, tmp_path):
    """Loads lines into an index of whole documents, and into one of chunks."""
    fields = USUAL.chunked(request.param)

    def run(lines, **options):
        path = tmp_path / "corpus.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        load(client, str(path), index_name, making.for_fields(fields), options=LoadOptions(fields=fields, **options))

    # A line names one group.
    run([{"_id": name, "text": TEXT, **more} for name, more in {**DOCUMENTS, "rain-en": {"group": "rain"}}.items()])
    return run


def found_pages(client, index):
    """Document -> the pages that its entries name."""
    client.indices.refresh(index=index)
    found = {}
    for hit in client.search(index=index, body={"size": 100})["hits"]["hits"]:
        source = hit["_source"]
        found.setdefault(source.get("parent", hit["_id"]), set()).add(source["shift"]["page"])
    return found


def only(pages):
    return {name: {page} for name, page in pages.items()}


def test_what_a_load_and_its_updates_write(client, index_name, loaded):
    assert found_pages(client, index_name) == only(PAGES)
    size = client.count(index=index_name)["count"]
    query = {"knn": {"embedding": {"vector": [1.0] * DIMENSION, "k": size}}}
    body = {"query": query, "collapse": {"field": "shift.page", "inner_hits": {"name": "all", "size": size}}}
    hits = client.search(index=index_name, body=body)["hits"]["hits"]
    assert sorted(hit["fields"]["shift.page"][0] for hit in hits) == sorted({*PAGES.values()})
    assert sum(hit["inner_hits"]["all"]["hits"]["total"]["value"] for hit in hits) == size

    def update(name, **fields):
        return {"_op": "update", "_id": name, **fields}

    lines = [
        update("rain-en", group="snow"),
        update("7-en", group=None),
        update("alone", text="The tide.\n\nThe ebb.\n\nThe flood.", group="tides"),
        update("empty", language="de"),
        update("7-de", price=3),
    ]
    loaded(lines, if_exists="append")
    now = {**PAGES, "rain-en": "snow", "7-en": "7-en", "alone": "tides"}
    assert found_pages(client, index_name) == only(now)


def client_writes(client, index):
    for name, more in DOCUMENTS.items():
        client.index(index=index, id=name, body={"embedding": raw_vector(), **more})


@pytest.mark.parametrize("language", ["painless", "java"])
def test_what_clients_write(client, pipelines, language):
    if language == "java" and not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")
    index = make_index(client, pipelines, SHIFT)
    put = install_processor if language == "java" else install
    put(client, index, SHIFT, USUAL, None)
    client_writes(client, index)
    own = client.index(index=index, body={"embedding": raw_vector()})["_id"]
    pages = found_pages(client, index)
    assert len(pages.pop(own).pop()) == 36
    assert pages == only(PAGES)
    client.update(index=index, id="rain-de", body={"doc": {"group": "snow"}})
    part = [{"update": {"_id": "rain-en"}}, {"doc": {"group": "snow"}, "doc_as_upsert": True}]
    past = [{"update": {"_id": "alone"}}, {"doc": {"group": "snow", "shift": {"page": "snow"}}}]
    assert not client.bulk(index=index, body=[*part, *past])["errors"]
    pages = found_pages(client, index)
    assert [pages[name] for name in ("rain-de", "rain-en", "alone")] == [{"snow"}] * 3


@pytest.fixture
def old(client, pipelines):
    """An index of before stamps named pages, with the documents; gives its name."""
    body = index_body(fingerprint_of(SHIFT), {metadata.VECTORS: SHIFT.to_dict()})
    del body["mappings"]["properties"]["shift"]["properties"]["page"]
    # As an adopted one may have it: by what comes first, a page is a date.
    body["mappings"] |= {"date_detection": True, "dynamic_templates": []}
    client.indices.create(index=f"{pipelines}-v0001", body=body | {"aliases": {pipelines: {}}})
    stamp = {"vectors": MADE.vectors, "alpha": 0.0}
    for name, more in DOCUMENTS.items():
        source = {"embedding": raw_vector(), **more, "language": "en", "shift": stamp}
        client.index(index=pipelines, id=name, body=source, params={"refresh": "true"})
    return pipelines


def page_of_mapping(client, index):
    return mapped(client.indices.get_mapping(index=index)[index]["mappings"], USUAL.page)


def test_an_index_of_before_gets_pages_by_a_retune_and_back(client, old):
    retune(client, old, RetuneRequest(0.25))
    assert page_of_mapping(client, f"{old}-v0002") == KEYWORD
    assert found_pages(client, old) == only(PAGES)
    assert page_of_mapping(client, f"{old}-v0001") == {}
    stamp = {"vectors": MADE.vectors, "alpha": 0.0, "page": "2026-01-31"}
    source = {"embedding": raw_vector(), "language": "en", "shift": stamp}
    for name in ("2026-01-31", "other"):
        client.index(index=old, id=name, body=source | {"shift": stamp | {"page": name}})
    roll_back(client, old)
    assert page_of_mapping(client, f"{old}-v0001") == KEYWORD
    assert client.get(index=old, id="other")["_source"]["shift"]["page"] == "other"


def test_an_index_of_before_gets_pages_by_its_pipeline(client, old):
    index = f"{old}-v0001"
    install(client, index, SHIFT, USUAL, None)
    assert page_of_mapping(client, index) == KEYWORD
    for name in ("2026-01-31", "other"):
        client.index(index=old, id=name, body={"embedding": raw_vector(), "language": "de"})
    done = client.update_by_query(index=old, params={"refresh": "true"})
    assert done["failures"] == []
    assert found_pages(client, old) == only({**PAGES, "2026-01-31": "2026-01-31", "other": "other"})


def test_the_plugin_names_no_page_where_the_mapping_has_none(client, old):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")
    install_processor(client, f"{old}-v0001", SHIFT, USUAL, None)
    client_writes(client, old)
    found = [client.get(index=old, id=name)["_source"]["shift"] for name in DOCUMENTS]
    assert not any("page" in stamp for stamp in found)

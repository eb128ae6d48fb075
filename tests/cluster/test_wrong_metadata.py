"""Indices whose ``_meta`` somebody has changed: told of each, in the way of no other."""

import base64
import json
import re
from copy import deepcopy

import numpy as np
import pytest
from command_line import langshift, refusal
from console_process import heading, serving_here
from given_data import write_lines
from shifted_index import DIMENSION, Corpus, language_vectors, saved, with_directions

from langshift.plugin.cluster_check import check_cluster
from langshift.plugin.inventory import drop_all
from langshift.settings import Settings


def packed(*numbers):
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


MISSING = object()
NOTE = {"from": "x-v0001", "uuid": "u", "checkpoint": [1], "blocked": False, "token": "t", "asked": {}}
# Path of a key -> values that are wrong there.
WRONG = {
    "langshift": ["text", [], None, {}, {"odd": {"deep": [{"er": None}]}}],
    "langshift.encoder": [5, MISSING],
    "langshift.dimension": ["6", -6, 10**30, 6.5, DIMENSION + 1],
    "langshift.normalised": ["yes"],
    "langshift.pivot": [None],
    "langshift.alpha": ["NaN", 1e300, -1, None],
    "langshift.alphas": ["de=1", {"de": "much"}, {"de": 5}],
    "langshift.gamma": [{}, "Infinity"],
    "langshift.vectors": [5],
    "langshift.languages": ["de", [1]],
    "langshift.pooling": ["max", 3],
    "langshift.max_tokens": ["512", 0, 5.5, 10**30],
    "langshift_fields": ["embedding", None, {"language": "shift.language"}, {"stamp": "language"}],
    "langshift_fields.vector": ["", "nowhere", "language", 3],
    "langshift_fields.language": ["nowhere", "text_of_somebody", "_id", "_index.x"],
    "langshift_fields.parent": ["_index"],
    "langshift_fields.stamp": ["_routing"],
    "langshift_fields.texts": ["title", [""], ["text", "_id"]],
    "langshift_fields.weights": [{"title": "heavy"}],
    "langshift_fields.split": ["yes"],
    "langshift_vectors": ["AAAA", None],
    "langshift_vectors.hash": [1],
    "langshift_vectors.vectors": [MISSING, {"de": 5}, {"de": "no base64!"}],
    "langshift_vectors.vectors.de": [packed(1, 2, 3), packed(*[np.nan] * DIMENSION), ""],
    "langshift_vectors.common": ["é"],
    "langshift_vectors.directions": [packed(1, 2, 3), packed(*[np.nan] * DIMENSION), ""],
    "langshift_origin": ["load", {}],
    "langshift_origin.kind": ["magic"],
    "langshift_origin.at": [-5, MISSING],
    "langshift_origin.checkpoint": ["last"],
    "langshift_unfinished": ["yes", 5],
    "langshift_unfinished.retune": ["yes", {}, {**NOTE, "checkpoint": ["a"]}],
    "langshift_unfinished.rollback": [{**NOTE, "process": "mine"}],
    "langshift_unfinished.restore": [[], {"refresh_interval": {"very": "odd"}}],
    "langshift_unread": ["de", {"de": 1}],
}
FORMS = [(key, value) for key, values in WRONG.items() for value in values]
# A list leaves these to who asks for the one index: vectors may be large, and the mapping too.
UNLISTED = ("langshift_vectors", "langshift_unread")
UNLISTED_FORMS = [
    ("langshift.dimension", DIMENSION + 1),
    ("langshift_fields.vector", "nowhere"),
    ("langshift_fields.language", "nowhere"),
    ("langshift_fields.language", "text_of_somebody"),
]


def is_listed(key, value):
    return not key.startswith(UNLISTED) and (key, value) not in UNLISTED_FORMS


def with_value(meta, key, value):
    """A copy of a ``_meta`` with another value at a path; ``MISSING`` removes the key."""
    changed = deepcopy(meta)
    *path, last = key.split(".")
    place = changed
    for part in path:
        place = place.setdefault(part, {})
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return changed


def shown(value):
    return "missing" if value is MISSING else json.dumps(value)[:30]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def good(client, cluster_url, corpus, tmp_path_factory):
    """An index that is as it should be."""
    name = "between-wrong-ones"
    drop_all(client, name)
    known = saved(tmp_path_factory.mktemp("vectors"), with_directions(language_vectors(alpha=0.5)))
    load = ("ingest", corpus.path, "--index", name, "--encoder", "given", "--vectors", known)
    assert langshift(*load, url=cluster_url).returncode == 0
    yield name
    drop_all(client, name)


def made(client, good, name, meta):
    """An index without documents that is like the good one but for its ``_meta``."""
    (mappings,) = (one["mappings"] for one in client.indices.get_mapping(index=good).values())
    fields = {**mappings["properties"], "text_of_somebody": {"type": "text"}}
    (told,) = (one["settings"]["index"] for one in client.indices.get_settings(index=good).values())
    settings = {"knn": True, "number_of_shards": 1, "number_of_replicas": 0, "analysis": told["analysis"]}
    body = {"mappings": {**mappings, "properties": fields, "_meta": meta}, "settings": settings, "aliases": {name: {}}}
    client.indices.create(index=f"{name}-v0001", body=body)


@pytest.fixture(scope="module")
def meta(client, good):
    (mappings,) = (one["mappings"] for one in client.indices.get_mapping(index=good).values())
    return mappings["_meta"]


@pytest.fixture(scope="module")
def wrong(client, good, meta):
    """Names of indices, each with one of the wrong forms, all at once."""
    client.indices.delete(index="wrong-*-v0001", ignore_unavailable=True)
    names = {f"wrong-{number:03}": form for number, form in enumerate(FORMS)}
    for name, form in names.items():
        made(client, good, name, with_value(meta, *form))
    client.indices.close(index="wrong-000-v0001")
    yield names
    client.indices.delete(index="wrong-*-v0001", ignore_unavailable=True)


def test_a_list_has_a_row_for_each_and_all_others_as_before(wrong, good, cluster_url):
    done = langshift("index", "list", "--json", url=cluster_url)
    assert done.returncode == 0, done
    rows = {row["name"]: row for row in json.loads(done.stdout)["versions"]}
    assert set(wrong) <= set(rows)
    assert (rows[good]["documents"], rows[good]["encoder"], rows[good]["error"]) == (24, "given", None)
    for name, (key, value) in wrong.items():
        error = rows[name]["error"]
        assert (rows[name]["version"], rows[name]["state"]) == (f"{name}-v0001", "live")
        assert (error is not None) is is_listed(key, value), (key, value)
        assert error is None or error.startswith(f"_meta.{key.split('.')[0]}"), (key, value, error)
        assert rows[name].keys() == rows[good].keys()
    # The first is closed, the others are open and empty.
    assert (rows["wrong-000"]["documents"], rows["wrong-001"]["documents"]) == (None, 0)
    told = langshift("index", "list", url=cluster_url, COLUMNS="300").stdout.splitlines()
    assert sum("cannot be read: _meta.langshift" in line for line in told) >= sum(is_listed(*form) for form in FORMS)
    (row,) = (line.split() for line in told if line.startswith(good))
    assert row[1:4] == ["v0001", "live", "24"]


def test_doctor_tells_of_each_and_goes_on(wrong, cluster_url):
    found = [
        one
        for one in check_cluster(Settings.from_env({"OPENSEARCH_URL": cluster_url}))
        if one.value == "cannot be read"
    ]
    assert {one.name for one in found} >= {f"index {name}" for name, form in wrong.items() if is_listed(*form)}
    assert all(one.status == "warning" for one in found)


@pytest.mark.usefixtures("wrong")
def test_the_console_lists_them_and_shows_the_others(good, cluster_url, tmp_path):
    with serving_here(url=cluster_url, home=tmp_path) as console, console.client() as browser:
        page = browser.get("/indices")
        assert page.status_code == 200
        rows = re.findall(r'href="/indices/(wrong-\d+)".*?</tr>', page.text, re.DOTALL)
        assert len(rows) == len(FORMS)
        assert page.text.count("cannot be read: _meta.langshift") >= sum(is_listed(*form) for form in FORMS)
        assert browser.get(f"/indices/{good}").status_code == 200
        assert browser.get("/search").status_code == 200
        for number in range(0, len(FORMS), 9):
            answer = browser.get(f"/indices/wrong-{number:03}")
            assert answer.status_code in (404, 500, 502), (FORMS[number], answer.status_code)
            assert heading(answer)
            assert "_meta.langshift" in answer.text


@pytest.mark.parametrize("place", range(len(FORMS)), ids=[f"{key} {shown(value)}" for key, value in FORMS])
@pytest.mark.usefixtures("wrong")
def test_who_asks_for_it_is_told_the_key(cluster_url, place):
    name = f"wrong-{place:03}"
    key = FORMS[place][0].split(".")[0]
    said = refusal(langshift("index", "describe", name, url=cluster_url))
    assert said.startswith(f"Index {name}-v0001 cannot be read: _meta.{key}"), said
    assert said.endswith(
        f"Correct it with PUT /{name}-v0001/_mapping, or remove the index with `langshift index drop {name}`."
    )
    assert len(said) < 700


@pytest.mark.parametrize("form", FORMS[::8], ids=[f"{key} {shown(value)}" for key, value in FORMS[::8]])
def test_it_can_be_removed(client, good, meta, cluster_url, index_name, form):
    made(client, good, index_name, with_value(meta, *form))
    assert langshift("index", "drop", index_name, "--yes", url=cluster_url).returncode == 0
    assert client.indices.get(index=f"{index_name}-v*") == {}


@pytest.mark.parametrize("form", [("langshift.alpha", "NaN"), ("langshift_vectors.vectors.de", packed(1))])
def test_every_command_on_it_ends_with_the_same_sentence(client, good, meta, corpus, cluster_url, form, index_name):
    made(client, good, index_name, with_value(meta, *form))
    more = write_lines(corpus.path.with_name("more.jsonl"), [corpus.line("de-0")])
    append = ("--encoder", "given", "--if-exists", "append")
    told = {
        refusal(langshift(*command, url=cluster_url))
        for command in (
            ("index", "describe", index_name),
            ("index", "describe", f"{index_name}-v0001"),
            ("search", index_name, "words"),
            ("retune", index_name, "--alpha", "0.1"),
            ("reencode", index_name, "--encoder", "e5-small"),
            ("rollback", index_name),
            ("ingest", more, "--index", index_name, *append),
            ("pipeline", "install", index_name),
            ("pipeline", "verify", index_name),
            ("anchors", "calibrate", index_name),
        )
    }
    assert len(told) == 1, told
    (sentence,) = told
    assert sentence.startswith(f"Index {index_name}-v0001 cannot be read: _meta.{form[0]} is wrong (")
    assert client.count(index=index_name)["count"] == 0


def test_a_wrong_version_is_not_in_the_way_of_those_beside_it(client, meta, cluster_url, corpus, index_name):
    load = ("ingest", corpus.path, "--index", index_name, "--encoder", "given", "--alpha", "0")
    assert langshift(*load, url=cluster_url).returncode == 0
    client.indices.create(index=f"{index_name}-v0002", body={"mappings": {"_meta": {**meta, "langshift": 5}}})
    for command in (("index", "describe", index_name), ("pipeline", "install", index_name), ("index", "list")):
        assert langshift(*command, url=cluster_url).returncode == 0
    done = langshift(*load, "--if-exists", "new-version", url=cluster_url)
    assert done.returncode == 0, done
    assert list(client.indices.get_alias(name=index_name)) == [f"{index_name}-v0003"]
    assert langshift("rollback", index_name, url=cluster_url).returncode == 0


@pytest.mark.parametrize(
    "anchors", ["x", [], {"spread": "NaN"}, {"spread": -1}, {"spread": 0.1, "measured_with": {"documents": "many"}}]
)
def test_an_index_whose_calibration_is_wrong_serves_as_if_it_had_none(
    client, good, meta, cluster_url, index_name, anchors
):
    made(client, good, index_name, {**meta, "langshift_anchors": anchors})
    done = langshift("index", "describe", index_name, url=cluster_url)
    assert done.returncode == 0, done
    rows = json.loads(langshift("index", "list", "--json", url=cluster_url).stdout)["versions"]
    (row,) = (row for row in rows if row["name"] == index_name)
    assert row["error"] is None


def test_one_that_does_not_answer_is_told_too(client, good, meta, cluster_url, index_name):
    made(client, good, index_name, {**meta, "langshift": "x"})
    # No node has this name, so the shard that is made anew has no place.
    client.indices.delete(index=f"{index_name}-v0001")
    body = {"index.routing.allocation.require._name": "nobody", "number_of_shards": 1, "number_of_replicas": 0}
    mappings = {"mappings": {"_meta": {**meta, "langshift": "x"}}, "settings": body, "aliases": {index_name: {}}}
    client.indices.create(index=f"{index_name}-v0001", body=mappings, params={"wait_for_active_shards": "0"})
    rows = json.loads(langshift("index", "list", "--json", url=cluster_url).stdout)["versions"]
    (row,) = (row for row in rows if row["name"] == index_name)
    assert (row["documents"], row["error"]) == (None, "_meta.langshift is wrong (expected an object, got text)")
    assert "cannot be read" in refusal(langshift("search", index_name, "words", url=cluster_url))
    assert langshift("index", "drop", index_name, "--yes", url=cluster_url).returncode == 0

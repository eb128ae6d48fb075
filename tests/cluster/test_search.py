"""Searching a real index."""

import json
import re
import uuid
from types import SimpleNamespace

import pytest
from command_line import langshift
from searched_index import WITHOUT_WEIGHTS

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.errors import ClusterError, FingerprintError, UsageError
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin import inventory, metadata
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

TEXTS = {
    "tides-en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "tides-de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht.",
    "tides-th": "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ",
    "bread-en": "Yeast makes the dough rise before it is baked in a hot oven.",
    "bread-de": "Hefe lässt den Teig aufgehen, bevor er im heißen Ofen gebacken wird.",
    "bread-th": "ยีสต์ทำให้แป้งขึ้นฟูก่อนนำไปอบในเตาร้อน",
}


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = f"langshift-test-search-{uuid.uuid4().hex[:8]}"
    path = tmp_path_factory.mktemp("search") / "corpus.jsonl"
    lines = [
        {"_id": i, "title": f"[bold]{i}" if i == "tides-en" else "", "text": t, "group": i[:5], "year": 1990 + n}
        for n, (i, t) in enumerate(TEXTS.items())
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    load(client, str(path), name, build_pipeline(open_encoder("use-m"), open_detector(), None, None))
    yield name
    inventory.drop_all(client, name)


@pytest.fixture(scope="module")
def searcher(client, name):
    return Searcher(client, name)


def test_dense_finds_the_meaning_in_every_language(searcher):
    hits = searcher.search("Why does the water level change?", size=3).hits
    assert {hit.id for hit in hits} == {"tides-en", "tides-de", "tides-th"}
    assert {hit.language for hit in hits} == {"en", "de", "th"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.text == TEXTS[hit.id] and hit.group == "tides" for hit in hits)


def test_lexical_takes_the_language_given_or_detected(searcher):
    assert [hit.id for hit in searcher.search("zweimal gestiegen", SearchSettings("lexical"), language="de").hits] == [
        "tides-de"
    ]
    assert searcher.language("Warum steigt das Meer?").language == "de"
    assert [hit.id for hit in searcher.search("Warum steigen die Meere?", SearchSettings("lexical")).hits] == [
        "tides-de"
    ]
    assert [hit.id for hit in searcher.search("ดวงจันทร์", SearchSettings("lexical")).hits] == ["tides-th"]


@pytest.mark.parametrize("mode", WITHOUT_WEIGHTS)
def test_filters_hold_in_every_mode(searcher, mode):
    hits = searcher.search(
        "Moon Mond ดวงจันทร์", SearchSettings(mode), filters={"language": ["de", "th"], "group": ["tides"]}
    ).hits
    assert {hit.id for hit in hits} == {"tides-de", "tides-th"}
    assert searcher.search("Moon", SearchSettings(mode), filters={"year": ["1950"]}).hits == ()
    assert {
        hit.language for hit in searcher.search("Moon", SearchSettings(mode), filters={"language": ["DE-at"]}).hits
    } <= {"de"}


def test_anchored_finds_the_same_content_in_every_language_by_words_of_one(searcher):
    result = searcher.search("Mond zweimal am Tag", SearchSettings("anchored"), language="de", size=3)
    assert {hit.id for hit in result.hits} == {"tides-en", "tides-de", "tides-th"}
    first = result.anchors[0]
    assert (first.id, first.evidence["own_language"]) == ("tides-de", 1.0)
    assert result.bonus > 0
    assert [result.bonus_of(hit) > 0 for hit in result.hits] == [hit.language == "de" for hit in result.hits]
    assert [request.path.rsplit("/", 1)[1] for request in result.requests] == ["_msearch", "_search"]


def test_a_calibration_that_cannot_be_reckoned_with_is_refused(client, name):
    kept = {"spread": 0.0, "strength": 0.5}
    metadata.change(client, f"{name}-v0001", {metadata.ANCHORS: kept})
    try:
        with pytest.raises(ClusterError) as refused:
            Searcher(client, name).search("Mond", SearchSettings("anchored"), language="de")
    finally:
        metadata.change(client, f"{name}-v0001", {metadata.ANCHORS: None})
    assert str(refused.value) == (
        f"The calibration in the mapping of {name}-v0001 (_meta.langshift_anchors) cannot be read: run `langshift "
        f"anchors calibrate {name}` again."
    )


def test_what_cannot_be_searched_is_refused(client, name, searcher):
    with pytest.raises(UsageError, match=r"^The query is empty: give the words to search for\.$"):
        searcher.search("  ")
    with pytest.raises(UsageError, match=rf"^Index {name} has no field 'colour': use language"):
        searcher.search("Moon", filters={"colour": ["red"]})
    with pytest.raises(
        UsageError, match=rf"^Index {name} cannot filter by its field 'text.en', which is of type text and holds words"
    ):
        searcher.search("Moon", filters={"text.en": ["Moon"]})
    with pytest.raises(UsageError, match=r"^The filter year=soon does not fit its field: .*soon"):
        searcher.search("Moon", filters={"year": ["soon"]})
    with pytest.raises(UsageError, match=r"^The query is not UTF-8 text\.$"):
        searcher.search("Moon \udcff")
    for filters in ({"year": ["\udcff"]}, {"\udcff": ["x"]}):
        with pytest.raises(UsageError, match=r"^A filter is not UTF-8 text\.$"):
            searcher.search("Moon", filters=filters)
    for field in ("*", "a,b", " ", "..", "year*"):
        with pytest.raises(UsageError, match=rf"^Index {name} has no field {re.escape(repr(field))}: use"):
            searcher.search("Moon", filters={field: ["x"]})
    with pytest.raises(UsageError, match=r"^'tlhx' is not a valid language: use a BCP 47 tag such as th or zh-TW\.$"):
        searcher.search("Moon", SearchSettings("lexical"), language="tlhx")
    with pytest.raises(ClusterError, match=r"^There is no index nothing-here: create it with `langshift ingest CORPUS"):
        Searcher(client, "nothing-here")


def test_the_command_filters_sorts_counts_and_turns_pages(cluster_env, name):
    def search(*options):
        done = langshift("search", name, "Moon", "--mode", "dense", "--size", "2", *options, url=cluster_env)
        assert done.returncode == 0, done.stderr
        return done

    options = ("--filter", "year>=1991", "--filter", "language!=th", "--sort", "year:desc", "--facet", "language")
    first = json.loads(search(*options, "--from", "0", "--json", "--show-request").stdout)
    assert [hit["id"] for hit in first["hits"]] == ["bread-de", "bread-en"]
    assert (first["from"], first["depth"], first["sorted"], first["sorted_count"]) == (0, 3, "found", 3)
    languages = [{"value": "de", "count": 2}, {"value": "en", "count": 1}]
    assert first["facets"] == {"language": {"values": languages, "other": 0}}
    assert [request["path"].partition("?")[0] for request in first["requests"]] == [
        f"/{name}-v0001/_search/point_in_time",
        *["/_search"] * 5,
    ]
    second = search(*options, "--from", "2", "--point-in-time", first["point_in_time"])
    table, facets = second.stdout.split("\n\n")
    assert re.findall(r"^ +(\d+) .* (\S+)$", table, re.MULTILINE) == [("3", "tides-de")]
    assert table.endswith("Sorted: the 3 hits found.")
    assert facets.split() == ["language", "documents", "de", "2", "en", "1"]
    shown = search("--from", "0", "--show-request")
    assert shown.stdout.startswith(f'# curl -X POST "$OPENSEARCH_URL/{name}-v0001/_search/point_in_time?keep_alive=5m')
    assert shown.stderr.startswith("2 of 6 hits; for the next: --from 2 --point-in-time ")


def test_an_index_of_something_else_is_refused(client, index_name):
    client.indices.create(index=f"{index_name}-other", body={"aliases": {index_name: {}}})
    with pytest.raises(ClusterError) as refused:
        Searcher(client, index_name)
    assert str(refused.value) == (
        f"Index {index_name}-other has no langshift fingerprint: it was not created by langshift."
    )
    with pytest.raises(ClusterError, match=r"-other is an index, not an alias for versions: give the alias"):
        Searcher(client, f"{index_name}-other")


def test_another_encoder_than_the_indexs_is_refused(client, name, monkeypatch):
    real = open_encoder("use-m")
    fields = ("id", "dimension", "normalised", "query_prefix", "document_prefix")
    newer = SimpleNamespace(**{field: getattr(real, field) for field in fields}, revision="newer")
    monkeypatch.setattr("langshift.retrieval.searcher.open_encoder", lambda _, **__: newer)
    with pytest.raises(FingerprintError) as refused:
        Searcher(client, name)
    assert str(refused.value) == (
        f"Index {name} was built with revision {real.revision}, not newer: "
        "search with the same encoder, or index the corpus again."
    )


def test_the_table_shows_language_score_and_title_as_they_are(name, cluster_env):
    done = langshift("search", name, "Moon", "--size", "6", "--filter", "group=tides", url=cluster_env)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["rank", "language", "score", "title", "text", "_id"]
    assert [row.split()[0] for row in rows if row[:4].strip()] == ["1", "2", "3"]
    (english,) = (row for row in rows if " en " in row)
    assert "[bold]tides-en" in english
    assert any(TEXTS["tides-th"][:20] in row for row in rows)


def test_json_is_one_document(name, cluster_env):
    done = langshift("search", name, "Mond", "--mode", "lexical", "--language", "de", "--json", url=cluster_env)
    answer = json.loads(done.stdout)
    assert {key: answer[key] for key in ("index", "mode", "language")} == {
        "index": f"{name}-v0001", "mode": "lexical", "language": "de"
    }  # fmt: skip
    assert [set(hit) for hit in answer["hits"]] == [
        {
            "id", "score", "language", "title", "text", "source", "snippet", "passage", "group", "legs", "others",
            "shift", "passages",
        }
    ]  # fmt: skip
    assert done.stderr == ""


def test_nothing_found_is_said(name, cluster_env):
    done = langshift("search", name, "xyzzy", "--mode", "lexical", "--language", "en", url=cluster_env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"Nothing in {name} matches.\n")

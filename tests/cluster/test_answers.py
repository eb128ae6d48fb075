"""Answers are whole: the documents' own fields, and a snippet of what matched, in every mode and kind of index."""

import asyncio
import json

import pytest
from chunked_index import paragraph_index
from command_line import langshift as command
from given_data import run
from searched import a_name, drop, make_index
from searched_index import WITHOUT_WEIGHTS
from small_old_index import ADOPTED, old_index

import langshift
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

FILLER = "Fishermen wait for the water to come back. They mend their nets on the sand of the bay. " * 3
LINES = [
    {
        "_id": "tides-en", "title": "Tides", "language": "en", "group": "tides", "year": 1990, "url": "https://a.example/1",
        "text": f"{FILLER}The sea rises and falls twice a day because the Moons pull at it. {FILLER}",
        "meta": {"author": "x", "tags": ["a", "b"]}, "flags": [],
    },
    {
        "_id": "tides-de", "title": "Gezeiten", "language": "de", "group": "tides", "year": 1991, "nothing": None,
        "text": f"{'Die Fischer flicken ihre Netze am Strand. ' * 4}Das Wasser steigt und fällt zweimal am Tag.",
    },
    {"_id": "bread-en", "text": "Yeast makes the dough rise before it is baked.", "language": "en", "group": "bread"},
]  # fmt: skip
OWN = {line["_id"]: {name: value for name, value in line.items() if name != "_id"} for line in LINES}
QUESTION = "why do moons raise the level of the water?"


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = a_name()
    make_index(client, tmp_path_factory.mktemp("answers") / "corpus.jsonl", name, lines=LINES)
    yield name
    drop(client, name)


@pytest.fixture(scope="module")
def searcher(client, name):
    return Searcher(client, name)


@pytest.mark.parametrize("mode", WITHOUT_WEIGHTS)
def test_every_field_of_a_document_comes_back_in_every_mode(searcher, mode):
    for more in ({}, {"one_per_group": True}, {"rerank": "features"}):
        found = searcher.search(QUESTION, SearchSettings(mode, **more), language="en", snippets=True)
        members = [one for hit in found.hits for one in (hit, *hit.others)]
        assert {one.id: one.source for one in members} == {one.id: OWN[one.id] for one in members}
        assert members
        (first,) = (one for one in members if one.id == "tides-en")
        (chosen,) = (
            one
            for hit in searcher.search(
                QUESTION, SearchSettings(mode, **more), language="en", fields=["meta.tags", "title"]
            ).hits
            for one in (hit, *hit.others)
            if one.id == "tides-en"
        )
        assert chosen.source == {"title": "Tides", "meta": {"tags": ["a", "b"]}}
        assert (chosen.text, chosen.title) == (first.text, first.title)


def test_a_snippet_shows_where_words_of_the_query_stand_else_the_nearest_sentence(searcher):
    found = {hit.id: hit for hit in searcher.search(QUESTION, language="en", snippets=True).hits}
    english, german = found["tides-en"].snippet, found["tides-de"].snippet
    assert english.by == "words"
    # By the analyzer of the language.
    assert "Moons" in [english.text[begin:end] for begin, end in english.marks]
    assert all(hit.snippet.text in hit.text for hit in found.values())
    assert (german.by, german.marks) == ("meaning", ())
    assert "Das Wasser steigt" in german.text
    assert all(hit.snippet is None for hit in searcher.search(QUESTION).hits)


def test_a_page_has_both_of_the_point_in_time(client, searcher, name):
    how = {"language": "en", "snippets": True, "sort": "year:desc"}
    first = searcher.search(QUESTION, from_=0, size=1, **how)
    stored = client.get(index=f"{name}-v0001", id="tides-en")["_source"]
    client.delete(index=f"{name}-v0001", id="tides-en", params={"refresh": "true"})
    try:
        second = searcher.search(QUESTION, from_=1, size=1, point_in_time=first.point_in_time, **how)
    finally:
        client.index(index=f"{name}-v0001", id="tides-en", body=stored, params={"refresh": "true"})
    assert [hit.id for page in (first, second) for hit in page.hits] == ["tides-de", "tides-en"]
    assert second.hits[0].source == OWN["tides-en"]
    assert second.hits[0].snippet.by == "words"


def test_the_command_shows_both(name, cluster_env):
    done = command("search", name, QUESTION, "--language", "en", "--fields", "year, titel", "--json", url=cluster_env)
    answer = json.loads(done.stdout)
    assert {hit["id"]: hit["source"] for hit in answer["hits"]} == {
        "tides-en": {"year": 1990}, "tides-de": {"year": 1991}, "bread-en": {}
    }  # fmt: skip
    assert answer["notes"] == ["No hit has a field 'titel'."]
    (english,) = (hit["snippet"] for hit in answer["hits"] if hit["id"] == "tides-en")
    assert (english["by"], set(english)) == ("words", {"text", "marks", "by"})
    done = command("search", name, QUESTION, "--language", "en", url=cluster_env, COLUMNS="200")
    (row,) = (line for line in done.stdout.splitlines() if "tides-en" in line)
    assert english["text"][:30] in row


def test_all_ways_of_searching_bring_the_same_snippets(name, cluster_env, monkeypatch):
    monkeypatch.setenv("OPENSEARCH_URL", cluster_env)
    once = langshift.search(name, QUESTION, language="en", snippets=True)
    awaited = asyncio.run(langshift.search_async(name, QUESTION, language="en", snippets=True))
    assert [hit.snippet for hit in once.hits] == [hit.snippet for hit in awaited.hits]
    assert None not in [hit.snippet for hit in once.hits]


def test_in_an_index_of_chunks_both_are_of_the_best_passage(client, cluster_url, tmp_path):
    with paragraph_index(client, cluster_url, tmp_path) as name:
        found = Searcher(client, name).search("why does bread rise?", language="en", snippets=True)
        harbour = next(hit for hit in found.hits if hit.id == "harbour")
        assert harbour.source == {
            "title": "Harbour", "text": harbour.passage.text, "language": "en", "group": "all"
        }  # fmt: skip
        assert "Bread rises" in harbour.snippet.text
        assert harbour.snippet.by == "words"


def test_in_an_adopted_index_documents_are_as_they_were(client, cluster_url, index_name, monkeypatch):
    monkeypatch.setenv("OPENSEARCH_URL", cluster_url)
    properties = {"head": {"type": "text"}, "body": {"type": "text"}, "language": {"type": "keyword"}}
    documents = {
        "1": {"head": "Tides", "body": ["The Moon pulls at the sea.", "And the tides rise."], "language": "Fortran"},
        "2": {
            "head": "Brot",
            "body": "Hefe lässt den Teig aufgehen, bevor er gebacken wird.",
            "n": {"a": [1, 2], "b": {"c": None}},
        },
    }
    with old_index(client, index_name, properties, documents):
        fields = ("--title-field", "head", "--text-field", "body")
        done = run("adopt", index_name, "--name", f"{index_name}-new", *fields, *ADOPTED)
        assert done.exit_code == 0, (done.output, done.exception)
        searcher = Searcher(client, f"{index_name}-new")
        for words, language, marked in (("tide moon", "en", "Moon"), ("gebackener Teig", "de", "Teig")):
            (hit,) = searcher.search(words, SearchSettings("lexical"), language=language, snippets=True).hits
            assert hit.source == documents[hit.id]
            assert marked in [hit.snippet.text[begin:end] for begin, end in hit.snippet.marks]

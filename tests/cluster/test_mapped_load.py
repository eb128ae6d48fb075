"""A corpus with fields of its own: loaded, added to, searched, retuned, taken back, and written to by others."""

import json

import numpy as np
import pytest
from command_line import langshift

from langshift.debias.encoders import open_encoder
from langshift.errors import LangshiftError
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.plugin.inventory import drop_all
from langshift.settings import Settings

FIELDS = (
    *("--id-field", "id", "--title-field", "headline^3", "--text-field", "content.body"),
    *("--text-field", "summary^0.5", "--language-field", "locale", "--group-field", "translation_of"),
)
AS_OPTIONS = (
    "--id-field id --title-field headline^3 --text-field content.body --text-field summary^0.5 "
    "--language-field locale --group-field translation_of"
)
TIDES_EN = {
    "id": 1,
    "headline": "Tides",
    "content": {"body": "The sea rises and falls twice a day.", "author": "Ines"},
    "summary": "The Moon pulls at the water.",
    "locale": "en_GB",
    "translation_of": 7,
    "price": 2.5,
}
TIDES_DE = {
    "id": 2,
    "headline": "Gezeiten",
    "content": {"body": "Das Meer steigt und fällt zweimal am Tag.", "author": "Jan"},
    "locale": "Deutsch (Deutschland)",
    "translation_of": 7,
}
BREAD_EN = {"id": "b", "headline": "", "content": {"body": "Yeast lifts the dough; tides do not."}, "locale": "en"}
BREAD_DE = {"id": "c", "headline": "Brot", "content": {"body": "Hefe hebt den Teig."}, "locale": "", "language": "de"}
EMPTY = {"id": "e", "headline": "", "content": {"author": "nobody"}, "locale": "en"}


@pytest.fixture(scope="module")
def run(cluster_url, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mapped")

    def command(*arguments, documents=None):
        path = folder / "export.jsonl"
        if documents is not None:
            path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in documents), encoding="utf-8")
            arguments = (arguments[0], path, *arguments[1:])
        return langshift(*arguments, url=cluster_url)

    return command


@pytest.fixture(scope="module")
def loaded(client, run):
    name = "langshift-test-mapped"
    drop_all(client, name)
    done = run("ingest", "--index", name, *FIELDS, documents=[TIDES_EN, TIDES_DE, BREAD_EN, BREAD_DE, EMPTY])
    assert done.returncode == 3, done.stderr
    yield name, done
    drop_all(client, name)


def stored(client, name, identifier):
    return client.get(index=name, id=identifier)["_source"]


def hits(run, name, words, *options):
    done = run("search", name, words, "--mode", "lexical", "--json", *options)
    assert done.returncode == 0, done.stderr
    return [(hit["id"], hit["title"], hit["text"]) for hit in json.loads(done.stdout)["hits"]]


def test_documents_keep_their_fields_and_only_texts_are_split_by_language(client, loaded):
    name, _ = loaded
    source = stored(client, name, "1")
    assert (source.pop("language"), source.pop("language_confidence")) == ("en", 1.0)
    assert source.pop("shift")["tag"] == "en-GB"
    body = TIDES_EN["content"]["body"]
    expected = open_encoder("use-m").encode_documents([f"Tides {body} The Moon pulls at the water."])[0]
    assert np.abs(np.array(source.pop("embedding")) - expected).max() < 1e-6
    assert source == {
        **TIDES_EN,
        "headline": {"en": "Tides"},
        "content": {"body": {"en": body}, "author": "Ines"},
        "summary": {"en": "The Moon pulls at the water."},
    }
    german, bread = stored(client, name, "2"), stored(client, name, "b")
    assert (german["language"], german["locale"]) == ("de", "Deutsch (Deutschland)")
    assert german["content"] == {"body": {"de": TIDES_DE["content"]["body"]}, "author": "Jan"}
    assert "headline" not in bread
    # The field that is declared says nothing, and the usual one does.
    assert (stored(client, name, "c")["language"], stored(client, name, "c")["language_confidence"]) == ("de", 1.0)


def test_the_load_tells_what_named_no_language_and_which_document_has_no_text(run, loaded):
    name, done = loaded
    assert (
        "1 document with a language that is not a language tag, such as 'Deutsch (Deutschland)' in locale: detected, "
        "where the field language names none." in done.stderr.replace("\n", " ")
    )
    (group,) = json.loads(run("dead-letters", "list", "--index", name, "--json").stdout)["groups"]
    assert group["reason"] == "has no text in headline, content.body or summary."


def test_word_search_weights_the_fields_and_shows_title_and_texts(run, loaded):
    name, _ = loaded
    body = TIDES_EN["content"]["body"]
    assert hits(run, name, "tides", "--language", "en") == [
        ("1", "Tides", f"{body} The Moon pulls at the water."),
        ("b", "", BREAD_EN["content"]["body"]),
    ]
    shown = run("search", name, "tides", "--mode", "lexical", "--language", "en", "--show-request").stdout
    assert '"headline.en^3"' in shown
    assert '"content.body.en"' in shown
    assert '"summary.en^0.5"' in shown


def test_filters_and_groups_go_by_the_field_that_was_named(run, loaded):
    name, _ = loaded
    for field in ("group", "translation_of"):
        assert {one[0] for one in hits(run, name, "tides Gezeiten", "--filter", f"{field}=7")} == {"1", "2"}
    assert [one[0] for one in hits(run, name, "Gezeiten", "--filter", "locale=en_GB")] == []
    found = json.loads(run("search", name, "sea tides Meer Gezeiten", "--one-per-group", "--json").stdout)["hits"]
    assert {frozenset([hit["id"], *(one["id"] for one in hit["others"])]) for hit in found} == {
        frozenset("12"),
        frozenset("b"),
        frozenset("c"),
    }
    assert {hit["group"] for hit in found} == {"7", None}


def test_a_description_names_the_fields(run, loaded):
    name, _ = loaded
    assert f"Documents were loaded with {AS_OPTIONS}." in run("index", "describe", name).stdout.replace("\n", " ")
    fields = json.loads(run("index", "describe", name, "--json").stdout)["fields"]
    assert fields == {
        "vector": "embedding",
        "language": "language",
        "confidence": "language_confidence",
        "stamp": "shift",
        "texts": ["headline", "content.body", "summary"],
        "told": "locale",
        "title": "headline",
        "split": True,
        "weights": {"headline": 3.0, "summary": 0.5},
        "group": "translation_of",
        "group_keyword": None,
        "id": "id",
        "analyzed": [],
        "parent": None,
        "parent_keyword": None,
        "chunking": None,
    }


def test_other_options_are_refused_for_documents_that_are_added(run, loaded):
    name, _ = loaded
    done = run("ingest", "--index", name, "--if-exists", "append", "--text-field", "summary", documents=[TIDES_EN])
    assert done.returncode == 2
    assert (
        done.stderr.replace("\n", " ")
        .strip()
        .endswith(
            f"Index {name} ({name}-v0001) was loaded with {AS_OPTIONS}, but this load was given --title-field title "
            "--text-field summary: leave the field options out to add to it, or create a new version of it with "
            "--if-exists new-version."
        )
    )


def test_the_whole_way_keeps_the_mapping(client, run, index_name):
    name = index_name
    assert run("ingest", "--index", name, *FIELDS, documents=[TIDES_EN, BREAD_EN, EMPTY]).returncode == 3

    # Added to by the index's own mapping, with a delete by its own id.
    gone = {"_op": "delete", "id": "b"}
    done = run("ingest", "--index", name, "--if-exists", "append", documents=[TIDES_DE, BREAD_DE, gone])
    assert done.returncode == 0, done.stderr
    assert "stored but" not in done.stderr
    client.indices.refresh(index=name)
    assert client.count(index=name)["count"] == 3
    assert stored(client, name, "2")["headline"] == {"de": "Gezeiten"}

    # A dead letter is read by the same mapping.
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
    letter = json.loads(place.dead_letters.read_text())
    letter["document"] = json.dumps({**EMPTY, "headline": "Empty no more"})
    place.dead_letters.write_text(json.dumps(letter) + "\n")
    assert run("ingest", "--dead-letters", "--index", name).returncode == 0
    assert stored(client, name, "e")["headline"] == {"en": "Empty no more"}

    # Other clients write the same documents through the pipeline.
    assert run("pipeline", "install", name).returncode == 0
    vector = [float(number) for number in open_encoder("use-m").encode_documents(["Mond"])[0]]
    theirs = {"id": "p", "headline": "Mond", "content": {"body": ""}, "locale": "??", "language": "de_AT"}
    client.index(index=name, id="p", body={**theirs, "embedding": vector}, params={"refresh": "true"})
    written = stored(client, name, "p")
    assert (written["language"], written["locale"], written["headline"]) == ("de", "??", {"de": "Mond"})
    assert written["content"] == {}
    assert written["shift"]["tag"] == "de-AT"
    verified = run("pipeline", "verify", name)
    assert (verified.returncode, verified.stderr) == (0, "")

    # A retune and the way back.
    before = {one: stored(client, name, one) for one in ("1", "2", "e", "p")}
    assert run("retune", name, "--alpha", 0.3).returncode == 0
    assert stored(client, name, "2")["shift"]["alpha"] == 0.3
    assert stored(client, name, "2")["content"] == before["2"]["content"]
    assert run("rollback", name).returncode == 0
    assert {one: stored(client, name, one) for one in before} == before

    # A new version, without a word on fields.
    done = run("ingest", "--index", name, "--if-exists", "new-version", documents=[TIDES_EN])
    version = client.indices.get_alias(name=name).popitem()[0]
    assert f"The new version is loaded as {name}-v0001 was, with {AS_OPTIONS}." in done.stderr.replace("\n", " ")
    assert client.indices.get_mapping(index=version)[version]["mappings"]["_meta"]["langshift_fields"]["id"] == "id"
    assert stored(client, name, "1")["headline"] == {"en": "Tides"}


def test_without_options_a_note_names_what_is_neither_encoded_nor_searched(run, index_name):
    document = {"id": 1, "title": "Tides", "body": "The sea rises.", "locale": "en"}
    done = run("ingest", "--index", index_name, documents=[document])
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == (
        "The field body is stored but neither encoded nor searched by words, and the fields id and locale are stored "
        "but not used: give --id-field id --text-field body --language-field locale if they are the id, the text and "
        "the language."
    )
    assert not json.loads(run("index", "describe", index_name, "--json").stdout)["fields"]["split"]
    again = run("ingest", "--index", index_name, "--if-exists", "append", *FIELDS[:2], documents=[document])
    assert again.stderr.splitlines()[-1] == (
        f"Error: Index {index_name} ({index_name}-v0001) was loaded with no field options, but this load was given "
        "--id-field id --title-field title --text-field text: leave the field options out to add to it, or create a "
        "new version of it with --if-exists new-version."
    )


def test_a_load_that_was_cut_off_is_resumed_with_the_same_fields_only(client, run, index_name, monkeypatch):
    def cut_off(*_):
        raise LangshiftError("Cut off.")

    arguments, documents = ("ingest", "--index", index_name), [TIDES_EN, TIDES_DE]
    with monkeypatch.context() as patch:
        patch.setattr("langshift.ingest.load.check", cut_off)
        assert run(*arguments, *FIELDS, documents=documents).returncode == 1
    other = run(*arguments, "--resume", *FIELDS[:4], "--text-field", "content.body", documents=documents)
    assert (
        f"cannot be resumed, because the field options ({AS_OPTIONS}, not --id-field id --title-field headline^3 "
        "--text-field content.body) changed: run it as it was begun, or remove "
    ) in other.stderr
    done = run(*arguments, "--resume", *FIELDS, documents=documents)
    assert done.returncode == 0, done.stderr
    assert stored(client, index_name, "2")["headline"] == {"de": "Gezeiten"}
    meta = client.indices.get_mapping(index=f"{index_name}-v0001")[f"{index_name}-v0001"]["mappings"]["_meta"]
    assert meta["langshift_fields"]["texts"] == ["headline", "content.body", "summary"]

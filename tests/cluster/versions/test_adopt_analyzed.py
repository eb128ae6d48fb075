"""An index that is adopted with analyzers is searched by word as well as one that langshift has made itself."""

from __future__ import annotations

import json
import uuid
from types import SimpleNamespace

import pytest
from command_line import langshift, refusal
from small_old_index import ADOPTED, old_index

# Words that only a language's analyzer finds: a German plural, a French elision, English, Thai without spaces.
TEXTS = {
    "de": ("Die Impfungen der Kinder", "Alle Kinderärzte empfehlen die Impfungen vor dem ersten Schuljahr."),
    "de-2": ("Gesunde Ernährung", "Obst und Gemüse gehören in jede Mahlzeit, sagen die Ernährungsberater."),
    "fr": ("L'hôpital et l'enfant", "L'enfant malade est soigné par l'équipe de l'hôpital pendant plusieurs jours."),
    "fr-2": ("La grippe en hiver", "Chaque hiver les médecins conseillent de se laver les mains très souvent."),
    "en": ("Washing hands", "Children wash their hands before they are eating, and after playing outside."),
    "en-2": ("Sleep", "Adults who sleep too little fall ill more often than those who rest well."),
    "th": ("การล้างมือ", "การล้างมือด้วยสบู่ช่วยป้องกันโรคติดต่อในเด็กและผู้สูงอายุได้ดีมาก"),
    "th-2": ("การนอนหลับ", "การนอนหลับพักผ่อนอย่างเพียงพอทำให้ร่างกายแข็งแรงและมีภูมิคุ้มกันที่ดี"),
}
# Query -> the document that it finds by its language's analyzer.
QUERIES = {("Impfung", "de"): "de", ("hôpital", "fr"): "fr", ("child washes", "en"): "en", ("สบู่", "th"): "th"}
TITLES = ("--title-field", "headline", "--text-field", "body", "--language-field", "locale")


def language(name):
    return name.partition("-")[0]


@pytest.fixture(scope="module")
def indices(client, cluster_url, tmp_path_factory):
    """One index of langshift's own, the same adopted without analyzers and with them, and what the last said."""
    name = f"langshift-test-{uuid.uuid4().hex[:8]}"
    keyword = {"type": "text", "fields": {"raw": {"type": "keyword"}}}
    properties = {"headline": keyword, "body": {"type": "text"}, "locale": {"type": "keyword"}}
    documents = {
        one: {"headline": title, "body": text, "locale": f"{language(one)}-XX" if one == "de" else language(one)}
        for one, (title, text) in TEXTS.items()
    }
    corpus = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    rows = [
        {"_id": one, "title": title, "text": text, "language": language(one), "embedding": [1.0, n, 0.5, 2.0]}
        for n, (one, (title, text)) in enumerate(TEXTS.items())
    ]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with old_index(client, name, properties, documents):
        own = langshift(
            "ingest", corpus, "--index", f"{name}-own", "--encoder", "given", "--alpha", "0", url=cluster_url
        )
        plain = langshift("adopt", name, "--name", f"{name}-plain", *TITLES, *ADOPTED, url=cluster_url)
        done = langshift("adopt", name, "--name", f"{name}-new", *TITLES, *ADOPTED, "--analyze", url=cluster_url)
        assert (own.returncode, plain.returncode, done.returncode) == (0, 0, 0), (own, plain, done)
        yield SimpleNamespace(old=name, own=f"{name}-own", plain=f"{name}-plain", new=f"{name}-new", said=done.stderr)


def found(cluster_url, index, words, tag):
    done = langshift("search", index, words, "--language", tag, "--mode", "lexical", "--json", url=cluster_url)
    assert done.returncode == 0, done
    return [hit["id"] for hit in json.loads(done.stdout)["hits"]]


def test_the_analyzers_are_named(indices):
    assert indices.said == ("Analyzers of headline, body: de (german), en (english), fr (french), th (thai).\n")


@pytest.mark.parametrize(("query", "expected"), QUERIES.items())
def test_words_are_found_as_in_an_index_of_its_own_and_not_without(cluster_url, indices, query, expected):
    words, tag = query
    own, new = (found(cluster_url, index, words, tag) for index in (indices.own, indices.new))
    assert own[0] == new[0] == expected
    assert set(new) == set(own)
    assert found(cluster_url, indices.plain, words, tag)[:1] != [expected]


def test_documents_and_the_old_indexs_own_views_stay_as_they_were(client, indices):
    mapping = client.indices.get_mapping(index=f"{indices.new}-v0001")[f"{indices.new}-v0001"]["mappings"]
    views = mapping["properties"]["headline"]["fields"]
    assert views.pop("raw") == {"type": "keyword"}
    assert views == {
        "de": {"type": "text", "analyzer": "german"},
        "fr": {"type": "text", "analyzer": "french"},
        "en": {"type": "text", "analyzer": "english"},
        "th": {"type": "text", "analyzer": "thai"},
    }
    fields = mapping["_meta"]["langshift_fields"]
    assert (fields["texts"], fields["title"], fields["analyzed"]) == (
        ["headline", "body"], "headline", ["de", "en", "fr", "th"]
    )  # fmt: skip
    for name, (title, text) in TEXTS.items():
        source = client.get(index=indices.new, id=name)["_source"]
        assert (source["headline"], source["body"], source["language"]) == (title, text, language(name))


def test_describe_shows_each_analyzer_with_the_documents_that_are_searched_by_it(cluster_url, indices):
    told = json.loads(langshift("index", "describe", indices.new, "--json", url=cluster_url).stdout)
    assert {"field": "body.de", "analyzer": "german", "documents": 2} in told["texts"]
    assert {"field": "headline", "analyzer": "standard", "documents": 8} in told["texts"]
    said = langshift("index", "describe", indices.new, url=cluster_url).stdout.splitlines()
    assert (
        "Clients that write documents name their language in locale (or in language, where that is empty or no "
        "language)."
    ) in said


def test_clients_are_told_where_to_name_the_language(client, cluster_url, indices):
    done = langshift("pipeline", "install", indices.plain, url=cluster_url)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        0, "Clients that write documents name their language in locale (or in language, where that is empty or no "
        "language).",
    )  # fmt: skip
    body = {"body": "Ebbe und Flut", "locale": "de", "vec": [1.0, 0.0, 0.5, 2.0]}
    client.index(index=indices.plain, id="tagged", body=body, params={"refresh": "true"})
    body["locale"] = "sport"
    client.index(index=indices.plain, id="untagged", body=body, params={"refresh": "true"})
    said = langshift("pipeline", "verify", indices.plain, url=cluster_url).stdout.splitlines()
    assert said[1] == (
        "1 document (10.0%) in an unknown language (und), not shifted by any: if a client wrote them, have it name the "
        "language in locale (a tag such as de), and write them again."
    )
    assert langshift("pipeline", "remove", indices.plain, url=cluster_url).returncode == 0
    for name in ("tagged", "untagged"):
        client.delete(index=indices.plain, id=name, params={"refresh": "true"})


def test_the_other_modes_that_search_words_answer(cluster_url, indices, tmp_path):
    for mode in ("hybrid", "anchored"):
        done = langshift(
            "evaluate", "replay", dataset(tmp_path / mode), "--index", indices.new, "--mode", mode, "--json",
            url=cluster_url,
        )  # fmt: skip
        assert done.returncode == 0, done
        assert json.loads(done.stdout)["measures"]["R@20"] == 1


def dataset(folder):
    """One question with its vector, which the first document answers."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tde\t1\n")
    row = {"_id": "q", "text": "Impfung", "language": "de", "embedding": [1.0, 0.0, 0.5, 2.0]}
    (folder / "queries.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "de", "text": "Impfungen", "language": "de"}) + "\n")
    return folder


def test_later_versions_keep_the_analyzers(cluster_url, indices):
    done = langshift("reencode", indices.new, "--encoder", "use-m", "--alpha", "0", url=cluster_url)
    assert done.returncode == 0, done
    assert found(cluster_url, indices.new, "Impfung", "de")[0] == "de"
    done = langshift("rollback", indices.new, url=cluster_url)
    assert done.returncode == 0, done
    assert found(cluster_url, indices.new, "Impfung", "de")[0] == "de"


def test_a_view_of_a_languages_name_is_not_overwritten(client, cluster_url, index_name):
    view = {"type": "text", "fields": {"de": {"type": "keyword"}}}
    documents = {one: {"body": text} for one, (_, text) in TEXTS.items()}
    with old_index(client, index_name, {"body": view}, documents):
        options = ["--text-field", "body", *ADOPTED, "--analyze"]
        done = langshift("adopt", index_name, "--name", f"{index_name}-new", *options, url=cluster_url)
        assert refusal(done) == (
            f"The field 'body' of {index_name} has a view 'de' already, the name that --analyze needs for the analyzer "
            "german: leave --analyze out, or copy the index with _reindex into one without that view, and adopt the "
            "copy."
        )
        assert not client.indices.exists(index=f"{index_name}-new*", params={"allow_no_indices": "false"})

"""What people bring: an export with fields of its own and with faults (see help_centre), on all of its ways."""

import json
import re
import signal

import pytest
from command_line import langshift, refusal
from embeddings_server import embeddings_server
from given_data import write_lines
from help_centre import FIELDS, LANGUAGES, articles, language_of, write_export
from resumed_load import ResumedLoad
from small_old_index import ADOPTED, old_index

from langshift.debias.encoders import open_encoder

TOPICS = 8
ENCODER = ("--encoder", "use-m")


@pytest.fixture
def run(cluster_url):
    def command(*arguments, code=0):
        done = langshift(*arguments, url=cluster_url)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    return command


def stored(client, name, identifier):
    return client.get(index=name, id=identifier)["_source"]


def count(client, name, **query):
    client.indices.refresh(index=name)
    return client.count(index=name, body={"query": query or {"match_all": {}}})["count"]


def hits(run, name, words, *options):
    return json.loads(run("search", name, words, "--json", *options).stdout)["hits"]


def test_an_export_is_refused_with_the_options_that_would_take_it(run, index_name, tmp_path):
    export = write_export(tmp_path / "export.jsonl", articles(1))
    assert refusal(run("ingest", export, "--index", index_name, *ENCODER, code=2)) == (
        f"{export}, line 1: has neither a text nor a title. If the fields id, headline, body, teaser and locale are "
        "the id, the title, the texts and the language, give --id-field id --title-field headline --text-field body "
        "--text-field teaser --language-field locale."
    )


def test_an_export_with_faults_is_loaded_changed_and_searched(client, run, index_name, tmp_path):
    rows = articles(TOPICS)
    export = write_export(tmp_path / "export.jsonl", rows)
    done = run("ingest", export, "--index", index_name, *ENCODER, *FIELDS, code=3)
    letters = f"(langshift dead-letters list --index {index_name} shows why)"
    assert done.stdout.splitlines()[-2:] == [
        f"Indexed 80 documents into {index_name} ({index_name}-v0001), 72 of them shifted with alpha 1.",
        f"All 85 lines of {export} are accounted for: 80 documents on the server, checked, 5 dead letters {letters}.",
    ]
    assert done.stderr.splitlines()[:3] == [
        "published has dates, by the first documents: published.date can be searched by range.",
        "2 texts longer than 1,000 characters: with --chunk auto, every place in them can be found.",
        "7 documents with a language that is not a language tag, such as 'Spanish' in locale: detected, where the "
        "field language names none.",
    ]
    groups = json.loads(run("dead-letters", "list", "--index", index_name, "--json").stdout)["groups"]
    assert sorted(group["example"]["reason"] for group in groups) == [
        "has no text in headline, body or teaser.",
        "must be a JSON object with a text, but is a list.",
        "not valid JSON (unexpected end of data at character 33).",
        "the field 'id' must be a string or an integer, but is an object.",
        "the integer '123456789012345678901' is too large to be stored exactly; make it a string.",
    ]
    found = {row["id"]: stored(client, index_name, str(row["id"])) for row in rows}
    assert [found[number]["language"] for number in found] == [language_of(number) for number in found]
    for row in rows:
        kept = {name: row[name] for name in row.keys() - {"headline", "body", "teaser"}}
        texts = {name: {language_of(row["id"]): row[name]} for name in ("headline", "body", "teaser")}
        assert found[row["id"]].items() >= {**kept, **texts}.items()
    # Whole numbers came first, and fractions are not cut; dates are dates.
    assert count(client, index_name, range={"price": {"gt": 0, "lt": 1}}) == 1
    assert count(client, index_name, range={"published.date": {"gte": "2026-12-01"}}) == 6

    changes = [
        {"_op": "delete", "id": 70},
        {"_op": "delete", "id": 7000},
        {"_op": "delete", "id": 7001},
        {"_op": "update", "id": 1, "price": 99.5},
        {"_op": "update", "id": 2, "body": "The sea rises and falls twice a day.", "teaser": None},
        rows[71],
        {"_op": "update", "id": 7002, "price": 1},
    ]
    more = write_lines(tmp_path / "changes.jsonl", changes)
    done = run("ingest", more, "--index", index_name, *ENCODER, "--if-exists", "append", code=3)
    assert done.stdout.splitlines()[-1] == (
        f"All 7 lines of {more} are accounted for: 3 documents on the server, checked, 1 replaced an earlier one with "
        "the same _id, 2 documents updated, 1 of them encoded again, 1 deleted, 2 deletes of documents that were not "
        f"there, 1 dead letter {letters}."
    )
    assert stored(client, index_name, "1") == {**found[1], "price": 99.5}
    changed, vector = stored(client, index_name, "2"), found[2].pop("embedding")
    assert changed.pop("embedding") != vector
    del found[2]["teaser"]
    assert changed == {**found[2], "body": {"en": "The sea rises and falls twice a day."}}

    # Through the pipeline: an article by its own fields, and a change of one of them.
    run("pipeline", "install", index_name)
    raw = [float(number) for number in open_encoder("use-m").encode_documents(["Ebbe"])[0]]
    theirs = {"id": 900, "headline": "Ebbe", "locale": "n/a", "language": "de", "topic": "tides", "embedding": raw}
    client.index(index=index_name, id="900", body=theirs)
    client.update(index=index_name, id="900", body={"doc": {"price": 3}})
    client.update(index=index_name, id="5", body={"doc": {"price": 7}}, params={"refresh": "true"})
    written = stored(client, index_name, "900")
    assert (written["language"], written["headline"], written["price"]) == ("de", {"de": "Ebbe"}, 3)
    assert written["shift"]["alpha"] == 1
    assert stored(client, index_name, "5") == {**found[5], "price": 7}
    verified = run("pipeline", "verify", index_name, "--json")
    assert json.loads(verified.stdout)["und"] == 0

    assert [hit["id"] for hit in hits(run, index_name, "Ebbe", "--filter", "topic=tides", "--language", "de")] == [
        "900"
    ]
    topics = [hit["group"] for hit in hits(run, index_name, "food allergy", "--one-per-group", "--size", "5")]
    assert topics[0] == "allergy"
    assert len(set(topics)) == len(topics)
    kept = client.indices.get_mapping(index=index_name)[f"{index_name}-v0001"]["mappings"]["_meta"]["langshift_fields"]
    run("retune", index_name, "--alpha", "0.5")
    assert stored(client, index_name, "900")["shift"]["alpha"] == 0.5
    run("rollback", index_name)
    ((_, back),) = client.indices.get_mapping(index=index_name).items()
    assert back["mappings"]["_meta"]["langshift_fields"] == kept


def test_a_load_of_an_export_is_killed_and_resumed(client, index_name, tmp_path, cluster_env):
    export = write_export(tmp_path / "export.jsonl", articles(44))
    with embeddings_server() as server:
        load = ResumedLoad(server, export, 445, index_name, tmp_path / "home", cluster_env)
        load.command += FIELDS
        server.pause = 0.05
        process = load.start()
        load.wait_for(process, lambda: sum(map(len, list(server.asked))) > 300)
        assert load.end(process, signal.SIGKILL)[0] == -signal.SIGKILL
        code, out, err = load.end(load.start())
    assert code == 3, err
    summary = json.loads(out)
    assert (summary["lines"], summary["present"], summary["dead"]) == (445, 440, 5)
    assert summary["resumed"]
    assert count(client, index_name) == 440
    assert stored(client, index_name, "439")["headline"].keys() == {language_of(439)}


def test_languages_that_are_not_named_are_not_guessed(client, run, index_name, tmp_path):
    rows = [{name: value for name, value in row.items() if name != "locale"} for row in articles(TOPICS)]
    export = write_export(tmp_path / "export.jsonl", rows, ())
    options = (*FIELDS[:8], "--languages", ",".join(LANGUAGES[:8]))
    done = run("ingest", export, "--index", index_name, *ENCODER, *options)
    assert "16 documents without a clear language: not shifted by language.\n" in done.stderr
    assert count(client, index_name, term={"language": "und"}) == 16
    assert {stored(client, index_name, str(number))["language"] for number in (8, 9)} == {"und"}


def test_an_index_of_articles_is_adopted_and_a_client_names_languages(client, run, index_name):
    texts, keyword = {"type": "text"}, {"type": "keyword"}
    topic = {"type": "text", "fields": {"keyword": keyword}}
    properties = {"headline": texts, "body": texts, "teaser": texts, "locale": keyword, "category": keyword}
    old, new = f"{index_name}-old", f"{index_name}-old-new"
    rows = {str(row["id"]): row for row in articles(TOPICS)}
    with old_index(client, old, {**properties, "topic": topic}, rows):
        options = (
            "--title-field",
            "headline^2",
            "--text-field",
            "body",
            "--group-field",
            "topic",
            *ADOPTED,
            "--analyze",
        )
        adopt = ("adopt", old, "--name", new, *options)
        assert refusal(run(*adopt, "--language-field", "category", code=2)) == (
            f"The field 'category' of {old} does not tell languages: of 80 documents of a sample with a "
            "value there, 0% have a language tag that their text does not contradict (such a value is 'sport'). Give "
            "--language-field the field with the language, or leave it out to have languages detected."
        )
        said = run(*adopt, "--language-field", "locale").stderr.splitlines()
        assert re.sub("'[A-Z][a-z]+', for", "'NAME', for", said[0]) == (
            "7 of 71 documents of a sample have no language tag in 'locale', but 'NAME', for example: for such "
            "documents a tag in the field 'language' is taken, and without one the language is detected."
        )
        assert said[1:] == [
            "Analyzers of headline, body: ar (arabic), de (german), en (english), es (spanish), fr (french), ja (cjk), "
            "ko (cjk), ru (russian), th (thai), tr (turkish).",
            "Translated: 8 pages, on average in 10.0 of 10.0 languages. A search that collapses on shift.page shows "
            "each page once.",
        ]
        assert [stored(client, new, name)["language"] for name in rows] == [language_of(int(name)) for name in rows]
        assert (
            "Clients that write documents name their language in locale (or in language, where that is empty or no "
            "language)." in run("pipeline", "install", new).stderr
        )
        theirs = {"headline": "Impfungen der Kinder", "language": "de", "topic": "jabs", "vec": [1.0, 2.0, 3.0, 4.0]}
        client.index(index=new, id="theirs", body=theirs, params={"refresh": "true"})
        assert stored(client, new, "theirs")["language"] == "de"
        # A German plural by its analyzer; one article of each topic, by the view of a text field.
        words = ("--mode", "lexical", "--language", "de")
        assert hits(run, new, "Impfung", *words)[0]["id"] == "theirs"
        found = hits(run, new, "Allergie Impfung", *words, "--one-per-group")
        assert {hit["group"] for hit in found} >= {"allergy", "jabs"}
        assert json.loads(run("pipeline", "verify", new, "--json").stdout)["und"] == 0

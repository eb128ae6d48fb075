"""``langshift ingest --chunk``: what it writes, and what later loads into the index take over."""

import json

import pytest
from command_line import langshift

ENGLISH = "The harbour opens at six in the morning, and the first ships leave as soon as the lock is open."
GERMAN = "Der Hafen schließt um zehn Uhr am Abend, und danach darf kein Schiff mehr in ihn einlaufen."
TEXT = f"{ENGLISH}\n\n{GERMAN}"
DOCUMENT = {"_id": "a", "title": "Harbour", "text": TEXT, "price": 3}


@pytest.fixture
def run(cluster_url, tmp_path, index_name):
    def command(*options, documents=(DOCUMENT,)):
        path = tmp_path / "corpus.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
        done = langshift("ingest", path, "--index", index_name, *options, url=cluster_url)
        return done, done.stderr.splitlines()

    return command


def chunks_of(client, name, document="a"):
    client.indices.refresh(index=name)
    body = {"query": {"term": {"parent": document}}, "sort": ["chunk.ordinal"]}
    return [(hit["_id"], hit["_source"]) for hit in client.search(index=name, body=body)["hits"]["hits"]]


def test_an_index_keeps_how_its_documents_are_cut(client, run, index_name):
    done, _ = run("--chunk", "paragraphs")
    assert done.returncode == 0, done.stderr
    (one, first), (two, second) = chunks_of(client, index_name)
    assert (one, two) == ("a#0000", "a#0001")
    assert second["chunk"] == {"ordinal": 1, "start": len(ENGLISH) + 2, "end": len(TEXT), "count": 2}
    assert second["text"] == {"de": GERMAN}
    assert (first["title"], second["title"], second["price"]) == ({"en": "Harbour"}, {"de": "Harbour"}, 3)
    assert second["shift"]["language"] == "de"

    done, said = run("--if-exists", "append", "--chunk", "auto")
    assert done.returncode == 2
    assert said[-1] == (
        f"Error: Index {index_name} ({index_name}-v0001) was loaded with --chunk paragraphs, but this load was given "
        "--chunk auto: leave --chunk out to add to it, or create a new version of it with --if-exists new-version."
    )
    done, _ = run("--if-exists", "append", documents=[{"_id": "b", "text": "One.\n\nTwo.", "language": "en"}])
    assert done.returncode == 0, done.stderr
    assert [name for name, _ in chunks_of(client, index_name, "b")] == ["b#0000", "b#0001"]

    done, _ = run("--if-exists", "new-version")
    note = f"The new version is loaded as {index_name}-v0001 was, with --chunk paragraphs."
    assert note in done.stderr.replace("\n", " ")
    assert len(chunks_of(client, index_name)) == 2
    done, _ = run("--if-exists", "new-version", "--chunk", "off")
    assert done.returncode == 0, done.stderr
    assert "is loaded as" not in done.stderr
    assert list(client.get(index=index_name, id="a")["_source"]["text"].values()) == [TEXT]


def test_fields_with_names_of_their_own_are_cut_each_for_itself(client, run, index_name):
    document = {"id": "a", "head": "Harbour", "parts": {"body": "One.\n\nTwo."}, "more": "Three.", "language": "en"}
    named = ("--id-field", "id", "--title-field", "head", "--text-field", "parts.body", "--text-field", "more")
    done, _ = run("--chunk", "paragraphs", *named, documents=[document])
    assert done.returncode == 0, done.stderr
    chunks = [source for _, source in chunks_of(client, index_name)]
    assert [(one["chunk"]["field"], one["chunk"]["start"]) for one in chunks] == [
        ("parts.body", 0),
        ("parts.body", 6),
        ("more", 0),
    ]
    assert [one["parts"].get("body") for one in chunks] == [{"en": "One."}, {"en": "Two."}, None]
    assert {one["head"]["en"] for one in chunks} == {"Harbour"}
    done, _ = run("--if-exists", "append", documents=[{**document, "id": "b"}])
    assert done.returncode == 0, done.stderr
    assert len(chunks_of(client, index_name, "b")) == 3


def test_what_chunks_are_made_of_cannot_come_with_the_documents(run):
    done, said = run("--chunk", "auto", "--encoder", "given:mine", documents=[{**DOCUMENT, "embedding": [1, 2]}])
    assert done.returncode == 2
    assert said[-1] == (
        "Error: --chunk auto gives each piece of a document a vector of its own, but the vectors of --encoder "
        "given:mine are of whole documents: use --chunk off, or an encoder that reads texts."
    )
    done, said = run("--chunk", "lines")
    assert (done.returncode, said[-1]) == (
        2,
        "Error: --chunk 'lines' is not auto, paragraphs, sentences:N, words:N, fixed:N or off.",
    )


def test_a_load_of_long_texts_says_that_they_can_be_cut(run):
    long = {"_id": "a", "text": "The sea rises and falls. " * 100, "language": "en"}
    done, _ = run("--encoder", "use-m", documents=[long])
    assert "1 text longer than 1,000 characters: with --chunk auto, every place in them can be found." in " ".join(
        done.stderr.split()
    )
    done, _ = run("--encoder", "use-m", "--chunk", "auto", "--if-exists", "replace", documents=[long])
    assert done.returncode == 0, done.stderr
    assert "--chunk auto" not in done.stderr

"""Order: of two writes to one document the later wins, whoever made them and however often they are sent."""

import json
import random
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import langshift, refusal
from nothing_lost import read_letters
from stamps import stamp_of

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.progress import last_line, remarks
from langshift.ingest.resume import LoadOptions
from langshift.plugin import versions

GERMAN = "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht."
THAI = "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ"
ENGLISH = "The sea rises and falls twice a day because the Moon pulls at it."
APPEND = LoadOptions(if_exists="append")


@pytest.fixture(scope="module")
def making():
    return build_pipeline(open_encoder("use-m"), open_detector(), None, None)


def delete(name):
    return {"_op": "delete", "_id": name}


def stored(client, index):
    """What an index holds, by id."""
    client.indices.refresh(index=index)
    found = client.search(index=index, body={"size": 1000, "query": {"match_all": {}}})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in found}


def numbers(client, index):
    return {name: source["number"] for name, source in stored(client, index).items()}


def test_of_documents_with_one_id_the_last_wins_in_whichever_chunk_they_are(client, index_name, corpus, making):
    # Batches of 256 lines: the ids come back within a batch, in the next one, and in the last.
    lines = [{"_id": f"d{number % 250}", "text": GERMAN, "number": number} for number in range(700)]
    lines += [{"_id": "d7", "text": GERMAN, "number": 700}, {"_id": "d7", "text": GERMAN, "number": 701}]
    summary = load(client, corpus(*lines), index_name, making)
    expected = {line["_id"]: line["number"] for line in lines}
    assert numbers(client, index_name) == expected
    # A line that arrived after a later one of its _id wrote nothing; which ones, is up to the network.
    assert summary.replaced + summary.superseded == 702 - 250
    assert (summary.lines, summary.documents, summary.present) == (702, 702 - summary.superseded, 250)
    assert last_line(summary) == (
        f"All 702 lines of {summary.corpus} are accounted for: 250 documents on the server, checked, "
        f"{summary.replaced} replaced an earlier one with the same _id."
    )


def test_what_repeats_is_counted_and_said(cluster_env, index_name, corpus):
    path = corpus({"_id": "a", "text": GERMAN}, {"_id": "b", "text": GERMAN}, {"_id": "a", "text": ENGLISH})
    done = langshift("ingest", path, "--index", index_name, url=cluster_env)
    assert done.returncode == 0, done
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == (
        f"All 3 lines of {path} are accounted for: 2 documents on the server, checked, "
        "1 replaced an earlier one with the same _id."
    )
    again = langshift("ingest", path, "--index", index_name, "--if-exists", "append", "--json", url=cluster_env)
    summary = json.loads(again.stdout)
    assert {key: summary[key] for key in ("lines", "documents", "present", "replaced", "superseded")} == {
        "lines": 3, "documents": 3, "present": 2, "replaced": 3, "superseded": 0
    }  # fmt: skip
    assert again.stderr.splitlines() == [
        f"All 3 lines of {path} are accounted for: 2 documents on the server, checked, "
        "3 replaced an earlier one with the same _id.",
    ]


def test_deletes_take_their_turn_among_the_lines(client, index_name, corpus, making):
    load(client, corpus({"_id": "old", "text": GERMAN}, {"_id": "kept", "text": GERMAN}), index_name, making)
    lines = (
        {"_id": "gone", "text": GERMAN},
        {"_id": "back", "text": GERMAN, "number": 1},
        delete("gone"),
        delete("back"),
        delete("never there"),
        delete("old"),
        {"_id": "back", "text": THAI, "number": 2, "_op": "index"},
    )
    summary = load(client, corpus(*lines), index_name, making, options=APPEND)
    found = stored(client, index_name)
    assert set(found) == {"kept", "back"}
    assert found["back"]["number"] == 2
    assert "_op" not in found["back"]
    assert (summary.lines, summary.documents, summary.deleted, summary.present) == (7, 3, 3, 1)
    assert (summary.replaced, summary.superseded, summary.not_found, summary.dead) == (0, 0, 1, 0)
    assert last_line(summary) == (
        f"All 7 lines of {summary.corpus} are accounted for: 1 document on the server, checked, 3 deleted, "
        "1 delete of a document that was not there."
    )


def test_many_writes_and_deletes_in_any_order_leave_what_the_last_line_of_each_id_says(
    client, index_name, corpus, making
):
    drawn = random.Random(6)
    lines, expected, deletes = [], {}, 0
    for number in range(1500):
        name = f"d{drawn.randrange(300)}"
        if drawn.random() < 0.1:
            lines.append(delete(name))
            expected.pop(name, None)
            deletes += 1
        else:
            lines.append({"_id": name, "text": "Das Meer.", "language": "de", "number": number})
            expected[name] = number
    summary = load(client, corpus(*lines), index_name, making)
    assert numbers(client, index_name) == expected
    assert (summary.lines, summary.present, summary.dead) == (1500, len(expected), 0)
    # A delete of what is not there, or not any more, is none.
    assert 0 < summary.deleted <= deletes


def test_a_delete_needs_an_id_and_an_operation_must_be_one(cluster_env, index_name, corpus):
    path = corpus({"_id": "a", "text": GERMAN}, {"_op": "delete"}, {"_op": "upsert", "_id": "b", "text": GERMAN})
    done = langshift("ingest", path, "--index", index_name, "--json", url=cluster_env)
    assert done.returncode == 3, done
    summary = json.loads(done.stdout)
    letters = read_letters(Path(summary["dead_letters"]))
    assert [(letter["line"], letter["reason"]) for letter in letters] == [
        (2, "a line with '_op': 'delete' needs the '_id' of the document."),
        (3, "the field '_op' must be 'index', 'update' or 'delete', or be left out."),
    ]


def test_what_somebody_else_wrote_later_is_kept(client, index_name, corpus, making):
    load(client, corpus({"_id": "a", "text": GERMAN}, {"_id": "b", "text": GERMAN}), index_name, making)
    theirs = {"text": {"en": "theirs"}, "language": "en"}

    def write_meanwhile(stage, _documents, _seconds):
        if stage == "shift":
            version = time.time_ns() // 1_000_000 << 20
            client.index(index=index_name, id="a", body=theirs, params={"version": version, "version_type": "external"})

    lines = [{"_id": name, "text": THAI, "number": number} for number, name in enumerate("abc")]
    summary = load(client, corpus(*lines), index_name, making, write_meanwhile, APPEND)
    found = stored(client, index_name)
    assert found["a"] == theirs
    assert (found["b"]["number"], found["c"]["number"]) == (1, 2)
    assert (summary.lines, summary.documents, summary.superseded, summary.replaced, summary.present) == (3, 2, 1, 1, 2)
    assert remarks(summary, making) == [
        "1 line left out: the index has a later version of the document, from this corpus or elsewhere.",
    ]
    assert last_line(summary) == (
        f"All 3 lines of {summary.corpus} are accounted for: 2 documents on the server, checked, "
        "1 replaced an earlier one with the same _id."
    )


def test_what_somebody_else_wrote_earlier_is_replaced(client, index_name, corpus, making):
    load(client, corpus({"_id": "a", "text": GERMAN}), index_name, making)
    client.index(index=index_name, id="a", body={"text": {"en": "theirs"}, "language": "en"})
    load(client, corpus({"_id": "a", "text": THAI}), index_name, making, options=APPEND)
    assert stored(client, index_name)["a"]["text"] == {"th": THAI}


def test_a_document_whose_language_changed_is_shifted_anew(client, index_name, corpus, making):
    known = LanguageVectors.load(shipped("use-m"))
    encoder = open_encoder("use-m")
    load(client, corpus({"_id": "a", "text": GERMAN}), index_name, making)
    for language, text, told in (
        ("th", THAI, {}),
        ("de", GERMAN, {}),
        # The same text, which its owner now says is in another language.
        ("nl", GERMAN, {"language": "nl"}),
        ("en", ENGLISH, {}),
    ):
        summary = load(client, corpus({"_id": "a", "text": text, **told}), index_name, making, options=APPEND)
        assert (summary.replaced, summary.languages) == (1, {language: 1})
        source = stored(client, index_name)["a"]
        (plain,) = encoder.encode_documents([text])
        shifted = language in known.vectors
        expected = plain - known.vectors[language] if shifted else plain
        assert np.abs(np.array(source["embedding"]) - expected).max() < 1e-6
        stamp = {"vectors": known.hash, "alpha": 1.0, "language": language}
        assert stamp_of(source) == (stamp if shifted else {"vectors": known.hash, "alpha": 0.0})
        assert (source["language"], source["text"]) == (language, {language: text})


def test_what_to_do_where_the_index_exists(client, cluster_env, index_name, corpus):
    def ingest(name, *more):
        path = corpus({"_id": name, "text": GERMAN})
        return langshift("ingest", path, "--index", index_name, *more, url=cluster_env)

    def there():
        live = versions.live(client, index_name).index
        return live.removeprefix(f"{index_name}-"), set(stored(client, index_name))

    assert ingest("a", "--if-exists", "replace").returncode == 0
    assert there() == ("v0001", {"a"})
    for more in ((), ("--if-exists", "fail")):
        refused = ingest("b", *more)
        assert (refused.returncode, refusal(refused)) == (
            2,
            f"Index {index_name} already exists ({index_name}-v0001, 1 document): add to it with --if-exists append, "
            "replace it with --if-exists replace, or create a new version of it with --if-exists new-version.",
        )
    assert ingest("b", "--if-exists", "append").returncode == 0
    assert there() == ("v0001", {"a", "b"})
    assert ingest("c", "--if-exists", "replace").returncode == 0
    assert there() == ("v0002", {"c"})
    assert list(versions.versions_of(client, index_name)) == [f"{index_name}-v0002"]
    done = ingest("d", "--if-exists", "new-version")
    assert done.returncode == 0
    assert f"Indexed 1 document into {index_name} ({index_name}-v0003), " in done.stdout
    assert there() == ("v0003", {"d"})
    assert list(versions.versions_of(client, index_name)) == [f"{index_name}-v0002", f"{index_name}-v0003"]
    assert set(stored(client, f"{index_name}-v0002")) == {"c"}

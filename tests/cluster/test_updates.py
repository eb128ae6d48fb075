"""Lines that change some fields of a document: what stays, what is encoded again, and in which order that happens."""

import json
import random
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from command_line import langshift
from embeddings_server import embeddings_server
from embeddings_server import vector as encoded
from faults import cut_after
from opensearchpy import helpers
from resumed_load import ResumedLoad

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.progress import last_line
from langshift.ingest.resume import LoadOptions

GERMAN = "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht."
THAI = "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ"
APPEND = LoadOptions(if_exists="append")
FULL = {
    "_id": "a",
    "title": "Ebbe",
    "text": GERMAN,
    "group": "tides",
    "price": 1,
    "stock": 3,
    "size": {"width": 1, "depth": 2},
    "exact": 0.12345678901234567,
}


class Counting:
    """An encoder that keeps what it was asked for."""

    def __init__(self, encoder):
        self._encoder, self.asked = encoder, []

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def encode_documents(self, texts):
        self.asked += texts
        return self._encoder.encode_documents(texts)


@pytest.fixture(scope="module")
def opened():
    return build_pipeline(open_encoder("use-m"), open_detector(), None, None)


@pytest.fixture
def making(opened):
    return replace(opened, encoder=Counting(opened.encoder))


def update(name, **fields):
    return {"_op": "update", "_id": name, **fields}


def source(client, index, name):
    return client.get(index=index, id=name)["_source"]


def expected_vector(making, text, language):
    (plain,) = making.encoder.encode_documents([text])
    known = LanguageVectors.load(shipped("use-m"))
    return plain - known.vectors[language] if language in known.vectors else plain


def is_at(document, vector):
    return np.abs(np.array(document["embedding"]) - vector).max() < 1e-6


def test_fields_are_changed_without_encoding_and_all_others_stay(client, index_name, corpus, making):
    load(client, corpus(FULL, {**FULL, "_id": "b"}), index_name, making)
    before = source(client, index_name, "a")
    making.encoder.asked.clear()
    lines = (
        update("a", price=5, stock=None, size={"height": 3}, color="blue"),
        # What is given as it is makes no other vector either.
        update("b", text=GERMAN, language=None, price=6),
        update("a", price=7),
    )
    summary = load(client, corpus(*lines), index_name, making, options=APPEND)
    assert making.encoder.asked == []
    changed = {name: value for name, value in before.items() if name != "stock"}
    assert source(client, index_name, "a") == {**changed, "price": 7, "size": {"height": 3}, "color": "blue"}
    assert source(client, index_name, "b") == {**before, "price": 6}
    assert (summary.lines, summary.updated, summary.encoded_again, summary.documents, summary.present) == (
        3,
        3,
        0,
        0,
        2,
    )
    assert last_line(summary) == (
        f"All 3 lines of {summary.corpus} are accounted for: 2 documents on the server, checked, 3 documents updated."
    )


def test_a_text_is_encoded_again_where_it_changes_and_its_language_where_it_was_detected(
    client, index_name, corpus, making
):
    told = {**FULL, "_id": "told", "language": "nl"}
    load(client, corpus(FULL, told, {**FULL, "_id": "same"}), index_name, making)
    making.encoder.asked.clear()
    lines = [update("a", title=None, text=THAI), update("told", text=THAI), update("same", title="Ebbe", price=2)]
    summary = load(client, corpus(*lines), index_name, making, options=APPEND)
    assert sorted(making.encoder.asked) == sorted([THAI, f"Ebbe {THAI}"])
    found = source(client, index_name, "a")
    assert ("title" in found, found["text"], found["language"], found["group"]) == (False, {"th": THAI}, "th", "tides")
    assert is_at(found, expected_vector(making, THAI, "th"))
    assert found["shift"]["language"] == "th"
    found = source(client, index_name, "told")
    assert (found["title"], found["text"]) == ({"nl": "Ebbe"}, {"nl": THAI})
    assert (found["language"], found["language_confidence"]) == ("nl", 1.0)
    assert is_at(found, expected_vector(making, f"Ebbe {THAI}", "nl"))
    assert last_line(summary) == (
        f"All 3 lines of {summary.corpus} are accounted for: 3 documents on the server, checked, 3 documents updated, "
        "2 of them encoded again."
    )


def test_a_language_that_is_told_anew_shifts_the_vector_that_is_there(client, index_name, corpus, making):
    load(client, corpus(FULL), index_name, making)
    for language, tag in (("th", "th"), ("en", "en"), (None, "de")):
        making.encoder.asked.clear()
        summary = load(client, corpus(update("a", language=language)), index_name, making, options=APPEND)
        assert (making.encoder.asked, summary.encoded_again) == ([], 0)
        found = source(client, index_name, "a")
        assert (found["title"], found["text"], found["language"]) == ({tag: "Ebbe"}, {tag: GERMAN}, tag)
        assert (found["language_confidence"] == 1) == (language is not None)
        assert is_at(found, expected_vector(making, f"Ebbe {GERMAN}", tag))
        assert found["shift"].get("language") == (tag if tag != "en" else None)


def test_what_cannot_be_updated_goes_to_the_dead_letters_and_can_be_sent_again(client, index_name, load_given):
    done = load_given.run(
        {"_id": "a", "text": "x", "language": "de", "embedding": [1.0, 2.0], "price": 1},
        update("never", price=1),
        update("a", price="many"),
        update("a", text="y"),
        update("a", text=""),
        update("a", text="z", embedding=[2.0, 1.0]),
    )
    assert done.returncode == 3, done
    letters = load_given.letters()
    assert [(letter["line"], letter["type"], letter["stage"]) for letter in letters] == [
        (2, "missing_document", "write"),
        (3, "mapper_parsing_exception", "write"),
        (4, "invalid_embedding", "write"),
        (5, "invalid_document", "write"),
    ]
    assert [letter["reason"] for letter in (letters[0], *letters[2:])] == [
        "there is no document 'never' to update: leave '_op' out to add it",
        "its title or text changes, for which --encoder given needs its 'embedding'; add that",
        "would have neither a text nor a title",
    ]
    assert done.stdout.splitlines()[-1].endswith(
        f"1 document on the server, checked, 1 document updated, 1 of them encoded again, 4 dead letters "
        f"(langshift dead-letters list --index {index_name} shows why)."
    )
    found = source(client, index_name, "a")
    assert (found["text"], found["embedding"], found["price"]) == ({"de": "z"}, [2.0, 1.0], 1)
    load_given.mend({3: update("a", price=2)})
    assert load_given.replay() == {"replayed": 4, "indexed": 1, "superseded": 0, "left": 3}
    assert source(client, index_name, "a") == {**found, "price": 2}


@pytest.fixture
def load_given(load):
    """``langshift ingest`` of lines with vectors of their own, through the fault proxy."""

    class Given:
        proxy, letters = load.proxy, load.letters

        def run(self, *lines, options=()):
            load.corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
            return load.run(*options)

        def mend(self, lines):
            letters = [
                {**letter, "document": json.dumps(lines[letter["line"]])} if letter["line"] in lines else letter
                for letter in load.letters()
            ]
            load.place.dead_letters.write_text("".join(json.dumps(letter) + "\n" for letter in letters))

        def replay(self):
            done = langshift("ingest", "--dead-letters", "--index", load.index, "--json", **load.environment)
            return json.loads(done.stdout)

    return Given()


def test_lines_on_one_document_take_effect_in_their_order(client, index_name, corpus, making):
    drawn = random.Random(6)
    lines, expected, dead, updated = [], {}, 0, 0
    for number in range(1500):
        name, kind = f"d{drawn.randrange(200)}", drawn.random()
        if kind < 0.1:
            lines.append({"_op": "delete", "_id": name})
            expected.pop(name, None)
        elif kind < 0.5:
            lines.append(update(name, number=number, **{f"field{number % 3}": number}))
            if name in expected:
                expected[name] |= {"number": number, f"field{number % 3}": number}
                updated += 1
            else:
                dead += 1
        else:
            lines.append({"_id": name, "text": "Das Meer.", "language": "de", "number": number})
            expected[name] = {"number": number}
    summary = load(client, corpus(*lines), index_name, making)
    client.indices.refresh(index=index_name)
    found = {hit["_id"]: hit["_source"] for hit in helpers.scan(client, index=index_name)}
    fields = ("number", "field0", "field1", "field2")
    assert {name: {f: one[f] for f in fields if f in one} for name, one in found.items()} == expected
    assert (summary.lines, summary.present, summary.dead) == (1500, len(expected), dead)
    # A line that came after a later one wrote nothing, and could not be updated.
    assert summary.updated == updated


def test_what_others_write_meanwhile_is_kept(client, index_name, corpus, making):
    names = [f"d{number}" for number in range(20)]
    load(client, corpus(*[{**FULL, "_id": name, "views": 0} for name in names]), index_name, making)
    stop, viewed = threading.Event(), dict.fromkeys(names, 0)

    def view():
        while not stop.is_set():
            for name in names:
                script = {"source": "ctx._source.views += 1"}
                client.update(index=index_name, id=name, body={"script": script}, params={"retry_on_conflict": 20})
                viewed[name] += 1

    thread = threading.Thread(target=view)
    thread.start()
    try:
        for round_ in range(5):
            lines = [update(name, price=round_, **({"text": THAI} if round_ == 3 else {})) for name in names]
            summary = load(client, corpus(*lines), index_name, making, options=APPEND)
            assert (summary.updated, summary.dead, summary.superseded) == (20, 0, 0)
    finally:
        stop.set()
        thread.join()
    for name in names:
        found = source(client, index_name, name)
        assert (found["views"], found["price"], found["text"]) == (viewed[name], 4, {"th": THAI})


def test_an_update_whose_answer_was_lost_is_made_once(client, load_given, index_name):
    lines = [{"_id": f"d{n}", "text": "x", "language": "de", "embedding": [1.0, n]} for n in range(1, 30)]
    assert load_given.run(*lines).returncode == 0
    before = [client.get(index=index_name, id=line["_id"])["_version"] for line in lines]
    load_given.proxy.inject("_bulk", [cut_after])
    changes = [update(line["_id"], price=1) for line in lines]
    done = load_given.run(*changes, options=("--if-exists", "append", "--json"))
    assert done.returncode == 0, done
    assert {key: json.loads(done.stdout)[key] for key in ("updated", "present", "superseded")} == {
        "updated": 29, "present": 29, "superseded": 0
    }  # fmt: skip
    versions = [client.get(index=index_name, id=line["_id"])["_version"] for line in lines]
    assert versions == [version + 1 for version in before]


def test_what_the_cluster_lost_is_made_again_of_its_last_whole_line_and_the_updates_since(
    client, index_name, corpus, making
):
    lines = [FULL, {**FULL, "_id": "b"}, update("a", price=2), update("a", color="blue"), update("b", price=3)]
    deleted = []

    def lose(stage, documents, _seconds):
        # What is said last of the writing, before the check.
        if (stage, documents, deleted) == ("write", 0, []):
            (version,) = client.indices.get(index=f"{index_name}-v*")
            # The server forgets the delete's version, as after a real loss: it looks at its clock five times a second.
            client.indices.put_settings(index=version, body={"index": {"gc_deletes": "0s"}})
            deleted.append(client.delete(index=version, id="a"))
            time.sleep(0.5)
            client.indices.refresh(index=version)

    summary = load(client, corpus(*lines), index_name, making, lose)
    assert (summary.repaired, summary.present, summary.updated, summary.lines) == (1, 2, 3, 5)
    found = source(client, index_name, "a")
    assert (found["price"], found["color"], found["group"]) == (2, "blue", "tides")


def test_a_load_that_was_killed_goes_on_with_its_updates(client, index_name, cluster_env, tmp_path):
    corpus, many = tmp_path / "corpus.jsonl", 400
    with corpus.open("w") as file:
        for n in range(many):
            file.write(json.dumps({"_id": f"d{n}", "text": f"Document {n} one", "language": "en", "kept": n}) + "\n")
        for n in range(many):
            text = {"text": f"Document {n} two"} if n % 2 else {}
            file.write(json.dumps(update(f"d{n}", price=n, **text)) + "\n")
        for n in range(0, many, 4):
            file.write(json.dumps(update(f"d{n}", price=-n)) + "\n")
    with embeddings_server() as server:
        killed = ResumedLoad(server, corpus, many, index_name, tmp_path / "home", cluster_env)
        server.pause = 0.05

        def encoded_texts(ending):
            with server.lock:
                return sum(text.endswith(ending) for texts in server.asked for text in texts)

        for ending, enough in (("one", 200), ("two", 60)):
            process = killed.start()
            killed.wait_for(process, lambda ending=ending, enough=enough: encoded_texts(ending) > enough)
            assert killed.end(process, signal.SIGKILL)[0] == -signal.SIGKILL
        code, out, err = killed.end(killed.start())
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["lines"], summary["updated"], summary["present"]) == (2.25 * many, 1.25 * many, many)
    client.indices.refresh(index=index_name)
    found = {hit["_id"]: hit["_source"] for hit in helpers.scan(client, index=index_name)}
    assert len(found) == many
    for n in range(many):
        one = found[f"d{n}"]
        text = f"Document {n} {'two' if n % 2 else 'one'}"
        assert (one["text"], one["kept"], one["price"]) == ({"en": text}, n, n if n % 4 else -n)
        assert np.abs(np.array(one["embedding"], np.float32) - encoded(text)).max() < 1e-6
    assert not [*DeadLetters(next((tmp_path / "home").glob(f"loads/*/{index_name}")) / "dead-letters.jsonl")]


def test_what_others_have_written_without_a_vector_or_a_stamp_is_updated_too(client, index_name, corpus, making):
    load(client, corpus(FULL), index_name, making)
    raw = making.encoder.encode_documents([THAI])[0].tolist()
    client.index(index=index_name, id="bare", body={"text": {"de": GERMAN}, "language": "de"})
    client.index(index=index_name, id="raw", body={"text": {"de": THAI}, "language": "de", "embedding": raw})
    client.index(index=index_name, id="empty", body={"price": 1})
    lines = [
        update(name, **fields) for name in ("bare", "raw", "empty") for fields in ({"price": 2}, {"language": "th"})
    ]
    summary = load(client, corpus(*lines), index_name, making, options=APPEND)
    assert (summary.updated, summary.encoded_again, summary.dead) == (5, 2, 1)
    bare, unstamped = (source(client, index_name, name) for name in ("bare", "raw"))
    assert (bare["text"], bare["price"], is_at(bare, expected_vector(making, GERMAN, "th"))) == (
        {"th": GERMAN},
        2,
        True,
    )
    assert (unstamped["text"], is_at(unstamped, expected_vector(making, THAI, "th"))) == ({"th": THAI}, True)
    assert source(client, index_name, "empty") == {"price": 2}

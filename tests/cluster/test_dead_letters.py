"""Dead letters of real loads, and what becomes of them when they are sent again."""

import json
import stat
import time
from itertools import repeat

import numpy as np
import pytest
from command_line import langshift, refusal, started
from fault_proxy import fault_proxy
from faults import delayed
from faulty_load import FaultyLoad
from given_data import run
from shifted_index import Corpus, language_vectors, printed, saved, sources

from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.settings import Settings

DIMENSION = 4


@pytest.fixture
def load(client, cluster_url, index_name, tmp_path):
    with fault_proxy(cluster_url) as proxy:
        yield FaultyLoad(client, proxy, index_name, tmp_path)


def line(name, **fields):
    return {"_id": name, "text": f"Text of {name}.", "language": "en", "embedding": [0.5] * DIMENSION, **fields}


def write(load, *lines):
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    load.corpus.write_text("".join(f"{text}\n" for text in texts))


def dead_letters(load, *options):
    return langshift("dead-letters", "list", "--index", load.index, *options, **load.environment)


def send_again(load, *options):
    return langshift("ingest", "--dead-letters", "--index", load.index, *options, **load.environment)


def replay(load):
    done = send_again(load, "--json")
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def mend(load, **documents):
    """Change documents in the file as a person with an editor does; ``None`` leaves one as it is."""
    letters = load.letters()
    for letter in letters:
        changed = documents.get(letter["_id"])
        if changed is not None:
            letter["document"] = json.dumps(changed)
    load.place.dead_letters.write_text("".join(json.dumps(letter) + "\n" for letter in letters))


def indexed(client, load):
    """What the index holds: text and number by id."""
    client.indices.refresh(index=load.index)
    hits = client.search(index=load.index, body={"size": 100, "query": {"match_all": {}}})["hits"]["hits"]
    return {hit["_id"]: hit["_source"].get("number") for hit in hits}


@pytest.fixture
def with_letters(load):
    """A load of five lines of which the last three cannot be used: no JSON, and numbers that are none."""
    write(load, line("a", number=1), line("b", number=2), "no JSON", line("c", number="many"), line("d", number="few"))
    done = load.run()
    assert done.returncode == 3, done
    return load


def counts(replayed, went_through, superseded, left):
    return {"replayed": replayed, "indexed": went_through, "superseded": superseded, "left": left}


def test_the_list_tells_why_and_how_to_go_on(with_letters):
    load = with_letters
    done = dead_letters(load, "--json")
    assert done.returncode == 0, done
    told = json.loads(done.stdout)
    assert (told["total"], told["files"]) == (3, [str(load.place.dead_letters)])
    first, second = told["groups"]
    assert (first["type"], first["stage"], first["count"]) == ("mapper_parsing_exception", "write", 2)
    assert first["reason"].startswith("failed to parse field [number] of type [long] in document with id ...")
    example = first["example"]
    assert (example["corpus"], example["line"], example["_id"]) == (str(load.corpus), 4, "c")
    assert (second["type"], second["stage"], second["count"]) == ("invalid_json", "read", 1)
    assert stat.S_IMODE(load.place.dead_letters.stat().st_mode) == 0o600

    plain = dead_letters(load)
    assert plain.stdout.splitlines()[-2:] == [
        f"3 dead letters of {load.index} in {load.place.dead_letters}",
        f"Repair what is wrong, then send them again: `langshift ingest --dead-letters --index {load.index}`.",
    ]


BAD = {
    "bad-date": (
        {"when": "soon"},
        "failed to parse field [when] of type [date] in document with id 'bad-date'. Preview of field's value: 'soon' "
        "(failed to parse date field [soon] with format [strict_date_optional_time||epoch_millis]: Failed to parse "
        "with all enclosed parsers)",
    ),
    "bad-flag": (
        {"flag": "ja"},
        "failed to parse field [flag] of type [boolean] in document with id 'bad-flag'. Preview of field's value: 'ja' "
        "(Failed to parse value [ja] as only [true] or [false] are allowed.)",
    ),
    "bad-year": (
        {"year": 70000},
        "failed to parse field [year] of type [short] in document with id 'bad-year'. Preview of field's value: '70000'"
        " (Numeric value (70000) out of range of Java short)",
    ),
    "bad-strict": (
        {"meta": {"new": 1}},
        "mapping set to strict, dynamic introduction of [new] within [meta] is not allowed",
    ),
    "bad-object": (
        {"meta": "x"},
        "object mapping for [meta] tried to parse field [meta] as object, but found a concrete value",
    ),
    "bad-fields": ({f"n{number}": 1 for number in range(100)}, "Limit of total fields [120] has been exceeded"),
}


def test_a_reason_is_listed_as_the_server_says_it_and_like_reasons_together(load, tmp_path):
    meta = {"type": "object", "dynamic": "strict", "properties": {"a": {"type": "keyword"}}}
    types = {"when": {"type": "date"}, "flag": {"type": "boolean"}, "year": {"type": "short"}, "meta": meta}
    template = {"mappings": {"properties": types}, "settings": {"index.mapping.total_fields.limit": 120}}
    (tmp_path / "template.json").write_text(json.dumps(template))
    again = [line("bad-date-2", when="later"), line("bad-flag-2", flag="nein"), line("bad-year-2", year=-80000)]
    write(load, line("a"), *(line(name, **fields) for name, (fields, _) in BAD.items()), *again)
    done = load.run("--template", tmp_path / "template.json")
    assert done.returncode == 3, done
    groups = json.loads(dead_letters(load, "--json").stdout)["groups"]
    assert {group["example"]["_id"]: (group["count"], group["example"]["reason"]) for group in groups} == {
        name: (2 if f"{name}-2" in {one["_id"] for one in again} else 1, reason) for name, (_, reason) in BAD.items()
    }
    listed = dead_letters(load).stdout
    assert [reason for _, reason in BAD.values() if reason not in listed] == []


def test_what_is_still_wrong_stays_with_its_new_reason(client, with_letters):
    load = with_letters
    mend(load, c=line("c", number="several"), d={"_id": "d"})
    before = {letter["line"]: letter for letter in load.letters()}
    done = send_again(load)
    assert done.returncode == 3, done
    assert done.stdout.splitlines()[-1] == (
        f"Replayed 3 dead letters of {load.index}: 0 indexed, 0 superseded by a later version of the document, "
        f"3 remain in {load.place.dead_letters} (langshift dead-letters list --index {load.index} shows why)."
    )
    after = {letter["line"]: letter for letter in load.letters()}
    assert after.keys() == before.keys() == {3, 4, 5}
    assert after[3]["type"] == "invalid_json"
    assert (after[4]["type"], after[4]["stage"]) == ("mapper_parsing_exception", "write")
    assert "several" in after[4]["reason"]
    assert "several" not in before[4]["reason"]
    assert (after[5]["type"], after[5]["stage"]) == ("invalid_document", "read")
    assert "has neither a text nor a title" in after[5]["reason"]
    for number, letter in after.items():
        kept = ("document", "line", "_id", "corpus", "version")
        assert {name: letter[name] for name in kept} == {name: before[number][name] for name in kept}
    assert indexed(client, load) == {"a": 1, "b": 2}
    assert stat.S_IMODE(load.place.dead_letters.stat().st_mode) == 0o600


def test_what_a_person_has_mended_goes_through_and_is_removed(client, with_letters):
    load = with_letters
    letters = load.letters()
    mend(load, c=line("c", number=3))
    assert replay(load) == (3, counts(3, 1, 0, 2))
    assert sorted(letter["line"] for letter in load.letters()) == [3, 5]
    assert indexed(client, load) == {"a": 1, "b": 2, "c": 3}

    # An object in the place of the line does too; a letter that nobody needs is taken out.
    (last,) = [letter for letter in load.letters() if letter["line"] == 5]
    load.place.dead_letters.write_text(json.dumps({**last, "document": line("d", number=4)}) + "\n")
    done = send_again(load)
    assert done.returncode == 0, done
    assert done.stdout == (
        f"Replayed 1 dead letter of {load.index}: 1 indexed, 0 superseded by a later version of the document, "
        "none remain.\n"
    )
    assert not load.place.dead_letters.exists()
    assert indexed(client, load) == {"a": 1, "b": 2, "c": 3, "d": 4}
    found = client.get(index=load.index, id="d")
    assert found["_version"] == next(letter["version"] for letter in letters if letter["line"] == 5)
    assert found["_source"]["shift"]
    assert replay(load) == (0, counts(0, 0, 0, 0))


def test_what_was_updated_later_is_not_overwritten(client, with_letters):
    load = with_letters
    mend(load, c=line("c", number=3), d=line("d", number=4))
    write(load, line("c", number=33), {"_op": "delete", "_id": "a"})
    assert load.run("--if-exists", "append").returncode == 0
    assert replay(load) == (3, counts(3, 1, 1, 1))
    assert indexed(client, load) == {"b": 2, "c": 33, "d": 4}
    assert [letter["line"] for letter in load.letters()] == [3]


def test_a_delete_that_was_refused_can_be_mended(client, load):
    write(load, line("a", number=1), {"_op": "delete", "_id": "x" * 600})
    assert load.run().returncode == 3
    (letter,) = load.letters()
    mend(load, **{letter["_id"] or "None": {"_op": "delete", "_id": "a"}})
    if letter["_id"] is None:
        path = load.place.dead_letters
        path.write_text(json.dumps({**letter, "document": json.dumps({"_op": "delete", "_id": "a"})}) + "\n")
    assert replay(load) == (0, counts(1, 1, 0, 0))
    assert indexed(client, load) == {}


def test_letters_wait_for_a_load_that_was_cut_off(with_letters):
    load = with_letters
    write(load, *(line(f"more{n}") for n in range(4000)))
    load.proxy.inject("_bulk", repeat(delayed(0.5)))
    command = ["ingest", load.corpus, *load.arguments, "--if-exists", "append"]
    killed_after(load, command, bulks=len(load.proxy.bulks) + 2)
    load.proxy.clear()
    said = refusal(send_again(load))
    assert said == f"The load of {load.corpus} into {load.index} was interrupted: continue it with --resume first."
    assert load.run("--if-exists", "append", "--resume").returncode == 0
    assert replay(load)[0] == 3


def test_killed_while_it_replays_nothing_is_lost(client, load):
    lines = [line(f"d{n}", number="none") for n in range(2500)]
    write(load, line("first", number=0), *lines)
    assert load.run().returncode == 3
    assert len(load.letters()) == 2500
    mend(load, **{f"d{n}": line(f"d{n}", number=n) for n in range(2500)})
    before = load.place.dead_letters.read_bytes()
    load.proxy.inject("_bulk", [delayed(0), *repeat(delayed(2), 10)])
    command = ["ingest", "--dead-letters", "--index", load.index]
    killed_after(load, command, bulks=len(load.proxy.bulks) + 2)
    load.proxy.clear()
    assert load.place.dead_letters.read_bytes() == before
    assert replay(load) == (0, counts(2500, 2500, 0, 0))
    client.indices.refresh(index=load.index)
    assert client.count(index=load.index)["count"] == 2501


def test_letters_of_an_index_made_otherwise_are_refused(with_letters):
    load = with_letters
    making = json.loads(load.place.pipeline_options.read_text())
    load.place.pipeline_options.write_text(json.dumps({**making, "encoder": "given:other"}))
    before = load.place.dead_letters.read_bytes()
    said = refusal(send_again(load))
    assert said.startswith(f"Index {load.index} was built with encoder given, not given:other")
    assert said.endswith(": load these documents again with the settings the index was built with.")
    # One of an earlier version has options that there are no longer.
    load.place.pipeline_options.write_text(json.dumps({**making, "soft": False}))
    for _ in range(2):
        assert refusal(send_again(load)) == (
            f"{load.place.pipeline_options} does not show how the documents of {load.index} are built: load those in "
            f"{load.place.dead_letters} again with `langshift ingest`."
        )
        load.place.pipeline_options.unlink(missing_ok=True)
    assert load.place.dead_letters.read_bytes() == before


def killed_after(load, command, bulks):
    """Start a command and kill it once so many bulk requests have come through."""
    with started(*command, **load.environment) as process:
        deadline = time.monotonic() + 120
        while len(load.proxy.bulks) < bulks:
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()


@pytest.mark.usefixtures("cluster_env")
def test_after_a_retune_they_take_the_shift_that_the_index_has_now(client, index_name, tmp_path):
    corpus = Corpus(tmp_path, each=1)
    with corpus.path.open("a") as file:
        file.write("no JSON\n")
    known = language_vectors(alpha=1.0)
    options = ("--index", index_name, "--encoder", "given", "--vectors", saved(tmp_path, known), "--alpha", 1)
    assert run("ingest", corpus.path, *options).exit_code == 3
    printed(run("retune", index_name, "--alpha", 0.3, "--json"))
    letters = LoadWorkspace.of(Settings.from_env().home, client, index_name).dead_letters
    letter = json.loads(letters.read_text())
    letters.write_text(json.dumps(letter | {"document": json.dumps(corpus.line("de-0") | {"_id": "mended"})}) + "\n")
    assert printed(run("ingest", "--dead-letters", "--index", index_name, "--json"))["left"] == 0
    stored = sources(client, index_name)["mended"]
    assert (stored["shift"]["alpha"], stored["shift"]["vectors"]) == (0.3, known.hash)
    np.testing.assert_allclose(stored["embedding"], corpus.expected("de-0", known, 0.3), rtol=1e-5)

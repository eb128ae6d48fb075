"""Clocks: what was loaded later wins, whatever time a machine takes it for, or the load says why it does not."""

import json
import re
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import langshift, refusal

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin import metadata, versions
from langshift.settings import Settings

HOUR = 3600
AHEAD = re.compile(
    r"\S+ holds versions of documents up to (?P<there>[-\d]+ [:\d]+ UTC), but the server's time is "
    r"(?P<now>[-\d]+ [:\d]+ UTC): a machine that has loaded it had a wrong clock. The versions of this load continue "
    r"from there\."
)
TEXTS = {"Das Meer steigt.": "de", "The sea rises.": "en"}
OLD, NEW = TEXTS
NAMES = [f"d{number}" for number in range(30)]


def whole(text, number, names=NAMES):
    return [{"_id": name, "text": text, "language": TEXTS[text], "number": number} for name in names]


@contextmanager
def clock(seconds):
    """This machine's clock so far ahead."""
    real = time.time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + seconds)
        yield


def version(seconds):
    """The version of a document that was loaded so many seconds from now, by the clock of who loaded it."""
    return time.time_ns() // 1_000_000 + 1000 * seconds << 20


@pytest.fixture
def ingest(cluster_env, index_name, corpus):
    def run(lines, *more, exists="append", **named):
        arguments = ["ingest", corpus(*lines), "--index", index_name, "--if-exists", exists, "--json", *more]
        return langshift(*arguments, url=cluster_env, **named)

    return run


def write_ahead(client, index, ids, seconds=HOUR, op="index"):
    """Write documents again, as a machine did whose clock was ahead; the last of them has the highest version."""
    held = client.mget(index=index, body={"ids": ids})["docs"]
    first, body = version(seconds), []
    for number, hit in enumerate(held):
        action = {"_id": hit["_id"], "version": first + number, "version_type": "external_gte"}
        body += [{op: action}, *([hit["_source"]] if op == "index" else [])]
    assert not client.bulk(body=body, index=index, params={"pipeline": "_none", "refresh": "true"})["errors"]


def write_since(client, index):
    """Write so many other documents as any client, that those before are no longer among the last."""
    body = [line for number in range(250) for line in ({"index": {"_id": f"plain{number}"}}, {"number": 0})]
    assert not client.bulk(body=body, index=index, params={"pipeline": "_none", "refresh": "true"})["errors"]


def numbers(client, index):
    client.indices.refresh(index=index)
    found = client.search(index=index, body={"size": 1000, "query": {"exists": {"field": "text"}}})["hits"]["hits"]
    return {hit["_id"]: hit["_source"].get("number") for hit in found if hit["_id"] in NAMES}


def require_said(done, name):
    (found,) = (found for line in done.stderr.splitlines() if (found := AHEAD.fullmatch(line)))
    there, now = found["there"], found["now"]
    assert there > now, done.stderr
    assert name in done.stderr


ALL_TWO = dict.fromkeys(NAMES, 2)
KINDS = pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(whole(NEW, 2), ALL_TWO, id="index"),
        pytest.param([{"_op": "delete", "_id": name} for name in NAMES], {}, id="delete"),
        pytest.param([{"_op": "update", "_id": name, "number": 2} for name in NAMES], ALL_TWO, id="update"),
        pytest.param(
            [*whole(NEW, 1), *({"_op": "delete", "_id": name} for name in NAMES), *whole(NEW, 3, NAMES[:10])],
            dict.fromkeys(NAMES[:10], 3),
            id="mixed",
        ),
    ],
)


@pytest.fixture(scope="module")
def making():
    return build_pipeline(open_encoder("use-m"), open_detector(), None, None)


@KINDS
def test_a_load_on_a_machine_whose_clock_is_ahead_keeps_no_later_one_from_anything(
    client, index_name, ingest, tmp_path, lines, expected
):
    assert ingest(whole(OLD, 0)).returncode == 0
    with clock(HOUR):
        assert ingest(whole(OLD, 1)).returncode == 0
    # Another machine, which knows nothing of the first one's loads.
    done = ingest(lines, LANGSHIFT_HOME=tmp_path)
    assert done.returncode == 0, done
    assert numbers(client, index_name) == expected
    assert "later version" not in done.stderr
    assert client.get(index=index_name, id="d0", params={"ignore": 404}).get("_version", 0) < version(60)


@KINDS
@pytest.mark.parametrize("known", ["at once", "when met"])
def test_what_was_loaded_ahead_of_the_servers_time_before_is_continued_from(
    client, index_name, ingest, tmp_path, lines, expected, known
):
    assert ingest(whole(OLD, 0)).returncode == 0
    write_ahead(client, index_name, NAMES)
    if known == "when met":
        write_since(client, index_name)
    done = ingest(lines)
    assert done.returncode == 0, done
    assert numbers(client, index_name) == expected
    require_said(done, index_name)
    summary = json.loads(done.stdout)
    assert (summary["lines"], summary["superseded"]) == (len(lines), 0)
    # Whoever comes next, from elsewhere, is later still, although it meets none of those.
    write_since(client, index_name)
    again = ingest(whole(OLD, 9), LANGSHIFT_HOME=tmp_path)
    assert again.returncode == 0, again
    assert numbers(client, index_name) == dict.fromkeys(NAMES, 9)
    require_said(again, index_name)


def test_a_delete_that_was_ahead_of_the_servers_time_keeps_no_later_document_out(client, index_name, ingest):
    assert ingest(whole(OLD, 0)).returncode == 0
    write_ahead(client, index_name, NAMES, op="delete")
    bad = {"_id": "bad", "text": "", "language": "de"}
    done = ingest([bad, *whole(NEW, 2)])
    assert done.returncode == 3, done
    require_said(done, index_name)
    assert numbers(client, index_name) == ALL_TWO
    # Begun again, the load has not written its dead letter twice.
    listed = json.loads(langshift("dead-letters", "list", "--index", index_name, "--json").stdout)
    assert listed["total"] == 1


def test_documents_in_chunks_are_continued_from_and_leave_no_chunk_behind(client, index_name, ingest):
    longer = [{**one, "text": f"{OLD} {OLD} {OLD}"} for one in whole(OLD, 0, NAMES[:5])]
    assert ingest(longer, "--chunk", "sentences:1").returncode == 0
    write_ahead(client, index_name, [f"{name}#{n:04}" for name in NAMES[:5] for n in range(3)])
    write_since(client, index_name)
    gone = [{"_op": "delete", "_id": name} for name in NAMES[3:5]]
    renamed = [{"_op": "update", "_id": "d2", "number": 5}]
    done = ingest([*whole(NEW, 2, NAMES[:2]), *renamed, *gone])
    assert done.returncode == 0, done
    require_said(done, index_name)
    body = {"size": 100, "query": {"exists": {"field": "text"}}, "_source": ["number"]}
    hits = client.search(index=index_name, body=body)["hits"]["hits"]
    assert {hit["_id"]: hit["_source"]["number"] for hit in hits} == {
        "d0#0000": 2, "d1#0000": 2, "d2#0000": 5, "d2#0001": 5, "d2#0002": 5
    }  # fmt: skip


def test_from_standard_input_the_load_fails_with_both_times_and_the_next_continues(
    client, cluster_env, index_name, ingest
):
    assert ingest(whole(OLD, 0)).returncode == 0
    write_ahead(client, index_name, NAMES)
    write_since(client, index_name)
    lines = "".join(json.dumps(line) + "\n" for line in whole(NEW, 2)).encode()
    arguments = ["ingest", "-", "--index", index_name, "--if-exists", "append"]
    done = langshift(*arguments, url=cluster_env, stdin=lines)
    assert done.returncode == 1, done
    assert re.search(
        rf"Error: {index_name}-v0001 holds a document with a version of [-\d]+ [:\d]+ UTC, but the server's time is "
        r"[-\d]+ [:\d]+ UTC: a machine that has loaded it had a wrong clock\. Run the load again: its versions will "
        r"continue from there\.",
        done.stderr,
    ), done
    assert langshift(*arguments, url=cluster_env, stdin=lines).returncode == 0
    assert numbers(client, index_name) == ALL_TWO


@pytest.mark.parametrize("known", ["at once", "when met"])
def test_after_the_highest_version_of_all_nothing_can_be_loaded(client, index_name, ingest, known):
    assert ingest(whole(OLD, 0)).returncode == 0
    body = {"text": {"de": OLD}, "language": "de"}
    highest = {"version": 2**63 - 1, "version_type": "external", "refresh": "true"}
    client.index(index=index_name, id="d0", body=body, params=highest)
    if known == "when met":
        write_since(client, index_name)
    sentence = refusal(ingest(whole(NEW, 2)))
    assert sentence.startswith(
        f"{index_name}-v0001 holds a document with the version 9223372036854775807, after which there is none: load "
        "the whole corpus with --if-exists replace or new-version."
    )
    if known == "at once":
        assert ingest(whole(NEW, 2), exists="replace").returncode == 0
        assert numbers(client, index_name) == ALL_TWO


def test_a_dead_letter_is_not_superseded_by_what_is_ahead_of_the_servers_time(client, index_name, ingest):
    assert ingest(whole(OLD, 0)).returncode == 0
    done = ingest([{"_id": "d0", "text": NEW, "language": "en", "number": "seven"}])
    assert done.returncode == 3, done
    path = Path(json.loads(done.stdout)["dead_letters"])
    path.write_text(path.read_text().replace(r"\"seven\"", "7"))
    write_ahead(client, index_name, ["d0"])
    replayed = langshift("ingest", "--dead-letters", "--index", index_name, "--json")
    assert (replayed.returncode, json.loads(replayed.stdout)["left"]) == (3, 1), replayed
    (group,) = json.loads(langshift("dead-letters", "list", "--index", index_name, "--json").stdout)["groups"]
    assert group["type"] == "version_ahead"
    assert re.fullmatch(
        r"the index holds it with a version of [-\d]+ [:\d]+ UTC, but the server's time is [-\d]+ [:\d]+ UTC, so "
        r"nobody knows which is the later one: load the document again",
        group["example"]["reason"],
    )
    assert ingest(whole(NEW, 7, ["d0"])).returncode == 0
    assert numbers(client, index_name)["d0"] == 7


def test_a_load_that_is_resumed_begins_again_where_it_meets_one(client, index_name, ingest, corpus, making):
    assert ingest(whole(OLD, 0)).returncode == 0
    lines = [*whole(NEW, 1, ["n0", "n1"]), *whole(NEW, 2)]

    def interrupt(stage, documents, _seconds):
        if stage == "write" and documents:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(client, corpus(*lines), index_name, making, interrupt, LoadOptions("append"))
    with Journal(LoadWorkspace.of(Settings.from_env().home, client, index_name).journal) as journal:
        # As where a process is killed.
        journal.forget(range(3, 33))
    write_ahead(client, index_name, NAMES)
    summary = load(client, corpus(*lines), index_name, making, options=LoadOptions("append", resume=True))
    assert (summary.lines, summary.superseded, summary.replaced) == (32, 0, 0)
    assert numbers(client, index_name) == ALL_TWO


def test_a_load_of_a_new_version_is_later_than_the_machines_last(client, index_name, ingest):
    """So that dead letters of the loads before are known for older ones, whatever clock they were loaded by."""
    assert ingest(whole(OLD, 0)).returncode == 0
    write_ahead(client, index_name, NAMES)
    bad = {"_id": "bad", "text": "", "language": "de"}
    assert ingest([*whole(OLD, 1), bad]).returncode == 3
    done = ingest(whole(NEW, 2), exists="replace")
    assert done.returncode == 0, done
    require_said(done, index_name)
    listed = json.loads(langshift("dead-letters", "list", "--index", index_name, "--json").stdout)
    assert listed["total"] == 0
    noted = metadata.read_metadata(client, versions.live(client, index_name).index)[metadata.VERSION_BASE]
    assert noted > version(HOUR - 60)

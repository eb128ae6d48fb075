"""What a load has made goes live only where enough of it is there; else it is kept aside, and can be published."""

import json
import re
from uuid import uuid4

import embeddings_server
import pytest
from command_line import langshift, refusal
from nothing_lost import read_letters
from small_old_index import ADOPTED, old_index

from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.plugin import metadata, version_writer, versions
from langshift.plugin.inventory import versions_of
from langshift.settings import Settings

LIVE = 4
VECTOR = [1.0, 2.0, 0.5, 0.25]


def document(number, **more):
    vector = [1.0, 1 + number / 100, 0.5, 0.25]
    return {"_id": str(number), "text": f"text {number}", "language": "en", "n": number, "embedding": vector, **more}


def documents(count):
    return [document(number) for number in range(count)]


#: Every way in which a line is refused: what cannot be read, what is no document, what the server does not take.
REFUSED = {
    "no JSON": '{"text": "broken',
    "no object": "[1, 2]",
    "no text": {"_id": "bad", "embedding": VECTOR},
    "no language": document(9, language="xx"),
    "no vector": {"_id": "bad", "text": "text"},
    "a vector of another dimension": document(9, embedding=[1.0, 2.0]),
    "a vector without a direction": document(9, embedding=[0.0] * 4),
    "no number": document(9, embedding=["one", 2, 3, 4]),
    "an id that is too long": document(9, _id="x" * 600),
    "an id that is none": document(9, _id={"a": 1}),
    "no operation": document(9, _op="upsert"),
    "an update of what is not there": {"_id": "absent", "_op": "update", "n": 3},
    "another type of field": document(9, n={"a": 1}),
    "a value that its field does not take": document(9, n="not a number"),
}


def corpus(path, lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def ingest(url, path, name, *options):
    return langshift("ingest", path, "--index", name, "--encoder", "given", "--alpha", 0, *options, url=url)


def states(client, name):
    """Version -> its state, and how many documents it holds."""
    client.indices.refresh(index=f"{name}-v*")
    return {one.version.removeprefix(f"{name}-"): (one.state, one.documents) for one in versions_of(client, name)}


def letters(client, name):
    return read_letters(LoadWorkspace.of(Settings.from_env().home, client, name).dead_letters)


@pytest.fixture(scope="module")
def shared(client, cluster_url, tmp_path_factory):
    """A live index that no load of this module may replace."""
    name = f"langshift-test-{uuid4().hex[:8]}"
    done = ingest(cluster_url, corpus(tmp_path_factory.mktemp("live") / "live.jsonl", documents(LIVE)), name)
    assert done.returncode == 0, done
    yield name
    client.indices.delete(index=f"{name}-v*")


@pytest.fixture
def live(cluster_env, index_name, tmp_path):
    done = ingest(cluster_env, corpus(tmp_path / "live.jsonl", documents(LIVE)), index_name)
    assert done.returncode == 0, done
    return index_name


@pytest.mark.parametrize("kind", REFUSED)
def test_what_was_refused_does_not_replace_what_is_live(client, cluster_env, shared, tmp_path, kind):
    path = corpus(tmp_path / "bad.jsonl", [*documents(LIVE), *[REFUSED[kind]] * 3])
    if_exists = ("replace", "new-version")[list(REFUSED).index(kind) % 2]
    sentence = refusal(ingest(cluster_env, path, shared, "--if-exists", if_exists))
    (kept,) = versions_of(client, shared)[-1:]
    assert sentence == (
        f"{shared} still points to {shared}-v0001, because 3 of 7 lines were refused (langshift dead-letters list "
        f"--index {shared} shows why), more than the share of 0.1 that --max-refused allows: the new version is kept "
        f"aside as {kept.version}, and `langshift rollback {shared} --to {kept.version}` publishes it all the same."
    )
    assert versions.version_behind(client, shared) == f"{shared}-v0001"
    assert client.count(index=shared)["count"] == LIVE
    assert (kept.state, kept.documents, kept.unfinished) == ("kept", LIVE, None)
    settings = metadata.read_settings(client, kept.version)
    assert (settings.get("refresh_interval"), settings["auto_expand_replicas"]) == (None, "0-1")
    assert len([one for one in letters(client, shared) if one["corpus"] == str(path)]) == 3


# The first document tells what vectors a corpus brings, so it is the server that refuses this one.
UNDATED = document(1, when="never")
DATED = ("--date-field", "when")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        *[([UNDATED, line, line], "3 of 3 lines were refused") for line in (REFUSED["no JSON"], REFUSED["no text"])],
        ([document(1), {"_id": "1", "_op": "delete"}], "none of the 2 lines leaves one"),
        ([document(1, n=1), document(1, n={"a": 1}), {"_id": "1", "_op": "delete"}], "1 of 3 lines was refused"),
    ],
    ids=["all refused", "all refused, too", "all deleted", "refused and deleted"],
)
def test_a_first_load_that_ends_empty_leaves_no_index(client, cluster_env, index_name, tmp_path, lines, found):
    dated = DATED if UNDATED in lines else ()
    done = ingest(cluster_env, corpus(tmp_path / "empty.jsonl", lines), index_name, *dated)
    told = f" (langshift dead-letters list --index {index_name} shows why)" if "refused" in found else ""
    assert (done.returncode, done.stdout) == (1, "")
    sentence = done.stderr.splitlines()[-1]
    assert sentence == f"Error: No index {index_name} was created, because it would hold no document: {found}{told}."
    assert client.indices.get(index=f"{index_name}*") == {}
    assert len(letters(client, index_name)) == (int(found[0]) if told else 0)
    # Nothing is left that could be resumed, and the next load begins anew.
    done = ingest(cluster_env, corpus(tmp_path / "good.jsonl", documents(1)), index_name, "--resume")
    assert done.returncode == 0, done
    assert states(client, index_name) == {"v0001": ("live", 1)}


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        (documents(1), "1 document"),
        ([*documents(1)] * 20, "1 document"),
        ([*documents(LIVE), *[{"_id": str(n), "_op": "delete"} for n in range(1, LIVE)]], "1 document"),
        ([document(0), {"_id": "0", "_op": "delete"}], "0 documents"),
    ],
    ids=["fewer", "the same again and again", "deleted", "none"],
)
def test_less_than_half_does_not_replace_what_is_live(client, cluster_env, shared, tmp_path, lines, held):
    done = ingest(cluster_env, corpus(tmp_path / "few.jsonl", lines), shared, "--if-exists", "replace", "--json")
    (kept,) = versions_of(client, shared)[-1:]
    old, new = f"{shared}-v0001", kept.version
    assert done.returncode == 1, done
    assert done.stderr.splitlines()[-1] == (
        f"Error: {shared} still points to {old}, because the new version holds {held} and {old} holds {LIVE}: the new "
        f"version is kept aside as {new}, and `langshift rollback {shared} --to {new}` publishes it all the same."
    )
    shown = json.loads(done.stdout)
    assert (shown["published"], shown["index"], shown["present"]) == (False, kept.version, int(held[0]))
    assert versions.version_behind(client, shared) == f"{shared}-v0001"


@pytest.mark.parametrize(
    ("lines", "options", "code", "present"),
    [
        ([*documents(2), *[{"_id": "0", "_op": "update", "n": 3}] * 40, *[REFUSED["no JSON"]] * 4], [], 3, 2),
        ([*documents(LIVE), *[{"_id": "absent", "_op": "delete"}] * 40], [], 0, LIVE),
        ([*[document(n % 2) for n in range(40)], REFUSED["no text"]], [], 3, 2),
        ([*documents(LIVE), *[REFUSED["no text"]] * LIVE], ["--max-refused", 0.5], 3, LIVE),
    ],
    ids=["updates", "deletes of nothing", "repeated", "as many as are allowed"],
)
def test_only_what_is_refused_counts(client, cluster_env, live, tmp_path, lines, options, code, present):
    path = corpus(tmp_path / "corpus.jsonl", lines)
    done = ingest(cluster_env, path, live, "--if-exists", "replace", *options, "--json")
    assert done.returncode == code, done
    shown = json.loads(done.stdout)
    assert (shown["published"], shown["index"]) == (True, f"{live}-v0002")
    assert states(client, live) == {"v0002": ("live", present)}


def test_none_may_be_refused_where_that_is_asked_for(client, cluster_env, shared, tmp_path):
    path = corpus(tmp_path / "corpus.jsonl", [*documents(40), REFUSED["no text"]])
    assert "because 1 of 41 lines was refused" in refusal(
        ingest(cluster_env, path, shared, "--if-exists", "replace", "--max-refused", 0)
    )
    assert ingest(cluster_env, path, shared, "--if-exists", "replace", "--max-refused", 1.5).returncode == 2
    assert client.count(index=shared)["count"] == LIVE


def test_adding_to_an_index_is_as_before(client, cluster_env, shared, tmp_path):
    lines = [document(1, n="not a number"), REFUSED["no JSON"]]
    done = ingest(cluster_env, corpus(tmp_path / "bad.jsonl", lines), shared, "--if-exists", "append")
    assert done.returncode == 3, done
    assert client.count(index=shared)["count"] == LIVE


def test_a_version_that_was_kept_aside_is_published_when_a_person_says_so(client, cluster_env, live, tmp_path):
    path = corpus(tmp_path / "bad.jsonl", [document(7), "{", "{"])
    sentence = refusal(ingest(cluster_env, path, live, "--if-exists", "replace"))
    before = letters(client, live)
    # Resumed, it is said again, and nothing is loaded again.
    again = ingest(cluster_env, path, live, "--if-exists", "replace", "--resume", "--json")
    assert (again.returncode, again.stderr) == (1, f"Error: {sentence}\n")
    shown = json.loads(again.stdout)
    assert (shown["published"], shown["index"], shown["present"], shown["dead"]) == (False, f"{live}-v0002", 1, 2)
    assert letters(client, live) == before
    # It is no version before the live one, and nobody clears it away.
    assert refusal(langshift("rollback", live)).startswith(f"There is no version of {live} before {live}-v0001: ")
    assert states(client, live) == {"v0001": ("live", LIVE), "v0002": ("kept", 1)}
    to = re.search(r"`langshift (.*)`", sentence)[1].split()
    assert langshift(*to).stdout == (
        f"{live} now points to {live}-v0002: 1 document. What was loaded into or written to {live}-v0001 is not in it. "
        f"{live}-v0001 is kept: `langshift rollback {live}` returns to it.\n"
    )
    assert states(client, live) == {"v0001": ("kept", LIVE), "v0002": ("live", 1)}
    done = ingest(cluster_env, path, live, "--if-exists", "replace", "--resume")
    assert (done.returncode, "already complete" in done.stderr) == (3, True), done
    assert langshift("rollback", live).stdout.startswith(f"{live} points to {live}-v0001 again: {LIVE} documents. ")
    assert states(client, live) == {"v0001": ("live", LIVE), "v0002": ("kept", 1)}


def test_the_next_load_leaves_a_version_that_was_kept_aside(client, cluster_env, live, tmp_path):
    path = corpus(tmp_path / "bad.jsonl", [document(7), "{", "{"])
    refusal(ingest(cluster_env, path, live, "--if-exists", "replace"))
    good = corpus(tmp_path / "good.jsonl", documents(3))
    assert ingest(cluster_env, good, live, "--if-exists", "replace").returncode == 0
    assert states(client, live) == {"v0002": ("kept", 1), "v0003": ("live", 3)}
    assert langshift("rollback", live, "--to", "2", "--json").returncode == 0
    # Of three versions the one that was live before is the third.
    done = langshift("rollback", live, "--json")
    assert json.loads(done.stdout)["index"] == f"{live}-v0003"


@pytest.mark.parametrize("form", ["{}-v0002", "v0002", "2"])
def test_a_version_is_named_as_in_other_commands(client, cluster_env, shared, live, tmp_path, form):  # noqa: ARG001
    good = corpus(tmp_path / "good.jsonl", documents(3))
    assert ingest(cluster_env, good, live, "--if-exists", "new-version").returncode == 0
    assert refusal(langshift("rollback", live, "--to", form.format(live))) == (
        f"{live} already points to {live}-v0002: name another version, or leave --to out."
    )
    assert langshift("rollback", live, "--to", form.replace("2", "1").format(live)).returncode == 0
    assert langshift("rollback", live, "--to", form.format(live)).returncode == 0
    assert versions.version_behind(client, live) == f"{live}-v0002"


@pytest.mark.parametrize(
    ("version", "code", "sentence"),
    [
        ("9", 2, "{0} has no version '9': it has {0}-v0001, {0}-v0002."),
        ("other-v0001", 2, "{0} has no version 'other-v0001': it has {0}-v0001, {0}-v0002."),
        ("1", 2, "{0} already points to {0}-v0001: name another version, or leave --to out."),
        (
            "2",
            1,
            "Version {0}-v0002 is not finished: a command is still writing it or was interrupted. Run that command "
            "again, or remove the version with `langshift index drop {0} --version {0}-v0002`.",
        ),
    ],
)
def test_what_cannot_be_published_is_refused(client, cluster_env, live, version, code, sentence):  # noqa: ARG001
    made_with = versions.live(client, f"{live}-v0001").fingerprint
    version_writer.open_for_writing(client, live, made_with, if_exists="replace")
    done = langshift("rollback", live, "--to", version)
    assert (done.returncode, refusal(done)) == (code, sentence.format(live))
    assert states(client, live) == {"v0001": ("live", LIVE), "v0002": ("unfinished", 0)}
    none = f"{live}-none"
    assert refusal(langshift("rollback", none, "--to", 1)) == f"There is no index {none}: nothing can be rolled back."


def test_an_adoption_of_entries_that_are_refused_does_not_replace_what_is_live(client, cluster_env, live):
    several = {str(number): {"body": "text", "doc": ["a", "b"]} for number in range(8)}
    entries = {"a": {"body": "text", "doc": "a"}, "b": {"body": "text", "doc": "b"}, **several}
    options = ("--text-field", "body", "--parent-field", "doc", "--name", live, *ADOPTED)
    properties = {"body": {"type": "text"}, "doc": {"type": "keyword"}}
    with old_index(client, f"old-{live}", properties, entries) as old:
        adopt = ("adopt", old, *options, "--if-exists", "replace")
        done = langshift(*adopt, "--json", url=cluster_env)
        assert done.returncode == 1, done
        assert done.stderr.splitlines()[-1].startswith(
            f"Error: {live} still points to {live}-v0001, because 8 of 10 lines were refused ("
        )
        shown = json.loads(done.stdout)
        assert (shown["published"], shown["index"], shown["dead"]) == (False, f"{live}-v0002", 8)
        assert states(client, live) == {"v0001": ("live", LIVE), "v0002": ("kept", 2)}
        done = langshift(*adopt[:-1], "new-version", "--max-refused", 0.8, url=cluster_env)
        assert done.returncode == 3, done
    assert versions.version_behind(client, live) == f"{live}-v0003"
    # What a load replaces is the version before, also where it is an adoption.
    assert langshift("rollback", live).stdout.startswith(f"{live} points to {live}-v0001 again: {LIVE} documents. ")


@pytest.mark.parametrize("lost", ["no text", "no vector of it"])
def test_a_reencode_that_loses_vectors_replaces_nothing(client, cluster_env, index_name, lost, monkeypatch):
    usual = embeddings_server.vector
    zero = {"text 1", "text 2"} if lost == "no vector of it" else set()
    monkeypatch.setattr(embeddings_server, "vector", lambda text, **how: usual(text, **how) * (text not in zero))
    bodies = [{"body": f"text {n}"} if n > 2 or zero else {} for n in range(1, 5)]
    properties = {"body": {"type": "text"}}
    with (
        embeddings_server.embeddings_server() as server,
        old_index(client, f"old-{index_name}", properties, {str(n): one for n, one in enumerate(bodies, 1)}) as old,
    ):
        adopted = langshift("adopt", old, "--text-field", "body", "--name", index_name, *ADOPTED, url=cluster_env)
        assert adopted.returncode == 0, adopted
        reencode = ("reencode", index_name, "--encoder", server.name, "--alpha", 0)
        sentence = refusal(langshift(*reencode, url=cluster_env))
        assert sentence == (
            f"2 of 4 documents would be left without a vector, because they have no text or {server.name} makes no "
            f"usable vector of it, so {index_name} still points to {index_name}-v0001: that is more than the share of "
            "0.1 that --max-refused allows."
        )
        assert states(client, index_name) == {"v0001": ("live", 4)}
        done = langshift(*reencode, "--max-refused", 0.5, "--json", url=cluster_env)
        assert (done.returncode, json.loads(done.stdout)["without_vector"]) == (0, 2), done

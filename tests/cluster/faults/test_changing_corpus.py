"""A corpus that changes while it is loaded is not published; one that is replaced or removed is loaded as it was."""

import gzip
import json
import os
import sys
import uuid

import pytest
from command_line import langshift
from nothing_lost import read_letters

from langshift import corpus_file
from langshift.debias.encoders.base import Encoder
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.load import LoadRun
from langshift.plugin import versions
from langshift.plugin.inventory import drop_all
from langshift.settings import Settings

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pa = pytest.importorskip("pyarrow", reason="Parquet needs an extra: pip install 'langshift[parquet]'")
from pyarrow import parquet  # noqa: E402

LINES = 600


def rows(kind, count=LINES):
    return [
        {"_id": f"{kind}{number}", "text": f"{kind} {number} {os.urandom(40).hex()}", "language": "en", "kind": kind}
        | {"embedding": [1.0, float(number)]}
        for number in range(count)
    ]


def plain(found):
    return "".join(json.dumps(row) + "\n" for row in found).encode()


def columns(found):
    out = pa.BufferOutputStream()
    options = {"compression": "none", "use_dictionary": False}
    parquet.write_table(pa.Table.from_pylist(found), out, row_group_size=50, **options)
    return out.getvalue().to_pybytes()


FORMATS = {
    "plain": plain,
    "gzip": lambda found: gzip.compress(plain(found)),
    "zstd": lambda found: zstd.compress(plain(found)),
    "parquet": columns,
}


def truncated(path, write):
    """As an export job leaves it that opens its file again."""
    path.write_bytes(write(rows("new", LINES // 3)))


def cut(path, _write):
    os.truncate(path, path.stat().st_size // 2)


def emptied(path, _write):
    path.write_bytes(b"")


def appended(path, write):
    with path.open("ab") as file:
        file.write(write(rows("new", 10)))


def overwritten(path, write):
    with path.open("r+b") as file:
        file.write(write(rows("new")))
        file.truncate()


def overwritten_and_its_time_put_back(path, write):
    before = path.stat()
    overwritten(path, write)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncated_and_removed(path, write):
    truncated(path, write)
    path.unlink()


def removed(path, _write):
    path.unlink()


def renamed(path, _write):
    path.rename(path.with_name("elsewhere"))


def replaced(path, write):
    other = path.with_name("other")
    other.write_bytes(write(rows("new", LINES // 3)))
    other.replace(path)


def touched(path, _write):
    path.touch()


CHANGED = [truncated, appended, overwritten]
MORE = [cut, emptied, truncated_and_removed, overwritten_and_its_time_put_back]
AT_ONCE, RESUMED = "at once", "resumed"
REFUSED = [
    *((change, form, how) for change in CHANGED for form in FORMATS for how in (AT_ONCE, RESUMED)),
    *((change, form, AT_ONCE) for change in MORE for form in ("plain", "parquet")),
]
LOADED = [
    *((change, form) for change in (removed, replaced) for form in FORMATS),
    *((change, "plain") for change in (renamed, touched)),
]
ADDED = [(overwritten, "plain"), (overwritten, "parquet"), (appended, "gzip"), (truncated, "zstd")]


def label(value):
    return getattr(value, "__name__", value)


@pytest.fixture(scope="module")
def name(client):
    """An index that has 50 documents at first, and of which only complete loads take the place."""
    made = f"langshift-test-{uuid.uuid4().hex[:8]}"
    yield made
    drop_all(client, made)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A function that writes a corpus, of which little is read ahead."""
    monkeypatch.setattr(corpus_file, "_BLOCK", 4096)
    monkeypatch.setattr(Encoder, "batch", 50)

    def write(form, found):
        path = tmp_path / f"corpus.{form}"
        path.write_bytes(FORMATS[form](found))
        return path

    return write


def ingest(url, path, name, *more):
    return langshift("ingest", path, "--index", name, "--encoder", "given", "--alpha", "0", *more, url=url)


def at(monkeypatch, stage, action):
    """Have something done once, when the third batch has come so far."""
    seen, usual = [], LoadRun._stage

    def changing(run, now, documents, seconds):
        seen.extend([now] * (now == stage))
        if len(seen) == 3 and now == stage:
            action()
        usual(run, now, documents, seconds)

    monkeypatch.setattr(LoadRun, "_stage", changing)


def interrupt():
    raise KeyboardInterrupt


def told(done):
    return done.stderr.splitlines()[-1]


def state(client, name):
    """What an index stands for, its documents, its versions, and what a load has left."""
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
    live = versions.version_behind(client, name)
    client.indices.refresh(index=live)
    kept = place.journal.exists() and place.journal.stat().st_size > 0
    return live, client.count(index=live)["count"], sorted(versions.versions_of(client, name)), kept


def held(client, name, kind, count=LINES):
    """How many of the documents an index holds."""
    names = [row["_id"] for row in rows(kind, count)]
    return client.count(index=name, body={"query": {"ids": {"values": names}}})["count"]


@pytest.mark.parametrize(("change", "form", "how"), REFUSED, ids=label)
def test_what_changed_is_not_published(client, cluster_env, name, corpus, monkeypatch, change, form, how):
    if versions.version_behind(client, name) is None:
        assert ingest(cluster_env, corpus("plain", rows("live", 50)), name).returncode == 0
    before = state(client, name)
    path, more = corpus(form, rows("old")), ["--if-exists", "replace"]
    if how == RESUMED:
        with monkeypatch.context() as patch:
            at(patch, "shift", interrupt)
            assert "continue with --resume" in ingest(cluster_env, path, name, *more).stderr
        more.append("--resume")
    with monkeypatch.context() as patch:
        at(patch, "read", lambda: change(path, FORMATS[form]))
        done = ingest(cluster_env, path, name, *more)
    assert (done.returncode, done.stdout) == (1, "")
    assert told(done) == (
        f"Error: {path} changed while it was read. Nothing was published, and {name} is as it was: run the command "
        "again once nothing writes to the file any more, or load a copy of it."
    )
    assert state(client, name) == (*before[:3], False)
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
    assert read_letters(place.dead_letters) == []
    if change is overwritten:
        # Whatever it was, the next load is a new one.
        again = ingest(cluster_env, corpus(form, rows("new")), name, *more, "--resume")
        assert (again.returncode, client.count(index=name)["count"]) == (0, LINES)


@pytest.mark.parametrize(("change", "form"), LOADED, ids=label)
def test_what_only_lost_its_name_is_loaded_as_it_was(client, cluster_env, name, corpus, monkeypatch, change, form):
    path = corpus(form, rows("old"))
    with monkeypatch.context() as patch:
        at(patch, "read", lambda: change(path, FORMATS[form]))
        done = ingest(cluster_env, path, name, "--if-exists", "replace")
    assert done.returncode == 0, done
    assert f"All {LINES} lines of {path} are accounted for: {LINES} documents on the server" in done.stdout
    assert held(client, name, "old") == LINES


@pytest.mark.parametrize(("change", "form"), ADDED, ids=label)
def test_what_was_added_stays_and_is_told(client, cluster_env, index_name, corpus, monkeypatch, change, form):
    assert ingest(cluster_env, corpus("plain", rows("live", 50)), index_name).returncode == 0
    path, more = corpus(form, rows("old")), ["--if-exists", "append"]
    with monkeypatch.context() as patch:
        at(patch, "read", lambda: change(path, FORMATS[form]))
        done = ingest(cluster_env, path, index_name, *more)
    assert (done.returncode, done.stdout) == (1, "")
    assert told(done).startswith(f"Error: {path} changed while it was read. ")
    assert told(done).endswith(
        f" had been handled by then, and what they wrote stays in {index_name}-v0001: run the command again once "
        "nothing writes to the file any more, or load a copy of it."
    )
    assert held(client, index_name, "live", 50) == 50
    # None that the file got later, unless others were written over.
    if change is appended:
        assert held(client, index_name, "new") == 0
    path.write_bytes(FORMATS[form](rows("new")))
    again = ingest(cluster_env, path, index_name, *more, "--resume")
    assert again.returncode == 0, again
    assert held(client, index_name, "new") == LINES


def test_an_index_of_a_corpus_that_changes_is_not_created(client, cluster_env, index_name, corpus, monkeypatch):
    path = corpus("plain", [*rows("old"), {}, *rows("old")])
    with monkeypatch.context() as patch:
        at(patch, "shift", lambda: truncated(path, plain))
        done = ingest(cluster_env, path, index_name)
    assert done.returncode == 1
    assert f"Nothing was published, and {index_name} was not created: run" in done.stderr
    assert list(versions.versions_of(client, index_name)) == []


def test_a_change_before_an_interruption_cannot_be_resumed(client, cluster_env, index_name, corpus, monkeypatch):
    path = corpus("plain", rows("old"))

    def change():
        appended(path, plain)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        at(patch, "shift", change)
        done = ingest(cluster_env, path, index_name)
    assert done.returncode == 1
    assert f"{path} changed while it was read. Nothing was published" in done.stderr
    assert list(versions.versions_of(client, index_name)) == []

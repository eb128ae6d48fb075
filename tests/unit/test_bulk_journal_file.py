"""The journal's file: kills, full disks, other processes, other files; and who may read it."""

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections import Counter

import killed_load
import pytest
from measured_process import measured

from langshift.errors import LangshiftError
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import Acknowledged


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loads" / "news" / "journal.sqlite"


@pytest.fixture
def journal(path):
    with Journal(path) as opened:
        yield opened


def rows(first, last):
    return [Acknowledged(line, f"d{line}", "index") for line in range(first, last + 1)]


def run(code, path, **kwargs):
    return subprocess.run([sys.executable, "-c", code, str(path)], text=True, capture_output=True, timeout=60, **kwargs)


def test_a_kill_at_any_moment_takes_nothing_back_that_was_promised(tmp_path):
    chance = random.Random(6)
    first, promised = 1, set()
    for attempt in range(7):
        with subprocess.Popen(
            [sys.executable, killed_load.__file__, str(tmp_path), str(first)], stdout=subprocess.PIPE, text=True
        ) as process:
            # Some are killed while they begin, the others while they write.
            told = [process.stdout.readline()] if attempt % 2 else []
            killing = threading.Timer(chance.uniform(0, 0.15), process.kill)
            killing.start()
            told += process.stdout.readlines()
            killing.join()
        assert process.returncode == -signal.SIGKILL
        # A last line without its break was cut off.
        for begin, end in (line.split() for line in told if line.endswith("\n")):
            promised.update(range(int(begin), int(end) + 1))
        with Journal(tmp_path / "journal.sqlite") as journal:
            handled = journal.handled()
            assert [line for line in promised if line not in handled] == []
            with journal.reading() as database:
                counts = Counter(dict(database.execute("SELECT state, count(*) FROM lines GROUP BY state")))
            assert journal.documents()[0] == counts["index"] == len(handled) - counts["dead"]
            assert len(journal.sample()) <= 200
        letters = list(DeadLetters(tmp_path / "dead-letters.jsonl"))
        assert all(letter == killed_load.letter(letter.line) for letter in letters)
        lines = {letter.line for letter in letters}
        assert len(lines) == len(letters) >= counts["dead"]
        assert handled_dead(tmp_path) <= lines
        # The next one begins before the end, as a load does whose journal lacks what was sent last.
        first = max(1, len(handled) + 1 - 2 * killed_load.AT_ONCE)
    assert promised


def handled_dead(folder):
    database = sqlite3.connect(folder / "journal.sqlite")
    try:
        return {line for (line,) in database.execute("SELECT line FROM lines WHERE state = 'dead'")}
    finally:
        database.close()


def test_a_full_disk_is_told_and_leaves_the_journal_as_it_was(path):
    code = """
import resource, sys
from pathlib import Path
from langshift.errors import LangshiftError
from langshift.ingest.bulk.journal import Acknowledged, Journal
with Journal(Path(sys.argv[1])) as journal:
    journal.begin({"corpus": "corpus.jsonl"}, {})
    journal.acknowledge([Acknowledged(1, "d1", "index")])
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        journal.acknowledge([Acknowledged(line, f"d{line}", "index") for line in range(2, 50_000)])
    except LangshiftError as error:
        print(error)
    print(journal.handled().ranges())
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.acknowledge([Acknowledged(2, "d2", "index")])
"""
    done = run(code, path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{path} cannot be read or written (disk I/O error): check its permissions and the free space on the disk, "
        "then continue with --resume.",
        "[(1, 1)]",
    ]
    with Journal(path) as journal:
        assert journal.handled().ranges() == [(1, 2)]


OPEN_ONLY = """
import sys
from pathlib import Path
from langshift.errors import LangshiftError
from langshift.ingest.bulk.journal import Journal
try:
    Journal(Path(sys.argv[1])).close()
except LangshiftError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("begun", [True, False])
def test_a_second_process_at_the_same_journal_is_refused(journal, path, begun):
    if begun:
        journal.begin({}, {})
    done = run(OPEN_ONLY, path)
    assert done.stderr == "Another load into news is running: wait for it to finish, or stop it.\n"
    journal.acknowledge(rows(1, 2))
    journal.close()
    journal.close()
    assert run(OPEN_ONLY, path).returncode == 0


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_its_files_are_the_owners_alone_whatever_the_umask(path, umask):
    before = os.umask(umask)
    try:
        with Journal(path) as journal:
            journal.acknowledge(rows(1, 100))
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"journal.sqlite": 0o600, "journal.sqlite-wal": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_journal_that_was_removed_by_hand_after_a_kill_is_gone(path):
    code = """
import os, sys
from pathlib import Path
from langshift.ingest.bulk.journal import Acknowledged, Journal
journal = Journal(Path(sys.argv[1]))
journal.begin({"corpus": "corpus.jsonl"}, {})
journal.acknowledge([Acknowledged(1, "d1", "index")])
os._exit(0)
"""
    assert run(code, path).returncode == 0
    assert path.with_name("journal.sqlite-wal").stat().st_size
    path.unlink()
    with Journal(path) as journal:
        assert (journal.begun, len(journal.handled())) == (False, 0)
        journal.acknowledge(rows(1, 2))
    with Journal(path) as journal:
        assert journal.handled().ranges() == [(1, 2)]


def test_nothing_is_left_of_a_journal_that_was_removed(journal, path):
    journal.acknowledge(rows(1, 100))
    journal.remove()
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("begun", [False, True])
def test_a_journal_that_was_hardly_made_is_made_again(path, begun):
    path.parent.mkdir(parents=True)
    path.touch()
    if begun:
        # Killed between the first page and the tables.
        database = sqlite3.connect(path)
        database.execute("PRAGMA journal_mode = WAL")
        database.close()
    with Journal(path) as journal:
        assert (journal.begun, len(journal.handled())) == (False, 0)
        journal.acknowledge(rows(1, 1))
    with Journal(path) as journal:
        assert journal.handled().ranges() == [(1, 1)]


def test_a_damaged_journal_is_named(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(LangshiftError) as caught:
        Journal(path)
    assert (
        str(caught.value) == f"{path} is damaged (file is not a database): remove it, and start again without --resume."
    )


def test_a_journal_that_is_damaged_inside_is_named(path):
    with Journal(path) as journal:
        journal.acknowledge(rows(1, 5_000))
    content = bytearray(path.read_bytes())
    for page in range(4096 * 4, len(content), 4096):
        content[page : page + 200] = os.urandom(200)
    path.write_bytes(content)
    with Journal(path) as journal, pytest.raises(LangshiftError) as caught:
        journal.handled()
    assert str(caught.value) == (
        f"{path} is damaged (database disk image is malformed): remove it, and start again without --resume."
    )


def test_a_database_of_something_else_is_refused_and_left_alone(path):
    path.parent.mkdir(parents=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE birds (name TEXT)")
    database.close()
    with pytest.raises(LangshiftError) as caught:
        Journal(path)
    assert str(caught.value) == f"{path} is not the journal of a load: remove it, and start again without --resume."


def test_a_journal_of_another_version_is_refused(path):
    Journal(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 3")
    database.close()
    with pytest.raises(LangshiftError) as caught:
        Journal(path)
    assert str(caught.value) == (
        f"{path} was written by another version of langshift (format 3, not 2): continue with that version, or remove "
        "the file and start again without --resume."
    )


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "loads").touch()
    path = tmp_path / "loads" / "journal.sqlite"
    with pytest.raises(LangshiftError) as caught:
        Journal(path)
    assert str(caught.value) == f"{path} cannot be created (File exists): make its folder writable."


def test_memory_stays_flat_over_many_lines(path):
    code = """
import resource, sys
from pathlib import Path
from langshift.ingest.bulk.journal import Acknowledged, Journal
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with Journal(Path(sys.argv[1])) as journal:
    begin = peak()
    for first in range(1, 300_001, 1_000):
        lines = range(first, first + 1_000)
        journal.acknowledge([Acknowledged(line, f"a-rather-long-document-id-{line}", "index") for line in lines])
    assert journal.handled().ranges() == [(1, 300_000)]
    assert journal.documents()[0] == sum(1 for _ in journal.entries()) == 300_000
    print((peak() - begin) // 1024)
"""
    printed, _ = measured(sys.executable, "-c", code, path)
    assert int(printed) < 60

"""Dead letters: a file that loses none of them, whatever they hold and whatever stops the process."""

import datetime
import decimal
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langshift.errors import LangshiftError, UsageError
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, from_line, to_line

TIME = "2026-01-02T03:04:05Z"
ANY_TEXT = st.text(st.characters())
LETTERS = st.builds(
    DeadLetter,
    document=st.one_of(st.binary(), ANY_TEXT.map(lambda text: text.encode("utf-8", "replace"))),
    line=st.integers(1, 5),
    id=st.none() | ANY_TEXT,
    type=ANY_TEXT,
    reason=st.text(st.characters() | st.characters(categories=["Cs"])),
    stage=st.sampled_from(["read", "encode", "write"]),
    time=st.just(TIME),
    corpus=st.sampled_from(["a.jsonl", "b.jsonl"]),
    version=st.integers(1, 3),
)


def letter(line, **given):
    made = DeadLetter(
        f'{{"text": "{line}"}}'.encode(),
        line,
        f"d{line}",
        "mapper_parsing_exception",
        "no",
        "write",
        TIME,
        "c.jsonl",
        7,
    )
    return made._replace(**given)


def none(_):
    return False


@pytest.fixture
def path(tmp_path):
    return tmp_path / "news" / "dead-letters.jsonl"


@pytest.fixture
def letters(path):
    return DeadLetters(path)


def test_a_letter_stands_in_the_file_as_documented(letters, path):
    letters.add([letter(3, reason="«Ä»"), letter(4, document=b"\xff\n", id=None, stage="read")])
    assert path.read_text().splitlines() == [
        '{"document":"{\\"text\\": \\"3\\"}","line":3,"_id":"d3","type":"mapper_parsing_exception","reason":"«Ä»",'
        f'"stage":"write","time":"{TIME}","corpus":"c.jsonl","version":7}}',
        '{"document_base64":"/wo=","line":4,"_id":null,"type":"mapper_parsing_exception","reason":"no",'
        f'"stage":"read","time":"{TIME}","corpus":"c.jsonl","version":7}}',
    ]


@settings(max_examples=80)
@given(batches=st.lists(st.lists(LETTERS, max_size=4), max_size=4))
def test_letters_come_back_as_they_were_each_once(batches):
    with tempfile.TemporaryDirectory() as folder:
        letters = DeadLetters(Path(folder) / "dead-letters.jsonl")
        expected = {}
        for batch in batches:
            letters.add(batch)
            for each in batch:
                # No two loads have a version in common.
                expected.setdefault((each.line, each.version), each)
        assert list(letters) == list(expected.values())
        assert letters.total() == len(expected)


def test_a_row_without_lines_is_kept_as_its_fields():
    row = {
        "text": "a",
        "embedding": np.array([0.5, 1], dtype=np.float32),
        "when": datetime.date(2026, 1, 2),
        "price": decimal.Decimal("1.50"),
        "raw": b"\xff",
        "many": 1 << 70,
        "none": None,
    }
    kept = from_line(to_line(letter(1, document=row))).document
    assert kept == {
        "text": "a",
        "embedding": [0.5, 1.0],
        "when": "2026-01-02",
        "price": "1.50",
        "raw": "/w==",
        "many": 1 << 70,
        "none": None,
    }


def test_without_letters_there_is_no_file(letters, path):
    letters.add([])
    letters.keep(bool)
    assert (letters.total(), list(letters), path.exists()) == (0, [], False)


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_file_is_the_owners_alone_whatever_the_umask(letters, path, umask):
    before = os.umask(umask)
    try:
        letters.add([letter(1), letter(2)])
        modes = [stat.S_IMODE(path.stat().st_mode)]
        letters.keep(lambda each: each.line == 1)
        modes.append(stat.S_IMODE(path.stat().st_mode))
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_letters_are_on_the_disk_before_add_returns(letters, path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append((os.fstat(number).st_ino, os.fstat(number).st_size)))
    letters.add([letter(1)])
    assert synced == [
        (path.stat().st_ino, path.stat().st_size),
        (path.parent.stat().st_ino, path.parent.stat().st_size),
    ]


def test_threads_share_the_letters(letters):
    threads = [
        threading.Thread(target=lambda first=first: [letters.add([letter(first + n)]) for n in range(20)])
        for first in (0, 100, 200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert letters.total() == 60


@pytest.mark.parametrize("length", [1, 20, 100_000])
def test_a_last_line_that_was_cut_off_is_dropped(letters, path, length):
    long = letter(2, document=b"x" * 200_000)
    letters.add([letter(1)])
    before = path.read_bytes()
    path.write_bytes(before + to_line(long)[:length])
    assert list(letters) == [letter(1)]
    # Reading leaves it, since a load may be about to write the rest.
    assert path.stat().st_size == len(before) + length
    letters.add([letter(3)])
    assert path.read_bytes() == before + to_line(letter(3))


def test_a_cut_line_alone_in_the_file_is_dropped(letters, path):
    path.parent.mkdir()
    path.write_bytes(b'{"document":')
    assert letters.total() == 0
    letters.add([letter(3)])
    assert list(letters) == [letter(3)]


def test_a_last_letter_whose_line_break_an_editor_took_is_kept(letters, path):
    letters.add([letter(1), letter(2)])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert letters.total() == 2
    letters.add([letter(3)])
    letters.keep(bool)
    assert path.read_bytes() == b"".join(map(to_line, map(letter, (1, 2, 3))))


FULL = "{} cannot be written (No space left on device): free space on the disk, and continue with --resume."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told(letters, path):
    path.parent.mkdir()
    path.symlink_to("/dev/full")
    with pytest.raises(LangshiftError) as caught:
        letters.add([letter(1)])
    assert str(caught.value) == FULL.format(path)


def test_nothing_half_written_remains_on_a_full_disk(path):
    code = """
import resource, sys
from pathlib import Path
from langshift.errors import LangshiftError
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters
letters = DeadLetters(Path(sys.argv[1]))
def letter(line, size=10):
    return DeadLetter(b"x" * size, line, None, "t", "r", "read", "now", "c", line)
letters.add([letter(1)])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
for work in (lambda: letters.add([letter(2), letter(3, 30_000)]), lambda: letters.add([letter(4)])):
    try:
        work()
    except LangshiftError as error:
        print(error)
print([each.line for each in letters])
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], text=True, capture_output=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"{path} cannot be written (File too large): free space on the disk, and continue with --resume.",
        "[1, 4]",
    ]
    assert len(path.read_bytes().splitlines()) == 2


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "news").touch()
    path = tmp_path / "news" / "dead-letters.jsonl"
    with pytest.raises(LangshiftError) as caught:
        DeadLetters(path).add([letter(1)])
    assert str(caught.value) == (
        f"{path} cannot be written (File exists): make it writable, and continue with --resume."
    )


def test_letters_that_went_through_are_dropped_and_the_others_stay_as_they_stood(letters, path):
    letters.add([letter(line) for line in range(1, 6)])
    extra = json.loads(to_line(letter(6))) | {"note": "mine"}
    with path.open("a") as file:
        file.write(json.dumps(extra) + "\n")
    letters.keep(lambda each: each.line % 2 == 0)
    assert path.read_bytes() == to_line(letter(2)) + to_line(letter(4)) + json.dumps(extra).encode() + b"\n"
    letters.keep(none)
    assert list(path.parent.iterdir()) == []
    letters.add([letter(9)])
    assert list(letters) == [letter(9)]


def test_all_stays_as_it_was_where_the_letters_cannot_be_written_anew(letters, path):
    code = """
import resource, sys
from pathlib import Path
from langshift.errors import LangshiftError
from langshift.ingest.bulk.dead_letters import DeadLetters
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
try:
    DeadLetters(Path(sys.argv[1])).keep(lambda each: each.line != 1)
except LangshiftError as error:
    print(error)
"""
    letters.add([letter(line) for line in range(1, 100)])
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", code, str(path)], text=True, capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (
        f"{path} cannot be written (File too large): free space on the disk, and replay the dead letters again.\n",
        "",
    )
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


GOOD = json.loads(to_line(letter(1)))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[1]", "not a JSON object"),
        (json.dumps({**GOOD, "document": 3}), "it has no document"),
        (json.dumps({**GOOD, "line": "1"}), "a field is missing or has the wrong type"),
        (json.dumps({**GOOD, "stage": "sleep"}), "a field is missing or has the wrong type"),
        (json.dumps({**GOOD, "version": True}), "a field is missing or has the wrong type"),
        (json.dumps({**GOOD, "_id": 3}), "a field is missing or has the wrong type"),
        (
            json.dumps({name: value for name, value in GOOD.items() if name != "reason"}),
            "a field is missing or has the wrong type",
        ),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_a_line_that_is_no_dead_letter_is_named(letters, path, line, why):
    letters.add([letter(1)])
    with path.open("a") as file:
        file.write(line + "\n" + "{")
    before = path.read_bytes()
    for work in (letters.total, lambda: list(letters), lambda: letters.keep(none)):
        with pytest.raises(UsageError) as caught:
            work()
        assert str(caught.value) == f"{path}, line 2, is not a valid dead letter ({why}): correct or remove it."
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]

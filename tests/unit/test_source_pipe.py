"""Reading standard input and pipes, whose lines come once."""

import gzip
import io
import itertools
import os
import sys
import threading
from contextlib import suppress

import pytest

from langshift.corpus_file import ChangedError
from langshift.debias.encoders.base import VectorSpec
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.documents import InvalidRow
from langshift.ingest.open_corpus import open_source

LINE = b'{"_id": "a", "text": "t"}\n'


class Endless(io.RawIOBase):
    """Gives the same line without end, and counts its bytes."""

    def __init__(self):
        self.given = 0
        self._lines = itertools.repeat(LINE * 100)

    def readable(self):
        return True

    def readinto(self, buffer):
        block = next(self._lines)[: len(buffer)]
        buffer[: len(block)] = block
        self.given += len(block)
        return len(block)


def standard_input(monkeypatch, raw):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(raw)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_is_read_once(monkeypatch, pack):
    standard_input(monkeypatch, io.BytesIO(pack(b"\xef\xbb\xbf" + LINE + b"\noops\n" + LINE * 3000)))
    with open_source("-") as source:
        assert (source.shown, source.resumable, source.total, source.content) == ("standard input", False, None, None)
        found = list(source.read(()))
        assert [one.line for one in found] == [1, *range(3, 3004)]
        assert isinstance(found[1].content, InvalidRow)
        with pytest.raises(LangshiftError) as caught:
            source.read(())
    assert str(caught.value) == "standard input can be read only once: save the corpus to a file."


def test_standard_input_is_read_no_further_than_wanted(monkeypatch):
    endless = Endless()
    standard_input(monkeypatch, endless)
    with open_source("-") as source:
        for number, read in enumerate(source.read(()), start=1):
            assert read.line == number
            if number == 60_000:
                break
        # What was read ahead is a buffer or two.
        assert endless.given < 60_000 * len(LINE) + (4 << 20)


def test_who_stops_does_not_wait_for_a_standard_input_that_gives_nothing(monkeypatch):
    """As Ctrl-C does while `langshift ingest -` waits for the next line."""
    out, into = os.pipe()
    begun, left, readers = threading.Event(), threading.Event(), []

    def read(lines):
        for _ in lines:
            begun.set()

    def stop_while_it_reads():
        with suppress(KeyboardInterrupt), open_source("-") as source:
            readers.append(threading.Thread(target=read, args=(source.read(()),), daemon=True))
            readers[0].start()
            assert begun.wait(30)
            readers[0].join(0.3)
            raise KeyboardInterrupt
        left.set()

    with io.FileIO(out) as raw:
        standard_input(monkeypatch, raw)
        os.write(into, LINE * 1500)
        threading.Thread(target=stop_while_it_reads, daemon=True).start()
        stopped = left.wait(30)
        os.close(into)
        readers[0].join(30)
    assert stopped


def test_lines_to_skip(monkeypatch):
    standard_input(monkeypatch, io.BytesIO(LINE * 4))
    with open_source("-") as source:
        assert [one.line for one in source.read({1, 3})] == [2, 4]


def test_vectors_that_a_pipe_brings(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = b'{"text": "t", "embedding": [0.6, 0.8]}\n' * 1500
    writer = threading.Thread(target=pipe.write_bytes, args=(lines,))
    writer.start()
    with open_source(str(pipe), embeddings="needed") as source:
        assert (source.vector_spec, source.resumable, source.shown) == (
            VectorSpec(2, normalised=True),
            False,
            str(pipe),
        )
        assert sum(one.content.embedding.shape == (2,) for one in source.read(())) == 1500
    writer.join()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input contains no documents."),
        (b"{}", "standard input, line 1: has neither a text nor a title."),
        (b"PAR1\x15\x04\n", "standard input contains Parquet, which can only be read from a file: name the file."),
    ],
)
def test_what_is_no_corpus(monkeypatch, content, message):
    standard_input(monkeypatch, io.BytesIO(content))
    with pytest.raises(UsageError) as caught, open_source("-"):
        pass
    assert str(caught.value) == message


def test_a_file_on_standard_input_that_changes(monkeypatch, tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(LINE * 3000)
    with path.open("rb", buffering=0) as raw:
        standard_input(monkeypatch, raw)
        with open_source("-") as source:
            source.require_unchanged()
            path.write_bytes(LINE * 2000)
            list(source.read(()))
            with pytest.raises(ChangedError, match=r"^standard input changed while it was read\.$"):
                source.require_unchanged()


def test_compressed_data_that_break_off(monkeypatch):
    standard_input(monkeypatch, io.BytesIO(gzip.compress(LINE * 5000)[:-10]))
    with open_source("-") as source, pytest.raises(UsageError) as caught:
        list(source.read(()))
    assert str(caught.value).startswith("standard input: the compressed data is truncated or damaged after line ")

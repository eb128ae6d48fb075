"""What stands in place of a file: loops of links, devices, sockets and pipes are told of, not read."""

import os
import socket
import threading
from pathlib import Path

import pytest

from langshift.debias.parallel import open_parallel
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import read_queries
from langshift.evaluate.datasets.logs import QueryLog
from langshift.evaluate.runs import read_run
from langshift.ingest.open_corpus import find_files, open_source
from langshift.plugin.user_template import Template
from langshift.retrieval.rerank.features import read_model
from langshift.web.api.options import read_tokens

READERS = {
    "corpus": lambda path: find_files([str(path)]),
    "queries": lambda path: list(read_queries(path)),
    "log": lambda path: list(QueryLog(path).lines()),
    "run": read_run,
    "parallel": open_parallel,
    "vectors": LanguageVectors.load,
    "template": Template.read,
    "features": lambda path: read_model(f"features:{path}"),
    "tokens": read_tokens,
}


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.jsonl"
    path.symlink_to(path)
    return path, f"{path} is a symbolic link that leads back to itself: "


@pytest.fixture
def device():
    return Path("/dev/zero"), "/dev/zero is a socket or a device, not a file: "


@pytest.fixture
def bound(tmp_path):
    path = tmp_path / "x.jsonl"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        yield path, f"{path} is a socket or a device, not a file: "


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "x.jsonl"
    os.mkfifo(path)
    return path, f"{path} is a pipe, not a file: "


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["loop", "device", "bound", "pipe"])
def test_what_is_no_file_is_told(reader, kind, request):
    if (reader, kind) == ("corpus", "pipe"):
        pytest.skip("a corpus may be piped in by a name")
    path, said = request.getfixturevalue(kind)
    with pytest.raises(UsageError) as caught:
        READERS[reader](path)
    assert str(caught.value).startswith(said.rstrip(": "))
    assert str(caught.value).endswith(".")


def test_a_corpus_that_is_a_device(device):
    with pytest.raises(UsageError) as caught:
        find_files(["/dev/zero"])
    assert str(caught.value) == f"{device[1]}give a file, or pipe the corpus in."


def test_a_corpus_comes_through_a_pipe_with_a_name(pipe):
    path, _ = pipe
    # Opened for both, it waits for nobody.
    writer = os.open(path, os.O_RDWR)
    os.write(writer, b'{"_id": "a", "text": "A text."}\n' * 3)
    threading.Timer(0.5, os.close, [writer]).start()
    with open_source(str(path)) as source:
        assert not source.resumable
        assert len(list(source.read(()))) == 3

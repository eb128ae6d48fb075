"""A whole cluster that is read-only for twenty seconds in a load, an append and a retune: nothing is lost."""

import json
import os
import time

import pytest
from command_line import program, started
from large_corpus import DIMENSION, GROUPS, LANGUAGES, LargeCorpus
from opensearchpy import OpenSearch
from shifted_index import language_vectors, saved

from langshift import embedded

DOCUMENTS = GROUPS * len(LANGUAGES)
BLOCKED = 20.0  # seconds
# Seconds after a command begins; whoever begins under a block is refused before anything is encoded.
LATER = 4.0


@pytest.fixture(scope="module")
def home(new_home):
    return new_home()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocked")
    LargeCorpus().write(folder / "corpus.jsonl")
    return folder / "corpus.jsonl", saved(folder, language_vectors(dimension=DIMENSION))


@pytest.fixture(scope="module")
def place(home):
    """How the program is run with the embedded server of that home."""
    without = {name: value for name, value in os.environ.items() if name != "OPENSEARCH_URL"}
    return {"only": without, "LANGSHIFT_HOME": home}


def block(client, value):
    client.cluster.put_settings(body={"persistent": {"cluster.blocks.read_only": value}})


@pytest.mark.parametrize("kind", ["load", "append", "retune"])
def test_a_block_of_the_whole_cluster_is_waited_for(home, files, place, kind):
    corpus, vectors = files
    given = ("--index", "many", "--encoder", "given", "--vectors", vectors)
    first = program("ingest", corpus, *given, "--if-exists", "replace", **place)
    assert first.returncode == 0, first
    commands = {
        "load": ("ingest", corpus, *given, "--if-exists", "new-version"),
        "append": ("ingest", corpus, *given, "--if-exists", "append"),
        "retune": ("retune", "many", "--alpha", 0.6),
    }
    with OpenSearch(embedded.status(home).url) as client, started(*commands[kind], **place) as process:
        time.sleep(LATER)
        ran = process.poll() is None
        block(client, True)
        try:
            time.sleep(BLOCKED)
        finally:
            block(client, None)
        _, err = process.communicate()
        assert process.returncode == 0, err
        client.indices.refresh(index="many")
        assert client.count(index="many")["count"] == DOCUMENTS
        assert ran
    assert json.loads(program("index", "describe", "many", "--json", **place).stdout)["documents"] == DOCUMENTS
    assert b"Waiting for the cluster since" in err

"""SIGKILL while a reencode encodes. LANGSHIFT_KILLS=20 or more gives the long form, with more documents."""

import os

import pytest
from embeddings_server import embeddings_server
from given_data import run
from reencoded_index import NEW, PAGE, PROBES, SAMPLE, require_encoded, texts_encoded, vectors_of, write_texts
from retuned_index import Process, live, note, require_tidy
from shifted_index import printed, saved

pytestmark = pytest.mark.usefixtures("cluster_env")
MANY = 5000 if int(os.environ.get("LANGSHIFT_KILLS", "2")) >= 20 else 1500


@pytest.fixture
def new():
    with embeddings_server() as server:
        server.dimension = NEW
        yield server


def test_a_reencode_that_is_killed_twice_goes_on_and_encodes_little_twice(
    client, index_name, new, cluster_env, tmp_path
):
    # The former vectors matter to nobody.
    corpus, documents = write_texts(tmp_path / "corpus.jsonl", MANY, embedding=[1.0, 2.0])
    printed(run("ingest", corpus, "--index", index_name, "--encoder", "given", "--alpha", 0, "--json"))
    known = vectors_of(new)
    command = "reencode", index_name, "--encoder", new.name, "--vectors", saved(tmp_path, known), "--alpha", 1
    new.pause = 0.15
    for third in (MANY // 3, 2 * MANY // 3):
        process = Process(cluster_env, tmp_path / "home", *command)
        process.wait_for(lambda enough=third: texts_encoded(new) >= enough)
        assert process.kill()
        assert live(client, index_name) == f"{index_name}-v0001"
        assert note(client, index_name)[0] == f"{index_name}-v0002"
    new.pause = 0.0
    done = Process(cluster_env, tmp_path / "home", *command).done()
    assert (done["index"], done["documents"], done["caught_up"]) == (f"{index_name}-v0002", MANY, 0)
    require_encoded(client, index_name, documents, known, 1.0)
    require_tidy(client, index_name)
    again = texts_encoded(new) - MANY - SAMPLE - 3 * PROBES
    assert 0 <= again <= 2 * PAGE
    print(f"\n{again} of {MANY:,} texts were encoded again after two kills")

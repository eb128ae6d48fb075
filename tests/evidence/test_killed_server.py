"""The embedded server killed in retunes of 20,000 documents: the one that comes up is waited for, and never stopped."""

import json
import os
import subprocess
import time

import numpy as np
import psutil
from command_line import LANGSHIFT
from shifted_index import language_vectors, saved, with_directions

from langshift import embedded

DOCUMENTS, DIMENSION, KILLS = 20_000, 64, 5
LANGUAGES = ("en", "de", "th")


def write_corpus(path):
    numbers = np.random.default_rng(3).standard_normal((DOCUMENTS, DIMENSION)).astype(np.float32)
    with path.open("w", encoding="utf-8") as file:
        for number, vector in enumerate(numbers):
            row = {"_id": str(number), "text": "x", "language": LANGUAGES[number % 3], "embedding": vector.tolist()}
            file.write(json.dumps(row) + "\n")
    return path


def test_up_waits_for_what_a_killed_server_left(new_home, tmp_path):
    home = new_home()
    env = {name: value for name, value in os.environ.items() if name != "OPENSEARCH_URL"} | {
        "LANGSHIFT_HOME": str(home)
    }

    def begun(*command):
        pipe = subprocess.PIPE
        return subprocess.Popen([LANGSHIFT, *map(str, command)], env=env, stdout=pipe, stderr=pipe, text=True)

    def run(*command):
        with begun(*command) as process:
            out, err = process.communicate()
        assert process.returncode == 0, err
        return out, err

    known = saved(tmp_path, with_directions(language_vectors(dimension=DIMENSION)))
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    run("ingest", corpus, "--index", "many", "--encoder", "given", "--vectors", known, "--alpha", 1)
    for kill in range(KILLS):
        with begun("retune", "many", "--alpha", 0.5 if kill % 2 else 0.75) as retune:
            time.sleep(3 + 2 * kill)
            killed = embedded.status(home)
            psutil.Process(killed.pid).kill()
            out, _ = run("up", "--json")
            server = embedded.status(home)
            assert json.loads(out)["pid"] == server.pid != killed.pid
            # It goes on by itself, at the same address.
            _, err = retune.communicate()
        if retune.returncode != 0:
            run("retune", "many", "--alpha", 0.5 if kill % 2 else 0.75)
        assert embedded.status(home) == server, err
        found = json.loads(run("index", "describe", "many", "--json")[0])
        assert found["documents"] == DOCUMENTS
        assert not (server.home / "node" / "logs" / "server.log").read_text().count("] stopping ...")

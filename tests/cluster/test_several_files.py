"""Several files are loaded as the one corpus that they are together: documents, vectors, stamps and dead letters."""

import gzip
import json
import random

import numpy as np
import orjson
import pyarrow as pa
import pytest
from command_line import langshift
from opensearchpy import helpers
from pyarrow import parquet

from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.plugin import versions
from langshift.plugin.inventory import drop_all
from langshift.settings import Settings

TEXTS = {
    "de": "Das Meer steigt und fällt zweimal am Tag.",
    "en": "The sea rises and falls twice a day.",
    "th": "ทะเลขึ้นและลงวันละสองครั้ง",
}


def made_lines(seed):
    """Documents whose ids come again, deletes, updates before and after their documents, and lines of every fault."""
    chance = random.Random(seed)
    lines = []
    for number in range(120):
        name, tag = f"d{chance.randrange(40)}", chance.choice(list(TEXTS))
        kind = chance.choice(["write"] * 6 + ["delete", "update", "no text", "refused"])
        document = {"_id": name, "text": f"{TEXTS[tag]} {number}", "year": number}
        lines.append(
            {
                "write": document,
                "delete": {"_op": "delete", "_id": name},
                "update": {"_op": "update", "_id": name, "year": 1000 + number},
                "no text": {"_id": name, "year": number},
                # The field is one of numbers by then.
                "refused": document | {"year": [{"of": "no number"}]},
            }[kind]
        )
    return [{"_id": "d0", "text": TEXTS["en"], "year": 0}, *lines]


def written(folder, lines):
    """The lines in three files, each of a kind, and in one."""
    folder.mkdir()
    packed = [orjson.dumps(line) for line in lines]
    files = [folder / "a.jsonl", folder / "b.jsonl.gz", folder / "c.jsonl"]
    files[0].write_bytes(b"\n".join(packed[:50]))
    files[1].write_bytes(gzip.compress(b"{broken\n" + b"\n".join(packed[50:90]) + b"\n"))
    files[2].write_bytes(b"\n".join(packed[90:]) + b"\n")
    together = folder.parent / "together.jsonl"
    together.write_bytes(b"\n".join([*packed[:50], b"{broken", *packed[50:]]) + b"\n")
    return files, together


@pytest.fixture
def loaded(client, cluster_url, index_name):
    """A function that loads corpora into an index of their own, and gives what has become of them."""
    names = []

    def load(*given, options=(), codes=(0, 3)):
        names.append(name := f"{index_name}-{len(names)}")
        command = ("ingest", *given, "--index", name, "--encoder", "use-m", "--max-refused", 1, "--json", *options)
        done = langshift(*command, url=cluster_url)
        assert done.returncode in codes, done.stderr
        place = LoadWorkspace.of(Settings.from_env().home, client, name)
        letters = list(DeadLetters(place.dead_letters)) if place.dead_letters.exists() else []
        live = versions.live(client, name)
        found = {hit["_id"]: hit["_source"] for hit in helpers.scan(client, index=name)}
        return json.loads(done.stdout), found, letters, live.fingerprint

    yield load
    for name in names:
        drop_all(client, name)


def require_same(one, other):
    assert one.keys() == other.keys()
    for name, source in one.items():
        vectors = [np.array(each["embedding"], np.float32) for each in (source, other[name])]
        assert np.abs(vectors[0] - vectors[1]).max() < 1e-6
        assert {**source, "embedding": None} == {**other[name], "embedding": None}


@pytest.mark.parametrize("seed", range(3))
def test_they_become_what_one_file_becomes(loaded, tmp_path, seed):
    files, together = written(tmp_path / "in", made_lines(seed))
    said, documents, letters, made = loaded(*files)
    alone, expected, others, likewise = loaded(together)
    require_same(documents, expected)
    assert made == likewise
    counted = {"lines", "dead_letters_written", "present"} & said.keys()
    assert {name: said[name] for name in counted} == {name: alone[name] for name in counted}
    before = {str(files[0]): 0, str(files[1]): 50, str(files[2]): 91}
    told = sorted((before[one.corpus] + one.line, one.id, one.type, one.document) for one in letters)
    assert told == sorted((one.line, one.id, one.type, one.document) for one in others)
    assert (str(files[1]), 1, "invalid_json") in {(one.corpus, one.line, one.type) for one in letters}
    assert {one.stage for one in letters} == {"read", "write"}


def test_a_folder_of_parquet_is_a_corpus_too(loaded, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number, (tag, text) in enumerate(TEXTS.items()):
        rows = [{"_id": f"{tag}-{n}", "text": f"{text} {n}", "year": n / 2} for n in range(20)]
        parquet.write_table(pa.Table.from_pylist(rows), folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    said, documents, letters, _ = loaded(folder, codes=(0,))
    assert (said["lines"], said["languages"], letters) == (60, {"de": 20, "en": 20, "th": 20}, [])
    assert documents["th-7"]["year"] == 3.5

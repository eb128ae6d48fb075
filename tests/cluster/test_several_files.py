"""Several files are loaded as the one corpus that they are together: documents, vectors, stamps and dead letters."""

import gzip
import itertools
import json
import random

import numpy as np
import orjson
import pyarrow as pa
import pytest
from command_line import langshift
from faults import cut_before
from opensearchpy import helpers
from pyarrow import parquet
from s3_store import s3_store

from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.opening import find_files, open_source
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


@pytest.fixture
def store():
    with s3_store() as running:
        yield running


@pytest.mark.parametrize("seed", range(2))
def test_from_s3_they_become_what_they_become_here(loaded, store, tmp_path, seed):
    files, _ = written(tmp_path / "in", made_lines(seed))
    for file in files:
        store.put(f"in/{file.name}", file.read_bytes())
    # Every fifth request breaks off.
    store.proxy.inject("", itertools.cycle([*[None] * 4, cut_before]))
    said, documents, letters, made = loaded(store.uri("in/*.jsonl*"))
    here, expected, others, likewise = loaded(*files)
    require_same(documents, expected)
    assert made == likewise
    assert (said["lines"], said["present"]) == (here["lines"], here["present"])
    names = {store.uri(f"in/{file.name}"): str(file) for file in files}
    told = sorted((names[one.corpus], one.line, one.id, one.type, one.document) for one in letters)
    assert told == sorted((one.corpus, one.line, one.id, one.type, one.document) for one in others)


def test_a_store_that_stays_away_in_the_middle_leaves_a_load_that_is_resumed(client, cluster_url, index_name, store):
    texts = [f"{text} {n}" for n in range(200) for text in TEXTS.values()]
    documents = [orjson.dumps({"_id": f"d{n}", "text": text}) + b"\n" for n, text in enumerate(texts)]
    given = [store.put("a.jsonl", b"".join(documents[:500])), store.put("b.jsonl", b"".join(documents[500:]))]
    requests = itertools.count()

    async def counted(exchange):
        next(requests)
        return await exchange.forward()

    store.proxy.inject("b.jsonl", itertools.repeat(counted))
    with open_source(find_files(given)):
        pass
    store.proxy.clear()
    # The file is looked at as often, and then cannot be read.
    store.proxy.inject("b.jsonl", itertools.chain([None] * next(requests), itertools.repeat(cut_before)))
    load = ("ingest", *given, "--index", index_name, "--encoder", "use-m", "--json")
    broken = langshift(*load, "--patience", 1, url=cluster_url)
    assert broken.returncode == 1
    assert broken.stdout == ""
    assert f"{given[1]} cannot be read, because S3 does not answer: " in broken.stderr
    assert f"lines of 2 files ({given[0]} to {given[1]}) handled: continue with --resume." in broken.stderr
    store.proxy.clear()
    resumed = langshift(*load, "--resume", url=cluster_url)
    assert resumed.returncode == 0, resumed.stderr
    said = json.loads(resumed.stdout)
    assert (said["documents"], said["present"]) == (600, 600)
    assert 0 < said["resumed"] <= 500
    drop_all(client, index_name)


@pytest.mark.parametrize("how", ["changed", "removed"])
def test_a_file_in_s3_that_does_not_stay_the_same_is_never_published(client, cluster_url, index_name, store, how):
    given = [store.put(f"{name}.jsonl", b'{"_id": "%s", "text": "Sea"}\n' % name.encode()) for name in ("a", "b")]
    seen = itertools.count()

    async def meanwhile(exchange):
        reply = await exchange.forward()
        if exchange.method == "GET" and exchange.headers.get("range") and not next(seen):
            if how == "removed":
                store.remove("b.jsonl")
            else:
                store.put("b.jsonl", b'{"_id": "b", "text": "See"}\n')
        return reply

    store.proxy.inject("b.jsonl", itertools.repeat(meanwhile))
    done = langshift("ingest", *given, "--index", index_name, "--encoder", "use-m", url=cluster_url)
    assert done.returncode == 1
    verb = {"changed": "changed", "removed": "was removed"}[how]
    assert f"Error: {given[1]} {verb} while it was read." in done.stderr
    assert not client.indices.exists(index=index_name)

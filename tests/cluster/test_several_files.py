"""Several files are became as the one corpus that they are together: documents, vectors, stamps and dead letters."""

import itertools
import json

import orjson
import pyarrow as pa
import pytest
from command_line import langshift
from faults import cut_before
from pyarrow import parquet
from several_files import TEXTS, made_lines, require_same, written

from langshift.ingest.open_corpus import find_files, open_source
from langshift.plugin.inventory import drop_all


@pytest.mark.parametrize("seed", range(3))
def test_they_become_what_one_file_becomes(became, tmp_path, seed):
    files, together = written(tmp_path / "in", made_lines(seed))
    said, documents, letters, made = became(*files)
    alone, expected, others, likewise = became(together)
    require_same(documents, expected)
    assert made == likewise
    counted = {"lines", "dead_letters_written", "present"} & said.keys()
    assert {name: said[name] for name in counted} == {name: alone[name] for name in counted}
    before = {str(files[0]): 0, str(files[1]): 50, str(files[2]): 91}
    told = sorted((before[one.corpus] + one.line, one.id, one.type, one.document) for one in letters)
    assert told == sorted((one.line, one.id, one.type, one.document) for one in others)
    assert (str(files[1]), 1, "invalid_json") in {(one.corpus, one.line, one.type) for one in letters}
    assert {one.stage for one in letters} == {"read", "write"}


def test_a_folder_of_parquet_is_a_corpus_too(became, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number, (tag, text) in enumerate(TEXTS.items()):
        rows = [{"_id": f"{tag}-{n}", "text": f"{text} {n}", "year": n / 2} for n in range(20)]
        parquet.write_table(pa.Table.from_pylist(rows), folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    said, documents, letters, _ = became(folder, codes=(0,))
    assert (said["lines"], said["languages"], letters) == (60, {"de": 20, "en": 20, "th": 20}, [])
    assert documents["th-7"]["year"] == 3.5


@pytest.mark.parametrize("seed", range(2))
def test_from_s3_they_become_what_they_become_here(became, store, tmp_path, seed):
    files, _ = written(tmp_path / "in", made_lines(seed))
    for file in files:
        store.put(f"in/{file.name}", file.read_bytes())
    # Every fifth request breaks off.
    store.proxy.inject("", itertools.cycle([*[None] * 4, cut_before]))
    said, documents, letters, made = became(store.uri("in/*.jsonl*"))
    here, expected, others, likewise = became(*files)
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

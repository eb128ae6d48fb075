"""Corpora in S3: found, read through failures of the store, and refused where they are not what they were."""

import gzip
import io
import itertools
import random
import time

import orjson
import pyarrow as pa
import pytest
from backports import zstd
from command_line import langshift
from faults import cut_before, cut_midway
from http_exchange import Reply
from pyarrow import parquet
from s3_store import s3_store

from langshift.corpus_file import ChangedError, UnreachableError
from langshift.errors import UsageError
from langshift.ingest.open_corpus import find_files, open_source
from langshift.ingest.parts.folder import StateFolder


def documents(first, count):
    """Documents of which none is like another, so that nothing makes them small."""
    chance = random.Random(first)
    return [{"_id": f"d{n}", "text": f"Text {n} {chance.randbytes(40).hex()}"} for n in range(first, first + count)]


def lines(some):
    return b"".join(orjson.dumps(one) + b"\n" for one in some)


def table(some):
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(some), file, row_group_size=150)
    return file.getvalue()


KINDS = {
    "jsonl": lines,
    "jsonl.gz": lambda some: gzip.compress(lines(some)),
    "jsonl.zst": lambda some: zstd.compress(lines(some)),
    "parquet": table,
}


@pytest.fixture(scope="module")
def running():
    with s3_store() as store:
        yield store


@pytest.fixture
def store(running):
    yield running
    running.empty()


def ids(source):
    return [(row.line, row.content.id) for row in source.read(())]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_each_kind_gives_what_it_gives_here(store, tmp_path, kind):
    content = KINDS[kind](documents(0, 200))
    here = tmp_path / f"a.{kind}"
    here.write_bytes(content)
    with open_source(store.put(f"in/a.{kind}", content)) as source, open_source(str(here)) as local:
        assert list(source.read(range(50, 120))) == list(local.read(range(50, 120)))
        assert (source.total, source.shown) == (local.total, f"s3://corpora/in/a.{kind}")
        source.require_unchanged()


def test_folders_and_globs_stand_for_their_files(store):
    names = ("in/a.jsonl", "in/b.parquet", "in/deep/c.jsonl.gz")
    for name in (*names, "in/_SUCCESS", "in/.d.jsonl", "in/e.txt", "other/f.jsonl"):
        store.put(name, b"{}\n")
    uri = store.uri
    assert find_files([uri("in")]) == find_files([uri("in/")]) == [uri(name) for name in names]
    assert find_files([uri("in/*.jsonl")]) == [uri("in/a.jsonl")]
    assert find_files([uri("*/?.jsonl")]) == [uri("in/a.jsonl"), uri("other/f.jsonl")]
    assert find_files([uri("in/**/*.jsonl*")]) == [uri("in/a.jsonl"), uri("in/deep/c.jsonl.gz")]
    assert find_files([uri("other/f.jsonl"), uri("in/a.jsonl")]) == [uri("other/f.jsonl"), uri("in/a.jsonl")]
    # A name with a star is a name first.
    assert find_files([store.put("in/[a].jsonl", b"{}\n")]) == [uri("in/[a].jsonl")]


def test_files_here_and_there_are_one_corpus(store, tmp_path):
    here = tmp_path / "a.jsonl"
    here.write_bytes(lines(documents(0, 10)))
    there = store.put("b.jsonl", lines(documents(10, 10)))
    with open_source([str(here), there]) as source:
        assert ids(source) == [(n + 1, f"d{n}") for n in range(20)]
        assert source.place(15) == (there, 5)


def test_files_that_were_found_are_not_looked_for_again(store, tmp_path):
    here = tmp_path / "a.jsonl"
    here.write_bytes(lines(documents(0, 10)))
    store.put("in/b.jsonl", lines(documents(10, 10)))
    found = find_files([str(here), store.uri("in")])
    store.put("in/c.jsonl", b"{}\n")
    with open_source(found) as source:
        assert len(ids(source)) == 20
    for removed in (lambda: store.remove("in/b.jsonl"), here.unlink):
        removed()
        with pytest.raises(UsageError, match="there is no such file"), open_source(found):
            pass


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [cut_before, cut_midway])
def test_a_store_that_breaks_off_is_read_on_at_the_same_place(store, kind, fault):
    uri = store.put(f"a.{kind}", KINDS[kind](documents(0, 400)))
    # From the first request on: finding, opening, counting and reading.
    store.proxy.inject("a.", itertools.cycle([fault, None, None]))
    with open_source(uri) as source:
        assert ids(source) == [(n + 1, f"d{n}") for n in range(400)]
        source.require_unchanged()


def test_a_store_that_is_away_is_waited_for(store):
    uri = store.put("a.jsonl", lines(documents(0, 400)))
    until = time.monotonic() + 2

    async def away(exchange):
        if time.monotonic() < until:
            return await cut_before(exchange)
        return await exchange.forward()

    store.proxy.inject("", itertools.repeat(away))
    with open_source(uri) as source:
        assert time.monotonic() > until
        until = time.monotonic() + 2
        assert len(ids(source)) == 400
        assert time.monotonic() > until


def test_a_store_that_stays_away_ends_it_and_may_be_read_later(store):
    uri = store.put("a.jsonl", lines(documents(0, 10)))
    with open_source(uri, patience=1) as source:
        store.proxy.inject("", itertools.repeat(cut_before))
        with pytest.raises(UnreachableError, match=f"^{uri} cannot be read, because S3 does not answer: .*[^.]\\.$"):
            ids(source)
        with pytest.raises(UnreachableError):
            source.require_unchanged()
        store.proxy.clear()
        assert len(ids(source)) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changes_is_refused(store, kind):
    uri = store.put(f"a.{kind}", KINDS[kind](documents(0, 200)))
    with open_source(uri) as source:
        # As long as before.
        store.put(f"a.{kind}", KINDS[kind](documents(200, 200)))
        with pytest.raises(ChangedError, match=f"^{uri} changed while it was read\\.$"):
            list(source.read(()))
        with pytest.raises(ChangedError):
            source.require_unchanged()


def test_a_file_that_goes_is_refused(store):
    uri = store.put("a.jsonl", lines(documents(0, 10)))
    with open_source(uri) as source:
        store.remove("a.jsonl")
        for look in (lambda: ids(source), source.require_unchanged):
            with pytest.raises(ChangedError, match=f"^{uri} was removed while it was read\\.$"):
                look()


def test_what_cannot_be_read_is_refused_with_a_remedy(store):
    good = store.put("a.jsonl", lines(documents(0, 10)))
    damaged = store.put("b.jsonl.gz", gzip.compress(lines(documents(10, 200)))[:-40])
    no_table = store.put("c.parquet", b"PAR1 but no more")
    store.put("d/e.txt", b"")
    folder = store.uri("d")
    for given, why in (
        ([store.uri("none.jsonl")], f"{store.uri('none.jsonl')}: there is no such file."),
        (["s3://nowhere/a.jsonl"], "s3://nowhere/a.jsonl: there is no such file."),
        (["s3://nowhere/*.jsonl"], "s3://nowhere/*.jsonl matches no file."),
        ([store.uri("*.json")], f"{store.uri('*.json')} matches no file."),
        (["s3://"], "s3://: name a bucket, as in s3://bucket/folder."),
        (["s3://*/a.jsonl"], "s3://*: name a bucket, as in s3://bucket/folder."),
        ([folder], f"{folder} is a folder without files that end in .jsonl, .json, .parquet or the like."),
        ([good, good], f"{good} is named twice: name it once."),
        (["-", good], "Standard input can only be read alone: load it by itself, or save it to a file."),
        ([good, no_table], f"{no_table} is damaged or not a Parquet file: download it again."),
    ):
        with pytest.raises(UsageError) as caught, open_source(given):
            pass
        assert str(caught.value) == why
    with pytest.raises(UsageError) as caught, open_source([good, damaged]):
        pass
    assert str(caught.value).startswith(f"{damaged}: the compressed data is truncated or damaged after line ")


@pytest.mark.parametrize("status", [401, 403])
def test_missing_credentials_or_permission_are_told_at_once(store, status):
    async def refused(_):
        return Reply(status, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", "text/xml")

    uri = store.put("a.jsonl", lines(documents(0, 10)))
    keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE,"
    with open_source(uri) as source:
        store.proxy.inject("", itertools.repeat(refused))
        for given in (uri, store.uri("*.jsonl")):
            with pytest.raises(UsageError) as caught, open_source(given):
                pass
            assert str(caught.value).startswith(f"{given}: access denied (")
            assert str(caught.value).endswith(f"): set {keys} to credentials that may read and list it.")
        # New ones may be had.
        with pytest.raises(UnreachableError, match="access denied"):
            ids(source)


ODD = (
    "langshift reads no address with an empty part, with . or .. as a part, or that is not UTF-8: rename the file in "
    "the store, or correct the address."
)
OTHER = "give a path on this machine, or an address in S3 (s3://) or Google's store (gs://)."


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("s3://corpora/ee//b.jsonl", f"s3://corpora/ee//b.jsonl: {ODD}"),
        ("s3://corpora//b.jsonl", f"s3://corpora//b.jsonl: {ODD}"),
        ("s3://corpora/ee//*.jsonl", f"s3://corpora/ee//*.jsonl: {ODD}"),
        ("s3://corpora/../other/b.jsonl", f"s3://corpora/../other/b.jsonl: {ODD}"),
        ("gs://corpora/a/./b.jsonl", f"gs://corpora/a/./b.jsonl: {ODD}"),
        ("s3://corpora/\udcff", f"s3://corpora/\udcff: {ODD}"),
        ("s3://../b.jsonl", "s3://..: name a bucket, as in s3://bucket/folder."),
        ("s3://key:secret@corpora/b.jsonl", "s3://: name a bucket, as in s3://bucket/folder."),
        ("s3:///b.jsonl", "s3://: name a bucket, as in s3://bucket/folder."),
        ("S3://corpora/b.jsonl", "S3://corpora/b.jsonl: write it as s3://corpora/b.jsonl."),
        ("s3a://corpora/b.jsonl", "s3a://corpora/b.jsonl: write it as s3://corpora/b.jsonl."),
        ("gcs://corpora/b.jsonl", "gcs://corpora/b.jsonl: write it as gs://corpora/b.jsonl."),
        ("GS://corpora", "GS://corpora: write it as gs://corpora."),
        ("https://me:secret@x.y/b.jsonl?signature=z", f"https://x.y/b.jsonl: {OTHER}"),
        (f"https://x.y/{'b' * 300}", f"https://x.y/{'b' * 300}: {OTHER}"),
        ("file:///tmp/b.jsonl", f"file:///tmp/b.jsonl: {OTHER}"),
    ],
)
def test_an_address_that_cannot_be_read_is_refused_as_a_corpus_and_as_a_state(given, why):
    for asked in (lambda: find_files([given]), lambda: StateFolder(given, 1)):
        with pytest.raises(UsageError) as caught:
            asked()
        assert str(caught.value) == why


def test_a_folder_with_a_name_that_cannot_be_read_names_it(store):
    store.put("in/a.jsonl", lines(documents(0, 10)))
    store.put("in//", b"")
    with open_source(store.uri("in")) as source:
        assert len(ids(source)) == 10
    for key in ("in//b.jsonl", "in/../b.jsonl"):
        uri = store.put(key, lines(documents(10, 10)))
        with pytest.raises(UsageError) as caught, open_source(store.uri("in")):
            pass
        assert str(caught.value) == f"{uri}: {ODD}"
        with open_source(store.uri("in/*.jsonl")) as source:
            assert len(ids(source)) == 10
        store.remove(key)


@pytest.mark.parametrize("endpoint", ["localhost:1", "ftp://localhost:1", "http://"])
def test_the_address_of_another_service_is_whole(store, monkeypatch, endpoint):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(UsageError) as caught:
        find_files([store.uri("a.jsonl")])
    assert str(caught.value) == (
        f"AWS_ENDPOINT_URL is {endpoint}: give an address that begins with http:// or https://."
    )


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "replay", "s3://b/data", "--index", "a"),
        ("vectors", "fit", "--pairs", "https://x.y/pairs"),
        ("ingest", "corpus.jsonl", "--index", "a", "--vectors", "s3://b/v.safetensors"),
    ],
)
def test_a_file_of_this_machine_is_no_address(command):
    done = langshift(*command)
    assert done.returncode == 2
    assert "It must be a path on this machine, not an address: download it, and give its path." in done.stderr

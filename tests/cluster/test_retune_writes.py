"""People search and write all the time while a retune or a rollback changes the version under the alias."""

import os
import subprocess
import time

import pytest
from busy_index import Searcher, Writer, busy, require_held
from command_line import LANGSHIFT
from given_data import run
from retuned_index import PATIENCE, live
from shifted_index import LANGUAGES, Corpus, language_vectors, saved

from langshift.ingest.retune import Wanted, retune
from langshift.ingest.roll_back import roll_back

pytestmark = pytest.mark.usefixtures("cluster_env")
KNOWN = language_vectors()
EACH = 100  # documents of each of eight languages
BATCH = 50
SLOW = 400  # documents a second, so that much is written meanwhile


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path, EACH)


@pytest.fixture
def name(client, index_name, pipelines, corpus, tmp_path):
    """An index of the corpus, with a pipeline."""
    corpus.ingest(index_name, "--vectors", saved(tmp_path, KNOWN), "--alpha", 0.5)
    assert run("pipeline", "install", index_name).exit_code == 0
    # A document that is deleted and made anew begins with version 1 again at once, and not after a minute.
    client.indices.put_settings(index=index_name, body={"index": {"gc_deletes": "0s"}})
    return index_name


def given(corpus):
    return {one: {"language": tag, "embedding": corpus.raw[one].tolist()} for one, tag in corpus.languages.items()}


def test_nothing_written_is_lost_and_no_search_fails_or_comes_back_empty(client, name, corpus):
    searchers = [Searcher(client, name, number) for number in range(3)]
    writers = [Writer(client, name, number) for number in range(4)] + [Writer(client, name, 9, batch=BATCH)]
    actions = [one.search for one in searchers] + [one.write for one in writers]

    def held():
        return {**given(corpus), **{one: document for writer in writers for one, document in writer.held.items()}}

    with busy(*actions):
        forth = retune(client, name, Wanted(alpha=1.0), throttle=SLOW)
    assert (live(client, name), forth.before) == (f"{name}-v0002", f"{name}-v0001")
    require_held(client, name, held(), KNOWN, 1.0)
    with busy(*actions):
        back = roll_back(client, name)
    assert live(client, name) == f"{name}-v0001"
    require_held(client, name, held(), KNOWN, 0.5)
    for one in searchers:
        assert one.versions == {f"{name}-v0001", f"{name}-v0002"}
    assert all(writer.confirmed for writer in writers)
    told = sum(writer.confirmed for writer in writers), sum(one.answers for one in searchers)
    print(f"\n{told[0]:,} writes and {told[1]:,} searches; caught up {forth.caught_up:,} and {back.caught_up:,}")
    print(f"blocked for {forth.blocked:.2f} s of {forth.seconds:.2f} s, back for {back.blocked:.2f} s")


TAKEN = 256  # lines that a load takes at a time
_SLOW_STEP = "int n = 0; for (int i = 0; i < 900000; i++) { n = (n + i * 31) % 1000; } ctx.slow = n;"


@pytest.fixture
def slow(client, pipelines):
    """A pipeline in whose time a retune and its swap go by, as one that makes vectors by a model."""
    name = f"{pipelines}-slow"
    client.ingest.put_pipeline(id=name, body={"processors": [{"script": {"source": _SLOW_STEP}}] * 2})
    return name


@pytest.mark.parametrize("command", ["retune", "rollback"])
def test_a_request_that_began_before_the_swap_and_ends_after_it_has_the_new_shift(
    client, name, slow, corpus, command
):
    writers = [Writer(client, name, number, batch=BATCH) for number in range(2)]
    if command == "rollback":
        retune(client, name, Wanted(alpha=1.0))
    assert run("pipeline", "install", name, "--after", slow).exit_code == 0
    with busy(*(one.write for one in writers)):
        done = retune(client, name, Wanted(alpha=1.0)) if command == "retune" else roll_back(client, name)
    held = {**given(corpus), **{one: document for writer in writers for one, document in writer.held.items()}}
    assert live(client, name) == done.index
    require_held(client, name, held, KNOWN, 1.0 if command == "retune" else 0.5)


@pytest.fixture
def adding(client, name, tmp_path, cluster_env):
    """A load that adds two batches to the index, the first of which is written; and its documents."""
    folder = tmp_path / "more"
    folder.mkdir()
    more = Corpus(folder, 2 * TAKEN // len(LANGUAGES) + 1)
    lines = more.path.read_bytes().splitlines(keepends=True)[: 2 * TAKEN]
    last = list(more.languages)[TAKEN - 1]
    before = client.get(index=name, id=last)["_version"]
    vectors = saved(folder, KNOWN)
    options = ["--encoder", "given", "--vectors", vectors, "--alpha", 0.5, "--if-exists", "append"]
    env = {**os.environ, "OPENSEARCH_URL": os.environ.get("OPENSEARCH_URL", cluster_env)}
    process = subprocess.Popen(
        list(map(str, [LANGSHIFT, "ingest", "-", "--index", name, *options])),
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        process.stdin.writelines(lines[:TAKEN])
        process.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        while client.get(index=name, id=last)["_version"] == before:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        written = dict(list(given(more).items())[:TAKEN])
        yield process, lines[TAKEN:], written
    finally:
        process.kill()
        process.communicate()


def ended(process, lines=()):
    out, err = process.communicate(b"".join(lines), timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


def test_a_load_that_has_written_all_when_a_retune_swaps_ends_well(client, name, corpus, adding):
    process, _, written = adding
    assert retune(client, name, Wanted(alpha=1.0)).index == f"{name}-v0002"
    code, _, err = ended(process)
    assert code == 0, err
    assert f"{name} stands for {name}-v0002 by now, which has the documents of {name}-v0001 too." in err
    require_held(client, name, {**given(corpus), **written}, KNOWN, 1.0)


def test_a_load_that_goes_on_after_the_swap_stops_and_says_what_is_where(client, name, corpus, adding):
    process, rest, written = adding
    now = retune(client, name, Wanted(alpha=1.0)).index
    code, out, err = ended(process, rest)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == (
        f"Error: {name} stands for {now} by now, by which a retune or a rollback has replaced {name}-v0001 while this "
        f"load was adding to that: what it had written is in {now} too, and the rest is in neither. Run it again with "
        f"the language vectors and scales of {now}. 256 lines handled; running the same command again doubles nothing."
    )
    for index, scale in ((now, 1.0), (f"{name}-v0001", 0.5)):
        require_held(client, index, {**given(corpus), **written}, KNOWN, scale)

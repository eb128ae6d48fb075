"""People search and write all the time while a retune or a rollback changes the version under the alias."""

import asyncio
import time
from itertools import repeat

import pytest
from busy_index import Searcher, Writer, busy, require_held
from given_data import run
from retuned_index import PATIENCE, live
from shifted_index import DIMENSION, LANGUAGES, Corpus, language_vectors, refused, saved

from langshift.ingest.load import LoadRun
from langshift.plugin.retune import RetuneRequest, retune, roll_back

pytestmark = pytest.mark.usefixtures("cluster_env")
KNOWN = language_vectors()
EACH = 100  # documents of each of eight languages
BATCH = 50
SLOW = 400  # documents a second, so that much is written meanwhile
FORGOTTEN = 0.3  # seconds: as long as the server remembers the versions of what was deleted


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path, EACH)


@pytest.fixture
def name(client, pipelines, corpus, tmp_path):
    """An index of the corpus, with a pipeline."""
    corpus.ingest(pipelines, "--vectors", saved(tmp_path, KNOWN), "--alpha", 0.5)
    assert run("pipeline", "install", pipelines).exit_code == 0
    # A document that is deleted and made anew begins with version 1 again at once, and not after a minute.
    client.indices.put_settings(index=pipelines, body={"index": {"gc_deletes": "0s"}})
    return pipelines


def given(corpus):
    return {one: {"language": tag, "embedding": corpus.raw[one].tolist()} for one, tag in corpus.languages.items()}


def test_nothing_written_is_lost_and_no_search_fails_or_comes_back_empty(client, name, corpus):
    searchers = [Searcher(client, name, number) for number in range(3)]
    writers = [Writer(client, name, number) for number in range(4)] + [Writer(client, name, 9, batch=BATCH)]
    actions = [one.search for one in searchers] + [one.write for one in writers]

    def held():
        return {**given(corpus), **{one: document for writer in writers for one, document in writer.held.items()}}

    with busy(*actions):
        forth = retune(client, name, RetuneRequest(alpha=1.0), throttle=SLOW)
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


class Remaking:
    """Two documents that are always in another version than a moment ago.

    Whenever the second is written so often that its version is higher than that of any copy, the first is deleted and
    made anew, whose version is lower than that of its copy; and then the other way round.
    """

    def __init__(self, client, name):
        self._client, self._ids = client, ["first", "second"]
        self._to = {"index": name, "refresh": True}
        self.document = {"text": "Text", "language": "de", "embedding": [1.0] * DIMENSION}
        self.turns = 0

    def raise_(self, one):
        line = {"index": {"_id": one}}
        # Where a retune holds up writers, this one does not come back.
        self._client.bulk(**self._to, body=[line, self.document] * 20 * (self.turns + 1))

    def anew(self, one):
        self._client.bulk(**self._to, body=[{"delete": {"_id": one}}])
        time.sleep(FORGOTTEN)
        self._client.bulk(**self._to, body=[{"index": {"_id": one}}, self.document])

    async def before(self, exchange):
        """Write both before documents are copied that met a conflict."""
        if b'"ids"' in exchange.body:
            await asyncio.to_thread(self._turn)
        return await exchange.forward()

    def _turn(self):
        self.turns += 1
        self._ids.reverse()
        self.raise_(self._ids[0])
        # At first the copy still remembers the version of what was just deleted there.
        if self.turns > 1:
            self.anew(self._ids[1])


def test_documents_made_anew_without_end_do_not_keep_a_retune_from_its_end(client, name, corpus, proxy, through):
    ids, remaking, stages = ("first", "second"), Remaking(client, name), []
    for one in ids:
        remaking.raise_(one)
    proxy.inject("/_reindex", repeat(remaking.before))

    def watch(progress):
        if progress.stage == "catching up" and progress.stage not in stages:
            for one in ids:
                remaking.anew(one)
        stages.append(progress.stage)

    done = retune(through, name, RetuneRequest(alpha=1.0), watch=watch)
    assert live(client, name) == done.index
    assert remaking.turns
    require_held(client, name, given(corpus) | dict.fromkeys(ids, remaking.document), KNOWN, 1.0)


TAKEN = 256  # lines that a load takes at a time
_SLOW_STEP = "int n = 0; for (int i = 0; i < 900000; i++) { n = (n + i * 31) % 1000; } ctx.slow = n;"


@pytest.fixture
def slow(client, pipelines):
    """A pipeline in whose time a retune and its swap go by, as one that makes vectors by a model."""
    name = f"{pipelines}-slow"
    client.ingest.put_pipeline(id=name, body={"processors": [{"script": {"source": _SLOW_STEP}}] * 2})
    return name


@pytest.mark.parametrize("command", ["retune", "rollback"])
def test_a_request_that_began_before_the_swap_and_ends_after_it_has_the_new_shift(client, name, slow, corpus, command):
    writers = [Writer(client, name, number, batch=BATCH) for number in range(2)]
    if command == "rollback":
        retune(client, name, RetuneRequest(alpha=1.0))
    assert run("pipeline", "install", name, "--after", slow).exit_code == 0
    with busy(*(one.write for one in writers)):
        done = retune(client, name, RetuneRequest(alpha=1.0)) if command == "retune" else roll_back(client, name)
    held = {**given(corpus), **{one: document for writer in writers for one, document in writer.held.items()}}
    assert live(client, name) == done.index
    require_held(client, name, held, KNOWN, 1.0 if command == "retune" else 0.5)


@pytest.fixture
def adding(client, name, corpus, tmp_path, monkeypatch):
    """A function that adds two batches to the index, and retunes that at a moment of the load; what is confirmed."""
    folder = tmp_path / "more"
    folder.mkdir()
    more = Corpus(folder, 2 * TAKEN // len(LANGUAGES) + 1)
    lines = more.path.read_text().splitlines(keepends=True)[: 2 * TAKEN]
    more.path.write_text("".join(lines))
    written = list(given(more).items())
    last = written[TAKEN - 1][0]
    before = client.get(index=name, id=last)["_version"]
    told, real = [], LoadRun._stage

    def first_batch_is_written():
        deadline = time.monotonic() + PATIENCE
        while client.get(index=name, id=last)["_version"] == before:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def add(moment):
        def stage(self, stage, documents, seconds):
            real(self, stage, documents, seconds)
            told.append(stage)
            if moment == "between" and stage == "shift" and told.count("shift") == 2:
                first_batch_is_written()
                retune(client, name, RetuneRequest(alpha=1.0))
            if moment == "after" and (stage, documents) == ("write", 0):
                retune(client, name, RetuneRequest(alpha=1.0))

        monkeypatch.setattr(LoadRun, "_stage", stage)
        vectors = saved(folder, KNOWN)
        options = ["--encoder", "given", "--vectors", vectors, "--alpha", 0.5, "--if-exists", "append"]
        done = run("ingest", more.path, "--index", name, *options)
        return done, given(corpus) | dict(written[: TAKEN if moment == "between" else 2 * TAKEN])

    return add


def test_a_load_that_has_written_all_when_a_retune_swaps_ends_well(client, name, adding):
    done, held = adding("after")
    assert done.exit_code == 0, done.exception
    assert f"{name} now points to {name}-v0002, which has the documents of {name}-v0001 too." in done.stderr
    require_held(client, name, held, KNOWN, 1.0)


def test_a_load_that_goes_on_after_the_swap_stops_and_says_what_is_where(client, name, adding):
    done, held = adding("between")
    now = f"{name}-v0002"
    told, code = refused(done)
    assert code == 1
    assert told.startswith(
        f"{name} now points to {now}: a retune, reencode or rollback has replaced {name}-v0001 while this load was "
        f"adding to it. What it had written is in {now} too, the rest is in neither. Run the load again with the "
        f"encoder, language vectors and scales of {now}. 256 lines of "
    )
    assert told.endswith(" handled, but this load cannot be resumed: start again without --resume.")
    for index, scale in ((name, 1.0), (f"{name}-v0001", 0.5)):
        require_held(client, index, held, KNOWN, scale)

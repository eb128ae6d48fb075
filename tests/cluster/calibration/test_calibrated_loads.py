"""Loads, ``adopt`` and ``reencode`` calibrate what they have made, and are done whatever becomes of that."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace

import pytest
from anchored_corpus import FEW, calibrate_few, corpus
from command_line import langshift, started
from embeddings_server import embeddings_server
from given_data import write_lines
from model_http import cut
from searched import make_index
from shifted_index import Corpus

from langshift.commands import load_calibration
from langshift.plugin import metadata, versions
from langshift.retrieval.calibration.calibrate import CalibrationRun
from langshift.retrieval.calibration.stored import resolve_auto

LANGUAGES = ("de", "th")
PLAN = re.compile(rf"Calibrating (\S+) with {FEW} documents: [\d,]+ texts to encode, and about [\d,]+ searches\.")


pytestmark = pytest.mark.usefixtures("cluster_env")


@pytest.fixture(autouse=True)
def _asks_for_it(monkeypatch):
    """The commands calibrate, by few documents."""
    monkeypatch.delenv("LANGSHIFT_NO_CALIBRATION")
    calibrate_few(monkeypatch, FEW)


@pytest.fixture
def load(index_name, tmp_path):
    """Load some documents into the index by the command, with more options."""

    def loaded(*options, groups=22, languages=LANGUAGES, name=index_name, **variables):
        path = write_lines(tmp_path / "corpus.jsonl", corpus(languages=languages, groups=groups))
        return langshift("ingest", path, "--index", name, *options, **variables)

    return loaded


def kept(client, name):
    """The calibration of the live version."""
    return versions.live(client, name).calibration


def remarks(done):
    """What a command said on standard error, but for what loads say of translations."""
    return [line for line in done.stderr.splitlines() if line and not line.startswith("Translated: ")]


def sentence(name, why="a calibration takes 30 documents or more, in two languages or more."):
    return f"{name} is not calibrated, so mode auto is dense: {why}"


def again(name, why):
    return f"{name} is not calibrated, so mode auto is dense; `langshift anchors calibrate {name}` tries again: {why}"


def require_calibrated(client, done, index):
    """A command has calibrated this version, and said what it found at its end; what it said beside that."""
    assert done.returncode == 0, done
    found = versions.live(client, index)
    assert resolve_auto(found).origin == "calibration"
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"{index}: mode auto is {found.calibration['mode']}. "), last
    plan, *more = remarks(done)
    assert PLAN.fullmatch(plan)[1] == index
    return more


@pytest.fixture
def finds_dense(monkeypatch):
    """Returns a function after which calibrations find mode dense, which few documents leave to chance."""
    usual = CalibrationRun.measure

    def measure(run, *given, **more):
        return replace(usual(run, *given, **more), mode="dense")

    return lambda: monkeypatch.setattr(CalibrationRun, "measure", measure)


def test_a_load_calibrates_a_new_version_and_says_what_that_promises(client, index_name, load, finds_dense):
    assert require_calibrated(client, load(), f"{index_name}-v0001") == []
    first = kept(client, index_name)
    # As long as that holds, what is added changes nothing.
    assert remarks(load("--if-exists", "append", groups=3)) == []
    assert kept(client, index_name) == first
    # By another calibration of the version before, its searches change.
    finds_dense()
    other = {**first, "mode": "hybrid", "lexical_weight": 0.1}
    metadata.change(client, f"{index_name}-v0001", {metadata.ANCHORS: other})
    done = load("--if-exists", "new-version")
    changed = f"Searches of {index_name} in mode auto change from hybrid to dense."
    assert require_calibrated(client, done, f"{index_name}-v0002") == [changed]
    # JSON is alone on standard output.
    done = load("--if-exists", "replace", "--json")
    assert json.loads(done.stdout)["index"] == f"{index_name}-v0003"
    assert remarks(done)[-1].startswith(f"{index_name}-v0003: mode auto is dense. ")


def test_what_an_append_makes_another_index_is_calibrated_again(client, index_name, load):
    assert remarks(load(groups=14)) == [sentence(index_name)]
    # Of one that is still too small, nothing is said again.
    assert remarks(load("--if-exists", "append", groups=14)) == []
    require_calibrated(client, load("--if-exists", "append"), f"{index_name}-v0001")
    measured = kept(client, index_name)
    assert measured["measured_with"]["documents"] == 44
    outdated = {**measured, "measured_with": {**measured["measured_with"], "documents": 10}}
    metadata.change(client, f"{index_name}-v0001", {metadata.ANCHORS: outdated})
    require_calibrated(client, load("--if-exists", "append"), f"{index_name}-v0001")


def test_who_wants_none(client, index_name, load):
    for options, variables in ((["--no-calibration"], {}), ([], {"LANGSHIFT_NO_CALIBRATION": "1"})):
        done = load(*options, "--if-exists", "replace", **variables)
        assert (done.returncode, remarks(done), kept(client, index_name)) == (0, [], None)


def test_one_language_or_given_vectors_are_not_enough(client, index_name, load, tmp_path):
    done = load(languages=("de",))
    assert (done.returncode, remarks(done), kept(client, index_name)) == (0, [sentence(index_name)], None)
    name = f"{index_name}-given"
    path = Corpus(tmp_path, each=9).path
    done = langshift("ingest", path, "--index", name, "--encoder", "given", "--alpha", 0)
    given = "its vectors were given, and a calibration has to encode queries."
    assert (done.returncode, remarks(done)[-1]) == (0, sentence(name, given))


def test_adopted_and_reencoded_versions(client, index_name, tmp_path, finds_dense):
    make_index(client, tmp_path / "c.jsonl", f"{index_name}-made", lines=corpus(languages=LANGUAGES), alpha=0.0)
    old, name = f"{index_name}-old", f"{index_name}-new"
    properties = client.indices.get_mapping(index=f"{index_name}-made-v0001")[f"{index_name}-made-v0001"]["mappings"]
    properties = {"vec": properties["properties"]["embedding"], "body": {"type": "text"}}
    settings = {"index": {"knn": True, "number_of_replicas": 0}}
    client.indices.create(index=old, body={"settings": settings, "mappings": {"properties": properties}})
    for hit in client.search(index=f"{index_name}-made", body={"size": 1000})["hits"]["hits"]:
        ((language, text),) = hit["_source"]["text"].items()
        body = {"vec": hit["_source"]["embedding"], "body": text, "lang": language}
        client.index(index=old, id=hit["_id"], body=body)
    client.indices.refresh(index=old)
    fields = ("--vector-field", "vec", "--text-field", "body", "--language-field", "lang", "--encoder", "use-m")
    done = langshift("adopt", old, "--name", name, *fields)
    assert require_calibrated(client, done, f"{name}-v0001") == []
    # Vectors of another alpha have lost the calibration.
    finds_dense()
    before = {**kept(client, name), "mode": "hybrid", "lexical_weight": 0.1}
    metadata.change(client, f"{name}-v0001", {metadata.ANCHORS: before})
    done = langshift("reencode", name, "--encoder", "use-m", "--alpha", 0.25)
    more = require_calibrated(client, done, f"{name}-v0002")
    assert more == [f"Searches of {name} in mode auto change from hybrid to dense."]
    done = langshift("reencode", name, "--encoder", "use-m", "--alpha", 0.5, "--no-calibration")
    assert (done.returncode, remarks(done), kept(client, name)) == (0, [], None)


def test_an_encoder_that_goes_away_fails_no_load(client, index_name, load):
    with embeddings_server() as server:
        usual = CalibrationRun.measure
        with pytest.MonkeyPatch.context() as patch:

            def measure(run, *given, **more):
                server.always = cut
                return usual(run, *given, **more)

            patch.setattr(CalibrationRun, "measure", measure)
            done = load("--encoder", server.name, "--alpha", 0, "--patience", 0)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("All 44 lines of ")
    assert remarks(done)[-1].startswith(again(index_name, f"The embedding server at {server.url}")), done.stderr
    assert kept(client, index_name) is None
    assert versions.live(client, index_name).documents == 44


def test_a_server_that_is_slow_and_an_error_that_nobody_has_thought_of(index_name, load, monkeypatch):
    monkeypatch.setattr(load_calibration, "_LONGEST", -60.0)
    done = load()
    assert (done.returncode, remarks(done)[-1]) == (0, again(index_name, "It was not done after -1 minutes."))

    def measure(*_, **__):
        raise RuntimeError("out of\nmemory")

    monkeypatch.setattr(CalibrationRun, "measure", measure)
    done = load("--if-exists", "replace")
    why = "An unexpected error occurred (RuntimeError: out of memory)."
    assert (done.returncode, remarks(done)[-1]) == (0, again(index_name, why))


def test_an_interrupt_leaves_the_load_as_it_is(client, index_name, tmp_path):
    path = write_lines(tmp_path / "corpus.jsonl", corpus(languages=LANGUAGES, groups=22))
    with started("ingest", path, "--index", index_name, "--encoder", "use-m") as process:
        for line in process.stderr:
            if line.startswith(b"Calibrating "):
                break
        assert versions.live(client, index_name).documents == 44
        process.send_signal(signal.SIGINT)
        out, err = (stream.decode() for stream in process.communicate(timeout=60))
    assert process.returncode == 130
    assert out.splitlines()[-1].startswith("All 44 lines of ")
    # An interrupt just after a line was written may have it written once more.
    assert [line for line in err.splitlines() if line and not line.startswith("Calibrating ")] == [
        f"{index_name} is complete, but not calibrated, so mode auto is dense: `langshift anchors calibrate "
        f"{index_name}`.",
        "Interrupted.",
    ]
    assert kept(client, index_name) is None

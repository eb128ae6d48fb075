"""``langshift anchors calibrate`` on a real cluster: measured on the index itself, and kept in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from anchored_corpus import LANGUAGES, corpus
from command_line import langshift
from given_data import run, write_lines
from searched import drop, make_index
from shifted_index import printed, refused

from langshift.errors import ClusterError
from langshift.plugin import metadata, versions
from langshift.retrieval.anchored import USUAL_PRIOR, USUAL_WORDS, AnchorModel
from langshift.retrieval.calibration.calibrate import draw_passages, evidence, execute_all, make_questions
from langshift.retrieval.calibration.fit import measured_spread, spread_of
from langshift.retrieval.calibration.stored import measured_with, resolve_auto, trust_of
from langshift.retrieval.dsl import MOST
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchSettings

from .security_plugin import Guard
from .tls_proxy import proxy

DOCS = Path(__file__).parents[2] / "docs" / "permissions.md"
USER, PASSWORD = "loader", "s3cret"


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    # Which documents are looked at goes by the name, too: with this one they are the same in every run.
    name = "langshift-test-anchors-a"
    drop(client, name)
    make_index(client, tmp_path_factory.mktemp("anchors") / "corpus.jsonl", name, lines=corpus())
    yield name
    drop(client, name)


@pytest.fixture(autouse=True)
def _cluster(cluster_env):
    """Commands find it."""


@pytest.fixture
def plain(client, name):
    """The index, not calibrated before or after."""
    index = versions.live(client, name)
    metadata.change(client, index.index, {metadata.ANCHORS: None})
    yield index
    metadata.change(client, index.index, {metadata.ANCHORS: None})


def test_what_is_measured_is_told_and_kept_and_all_else_stays(client, plain, name):
    before = metadata.read_metadata(client, plain.index)
    told = printed(run("anchors", "calibrate", name, "--sample", 60, "--json"))
    after = metadata.read_metadata(client, plain.index)
    kept = after.pop(metadata.ANCHORS)
    assert after == before
    assert told["index"] == plain.index
    assert [(one["language"], one["questions"]) for one in told["languages"]] == [(tag, 15) for tag in LANGUAGES]
    assert told["questions"] == told["first_hits"]["there"]["questions"] == 60
    assert 6 <= told["words"] <= 20
    assert told["fitted_words"] == told["words"]
    assert not told["lost"]
    assert told["spread"] == pytest.approx(measured_spread(client, plain, 300))
    # Every content is there in German, half of them in English.
    assert told["priors"] == {"de": 2.0, "en": -0.5, "th": 2.0, "zh": 2.0}
    assert told["found"] > 0.9
    assert told["deceived"] < 0.4
    there, hidden = told["first_hits"]["there"], told["first_hits"]["hidden"]
    assert there["anchored"] > there["dense"]
    assert hidden["questions"] == 60
    assert hidden["chance"] > 0.05
    at, measured_with = kept.pop("at"), kept.pop("measured_with")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", at)
    assert measured_with == {
        "alpha": plain.fingerprint.alpha,
        "alphas": {},
        "gamma": plain.fingerprint.gamma,
        "vectors": plain.fingerprint.vectors,
        "method": "shift",
        "documents": plain.documents,
    }
    assert kept == {
        **{
            part: told[part]
            for part in ("spread", "words", "priors", "strength", "mode", "lexical_weight", "questions")
        },
        **{part: round(told[part], 4) for part in ("found", "deceived")},
    }
    index = versions.live(client, name)
    assert trust_of(client, index) == AnchorModel.from_dict(told)
    assert resolve_auto(index).origin == "calibration"


def test_the_same_index_gives_the_same_by_any_of_its_names(plain, name):
    first, second = (printed(run("anchors", "calibrate", n, "--sample", 40, "--json")) for n in (name, plain.index))
    assert first == second


def test_a_person_is_told_in_words(client, plain, name):
    done = run("anchors", "calibrate", name, "--sample", 40)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["language", "queries", "found", "false", "trust", "prior"]
    assert [line.split()[:2] for line in lines[1:5]] == [[tag, "10"] for tag in LANGUAGES]
    assert lines[1].split()[4] == "+2.00"
    kept = metadata.read_metadata(client, plain.index)[metadata.ANCHORS]
    assert lines[5:10] == [
        "",
        "found: the share of queries whose own document is trusted most. false trust: how far others of its language",
        "are trusted when it is hidden, at a prior of 0 at most. prior: log-odds that what is searched for exists in",
        "this language, by the translation groups, less 2: above 0 only where nearly everything exists.",
        "",
    ]
    assert lines[10] == (
        f"{plain.index}: words k {kept['words']:g} (default 13), spread of cosines {kept['spread']:.4f} (queries: 40)."
    )
    share = r"dense [01]\.\d{3}, anchored [01]\.\d{3} \(queries: 40\)\."
    assert re.fullmatch(rf"The first hit is the query's own document: {share}", lines[11])
    assert re.fullmatch(rf"Where that is hidden, it is a translation: {share}", lines[12])
    assert len(lines) == 13


def test_without_a_calibration_a_sample_is_measured_and_a_note_says_so(client, plain, name):
    trust = trust_of(client, plain)
    assert trust == AnchorModel(
        measured_spread(client, plain, 200), priors={"de": 2.0, "en": -0.5, "th": 2.0, "zh": 2.0}
    )
    assert (trust.words, trust.prior("ru"), trust.calibrated) == (USUAL_WORDS, USUAL_PRIOR, False)
    hits = client.search(index=plain.index, body={"size": 1000, "_source": ["embedding"]})["hits"]["hits"]
    every = np.array([hit["_source"]["embedding"] for hit in hits], np.float32)
    assert trust.spread == pytest.approx(spread_of(every), rel=0.1)
    remedy = f"`langshift anchors calibrate {name}`"
    sentence = f"{name} is not calibrated, so mode anchored uses default values and auto is dense: run {remedy}."
    done = run("search", name, "Warum steigt das Meer?", "--mode", "anchored", "--size", 1)
    assert (done.exit_code, done.stderr) == (0, f"{sentence}\n")
    # A search that nobody asked to be anchored says nothing of it but where it explains itself.
    found = Searcher(client, name).search("Warum steigt das Meer?")
    assert (found.setting.mode, found.mode_from, found.mode_reason, found.notes) == ("dense", "default", sentence, ())
    done = run("search", name, "Warum steigt das Meer?", "--size", 1)
    assert (done.exit_code, done.stderr) == (0, "")
    assert sentence in printed_words(run("search", name, "Warum steigt das Meer?", "--size", 1, "--explain"))


def printed_words(done):
    """What a command printed, its lines joined."""
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("mode", ["anchored", "hybrid", "dense"])
def test_a_search_without_a_mode_is_in_the_one_that_calibration_found_to_be_best(client, plain, name, mode):
    kept = {"mode": mode, "lexical_weight": 0.25, "measured_with": measured_with(plain)}
    metadata.change(client, plain.index, {metadata.ANCHORS: AnchorModel(0.1).to_dict() | kept})
    words = "Warum steigt das Meer?"
    how = ("--mode", "hybrid", "--lexical-weight", 0.25) if mode == "hybrid" else ("--mode", mode)
    auto, chosen = (printed(run("search", name, words, "--size", 5, *options, "--json")) for options in ((), how))
    assert (auto["mode"], auto["mode_from"], chosen["mode_from"]) == (mode, "calibration", "asked")
    assert auto["mode_reason"].startswith(f"Mode {mode}")
    assert chosen["mode_reason"] == f"Mode {mode}, as requested."
    same = ("hits", "lexical_weight", "preference", "anchors")
    assert [auto[part] for part in same] == [chosen[part] for part in same]
    (one,) = {run("search", name, words, "--size", 5, *options).stdout for options in ((), how)}
    assert one
    grouped = printed(run("search", name, words, "--one-per-group", "--json"))
    assert (grouped["mode"], grouped["one_per_group"]) == (mode, True)
    filtered = printed(run("search", name, words, "--filter", "language=th", "--language", "und", "--json"))
    assert (filtered["mode"], {hit["language"] for hit in filtered["hits"]}) == (mode, {"th"})


@pytest.mark.parametrize("then", [{"documents": "many"}, {"documents": None}, "alpha 1", [1], None])
def test_what_a_calibration_was_measured_with_and_cannot_be_read_is_told_in_a_sentence(client, plain, name, then):
    before = metadata.read_metadata(client, plain.index).get(metadata.ANCHORS)
    kept = {**AnchorModel(0.1).to_dict(), "measured_with": then}
    metadata.change(client, plain.index, {metadata.ANCHORS: kept})
    try:
        index = versions.live(client, name)
        with pytest.raises(ClusterError) as caught:
            trust_of(client, index)
        assert str(caught.value) == resolve_auto(index).reason
        assert str(caught.value) == (
            f"The calibration in the mapping of {plain.index} (_meta.langshift_anchors) cannot be read: run "
            f"`langshift anchors calibrate {name}` again."
        )
    finally:
        metadata.change(client, plain.index, {metadata.ANCHORS: before})


def test_a_retune_takes_the_calibration_along_and_a_note_tells(client, tmp_path, index_name):
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=corpus(languages=["de", "th"]))
    told = printed(run("anchors", "calibrate", index_name, "--sample", 40, "--json"))
    due = (
        f"{index_name} was calibrated with alpha 1.0 (now 0.5), so mode auto is dense: run `langshift "
        f"anchors calibrate {index_name}` again."
    )
    retuned = run("retune", index_name, "--alpha", "0.5")
    assert retuned.exit_code == 0
    assert due in retuned.stderr.splitlines()
    index = versions.live(client, index_name)
    assert index.index == f"{index_name}-v0002"
    assert trust_of(client, index) == AnchorModel.from_dict(told)
    found = Searcher(client, index_name).search("Warum steigt das Meer?", SearchSettings("anchored"))
    assert found.notes == (due,)
    assert due in run("index", "describe", index_name).stderr


def test_a_load_and_doctor_say_that_a_calibration_is_due(tmp_path, index_name, cluster_url):
    path = write_lines(tmp_path / "corpus.jsonl", corpus(languages=["de", "th"]))
    due = (
        f"{index_name} is not calibrated, so mode anchored uses default values and auto is dense: run `langshift "
        f"anchors calibrate {index_name}`."
    )
    load = "ingest", path, "--index", index_name, "--encoder", "use-m"
    assert run(*load).stderr.splitlines()[-1] == due
    findings = json.loads(langshift("doctor", "--json", url=cluster_url).stdout)["findings"]
    assert [one["remedy"] for one in findings if one["name"] == f"index {index_name}"] == [due]
    printed(run("anchors", "calibrate", index_name, "--sample", 40, "--json"))
    assert due not in run(*load, "--if-exists", "append").stderr


def test_what_is_kept_and_cannot_be_read_is_an_error(client, plain, name):
    for broken in ({"spread": "wide"}, {"spread": 0.1, "words": 9, "priors": 1}, [1]):
        metadata.change(client, plain.index, {metadata.ANCHORS: broken})
        assert refused(run("search", name, "Meer", "--mode", "anchored")) == (
            f"The calibration in the mapping of {plain.index} (_meta.langshift_anchors) cannot be read: run "
            f"`langshift anchors calibrate {name}` again.",
            1,
        )


def test_behind_a_write_block_an_index_is_calibrated_all_the_same(client, plain, name):
    client.indices.add_block(index=plain.index, block="write")
    try:
        told = printed(run("anchors", "calibrate", name, "--sample", 30, "--json"))
    finally:
        client.indices.put_settings(index=plain.index, body={"index.blocks.write": None})
    assert metadata.read_metadata(client, plain.index)[metadata.ANCHORS]["words"] == told["words"]


def test_what_a_question_was_cut_out_of_is_found_and_with_it_hidden_is_not(client, plain):
    asker = Searcher(client, plain)
    copy = client.search(index=plain.index, body={"size": 1, "query": {"term": {"language": "de"}}})["hits"]["hits"][0]
    client.index(index=plain.index, id="copy", body=copy["_source"] | {"group": "other"}, refresh=True)
    try:
        asked = make_questions(asker, draw_passages(asker, 200, MOST))
        gathered = evidence(asker, asked)
    finally:
        client.delete(index=plain.index, id="copy", refresh=True)
    copies = {one.passage.id: one.answers for one in asked if len(one.answers) > 1}
    assert copies.pop(copy["_id"]) == {copy["_id"], "copy"}
    assert set(copies) <= {"copy"}
    found = [bool(set(one.there.ids) & set(one.answers)) for one in gathered]
    assert np.mean(found) > 0.95
    assert not any(set(one.hidden.ids) & set(one.answers) for one in gathered)
    groups = {hit["_id"]: hit["_source"].get("group") for hit in _every(client, plain)}
    for one, of in zip(gathered, asked, strict=True):
        own = [n for n, candidate in zip(one.hidden.ids, one.hidden.candidates, strict=True) if candidate.own]
        assert of.passage.group not in {groups.get(n) for n in own}


def _every(client, index):
    return client.search(index=index.index, body={"size": 1000, "_source": ["group"]})["hits"]["hits"]


def test_a_search_that_fails_is_told_as_it_is(client, plain):
    def wrong():
        yield ({"query": {"unheard_of": {}}},)

    with pytest.raises(Exception, match="unknown query \\[unheard_of\\]"):
        execute_all(Searcher(client, plain), [wrong()])


def test_who_may_load_may_calibrate_and_who_may_search_may_not(
    client, plain, name, cluster_url, authority, monkeypatch
):
    blocks = re.findall(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    searching, loading, _ = (json.loads(block.replace('"news', f'"{name}')) for block in blocks)

    def secured(role, *command):
        guard = Guard(role, USER)
        with proxy(cluster_url, tls=authority.server, credentials=(USER, PASSWORD), refuse=guard) as (url, _):
            variables = {"URL": url, "USERNAME": USER, "PASSWORD": PASSWORD, "CA_FILE": str(authority.file)}
            for variable, value in variables.items():
                monkeypatch.setenv(f"OPENSEARCH_{variable}", value)
            done = run(*command)
        assert guard.unknown == []
        return done, guard.used

    calibrate = ("anchors", "calibrate", name, "--sample", 30)
    done, _ = secured(searching, *calibrate)
    assert "indices:admin/mapping/put" in str(done.exception)
    assert metadata.ANCHORS not in metadata.read_metadata(client, plain.index)
    done, used = secured(loading, *calibrate)
    assert (done.exit_code, done.stderr) == (0, "")
    assert metadata.ANCHORS in metadata.read_metadata(client, plain.index)
    (row,) = re.findall(r"^\| `anchors calibrate` \|(.*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    usual = {"cluster:monitor/main", "cluster:monitor/state", "cluster:monitor/nodes/info"}
    assert set(used) - usual == set(re.findall(r"`([^`]*)`", row))
    done, _ = secured(searching, "search", name, "Meer", "--mode", "anchored", "--size", 1)
    assert (done.exit_code, done.stderr) == (0, "")

"""``langshift anchors calibrate`` on a real cluster: measured on the index itself, and kept in it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from anchored_corpus import FEW, calibrate_few, corpus
from documents import REFERENCE
from given_data import run, write_lines
from planted_sparse import Planted, PlantedSparse
from searched import drop, make_index
from shifted_index import printed, refused

from langshift.debias.similarity import with_norm_1
from langshift.errors import ClusterError
from langshift.ingest.config import PipelineOptions
from langshift.ingest.reencode import reencode
from langshift.plugin import metadata, versions
from langshift.retrieval.calibration.calibrate import TOLERATED, CalibrationCost, CalibrationRun
from langshift.retrieval.calibration.changes import gain, readers_lose
from langshift.retrieval.calibration.questions import draw_passages, execute_all, make_questions, masked
from langshift.retrieval.calibration.stored import measured_spread, measured_with, resolve_auto, spread_of, trust_of
from langshift.retrieval.dsl import MOST, of_documents
from langshift.retrieval.question import USUAL_STRENGTH, AnchorModel, SearchRequest
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.search import search
from langshift.retrieval.searcher import Searcher

DOCS = REFERENCE / "permissions.md"
LANGUAGES = ("de", "en", "th")
# Documents of the calibration that most of these tests read, and of how many questions each part of it is made.
ASKED, EACH = 15, 45


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    # Which documents are looked at goes by the name, too: with this one they are the same in every run.
    name = "langshift-test-anchors-a"
    drop(client, name)
    # Every step of a search asks for each language.
    lines = corpus(languages=LANGUAGES)
    make_index(client, tmp_path_factory.mktemp("anchors") / "corpus.jsonl", name, lines=lines)
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


class Calibrated(NamedTuple):
    """A calibration of few documents by the command line, which takes a thousand searches all the same.

    Attributes:
        printed: what it prints, in words.
        stderr: what it says beside that.
        told: what it writes to the index, but for when and with what that was measured.
        before: the metadata of the index before it, and
        after: after it.
        cost: what it said beforehand that it would take.
        begun: what it began, each with the number of searches.
        searches: how many were done at a time.
    """

    printed: str
    stderr: str
    told: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]
    cost: CalibrationCost
    begun: list[tuple[str, int]]
    searches: list[int]


@pytest.fixture(scope="module")
def measured(client, cluster_url, name):
    """With a write block, asked for by the version's name; it is not there afterwards."""
    index, usual = versions.live(client, name).index, CalibrationRun.measure
    costs, begun, searches = [], [], []

    def measure(calibration, log, on_stage, on_search):
        costs.append(calibration.cost)
        return usual(
            calibration,
            log,
            lambda *stage: begun.append(stage) or on_stage(*stage),
            lambda count: searches.append(count) or on_search(count),
        )

    before = metadata.read_metadata(client, index)
    client.indices.add_block(index=index, block="write")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        patch.setattr(CalibrationRun, "measure", measure)
        calibrate_few(patch, ASKED)
        done = run("anchors", "calibrate", index, "--sample", 30)
    client.indices.put_settings(index=index, body={"index.blocks.write": None})
    assert done.exit_code == 0, done.output
    after = metadata.read_metadata(client, index)
    metadata.change(client, index, {metadata.ANCHORS: None})
    told = {part: one for part, one in after[metadata.ANCHORS].items() if part not in ("at", "measured_with")}
    return Calibrated(done.stdout, done.stderr, told, before, after, *costs, begun, searches)


def test_what_is_measured_is_kept_and_all_else_stays(client, plain, name, measured):
    after = dict(measured.after)
    assert measured.stderr == (
        f"Calibrating {plain.index} with {ASKED} documents: {EACH} texts to encode, and about 480 searches.\n"
    )
    written = after.pop(metadata.ANCHORS)
    assert after == {name: part for name, part in measured.before.items() if name != metadata.ANCHORS}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", written["at"])
    assert written["measured_with"] == {
        "alpha": plain.fingerprint.alpha,
        "alphas": {},
        "gamma": plain.fingerprint.gamma,
        "own": plain.fingerprint.own,
        "vectors": plain.fingerprint.vectors,
        "documents": plain.documents,
    }
    metadata.change(client, plain.index, {metadata.ANCHORS: written})
    index = versions.live(client, name)
    told = measured.told
    trust = AnchorModel(told["spread"], told["strength"], calibrated=True, counterpart=told["counterpart"])
    assert trust_of(client, index, None) == trust
    assert resolve_auto(index).origin == "calibration"


def test_it_says_how_far_reranking_by_features_may_go(client, plain, name, measured):
    metadata.change(client, plain.index, {metadata.ANCHORS: measured.after[metadata.ANCHORS]})
    strength = measured.told["rerank"]["dense"]
    assert strength in (0, 0.03, 0.1, 0.3, 1)
    assert {one["answer"] for one in measured.told["reranked"]["dense"]} == {"own", "other"}
    sentence = (
        f"Reranking (--rerank features) may go {strength:g} of its way in mode dense (nDCG@20 "
        if strength
        else "Reranking (--rerank features) would cost answers in mode dense, so it leaves the order as it is."
    )
    assert sentence in measured.printed
    words = "how do bees find their way"
    told = printed(run("search", name, words, "--mode", "dense", "--rerank", "features", "--json"))
    assert not [note for note in told["notes"] if "calibrated" in note]


def test_words_of_the_documents_lead_to_them_and_other_words_cost_nothing(client, name, measured):
    """Every content is there in German and Thai, half of them in English."""
    told = measured.told
    parts = {(one["answer"], one["vagueness"] or one["overlap"]): one for one in told["changes"]}
    assert {part: one["questions"] for part, one in parts.items()} == dict.fromkeys(
        [("own", "all"), ("own", "half"), ("own", "none"), ("other", 1.0), ("other", 0.5), ("other", 0.25)], EACH
    )
    # Too few documents in each language to predict anything of it.
    assert [(one["answer"], one["language"]) for one in told["predicted"]] == [("own", None), ("other", None)]
    assert all(one["lowest"] <= one["highest"] for one in told["predicted"])
    assert (told["documents"], told["questions"], told["overlap"]) == (ASKED, 6 * EACH, None)
    # Of two of the three languages each content is there in two, and in every second case in three.
    assert 0.75 < told["translated"] < 0.95
    assert told["spread"] == pytest.approx(measured_spread(client, versions.live(client, name), None, 300))
    full = {one["overlap"]: one["ndcg"] for one in told["full_strength"] if one["answer"] == "own"}
    assert full["all"] > 0.05
    assert full["all"] > full["none"]
    # So many documents are few to be sure by.
    assert (told["mode"] == "anchored") == (told["strength"] > 0)
    assert told["loss"] <= 0.004
    assert told["lexical_weight"] in (None, 0.3, 0.1, 0.03)


@pytest.mark.usefixtures("few_are_calibrated")
def test_weights_of_tokens_are_calibrated_as_words_are(client, index_name, tmp_path, monkeypatch):
    Planted(monkeypatch)
    monkeypatch.setattr("langshift.retrieval.searcher.open_sparse", lambda name, **_: PlantedSparse(name))
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=corpus(languages=("de", "en"), groups=22))
    reencode(client, index_name, PipelineOptions("use-m", sparse="st:one"))
    found = CalibrationRun(Searcher(client, index_name), 30).measure()
    assert [one.questions for one in found.tokens] == [one.questions for one in found.hybrid]
    assert [one.ndcg for one in found.tokens] != [one.ndcg for one in found.hybrid]
    loses = any(one.loses(TOLERATED, -1.645) for one in found.tokens) or readers_lose(found.tokens, TOLERATED)
    words = None if found.lexical_weight is None else gain(found.hybrid)
    useless = words is not None and gain(found.tokens) <= words
    assert (found.sparse_weight is None) == (loses or useless)
    kept = found.to_dict()
    assert (kept["sparse_weight"], len(kept["tokens"])) == (found.sparse_weight, len(found.tokens))


def test_on_the_way_a_person_sees_how_far_it_is(measured):
    begun, cost = measured.begun, measured.cost
    assert begun == [("Encoding", 0), ("Searching", cost.searches), ("Comparing", 0)]
    # What was said beforehand is about what was done, whatever was tried: strengths, shares of words, rerankers.
    assert cost.searches * 0.8 < sum(measured.searches) < cost.searches * 1.2
    assert (cost.documents, cost.encoded) == (ASKED, EACH)


@pytest.mark.usefixtures("few_are_calibrated")
def test_what_people_asked_tells_how_hard_questions_are(client, plain, name, tmp_path):
    texts = [line["text"] for line in corpus(languages=["de"])[:20]]
    lines = [{"text": " ".join(text.split()[:8]), "language": "de"} for text in texts]
    lines += [{"text": f"Wozu dient eigentlich Ding {n}?"} for n in range(20)]
    log = write_lines(tmp_path / "log.jsonl", lines)
    done = run("anchors", "calibrate", name, "--sample", 30, "--queries", log, "--json")
    assert f"with {FEW} documents: {3 * FEW + 40} texts to encode" in done.stderr
    told = printed(done)
    # What is kept is what is printed as JSON.
    kept = metadata.read_metadata(client, plain.index)[metadata.ANCHORS]
    assert {"index": plain.index, **kept} == told | {part: kept[part] for part in ("at", "measured_with")}
    assert 0.1 < told["overlap"] < 0.7
    # Half of the queries repeat a sentence, more words of it than any query that is made up.
    parts = [(part["answer"], part["vagueness"] or part["overlap"]) for part in told["changes"]]
    assert [level for answer, level in parts if answer == "own"] == ["all"]
    assert 1 <= len([level for answer, level in parts if answer == "other"]) <= 2


@pytest.mark.parametrize("how", [(), ("--one-per-group",), ("--prefer-language", 0.05)])
def test_at_strength_0_anchored_finds_what_dense_finds(client, plain, name, how):
    kept = {"mode": "dense", "lexical_weight": None, "rerank": {}, "measured_with": measured_with(plain)}
    metadata.change(client, plain.index, {metadata.ANCHORS: AnchorModel(0.1, 0.0).to_dict() | kept})
    for words in ("Warum steigt das Meer?", "yeast", "月球"):
        anchored, dense = (
            printed(run("search", name, words, "--mode", mode, *how, "--json")) for mode in ("anchored", "dense")
        )
        assert anchored["hits"] == dense["hits"]
        assert (anchored["mode"], anchored["mode_from"], anchored["notes"]) == ("dense", "asked", [])
        assert anchored["mode_reason"] == (
            f"Mode anchored, as requested; its strength in {name} is 0, so it finds what dense finds."
        )


@pytest.mark.parametrize(
    ("safe", "note"),
    [
        (None, "Calibration found no weight of words at which hybrid search of {} loses nothing.\n"),
        (
            0.1,
            "Hybrid search of {} may lose answers with words weighing 0.3: calibration found 0.1 to be the highest "
            "weight tried at which nothing is lost.\n",
        ),
        (0.3, ""),
    ],
)
def test_whoever_searches_hybrid_hears_where_that_may_lose_answers(client, plain, name, safe, note):
    kept = {"mode": "dense", "lexical_weight": safe, "rerank": {}, "measured_with": measured_with(plain)}
    metadata.change(client, plain.index, {metadata.ANCHORS: AnchorModel(0.1).to_dict() | kept})
    done = run("search", name, "Meer", "--mode", "hybrid", "--size", 1)
    assert (done.exit_code, done.stderr) == (0, note.format(name))


def test_without_a_calibration_a_sample_is_measured_and_a_note_says_so(client, plain, name):
    trust = trust_of(client, plain, None)
    assert trust == AnchorModel(measured_spread(client, plain, None, 200), USUAL_STRENGTH, calibrated=False)
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


@pytest.mark.parametrize("mode", ["dense", "anchored"])
@pytest.mark.parametrize("how", [{}, {"prefer_language": 0.02}, {"one_per_group": True}, {"rerank": "features"}])
def test_an_answer_says_whether_the_nearest_document_is_too_far_for_anything_to_fit(client, plain, name, mode, how):
    kept = {"mode": mode, "lexical_weight": None, "rerank": {}, "measured_with": measured_with(plain)}
    kept = AnchorModel(0.1, 0.5).to_dict() | kept
    own = corpus(languages=["de"])[0]["text"]

    def found(words, caught=0.9, **other):
        told = {"no_answer": {"below": 0.75, "caught": caught}}
        metadata.change(client, plain.index, {metadata.ANCHORS: kept | told})
        return Searcher(client, name).search(words, SearchSettings(other.get("mode", mode), **how), language="de")

    known, far = found(own), found("Xq zzv blorp 77")
    assert (known.nothing_fits, far.nothing_fits) == (False, True)
    sentence = r"The nearest document is farther from the query than what answers usually is \(cosine (\S+), below "
    sentence += r"0\.7500\): perhaps nothing answers it\."
    (cosine,) = [told[1] for note in far.notes if (told := re.fullmatch(sentence, note))]
    assert not [note for note in known.notes if "farther" in note]
    exact = Searcher(client, name).encode(["Xq zzv blorp 77"])[0]
    hits = client.search(index=plain.index, body={"size": 1000, "_source": ["embedding"]})["hits"]["hits"]
    rows = with_norm_1(np.array([hit["_source"]["embedding"] for hit in hits], np.float32))
    assert float(cosine) == pytest.approx(float((rows @ with_norm_1(exact)).max()), abs=2e-4)
    for unknown in (found("Xq zzv blorp 77", caught=0.3), found("Xq zzv blorp 77", mode="hybrid")):
        assert unknown.nothing_fits is None
        assert not [note for note in unknown.notes if "farther" in note]


def printed_words(done):
    """What a command printed, its lines joined."""
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("mode", ["anchored", "hybrid", "dense"])
def test_a_search_without_a_mode_is_in_the_one_that_calibration_found_to_be_best(client, plain, name, mode):
    kept = {"mode": mode, "lexical_weight": 0.25, "rerank": {}, "measured_with": measured_with(plain)}
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
    kept = {**AnchorModel(0.1).to_dict(), "mode": "dense", "lexical_weight": None, "rerank": {}, "measured_with": then}
    metadata.change(client, plain.index, {metadata.ANCHORS: kept})
    try:
        index = versions.live(client, name)
        with pytest.raises(ClusterError) as caught:
            trust_of(client, index, None)
        assert str(caught.value) == resolve_auto(index).reason
        assert str(caught.value) == (
            f"The calibration in the mapping of {plain.index} (_meta.langshift_anchors) cannot be read: run "
            f"`langshift anchors calibrate {name}` again."
        )
    finally:
        metadata.change(client, plain.index, {metadata.ANCHORS: before})


def test_a_retune_takes_the_calibration_along_and_a_note_tells(client, tmp_path, index_name):
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=corpus(languages=["de", "th"]))
    kept = calibrated(client, index_name)
    due = (
        f"{index_name} was calibrated with alpha 1.0 (now 0.5), so mode auto is dense: run `langshift "
        f"anchors calibrate {index_name}` again."
    )
    retuned = run("retune", index_name, "--alpha", "0.5")
    assert retuned.exit_code == 0
    assert due in retuned.stderr.splitlines()
    index = versions.live(client, index_name)
    assert index.index == f"{index_name}-v0002"
    assert trust_of(client, index, None) == kept
    found = Searcher(client, index_name).search("Warum steigt das Meer?", SearchSettings("anchored"))
    assert found.notes == (due,)
    assert due in run("index", "describe", index_name).stderr


def calibrated(client, name):
    """What an index is made to keep as its calibration, without measuring it."""
    index, trust = versions.live(client, name), AnchorModel(0.1, calibrated=True)
    kept = {"mode": "anchored", "lexical_weight": None, "rerank": {}, "measured_with": measured_with(index)}
    metadata.change(client, index.index, {metadata.ANCHORS: trust.to_dict() | kept})
    return trust


def test_a_description_says_that_a_calibration_is_due(client, tmp_path, index_name):
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=corpus(languages=["de", "th"]))
    due = (
        f"{index_name} is not calibrated, so mode anchored uses default values and auto is dense: run `langshift "
        f"anchors calibrate {index_name}`."
    )
    assert due in printed(run("index", "describe", index_name, "--json"))["remarks"]
    calibrated(client, index_name)
    assert due not in printed(run("index", "describe", index_name, "--json"))["remarks"]


def test_what_is_kept_and_cannot_be_read_is_an_error(client, plain, name):
    for broken in ({"spread": "wide"}, {"spread": 0.1, "strength": 2}, [1]):
        metadata.change(client, plain.index, {metadata.ANCHORS: broken})
        assert refused(run("search", name, "Meer", "--mode", "anchored")) == (
            f"The calibration in the mapping of {plain.index} (_meta.langshift_anchors) cannot be read: run "
            f"`langshift anchors calibrate {name}` again.",
            1,
        )


def test_what_a_question_was_made_of_is_found_and_with_it_hidden_is_not(client, tmp_path, index_name):
    # In an index of its own: what was deleted still counts in how rare words are, as long as the server keeps it.
    lines = corpus(languages=LANGUAGES, groups=22)
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=lines)
    plain = versions.live(client, index_name)
    asker = Searcher(client, plain)
    # Of all documents the same is asked, however they were loaded.
    make_index(client, tmp_path / "reversed.jsonl", f"{index_name}-reversed", lines=lines[::-1])
    other = Searcher(client, versions.live(client, f"{index_name}-reversed"))
    first, second = (make_questions(each, draw_passages(each, MOST, MOST, 0), 0) for each in (asker, other))
    assert [_without_vector(one) for one in first] == [_without_vector(one) for one in second]
    copy = client.search(index=plain.index, body={"size": 1, "query": {"term": {"language": "de"}}})["hits"]["hits"][0]
    client.index(index=plain.index, id="copy", body=copy["_source"] | {"group": "other"}, refresh=True)
    passages = draw_passages(asker, 200, MOST, 0)
    asked = make_questions(asker, passages, 0)
    # Of the same index the same is asked again.
    again = make_questions(asker, draw_passages(asker, 200, MOST, 0), 0)
    assert [_without_vector(one) for one in again] == [_without_vector(one) for one in asked]
    # The clearest ones, in the documents' own words.
    clear = [one for one in asked if one.overlap == "all" and one.vagueness == 1 and (one.hides or not one.elsewhere)]
    target = asker.target(SearchSettings("anchored"))
    plans = [search(SearchRequest(one.query, SearchSettings("anchored"), target, source=False)) for one in clear]
    gone = [of_documents(sorted(one.hides), plain.fields) if one.hides else () for one in clear]
    plans = [masked(plan, clauses) for plan, clauses in zip(plans, gone, strict=True)]
    found = [{hit.id: hit.language for hit in one.hits} for one in execute_all(asker, plans)]
    groups = {hit["_id"]: hit["_source"]["group"] for hit in _every(client, plain)} | {"copy": "other"}
    there, hidden = (
        [(one, ids) for one, ids in zip(clear, found, strict=True) if bool(one.hides) == gone] for gone in (False, True)
    )
    for one, _ in there:
        passage = passages[one.document]
        own = {name for name, other in one.answers.items() if not other}
        twins = {"copy", copy["_id"]} & {passage.id}
        assert own == ({"copy", copy["_id"]} if twins else {passage.id})
        if passage.id != "copy":
            members = {name for name, group in groups.items() if group == passage.group}
            assert set(one.answers) == members | own
    assert np.mean([bool(set(one.answers) & set(ids)) for one, ids in there]) > 0.95
    for one, ids in hidden:
        passage = passages[one.document]
        assert all(one.answers.values())
        assert passage.id not in ids
        mine = [name for name, language in ids.items() if language == passage.language]
        assert passage.group not in {groups[name] for name in mine}


def _without_vector(question):
    query = question.query
    return question._replace(query=None), query.words, query.language, np.asarray(query.vector).tobytes()


def _every(client, index):
    return client.search(index=index.index, body={"size": 1000, "_source": ["group"]})["hits"]["hits"]


def test_a_search_that_fails_is_told_as_it_is(client, plain):
    def wrong():
        yield ({"query": {"unheard_of": {}}},)

    with pytest.raises(Exception, match="unknown query \\[unheard_of\\]"):
        execute_all(Searcher(client, plain), [wrong()])


def test_it_prints_what_it_found_in_words(plain, measured):
    kept, index = measured.told, plain.index
    lines = measured.printed.splitlines()
    heads = ["answer", "heard", "words", "queries", "dense", "anchored", "±", "TLR", "own@3"]
    assert re.split(r"  +", lines[0]) == heads
    assert [re.split(r"  +", line)[:4] for line in lines[1:7]] == [
        ["in the query's language", "any", "all", str(EACH)],
        ["in the query's language", "any", "half", str(EACH)],
        ["in the query's language", "any", "none", str(EACH)],
        ["in others only", "100%", "any", str(EACH)],
        ["in others only", "50%", "any", str(EACH)],
        ["in others only", "25%", "any", str(EACH)],
    ]
    assert lines[7:14] == [
        "",
        "heard: how much of a sentence a query's vector is made of; the less, the vaguer. words: how many of its words",
        "are the document's; the others are replaced. dense: nDCG@20 of dense search. anchored, ±, TLR: the change by",
        "anchored search with the strength below, half of its 95% interval (by document or group); that of TLR, recall",
        "of answers in other languages (the mean of TLR@15 to TLR@25); that of own@3, how often an answer in the",
        "query's language is among the first three hits.",
        "",
    ]
    lines = lines[5:]
    assert lines[9].startswith(f"{index}: mode auto is {kept['mode']}. ")
    assert lines[10].startswith(f"Strength of anchored search: {kept['strength']:g}")
    assert lines[10].endswith(f"; spread of cosines: {kept['spread']:.4f}.")
    weight = kept["lexical_weight"]
    assert lines[11] == (
        f"Calibration found no weight of words at which hybrid search of {index} loses nothing."
        if weight is None
        else f"Hybrid search with words weighing {weight:g} loses no more than .0040 in any part of these queries (95% "
        "confidence)."
    )
    *reranked, nothing = lines[12:]
    assert all(line.startswith("Reranking (--rerank features) ") for line in reranked)
    assert {re.search(r"in mode (\w+)", line)[1] for line in reranked} == kept["rerank"].keys()
    caught = kept["no_answer"]["caught"]
    assert nothing.endswith(
        f"{caught:.0%} of made-up queries without one." if caught >= 0.5 else f"({caught:.0%} caught)."
    )

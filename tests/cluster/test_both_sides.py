"""An index whose documents and queries lost a common mean, and which recommends a language preference."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from command_line import langshift
from searched import ADVICE, TEXTS, a_name, both_sides, documents, drop

from langshift import open_index
from langshift.commands.evaluate import evaluate
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin import metadata
from langshift.plugin.stored_shift import known_vectors
from langshift.retrieval.hits import SearchResult
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import RECOMMENDED, USUAL, SearchOptions, SearchSettings, setting_of
from langshift.retrieval.shortlist import rank, rank_at, similarity_breakdown
from langshift.retrieval.steps import execute

ALPHA, GAMMA, PREFERENCE = ADVICE.alpha, ADVICE.gamma, ADVICE.preference
GERMAN = "Warum steigt und fällt das Meer?"
ENCODERS = {}


@pytest.fixture(scope="module")
def names(client, tmp_path_factory):
    """Names of an index with all of it, and of a plain one that recommends nothing."""
    folder, made = tmp_path_factory.mktemp("both"), (a_name(), a_name())
    both_sides().save(folder / "v.safetensors")
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(line) + "\n" for line in documents()), encoding="utf-8")
    for name, alpha in zip(made, (None, 0.0), strict=True):
        pipeline = build_pipeline(
            open_encoder("use-m"), open_detector(), folder / "v.safetensors", alpha, means="vectors"
        )
        load(client, str(corpus), name, pipeline)
    yield made
    for name in made:
        drop(client, name)


def opened(client, name, **options):
    return Searcher(client, name, SearchOptions(**options), ENCODERS)


@pytest.fixture(scope="module")
def known(client, names):
    """The vectors and means that the index keeps."""
    index = f"{names[0]}-v0001"
    return known_vectors(metadata.read_metadata(client, index), index)


@pytest.mark.parametrize("wanted", ["auto", "always", "never"])
def test_every_query_loses_the_common_mean(client, names, known, wanted):
    searcher = opened(client, names[0], shift_queries=wanted)
    raw = searcher.encode([GERMAN])[0].astype(np.float64)
    by_language = 0.0 if wanted == "never" else ALPHA * known.query_vectors.get("de", known.vectors["de"])
    for tag, language_part in (("de", by_language), ("en", 0.0), (None, 0.0)):
        moved = searcher.move(raw[np.newaxis].astype(np.float32), [tag])[0]
        assert np.abs(moved - (raw - language_part - GAMMA * known.common["queries"])).max() < 1e-6
    result = searcher.search(GERMAN)
    assert (result.language, result.gamma, result.shift_queries) == ("de", GAMMA, wanted != "never")
    # Where queries are not shifted, a short one is not taken for a language that no document is in.
    spanish = searcher.language("¿Y el mar?").language
    assert (spanish == "es") == (wanted != "never")


@pytest.mark.parametrize("mode", ["dense", "balanced", "hybrid", "anchored"])
def test_the_preference_is_the_indexs_unless_another_is_asked_for(client, names, mode):
    searcher = opened(client, names[0])

    def told(result: SearchResult):
        return result.setting.preference, result.preference_from, [(hit.id, hit.score) for hit in result.hits]

    unasked, asked, none, spread = (
        told(searcher.search(GERMAN, setting_of(mode, **given)))
        for given in ({}, {"prefer_language": PREFERENCE}, {"prefer_language": 0}, {"spread": 0.02})
    )
    assert unasked[:2] == (PREFERENCE, "index")
    assert asked == (PREFERENCE, "asked", unasked[2])
    assert none[:2] == (0.0, "asked")
    assert spread[:2] == (-0.02, "asked")
    assert none[2] != unasked[2]


def test_where_the_preference_has_nothing_to_do_it_is_not_used_nor_spoken_of(client, names):
    searcher, plain = (opened(client, name) for name in names)
    for language in ("und", "fi"):
        result = searcher.search("12345", language=language)
        assert (result.setting.preference, result.preference_from, result.notes) == (0.0, None, ())
        assert searcher.search("12345", SearchSettings(preference=0.1), language=language).notes
    lexical = searcher.search("Mond", setting_of("lexical"), language="de")
    assert (lexical.setting.preference, lexical.preference_from, lexical.gamma) == (0.0, None, 0.0)
    result = plain.search(GERMAN)
    assert (result.setting.preference, result.preference_from, result.gamma) == (0.0, None, 0.0)


def test_command_and_library_take_it_and_say_so(names, cluster_env, monkeypatch):
    def search(*more):
        done = langshift("search", names[0], GERMAN, *more, url=cluster_env, COLUMNS="140")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    document = json.loads(search("--json"))
    assert (document["preference"], document["preference_from"], document["gamma"]) == (PREFERENCE, "index", GAMMA)
    off = json.loads(search("--json", "--prefer-language", "0"))
    assert (off["preference"], off["preference_from"]) == (0.0, "asked")
    line = "Language preference 0.125, as the index recommends; --prefer-language 0 turns it off."
    explained = search("--explain")
    assert line in explained
    assert "de 0.5, common mean 0.75" in explained
    assert "and how much of the common mean, which the query lost too." in " ".join(explained.split())
    assert line not in search() + search("--explain", "--prefer-language", "0.1")
    monkeypatch.setenv("OPENSEARCH_URL", cluster_env)
    with open_index(names[0]) as index:
        found = index.search(GERMAN)
        assert (found.setting.preference, found.preference_from) == (PREFERENCE, "index")
        assert index.search(GERMAN, prefer_language=0).setting.preference == 0
        assert [hit.score for hit in found.hits] == [hit["score"] for hit in document["hits"]]


def test_the_effect_is_told_against_what_the_encoder_made(client, names):
    searcher, plain = (opened(client, name) for name in names)
    before = {hit.id: hit.shift for hit in plain.search(GERMAN, explain=True).hits}
    for hit in searcher.search(GERMAN, explain=True).hits:
        by_language = {} if hit.language == "en" else {hit.language: ALPHA}
        assert hit.shift.moved == {**by_language, "common": GAMMA}
        assert hit.shift.similarity_before == pytest.approx(before[hit.id].similarity_after, abs=2e-6)
        assert hit.shift.rank_before == before[hit.id].rank_after


@pytest.mark.usefixtures("cluster_env")
def test_evaluations_take_no_preference_unasked(names, folder, tmp_path):
    arguments = ["replay", str(folder), "--index", names[0], "--output", str(tmp_path)]
    assert CliRunner().invoke(evaluate, arguments, catch_exceptions=False).exit_code == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["setting"]["preference"] == 0.0
    assert (result["gamma"], result["shift_queries"]) == (GAMMA, True)


def test_a_shortlist_is_what_an_index_of_other_scales_finds(client, names):
    searcher, plain = (opened(client, name) for name in names)
    # In the pivot language only gamma moves the query.
    words = "Why does the sea rise twice a day?"
    shortlist = execute(client, searcher.index.index, searcher.shortlist(words, language="en"))
    vectors = execute(client, searcher.index.index, searcher.vectors(shortlist))
    before = {hit.id: hit.score for hit in plain.search(words, USUAL, language="en").hits}
    found = rank_at(shortlist, vectors, USUAL, 0.0, 0.0).hits
    assert {hit.id: hit.score for hit in found} == pytest.approx(before, abs=1e-6)
    assert [hit.id for hit in found] == list(before)
    own = rank_at(shortlist, vectors, USUAL, ALPHA, GAMMA).hits
    indexed = rank(shortlist, USUAL).hits
    assert {hit.id: hit.score for hit in own} == pytest.approx({hit.id: hit.score for hit in indexed}, abs=1e-6)
    for name in TEXTS:
        told = similarity_breakdown(vectors, name, None)
        assert (1 + told.before) / 2 == pytest.approx(before[name], abs=1e-6)
    live = searcher.search(words, RECOMMENDED, language="en")
    resolved = searcher.resolve(RECOMMENDED).setting.for_index(searcher.index, "en")
    assert resolved == live.setting
    assert [hit.id for hit in live.hits] == [hit.id for hit in rank(shortlist, resolved, size=10).hits]

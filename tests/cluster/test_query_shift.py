"""Queries shifted as documents are: by what the index holds, where asked for, and never in the pivot language."""

import json
import uuid
from dataclasses import replace

import numpy as np
import orjson
import pytest
from advice import advised
from click.testing import CliRunner
from command_line import langshift, refusal

from langshift.commands.evaluate import evaluate
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, open_journals
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin import inventory, metadata
from langshift.plugin.metadata import QuerySide
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchOptions

PIVOT, GERMAN = "Why does the sea rise and fall?", "Warum steigt und fällt das Meer?"
SHIFTED_BY = {"de": 3.0, "es": 0.5}
ENCODERS = {}


@pytest.fixture(scope="module")
def known():
    """The shipped vectors, with others on the query side for two languages, and scales of single languages."""
    use_m = LanguageVectors.load(shipped("use-m"))
    queries = {tag: factor * use_m.vectors[tag] for tag, factor in SHIFTED_BY.items()}
    return replace(use_m, query_vectors=queries)


@pytest.fixture(scope="module")
def made(client, folder, known, tmp_path_factory):
    """Makes an index of the dataset with the vectors, with other fields where they are given; removed at the end."""
    names = []

    def make(method="shift", alpha=None, *, recommended=False, gamma=0.0, preference=0.0, **fields):
        path = tmp_path_factory.mktemp("vectors") / "v.safetensors"
        scales = {"alpha": 0.5, "alphas": {"de": 0.25}, "shift_queries": recommended}
        scales |= {"gamma": gamma, "preference": preference}
        replace(known, **advised(scales), **fields).save(path)
        names.append(f"langshift-test-{uuid.uuid4().hex[:8]}")
        making = build_pipeline(open_encoder("use-m"), open_detector(), path, alpha, method=method)
        load(client, str(folder / "corpus.jsonl"), names[-1], making)
        return names[-1]

    yield make
    for name in names:
        inventory.drop_all(client, name)


@pytest.fixture(scope="module")
def indices(made):
    """Indices by what their vectors recommend for queries."""
    return {recommended: made(recommended=recommended) for recommended in (True, False)}


def searcher(client, name, shift_queries="auto"):
    return Searcher(client, name, SearchOptions(shift_queries=shift_queries), ENCODERS)


def vector(opened, words, language=None):
    tag = language or opened.language(words).language
    return opened.move(opened.encode([words]), [tag])[0]


@pytest.mark.parametrize(
    ("recommended", "wanted", "shifted"),
    [
        *[(recommended, "never", False) for recommended in (True, False)],
        *[(recommended, "always", True) for recommended in (True, False)],
        *[(True, "auto", True), (False, "auto", False)],
    ],
)
def test_searching(client, indices, known, recommended, wanted, shifted):
    opened = searcher(client, indices[recommended], wanted)
    german, thai, pivot = (opened.encode([words])[0] for words in (GERMAN, "ทะเล", PIVOT))
    # German has a vector of its own for queries, and a scale of its own; Thai takes its documents' vector.
    expected = german.astype(np.float64) - 0.25 * 3.0 * known.vectors["de"] if shifted else german
    assert np.abs(vector(opened, GERMAN, "de") - expected).max() < 1e-6
    assert (vector(opened, GERMAN) == vector(opened, GERMAN, "de")).all()
    assert (vector(opened, GERMAN, "de-AT") == vector(opened, GERMAN, "de")).all()
    expected = thai.astype(np.float64) - 0.5 * known.vectors["th"] if shifted else thai
    assert np.abs(vector(opened, "ทะเล", "th") - expected).max() < 1e-6
    # Bit for bit: the pivot, what is in no known language, and a language without a vector.
    assert (vector(opened, PIVOT) == pivot).all()
    for language in ("en", "und", "vi"):
        assert (vector(opened, PIVOT, language) == pivot).all()


def test_a_query_may_be_in_a_language_that_no_document_is_in(client, indices, known):
    words = "¿Por qué sube y baja el mar?"
    never = searcher(client, indices[True], "never")
    assert never.language(words).language == "es"
    # Of a few letters nothing is sure.
    assert never.language("la luna y el mar").language in {"en", "de"}
    opened = searcher(client, indices[True], "always")
    assert opened.index.languages == ("de", "en", "th")
    assert [opened.language(one).language for one in (words, "la luna y el mar")] == ["es", "es"]
    expected = opened.encode([words])[0].astype(np.float64) - 0.5 * 0.5 * known.vectors["es"]
    assert np.abs(vector(opened, words) - expected).max() < 1e-6


def bodies(asked, name):
    return {
        request.query: orjson.loads(request.first.content)
        for request in asked.requests
        if request.target == f"{name}-v0001"
    }


def test_replaying(client, indices, dataset):
    plan, asked = ReplayOptions(), {}
    for recommended, name in indices.items():
        for wanted in ("auto", "always", "never"):
            made = ReplayPlan.of([searcher(client, name, wanted)], dataset, plan)
            asked[recommended, wanted] = bodies(made, name)
    never = asked[True, "never"]
    german, english = ({query.id for query in dataset.queries if query.language == tag} for tag in ("de", "en"))
    assert len(german) == len(english) == 10
    for (recommended, wanted), found in asked.items():
        shifted = wanted == "always" or (wanted == "auto" and recommended is True)
        for query in english:
            assert found[query] == never[query]
        for query in german:
            assert (found[query] != never[query]) == shifted
            assert found[query] == (asked[True, "always"] if shifted else never)[query]


def test_indices_share_encodings_but_not_what_shifts_them(client, indices, made, dataset, monkeypatch):
    plain, other = made(alpha=0.0), made(recommended=True, alpha=1.0)
    opened = [searcher(client, name, "always") for name in (plain, indices[True], indices[False], other)]
    encoded, encoder = [], opened[0].encoder
    encode = encoder.encode_queries
    monkeypatch.setattr(encoder, "encode_queries", lambda texts: encoded.extend(texts) or encode(texts))
    asked = ReplayPlan.of(opened, dataset, ReplayOptions())
    assert len(encoded) == 20
    found = [bodies(asked, one.index.name) for one in opened]
    for one, its in zip(opened, found, strict=True):
        assert its == bodies(ReplayPlan.of([one], dataset, ReplayOptions()), one.index.name)
    # An index whose documents are not shifted is asked with queries as they are.
    assert found[0] == bodies(ReplayPlan.of([searcher(client, plain, "never")], dataset, ReplayOptions()), plain)
    assert found[1] == found[2]
    assert found[0] != found[1] != found[3]


@pytest.mark.usefixtures("cluster_env")
def test_the_result_says_so_and_resuming_keeps_to_it(client, folder, indices, tmp_path):
    def replay(name, *more):
        said = CliRunner().invoke(
            evaluate, ["replay", str(folder), "--index", name, *map(str, more)], catch_exceptions=False
        )
        return said.stdout

    told = {}
    for wanted in ("auto", "always", "never"):
        for recommended in (True, False):
            output = tmp_path / f"{wanted}-{recommended}"
            shown = replay(indices[recommended], "--shift-queries", wanted, "--output", output)
            told[wanted, recommended] = json.loads((output / "result.json").read_text())["shift_queries"]
            assert shown.splitlines()[0].endswith(", queries shifted") == told[wanted, recommended]
    assert told == {
        **{("always", recommended): True for recommended in (True, False)},
        **{("never", recommended): False for recommended in (True, False)},
        **{("auto", recommended): recommended for recommended in (True, False)},
    }
    lexical = json.loads(replay(indices[True], "--mode", "lexical", "--shift-queries", "always", "--json"))
    assert lexical["shift_queries"] is False
    # A replay that was cut off is gone on with as it began.
    output = tmp_path / "cut-off"
    begun = ReplayPlan.of(
        [searcher(client, indices[True], "never")], load_dataset(folder), ReplayOptions(group_scores=True)
    )
    with open_journals(output, begun, ReplayOptions(group_scores=True))[0]:
        pass
    with pytest.raises(UsageError) as refused:
        replay(indices[True], "--shift-queries", "always", "--output", output, "--resume")
    assert str(refused.value) == (
        f"{output} contains an unfinished replay that differs from this one (shift_queries False, not True): name "
        "another --output, or resume it with the command that started it."
    )
    replay(indices[True], "--shift-queries", "never", "--output", output, "--resume")
    assert not (output / "unfinished.json").exists()


def test_the_command_says_whether_it_shifted(cluster_env, indices):
    def search(name, *more):
        done = langshift("search", name, GERMAN, *more, "--json", url=cluster_env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    auto, never = search(indices[True]), search(indices[True], "--shift-queries", "never")
    assert (auto["shift_queries"], never["shift_queries"]) == (True, False)
    assert auto["language"] == never["language"] == "de"
    scores = [{hit["id"]: hit["score"] for hit in found["hits"]} for found in (auto, never)]
    assert scores[0] != scores[1]
    lexical = search(indices[True], "--mode", "lexical", "--shift-queries", "always")
    assert lexical["shift_queries"] is False


def test_an_index_that_holds_nothing_to_shift_queries_by(client, cluster_env, made, folder):
    name = made(recommended=True)
    index = f"{name}-v0001"
    assert set(client.indices.get_mapping(index=index)[index]["mappings"]["_meta"]) == {
        "langshift",
        "langshift_origin",
        "langshift_queries",
        "langshift_vectors",
    }
    metadata.change(client, index, {metadata.QUERIES: None})
    for wanted in ("auto", "never"):
        opened = searcher(client, name, wanted)
        assert (vector(opened, GERMAN) == opened.encode([GERMAN])[0]).all()
    refused = (
        f"Index {name} does not contain the vectors by which queries are shifted: index the corpus again, or search "
        "with --shift-queries never."
    )
    with pytest.raises(UsageError) as caught:
        searcher(client, name, "always").search(GERMAN)
    assert str(caught.value) == refused
    arguments = ("search", name, GERMAN), ("evaluate", "replay", folder, "--index", name)
    for command in arguments:
        done = langshift(*command, "--shift-queries", "always", url=cluster_env)
        assert (done.returncode, refusal(done)) == (2, refused)


def test_an_index_of_another_method_keeps_nothing_either(client, made, known):
    maps = dict.fromkeys(known.vectors, np.eye(512, dtype=np.float32))
    name = made("affine", recommended=True, means=dict(known.vectors), maps=maps)
    with pytest.raises(UsageError) as refused:
        searcher(client, name, "always").search(GERMAN)
    assert str(refused.value) == (
        f"Index {name} was built with the method affine, and queries are shifted only where documents are: "
        "search with --shift-queries never."
    )
    opened = searcher(client, name)
    assert (vector(opened, GERMAN) == opened.encode([GERMAN])[0]).all()


def test_what_the_index_holds_is_the_files_numbers(client, indices, known):
    noted = metadata.read_metadata(client, f"{indices[True]}-v0001")
    kept, documents = QuerySide.from_dict(noted["langshift_queries"]), StoredShift.from_meta(noted)
    assert kept.recommended is True
    # Only what is not the documents' own.
    assert set(kept.vectors) == set(known.query_vectors)
    assert set(documents.vectors) == set(known.vectors)
    for tag, vector_ in documents.vectors.items():
        assert (vector_ == known.vectors[tag]).all()
        assert tag not in kept.vectors or (kept.vectors[tag] == known.query_vectors[tag]).all()


def test_other_clients_are_told_what_to_subtract(client, cluster_env, made, known, indices):
    """By three lines of Python, as docs/clients.md has them, queries are what langshift searches with."""
    mean = known.vectors["th"]
    gamma = made(recommended=True, gamma=0.75, common={"documents": mean, "queries": 2 * mean}, preference=0.05)
    for name, sides in ((gamma, "Both sides"), (indices[True], "Both sides"), (indices[False], "Documents only")):
        told = json.loads(langshift("index", "describe", name, "--query-vectors", url=cluster_env).stdout)
        opened = searcher(client, name)
        for words, language in ((GERMAN, "de"), ("ทะเล", "th"), (PIVOT, "en"), (PIVOT, "vi"), (PIVOT, "und")):
            step = told["steps"][told["keys"].get(language, "und")]
            (raw,) = opened.encode([words])
            assert np.abs(np.subtract(raw, step) - vector(opened, words, language)).max() < 1e-6
        said = langshift("index", "describe", name, url=cluster_env).stdout
        assert sides in said
        assert ("by 0.05 (cosine)" in said) == (name == gamma)
    said = langshift("index", "describe", gamma, url=cluster_env).stdout
    assert "queries lose their language vector and the common mean (gamma 0.75), too." in said
    # The sign of other clients: they write to it.
    assert langshift("pipeline", "install", gamma, url=cluster_env).stderr.startswith("Both sides: queries lose")
    remarks = json.loads(langshift("index", "describe", gamma, "--json", url=cluster_env).stdout)["remarks"]
    assert [one for one in remarks if one.startswith(f"Check how others search: other clients write to {gamma}")]
    said = " ".join(langshift("doctor", url=cluster_env).stdout.split())
    assert "others may search it with raw queries" in said

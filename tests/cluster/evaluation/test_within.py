"""``--within`` against a real OpenSearch: the figures of an index and a dataset of their own for each value."""

import json
from dataclasses import replace
from statistics import fmean

import pytest
from click.testing import CliRunner
from made_pools import DOMAINS, LANGUAGES, write_miracl, write_posir
from planted_sparse import Planted, PlantedSparse
from small_dataset import index_of

from langshift.cli import root
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, open_journals
from langshift.ingest.config import PipelineOptions
from langshift.ingest.reencode import reencode
from langshift.plugin.inventory import drop_all
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

MEASURES = "nDCG@2 R@1 RR"
OFFLINE = ("--encoder", "use-m", "--method", "none")
# By words, an index of one value alone has other frequencies of words, so that only its hits are compared.
MODES = (
    "dense",
    "lexical",
    "hybrid",
    "hybrid --fusion rrf",
    "balanced",
    "anchored",
    "dense --prefer-language .05",
    "dense --one-per-group",
    "dense --rerank features",
    "sparse",
    "hybrid --sparse-weight .3",
)


def langshift(*arguments, code=0):
    done = CliRunner().invoke(root, [str(one) for one in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def document(*arguments):
    return json.loads(langshift(*arguments, "--json").stdout)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ranking(folder):
    found = {}
    for line in (folder / "run.trec").read_text().splitlines():
        query, _, name, *_ = line.split()
        found.setdefault(query, []).append(name)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Datasets: all of MIRACL and PosIR in one, and each language, and each domain, alone."""
    folder = tmp_path_factory.mktemp("pools")
    write_miracl(folder / "MIRACL")
    write_posir(folder / "PosIR")
    langshift("dataset", "convert", "miracl", folder / "MIRACL", folder / "miracl")
    posir = ("dataset", "convert", "posir", folder / "PosIR")
    langshift(*posir, folder / "posir", "--multilingual-queries")
    for tag in LANGUAGES:
        langshift("dataset", "convert", "miracl", folder / "MIRACL", folder / f"miracl-{tag}", "--languages", tag)
        langshift(*posir, folder / f"of-{tag}", "--languages", "en", "--pivot", tag)
    for domain in DOMAINS:
        langshift(*posir, folder / domain, "--domains", domain, "--multilingual-queries")
    return folder


@pytest.fixture(scope="module")
def index(client, made):
    """Makes the index of a dataset, once."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = index_of(client, made / name, 0.0)
            if name == "posir":
                reencode(client, known[name], PipelineOptions("use-m", sparse="st:one"))
        return known[name]

    with pytest.MonkeyPatch.context() as patch:
        Planted(patch)
        patch.setattr("langshift.retrieval.searcher.open_sparse", lambda name, **_: PlantedSparse(name))
        yield of
    for one in known.values():
        drop_all(client, one)


@pytest.mark.usefixtures("cluster_env")
def test_the_languages_of_miracl_in_one_index_have_the_figures_of_separate_indices(made, index, tmp_path):
    whole = ("evaluate", "replay", made / "miracl", "--index", index("miracl"), "--measures", MEASURES)
    found = document(*whole, "--setting", "dense --within language", "--output", tmp_path / "out")
    assert (found["within"], found["setting"]["within"]) == ("language", "language")
    assert [*found["by_value"]] == [*LANGUAGES]
    for tag in LANGUAGES:
        alone = document(
            "evaluate", "replay", made / f"miracl-{tag}", "--index", index(f"miracl-{tag}"), "--setting", "dense",
            "--measures", MEASURES, "--output", tmp_path / tag,
        )  # fmt: skip
        assert found["by_value"][tag]["measures"] == pytest.approx(alone["measures"])
        both = ranking(tmp_path / "out"), ranking(tmp_path / tag)
        assert {query: both[0][query] for query in both[1]} == both[1]
    assert found["macro"] == {
        name: pytest.approx(fmean(part["measures"][name] for part in found["by_value"].values()))
        for name in found["measures"]
    }
    assert found["warnings"] == []
    assert document(*whole, "--setting", "dense")["within"] is None


@pytest.mark.usefixtures("cluster_env")
def test_english_alone_is_found_as_in_a_pool_of_english_alone(made, index, tmp_path):
    found = document(
        "evaluate", "replay", made / "posir", "--index", index("posir"), "--setting", "dense --within language=en",
        "--measures", MEASURES, "--output", tmp_path / "out",
    )  # fmt: skip
    assert (found["within"], [*found["by_value"]]) == ("language=en", ["en"])
    for tag in LANGUAGES:
        alone = document(
            "evaluate", "replay", made / f"of-{tag}", "--index", index("of-en"), "--setting", "dense", "--measures",
            MEASURES, "--output", tmp_path / tag,
        )  # fmt: skip
        assert found["by_language"][tag]["measures"] == pytest.approx(alone["measures"])
        hits = ranking(tmp_path / "out")
        assert {query: hits[f"{query}-{tag}"] for query in ranking(tmp_path / tag)} == ranking(tmp_path / tag)
    rows = {row["query"]: row for row in lines(tmp_path / "out" / "per-query.jsonl")}
    assert rows["Law-q0-de"]["within"] == "en"
    assert rows["Law-q0-de"]["outside"] == ["Law-c0-de", "Law-c0-es"]
    groups = {row["query"]: row["scores"] for row in lines(tmp_path / "out" / "group-scores.jsonl")}
    assert [*groups["Law-q0-de"]] == ["Law-c0-en"]
    assert found["warnings"] == [
        "18 of 27 relevant documents are outside of what their queries search (--within language=en) and are left out "
        "of the measures."
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("cluster_env")
def test_a_query_finds_its_own_domain_alone_in_every_mode(made, index, tmp_path, mode):
    found = document(
        "evaluate", "replay", made / "posir", "--index", index("posir"), "--setting", mode, "--within", "domain",
        "--measures", "nDCG@20 LPR", "--output", tmp_path / "out",
    )  # fmt: skip
    assert [*found["by_value"]] == [*DOMAINS]
    assert found["errors"] == 0
    hits = ranking(tmp_path / "out")
    assert len(hits) == 9
    for query, names in hits.items():
        assert {name.split("-")[0] for name in names} == {query.split("-")[0]}
    # Translations share a domain, so that preferences among them can be told.
    assert found["queries"]["LPR"] == 9


@pytest.mark.usefixtures("cluster_env")
def test_domains_in_one_index_have_the_figures_of_separate_indices(made, index):
    found = document(
        "evaluate", "replay", made / "posir", "--index", index("posir"), "--setting", "dense --within domain",
        "--measures", f"{MEASURES} TLR@2 LPR",
    )  # fmt: skip
    for domain in DOMAINS:
        alone = document(
            "evaluate", "replay", made / domain, "--index", index(domain), "--setting", "dense", "--measures",
            f"{MEASURES} TLR@2 LPR",
        )  # fmt: skip
        assert found["by_value"][domain]["measures"] == pytest.approx(alone["measures"])


@pytest.mark.usefixtures("cluster_env")
def test_runs_that_search_different_parts_are_not_compared_in_silence(made, index, tmp_path):
    replay = ("evaluate", "replay", made / "posir", "--index", index("posir"), "--measures", "nDCG@2 LPR")
    langshift(*replay, "--setting", "dense", "--output", tmp_path / "all")
    langshift(*replay, "--setting", "dense --within domain", "--output", tmp_path / "domain")
    langshift(*replay, "--setting", "lexical --within domain", "--output", tmp_path / "words")
    said = langshift("evaluate", "compare", tmp_path / "all", tmp_path / "domain")
    assert (
        "a (all) searches all and b (domain) searches within domain: the figures of each run leave out what its "
        "queries do not search." in " ".join(said.stderr.split())
    )
    two = ("evaluate", "compare", tmp_path / "domain", tmp_path / "words", "--measures", "nDCG@2 LPR")
    alike = document(*two, "--report", tmp_path / "report")
    shown = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "By what is searched, domain, all: a (domain) and b (words)" in shown
    assert [*alike["by_value"]] == [*DOMAINS]
    for letter, name in (("a", "domain"), ("b", "words")):
        kept = json.loads((tmp_path / name / "result.json").read_text())["by_value"]
        for domain in DOMAINS:
            means = alike["by_value"][domain]["sections"]["all"]["nDCG@2"]["means"]
            assert means[letter] == pytest.approx(kept[domain]["measures"]["nDCG@2"])


@pytest.mark.usefixtures("cluster_env")
def test_a_log_names_the_value_and_a_query_without_one_is_not_asked(index, tmp_path):
    name, log = index("posir"), tmp_path / "log.csv"
    log.write_text("_id,text,domain\na,Who checks a contract?,Law\nb,What lowers a fever?,\n")
    replay = ("evaluate", "replay", "--queries", log, "--index", name, "--setting", "dense --within domain")
    said = langshift(*replay, "--output", tmp_path / "out", code=1)
    refused = (
        "The query 'b' has no single value of 'domain', by which --within domain chooses what it searches: write one "
        "into its line as 'domain', or name one for all queries, --within domain=VALUE."
    )
    assert str(said.exception).endswith(f"the first, b: {refused}")
    assert {one.split("-")[0] for one in ranking(tmp_path / "out")["a"]} == {"Law"}
    # Of another language for each value, or it might be.
    assert json.loads((tmp_path / "out" / "result.json").read_text())["macro"] == {"MostShown@20": None}


@pytest.mark.usefixtures("cluster_env")
@pytest.mark.parametrize(
    ("within", "sentence"),
    [
        ("tenant", "has no field 'tenant': use language, group or another field that its documents came with."),
        ("language=xx9", "'xx9' is not a valid language: use a BCP 47 tag such as th or zh-TW."),
        ("=en", "--within is '=en', but it must be a field, such as language, or a field with one value, such as "
                "language=en."),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_within_is_refused(made, index, within, sentence):
    done = CliRunner().invoke(
        root, ["evaluate", "replay", str(made / "posir"), "--index", index("posir"), "--within", within]
    )
    assert str(done.exception).endswith(sentence)


def test_a_replay_is_not_resumed_with_other_values(client, made, index, tmp_path):
    searcher, given = Searcher(client, index("posir")), load_dataset(made / "posir")
    options = ReplayOptions([SearchSettings("dense", within="domain")])
    for journal in open_journals(tmp_path, ReplayPlan.of([searcher], given, options), options):
        journal.__exit__()
    moved = replace(given, queries=tuple(query._replace(fields={"domain": "Law"}) for query in given.queries))
    with pytest.raises(
        UsageError, match=r"contains an unfinished replay that differs from this one \(queries \w+, not"
    ):
        open_journals(tmp_path, ReplayPlan.of([searcher], moved, options), options)


@pytest.mark.usefixtures("cluster_env")
def test_an_index_of_chunks_tells_which_documents_a_query_searches(made, index_name, tmp_path):
    langshift("ingest", made / "posir" / "corpus.jsonl", "--index", index_name, "--alpha", "0", "--chunk", "words:3")
    found = document(
        "evaluate", "replay", made / "posir", "--index", index_name, "--setting", "dense --within language=en",
        "--measures", "R@2 LPR", "--output", tmp_path / "out",
    )  # fmt: skip
    rows = {row["query"]: row for row in lines(tmp_path / "out" / "per-query.jsonl")}
    assert rows["Law-q0-de"]["outside"] == ["Law-c0-de", "Law-c0-es"]
    assert found["measures"]["R@2"] == 1
    assert all(name.endswith("-en") for names in ranking(tmp_path / "out").values() for name in names)


def test_a_single_search_refuses_within(client, index):
    with pytest.raises(UsageError) as refused:
        Searcher(client, index("posir")).search("fever", SearchSettings("dense", within="domain"))
    said = "A single search has no values for within, which replays take from their queries: use filters instead."
    assert str(refused.value) == said


def test_offline_gives_the_figures_of_separate_pools(made):
    for name, within, values, alone in (
        ("miracl", "language", LANGUAGES, "miracl-{}"),
        ("posir", "domain", DOMAINS, "{}"),
    ):
        offline = ("evaluate", "offline")
        found = document(*offline, made / name, "--within", within, "--measures", MEASURES, *OFFLINE)
        assert found["within"] == within
        for value in values:
            one = document(*offline, made / alone.format(value), "--measures", MEASURES, *OFFLINE)
            assert found["by_value"][value]["measures"] == pytest.approx(one["measures"])
    found = document("evaluate", "offline", made / "posir", "--within", "language=en", *OFFLINE, "--measures", MEASURES)
    for tag in LANGUAGES:
        one = document("evaluate", "offline", made / f"of-{tag}", "--measures", MEASURES, *OFFLINE)
        assert found["by_language"][tag]["measures"] == pytest.approx(one["measures"])


@pytest.mark.parametrize(
    ("within", "sentence"),
    [
        ("tenant=a", "has no document with a field 'tenant', by which --within tenant=a chooses what a query searches: "
                     "name another field, or add it to corpus.jsonl."),
        ("tenant", "has no single value of 'tenant', by which --within tenant chooses what it searches: write one into "
                   "its line as 'tenant', or name one for all queries, --within tenant=VALUE."),
    ],
)  # fmt: skip
def test_offline_refuses_a_field_that_is_not_there(made, within, sentence):
    done = CliRunner().invoke(root, ["evaluate", "offline", str(made / "posir"), "--within", within, *OFFLINE])
    assert str(done.exception).endswith(sentence)

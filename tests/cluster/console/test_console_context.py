"""What the console's pages share: the cluster, indices kept open, and what lives as long as they."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from command_line import langshift

from langshift.errors import ClusterError, UsageError
from langshift.retrieval.request import SearchArguments
from langshift.settings import Settings
from langshift.web.context import AppContext


@pytest.fixture
def console(cluster_url, tmp_path):
    made = AppContext(replace(Settings.from_env(), url=cluster_url), tmp_path)
    yield made
    made.close()


@pytest.fixture
def made(cluster_url, index_name, folder):
    """An index of the small dataset."""
    done = langshift("ingest", folder / "corpus.jsonl", "--index", index_name, url=cluster_url)
    assert done.returncode == 0, done.stderr
    return index_name


def test_threads_that_open_an_index_at_once_share_it_and_its_encoder(console, made):
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: console.opened(made), range(16)))
    assert {id(one) for one in found} == {id(console.opened(made))}
    version = console.opened(f"{made}-v0001")
    assert version is not found[0]
    assert version.current().searcher.encoder is found[0].current().searcher.encoder


def test_many_threads_search_at_once(console, made):
    def search(number):
        few = SearchArguments(size=3)
        searcher, found = console.opened(made).execute(lambda searcher: searcher.result_plan(f"tides {number}", few))
        return searcher.index.index, len(found.hits)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(search, range(32))) == {(f"{made}-v0001", 3)}


def test_names_that_are_none(console):
    for name in ("*", "a,b", "_all", "../x", "<script>", ""):
        with pytest.raises(UsageError, match="is not a valid index name"):
            console.opened(name)
    with pytest.raises(ClusterError, match="There is no index langshift-test-nothing: create it with"):
        console.opened("langshift-test-nothing")


def test_what_pages_keep_is_made_once(console):
    class Kept:
        pass

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: console.shared(Kept, Kept), range(16)))) == 1

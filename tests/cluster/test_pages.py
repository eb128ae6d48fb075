"""Pages at a point in time: one ranking, of which no page repeats or skips a hit, also while others write."""

import asyncio
import random

import pytest
from command_line import langshift
from filtered_index import QUERY, FilteredIndex

from langshift.errors import ClusterError, UsageError
from langshift.retrieval.settings import SearchSettings

SIZE = 9
SETTINGS = [
    SearchSettings("dense"),
    SearchSettings("dense", preference=0.1),
    SearchSettings("lexical"),
    SearchSettings("lexical", preference=0.1),
    SearchSettings("hybrid"),
    SearchSettings("hybrid", preference=-0.1, fusion="rrf"),
    SearchSettings("balanced"),
    SearchSettings("anchored"),
    SearchSettings("dense", one_per_group=True),
    SearchSettings("lexical", rerank="features"),
]
FILTERS = {"year": {"gte": 1985, "lt": 2018}, "source": {"not": "s4"}}


def holds(document):
    sources = document["source"]
    return 1985 <= document.get("year", 0) < 2018 and "s4" not in (sources if isinstance(sources, list) else [sources])


@pytest.fixture(scope="module", params=[False, True], ids=["documents", "chunks"])
def index(client, request):
    made = FilteredIndex(client, chunked=request.param)
    yield made
    made.drop()


def pages(index, setting, between, **how):
    """The hits of five pages, and the results; ``between`` is called before each page but the first."""
    found = [index.searcher.search(QUERY, setting, size=SIZE, from_=0, language="en", **how)]
    for page in range(1, 5):
        between(page)
        start = page * SIZE
        if start < found[0].depth:
            more = {"from_": start, "point_in_time": found[0].point_in_time}
            found.append(index.searcher.search(QUERY, setting, size=SIZE, language="en", **more, **how))
    return [hit for one in found for hit in one.hits], found


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_no_page_repeats_or_skips_a_hit_while_others_write(client, index, setting):
    everything = index.searcher.search(QUERY, setting, size=1000, from_=0, language="en", filters=FILTERS)
    numbers = random.Random(7)

    def write(page):
        index.write(range(1000 + 40 * page, 1040 + 40 * page), known=False)
        gone = numbers.sample(sorted(index.entries), 30)
        client.delete_by_query(
            index=f"{index.name}-v0001", body={"query": {"terms": {"_id": gone}}}, params={"refresh": "true"}
        )

    try:
        hits, found = pages(index, setting, write, filters=FILTERS, facets=["section"])
        assert [hit.id for hit in hits] == [hit.id for hit in everything.hits[: 5 * SIZE]]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in everything.hits[: 5 * SIZE]])
        assert all(hit.text and hit.source for hit in hits)
        assert {one.depth for one in found} == {everything.depth} == {len(everything.hits)}
        # Facets, too, are of the point in time.
        assert all(one.facets == found[0].facets for one in found)
        expected = index.expected(setting.mode, index.matching(holds))
        if setting.one_per_group:
            grouped = {hit.id for hit in everything.hits} | {one.id for hit in everything.hits for one in hit.others}
            assert grouped == expected
        elif not (setting.mode == "balanced" and setting.preference):
            assert {hit.id for hit in everything.hits} == expected
        if setting == SearchSettings("dense"):
            assert [hit.id for hit in hits] == list(index.cosines(index.matching(holds)))[: 5 * SIZE]
    finally:
        client.delete_by_query(
            index=f"{index.name}-v0001",
            body={"query": {"match_all": {}}},
            params={"refresh": "true", "conflicts": "proceed"},
        )
        index.rewrite()


@pytest.mark.parametrize("mode", ["lexical", "dense"])
def test_pages_of_what_is_sorted(index, mode):
    def nothing(_page):
        pass

    hits, found = pages(index, SearchSettings(mode), nothing, sort=["year:desc"])
    years = [index.documents[hit.id].get("year", 0) for hit in hits]
    matching = index.expected(mode, index.matching(lambda _: True))
    expected = sorted((index.documents[name].get("year", 0) for name in matching), reverse=True)
    assert len({hit.id for hit in hits}) == len(hits) == 5 * SIZE
    assert years == expected[: 5 * SIZE]
    assert {(one.sorted, one.sorted_count) for one in found} == {
        ("all", None) if mode == "lexical" else ("found", len(matching))
    }


def test_what_is_no_page_is_refused(client, index):
    def refused(kind, **how):
        with pytest.raises(kind) as error:
            index.searcher.search(QUERY, SearchSettings("dense"), size=SIZE, **how)
        return str(error.value)

    ranked = index.searcher.search(QUERY, from_=0)
    assert refused(UsageError, from_=1000) == (
        "The first hit's place is 1000, but it must be a number from 0 to 999: pages are cut from the best 1,000 hits. "
        "Filter, or use other words, to find what is below."
    )
    assert refused(UsageError, from_=600, point_in_time=ranked.point_in_time) == (
        f"The ranking ends after {ranked.depth} hits, so there is no page that begins at 600."
    )
    assert refused(UsageError, point_in_time=ranked.point_in_time) == (
        "A point in time is the text that an earlier page gave, and needs the first hit's place."
    )
    other = client.create_pit(index="langshift-test-*", params={"keep_alive": "1m"})["pit_id"]
    client.delete_pit(body={"pit_id": [other, ranked.point_in_time]})
    over = (
        "The point in time has expired, or is not one of this cluster's: ask for the first page again, without a point "
        "in time."
    )
    assert refused(ClusterError, from_=0, point_in_time=ranked.point_in_time) == over
    assert refused(ClusterError, from_=0, point_in_time="nonsense") == over
